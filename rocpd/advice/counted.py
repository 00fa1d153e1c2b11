"""Owns how rules read panels of hardware counters: the metrics of the kernels that take most time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rocpd.advice import recording
from rocpd.advice.case import CannotLookError, Case, short
from rocpd.advice.rule import Need, Threshold
from rocpd.frozen import frozen
from rocpd.summary.findings import Confidence, Finding

LEAST_PERCENT = Threshold("least_percent", 5.0, "share of the compute time of the critical rank")
"""Kernels that take less are not looked at."""

REFERENCE = "https://rocm.docs.amd.com/projects/rocprofiler-compute/en/latest/conceptual/performance-model.html"
"""Page that explains what counters count."""


@frozen
class HotKernel:
    """A kernel that takes much of the compute time of the critical rank.

    Args:
        name: in full.
        rank: the rank.
        share: of the compute time of the rank [%].
        gain: its time, as a share of a step [%].
        metrics: of its counters, by name.
    """

    name: str
    rank: int
    share: float
    gain: float
    metrics: Mapping[str, float]

    def finding(self, rule: str, says: str, panel: str, evidence: Mapping[str, float], action: str) -> Finding:
        """Return what is found of it; it may gain less than its whole time."""
        return Finding(
            f"{short(self.name)}, {self.share:.0f} % of the compute time, {says}",
            rule,
            confidence=Confidence.HINT,
            rank=self.rank,
            evidence={"name": self.name, **evidence},
            shown_by=f"rocpd summary {panel} JOB --by rank",
            gain_percent=self.gain,
            action=action,
            reference=REFERENCE,
        )


def needs(*panels: str) -> tuple[Need, ...]:
    """Return what a rule on panels needs."""
    without = recording.KERNELS
    kernels = (Need("kernel-shapes", without), Need("budget", without))
    return (*kernels, *(Need(panel, recording.COUNTERS) for panel in panels))


def hot_kernels(case: Case, panel: str, names: tuple[str, ...]) -> Iterator[HotKernel]:
    """Yield the kernels with some metrics of a panel, those with most time first.

    Raises:
        CannotLookError: no kernel that takes much time has all of them.
    """
    values: dict[str | None, dict[str, float]] = {}
    for row in case.of_critical(panel):
        if row["metric"] in names and row["value"] is not None:
            values.setdefault(row["kernel"], {})[row["metric"]] = row["value"]
    kernels = case.computing("kernel-shapes")
    every = sum(int(row["total_ns"]) for row in kernels)
    times: dict[str, int] = {}
    for row in kernels:
        times[row["name"]] = times.get(row["name"], 0) + int(row["total_ns"])
    compute = case.job.shares.get(case.job.critical or 0, {}).get("compute", 0.0)
    is_known = False
    for name, time in sorted(times.items(), key=lambda item: -item[1]):
        share = 100 * time / every if every else 0.0
        if share >= case.limits["least_percent"] and len(values.get(name, {})) == len(names):
            is_known = True
            yield HotKernel(name, case.job.critical or 0, share, share * compute / 100, values[name])
    if not is_known:
        raise CannotLookError(recording.COUNTERS)
