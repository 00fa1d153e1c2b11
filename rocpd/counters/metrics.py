"""Calculates metrics of dispatches: from one pass wherever one has all that a formula needs, and never from nothing.

Groups add up in any order: sums are kept exactly, so that any split of a job gives the same values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property

import numpy as np

from rocpd.base.frozen import frozen
from rocpd.base.types import Floats, Ints
from rocpd.counters.definitions import Architecture, CounterMetric, Hardware, is_counter, needs
from rocpd.counters.formula import MissingError, Node, evaluate, parse
from rocpd.counters.measured import Measured
from rocpd.counters.panels import Per

_CYCLES = "GRBM_GUI_ACTIVE"
_NORMALISERS = {Per.KERNEL: "1", Per.WAVE: "per_wave", Per.CYCLE: "gui", Per.SECOND: "per_second"}


def terms_of(architecture: Architecture, per: Per = Per.KERNEL) -> dict[str, Node]:
    """Return the terms of an architecture, with D for what amounts are counted per."""
    return {**architecture.terms, "D": parse(_NORMALISERS[per])}


@frozen
class Calculated:
    """A metric of some dispatches.

    Args:
        values: of each dispatch, NaN where it can't be said; None: of none.
        leaves: what the formula was calculated from, for each dispatch.
        missing: names of what is not there.
        passes: how many passes the counters are of; those of a ratio should be of one.
        windows: how often longer than the kernel cycles were counted than its clock allows, NaN where that is unknown
            or no matter for the metric.
    """

    values: Floats | None
    leaves: Mapping[str, Floats] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    passes: int = 1
    windows: Floats | None = None

    @cached_property
    def nothing(self) -> MetricSums | None:
        """Sums of any dispatches, where something is missing; None: nothing is."""
        return MetricSums(0, missing=self.missing) if self.values is None else None


class Calculator:
    """Calculates metrics of the dispatches of one kind of GPU.

    Args:
        measured: the dispatches.
        hardware: the GPU.
        chosen: rows of its dispatches.
        per: what amounts are counted per.
        is_amds: as rocprof-compute does: each counter from the first pass that has it.

    Attributes:
        architecture: whose metrics they are.
        constants: of the GPU.
        terms: what its formulas have names for.

    Raises:
        ValueError: the architecture is not known.
    """

    def __init__(
        self, measured: Measured, hardware: Hardware, chosen: Ints, per: Per = Per.KERNEL, is_amds: bool = False
    ) -> None:
        known = hardware.architecture
        if known is None:
            raise ValueError(f"nobody says what counters of {hardware.name} mean")
        self.architecture, self.constants = known, hardware.constants
        self._measured, self._chosen, self._is_amds = measured, chosen, is_amds
        self.terms = terms_of(known, per)
        self._durations = measured.typical_durations(is_weighted=is_amds)[chosen]
        self._per = per
        counters = tuple(frozenset(run.counters) for run in measured.passes)
        self._recorded = counters, frozenset(measured.sizes), frozenset(self.constants)
        self._sums: dict[tuple[int, str], Floats | None] = {}
        self._having: dict[str, list[int]] = {}

    def constant(self, node: Node) -> float | None:
        """Return the value of a formula that needs nothing but constants of the GPU; None: one is not known."""
        try:
            return float(evaluate(node, self._constant, self.terms))
        except MissingError:
            return None

    def _constant(self, name: str) -> float:
        if name not in self.constants:
            raise MissingError(name)
        return self.constants[name]

    def calculate(self, metric: CounterMetric) -> Calculated:
        """Return a metric of each dispatch."""
        needed, counters, nothing = self._known(metric)
        if nothing:
            return nothing
        passes = self._passes_with(counters)
        leaves = {name: self._leaf(name, passes) for name in needed}
        values = np.empty(len(self._chosen))
        values[:] = evaluate(metric.value, leaves.__getitem__, self.terms)
        has_windows = not self._is_amds and metric.unit == "%" and _CYCLES in needed
        windows = self._windows(passes[_CYCLES], leaves[_CYCLES]) if has_windows else None
        used = len(set(passes.values())) or 1
        return Calculated(values, leaves, (), 1 if self._is_amds else used, windows)

    def _known(self, metric: CounterMetric) -> tuple[tuple[str, ...], tuple[str, ...], Calculated | None]:
        """Return what a formula needs, the counters in it, and what is calculated where something is missing.

        It is looked up once for all ranks that recorded the same.
        """
        known, key = self.architecture.known, (self._per, id(metric), self._recorded)
        if known.get(key, (None,))[0] is not metric:
            needed = needs(metric.value, self.terms)
            shown = needs(metric.of_mean, {"mean": metric.value, **self.terms}) if metric.of_mean else ()
            missing = tuple(self._missing(needed, shown))
            counters = tuple(filter(is_counter, needed))
            known[key] = metric, needed, counters, Calculated(None, missing=missing) if missing else None
        _, needed, counters, nothing = known[key]
        return needed, counters, nothing

    def _missing(self, needed: Iterable[str], shown: Iterable[str]) -> Iterator[str]:
        """Yield what a formula, or that of its mean, needs and nobody recorded; counters first."""
        yield from (name for name in needed if is_counter(name) and not self._passes_having(name))
        others = (name for name in dict.fromkeys((*needed, *shown)) if not is_counter(name))
        yield from (n for n in others if n != "dur" and n not in self._measured.sizes and n not in self.constants)

    def _passes_with(self, counters: Sequence[str]) -> dict[str, int]:
        """Return the pass that each counter is taken from: one that has all, where there is one."""
        having = {name: self._passes_having(name) for name in counters}
        common = set.intersection(*(set(runs) for runs in having.values())) if counters else set()
        if common and not self._is_amds:
            return dict.fromkeys(counters, min(common))
        return {name: runs[0] for name, runs in having.items()}

    def _passes_having(self, name: str) -> list[int]:
        """Return the passes with a counter, those first that have it under just this name."""
        if name not in self._having:
            runs = [run for run in range(len(self._measured.passes)) if self._sum(run, name) is not None]
            self._having[name] = sorted(runs, key=lambda run: name not in self._measured.passes[run].counters)
        return self._having[name]

    def _sum(self, run: int, name: str) -> Floats | None:
        if (run, name) not in self._sums:
            rows = self._measured.passes[run].find(name)
            self._sums[run, name] = rows.summed(self._measured.count)[self._chosen] if rows else None
        return self._sums[run, name]

    def _leaf(self, name: str, passes: Mapping[str, int]) -> Floats:
        if name in passes:
            values = self._sum(passes[name], name)
            assert values is not None
            return values
        if name == "dur":
            return self._duration(set(passes.values()))
        if name in self._measured.sizes:
            return self._measured.sizes[name][self._chosen]
        return np.full(len(self._chosen), self.constants[name])

    def _duration(self, runs: set[int]) -> Floats:
        """Return how long dispatches took in the pass that all counters are of, if it says so."""
        of_passes = [self._measured.passes[run].durations for run in runs]
        if len(of_passes) == 1 and of_passes[0] is not None and not self._is_amds:
            return of_passes[0][self._chosen]
        return self._durations

    def _windows(self, run: int, cycles: Floats) -> Floats | None:
        """Return the cycles that a pass counted by those that the highest clock allows while the kernel runs."""
        clock, units = self.constants.get("sclk"), self.constants.get("xcc")
        if not clock or not units:
            return None
        with np.errstate(all="ignore"):
            windows = cycles / units / (self._duration({run}) * clock / 1000)
        return np.where(np.isfinite(windows), windows, np.nan)


@frozen
class MetricSums:
    """A metric over dispatches that belong together, so that two of them add up.

    Args:
        count: dispatches with a value.
        sums: of the values; of several parts side by side, because sums are to be exact.
        least, most: the smallest and the largest value.
        leaves: sums of what they were calculated from, likewise.
        windows: sum of `Calculated.windows`, and of how many dispatches.
        missing: what is not there.
        passes: as in `Calculated`.
        every: all values, where quartiles are wanted.
    """

    count: int
    sums: tuple[float, ...] = ()
    least: float = math.inf
    most: float = -math.inf
    leaves: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    windows: tuple[float, int] = (0.0, 0)
    missing: tuple[str, ...] = ()
    passes: int = 1
    every: tuple[float, ...] = ()

    @staticmethod
    def of(calculated: Calculated, rows: Ints, keeps_values: bool = False) -> MetricSums:
        """Return the sums of some dispatches."""
        if calculated.values is None:
            return calculated.nothing or MetricSums(0)
        values = calculated.values[rows]
        known = np.flatnonzero(~np.isnan(values))
        some = values[known]
        if not len(some):
            return MetricSums(0)
        leaves = {name: (float(leaf[rows[known]].sum()),) for name, leaf in calculated.leaves.items()}
        windows = (0.0, 0)
        if calculated.windows is not None:
            of_rows = calculated.windows[rows[known]]
            windows = (float(np.nansum(of_rows)), int(np.count_nonzero(~np.isnan(of_rows))))
        every = tuple(some.tolist()) if keeps_values else ()
        sums, limits = (float(some.sum()),), (float(some.min()), float(some.max()))
        return MetricSums(len(some), sums, *limits, leaves, windows, (), calculated.passes, every)

    def __add__(self, other: MetricSums) -> MetricSums:
        if not self.count or not other.count:
            return self if self.count else other if other.count or other.missing else self
        return MetricSums(
            self.count + other.count,
            self.sums + other.sums,
            min(self.least, other.least),
            max(self.most, other.most),
            {name: self.leaves[name] + other.leaves[name] for name in self.leaves if name in other.leaves},
            (self.windows[0] + other.windows[0], self.windows[1] + other.windows[1]),
            (),
            max(self.passes, other.passes),
            self.every + other.every,
        )

    @property
    def mean(self) -> float | None:
        """The mean of dispatches."""
        return math.fsum(self.sums) / self.count if self.count else None

    @property
    def window(self) -> float | None:
        """How often longer than the kernel cycles were counted, on average; None: unknown, or no matter."""
        total, count = self.windows
        return total / count if count else None

    def of_sums(self, node: Node, terms: Mapping[str, Node]) -> float | None:
        """Return what a formula gives for all dispatches together: of a ratio, the ratio of the sums."""
        if not self.count:
            return None
        means = {name: math.fsum(sums) / self.count for name, sums in self.leaves.items()}
        value = float(evaluate(node, means.__getitem__, terms))
        return None if math.isnan(value) else value
