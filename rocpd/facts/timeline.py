"""Arithmetic of times in whole nanoseconds: unions of intervals, division of their time, values over time. Pure.

An interval is [start, end). A union is a pair of arrays, sorted, disjoint and not touching; intervals without length
vanish in it. The shares of intervals add up to their union exactly: of two that overlap, the first one has the time.
Where operations overlap on an agent, compute has it, then communication, then copies; within one kind the operation
that started first. Other operations that run meanwhile are hidden.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from rocpd.base import Flags, Ints, frozen

Union: TypeAlias = tuple[Ints, Ints]

ALWAYS, FOREVER = np.iinfo(np.int64).min, np.iinfo(np.int64).max
"""Before and after all times [ns]; the first edge of a course is `ALWAYS`."""

_ALWAYS, _FOREVER, _FIRST = np.array([ALWAYS]), np.array([FOREVER]), np.zeros(1, np.int64)

NOTHING: Union = (np.zeros(0, np.int64), np.zeros(0, np.int64))
"""The union of no intervals."""


class Pieces(NamedTuple):
    """Disjoint stretches of time.

    Args:
        of: row of the interval of each piece.
        start, end: [ns].
    """

    of: Ints
    start: Ints
    end: Ints

    @property
    def length(self) -> Ints:
        """Length of each piece [ns]."""
        return self.end - self.start

    @classmethod
    def each(cls, start: Ints, end: Ints) -> Pieces:
        """Return intervals as pieces of themselves."""
        return cls(np.arange(len(start)), start, end)

    def take(self, rows: Ints | Flags) -> Pieces:
        """Return some of the pieces."""
        return Pieces(self.of[rows], self.start[rows], self.end[rows])

    def within(self, low: int, high: int) -> Pieces:
        """Return the parts between two times [ns]."""
        if not len(self.start) or (low <= self.start.min() and self.end.max() <= high):
            return self
        cut = Pieces(self.of, np.maximum(self.start, low), np.minimum(self.end, high))
        return cut.take(cut.end > cut.start)


def union(start: Ints, end: Ints) -> Union:
    """Return the union of intervals in any order; intervals that touch become one.

    >>> [a.tolist() for a in union(np.array([5, 0, 2, 9]), np.array([7, 2, 4, 9]))]
    [[0, 5], [4, 7]]
    """
    is_lasting = end > start
    start, end = start[is_lasting], end[is_lasting]
    if not len(start):
        return start, end
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    last = (start[1:] > end[:-1]).nonzero()[0]  # of all but the last part
    return start[np.concatenate((_FIRST, last + 1))], end[np.concatenate((last, [len(end) - 1]))]


def length(parts: Union) -> int:
    """Return the total length of a union [ns]."""
    return int((parts[1] - parts[0]).sum())


def unite(first: Union, second: Union) -> Union:
    """Return the union of two unions."""
    return union(np.concatenate([first[0], second[0]]), np.concatenate([first[1], second[1]]))


def covered(parts: Union, times: Ints) -> Ints:
    """Return the length of the part of a union before each of `times` [ns]."""
    start, end = parts
    if not len(start):
        return np.zeros(times.shape, np.int64)
    before = np.concatenate([[0], np.cumsum(end - start)])
    index = np.searchsorted(start, times, side="right")
    inside = np.where(index > 0, np.minimum(times, end[index - 1]) - start[index - 1], 0)
    return np.where(index > 0, before[np.maximum(index - 1, 0)] + inside, 0)


def owned(start: Ints, end: Ints) -> Pieces:
    """Divide the union of intervals among them: each has the time that no interval started before it covers.

    >>> [column.tolist() for column in owned(np.array([0, 2, 3, 9]), np.array([5, 4, 8, 9]))]
    [[0, 2], [0, 5], [5, 8]]
    """
    order = np.lexsort((-end, start))
    first = np.maximum(start[order], _latest_end_before(end[order]))
    has_own = end[order] > first
    return Pieces(order[has_own], first[has_own], end[order][has_own])


def outermost(start: Ints, end: Ints) -> Flags:
    """Return whether each interval starts outside all before it; they come by start, longer ones first.

    >>> outermost(np.array([0, 0, 3, 5]), np.array([5, 2, 4, 9])).tolist()
    [True, False, False, True]
    """
    return start >= _latest_end_before(end)


def _latest_end_before(end: Ints) -> Ints:
    """Return for each interval the latest end of all before it; `ALWAYS` for the first."""
    return np.maximum.accumulate(np.concatenate((_ALWAYS, end)))[:-1]


def divided(pieces: Pieces, edges: Ints) -> tuple[Ints, Pieces]:
    """Cut pieces, which are not empty, at edges in ascending order.

    Returns:
        the number of the edge before each part, -1 before the first edge; and the parts.

    >>> at, cut = divided(Pieces(np.array([7]), np.array([1]), np.array([12])), np.array([3, 5, 9]))
    >>> at.tolist(), [column.tolist() for column in cut]
    ([-1, 0, 1, 2], [[7, 7, 7, 7], [1, 3, 5, 9], [3, 5, 9, 12]])
    """
    if not len(edges):
        return np.full(len(pieces.of), -1), pieces
    first = edges.searchsorted(pieces.start, side="right") - 1
    counts = edges.searchsorted(pieces.end, side="left") - first
    row = np.arange(len(first)).repeat(counts)
    at = np.arange(len(row)) + (first + counts - counts.cumsum())[row]
    bounds = np.concatenate((_ALWAYS, edges, _FOREVER))
    start, end = np.maximum(bounds[at + 1], pieces.start[row]), np.minimum(bounds[at + 2], pieces.end[row])
    return at, Pieces(pieces.of[row], start, end)


def inside(pieces: Pieces, parts: Union) -> tuple[Flags, Pieces]:
    """Cut pieces, which are not empty, at the edges of a union; return whether each part lies in it, and the parts.

    >>> parts = np.array([2, 8]), np.array([4, 9])
    >>> lies_in, cut = inside(Pieces(np.array([7]), np.array([1]), np.array([12])), parts)
    >>> lies_in.tolist(), cut.start.tolist()
    ([False, True, False, True, False], [1, 2, 4, 8, 9])
    """
    at, cut = divided(pieces, np.array(parts).T.ravel())
    lies_in: Flags = at % 2 == 0
    return lies_in, cut


def outside(pieces: Pieces, parts: Union) -> Pieces:
    """Return the parts of pieces, which are not empty, that lie outside a union."""
    if not len(parts[0]):
        return pieces
    lies_in, cut = inside(pieces, parts)
    return cut.take(~lies_in)


def gaps_between(parts: Union, low: int, high: int) -> Union:
    """Return the time between two times [ns] that a union does not cover.

    >>> [a.tolist() for a in gaps_between((np.array([2, 8]), np.array([4, 20])), 0, 10)]
    [[0, 4], [2, 8]]
    """
    start, end = np.concatenate(([low], parts[1])), np.concatenate((parts[0], [high]))
    start, end = (np.minimum(np.maximum(edge, low), high) for edge in (start, end))  # as clip, in half the time
    is_gap = end > start
    return start[is_gap], end[is_gap]


@frozen
class Course:
    """A value for any time, constant from each edge to the next.

    Args:
        edges: times [ns], ascending; the first one is `ALWAYS`.
        values: value from each edge on, as whole numbers.
    """

    edges: Ints
    values: Ints

    @classmethod
    def of(cls, since: Ints, values: Ints, before: int) -> Course:
        """Return the course of changes in order of time, the last of those at one time; `before` is the first value."""
        edges, values = np.concatenate((_ALWAYS, since)), np.concatenate(([before], values))
        last = np.concatenate((edges[1:] != edges[:-1], [True]))
        edges, values = edges[last], values[last]
        changes = np.concatenate(([True], values[1:] != values[:-1]))
        return cls(edges[changes], values[changes])

    def at(self, times: Ints) -> Ints:
        """Return the value at each of some times [ns]."""
        return self.values[np.searchsorted(self.edges, times, side="right") - 1]

    def divide(self, pieces: Pieces) -> tuple[Ints, Pieces]:
        """Cut pieces, which are not empty, where the value changes; return the value of each part, and the parts."""
        if len(self.edges) == 1:
            return np.full(len(pieces.of), self.values[0]), pieces
        at, cut = divided(pieces, self.edges)
        return self.values[at], cut


def waiting(launched: Ints, started: Ints) -> tuple[Ints, Ints]:
    """Return times [ns], ascending, and the number of operations that wait from each time to the next one.

    Args:
        launched: return of the launching call of each operation [ns].
        started: start of each operation [ns]; one that started before its call returned never waits.

    >>> [column.tolist() for column in waiting(np.array([10, 12, 30]), np.array([20, 15, 25]))]
    [[10, 12, 15, 20], [1, 2, 1, 0]]
    """
    waits = started > launched
    launched, started = launched[waits], started[waits]
    times = np.concatenate([launched, started])
    change = np.repeat(np.array([1, -1]), len(launched))
    order = np.argsort(times, kind="stable")
    depth = np.cumsum(change[order])
    times = times[order]
    last = np.append(np.diff(times) > 0, True)[: len(times)]
    return times[last], depth[last]


KINDS = ("compute", "communication", "copy")
"""The kinds of operations of an agent, in the order in which they get the time where they overlap."""

COMPUTE, COMMUNICATION, COPIES = range(3)

EXPOSED_COMMUNICATION, EXPOSED_COPIES = "exposed communication", "exposed copies"

PARTS = ("compute", EXPOSED_COMMUNICATION, EXPOSED_COPIES, "idle")
"""The parts of the time of an agent; all but idle are `KINDS` of operations that no earlier kind hides."""

IDLE = 3
HIDES_COMMUNICATION, HIDES_COPIES = 1, 2


def busy_pieces(start: Ints, end: Ints, kinds: Ints) -> tuple[Pieces, Ints, Ints]:
    """Divide the time of operations of one agent among them.

    Args:
        start, end: of each operation [ns].
        kinds: numbers in `KINDS`.

    Returns:
        pieces in order of time, the number in `PARTS` of each, and the kinds that also run, as `AgentTime.hides`.

    >>> compute, talk = (10, 40), (30, 60)
    >>> pieces, part, hides = busy_pieces(*np.array([compute, talk]).T, np.array([0, 1]))
    >>> pieces.start.tolist(), pieces.end.tolist(), part.tolist(), hides.tolist()
    ([10, 30, 40], [30, 40, 60], [0, 0, 1], [0, 1, 0])
    """
    unions = [union(start[of_kind], end[of_kind]) for of_kind in (kinds == kind for kind in range(len(KINDS)))]
    before, parts = NOTHING, []
    for kind, of_kind in enumerate(unions):
        rows = (kinds == kind).nonzero()[0]
        owners = owned(start[rows], end[rows])
        pieces = outside(Pieces(rows[owners.of], owners.start, owners.end), before)
        hides = np.zeros(len(pieces.of), np.int64)
        for other, bit in ((COMMUNICATION, HIDES_COMMUNICATION), (COPIES, HIDES_COPIES)):
            if other > kind and len(unions[other][0]):
                lies_in, cut = inside(Pieces.each(pieces.start, pieces.end), unions[other])
                hides = hides[cut.of] + bit * lies_in
                pieces = Pieces(pieces.of[cut.of], cut.start, cut.end)
        parts.append((*pieces, np.full(len(pieces.of), kind), hides))
        before = unite(before, of_kind)
    of, start, end, part, hides = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(start, kind="stable")
    return Pieces(of, start, end).take(order), part[order], hides[order]
