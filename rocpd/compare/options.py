"""Options of a comparison, each declared once, and the metric that decides. Imports no numpy."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rocpd.base import Ints, UsageError, frozen
from rocpd.base.option import Heading, declare, plain, regular_expression
from rocpd.schema.rules.steps import STEP_MARKER

if TYPE_CHECKING:
    from rocpd.compare.measure import KernelLaunch, RankMeasure


STEP = "step"

RUN_NOISE = 5.0
"""Assumed standard deviation of runs [%]: two runs of one program differ by up to 20 % in 99 of 100 cases."""


@frozen
class DiffOptions:
    """The options of a comparison, and the least difference that counts.

    Args:
        margin: differences up to this many percent do not matter.
        run_noise: standard deviation of runs of one program [%], for a side with one run; None: that of the other
            side's runs, else `RUN_NOISE`.
        metric: the metric that decides: `step`, `kernel:REGEX`, `category:NAME`, `marker:REGEX` or `memory.peak`.
        match: kernels whose names have equal groups of this expression are one kernel.
        least_score: score below which two sides do not compare; 0 compares whatever differs.
        step_marker: regular expression for the text of markers that are steps.
        categories: JSON or TOML file of kernel categories; None: the built-in one.
        everything: whether warm-up counts, too.
        has_whole: whether `memory.peak` and `energy` are measured as well, where they are recorded.
    """

    HEADING: ClassVar = Heading.WHAT

    metric: str = plain(STEP, "What decides: step, kernel:REGEX, category:NAME, marker:REGEX, memory.peak.", "METRIC")
    margin: float = plain(3.0, "Differences up to this do not matter.", "PERCENT", least=0, most=1e3)
    run_noise: float | None = declare(
        None,
        f"Standard deviation of runs, where a side has one; without: of the other side's, or {RUN_NOISE:g}.",
        "PERCENT",
        least=0,
        most=1e3,
    )
    least_score: float = declare(
        0.5, "Below this score two sides do not compare; 0 compares anything.", "X", least=0, most=1
    )
    match: str | None = declare(None, "Kernels with equal groups of this in their names are one kernel.", "REGEX")
    step_marker: str = declare(STEP_MARKER, "Markers that are steps; without it: step 5, iter 5, batch 5 …", "REGEX")
    categories: Path | None = declare(None, "Kernel categories, JSON or TOML: name -> regexes.", "FILE")
    everything: bool = declare(False, "Count warm-up too.", flags=("--all",))
    has_whole: bool = False

    @cached_property
    def decides(self) -> DiffMetric:
        """The metric that decides. Errors as `metric_of`."""
        return metric_of(self.metric)

    def check(self) -> None:
        """Refuse a metric or expression before anything is read. Errors as `decides` and `pattern`."""
        _ = self.decides, self.pattern()

    def pattern(self) -> re.Pattern[str] | None:
        """Return `match` as an expression.

        Raises:
            UsageError: it is no regular expression.
        """
        return None if self.match is None else regular_expression(self.match, "--match")


KERNEL, CATEGORY, MARKER, MEMORY = "kernel", "category", "marker", "memory.peak"

ENERGY = "energy"
"""Energy of a GPU in a unit, on average of the sampled ones: mean power times the time of the unit [J]."""


@frozen
class DiffMetric:
    """The metric that decides; the rank with the highest value counts.

    Args:
        name: its name as the user gives it.
        kind: `step`, `kernel`, `category`, `marker` or `memory.peak`.
        pattern: expression for the kernels or markers that count.
        category: category of the kernels that count.
    """

    name: str = STEP
    kind: str = STEP
    pattern: re.Pattern[str] | None = None
    category: str = ""

    @property
    def marker(self) -> re.Pattern[str] | None:
        """The expression for markers whose time counts."""
        return self.pattern if self.kind == MARKER else None

    @property
    def is_per_unit(self) -> bool:
        """Whether units have values of it besides their time."""
        return self.kind in (KERNEL, CATEGORY, MARKER)

    @property
    def unit(self) -> str:
        """The unit of its values."""
        return "bytes" if self.kind == MEMORY else "ns"

    def values(self, measure: RankMeasure) -> Ints:
        """Return the values of a rank in each of its units [ns]."""
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
    """Return the metric of a text.

    >>> metric_of("kernel:gemm").kind, metric_of("step").name
    ('kernel', 'step')

    Raises:
        UsageError: the text is no metric.
    """
    kind, _, what = text.partition(":")
    if text in (STEP, MEMORY):
        return DiffMetric(text, text)
    if what and kind == CATEGORY:
        return DiffMetric(text, kind, category=what)
    if what and kind in (KERNEL, MARKER):
        return DiffMetric(text, kind, regular_expression(what, f"--metric {kind}:"))
    raise UsageError(f"--metric {text}: unknown", "step, kernel:REGEX, category:NAME, marker:REGEX or memory.peak")
