"""Work that is not the same for all ranks."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.advice import recording
from rocpd.advice.case import CannotLookError, Case
from rocpd.advice.rule import Need, Rule, Threshold
from rocpd.advice.rules.comm_straggler import has_more_work
from rocpd.summary.findings import Confidence, Finding


def _look(case: Case) -> Iterator[Finding]:
    rows = [row for row in case.rows("ranks") if row["compute_by_mean"]]
    if case.job.runs > 1:
        raise CannotLookError(f"{case.job.runs} separate runs, not one job: choose the ranks of one with --rank")
    if len(rows) < 2:
        raise CannotLookError(recording.RANKS)
    most = max(rows, key=lambda row: float(row["compute_by_mean"]))
    times = float(most["compute_by_mean"])
    if times <= case.limits["most_by_mean"]:
        return
    compute = case.job.shares.get(most["rank"], {}).get("compute", 100.0)
    text = f"rank {most['rank']} has {times:.2f} times the compute time of the mean of {len(rows)} ranks"
    yield Finding(
        text,
        RULE.id,
        confidence=Confidence.CERTAIN,
        rank=most["rank"],
        evidence={"compute_ns": most["compute_ns"], "compute_by_mean": times, "ranks": len(rows)},
        shown_by="rocpd summary imbalance ranks JOB",
        gain_percent=compute * (1 - 1 / times),
        action="Give the ranks equal work: shards, tokens or experts of equal size, layers of equal cost in each "
        "stage. `rocpd summary kernels JOB --by rank` shows which kernels differ.",
        reference="https://rocm.docs.amd.com/en/latest/how-to/rocm-for-ai/inference-optimization/workload.html",
    )


def _explains(cause: Finding, other: Finding) -> bool:
    return other.rule == "comm.straggler" and other.rank == cause.rank and has_more_work(other)


RULE = Rule(
    id="rank.imbalance",
    asks="do all ranks have the same work?",
    fires="the rank that computes longest takes more than {most_by_mean} times the mean. Gains the difference",
    look=_look,
    needs=(Need("ranks", recording.KERNELS),),
    thresholds=(Threshold("most_by_mean", 1.10, "longest compute time of a rank by the mean of all"),),
    explains=_explains,
)
