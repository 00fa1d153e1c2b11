"""The counters of dispatches, pass by pass, the join of the passes of one program, and the plan of passes.

A GPU has few counters at a time, so a program runs several times; the k-th dispatch of a kernel with the same sizes is
the same in each run. Values of instances stay separate until a formula adds them up. A block has a few counters at a
time (rocprof-compute's `perfmon_config`), and accumulates one level counter: all counters of a metric go into one run
if they fit, as ratios between two runs are meaningless. Reads no file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from rocpd.base import Floats, Ints, by_key, frozen
from rocpd.counters.definitions import Hardware

SIZES = ("grid_size", "workgroup_size", "lds_bytes", "scratch_bytes", "arch_vgpr", "accum_vgpr", "sgpr")
"""Sizes of a dispatch that are known without counting, by their names in formulas."""

ACCUMULATOR = "SQ_ACCUM_PREV_HIRES"
"""The counter that adds up the level counter of the same pass, cycle by cycle."""


@frozen
class CounterRows:
    """Values of instances of a counter, and the row of the dispatch of each, in the order of dispatches."""

    rows: Ints
    values: Floats

    def summed(self, count: int) -> Floats:
        """Return the sum over instances for each of `count` dispatches, NaN without a value."""
        sums = np.bincount(self.rows, self.values, count).astype(np.float64)
        sums[np.bincount(self.rows, minlength=count) == 0] = np.nan
        return sums

    def instances(self, count: int) -> Floats:
        """Return a row for each dispatch with its instances, filled up with NaN."""
        numbers = np.bincount(self.rows, minlength=count)
        matrix = np.full((count, max(1, int(numbers.max(initial=0)))), np.nan)
        order = np.argsort(self.rows, kind="stable")
        rows = self.rows[order]
        matrix[rows, np.arange(len(rows)) - (np.cumsum(numbers) - numbers)[rows]] = self.values[order]
        return matrix

    def moved(self, to: Ints) -> CounterRows:
        """Return the values with other rows of dispatches: `to[row]`, without those below 0."""
        rows = to[self.rows]
        kept = rows >= 0
        return CounterRows(rows[kept], self.values[kept])


def recorded_name(name: str, counters: Container[str]) -> str | None:
    """Return the counter of a pass that has a name in formulas; None if it has none.

    >>> recorded_name("TCC_HIT_sum", {"TCC_HIT"}), recorded_name("ACC(SQ_LEVEL_WAVES)", {"SQ_LEVEL_WAVES_ACCUM"})
    ('TCC_HIT', 'SQ_LEVEL_WAVES_ACCUM')
    >>> recorded_name("ACC(SQ_LEVEL_WAVES)", {ACCUMULATOR, "SQ_LEVEL_WAVES"}), recorded_name("ACC(X)", {ACCUMULATOR})
    ('SQ_ACCUM_PREV_HIRES', None)
    """
    possible = [name, name.removesuffix("_sum")]
    if name.startswith("ACC("):
        level = name[4:-1]
        possible = [f"{level}_ACCUM", *([ACCUMULATOR] if level in counters else [])]
    return next((known for known in possible if known in counters), None)


@frozen
class Pass:
    """One run of the program.

    Args:
        counters: its counters by name; `X[0]`, `X[1]` … are together under X.
        durations: durations of dispatches in this run [ns], NaN where unknown; None: not recorded.
        collected: number of counters that were asked for.
    """

    counters: Mapping[str, CounterRows]
    durations: Floats | None = None
    collected: int = 0

    def find(self, name: str) -> CounterRows | None:
        """Return a counter by its name in formulas."""
        known = recorded_name(name, self.counters)
        return self.counters[known] if known else None


@frozen
class Measured:
    """Dispatches and their measured counters.

    Args:
        kernels: index in `names` of each dispatch's kernel.
        names: names of kernels.
        numbers: numbers of dispatches, as the profiler counts them.
        gpus: index in `hardware` of each dispatch's GPU; `agents`: id of its agent in the file.
        sizes: sizes of dispatches by the names of `SIZES`, NaN where unknown.
        durations: durations of dispatches [ns], NaN where times are invalid.
        passes: the passes, in the order in which they ran.
        hardware: the kinds of GPU.
        unmatched: number of dispatches of passes without counterpart in the others.
        expressions: derived counter -> its formula in the file.
        times: kernel -> time of its dispatches, including those without counters [ns].
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
        """Number of dispatches."""
        return len(self.kernels)

    def typical_durations(self, is_weighted: bool = False) -> Floats:
        """Return the median duration over passes, if all have durations, else the dispatch's duration [ns].

        Args:
            is_weighted: a pass counts once for each of its counters, as in rocprof-compute.
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
        """Return the key of each dispatch, the same in every pass: kernel, sizes, and its place among these."""
        sizes = [self.sizes[name].tolist() for name in ("grid_size", "workgroup_size", "lds_bytes")]
        seen, keys = Counter[tuple[object, ...]](), list[tuple[object, ...]]()
        for kernel, *launched in zip(self.kernels.tolist(), *sizes, strict=True):
            key = (self.names[kernel], *launched)
            keys.append((*key, seen[key]))
            seen[key] += 1
        return keys


def joined(runs: Sequence[Measured]) -> Measured:
    """Return the passes of one program joined; the dispatches are those of the run with most dispatches.

    The dispatches of each run are in the order of their starts.
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
"""The counter of every run: cycles show whether the times of two runs compare."""

_SLOTS: Mapping[str, int] = {
    "SQ": 8, "TA": 2, "TD": 2, "TCP": 4, "TCC": 4, "CPC": 2, "CPF": 2, "SPI": 6, "GRBM": 2,
}  # fmt: skip


def block_of(counter: str) -> str:
    """Return the hardware block of a counter.

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
        """Return the run with further counters; None if they do not fit."""
        counters = tuple(dict.fromkeys((*self.counters, *names)))
        used = Counter(map(block_of, counters))
        levels = [name for name in counters if "_LEVEL" in name and block_of(name) == "SQ"]
        fits = all(count <= _SLOTS.get(block, 1) for block, count in used.items())
        return CollectingRun(counters) if fits and (ACCUMULATOR not in counters or len(levels) == 1) else None

    @property
    def line(self) -> str:
        """The option of rocprofv3."""
        return f"--pmc {' '.join(self.counters)}"


def collecting_runs(metrics: Iterable[Sequence[str]], known: Container[str] = ()) -> list[CollectingRun]:
    """Return the runs that collect the counters of metrics, given by their names in formulas.

    Metrics whose counters are all known need no run.

    >>> [run.line for run in collecting_runs([["TCC_HIT_sum", "TCC_MISS_sum"], ["ACC(SQ_LEVEL_WAVES)"]])]
    ['--pmc GRBM_GUI_ACTIVE TCC_HIT_sum TCC_MISS_sum SQ_ACCUM_PREV_HIRES SQ_LEVEL_WAVES']
    """
    runs: list[CollectingRun] = []
    for needed in metrics:
        if all(recorded_name(name, known) for name in needed):
            continue
        together = tuple(dict.fromkeys(name for part in needed for name in _collected(part)))
        for names in (together,) if CollectingRun().with_counters(together) else map(_collected, needed):
            _place(runs, names)
    return runs


def _collected(name: str) -> tuple[str, ...]:
    return (ACCUMULATOR, name[4:-1]) if name.startswith("ACC(") else (name,)


def _place(runs: list[CollectingRun], names: tuple[str, ...]) -> None:
    """Put counters into the first run with room for them, else into a new run, unless a run has them already."""
    if any(set(names) <= set(run.counters) for run in runs):
        return
    for place, run in enumerate(runs):
        if grown := run.with_counters(names):
            runs[place] = grown
            return
    runs.append(CollectingRun().with_counters(names) or CollectingRun((CYCLES, *names)))
