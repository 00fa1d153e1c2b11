"""Kernels whose accesses the caches serve badly: work-items of a wave that read far apart."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.advice.case import Case
from rocpd.advice.counted import LEAST_PERCENT, hot_kernels, needs
from rocpd.advice.rule import Rule, Threshold
from rocpd.summary.findings import Finding

_COALESCING, _HITS = "Coalescing", "Hit rate"


def _look(case: Case) -> Iterator[Finding]:
    for kernel in hot_kernels(case, "l1", (_COALESCING, _HITS)):
        coalescing, hits = kernel.metrics[_COALESCING], kernel.metrics[_HITS]
        if coalescing <= case.limits["most_coalescing"] and hits <= case.limits["most_hits"]:
            yield kernel.finding(
                RULE.id,
                f"coalesces {coalescing:.0f} % of its accesses and hits L1 in {hits:.0f} %: its work-items read apart",
                "l1",
                {"coalescing_percent": coalescing, "hit_percent": hits},
                "Let neighbouring work-items read neighbouring elements: swap loops or indices, transpose through "
                "LDS, store arrays of structures as structures of arrays, use wider loads.",
            )


RULE = Rule(
    id="kernel.strided",
    asks="do work-items of hot kernels read what lies apart?",
    fires="a kernel with {least_percent} % of the compute time of the critical rank or more coalesces "
    "{most_coalescing} % of its accesses or fewer, and hits L1 in {most_hits} % or fewer. Gains less than the whole "
    "time of the kernel",
    look=_look,
    needs=needs("l1"),
    thresholds=(
        LEAST_PERCENT,
        Threshold("most_coalescing", 40.0, "accesses of a wave that are put together, in percent"),
        Threshold("most_hits", 20.0, "accesses that hit L1, in percent"),
    ),
)
