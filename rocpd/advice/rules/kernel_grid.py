"""Kernels whose grids do not fill the GPU."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rocpd.advice import recording
from rocpd.advice.case import CannotLookError, Case, Row, short
from rocpd.advice.rule import Need, Rule, Threshold
from rocpd.summary.findings import Confidence, Finding


def _look(case: Case) -> Iterator[Finding]:
    kernels = case.computing("kernel-shapes")
    if not any(row["groups"] and row["compute_units"] for row in kernels):
        raise CannotLookError("grids of kernels, or the compute units of the GPU, are not recorded")
    every = sum(int(row["total_ns"]) for row in kernels)
    compute = case.job.shares.get(case.job.critical or 0, {}).get("compute", 0.0)
    for row in kernels:
        share = int(row["total_ns"]) * 100 / every if every else 0.0
        empty = _empty(row, case)
        if share >= case.limits["least_percent"] and empty:
            yield _finding(row, share, empty, share * compute / 100)


def _empty(row: Row, case: Case) -> float:
    """Return which part of the compute units has nothing to do, on average; 0 where that is not worth saying."""
    groups, units = int(row["groups"] or 0), int(row["compute_units"] or 0)
    if not units or not groups:
        return 0.0
    if groups < units:
        return 1.0 - groups / units
    if not row["waves_per_simd"]:
        return 0.0
    rounds = groups / units
    last = rounds - math.floor(rounds)
    if rounds < case.limits["few_rounds"] and 0 < last < case.limits["last_round_percent"] / 100:
        return (math.ceil(rounds) - rounds) / math.ceil(rounds) if _fits_once(row) else 0.0
    return 0.0


def _fits_once(row: Row) -> bool:
    """Whether a compute unit holds one work-group at a time: then the last round runs alone."""
    items = math.prod(int(size) for size in str(row["workgroup"]).split("x"))
    return int(row["waves_per_simd"]) * 4 < 2 * math.ceil(items / 64)


def _finding(row: Row, share: float, empty: float, of_step: float) -> Finding:
    name = short(row["name"])
    text = (
        f"{name} has {row['groups']} work-groups for {row['compute_units']} compute units: {empty * 100:.0f} % of "
        f"the GPU has nothing to do while it runs, {share:.0f} % of the compute time"
    )
    return Finding(
        text,
        RULE.id,
        confidence=Confidence.LIKELY,
        rank=row["rank"],
        evidence={name: row[name] for name in ("name", "grid", "workgroup", "groups", "compute_units", "total_ns")},
        shown_by="rocpd summary kernel-shapes JOB --by rank",
        gain_percent=of_step * empty,
        action="Give it more work-groups: smaller tiles, split-K or stream-K for GEMM (hipBLASLt tuning with "
        "hipblaslt-bench or PyTorch TunableOp, PYTORCH_TUNABLEOP_ENABLED=1), larger batches; or run independent "
        "kernels beside it in another stream.",
        reference="https://rocm.docs.amd.com/en/latest/how-to/rocm-for-ai/inference-optimization/workload.html",
    )


RULE = Rule(
    id="kernel.grid",
    asks="do the hot kernels fill the GPU?",
    fires="a kernel with {least_percent} % of the compute time of the critical rank or more has fewer work-groups than "
    "the GPU compute units; or, where a unit holds one group at a time, fewer than {few_rounds} rounds of groups of "
    "which the last is less than {last_round_percent} % full. Gains the share of the units that is empty",
    look=_look,
    needs=(Need("kernel-shapes", recording.KERNELS), Need("budget", recording.KERNELS)),
    thresholds=(
        Threshold("least_percent", 5.0, "share of the compute time of the critical rank"),
        Threshold("few_rounds", 4.0, "work-groups by compute units"),
        Threshold("last_round_percent", 50.0, "how full the last round is"),
    ),
)
