"""The counters of dispatches, pass by pass, and the join of the passes of one program.

A GPU counts few things at a time, so a program runs several times; the k-th dispatch of a kernel with the same sizes is
the same in each. Values of instances stay apart until a formula adds them up. Nothing is read here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from rocpd.base.frozen import frozen
from rocpd.base.types import Floats, Ints
from rocpd.counters.definitions import Hardware

SIZES = ("grid_size", "workgroup_size", "lds_bytes", "scratch_bytes", "arch_vgpr", "accum_vgpr", "sgpr")
"""Sizes that are known of a dispatch without counting, as formulas call them."""

ACCUMULATOR = "SQ_ACCUM_PREV_HIRES"
"""The counter that adds up a level counter, that of the same pass, cycle by cycle."""


@frozen
class CounterRows:
    """Values of a counter: which dispatch each is of, in the order of dispatches, and the value of an instance."""

    rows: Ints
    values: Floats

    def summed(self, count: int) -> Floats:
        """Return the sum over instances for each of `count` dispatches, NaN without a value."""
        sums = np.bincount(self.rows, self.values, count).astype(np.float64)
        sums[np.bincount(self.rows, minlength=count) == 0] = np.nan
        return sums

    def instances(self, count: int) -> Floats:
        """Return a row for each dispatch with its instances, NaN where it has fewer."""
        numbers = np.bincount(self.rows, minlength=count)
        matrix = np.full((count, max(1, int(numbers.max(initial=0)))), np.nan)
        order = np.argsort(self.rows, kind="stable")
        rows = self.rows[order]
        matrix[rows, np.arange(len(rows)) - (np.cumsum(numbers) - numbers)[rows]] = self.values[order]
        return matrix

    def moved(self, to: Ints) -> CounterRows:
        """Return the values of other numbers of dispatches: `to[row]`, without those where it is below 0."""
        rows = to[self.rows]
        kept = rows >= 0
        return CounterRows(rows[kept], self.values[kept])


@frozen
class Pass:
    """One run of the program.

    Args:
        counters: what it measured, by name; of `X[0]`, `X[1]` … only X.
        durations: of dispatches in this run [ns], NaN where it is not known; None: not recorded.
        collected: how many counters were asked for.
    """

    counters: Mapping[str, CounterRows]
    durations: Floats | None = None
    collected: int = 0

    def find(self, name: str) -> CounterRows | None:
        """Return a counter by the name that formulas use: X_sum is X; `ACC(X)` what was accumulated of X."""
        if name.startswith("ACC("):
            level = name[4:-1]
            known = self.counters.get(f"{level}_ACCUM")
            return known or (self.counters.get(ACCUMULATOR) if level in self.counters else None)
        return self.counters.get(name) or self.counters.get(name.removesuffix("_sum"))


@frozen
class Measured:
    """Dispatches and what was measured of them.

    Args:
        kernels: for each dispatch the index of its kernel in `names`.
        names: of kernels.
        numbers: of dispatches, as the profiler counts them.
        gpus: for each dispatch the index of its GPU in `hardware`, and `agents`: the id of the agent in the file.
        sizes: by the names of `SIZES`, NaN where unknown.
        durations: of dispatches [ns], NaN where times are invalid.
        passes: in the order in which they ran.
        hardware: the kinds of GPU.
        unmatched: dispatches of passes that have no counterpart in the others.
        expressions: derived counter -> its formula, as the file has it.
    """

    kernels: Ints
    names: tuple[str | None, ...]
    numbers: Ints
    gpus: Ints
    agents: Ints
    sizes: Mapping[str, Floats]
    durations: Floats
    passes: tuple[Pass, ...]
    hardware: tuple[Hardware, ...]
    unmatched: int = 0
    expressions: Mapping[str, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many dispatches."""
        return len(self.kernels)

    def typical_durations(self, is_weighted: bool = False) -> Floats:
        """Return the median over passes, where all say how long they took, else that of the dispatch [ns].

        Args:
            is_weighted: a pass counts as often as it has counters, as in rocprof-compute.
        """
        times = [run.durations for run in self.passes if run.durations is not None]
        if not times or len(times) < len(self.passes):
            return self.durations
        repeats = [max(1, run.collected) if is_weighted else 1 for run in self.passes]
        spread = np.repeat(np.array(times), repeats, axis=0)
        known = ~np.isnan(spread).all(axis=0)
        medians = self.durations.copy()
        medians[known] = np.nanmedian(spread[:, known], axis=0)
        return medians

    def keys_of_dispatches(self) -> list[tuple[object, ...]]:
        """Return what a dispatch is known by in every pass: kernel, sizes, and which one of these it is."""
        sizes = [self.sizes[name].tolist() for name in ("grid_size", "workgroup_size", "lds_bytes")]
        seen: dict[tuple[object, ...], int] = {}
        keys: list[tuple[object, ...]] = []
        for kernel, *launched in zip(self.kernels.tolist(), *sizes, strict=True):
            key = (self.names[kernel], *launched)
            seen[key] = seen.get(key, -1) + 1
            keys.append((*key, seen[key]))
        return keys


def joined(runs: Sequence[Measured]) -> Measured:
    """Return the passes of one program as one; the dispatches are those of the run with most of them.

    Dispatches of each run stand in the order in which they started.
    """
    base = max(runs, key=lambda run: run.count)
    place = {key: row for row, key in enumerate(base.keys_of_dispatches())}
    passes: list[Pass] = []
    unmatched = 0
    for run in runs:
        to = np.array([place.get(key, -1) for key in run.keys_of_dispatches()], np.int64)
        unmatched += int(np.count_nonzero(to < 0))
        passes += (_moved(one, run, to, base.count) for one in run.passes)
    expressions = {name: text for run in runs for name, text in run.expressions.items()}
    return replace(base, passes=tuple(passes), unmatched=unmatched, expressions=expressions)


def _moved(one: Pass, run: Measured, to: Ints, count: int) -> Pass:
    durations = np.full(count, np.nan)
    known = run.durations if one.durations is None else one.durations
    durations[to[to >= 0]] = known[to >= 0]
    return Pass({name: rows.moved(to) for name, rows in one.counters.items()}, durations, one.collected)


def by_name(values: Iterable[tuple[str, Ints, Floats]]) -> dict[str, CounterRows]:
    """Return counters by name; `X[0]`, `X[1]` … are instances of X."""
    parts: dict[str, list[tuple[Ints, Floats]]] = {}
    for name, rows, numbers in values:
        parts.setdefault(name.partition("[")[0], []).append((rows, numbers))
    return {
        name: CounterRows(np.concatenate([rows for rows, _ in some]), np.concatenate([numbers for _, numbers in some]))
        for name, some in parts.items()
    }
