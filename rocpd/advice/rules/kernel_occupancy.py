"""Kernels that take so many registers or so much LDS that few waves fit, or that spill."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.advice import recording
from rocpd.advice.case import CannotLookError, Case, Row, short
from rocpd.advice.rule import Need, Rule, Threshold
from rocpd.summary.findings import Confidence, Finding

_BY_DESIGN = ("gemm", "attention", "convolution")  # matrix kernels fill all registers on purpose


def _look(case: Case) -> Iterator[Finding]:
    kernels = case.computing("kernel-shapes")
    if kernels and all(row["waves_per_simd"] is None for row in kernels):
        raise CannotLookError("registers of kernels are not recorded, or the GPU is none of gfx90a, gfx94x and gfx950")
    every = sum(int(row["total_ns"]) for row in kernels)
    compute = case.job.shares.get(case.job.critical or 0, {}).get("compute", 0.0)
    for row in kernels:
        share = int(row["total_ns"]) * 100 / every if every else 0.0
        if share >= case.limits["least_percent"] and row["waves_per_simd"] and _is_low(case, row):
            yield _finding(row, share, share * compute / 100)


def _is_low(case: Case, row: Row) -> bool:
    if row["scratch_bytes"]:
        return True
    is_matrix = any(word in case.categories.of(row["name"]).lower() for word in _BY_DESIGN)
    return not is_matrix and int(row["waves_per_simd"]) <= case.limits["most_waves"]


def _finding(row: Row, share: float, of_step: float) -> Finding:
    name = short(row["name"])
    waves = "1 wave fits" if row["waves_per_simd"] == 1 else f"{row['waves_per_simd']} waves fit"
    spills = f" and takes {row['scratch_bytes']} bytes of scratch per work-item" if row["scratch_bytes"] else ""
    text = (
        f"{name}, {share:.0f} % of the compute time, has {row['vector_registers']} vector registers{spills}: {waves} "
        f"on a SIMD unit, limited by {row['limited_by']}"
    )
    kept = ("name", "vector_registers", "lds_bytes", "scratch_bytes", "waves_per_simd", "limited_by", "total_ns")
    return Finding(
        text,
        RULE.id,
        confidence=Confidence.HINT,
        rank=row["rank"],
        evidence={column: row[column] for column in kept},
        shown_by="rocpd summary kernel-shapes JOB --by rank",
        gain_percent=of_step,
        action="Let the kernel take less: __launch_bounds__(threads, blocks per CU), smaller tiles or less "
        "unrolling, no arrays with indices that change (they lie in scratch). -Rpass-analysis=kernel-resource-usage "
        "shows registers and spills when compiling; `rocprof-compute profile -n NAME -- APP` whether memory or "
        "arithmetic limits it.",
        reference="https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/performance_guidelines.html",
    )


RULE = Rule(
    id="kernel.occupancy",
    asks="do registers, LDS or spills keep hot kernels from hiding latency?",
    fires="a kernel with {least_percent} % of the compute time of the critical rank or more takes scratch memory, or, "
    "matrix kernels aside, fits {most_waves} waves on a SIMD unit or fewer. Gains less than the whole time of the "
    "kernel",
    look=_look,
    needs=(Need("kernel-shapes", recording.KERNELS), Need("budget", recording.KERNELS)),
    thresholds=(
        Threshold("least_percent", 5.0, "share of the compute time of the critical rank"),
        Threshold("most_waves", 2.0, "waves that fit on a SIMD unit"),
    ),
)
