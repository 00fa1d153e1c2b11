"""Points and edges of graphs, as columns, and their order: each point comes after all that it waits for."""

from __future__ import annotations

import enum
import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rocpd.base import Codes, Flags, Ints, frozen
from rocpd.facts.columns import runs


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
class Points:
    """Points of a rank, or of a job, in order: each comes after all that it waits for.

    Args:
        time: when it was recorded [ns].
        work: how long it takes from the latest of what it waits for: of an operation, or of the host [ns].
        lag: what is not explained by that [ns].
        kind: number in `Point`.
        rank: number of the rank.
        lane: stream of operations, thread of the host.
        name: number in the names: of an operation, of the call at the end of a piece of host work.
        step: number of the step, `NULL` outside of steps.
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

    def __len__(self) -> int:
        return len(self.time)

    def columns(self) -> tuple[Any, ...]:
        """Return all columns, in the order of the arguments."""
        return (
            self.time, self.work, self.lag, self.kind, self.rank, self.lane, self.name, self.step, self.part,
        )  # fmt: skip

    def take(self, rows: Ints | Flags) -> Points:
        """Return some of the points."""
        return Points(*(column[rows] for column in self.columns()))


@frozen
class Edges:
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
        lag = np.zeros(len(source), np.int64) if lag is None else lag
        return cls(source, target, lag, np.full(len(source), kind, np.int8))

    def __len__(self) -> int:
        return len(self.source)

    @functools.cached_property
    def lists(self) -> tuple[list[int], list[int]]:
        """Sources and lags as lists, which plain Python goes through three times as fast."""
        return self.source.tolist(), self.lag.tolist()

    def take(self, rows: Ints | Flags) -> Edges:
        """Return some of the edges."""
        return Edges(self.source[rows], self.target[rows], self.lag[rows], self.kind[rows])

    def between(self, place: Ints) -> Edges:
        """Return the same edges between points that have other numbers."""
        return Edges(place[self.source], place[self.target], self.lag, self.kind)

    @classmethod
    def joined(cls, parts: Sequence[Edges]) -> Edges:
        """Return the edges of several."""
        names = ("source", "target", "lag", "kind")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


NO_EDGES = Edges.of(Edge.PROGRAM, *(np.zeros(0, np.int64) for _ in range(2)))


def in_time(time: Ints, tie: Codes | None = None) -> tuple[Ints, Ints]:
    """Return points in order of time, of equal ones those of the lower tie first; and the place of each in it."""
    order = np.argsort(time, kind="stable") if tie is None else np.lexsort((tie, time))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return order, place


def in_order(parts: Sequence[Edges]) -> Edges:
    """Return edges of several by target; those that go back in time are left out."""
    every = Edges.joined(parts)
    onward = np.flatnonzero(every.source < every.target)
    return every.take(onward[np.argsort(every.target[onward], kind="stable")])


def explained(points: Points, edges: Edges) -> Points:
    """Return points with what their edges, by target, leave unexplained as their lag: a replay is the recording."""
    after = points.time[edges.source] + edges.lag
    first, _ = runs(edges.target)
    latest = np.zeros(len(points), np.int64)
    latest[edges.target[first]] = np.maximum.reduceat(after, first) if len(first) else 0
    return replace(points, lag=points.time - points.work - latest)
