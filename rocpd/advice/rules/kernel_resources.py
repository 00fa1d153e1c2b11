"""Kernels whose work-groups wait for wave slots, registers or LDS, as counters of the scheduler say."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.advice.case import Case
from rocpd.advice.counted import LEAST_PERCENT, hot_kernels, needs
from rocpd.advice.rule import Rule, Threshold
from rocpd.summary.findings import Finding

_LACKS = {
    "Insufficient SIMD Waveslots": (
        "wave slots",
        "as many waves as a SIMD unit holds run already: more of them would not help; fewer, longer ones (more work "
        "for each work-item) cost less to start.",
    ),
    "Insufficient SIMD VGPRs": (
        "vector registers",
        "let work-items take fewer: __launch_bounds__(threads, blocks per CU), smaller tiles, less unrolling.",
    ),
    "Insufficient CU LDS": ("LDS", "let work-groups take less LDS, or share it among more work-items."),
    "Reached CU Workgroup Limit": (
        "work-group slots",
        "make work-groups larger: a compute unit holds few of them, however small they are.",
    ),
}
"""Metric -> what work-groups wait for, and what to do."""
_MATRICES = ("gemm", "attention", "convolution")  # they take all registers and LDS on purpose
_ON_PURPOSE = ("Insufficient SIMD VGPRs", "Insufficient CU LDS")


def _look(case: Case) -> Iterator[Finding]:
    for kernel in hot_kernels(case, "occupancy", tuple(_LACKS)):
        is_matrix = any(word in case.categories.of(kernel.name).lower() for word in _MATRICES)
        waits = {name: kernel.metrics[name] for name in _LACKS if not (is_matrix and name in _ON_PURPOSE)}
        worst = max(waits, key=lambda name: waits[name])
        if waits[worst] >= case.limits["least_wait"]:
            what, action = _LACKS[worst]
            yield kernel.finding(
                RULE.id,
                f"has work-groups wait for {what} in {waits[worst]:.0f} % of its cycles",
                "occupancy",
                {"wait_percent": waits[worst]},
                f"{action[0].upper()}{action[1:]}",
            )


RULE = Rule(
    id="kernel.resources",
    asks="do work-groups of hot kernels wait for wave slots, registers or LDS?",
    fires="work-groups of a kernel with {least_percent} % of the compute time of the critical rank or more wait for "
    "wave slots, vector registers, LDS or work-group slots in {least_wait} % of its cycles or more; matrix kernels "
    "take all registers and LDS on purpose. Gains less than the whole time of the kernel",
    look=_look,
    needs=needs("occupancy"),
    thresholds=(
        LEAST_PERCENT,
        Threshold("least_wait", 20.0, "cycles in which work-groups wait for one of them, in percent"),
    ),
)
