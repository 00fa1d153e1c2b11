"""The counters of dispatches, pass by pass, the join of the passes of one program, and the plan of such passes.

A GPU counts few things at a time, so a program runs several times; the k-th dispatch of a kernel with the same sizes is
the same in each. Values of instances stay apart until a formula adds them up. A block counts a few things at a time
(rocprof-compute's `perfmon_config`), and accumulates one level counter: whatever a metric needs goes into one run where
it fits, as a ratio of two runs is none. Nothing is read here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from rocpd.base import Floats, Ints, by_key, frozen
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
        times: kernel -> time of its dispatches, those without counters too [ns].
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
    times: Mapping[str | None, int] = field(default_factory=dict)

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
        if len(times) == 1:
            return np.where(np.isnan(times[0]), self.durations, times[0])
        repeats = [max(1, run.collected) if is_weighted else 1 for run in self.passes]
        spread = np.repeat(np.array(times), repeats, axis=0)
        known = ~np.isnan(spread).all(axis=0)
        medians = self.durations.copy()
        medians[known] = np.nanmedian(spread[:, known], axis=0)
        return medians

    def keys_of_dispatches(self) -> list[tuple[object, ...]]:
        """Return what a dispatch is known by in every pass: kernel, sizes, and which one of these it is."""
        sizes = [self.sizes[name].tolist() for name in ("grid_size", "workgroup_size", "lds_bytes")]
        seen, keys = Counter[tuple[object, ...]](), list[tuple[object, ...]]()
        for kernel, *launched in zip(self.kernels.tolist(), *sizes, strict=True):
            key = (self.names[kernel], *launched)
            keys.append((*key, seen[key]))
            seen[key] += 1
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
        passes += (_moved(pass_, run, to, base.count) for pass_ in run.passes)
    expressions = {name: text for run in runs for name, text in run.expressions.items()}
    return replace(base, passes=tuple(passes), unmatched=unmatched, expressions=expressions)


def _moved(pass_: Pass, run: Measured, to: Ints, count: int) -> Pass:
    durations = np.full(count, np.nan)
    known = run.durations if pass_.durations is None else pass_.durations
    durations[to[to >= 0]] = known[to >= 0]
    return Pass({name: rows.moved(to) for name, rows in pass_.counters.items()}, durations, pass_.collected)


def by_name(values: Iterable[tuple[str, Ints, Floats]]) -> dict[str, CounterRows]:
    """Return counters by name; `X[0]`, `X[1]` … are instances of X."""
    parts = by_key((name.partition("[")[0], (rows, numbers)) for name, rows, numbers in values)
    return {
        name: CounterRows(np.concatenate([rows for rows, _ in some]), np.concatenate([numbers for _, numbers in some]))
        for name, some in parts.items()
    }


CYCLES = "GRBM_GUI_ACTIVE"
"""Goes into every run: cycles say whether the times of two runs compare."""

_SLOTS: Mapping[str, int] = {
    "SQ": 8, "TA": 2, "TD": 2, "TCP": 4, "TCC": 4, "CPC": 2, "CPF": 2, "SPI": 6, "GRBM": 2,
}  # fmt: skip


def block_of(counter: str) -> str:
    """Return the block that counts.

    >>> block_of("SQC_DCACHE_HITS"), block_of("TCC_EA0_RDREQ_sum"), block_of("GRBM_COUNT")
    ('SQ', 'TCC', 'GRBM')
    """
    block = counter.partition("_")[0]
    return "SQ" if block == "SQC" else block


@frozen
class CollectingRun:
    """Counters of one run of the program."""

    counters: tuple[str, ...] = (CYCLES,)

    def with_counters(self, names: Iterable[str]) -> CollectingRun | None:
        """Return the run with further counters; None: they do not fit."""
        counters = tuple(dict.fromkeys((*self.counters, *names)))
        used = Counter(map(block_of, counters))
        levels = [name for name in counters if "_LEVEL" in name and block_of(name) == "SQ"]
        fits = all(count <= _SLOTS.get(block, 1) for block, count in used.items())
        return CollectingRun(counters) if fits and (ACCUMULATOR not in counters or len(levels) == 1) else None

    @property
    def line(self) -> str:
        """The option of rocprofv3."""
        return f"--pmc {' '.join(self.counters)}"


def collecting_runs(metrics: Iterable[Iterable[str]]) -> list[CollectingRun]:
    """Return the runs that collect what metrics need, by the names that their formulas use.

    >>> [run.line for run in collecting_runs([["TCC_HIT_sum", "TCC_MISS_sum"], ["ACC(SQ_LEVEL_WAVES)"]])]
    ['--pmc GRBM_GUI_ACTIVE TCC_HIT_sum TCC_MISS_sum SQ_ACCUM_PREV_HIRES SQ_LEVEL_WAVES']
    """
    runs: list[CollectingRun] = []
    for needed in metrics:
        together = tuple(dict.fromkeys(name for part in needed for name in _collected(part)))
        for names in (together,) if CollectingRun().with_counters(together) else map(_collected, needed):
            _place(runs, names)
    return runs


def _collected(name: str) -> tuple[str, ...]:
    return (ACCUMULATOR, name[4:-1]) if name.startswith("ACC(") else (name,)


def _place(runs: list[CollectingRun], names: tuple[str, ...]) -> None:
    """Put counters into the first run with room for them, or else into a new one, unless a run has them."""
    if any(set(names) <= set(run.counters) for run in runs):
        return
    for place, run in enumerate(runs):
        if grown := run.with_counters(names):
            runs[place] = grown
            return
    runs.append(CollectingRun().with_counters(names) or CollectingRun((CYCLES, *names)))
