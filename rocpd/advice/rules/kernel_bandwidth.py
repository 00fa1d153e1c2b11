"""Kernels that are bound by the bandwidth of memory."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.advice.case import Case
from rocpd.advice.counted import LEAST_PERCENT, hot_kernels, needs
from rocpd.advice.rule import Rule, Threshold
from rocpd.summary.findings import Finding

_READ, _WRITE = "L2-Fabric Read BW", "L2-Fabric Write BW"


def _look(case: Case) -> Iterator[Finding]:
    peaks = {row["kernel"]: row["peak"] for row in case.of_critical("speed-of-light") if row["metric"] == _READ}
    for kernel in hot_kernels(case, "speed-of-light", (_READ, _WRITE)):
        peak, rate = peaks[kernel.name], kernel.metrics[_READ] + kernel.metrics[_WRITE]
        if peak and 100 * rate / peak >= case.limits["least_bandwidth"]:
            yield kernel.finding(
                RULE.id,
                f"moves {rate:,.0f} GB/s, {100 * rate / peak:.0f} % of the peak of HBM: it is bound by memory",
                "speed-of-light",
                {"gb_per_s": rate, "peak_gb_per_s": peak},
                "Move fewer bytes: fuse it with kernels that read or write the same, use smaller types, keep in LDS "
                "or registers what is read again. More occupancy or fewer instructions will not help.",
            )


RULE = Rule(
    id="kernel.bandwidth",
    asks="do hot kernels move as many bytes as the memory can?",
    fires="a kernel with {least_percent} % of the compute time of the critical rank or more reads and writes "
    "{least_bandwidth} % of the peak rate of HBM or more. Gains less than the whole time of the kernel",
    look=_look,
    needs=needs("speed-of-light"),
    thresholds=(
        LEAST_PERCENT,
        Threshold("least_bandwidth", 60.0, "reads and writes by the peak rate of HBM, in percent"),
    ),
)
