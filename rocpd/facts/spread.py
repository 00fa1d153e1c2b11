"""Exact sums and distributions of durations, mergeable in any order: parts of a job add up to the whole.

All sums are Python integers; only the last division of mean and deviation rounds. Medians and percentiles of parts
can't be merged, so a distribution holds every value with its number of occurrences.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from rocpd.base import Ints, frozen
from rocpd.facts.columns import filled


@frozen
class Moments:
    """Statistics of a group of events.

    Args:
        calls: number of events.
        timed: number of events with a known duration.
        total: sum of durations [ns].
        shortest, longest: extremes [ns], None when nothing is timed.
        squares: sum of squared durations [ns²].
    """

    calls: int = 0
    timed: int = 0
    total: int = 0
    shortest: int | None = None
    longest: int | None = None
    squares: int = 0

    def __add__(self, other: Moments) -> Moments:
        return Moments(
            self.calls + other.calls,
            self.timed + other.timed,
            self.total + other.total,
            min((x for x in (self.shortest, other.shortest) if x is not None), default=None),
            max((x for x in (self.longest, other.longest) if x is not None), default=None),
            self.squares + other.squares,
        )

    @property
    def mean(self) -> float | None:
        """Mean duration [ns]; None when nothing is timed."""
        return self.total / self.timed if self.timed else None

    @property
    def deviation(self) -> float | None:
        """Sample deviation (n - 1) [ns]; None for fewer than two events.

        >>> Moments(2, 2, 30, 10, 20, 500).deviation
        7.0710678118654755
        """
        if self.timed < 2:
            return None
        numerator = self.timed * self.squares - self.total * self.total
        return math.sqrt(numerator / (self.timed * (self.timed - 1)))


_PENDING = 1 << 17  # values that wait, as they come, until equal ones are counted together
_SMALL = 1 << 12  # values of a distribution that is settled together with others
_PARTS = 64  # arrays of waiting values: in a thousand small arrays, most memory would be overhead
_BINS = 12  # of a distribution in a cell
_SHOWN = 100  # rows of a table that have a distribution
_HALF = 1 << 31
_LOW = _HALF - 1
_MOST = np.iinfo(np.int64).max
_EMPTY: Ints = np.empty(0, np.int64)


class Spread:
    """Durations of a group of events [ns], and the number of all events, with those of invalid timestamps."""

    __slots__ = ("_counts", "_moments", "_pending", "_running", "_values", "_waiting", "calls")  # thousands are held

    def __init__(self, calls: int = 0, values: Ints = _EMPTY, counts: Ints = _EMPTY) -> None:
        self.calls = calls
        self._values = values
        self._counts = counts
        self._pending: list[tuple[Ints, Ints]] = []
        self._waiting = 0
        self._moments: tuple[Ints, Moments] | None = None  # the values, and their moments
        self._running: tuple[Ints, Ints] | None = None  # the values, and the running sum of their counts

    @classmethod
    def of(cls, durations: Ints, calls: int | None = None) -> Spread:
        """Return the distribution of durations; `calls`: number of all events, if some have invalid timestamps."""
        spread = cls()
        spread.add(durations, calls)
        return spread

    def add(self, durations: Ints, calls: int | None = None) -> None:
        """Add durations; arguments as for `of`."""
        self.calls += len(durations) if calls is None else calls
        self._await(durations, filled(len(durations), 1))

    @staticmethod
    def settle(spreads: Iterable[Spread]) -> None:
        """Count equal values together, and calculate moments, of thousands of small distributions at once."""
        small = [spread for spread in spreads if spread._pending and spread._waiting + len(spread._values) < _SMALL]
        if not small:
            return
        parts = [part for spread in small for part in ((spread._values, spread._counts), *spread._pending)]
        values, counts = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
        of = np.repeat(np.arange(len(small)), [spread._waiting + len(spread._values) for spread in small])
        order = np.lexsort((values, of))
        values, counts, of = values[order], counts[order], of[order]
        first = np.concatenate([[True], (values[1:] != values[:-1]) | (of[1:] != of[:-1])]).nonzero()[0]
        values, counts, of = values[first], np.add.reduceat(counts, first), of[first]
        groups = np.searchsorted(of, np.arange(len(small)))  # none is empty: only values wait
        fits = np.add.reduceat(counts, groups) < _HALF
        fits &= np.maximum.reduceat(values, groups) < _HALF
        squares = values * values
        sums = (counts, values * counts, (squares >> 31) * counts, (squares & _LOW) * counts)
        columns = [np.add.reduceat(column, groups).tolist() for column in sums]
        edges = [*groups.tolist(), len(values)]
        rows = zip(small, pairwise(edges), fits.tolist(), *columns, strict=True)
        for spread, (low, high), is_exact, timed, total, upper, lower in rows:
            spread._values, spread._counts, spread._pending, spread._waiting = values[low:high], counts[low:high], [], 0
            if is_exact:
                extremes = int(values[low]), int(values[high - 1])
                moments = Moments(spread.calls, timed, total, *extremes, (upper << 31) + lower)
                spread._moments = spread._values, moments

    @classmethod
    def sum(cls, spreads: Iterable[Spread]) -> Spread:
        """Return the sum of distributions; adding them up one by one would copy the sum each time."""
        both, parts, waiting = cls(), list[tuple[Ints, Ints]](), 0
        for spread in spreads:
            both.calls += spread.calls
            waiting += spread._waiting + len(spread._values)
            if len(spread._values):
                parts.append((spread._values, spread._counts))
            parts += spread._pending
        if len(parts) <= _PARTS and waiting <= _PENDING:
            both._pending, both._waiting = parts, waiting
        else:
            for values, counts in parts:
                both._await(values, counts)
        return both

    def __add__(self, other: Spread) -> Spread:
        both = Spread()
        both.calls = self.calls + other.calls
        both._values, both._counts, both._waiting = self._values, self._counts, self._waiting
        both._pending = list(self._pending)
        for values, counts in ((other._values, other._counts), *other._pending):
            both._await(values, counts)
        return both

    def parts(self) -> tuple[int, Ints, Ints]:
        """Return the arguments of an equal object."""
        return (self.calls, *self.distribution())

    def __reduce__(self) -> tuple[type[Spread], tuple[int, Ints, Ints]]:
        """Return the pickled parts: equal values once."""
        return Spread, self.parts()

    @property
    def timed(self) -> int:
        """Number of events with a duration."""
        return int(self._counts.sum()) + sum(int(counts.sum()) for _, counts in self._pending)

    def distribution(self) -> tuple[Ints, Ints]:
        """Return the distinct durations in order, and the number of occurrences of each."""
        self._settle()
        return self._values, self._counts

    def _await(self, values: Ints, counts: Ints) -> None:
        if len(values):
            self._pending.append((values, counts))
            self._waiting += len(values)
            if self._waiting > max(_PENDING, len(self._values)):
                self._settle()
            elif len(self._pending) > _PARTS:
                values, counts = map(np.concatenate, zip(*self._pending, strict=True))
                self._pending = [(values, counts)]

    def _settle(self) -> None:
        if self._pending:
            pending = [(self._values, self._counts), *self._pending]
            self._pending, self._waiting = [], 0
            values, counts = (np.concatenate(parts) for parts in zip(*pending, strict=True))
            order = np.argsort(values, kind="stable")
            values, counts = values[order], counts[order]
            first = np.concatenate([[True], values[1:] != values[:-1]]).nonzero()[0]
            self._values, self._counts = values[first], np.add.reduceat(counts, first)

    @property
    def moments(self) -> Moments:
        """Exact moments of all durations."""
        values, counts = self.distribution()
        if not len(values):
            return Moments(self.calls)
        if self._moments is None or self._moments[0] is not values or self._moments[1].calls != self.calls:
            total, squares = _sums(values, counts)
            timed = int(counts.sum())
            self._moments = values, Moments(self.calls, timed, total, int(values[0]), int(values[-1]), squares)
        return self._moments[1]

    def counts(self, bins: int) -> tuple[int, ...]:
        """Return the number of durations in each of `bins` bins of equal ratios, from the shortest to the longest.

        A single bin with all of them, if they are equal.
        """
        values, counts = self.distribution()
        if not len(values):
            return ()
        logs = np.log(np.maximum(values, 1))
        if not (span := float(logs[-1] - logs[0])):
            return (int(counts.sum()),)
        at = np.minimum((logs - logs[0]) / span * bins, bins - 1).astype(np.int64)
        return tuple(np.bincount(at, counts, bins).astype(np.int64).tolist())

    def quantile(self, share: float) -> float | None:
        """Return the value below which `share` of the durations lie, linearly interpolated between two of them [ns].

        The formula is that of `pandas.Series.quantile`: position share · (n - 1) in the sorted durations.
        """
        values, counts = self.distribution()
        if not len(values):
            return None
        if self._running is None or self._running[0] is not values:
            self._running = values, np.cumsum(counts)
        last = self._running[1]
        position = share * (int(last[-1]) - 1)
        below = int(position)
        part = position - below
        low, high = (int(values[last.searchsorted(at, side="right")]) for at in (below, below + bool(part)))
        return low + (high - low) * part


def counts_of(spreads: Iterable[Spread]) -> list[tuple[int, ...]]:
    """Return the counts of the first distributions of a table, as many as a screen shows."""
    return [spread.counts(_BINS) for spread in itertools.islice(spreads, _SHOWN)]


def spreads_by_group(durations: Ints, first: Ints) -> list[Spread]:
    """Return the distributions of groups of events; arguments as for `moments_by_group`."""
    groups = [durations[low:high] for low, high in pairwise([*first.tolist(), len(durations)])]
    if int(durations.min(initial=0)) >= 0:
        return [Spread.of(group) for group in groups]
    return [Spread.of(group[group >= 0], len(group)) for group in groups]


def moments_by_group(durations: Ints, first: Ints) -> list[Moments]:
    """Return the exact moments of groups of at least one event, with the events of a group next to each other.

    Args:
        durations: duration of each event [ns]; -1 where timestamps are invalid.
        first: first row of each group.
    """
    calls = np.diff(first, append=len(durations))
    known = durations >= 0
    times = np.where(known, durations, 0)
    squares = times * times
    sums = (np.add.reduceat(each, first).tolist() for each in (known, times, squares >> 31, squares & _LOW))
    longest = np.maximum.reduceat(durations, first)
    shortest = np.minimum.reduceat(np.where(known, durations, _MOST), first)
    moments = [
        Moments(count, timed, total, least, most, (high << 31) + low) if timed else Moments(count)
        for count, timed, total, high, low, least, most in zip(
            calls.tolist(), *sums, shortest.tolist(), longest.tolist(), strict=True
        )
    ]
    for group in (longest >= _HALF).nonzero()[0].tolist():  # its squares don't fit into 64 bits
        members = durations[first[group] : first[group] + calls[group]]
        moments[group] = Spread.of(members[members >= 0], len(members)).moments
    return moments


def total(values: Ints) -> int:
    """Return the sum of whole numbers from 0, without overflow: a damaged end makes a duration of 292 years."""
    return int(values.sum()) if int(values.max(initial=0)) * len(values) <= _MOST else sum(values.tolist())


def _sums(values: Ints, counts: Ints) -> tuple[int, int]:
    """Return the sums of values and their squares, exactly: by 64-bit integers where they suffice, else by Python's."""
    if int(counts.sum()) < _HALF and int(values.max()) < _HALF:
        squares = values * values
        return int(values @ counts), (int((squares >> 31) @ counts) << 31) + int((squares & _LOW) @ counts)
    pairs = list(zip(values.tolist(), counts.tolist(), strict=True))
    return sum(value * count for value, count in pairs), sum(value * value * count for value, count in pairs)
