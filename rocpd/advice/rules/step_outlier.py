"""Steps that take much longer than most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import dropwhile
from statistics import median

from rocpd.advice import recording
from rocpd.advice.case import CannotLookError, Case, Row, short, window_of
from rocpd.advice.rule import Need, Rule, Threshold
from rocpd.summary.findings import Confidence, Finding
from rocpd.summary.slow_steps import IDLE
from rocpd.table.human import readable

_PARTS = {"compute": "compute", "communication": "communication", "copy": "copies", IDLE: "idle time"}


def _look(case: Case) -> Iterator[Finding]:
    whole = (row for row in case.rows("steps") if row["over_median"] is not None)
    rows = sorted(whole, key=lambda row: int(row["at_ns"]))
    limits = case.limits
    if len(rows) < limits["least_steps"]:
        enough = f"{len(rows)}; {limits['least_steps']:.0f} are enough"
        raise CannotLookError(f"too few steps to say which are slow ({enough})")
    times = [float(row["mean_ns"]) for row in rows]
    typical = median(times)
    spread = median(abs(time - typical) for time in times)
    bound = max(limits["times_median"] * typical, typical + limits["deviations"] * spread)
    # The first steps are warm-up.
    later = dropwhile(lambda row: float(row["mean_ns"]) > bound, rows)
    slow = sorted((row for row in later if float(row["mean_ns"]) > bound), key=lambda row: -float(row["mean_ns"]))
    if slow:
        yield _finding(slow, typical, sum(times), len(rows))


def _finding(slow: Sequence[Row], typical: float, total: float, count: int) -> Finding:
    worst = slow[0]
    ranks = {row["slowest_rank"] for row in slow}
    rank = worst["slowest_rank"] if len(ranks) == 1 else None
    what = f"step {worst['step']!r}" if not str(worst["step"]).startswith("step") else str(worst["step"])
    others = f" and {len(slow) - 1} more" if len(slow) > 1 else ""
    verb = "are" if others else "is"
    on = "" if rank is None else f", slowest on rank {rank}"
    times = float(worst["mean_ns"]) / typical
    text = f"{what}{others} {verb} slow: {times:.2f} times the median of {count} steps ({readable(typical, 'ns')}){on}"
    text += _meanwhile(worst, what if others else "it", rank)
    lost = sum(float(row["mean_ns"]) - typical for row in slow)
    return Finding(
        text,
        RULE.id,
        confidence=Confidence.CERTAIN,
        rank=rank,
        step=str(worst["step"]),
        window=window_of(worst, "max_ns"),
        evidence={
            "steps": [row["step"] for row in slow],
            "over_median": times,
            "median_ns": typical,
            "of": count,
            **{name: worst[name] for name in ("grew", "grew_by_ns", "grew_in", "grew_rank") if worst[name] is not None},
        },
        shown_by="rocpd summary steps JOB",
        gain_percent=lost * 100 / total,
        action="Compare it with the others: `rocpd diff JOB --step N --against others` says which part of the step, "
        "which kernels and which ranks take longer; `rocpd summary idle-calls JOB --step N` what the host does "
        "meanwhile: input, checkpoint, allocation, garbage collection.",
        reference="https://rocm.docs.amd.com/en/latest/how-to/rocm-for-ai/inference-optimization/workload.html",
    )


def _meanwhile(row: Row, step: str, named: int | None) -> str:
    """Say what grew most in a step, on which rank; `named`: the rank that is said to be slowest."""
    if row["grew"] is None:
        return ""
    on = "" if row["grew_rank"] == named else f" on rank {row['grew_rank']}"
    longer = f"{_PARTS[row['grew']]} took {readable(row['grew_by_ns'], 'ns')} longer{on}"
    grew_in = row["grew_in"] if row["grew"] == IDLE or row["grew_in"] is None else short(row["grew_in"])
    return f"; in {step} {longer}{'' if grew_in is None else f', most in {grew_in}'}"


def _explains(cause: Finding, other: Finding) -> bool:
    return other.rule == "rank.imbalance" and cause.rank is not None and other.rank == cause.rank


RULE = Rule(
    id="step.outlier",
    asks="are some steps much slower than most?",
    fires="a step, warm-up aside, takes more than {times_median} times the median and more than {deviations} median "
    "deviations above it. Gains what such steps take above the median",
    look=_look,
    needs=(Need("steps", recording.STEPS),),
    thresholds=(
        Threshold("times_median", 1.2, "time of a step by the median"),
        Threshold("deviations", 5.0, "time of a step above the median, by the median absolute deviation"),
        Threshold("least_steps", 4.0, "steps with which it looks"),
    ),
    explains=_explains,
)
