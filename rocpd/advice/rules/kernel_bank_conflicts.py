"""Kernels whose accesses to LDS wait for each other."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.advice.case import Case
from rocpd.advice.counted import LEAST_PERCENT, hot_kernels, needs
from rocpd.advice.rule import Rule, Threshold
from rocpd.summary.findings import Finding

_CONFLICTS, _USE = "Bank Conflicts/Access", "Utilization"


def _look(case: Case) -> Iterator[Finding]:
    for kernel in hot_kernels(case, "lds", (_CONFLICTS, _USE)):
        conflicts, use = kernel.metrics[_CONFLICTS], kernel.metrics[_USE]
        if conflicts >= case.limits["least_conflicts"] and use >= case.limits["least_use"]:
            yield kernel.finding(
                RULE.id,
                f"has {conflicts:.1f} cycles of bank conflicts for each access to LDS, which is in use {use:.0f} % "
                "of the time",
                "lds",
                {"conflicts_per_access": conflicts, "use_percent": use},
                "Pad rows of arrays in LDS by one element, or permute (swizzle) their columns, so that the "
                "work-items of a wave reach different banks; read wider elements.",
            )


RULE = Rule(
    id="kernel.bank_conflicts",
    asks="do accesses of hot kernels to LDS hit the same banks?",
    fires="a kernel with {least_percent} % of the compute time of the critical rank or more has {least_conflicts} "
    "cycles of bank conflicts for each cycle of access to LDS, or more. Gains less than the whole time of the "
    "kernel",
    look=_look,
    needs=needs("lds"),
    thresholds=(
        LEAST_PERCENT,
        Threshold("least_conflicts", 1.0, "cycles of conflicts for each cycle of access"),
        Threshold("least_use", 10.0, "time in which LDS is in use, in percent"),
    ),
)
