"""Matrix products that do not use the matrix units."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.advice.case import Case
from rocpd.advice.counted import LEAST_PERCENT, hot_kernels, needs
from rocpd.advice.rule import Rule, Threshold
from rocpd.summary.findings import Finding

_BUSY = "MFMA Utilization"


def _look(case: Case) -> Iterator[Finding]:
    for kernel in hot_kernels(case, "compute", (_BUSY,)):
        is_gemm = "gemm" in case.categories.of(kernel.name).lower()
        if is_gemm and kernel.metrics[_BUSY] <= case.limits["most_busy"]:
            yield kernel.finding(
                RULE.id,
                f"is a matrix product, and has the matrix units busy {kernel.metrics[_BUSY]:.1f} % of the time",
                "compute",
                {"busy_percent": kernel.metrics[_BUSY]},
                "Use types that matrix units have (BF16, F16, F8; F32 as xf32 where allowed), sizes that are "
                "multiples of 16, and a library that is tuned for them: hipBLASLt, Composable Kernel.",
            )


RULE = Rule(
    id="kernel.matrix_idle",
    asks="do hot matrix products use the matrix units?",
    fires="a GEMM with {least_percent} % of the compute time of the critical rank or more has the matrix units busy "
    "for {most_busy} % of its cycles or fewer. Gains less than the whole time of the kernel",
    look=_look,
    needs=needs("compute"),
    thresholds=(
        LEAST_PERCENT,
        Threshold("most_busy", 2.0, "cycles in which matrix units are busy, in percent"),
    ),
)
