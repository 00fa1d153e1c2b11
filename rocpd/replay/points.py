"""Points and edges of graphs, as columns, and their order: each point comes after all that it waits for."""

from __future__ import annotations

import enum
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from rocpd.base import Codes, Flags, Ints, frozen
from rocpd.facts.columns import EqualColumns, filled, runs

_SMALL = tuple((kind, int(np.iinfo(kind).max)) for kind in (np.int8, np.int16, np.int32))


def small(least: int, most: int = 0) -> Any:
    """Return the type of least size that holds all numbers between two, and sums of two of them.

    >>> small(-1, 60).__name__, small(40_000).__name__
    ('int8', 'int32')
    """
    room = max(abs(least), abs(most)) * 2
    return next((kind for kind, largest in _SMALL if room <= largest), np.int64)


def narrowed(column: Any) -> Any:
    """Return whole numbers in as few bytes as hold them, and sums of two of them."""
    return column.astype(small(int(column.min(initial=0)), int(column.max(initial=0))), copy=False)


_BLOCK = 1 << 20  # edges at once


class Point(enum.IntEnum):
    """The kinds of points."""

    HOST = 0  # a call launches or returns; a thread goes on
    STEP = 1  # a step begins or ends
    OPERATION = 2  # an operation ends
    ARRIVAL = 3  # a communication kernel starts
    MEETING = 4  # the last member of a collective has come
    TRANSFER = 5  # a member of a collective ends


class Edge(enum.IntEnum):
    """Why a point waits for another one."""

    PROGRAM = 0
    LAUNCH = 1
    STREAM = 2
    SYNCHRONISED = 3
    BETWEEN_STREAMS = 4
    BETWEEN_THREADS = 5
    COLLECTIVE = 6


INFERRED = (Edge.BETWEEN_STREAMS, Edge.BETWEEN_THREADS)
"""Edges that no record says, but times."""


@frozen
class Points(EqualColumns):
    """Points of a rank, or of a job, in order: each comes after all that it waits for.

    Args:
        time: when it was recorded [ns].
        work: how long it takes from the latest of what it waits for: of an operation, or of the host [ns].
        lag: what is not explained by that [ns].
        kind: number in `Point`.
        rank: number of the rank; -1: of none.
        lane: stream of operations, thread of the host.
        name: number in the names: of an operation, of the call at the end of a piece of host work; -1: none.
        step: number of the step, -1 outside of steps.
        part: number in `KINDS` of an operation; -1: the host.
    """

    time: Ints
    work: Ints
    lag: Ints
    kind: Codes
    rank: Ints
    lane: Ints
    name: Ints
    step: Ints
    part: Codes

    def narrowed(self) -> Points:
        """Return the same in fewer bytes, but for the times."""
        time, *others = self.columns()
        return Points(time, *map(narrowed, others))


@frozen
class Edges(EqualColumns):
    """Edges between points, by their numbers.

    Args:
        source: what is waited for.
        target: what waits.
        lag: how much later the target's work starts, at least [ns].
        kind: number in `Edge`.
    """

    source: Ints
    target: Ints
    lag: Ints
    kind: Codes

    @classmethod
    def of(cls, kind: Edge, source: Ints, target: Ints, lag: Ints | None = None) -> Edges:
        """Return edges of one kind; without lag it is 0."""
        lag = filled(len(source), 0) if lag is None else lag
        return cls(source, target, lag, filled(len(source), kind, np.int8))

    def narrowed(self) -> Edges:
        """Return the same in fewer bytes."""
        return Edges(*map(narrowed, self.columns()))

    def between(self, place: Ints) -> Edges:
        """Return the same edges between points that have other numbers."""
        return Edges(place[self.source], place[self.target], self.lag, self.kind)

    def among(self, first: int, kind: Any) -> Edges:
        """Return the same edges between points that are numbered from `first` on, in a type of numbers."""
        return Edges(
            self.source.astype(kind) + kind(first), self.target.astype(kind) + kind(first), self.lag, self.kind
        )

    def fill(self, at: int, edges: Edges) -> int:
        """Let other edges stand in the places from `at` on; return the place after them."""
        until = at + len(edges)
        for into, column in ((self.source, edges.source), (self.target, edges.target)):
            into[at:until] = column
        self.lag[at:until], self.kind[at:until] = edges.lag, edges.kind
        return until


NO_EDGES = Edges.of(Edge.PROGRAM, *(np.zeros(0, np.int64) for _ in range(2)))


@frozen
class OrderedEdges:
    """Edges of a whole job in order of what waits: those of a point stand together, so no column names it.

    Args:
        first: number of the first edge of each point, and of one more.
        source, lag, kind: as `Edges` has them.
    """

    first: Ints
    source: Ints
    lag: Ints
    kind: Codes

    @classmethod
    def of(cls, edges: Edges, count: int) -> OrderedEdges:
        """Return edges that are in order of their targets, which are among so many points."""
        first = np.zeros(count + 1, small(len(edges)))
        for low in range(0, len(edges), _BLOCK):
            target = edges.target[low : low + _BLOCK]
            many = np.bincount(target - target[0])
            first[1 + target[0] :][: len(many)] += many.astype(first.dtype)
        return cls(np.cumsum(first, out=first), edges.source, edges.lag, edges.kind)

    def __len__(self) -> int:
        return len(self.source)

    @functools.cached_property
    def lists(self) -> tuple[list[int], list[int], list[int]]:
        """First edges, sources and lags as lists, which plain Python goes through three times as fast."""
        return self.first.tolist(), self.source.tolist(), self.lag.tolist()

    def target(self, rows: Ints) -> Ints:
        """Return the points that some edges are for."""
        return np.searchsorted(self.first, rows, side="right") - 1

    def of_points(self, points: Ints) -> tuple[Ints, Ints]:
        """Return the numbers of the edges of points, those of each together, and how many each has."""
        first = self.first[points].astype(np.int64)
        many = self.first[points + 1] - first
        return np.repeat(first - np.append(0, np.cumsum(many)[:-1])[: len(many)], many) + np.arange(many.sum()), many

    def every(self) -> Edges:
        """Return the same with a column of targets."""
        target = np.repeat(np.arange(len(self.first) - 1, dtype=self.source.dtype), np.diff(self.first))
        return Edges(self.source, target, self.lag, self.kind)

    def take(self, kept: Flags) -> OrderedEdges:
        """Return some of the edges."""
        first = np.append(0, np.cumsum(kept))[self.first].astype(self.first.dtype)
        return OrderedEdges(first, self.source[kept], self.lag[kept], self.kind[kept])

    def also(self, edges: Edges) -> OrderedEdges:
        """Return the same with a few more: each after those of its target."""
        more = edges.take(np.argsort(edges.target, kind="stable"))
        at = self.first[more.target + 1]
        moved = np.cumsum(np.bincount(more.target + 1, minlength=len(self.first))).astype(self.first.dtype)
        columns = ((getattr(each, name) for each in (self, more)) for name in ("source", "lag", "kind"))
        inserted = (np.insert(old.astype(np.result_type(old, new), copy=False), at, new) for old, new in columns)
        return OrderedEdges(self.first + moved, *inserted)


def in_time(time: Ints, tie: Codes | None = None) -> tuple[Ints, Ints]:
    """Return points in order of time, of equal ones those of the lower tie first; and the place of each in it."""
    order = np.argsort(time, kind="stable") if tie is None else np.lexsort((tie, time))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return order, place


def in_order(parts: Sequence[Edges]) -> Edges:
    """Return edges of several by target; those that go back in time are left out."""
    every = Edges.joined(parts)
    onward = (every.source < every.target).nonzero()[0]
    return every.take(onward[np.argsort(every.target[onward], kind="stable")])


def left_unexplained(points: Points, edges: Edges, some: slice, origin: int) -> Ints:
    """Return what is not explained of points: with it as their lag, a replay is the recording.

    Args:
        points: the points.
        edges: all that `some` of them wait for, by target.
        some: of which it is asked.
        origin: what points that wait for nothing come after [ns].
    """
    after = points.time[edges.source] + edges.lag
    first, _ = runs(edges.target)
    lag: Ints = np.subtract(points.time[some], points.work[some], dtype=np.int64)
    latest = np.full(len(lag), origin, np.int64)
    latest[edges.target[first] - some.start] = np.maximum.reduceat(after, first) if len(first) else 0
    return lag - latest
