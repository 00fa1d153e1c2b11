"""A GPU whose clock is lower than that of the others."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from rocpd.advice import recording
from rocpd.advice.case import CannotLookError, Case
from rocpd.advice.rule import Need, Rule, Threshold
from rocpd.summary.findings import Confidence, Finding
from rocpd.summary.samples import CLOCK


def _look(case: Case) -> Iterator[Finding]:
    clocks = [
        row
        for row in case.rows("samples")
        if CLOCK.search(row["name"] or "") and row["samples"] >= case.limits["least_samples"]
    ]
    if not clocks:
        raise CannotLookError(recording.CLOCKS)
    if len(clocks) < 2:
        raise CannotLookError("the clock of one GPU alone is sampled: there is none to compare with")
    for row in sorted(clocks, key=lambda row: float(row["mean"])):
        others = median(float(other["mean"]) for other in clocks if other is not row)
        lower = (1 - float(row["mean"]) / others) * 100 if others > 0 else 0.0
        if lower <= 100 - case.limits["least_percent"]:
            continue
        compute = case.job.shares.get(row["rank"], {}).get("compute", 100.0)
        example = case.example()
        yield Finding(
            f"the clock of the GPU of rank {row['rank']} is {lower:.0f} % lower than that of the others: "
            f"{row['mean']:.0f} {row['units'] or 'MHz'} in place of {others:.0f}",
            RULE.id,
            confidence=Confidence.LIKELY,
            rank=row["rank"],
            agent=row["agent"],
            window=example.window,
            evidence={"mean": row["mean"], "others": others, "min": row["min"], "samples": row["samples"]},
            shown_by="rocpd summary samples JOB",
            gain_percent=compute * lower / 100,
            action="Look at temperature, power and what limits the clock: `amd-smi metric --temperature --power "
            "--clock` and `amd-smi metric --throttle`; at the power cap (`amd-smi static --limit`) and the cooling "
            "of this slot.",
            reference="https://rocm.docs.amd.com/projects/amdsmi/en/latest/how-to/amdsmi-cli-tool.html",
        )


def _explains(cause: Finding, other: Finding) -> bool:
    return (
        other.rule in ("comm.straggler", "rank.imbalance", "kernel.unstable", "step.outlier")
        and other.rank == cause.rank
    )


RULE = Rule(
    id="clock.throttle",
    asks="does one GPU run at a lower clock?",
    fires="the mean of the sampled clock of a GPU, in its steps, is under {least_percent} % of the median of the "
    "others. Gains that share of its compute time",
    look=_look,
    needs=(Need("samples", recording.CLOCKS),),
    thresholds=(
        Threshold("least_percent", 95.0, "mean clock of a GPU by the median of the others"),
        Threshold("least_samples", 3.0, "samples of the clock of a GPU"),
    ),
    explains=_explains,
)
