"""The sections: each is a function that takes a `Material` and yields blocks, none without data.

They are in the order of a report, as in `contents.SECTIONS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeAlias

from rocpd.advice.advice import Advice, bounds, gain, looked, unable, window_options
from rocpd.base import RocpdError, Row, by_key
from rocpd.chart.model import Bars, Chart, Mark, Timeline
from rocpd.compare.attribution import Difference, MatchLevel, explaining
from rocpd.counters.roofline import sentence_of
from rocpd.facts.agent_time import HOST
from rocpd.facts.communication.collectives import listed
from rocpd.facts.rank import By
from rocpd.facts.regions import HostCall
from rocpd.federate.describe import describe
from rocpd.report.contents import COMPARED
from rocpd.report.material import Material, figure
from rocpd.report.model import (
    Block,
    Column,
    Conclusion,
    Counts,
    Findings,
    Folded,
    Section,
    Table,
    Text,
    place_id,
    tables_in,
)
from rocpd.summary import plots
from rocpd.summary.communication.verdict import RULE as STRAGGLER
from rocpd.summary.findings import Confidence, Finding, Verdict
from rocpd.summary.registry import joined_analyses
from rocpd.summary.result import Summary
from rocpd.summary.time.overview import conclude
from rocpd.table.human import readable

Note: TypeAlias = tuple[str, str]
"""A note below a finding: (word, text)."""

_LASTING = "comm.lasting"  # the rule on whether the cost of a straggler comes again
_WAITING = (STRAGGLER, "rank.imbalance")
_CAUSES: Mapping[str, Sequence[str]] = {
    "comm.overlap": ("comm.same_stream", "comm.exposed"),
    "comm.exposed": (*_WAITING, "comm.slow"),
    f"gpu.idle {HostCall.LAUNCH}": ("launch.small", "gpu.starved"),
    f"gpu.idle {HOST}": ("gpu.starved",),
    f"gpu.idle {HostCall.SYNCHRONISE}": ("sync.calls",),
    f"gpu.idle {HostCall.COPY}": ("copy.blocking", "sync.calls"),
    f"gpu.idle {HostCall.ALLOCATE}": ("alloc.steady", "sync.calls"),
    f"gpu.idle {HostCall.MODULE}": ("module.load",),
}  # symptom that an analysis finds, with the main cause of idle time -> rules on its causes


def verdict(material: Material) -> Iterator[Block]:
    """Yield the findings of analyses and rules of advice, problems first; the rules that could not look come last."""
    tables = {name: table for analysis in joined_analyses() for name, table in material.tables(analysis).items()}
    job, *concluded = conclude(material.session, tables)
    advice = material.advice
    symptoms, others = _divided(concluded, advice)
    conclusions = [
        Conclusion(finding, tuple(_notes(material, advice, finding, effects)), place_id(number))
        for number, (finding, effects) in enumerate(zip(advice.findings, symptoms, strict=True))
    ]
    compared = material.tables(COMPARED.analysis).get("diff")
    first = [job, *(compared.findings[:1] if compared else ())]
    yield Findings((*map(Conclusion, first), *conclusions, *map(Conclusion, others)))
    yield Text(f"{looked(advice)}.")
    if reasons := unable(advice):
        yield Folded("Which rules could not look, and why", tuple(map(": ".join, reasons)))


def _notes(material: Material, advice: Advice, finding: Finding, symptoms: Iterable[Finding]) -> Iterator[Note]:
    """Yield the lines below a finding."""
    if finding.gain_percent is not None:
        of = "a step" if finding.regained_by else f"the {advice.job.unit} of rank {advice.job.critical}"
        between = f" ({bounds(finding)})" if finding.gain_bounds else ""
        yield "gain", f"{gain(finding)} of {of}{between}"
    for effect in sorted((*advice.effects(finding), *symptoms), key=lambda effect: effect.rule == _LASTING):
        yield "chance" if effect.rule == _LASTING else "hence", effect.text
    yield from (
        (word, text)
        for word, text in (("do", finding.action), ("see", finding.shown_by), ("try", finding.regained_by))
        if text
    )
    start, end = finding.window or (0, 0)
    if start < end and not material.session.window:
        yield "view", f"rocpd view {material.inputs} {window_options(finding)}"
        yield "trace", f"rocpd convert -f pftrace {material.inputs} {window_options(finding)}"


def _divided(concluded: Iterable[Finding], advice: Advice) -> tuple[list[list[Finding]], list[Finding]]:
    """Return the symptoms from analyses for each finding of the rules, and the remaining findings, problems first."""
    reported = [finding.rule for finding in advice.findings]
    said = {*reported, *(each.finding.rule for each in advice.explained)}
    symptoms: list[list[Finding]] = [[] for _ in reported]
    of_stragglers = {
        finding.evidence.get("cause"): number
        for number, finding in enumerate(advice.findings)
        if finding.rule == STRAGGLER
    }
    others = []
    for finding in concluded:
        symptom = f"{finding.rule} {finding.evidence.get('idle_cause', '')}".rstrip()
        causes = [reported.index(rule) for rule in _CAUSES.get(symptom, ()) if rule in reported]
        is_problem = finding.verdict is Verdict.PROBLEM
        if finding.rule == _LASTING and (number := of_stragglers.get(finding.evidence.get("cause"))) is not None:
            symptoms[number].append(finding)
        elif is_problem and causes:
            effects = {effect.rule for effect in advice.effects(advice.findings[causes[0]])}
            symptoms[causes[0]] += [] if finding.rule in effects else [finding]
        elif not (is_problem and _rule_of(finding) in said):
            others.append(finding)
    return symptoms, sorted(others, key=lambda finding: finding.verdict is not Verdict.PROBLEM)


def _rule_of(finding: Finding) -> str:
    return "trace.incomplete" if finding.rule.startswith("trace.") else finding.rule


def job(material: Material) -> Iterator[Block]:
    """Yield the facts of the job."""
    session = material.session
    described = describe(session, ("job", "agents", "clocks"))
    job, agents, clocks = (described[name].fetchall() for name in ("job", "agents", "clocks"))
    yield _from_info("job", "Facts", "What it is, and what recorded it.", _FACTS, job, material.inputs)
    yield _from_info("ranks", "Hosts", "Where the processes ran.", _HOSTS, _of_hosts(material), material.inputs)
    if session.runs > 1:
        yield Text(f"These are {session.runs} separate runs, not one job: nothing compares their ranks.")
    if session.window or session.selection.filtered:
        yield Text(f"Only a part of the job is shown: {material.inputs}")
    yield _from_info("agents", "Processors", "Of all hosts, by kind.", _AGENTS, _alike(agents), material.inputs)
    aligned = [row for row in clocks if row[1] != "none" or row[2]]
    if aligned:
        yield _from_info("clocks", "Clocks", _ABOUT_CLOCKS, _CLOCKS, aligned, material.inputs)
    trace = material.tables("trace").get("trace")
    if trace:
        lacks = [row for row in trace if row[1] != "none"]
        columns = ("check", "verdict", "missing", "of", "ranks", "meaning")
        table = material.table(trace, "What was not recorded", columns, lacks)
        yield replace(table, total=len(lacks)) if lacks else Text("Nothing is missing that can be checked.")


_FACTS = (Column("fact", "", "what", False), Column("value", "", "of the job", False))
_HOSTS = (
    Column("host", "", "name of the machine", False),
    Column("ranks", "", "numbers of its ranks", False),
    Column("processes", "", "how many", True),
    Column("recorded", "ns", "from the first event to the last, of the rank that was recorded longest", True),
    Column("size", "bytes", "of the files", True),
)
_AGENTS = (
    Column("host", "", "name of the machine", False),
    Column("type", "", "CPU or GPU", False),
    Column("agent", "", "as ROCm names it", False),
    Column("product", "", "as it is sold", False),
    Column("count", "", "how many the host has", True),
    Column("CUs", "", "compute units", True),
    Column("memory", "GiB", "of one", True),
    Column("clock", "MHz", "at most", True),
)
_CLOCKS = (
    Column("host", "", "name of the machine", False),
    Column("method", "", "what the clocks are aligned by", False),
    Column("offset", "ns", "what is added to its times", True),
    Column("certain", "ns", "the offset is right to this", True),
    Column("likely", "ns", "and probably to this", True),
    Column("drift", "ppm", "against the reference clock", True),
    Column("collectives", "", "how many say so", True),
)
_ABOUT_CLOCKS = "How the times of hosts are laid on one time line, and how far that can be trusted."


def _from_info(name: str, title: str, doc: str, columns: tuple[Column, ...], rows: Iterable[Row], inputs: str) -> Table:
    known = tuple(tuple(row[: len(columns)]) for row in rows)
    command, code = f"rocpd info --only {name} {inputs}", f'session.info()["{name}"]'
    return Table(name, title, doc, columns, known, len(known), command, code)


def _alike(agents: Iterable[Row]) -> Iterator[Row]:
    """Yield the processors of hosts, once for hosts with the same: their number as `8 x 2`, and the hosts."""
    hosts = by_key((tuple(alike), str(host)) for host, *alike in agents)
    for kind, names in hosts.items():
        of = names[0] if len(names) == 1 else f"{len(names)} hosts, {names[0]} …"
        count = kind[3] if len(names) == 1 else f"{len(names)} x {kind[3]}"
        yield (of, *kind[:3], count, *kind[4:])


def _of_hosts(material: Material) -> Iterator[Row]:
    hosts = by_key((rank.hostname or "?", rank) for rank in material.session.ranks)
    for host, ranks in sorted(hosts.items()):
        numbers, spans = [rank.number for rank in ranks], material.session.spans
        longest = max((spans[at].end - spans[at].start for at in numbers if at in spans), default=None)
        size = sum(path.stat().st_size for path in {rank.opening.path for rank in ranks})
        yield host, listed(numbers), len(ranks), longest, size


class _Part(NamedTuple):
    """A table of a section.

    Args:
        name: name of the table.
        title: for people.
        says: description of its chart; empty: no chart.
        columns: columns to show; empty: all.
        counts: column whose zeros remove rows; empty: all rows stay.
    """

    name: str
    title: str
    says: str = ""
    columns: Sequence[str] = ()
    counts: str = ""


def _parts(material: Material, analysis: str, *parts: _Part, needs_rows: bool = False) -> Iterator[Block]:
    """Yield tables of an analysis, with their charts; with `needs_rows` only tables that have rows."""
    for part in parts:
        summary = material.tables(analysis).get(part.name)
        if summary and (not needs_rows or summary.first(1)):
            place = summary.columns.index(part.counts) if part.counts else None
            rows = None if place is None else [row for row in summary.fetchall() if row[place]]
            table = material.table(summary, part.title, part.columns, rows)
            yield material.figure(part.name, summary, part.says, table) if part.says else table


def overview(material: Material) -> Iterator[Block]:
    """Yield the time line of all ranks as `rocpd view` draws it, with findings at their places, and totals of ranks."""
    tables = material.tables("ranks")
    if "heat" in tables and "ranks" in tables:
        columns = ("rank", "hostname", "kernels", "copies", "busy_ns", "compute_ns", "communication_ns", "copy_ns")
        table = material.table(tables["ranks"], "Totals of each rank", columns)
        says = "A row a rank. Findings are framed: numbers lead to what is said, and a command that opens the place."
        places = partial(_with_places, material=material, steps=tables.get("steps"))
        yield material.figure("time-line", tables["heat"], says, table, arrange=places)


def _with_places(chart: Chart, material: Material, steps: Summary | None) -> Chart:
    """Return the time line of ranks with steps and findings."""
    assert isinstance(chart, Timeline)
    spans: list[tuple[str, int, int]] = []
    if steps:
        named = plots.steps(steps).names
        starts = sorted((at or 0, most or 0) for at, most in steps.values("at_ns", "max_ns"))
        spans = [(name, at, at + most) for name, (at, most) in zip(named, starts, strict=True)]
    marks = []
    for number, finding in enumerate(material.advice.findings):
        if finding.window:
            host, rank = finding.evidence.get("hostname"), f"rank {finding.rank}"
            names, name = (chart.groups, str(host)) if host in chart.groups else (chart.rows, rank)
            where = (names.index(name), names.index(name) + names.count(name)) if name in names else None
            marks.append(Mark(*finding.window, finding.text, where, place_id(number)))
    return replace(chart, steps=tuple(spans), marks=tuple(marks))


def budget(material: Material) -> Iterator[Block]:
    """Yield the budget of the job, then the budget of each rank as bars."""
    whole = material.tables("budget").get("budget")
    by_rank = material.tables("budget", By.RANK).get("budget")
    if whole:
        yield material.table(whole, "All ranks")
    if by_rank:
        table = material.table(by_rank, "Budget of each rank")
        says = "The parts of a rank's time add up to all of it."
        yield material.figure("budget", by_rank, says, table, partial(_with_hosts, material=material))


def _with_hosts(chart: Chart, material: Material) -> Chart:
    """Return bars of ranks, each with its host if there are several hosts."""
    hosts = {f"rank {rank.number}": rank.hostname or "?" for rank in material.session.ranks}
    if not isinstance(chart, Bars) or len(set(hosts.values())) == 1:
        return chart
    return replace(chart, labels=tuple(f"{row} · {hosts[row]}" if row in hosts else row for row in chart.labels))


_TIMES_OF_STEPS = ("mean_ns", "min_ns", "max_ns", "spread_ns", "slowest_rank", "over_median")
_OF_STEPS = ("step", "at_ns", "ranks", *_TIMES_OF_STEPS, "grew", "grew_by_ns", "grew_in", "grew_rank")


def steps(material: Material) -> Iterator[Block]:
    """Yield the course of steps: their durations, in order, and the slow ones."""
    of_ranks = "The mean of the ranks, up to the rank that took longest. " if len(material.session.ranks) > 1 else ""
    known = material.tables("ranks").get("steps")
    says = f"{of_ranks}Slow steps are marked." if known and len(known.first(2)) > 1 else ""  # one has no course
    yield from _parts(material, "ranks", _Part("steps", "Steps, the longest first", says, _OF_STEPS))


_GAINS = (
    Column("change", "", "what is taken away", False),
    Column("step", "ns", "how long one would take", True),
    Column("gain", "%", "by which share it would be shorter", True),
    Column("least", "%", "at least by this share", True),
    Column("most", "%", "at most by this share", True),
)


def whatif(material: Material) -> Iterator[Block]:
    """Yield the time of a step without each cause found, and without all of them."""
    ranks = material.tables("ranks").get("ranks")
    if ranks is None or ranks.replays is None:
        return
    try:
        *each, together = ranks.replays().tried(material.session.job.course)
    except RocpdError as error:
        yield Text(f"It is not known: {error}.")
        return
    if not each:
        yield Text("Nothing was found that costs 1 % of a step.")
        return
    rows = tuple(
        (str(trial), trial.predicted_step_ns, *(gain * 100 for gain in (trial.gain, *trial.gains)))
        for trial in (*each, *([together] if len(together.changes) > 1 else []))
    )
    step = readable(together.step_ns, "ns")
    doc = f"The job is replayed without it; a mean step took {step}. How long another takes is a matter of chance."
    command = f"rocpd whatif {material.inputs}"
    yield Table("whatif", "Steps without what was found", doc, _GAINS, rows, len(rows), command, "session.whatif()")


_OF_KERNELS = ("name", "calls", "total_ns", "percent", "mean_ns", "min_ns", "median_ns", "p99_ns", "max_ns")
_DISTRIBUTION = Column("distribution", "", "dispatches by duration, from the shortest to the longest", False)


def kernels(material: Material) -> Iterator[Block]:
    """Yield the kernels that take most time as bars, and all of them with their distributions."""
    if summary := material.tables("kernels").get("kernels"):
        table = _with_distributions(material.table(summary, "Kernels, most time first", _OF_KERNELS), summary)
        yield material.figure("kernels", summary, "The kernels that take most time.", table)


def _with_distributions(table: Table, summary: Summary) -> Table:
    shortest, longest = _OF_KERNELS.index("min_ns"), _OF_KERNELS.index("max_ns")
    rows = []
    for number, row in enumerate(table.rows):
        title = f"{readable(row[shortest], 'ns')} to {readable(row[longest], 'ns')}"
        counts = Counts(tuple(summary.counts[number]), title) if number < len(summary.counts) else None
        rows.append((row[0], counts, *row[1:]))
    return replace(table, columns=(table.columns[0], _DISTRIBUTION, *table.columns[1:]), rows=tuple(rows))


_WAITED = ("name", "number", "group", "straggler", "wait_ns", "max_wait_ns", "min_ns")
_OF_COLLECTIVES = (*_WAITED, "class", "operation", "bytes", "bus_gb_per_s")


def collectives(material: Material) -> Iterator[Block]:
    """Yield the waiting times of ranks in collectives, then stragglers, causes of their time, and the costliest."""
    says = "How long a rank waits in collectives for the one that comes last, in all."
    parts = (
        _Part("waits", "Who waits for whom", says),
        _Part("stragglers", "Whom the others wait for"),
        _Part("communication", "What their time goes into", counts="kernels"),
        _Part("collectives", "Collectives, the costliest first", columns=_OF_COLLECTIVES),
    )
    yield from _parts(material, "ranks", *parts, needs_rows=True)


_OF_IDLE = ("cause", "name", "idle_ns", "percent", "pieces", "longest_ns", "rank", "agent", "at_ns", "in_marker")


def idle(material: Material) -> Iterator[Block]:
    """Yield the idle time of GPUs by its cause, then the calls behind it."""
    causes = _Part("idle", "Idle time by cause", "What the host does while GPUs are idle.")
    calls = _Part("idle-calls", "Calls and host work behind it", columns=_OF_IDLE)
    yield from _parts(material, "idle", causes, calls)


_DELAYS = ("delay_ns", "median_delay_ns", "p95_delay_ns", "max_delay_ns")
_OF_LAUNCH = ("name", "launched", *_DELAYS, "api_ns", "gpu_ns")


def launch(material: Material) -> Iterator[Block]:
    """Yield the depth of queues over time with the time that agents wait for the CPU, then delays by kernel."""
    tables = material.tables("launch")
    if (bound := tables.get("bottleneck")) and bound.first(1):
        table = material.table(bound, "How long each GPU waits for the CPU")
        says = "How many operations are launched and have not started: at 0 the GPU waits for the CPU."
        yield material.figure("queue-depth", tables.get("queue-depth"), says, table)
    yield from _parts(material, "launch", _Part("launch", "Delay from launch to start", columns=_OF_LAUNCH))


_OF_STACKS = ("kind", "function", "file", "count", "total_ns", "self_ns", "percent")
_OF_CALLS = ("name", "depth", "calls", "cpu_ns", "cpu_self_ns", "gpu_ns", "percent")


def flames(material: Material) -> Iterator[Block]:
    """Yield the tree of calls and the call stacks, each as a flame graph."""
    says = "A frame is as wide as its CPU time, what it calls included; `rocpd view` has it with search and GPU time."
    yield from _parts(material, "calls", _Part("calls", "Calls by path", says, _OF_CALLS), needs_rows=True)
    says = "A frame is as wide as the time that its stacks stand for; `rocpd view` has it with search."
    stacks = _Part("stacks", "Functions of call stacks", says, _OF_STACKS)
    yield from _parts(material, "stacks", stacks, needs_rows=True)


_OF_COPIES = ("name", "calls", "total_ns", "percent", "mean_ns", "median_ns", "max_ns", "bytes", "gib_per_s")


def copies(material: Material) -> Iterator[Block]:
    """Yield copies by direction, then their rates, by size and by pair of processors."""
    by_direction = _Part("copies", "Copies by direction", "Copies of all ranks.", _OF_COPIES)
    yield from _parts(material, "copies", by_direction)
    rates = _Part("copy-sizes", "How fast, by size"), _Part("copy-pairs", "How fast, between processors")
    yield from _parts(material, "copy-sizes", *rates, needs_rows=True)


def memory(material: Material) -> Iterator[Block]:
    """Yield the course of memory, leaks of steps, and allocation sites."""
    held, sites = material.tables("memory"), material.tables("allocation-sites")
    if (peaks := held.get("memory")) and peaks.first(1):
        table = material.table(peaks, "Peaks of memory")
        says = "Memory that is held, of those that hold most."
        yield material.figure("memory", held.get("memory-curve"), says, table)
    is_course = "memory-steps" in sites and len(sites["memory-steps"].first(2)) > 1
    says = "Memory that each step leaves behind." if is_course else ""
    left = _Part("memory-steps", "What steps allocate and leave behind", says)
    yield from _parts(material, "allocation-sites", left, needs_rows=True)
    yield from _parts(material, "allocation-sites", _Part("allocation-sites", "Who allocates"))


_OF_LEVELS = ("gflop_per_s", "roof_percent", "gb_per_s", "bandwidth_percent", "bound", "dispatches")
_OF_ROOFLINE = ("kernel", "level", "type", "flops", "bytes", "intensity", *_OF_LEVELS)


def counters(material: Material) -> Iterator[Block]:
    """Yield the roofline, and the mean of each counter by kernel."""
    if roofline := material.tables("roofline").get("roofline"):
        if roofline.findings:
            yield Findings(tuple(map(Conclusion, roofline_groups(roofline.findings))))
        title = "Kernels under the roofs of operations and memory"
        part = _Part("roofline", title, "Rate of operations by operations for each byte.", _OF_ROOFLINE)
        yield from _parts(material, "roofline", part)
    yield from _parts(material, "counters", _Part("counters-wide", "Mean of each counter by kernel"))


def roofline_groups(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yield a sentence for each limit, in place of one for each kernel."""
    limits = {}
    for finding in findings:
        if nearest := finding.evidence.get("nearest"):
            kernel = finding.text.partition(":")[0]
            limits[kernel] = str(nearest), float(str(finding.evidence[f"{nearest}_percent"]))
        else:
            yield finding
    for text in sentence_of(limits):
        yield Finding(text, "kernel.roofline", Verdict.NOTE, Confidence.CERTAIN)


_INSIDE = (
    ("hot-spots", "hot-spots", "Sampled kernels, each with its hottest line and instruction"),
    ("hot-spots", "pc-lines", "Source lines by samples"),
    ("hot-spots", "stall-reasons", "What waves wait for"),
    ("memory-access", "memory-access", "Cache lines and banks that source lines use"),
    ("basic-blocks", "basic-blocks", "Basic blocks by time"),
)


def inside(material: Material) -> Iterator[Block]:
    """Yield hot spots and causes of stalls there, accesses to memory and basic blocks by source line."""
    for analysis, name, title in _INSIDE:
        for table in _parts(material, analysis, _Part(name, title), needs_rows=True):
            if findings := material.tables(analysis)[name].findings:
                yield Findings(tuple(map(Conclusion, findings)))
            yield table


_ENOUGH = 0.99  # of all changes: rows that explain the rest are only in the command's output
_USUAL = (None, 0, MatchLevel.MANGLED.value)  # a column with no other values is not shown
_MINOR = ("p", "base_name", "percent")
_COMPARED = {
    "diff-kernels": "Kernels that explain it",
    "diff-markers": "The same by markers",
    "diff-ranks": "Ranks, without communication",
}


def comparison(material: Material) -> Iterator[Block]:
    """Yield the findings on differences, the changes of parts as a chart, then of kernels, markers and ranks."""
    tables = material.tables(COMPARED.analysis)
    yield Findings(tuple(map(Conclusion, tables["diff"].findings)))
    if "diff-parts" in tables:
        parts = tables["diff-parts"]
        says = "Each part starts where the one before leads: the changes add up to that of the whole."
        table = _explaining_table(material, parts, "Where the difference is, on the critical rank")
        yield figure("comparison", parts, says, table, f"{table.code}.plot()" if table.code else "")
    for name, title in _COMPARED.items():
        if name in tables and tables[name].first(1):
            yield _explaining_table(material, tables[name], title)


def _explaining_table(material: Material, summary: Summary, title: str) -> Table:
    """Return a table with the rows that explain the change, and without columns of usual values."""
    rows = summary.fetchall()
    differences = [Difference(before or 0, after or 0) for before, after in summary.values("base_ns", "new_ns")]
    chosen = [rows[number] for number in explaining(differences, _ENOUGH)] or rows[:1]
    columns = [
        name
        for place, name in enumerate(summary.columns)
        if name not in _MINOR and any(row[place] not in _USUAL for row in chosen)
    ]
    table = material.table(summary, title, columns, chosen if summary.name != "diff-parts" else None)
    base = material.base
    command = f"rocpd diff --base {base.words} --new {material.inputs}" if base and base.words else ""
    code = f'differences["{summary.name}"]' if base and base.connect else ""
    return replace(table, total=len(rows), command=command, code=code)


_OF_COMMANDS = (Column("table", "", "as this report calls it", False), Column("command", "", "makes it again", False))


def appendix(material: Material, before: Sequence[Section]) -> Iterator[Block]:
    """Yield one table: the commands for all tables of the sections before."""
    rows = tuple((table.title, table.command) for table in tables_in(before) if table.command)
    doc = "-f csv, json or parquet writes all rows with every digit; --help says more."
    yield Table("commands", "Commands", doc, _OF_COMMANDS, rows, len(rows))
