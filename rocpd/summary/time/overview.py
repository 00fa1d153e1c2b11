"""The first answer: a description of the job, its problems, the parts of its time, and the top kernels and steps.

Combines the findings of the analyses with `in_overview`, and calculates nothing itself; analyses without data are left
out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from statistics import median
from time import monotonic

from rocpd.base import RocpdError, Row, amount, by_key, entries
from rocpd.base.boundary import each_for_itself
from rocpd.facts.communication.collectives import listed
from rocpd.facts.rank import By
from rocpd.facts.recorders import Recordable, recorder_of
from rocpd.facts.short_names import kernel_name
from rocpd.facts.units import LEAST_STEPS, SLOW, late_ends, products_of_ranks, slow_beyond
from rocpd.federate.describe import importers_of
from rocpd.federate.federation import Federation
from rocpd.schema.rules.kernel_categories import is_communication, load
from rocpd.summary.communication.exposed import split_of
from rocpd.summary.communication.ranks import how_grown, pause_after
from rocpd.summary.communication.verdict import ordinal, spacing
from rocpd.summary.findings import JOB, Confidence, Finding, Verdict
from rocpd.summary.kernels import totals
from rocpd.summary.reading import Function, Known, Reading, known_tables, tables_alone, tables_of_some
from rocpd.summary.registry import joined_analyses
from rocpd.summary.result import Field, Summary, by_name, table_of
from rocpd.summary.time import gpu_time
from rocpd.table.human import readable

_KERNELS, _STEPS, _LOSSES, _RUNS = 8, 3, 3, 8
_WORTH_SAYING = 10.0  # percent of the time from which on a part has a sentence

TABLES = by_name(
    table_of(
        "overview",
        "What the time of the GPUs consists of: the parts add up. In steps without warm-up, where they are marked.",
        *gpu_time.TABLES["budget"].fields,
        chart="rocpd.summary.plots:budget",
    ),
    table_of(
        "top-kernels",
        "The kernels that take most time.",
        Field("name", "", "kernel", is_kernel=True),
        Field("calls", "", "dispatches"),
        Field("total_ns", "ns", "sum of durations"),
        Field("median_ns", "ns", "median duration"),
        Field("percent", "%", "share of the time of all kernels", is_share=True),
        title="Time by kernel",
        chart="rocpd.summary.plots:kernels",
    ),
    table_of(
        "top-steps",
        "The steps that take longest, without warm-up.",
        Field("step", "", "text of the marker"),
        Field("mean_ns", "ns", "mean of the ranks"),
        Field("max_ns", "ns", "on the rank that took longest"),
        Field("slowest_rank", "", "rank that was slow in it; NULL: none stands out"),
        Field("over_median", "", "its time by the median of all steps but warm-up; NULL: the window cuts it"),
    ),
)
_SHOWN = frozenset({"budget", "kernels", "steps", "exposed-communication"})
_PATIENCE_S = 1.5  # time until people who see only a bar want to know more
_LONG_S = 3.0  # remaining time of reading from which on an early answer is worth it
_FEWEST_RANKS = 2  # ranks that show something about a job
_OF_ALL = frozenset({"trace", "ranks"})  # analyses that compare ranks
_EARLY = frozenset(
    {"step.outlier", "step.pause", "gpu.idle", "gpu.compute", "comm.exposed", "copy.exposed", "job.startup"}
)
"""Rules of findings that hold before all ranks are read."""
_JUDGED = ("trace", "ranks", "budget", "idle")  # analyses whose findings have a place of their own, before the others
_EXPOSED = ("comm.overlap", "comm.exposed", "copy.exposed")
_ROWS = {"overview": ("budget", 0), "top-kernels": ("kernels", _KERNELS), "top-steps": ("steps", _STEPS)}


def overview(reading: Reading) -> Iterator[Summary]:
    """Return the findings, and the tables behind them.

    Raises:
        RocpdError: no analysis has the data that it needs.
    """
    analyses: dict[str, Function] = {name: entries.load(row.home, name) for name, row in joined_analyses().items()}
    options = dict.fromkeys(analyses, reading.options)
    tables: dict[str, Summary] = {}
    so_far = partial(_found_early, reading, analyses, monotonic())
    for _, known in known_tables(reading.on(reading.session).of_tables(_SHOWN), analyses, options, so_far):
        tables |= {} if isinstance(known, str) else known
    findings = conclude(reading.session, tables)
    if reading.session.runs > 1:
        findings[1:1] = _runs(reading)
    if not _columns(tables, "budget", "part"):
        yield _domains(reading, [findings[0], *_no_gpu_work(reading.session, findings), *findings[1:]])
        findings = []
    for name, (source, limit) in _ROWS.items():
        columns = [field.name for field in TABLES[name].fields]
        rows = _columns(tables, source, *columns)
        if source == "steps":  # a job is never slow because of warm-up
            rows = [row[1:] for row in _columns(tables, source, "is_warm_up", *columns) if not row[0]]
        if rows:
            yield Summary.whole(TABLES[name], rows[: limit or None], findings=findings)
        findings = []


def _found_early(
    reading: Reading, analyses: Mapping[str, Function], start: float, done: int, known: Mapping[str, Known]
) -> None:
    """Call `reading.on_preliminary` once with findings from the ranks so far, if reading takes several seconds.

    Args:
        reading: the reading of the whole job.
        analyses: by name.
        start: time when reading began [s].
        done: number of ranks read.
        known: the answers so far; analyses that compare ranks wait for all.
    """
    hear, ranks = reading.on_preliminary, len(reading.session.ranks)
    passed = monotonic() - start
    if not hear or done < _FEWEST_RANKS or passed < _PATIENCE_S or passed / done * (ranks - done) < _LONG_S:
        return
    reading.on_preliminary = None
    answered = {name: answers for name, answers in known.items() if name not in _OF_ALL}

    def findings() -> list[Finding]:
        tables = tables_of_some(reading.session.of_ranks(reading.session.ranks[:done]), analyses, answered, _SHOWN)
        return [finding for finding in _found(tables) if finding.rule in _EARLY]

    each_for_itself("preliminary verdict", lambda: hear(done, findings()), str)


def conclude(session: Federation, tables: Mapping[str, Summary]) -> list[Finding]:
    """Return the finding that describes the job, and the findings of the analyses' tables, given by name."""
    return [job_finding(session, tables), *_found(tables)]


def _runs(reading: Reading) -> Iterator[Finding]:
    """Yield the parts of the time of several runs, equal ones together, and how to divide the runs."""
    by_run = reading.asking(replace(reading.options, by=By.RUN))
    try:
        budget = next(tables_alone(gpu_time.budget(by_run)))
    except RocpdError:  # no run has GPU work
        return
    times: dict[int, dict[str, int]] = {}
    for run, part, time, *_ in budget:
        times.setdefault(run, {})[part] = time
    ranks = by_key((rank.run, rank) for rank in reading.session.ranks)
    commands = {run: next((rank.command for rank in of_run if rank.command), "") for run, of_run in ranks.items()}
    alike = by_key(
        ((commands[run], len(ranks[run]), max(parts, key=parts.__getitem__)), run) for run, parts in times.items()
    )
    for (command, count, _), runs in list(alike.items())[:_RUNS]:
        which = f"run {runs[0]}" if len(runs) == 1 else f"runs {listed(runs)}"
        text = f"{which}: {amount(count, 'rank')}{' each' if len(runs) > 1 else ''}; {_time(times, runs)}"
        text += f"; {command}" if command and len({*commands.values()}) > 1 else ""
        sums = {part: sum(times[run].get(part, 0) for run in runs) for part in times[runs[0]]}
        yield Finding(text, JOB, Verdict.NOTE, Confidence.CERTAIN, evidence={"runs": runs, **sums})
    more = sum(map(len, list(alike.values())[_RUNS:]))
    rest = f"{amount(more, 'more run')}: " if more > 0 else ""
    text = f"{rest}`--by run` divides tables, `--rank` chooses the ranks of one run"
    yield Finding(text, JOB, Verdict.NOTE, Confidence.CERTAIN)


def _time(times: Mapping[int, Mapping[str, int]], runs: Sequence[int]) -> str:
    """Return the parts of the time of runs in words, each from its least to its largest share."""
    sums = sorted(sum(times[run].values()) for run in runs)
    shares = by_key(
        (part, time * 100 / (sum(times[run].values()) or 1)) for run in runs for part, time in times[run].items()
    )
    percents = {part: (f"{min(some):.0f} %", f"{max(some):.0f} %") for part, some in shares.items() if any(some)}
    parts = (f"{_between(*ends)} {part}" for part, ends in percents.items())
    return f"{_between(readable(sums[0], 'ns'), readable(sums[-1], 'ns'))} of GPUs: {', '.join(parts)}"


def _between(low: str, high: str) -> str:
    """Return two values as a range in words, with a common unit only once.

    >>> _between("12 %", "20 %"), _between("900 us", "1.2 ms"), _between("3 %", "3 %")
    ('12 to 20 %', '900 us to 1.2 ms', '3 %')
    """
    unit = high.rpartition(" ")[2]
    return high if low == high else f"{low.removesuffix(f' {unit}')} to {high}"


def _no_gpu_work(session: Federation, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the note that GPU work is missing, unless the findings say so, and how it is recorded."""
    if not any(finding.rule == "trace.kernel-trace" for finding in findings):
        missing = recorder_of(importers_of(session)).missing("no work of GPUs is recorded", Recordable.KERNELS)
        text = "no work of GPUs in this part of the trace" if session.is_part else missing
        yield Finding(text, "gpu.none", Verdict.NOTE, Confidence.CERTAIN)


def _domains(reading: Reading, findings: Iterable[Finding]) -> Summary:
    """Return the time by domain, for a trace without GPU work."""
    try:
        domains = next(tables_alone(totals.domains(reading)))
    except RocpdError as error:
        message = "nothing to summarise: no kernels, copies, allocations or regions in the inputs"
        raise RocpdError(message) from error
    definition = table_of("overview", domains.doc, *domains.fields)
    return Summary(definition, definition.fields, domains.fetchall(), findings=findings)


def job_finding(session: Federation, tables: Mapping[str, Summary]) -> Finding:
    """Return the finding that describes the job: ranks, nodes, GPUs, steps, command.

    Args:
        session: the job.
        tables: tables by name; `steps` gives the number of steps.
    """
    job = session.ranks
    hosts = sorted({rank.hostname or "?" for rank in job})
    nodes = {rank.boot or rank.hostname for rank in job}  # images come with fixed host names and machine ids
    is_known = len(nodes) < 2 or all(rank.has_machine for rank in job)
    products = Counter(chain.from_iterable(products_of_ranks(session).values()))
    lasting = _whole_steps(tables, "is_warm_up", "period_ns", "mean_ns")
    steps, warm_up = ([float(row[1] or row[2]) for row in lasting if row[0] == kind] for kind in (0, 1))
    commands = list(dict.fromkeys(rank.command for rank in job if rank.command))  # launchers and helpers come last
    is_one = session.runs == 1
    what = amount(len(job), "rank") if is_one else f"{session.runs} separate runs, not one job,"
    parts = [
        f"{what} on {amount(len(nodes), 'node')}" if is_known else what.rstrip(","),
        *sorted(products, key=lambda product: (-products[product], product))[:2],
        *([f"{amount(len(steps), 'step')}, median {readable(median(steps), 'ns')}"] if steps else []),
        *([f"{len(warm_up)} more of warm-up"] if warm_up and steps else []),
        *([amount(len(commands), "command")] if not is_one and len(commands) > 1 else commands)[:1],
    ]
    evidence = {"ranks": len(job), "hosts": hosts, "steps": len(steps)}
    return Finding("; ".join(parts), JOB, Verdict.NONE, Confidence.CERTAIN, evidence=evidence)


def _columns(tables: Mapping[str, Summary], name: str, *columns: str) -> list[Row]:
    """Return columns of a table; empty if there is no such table."""
    return tables[name].values(*columns) if name in tables else []


def _whole_steps(tables: Mapping[str, Summary], *columns: str) -> list[Row]:
    """Return columns of the steps that no window cuts."""
    return [row[1:] for row in _columns(tables, "steps", "over_median", *columns) if row[0] is not None]


def _found(tables: Mapping[str, Summary]) -> Iterator[Finding]:
    """Yield the findings; gaps of the recording come first, as they limit what the others can show."""
    lost = [finding for finding in _findings(tables, "trace") if finding.verdict is Verdict.PROBLEM]
    yield from lost[:_LOSSES]
    yield from (finding for finding in _findings(tables, "budget") if finding.rule == "step.unmarked")
    verdict, *more = _findings(tables, "ranks") or (None,)
    is_alone = len(_columns(tables, "ranks", "rank")) == 1  # a single rank compares with nothing: that is no news
    yield from (each for each in (verdict,) if each and not (is_alone and each.verdict is Verdict.UNKNOWN))
    yield from (finding for finding in more if finding and finding.verdict in (Verdict.PROBLEM, Verdict.NOTE))
    yield from _slow_steps(tables)
    exposed = (finding for finding in _findings(tables, "budget") if finding.rule in _EXPOSED)
    yield from (_with_split(finding, tables) for finding in exposed if finding.verdict is Verdict.PROBLEM)
    yield from _findings(tables, "idle")
    others = (finding for name in joined_analyses() if name not in _JUDGED for finding in _findings(tables, name))
    yield from (finding for finding in others if finding.verdict is Verdict.PROBLEM)
    yield from _computing(tables)
    yield from (finding for finding in _findings(tables, "budget") if finding.rule == "job.startup")


def _findings(tables: Mapping[str, Summary], name: str) -> tuple[Finding, ...]:
    return tables[name].findings if name in tables else ()


def _with_split(finding: Finding, tables: Mapping[str, Summary]) -> Finding:
    """Return a finding on exposed communication with the share of waiting in it, if that is known."""
    split = next(iter(_findings(tables, "exposed-communication")), None)
    if split is None or "hidden_percent" not in finding.evidence:
        return finding
    hidden, share = (float(str(finding.evidence[f"{name}_percent"])) for name in ("hidden", "exposed"))
    said = split_of(split, is_brief=finding.rule == "comm.overlap")
    return replace(finding, text=gpu_time.said_of_overlap(hidden, share, f": {said}"))


def _slow_steps(tables: Mapping[str, Summary]) -> Iterator[Finding]:
    who = ("grew_rank", "grew_host", "grew_ranks")
    columns = ("is_warm_up", "at_ns", "over_median", "step", *who, "grew", "grew_in", "grew_by_ns")
    rows = sorted((row[1:] for row in _whole_steps(tables, *columns) if not row[0]), key=lambda row: row[0])
    lasting = _whole_steps(tables, "is_warm_up", "step", "mean_ns", "period_ns")
    yield from _pauses([row[1:] for row in lasting if not row[0] and row[3]])
    over = [row[1] for row in rows]
    bound = slow_beyond(over)
    if len(rows) >= LEAST_STEPS and max(over) < SLOW:
        text = f"no slow step: none of {len(rows)} takes {SLOW} times the median"
        yield Finding(text, "step.outlier", Verdict.NONE, Confidence.CERTAIN)
    by_cause = by_key((row[3:-1], (row[1], at)) for at, row in enumerate(rows) if row[1] > bound)
    for alike in sorted(by_cause.values(), key=max, reverse=True)[:_STEPS]:
        yield _slow_alike(rows, [at for _, at in alike], max(alike)[1])


def _slow_alike(steps: Sequence[Row], alike: Sequence[int], slowest: int) -> Finding:
    """Return the finding of steps that are slow for one cause; `alike`: their places in `steps`, which are in order."""
    _, times, step, rank, host, ranks, grew, name, grew_by = steps[slowest]
    text = f"{step} is slow: {times:.2f} times the median of {len(steps)} steps"
    if grew:
        several = f"all of {host}" if host else f"ranks {ranks}" if ranks else "all ranks alike"
        where = several if rank is None else f"rank {rank}"
        text += f", {where}: {how_grown(grew, grew_by, name)}"
    names = {at: str(steps[at][2]) for at in alike}
    if others := [name for at, name in names.items() if at != slowest]:
        text += f"; {len(others)} more alike" if grew else f"; {len(others)} more"
        text += f", every {ordinal(every)} step" if (every := spacing(alike)) else ""
        text += f": {', '.join(others[:_STEPS])}" + (" …" if len(others) > _STEPS else "")
    evidence = {"over_median": times, "steps": len(steps), "alike": [*names.values()]}
    return Finding(text, "step.outlier", Verdict.PROBLEM, Confidence.CERTAIN, rank, step, evidence=evidence)


def _pauses(steps: Sequence[Row]) -> Iterator[Finding]:
    """Yield the longest pauses after steps, if they are slow; `steps`: text, length and period of each."""
    late = [steps[at] for at in late_ends(*([row[column] for row in steps] for column in (1, 2)))]
    for step, length, period in sorted(late, key=lambda row: row[1] - row[2])[:_STEPS]:
        text = pause_after(step, period - length, median(row[2] for row in steps))
        evidence = {"pause_ns": period - length, "steps": len(steps)}
        yield Finding(text, "step.pause", Verdict.PROBLEM, Confidence.CERTAIN, step=step, evidence=evidence)


def _computing(tables: Mapping[str, Summary]) -> Iterator[Finding]:
    shares: dict[object, float | None] = {row[0]: row[1] for row in _columns(tables, "budget", "part", "percent")}
    computes, known = shares.get("compute") or 0.0, load(None)
    if computes < _WORTH_SAYING:
        return
    evidence, text = {"compute_percent": computes}, f"{computes:.0f} % of GPU time is compute"
    kernels = _columns(tables, "kernels", "name", "percent")
    largest = next(((name, share) for name, share in kernels if name and not is_communication(known.of(name))), None)
    if largest:
        name, share = largest
        text += f"; {kernel_name(name).short} takes {share:.0f} % of the time of all kernels"
        evidence["kernel_percent"] = share
    yield Finding(text, "gpu.compute", Verdict.NOTE, Confidence.CERTAIN, evidence=evidence)
