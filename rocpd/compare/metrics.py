"""Owns what can decide a comparison: the time of a step, of some of its kernels or markers, or the peak of memory."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rocpd.compare.options import STEP, compiled
from rocpd.errors import UsageError
from rocpd.frozen import frozen

if TYPE_CHECKING:
    from rocpd.compare.launches import KernelLaunch
    from rocpd.compare.measure import RankMeasure
    from rocpd.types import Ints

KERNEL, CATEGORY, MARKER, MEMORY = "kernel", "category", "marker", "memory.peak"


@frozen
class DiffMetric:
    """What decides; the rank with the highest value counts.

    Args:
        name: as the user has it.
        kind: `step`, `kernel`, `category`, `marker` or `memory.peak`.
        pattern: kernels or markers that it finds count.
        category: kernels of it count.
    """

    name: str = STEP
    kind: str = STEP
    pattern: re.Pattern[str] | None = None
    category: str = ""

    @property
    def marker(self) -> re.Pattern[str] | None:
        """Markers whose time counts."""
        return self.pattern if self.kind == MARKER else None

    @property
    def is_per_unit(self) -> bool:
        """Whether units have values of it beside their time."""
        return self.kind in (KERNEL, CATEGORY, MARKER)

    @property
    def unit(self) -> str:
        """What values are counted in."""
        return "bytes" if self.kind == MEMORY else "ns"

    def values(self, measure: RankMeasure) -> Ints:
        """Return the values of a rank, in each of its units [ns]."""
        if self.kind == MARKER:
            return measure.phases
        some = [number for number, launch in enumerate(measure.launches) if self._counts(launch)]
        times: Ints = measure.time[:, some].sum(1)
        return times

    def _counts(self, launch: KernelLaunch) -> bool:
        if self.kind == CATEGORY:
            return launch.category == self.category
        return bool(self.pattern and (self.pattern.search(launch.name) or self.pattern.search(launch.symbol)))


def metric_of(text: str) -> DiffMetric:
    """Return what a text stands for.

    >>> metric_of("kernel:gemm").kind, metric_of("step").name
    ('kernel', 'step')

    Raises:
        UsageError: nothing.
    """
    kind, _, what = text.partition(":")
    if text in (STEP, MEMORY):
        return DiffMetric(text, text)
    if what and kind == CATEGORY:
        return DiffMetric(text, kind, category=what)
    if what and kind in (KERNEL, MARKER):
        return DiffMetric(text, kind, compiled(f"--metric {kind}:", what))
    raise UsageError(f"--metric {text}: unknown", "step, kernel:REGEX, category:NAME, marker:REGEX or memory.peak")
