"""Kernels whose atomic operations on memory wait for each other."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.advice.case import Case
from rocpd.advice.counted import LEAST_PERCENT, hot_kernels, needs
from rocpd.advice.rule import Rule, Threshold
from rocpd.summary.findings import Finding

_ATOMICS, _WAIT, _READS = "Atomic Traffic", "Write and Atomic Latency", "Read Latency"


def _look(case: Case) -> Iterator[Finding]:
    for kernel in hot_kernels(case, "fabric", (_ATOMICS, _WAIT, _READS)):
        atomics, ratio = kernel.metrics[_ATOMICS], kernel.metrics[_WAIT] / max(kernel.metrics[_READS], 1.0)
        if atomics >= case.limits["least_atomics"] and ratio >= case.limits["least_ratio"]:
            yield kernel.finding(
                RULE.id,
                f"has {atomics:.0f} % of atomics among its writes to memory, which take {ratio:.1f} times as long "
                "as reads",
                "fabric",
                {"atomic_percent": atomics, "latency_ratio": ratio},
                "Add up in registers, in a wave or in LDS first, and make one atomic of a work-group; spread "
                "counters over several cache lines.",
            )


RULE = Rule(
    id="kernel.atomics",
    asks="do atomics of hot kernels wait for each other?",
    fires="a kernel with {least_percent} % of the compute time of the critical rank or more has {least_atomics} % "
    "of atomics or more among its writes to memory, and these take {least_ratio} times as long as reads, or more. "
    "Gains less than the whole time of the kernel",
    look=_look,
    needs=needs("fabric"),
    thresholds=(
        LEAST_PERCENT,
        Threshold("least_atomics", 10.0, "atomics among writes to memory, in percent"),
        Threshold("least_ratio", 2.0, "latency of writes and atomics by that of reads"),
    ),
)
