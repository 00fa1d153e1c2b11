"""Calculates metrics of dispatches, from a single pass if one has all counters of the formula, and never by guessing.

Groups add up in any order: sums are kept exactly, so that any split of a job gives the same values. Counters that
rocprofv3 derives from others are calculated by the formulas in the file, else by rocprofv3's own; their instances stay
separate until `reduce` joins them. Values that a file lacks are reported, not guessed.
"""

from __future__ import annotations

import ast
import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache, cached_property, partial
from importlib.resources import files
from typing import TypeAlias

import numpy as np

from rocpd.base import Floats, Ints, frozen
from rocpd.counters import formula
from rocpd.counters.definitions import Architecture, CounterMetric, Hardware, is_counter, needs
from rocpd.counters.measured import CounterRows, Measured, Pass
from rocpd.counters.panels import Per

_CYCLES = "GRBM_GUI_ACTIVE"
_NORMALISERS = {Per.KERNEL: "1", Per.WAVE: "per_wave", Per.CYCLE: "gui", Per.SECOND: "per_second"}


def terms_of(architecture: Architecture, per: Per = Per.KERNEL) -> dict[str, formula.Node]:
    """Return the terms of an architecture, with D for the unit that amounts are counted per."""
    return {**architecture.terms, "D": formula.parse(_NORMALISERS[per])}


@frozen
class Calculated:
    """A metric of some dispatches.

    Args:
        values: value of each dispatch, NaN where unknown; None: no dispatch has a value.
        leaves: name -> value for each dispatch that the formula was calculated from.
        missing: names of missing counters and constants.
        passes: number of passes that the counters come from; a ratio should need only one.
        windows: counted cycles by the cycles that the clock allows in the kernel's time, NaN where that is unknown or
            does not matter for the metric.
    """

    values: Floats | None
    leaves: Mapping[str, Floats] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    passes: int = 1
    windows: Floats | None = None

    @cached_property
    def nothing(self) -> MetricSums | None:
        """Sums of any dispatches, where a counter or constant is missing; None: nothing is missing."""
        return MetricSums(0, missing=self.missing) if self.values is None else None


_Formula: TypeAlias = tuple[tuple[str, ...], tuple[str, ...], Calculated | None]
"""The names that a formula needs, the counters in it, and its result if a name is missing, else None."""


class Calculator:
    """Calculates metrics of the dispatches of one kind of GPU.

    Args:
        measured: the dispatches.
        hardware: the GPU.
        chosen: rows of its dispatches.
        per: the unit that amounts are counted per.
        is_amds: take each counter from the first pass that has it, as rocprof-compute does.

    Attributes:
        architecture: the architecture that defines the metrics.
        constants: constants of the GPU.
        terms: named parts of its formulas.

    Raises:
        ValueError: the architecture is unknown.
    """

    def __init__(
        self, measured: Measured, hardware: Hardware, chosen: Ints, per: Per = Per.KERNEL, is_amds: bool = False
    ) -> None:
        if (known := hardware.architecture) is None:
            raise ValueError(f"nobody says what counters of {hardware.name} mean")
        self.architecture, self.constants = known, hardware.constants
        self._measured, self._chosen, self._is_amds = measured, chosen, is_amds
        self.terms = terms_of(known, per)
        self._durations = measured.typical_durations(is_weighted=is_amds)[chosen]
        counters = tuple(frozenset(run.counters) for run in measured.passes)
        recorded = per, counters, frozenset(measured.sizes), frozenset(self.constants)
        self._formulas: dict[tuple[formula.Node, formula.Node | None], _Formula] = known.known.setdefault(recorded, {})
        held: tuple[object, dict[formula.Node, float | None]] | None = known.known.get("constants")
        if held is None or held[0] != (per, self.constants):  # mostly one GPU after the other is equal
            held = known.known["constants"] = (per, self.constants), {}
        self._of_constants = held[1]
        self._sums: dict[tuple[int, str], Floats | None] = {}
        self._having: dict[str, list[int]] = {}

    def constant(self, node: formula.Node) -> float | None:
        """Return the value of a formula that needs only constants of the GPU; None if one is unknown."""
        if node not in self._of_constants:
            try:
                self._of_constants[node] = float(formula.evaluate(node, self._constant, self.terms))
            except formula.MissingError:
                self._of_constants[node] = None
        return self._of_constants[node]

    def _constant(self, name: str) -> float:
        if name not in self.constants:
            raise formula.MissingError(name)
        return self.constants[name]

    def calculate(self, metric: CounterMetric) -> Calculated:
        """Return a metric of each dispatch."""
        needed, counters, nothing = self._known(metric)
        if nothing:
            return nothing
        passes = self._passes_with(counters)
        leaves = {name: self._leaf(name, passes) for name in needed}
        values = np.empty(len(self._chosen))
        values[:] = formula.evaluate(metric.value, leaves.__getitem__, self.terms)
        has_windows = not self._is_amds and metric.unit == "%" and _CYCLES in needed
        windows = self._windows(passes[_CYCLES], leaves[_CYCLES]) if has_windows else None
        used = len(set(passes.values())) or 1
        return Calculated(values, leaves, (), 1 if self._is_amds else used, windows)

    def _known(self, metric: CounterMetric) -> _Formula:
        """Return the names that a formula needs, the counters in it, and its result if a name is missing.

        It is looked up once for all ranks that recorded the same counters.
        """
        formulas = metric.value, metric.of_mean
        if formulas not in self._formulas:
            needed = needs(metric.value, self.terms)
            shown = needs(metric.of_mean, {"mean": metric.value, **self.terms}) if metric.of_mean else ()
            missing = tuple(self._missing(needed, shown))
            counters = tuple(filter(is_counter, needed))
            nothing = Calculated(None, missing=missing) if missing else None
            self._formulas[formulas] = needed, counters, nothing
        return self._formulas[formulas]

    def _missing(self, needed: Iterable[str], shown: Iterable[str]) -> Iterator[str]:
        """Yield the names in a formula, or in that of its mean, that were not recorded; counters first."""
        yield from (name for name in needed if is_counter(name) and not self._passes_having(name))
        others = (name for name in dict.fromkeys((*needed, *shown)) if not is_counter(name))
        yield from (n for n in others if n != "dur" and n not in self._measured.sizes and n not in self.constants)

    def _passes_with(self, counters: Sequence[str]) -> dict[str, int]:
        """Return the pass that each counter is taken from: a pass with all counters if there is one."""
        having = {name: self._passes_having(name) for name in counters}
        common = set.intersection(*(set(runs) for runs in having.values())) if counters else set()
        if common and not self._is_amds:
            return dict.fromkeys(counters, min(common))
        return {name: runs[0] for name, runs in having.items()}

    def _passes_having(self, name: str) -> list[int]:
        """Return the passes with a counter, first those that have it under exactly this name."""
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
        """Return the durations of dispatches in the pass of all counters, if there is one with durations [ns]."""
        of_passes = [self._measured.passes[run].durations for run in runs]
        if len(of_passes) == 1 and of_passes[0] is not None and not self._is_amds:
            return of_passes[0][self._chosen]
        return self._durations

    def _windows(self, run: int, cycles: Floats) -> Floats | None:
        """Return the counted cycles of a pass divided by those that the highest clock allows in the kernel's time."""
        clock, units = self.constants.get("sclk"), self.constants.get("xcc")
        if not clock or not units:
            return None
        with np.errstate(all="ignore"):
            windows = cycles / units / (self._duration({run}) * clock / 1000)
        return np.where(np.isfinite(windows), windows, np.nan)


_FEW = 8  # numbers side by side, before they are joined


def _few(numbers: tuple[float, ...]) -> tuple[float, ...]:
    """Return few numbers with the same exact sum; if that overflows or is no number, the numbers themselves.

    By Shewchuk: https://people.eecs.berkeley.edu/~jrs/papers/robustr.pdf, where no bit of the sum of two is lost.

    >>> math.fsum(_few((1e16, 1.0, -1e16) * 20)) == 20.0, len(_few((0.1,) * 100)) < 4
    (True, True)
    """
    if len(numbers) < _FEW:
        return numbers
    few: list[float] = []
    for number in numbers:
        kept = 0
        for other in few:
            large, small = (number, other) if abs(number) >= abs(other) else (other, number)
            number = large + small
            if lost := small - (number - large):
                few[kept] = lost
                kept += 1
        few[kept:] = [number]
    return tuple(few) if all(map(math.isfinite, few)) else numbers


@frozen
class MetricSums:
    """A metric over a group of dispatches, in a form in which groups add up.

    Args:
        count: number of dispatches with a value.
        sums: sum of the values, as several numbers, so that it is exact.
        least, most: the smallest and the largest value.
        leaves: sums of the values that it was calculated from, also as several numbers.
        windows: sum of `Calculated.windows`, and the number of dispatches in it.
        missing: names of missing counters and constants.
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
        present = values[known]
        if not len(present):
            return MetricSums(0)
        leaves = {name: (float(leaf[rows[known]].sum()),) for name, leaf in calculated.leaves.items()}
        windows = (0.0, 0)
        if calculated.windows is not None:
            of_rows = calculated.windows[rows[known]]
            windows = (float(np.nansum(of_rows)), int(np.count_nonzero(~np.isnan(of_rows))))
        kept = tuple(present.tolist()) if keeps_values else ()
        sums, limits = (float(present.sum()),), (float(present.min()), float(present.max()))
        return MetricSums(len(present), sums, *limits, leaves, windows, (), calculated.passes, kept)

    def __add__(self, other: MetricSums) -> MetricSums:
        if not self.count or not other.count:
            return self if self.count else other if other.count or other.missing else self
        return MetricSums(
            self.count + other.count,
            _few(self.sums + other.sums),
            min(self.least, other.least),
            max(self.most, other.most),
            {name: _few(self.leaves[name] + other.leaves[name]) for name in self.leaves if name in other.leaves},
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
        """The mean of `Calculated.windows`; None if it is unknown, or does not matter."""
        total, count = self.windows
        return total / count if count else None

    def of_sums(self, node: formula.Node, terms: Mapping[str, formula.Node]) -> float | None:
        """Return the value of a formula for all dispatches together: for a ratio, the ratio of the sums."""
        if not self.count:
            return None
        means = {name: math.fsum(sums) / self.count for name, sums in self.leaves.items()}
        value = float(formula.evaluate(node, means.__getitem__, terms))
        return None if math.isnan(value) else value


_REDUCED = ("sum", "max", "min", "avr")


@cache
def bundled(architecture: str) -> Mapping[str, str]:
    """Return the derived counters of an architecture: name -> formula.

    >>> bundled("gfx942")["FetchSize"], "Wavefronts" in bundled("gfx942"), "Wavefronts" in bundled("gfx90a")
    ('FETCH_SIZE', False, True)
    """
    document = tomllib.loads((files("rocpd.counters") / "data" / "derived.toml").read_text(encoding="utf-8"))
    base = architecture.partition(":")[0]
    return {
        name: definition["expression"]
        for name, definitions in document.items()
        for definition in definitions
        if base in definition["architectures"]
    }


class DerivedCalculator:
    """Calculates derived counters of the dispatches of one kind of GPU.

    Args:
        measured: the dispatches.
        hardware: the GPU.
        chosen: rows of its dispatches.

    Attributes:
        expressions: name of each counter -> its formula: the file's, else rocprofv3's for the architecture.
    """

    def __init__(self, measured: Measured, hardware: Hardware, chosen: Ints) -> None:
        self._measured, self._hardware, self._chosen = measured, hardware, chosen
        self.expressions = {**bundled(hardware.name), **measured.expressions}
        self._terms: dict[str, formula.Node] = {}
        self._broken: dict[str, str] = {}
        for name, text in self.expressions.items():
            try:
                self._terms[name] = formula.parse(text)
            except formula.FormulaError as error:
                self._broken[name] = str(error)

    def calculate(self, name: str) -> Calculated | str:
        """Return a derived counter of each dispatch, or why it can't be calculated."""
        if name in self._broken:
            return self._broken[name]
        collected = set().union(*(run.counters for run in self._measured.passes))
        terms = {term: node for term, node in self._terms.items() if term == name or term not in collected}
        try:
            needed = needs(self._terms[name], terms)
        except RecursionError:
            return "it is derived from itself"
        having = {leaf: self._passes_having(leaf) for leaf in needed}
        if missing := [leaf for leaf, runs in having.items() if not runs and leaf not in self._hardware.constants]:
            return f"not there: {' '.join(missing)}"
        having = {leaf: runs for leaf, runs in having.items() if runs}
        common = [run for run in self._measured.passes if all(run in runs for runs in having.values())]
        sources = {leaf: (common or runs)[0] for leaf, runs in having.items()}
        if not sources:
            return "a constant of the GPU"
        if summed := [leaf for leaf in self._reduced(self._terms[name], terms) if self._is_summed(leaf, sources)]:
            return f"the file has sums over instances: {' '.join(summed)}"
        try:
            values = np.asarray(formula.evaluate(self._terms[name], partial(self._leaf, sources), terms), np.float64)
        except (formula.AbstainError, formula.MissingError) as error:
            return str(error)
        if values.ndim == 2 and values.shape[1] > 1:
            return "it has several values for a dispatch"
        of_dispatches = np.broadcast_to(values.reshape(-1), self._measured.count)
        return Calculated(of_dispatches[self._chosen], passes=len({id(run) for run in sources.values()}) or 1)

    def collected(self, name: str) -> Calculated:
        """Return the values that the profiler calculated itself; without values if it did not."""
        rows = next((run.counters[name] for run in self._measured.passes if name in run.counters), None)
        return Calculated(rows.summed(self._measured.count)[self._chosen] if rows else None)

    def _leaf(self, sources: Mapping[str, Pass], name: str) -> formula.Value:
        """Return a constant of the GPU, or a counter with a column for each instance."""
        if name not in sources:
            return self._hardware.constants[name]
        if (counted := _find(sources[name], name)) is None:
            raise formula.MissingError(name)
        counter, reduction = counted
        instances = counter.instances(self._measured.count)
        return formula.reduced(instances, reduction) if reduction else instances

    def _passes_having(self, name: str) -> list[Pass]:
        """Return the passes with a counter, first those that have it under exactly this name."""
        runs = [run for run in self._measured.passes if _find(run, name)]
        return sorted(runs, key=lambda run: name not in run.counters)

    def _reduced(self, node: formula.Node, terms: Mapping[str, formula.Node]) -> Iterator[str]:
        """Yield the counters whose largest, smallest or mean instance a formula takes."""
        match node:
            case ast.Call(ast.Name("reduce"), [ast.Name(name), ast.Name(how), *_]) if how != "sum":
                yield name
            case ast.Name(name) if name in terms:
                yield from self._reduced(terms[name], terms)
            case _:
                for part in formula.parts(node):
                    yield from self._reduced(part, terms)

    def _is_summed(self, name: str, sources: Mapping[str, Pass]) -> bool:
        """Whether the file has one value for several instances; GRBM has one for each XCC."""
        rows = sources[name].counters.get(name) if name in sources else None
        if rows is None or len(rows.rows) != len(np.unique(rows.rows)):
            return False
        return not name.startswith("GRBM_") or self._hardware.constants.get("xcc", 2) > 1


def _find(run: Pass, name: str) -> tuple[CounterRows, str] | None:
    """Return a counter and the reduction of its instances, for names such as `TCC_HIT_sum`."""
    if name.startswith("ACC("):
        rows = run.find(name)
        return (rows, "") if rows else None
    if name in run.counters:
        return run.counters[name], ""
    base, _, reduction = name.rpartition("_")
    return (run.counters[base], reduction) if reduction in _REDUCED and base in run.counters else None
