"""Rules on things that should be equal and are not: the work of ranks, the times of steps, the clocks of GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, median

from rocpd.advice.case import CLOCKS, KERNELS, RANKS, STEPS, CannotLookError, Case, Row, some
from rocpd.advice.rule import Need, Rule, Threshold
from rocpd.advice.rules.communication import has_more_work
from rocpd.facts.communication.collectives import listed
from rocpd.facts.units import DEVIATIONS, LEAST_STEPS, SLOW, late_ends, slow_beyond
from rocpd.replay.changes import Change, without
from rocpd.summary.communication.ranks import IN_IDLE, how_grown, pause_after
from rocpd.summary.counters.samples import CLOCK
from rocpd.summary.findings import Confidence, Finding
from rocpd.table.human import readable

_GREW = "grew", "grew_by_ns", "grew_in", "grew_rank", "grew_host", "grew_ranks"
_AS_LONG = 0.99  # times: ranks that compute as long as the longest one
_WORKLOAD = "https://rocm.docs.amd.com/en/latest/how-to/rocm-for-ai/inference-optimization/workload.html"


def _rank_imbalance(case: Case) -> Iterator[Finding]:
    rows = [row for row in case.rows("ranks") if row["compute_by_mean"]]
    if case.job.runs > 1:
        raise CannotLookError(f"{case.job.runs} separate runs, not one job: choose the ranks of one with --rank")
    if len(rows) < 2:
        raise CannotLookError(RANKS)
    if len(case.job.gpus) > 1:
        raise CannotLookError(f"ranks compute on different GPUs ({', '.join(case.job.gpus)}): longer is not more work")
    most = max(rows, key=lambda row: float(row["compute_by_mean"]))
    times = float(most["compute_by_mean"])
    if times <= case.limits["most_by_mean"]:
        return
    compute = case.job.shares.get(most["rank"], {}).get("compute", 100.0)
    alike = sorted(row["rank"] for row in rows if float(row["compute_by_mean"]) >= _AS_LONG * times)
    who = f"rank {most['rank']} has" if len(alike) == 1 else f"ranks {listed(alike)} have"
    text = f"{who} {times:.2f} times the compute time of the mean of {len(rows)} ranks"
    evidence = {"compute_ns": most["compute_ns"], "compute_by_mean": times, "ranks": len(rows)}
    row = {**most, "rank": most["rank"] if len(alike) == 1 else None}
    yield case.finding(text, compute * (1 - 1 / times), evidence, Confidence.CERTAIN, row)


def _as_others(finding: Finding) -> Sequence[Change]:
    """Return the change that makes a rank like its peers; none for several ranks, as no replay knows their usual time.

    A stage of a pipeline with more layers has no peers to compare it with.
    """
    return [] if finding.rank is None else [without("rank", finding.rank)]


RANK_IMBALANCE = Rule(
    id="rank.imbalance",
    asks="do all ranks have the same work?",
    fires="the rank that computes longest takes more than {most_by_mean} times the mean. Gains the difference",
    look=_rank_imbalance,
    without=_as_others,
    needs=(Need("ranks", KERNELS),),
    thresholds=(Threshold("most_by_mean", 1.10, "longest compute time of a rank by the mean of all"),),
    explains=lambda cause, other: other.rule == "comm.straggler" and other.rank == cause.rank and has_more_work(other),
    shown_by="rocpd summary imbalance ranks JOB",
    action="Give the ranks equal work: shards, tokens or experts of equal size, layers of equal cost in each stage. "
    "`rocpd summary kernels JOB --by rank` shows which kernels differ.",
    reference=_WORKLOAD,
    is_fault=True,
)


_COMPARE = (
    "Compare it with the others: `rocpd diff JOB --step N --against others` says which part of the step, which kernels "
    "and which ranks take longer"
)
_CLOCK_DIFFERS = 0.97  # of the clock in other steps: below this it counts as lower
_IN_STEP = {
    "compute": ". {clock}Look for other processes on the GPU where all kernels take longer; where some do, at their "
    "grids.",
    "communication": ". Look at what else used the links then: checkpoints, other jobs.",
    "copy": "; `rocpd summary slowest-copies JOB --step N` which copies.",
    IN_IDLE: "; `rocpd summary idle-calls JOB --step N` what the host does meanwhile: input, checkpoint, allocation, "
    "garbage collection.",
}
"""Part that grew most in a slow step -> further places to look."""


_IN_PAUSE = (
    "Look at what the host does then: checkpoint, validation, input, garbage collection. `rocpd summary idle-calls "
    "JOB` says it, with the --start and --end below."
)


def _step_outlier(case: Case) -> Iterator[Finding]:
    rows = [row for row in case.rows("steps") if row["over_median"] is not None and not row["is_warm_up"]]
    limits = case.limits
    if len(rows) < limits["least_steps"]:
        enough = f"{len(rows)}; {limits['least_steps']:.0f} are enough"
        raise CannotLookError(f"too few steps to say which are slow ({enough})")
    times = [float(row["mean_ns"]) for row in rows]
    bound = slow_beyond(times, limits["times_median"], limits["deviations"])
    slow = sorted((row for row in rows if float(row["mean_ns"]) > bound), key=lambda row: -float(row["mean_ns"]))
    if slow:
        yield _slow_steps(case, slow, median(times), sum(times), len(rows))
    periods = [float(row["period_ns"] or row["mean_ns"]) for row in rows]
    if late := late_ends(times, periods):
        yield _pauses(case, [rows[at] for at in late], median(periods), sum(periods))


def _pauses(case: Case, late: Sequence[Row], usual: float, total: float) -> Finding:
    """Return the finding of far longer pauses between steps; a replay counts a pause to the step that it delays."""
    pauses = [float(row["period_ns"]) - float(row["mean_ns"]) for row in late]
    longest, row = max(zip(pauses, late, strict=True), key=lambda each: each[0])
    text = pause_after(str(row["step"]), longest, usual) + (f"; so after {len(late) - 1} more" if len(late) > 1 else "")
    evidence = {"steps": [], "after": [row["step"] for row in late], "pause_ns": longest, "median_ns": usual}
    gain = (sum(float(row["period_ns"]) for row in late) - usual * len(late)) * 100 / total
    window = int(row["at_ns"] + row["mean_ns"]), int(row["at_ns"] + row["period_ns"])
    finding = case.finding(text, gain, evidence, Confidence.CERTAIN, {"rank": None})
    return replace(finding, step=str(row["step"]), window=window, action=_IN_PAUSE)


def _slow_steps(case: Case, slow: Sequence[Row], typical: float, total: float, count: int) -> Finding:
    worst = slow[0]
    rank = worst["slowest_rank"] if len({row["slowest_rank"] for row in slow}) == 1 else None
    what = f"step {worst['step']!r}" if not str(worst["step"]).startswith("step") else str(worst["step"])
    others = f" and {len(slow) - 1} more" if len(slow) > 1 else ""
    verb = "are" if others else "is"
    on = "" if rank is None else f", slowest on rank {rank}"
    times = float(worst["mean_ns"]) / typical
    most = f"{what} takes {times:.2f}" if others else f"{times:.2f}"
    text = f"{what}{others} {verb} slow: {most} times the median of {count} steps ({readable(typical, 'ns')}){on}"
    text += _meanwhile(worst, what if others else "it", rank)
    lost = sum(float(row["mean_ns"]) - typical for row in slow)
    grew = {name: worst[name] for name in _GREW if worst[name] is not None}
    evidence = {"steps": [row["step"] for row in slow], "over_median": times, "median_ns": typical, "of": count, **grew}
    found = case.finding(text, lost * 100 / total, evidence, Confidence.CERTAIN, {**worst, "rank": rank}, "max_ns")
    return replace(found, step=str(worst["step"]), action=f"{_COMPARE}{_then(case, worst)}")


def _then(case: Case, worst: Row) -> str:
    """Return further advice for a slow step, by the part that grew most in it."""
    return _IN_STEP.get(worst["grew"] or IN_IDLE, "").format(clock=_clock_in(case, worst))


def _clock_in(case: Case, step: Row) -> str:
    """Return a sentence on the clocks of the GPUs, or of the rank that slows a step, in it and in other steps."""
    number = re.search(r"\d+", str(step["step"]))
    clocks = [
        (str(row["step"]) == number[0], float(row["mean_over_time"]))
        for row in case.rows("step-samples")
        if number and row["mean_over_time"] and step["grew_rank"] in (None, row["rank"]) and CLOCK.search(row["name"])
    ]
    here, others = ([clock for is_here, clock in clocks if is_here == which] for which in (True, False))
    if not here or not others:
        return "The clock in that step is not known: none was sampled. "
    now, usual = median(here), median(others)
    if now < usual * _CLOCK_DIFFERS:
        return (
            f"The clock was {now:.0f} MHz in it and {usual:.0f} in others: look at power and temperature "
            "(`rocpd summary step-samples JOB --step N`). "
        )
    return f"The clock was as in other steps ({now:.0f} MHz). "


def _meanwhile(row: Row, step: str, named: int | None) -> str:
    """Return words for the part that grew most in a step, and its rank unless it is `named`, the slowest."""
    if row["grew"] is None:
        return ""
    rank, host, ranks = row["grew_rank"], row["grew_host"], row["grew_ranks"]
    several = f" on all of {host}" if host else f" on ranks {ranks}" if ranks else ""
    on = several if rank in (named, None) else f" on rank {rank}"
    return f"; in {step}{on}: {how_grown(row['grew'], row['grew_by_ns'], row['grew_in'])}"


def _usual_steps(finding: Finding) -> Sequence[Change]:
    """Return the changes that make slow steps take the usual time; none where their markers have no numbers."""
    steps = finding.evidence["steps"]
    numbers = [re.search(r"\d+", str(step)) for step in steps] if isinstance(steps, list) else []
    return [without("step", number[0]) for number in numbers if number]


STEP_OUTLIER = Rule(
    id="step.outlier",
    asks="are some steps much slower than most?",
    fires="a step, warm-up aside, takes more than {times_median} times the median and more than {deviations} median "
    "deviations above it; or so much time, from start to start, is between steps. Gains what is above the median",
    look=_step_outlier,
    without=_usual_steps,
    needs=(Need("steps", STEPS),),
    besides=("step-samples",),
    thresholds=(
        Threshold("times_median", SLOW, "time of a step by the median"),
        Threshold("deviations", DEVIATIONS, "time of a step above the median, by the median absolute deviation"),
        Threshold("least_steps", float(LEAST_STEPS), "steps with which it looks"),
    ),
    explains=lambda cause, other: (
        cause.rank is not None
        and other.rank == cause.rank
        and (other.rule == "rank.imbalance" or (other.rule == "comm.straggler" and "stalls" in other.evidence))
    ),
    shown_by="rocpd summary steps JOB",
    reference=_WORKLOAD,
    is_fault=True,
)


def _clock_throttle(case: Case) -> Iterator[Finding]:
    sampled = (row for row in case.rows("samples") if row["samples"] >= case.limits["least_samples"])
    clocks = some([row for row in sampled if CLOCK.search(row["name"] or "")], CLOCKS)
    slowing = [row for row in clocks if (row["rho_samples"] or 0) >= case.limits["least_pairs"]]
    if len(clocks) < 2 and not slowing:
        raise CannotLookError(
            "the clock of one GPU alone is sampled, and too seldom to compare it with the times of kernels"
        )
    yield from list(_lower(case, clocks)) or _slowing(case, slowing)


def _lower(case: Case, clocks: Sequence[Row]) -> Iterator[Finding]:
    """Yield GPUs whose clock is lower than that of the others."""
    ordered = sorted(clocks, key=lambda row: float(row["mean"]))
    means = [float(row["mean"]) for row in ordered]
    for at, row in enumerate(ordered):
        # Of all but one the middle is a place further from there on: each median anew takes minutes for 10,000 ranks.
        middle = {place + (place >= at) for place in ((len(means) - 2) // 2, (len(means) - 1) // 2)}
        others = fmean(means[place] for place in middle) if len(means) > 1 else means[0]
        lower = (1 - float(row["mean"]) / others) * 100 if others > 0 else 0.0
        if lower <= 100 - case.limits["least_percent"]:
            continue
        text = (
            f"the clock of the GPU of rank {row['rank']} is {lower:.0f} % lower than that of the others: "
            f"{row['mean']:.0f} {row['units'] or 'MHz'} in place of {others:.0f}"
        )
        evidence = {"mean": row["mean"], "others": others, "min": row["min"], "samples": row["samples"]}
        yield _losing(case, row, text, evidence, lower / 100)


def _slowing(case: Case, clocks: Sequence[Row]) -> Iterator[Finding]:
    """Yield the GPU whose kernels lose most while its clock is lower."""
    slower = [row for row in clocks if row["rho"] < case.limits["most_rho"] and row["max"] > 0]
    if (worst := max(slower, key=_lost, default=None)) is None:
        return
    units = worst["units"] or "MHz"
    text = (
        f"kernels of rank {worst['rank']} take longer while the clock of its GPU is lower (Spearman "
        f"{worst['rho']:.2f}, {worst['rho_samples']} samples): {worst['mean']:.0f} {units} on average, "
        f"{worst['max']:.0f} at best"
    )
    evidence = {name: worst[name] for name in ("rho", "rho_samples", "mean", "max")}
    yield _losing(case, worst, text, evidence, _lost(worst))


def _losing(case: Case, row: Row, text: str, evidence: Mapping[str, object], lost: float) -> Finding:
    """Return the finding on the clock of a GPU that loses the share `lost` of its compute time."""
    compute = case.job.shares.get(row["rank"], {}).get("compute", 100.0)
    _, window = case.example()
    return replace(case.finding(text, compute * lost, evidence, row=row), window=window)


def _lost(row: Row) -> float:
    """Return the share by which the mean of a clock is below its highest value."""
    return 1 - float(row["mean"]) / float(row["max"])


CLOCK_THROTTLE = Rule(
    id="clock.throttle",
    asks="does one GPU run at a lower clock?",
    fires="the mean of the sampled clock of a GPU, in its steps, is under {least_percent} % of the median of the "
    "others. Gains that share of its compute time. Or its hottest kernel takes longer, on one grid, when the clock is "
    "lower: Spearman's correlation under {most_rho} over {least_pairs} samples or more. Gains what the highest clock "
    "would",
    look=_clock_throttle,
    without=lambda finding: _as_others(finding) if "others" in finding.evidence else (),
    needs=(Need("samples", CLOCKS),),
    thresholds=(
        Threshold("least_percent", 95.0, "mean clock of a GPU by the median of the others"),
        Threshold("least_samples", 3.0, "samples of the clock of a GPU"),
        Threshold("most_rho", -0.5, "Spearman's correlation of clock and time of the hottest kernel"),
        Threshold("least_pairs", 20.0, "samples in which that kernel ran"),
    ),
    explains=lambda cause, other: (
        other.rule in ("comm.straggler", "rank.imbalance", "kernel.unstable", "step.outlier")
        and other.rank == cause.rank
    ),
    shown_by="rocpd summary samples JOB",
    action="Look at temperature, power and what limits the clock: `amd-smi metric --temperature --power --clock` and "
    "`amd-smi metric --throttle`; at the power cap (`amd-smi static --limit`) and the cooling of this slot.",
    reference="https://rocm.docs.amd.com/projects/amdsmi/en/latest/how-to/amdsmi-cli-tool.html",
    is_fault=True,
)
