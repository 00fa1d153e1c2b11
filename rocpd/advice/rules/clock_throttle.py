"""A GPU whose clock is lower than that of the others, or at times, so that kernels take longer then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from rocpd.advice import recording
from rocpd.advice.case import CannotLookError, Case, Row
from rocpd.advice.rule import Need, Rule, Threshold
from rocpd.summary.findings import Confidence, Finding
from rocpd.summary.samples import CLOCK

_ACTION = (
    "Look at temperature, power and what limits the clock: `amd-smi metric --temperature --power --clock` and `amd-smi "
    "metric --throttle`; at the power cap (`amd-smi static --limit`) and the cooling of this slot."
)
_REFERENCE = "https://rocm.docs.amd.com/projects/amdsmi/en/latest/how-to/amdsmi-cli-tool.html"


def _look(case: Case) -> Iterator[Finding]:
    clocks = [
        row
        for row in case.rows("samples")
        if CLOCK.search(row["name"] or "") and row["samples"] >= case.limits["least_samples"]
    ]
    if not clocks:
        raise CannotLookError(recording.CLOCKS)
    slowing = [row for row in clocks if (row["rho_samples"] or 0) >= case.limits["least_pairs"]]
    if len(clocks) < 2 and not slowing:
        raise CannotLookError(
            "the clock of one GPU alone is sampled, and too seldom to compare it with the times of kernels"
        )
    yield from list(_lower(case, clocks)) or _slowing(case, slowing)


def _lower(case: Case, clocks: Sequence[Row]) -> Iterator[Finding]:
    """Yield GPUs whose clock is lower than that of the others."""
    for row in sorted(clocks, key=lambda row: float(row["mean"])):
        others = median([float(other["mean"]) for other in clocks if other is not row] or [float(row["mean"])])
        lower = (1 - float(row["mean"]) / others) * 100 if others > 0 else 0.0
        if lower <= 100 - case.limits["least_percent"]:
            continue
        yield _finding(
            case,
            row,
            f"the clock of the GPU of rank {row['rank']} is {lower:.0f} % lower than that of the others: "
            f"{row['mean']:.0f} {row['units'] or 'MHz'} in place of {others:.0f}",
            {"mean": row["mean"], "others": others, "min": row["min"], "samples": row["samples"]},
            lower / 100,
        )


def _slowing(case: Case, clocks: Sequence[Row]) -> Iterator[Finding]:
    """Yield the GPU whose kernels lose most while its clock is lower."""
    slower = [row for row in clocks if row["rho"] < case.limits["most_rho"] and row["max"] > 0]
    worst = max(slower, key=_lost, default=None)
    if worst is None:
        return
    units = worst["units"] or "MHz"
    yield _finding(
        case,
        worst,
        f"kernels of rank {worst['rank']} take longer while the clock of its GPU is lower (Spearman "
        f"{worst['rho']:.2f}, {worst['rho_samples']} samples): {worst['mean']:.0f} {units} on average, "
        f"{worst['max']:.0f} at best",
        {name: worst[name] for name in ("rho", "rho_samples", "mean", "max")},
        _lost(worst),
    )


def _finding(case: Case, row: Row, text: str, evidence: Mapping[str, object], lost: float) -> Finding:
    """Return what is wrong with the clock of one GPU, which loses this share of its computing."""
    compute = case.job.shares.get(row["rank"], {}).get("compute", 100.0)
    return Finding(
        text,
        RULE.id,
        confidence=Confidence.LIKELY,
        rank=row["rank"],
        agent=row["agent"],
        window=case.example().window,
        evidence=evidence,
        shown_by="rocpd summary samples JOB",
        gain_percent=compute * lost,
        action=_ACTION,
        reference=_REFERENCE,
    )


def _lost(row: Row) -> float:
    """Return by which share a clock is below its highest on average."""
    return 1 - float(row["mean"]) / float(row["max"])


def _explains(cause: Finding, other: Finding) -> bool:
    return (
        other.rule in ("comm.straggler", "rank.imbalance", "kernel.unstable", "step.outlier")
        and other.rank == cause.rank
    )


RULE = Rule(
    id="clock.throttle",
    asks="does one GPU run at a lower clock?",
    fires="the mean of the sampled clock of a GPU, in its steps, is under {least_percent} % of the median of the "
    "others. Gains that share of its compute time. Or its hottest kernel takes longer, on one grid, when the clock is "
    "lower: Spearman's correlation under {most_rho} over {least_pairs} samples or more. Gains what the highest clock "
    "would",
    look=_look,
    needs=(Need("samples", recording.CLOCKS),),
    thresholds=(
        Threshold("least_percent", 95.0, "mean clock of a GPU by the median of the others"),
        Threshold("least_samples", 3.0, "samples of the clock of a GPU"),
        Threshold("most_rho", -0.5, "Spearman's correlation of clock and time of the hottest kernel"),
        Threshold("least_pairs", 20.0, "samples in which that kernel ran"),
    ),
    explains=_explains,
)
