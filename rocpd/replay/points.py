"""Points and edges of graphs, as columns, and their order: each point comes after all points that it waits for."""

from __future__ import annotations

import enum
import functools
import mmap
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from rocpd.base import Codes, Flags, Ints, frozen
from rocpd.base.packing import packed, unpacked
from rocpd.facts.columns import EqualColumns, distinct, filled, runs
from rocpd.facts.timeline import COMPUTE

_SMALL = tuple((kind, int(np.iinfo(kind).max)) for kind in (np.int8, np.int16, np.int32))


def small(least: int, most: int = 0) -> Any:
    """Return the smallest type that holds all numbers between two, and sums of two of them.

    >>> small(-1, 60).__name__, small(40_000).__name__
    ('int8', 'int32')
    """
    room = max(abs(least), abs(most)) * 2
    return next((kind for kind, largest in _SMALL if room <= largest), np.int64)


def narrowed(column: Any) -> Any:
    """Return whole numbers in the smallest type that holds them, and sums of two of them."""
    return column.astype(small(int(column.min(initial=0)), int(column.max(initial=0))), copy=False)


_BLOCK = 1 << 20  # edges, or points, at once
_LONG_AFTER = 10_000  # what starts so long after all that it waits for waits for something that was not recorded [ns]
_EACH = 1 << 8  # one of so many times is sampled, for cuts between blocks


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


@frozen
class Points(EqualColumns):
    """Points of a rank, or of a job, in order: each comes after all that it waits for.

    Args:
        time: recorded time [ns].
        work: time it takes after the latest point that it waits for, as work of an operation or of the host [ns].
        lag: time that neither waits nor work explain [ns].
        kind: number in `Point`.
        lane: stream of operations; for the host, the number of the thread in its rank.
        name: number of the name of an operation, or of the call at the end of a piece of host work; -1: none.
        step: number of the step; -1 outside of steps.
        part: number in `KINDS` of an operation; -1: the host.
    """

    time: Ints
    work: Ints
    lag: Ints
    kind: Codes
    lane: Ints
    name: Ints
    step: Ints
    part: Codes

    def narrowed(self) -> Points:
        """Return the same in fewer bytes, except for the times."""
        time, *others = self.columns()
        return Points(time, *map(narrowed, others))


_NOTHING: Any = np.zeros(0, np.int8)
NO_POINTS = Points(*[_NOTHING] * 8)


@frozen
class Edges(EqualColumns):
    """Edges between points, by their numbers.

    Args:
        source: the point that is waited for.
        target: the point that waits.
        lag: least time from the source to the start of the target's work [ns].
        kind: number in `Edge`.
    """

    source: Ints
    target: Ints
    lag: Ints
    kind: Codes

    @classmethod
    def of(cls, kind: Edge, source: Ints, target: Ints, lag: Ints | None = None) -> Edges:
        """Return edges of one kind; without `lag` it is 0."""
        lag = filled(len(source), 0) if lag is None else lag
        return cls(source, target, lag, filled(len(source), kind, np.int8))

    def narrowed(self) -> Edges:
        """Return the same in fewer bytes."""
        return Edges(*map(narrowed, self.columns()))

    def between(self, place: Ints) -> Edges:
        """Return the same edges after points are renumbered; `place`: the new number of each point."""
        return Edges(place[self.source], place[self.target], self.lag, self.kind)

    def among(self, first: int, kind: Any) -> Edges:
        """Return the same edges with `first` added to the numbers of points, in a type of numbers."""
        return Edges(
            self.source.astype(kind) + kind(first), self.target.astype(kind) + kind(first), self.lag, self.kind
        )


NO_EDGES = Edges.of(Edge.PROGRAM, *(np.zeros(0, np.int64) for _ in range(2)))


@frozen
class FewPoints:
    """A column of numbers from 0 that few points have, such as transfers; of all others, -1, it holds nothing.

    Args:
        rows: the points that have one, in order; then the number of all points.
        values: the numbers; then -1.
    """

    rows: Ints
    values: Ints

    @classmethod
    def of(cls, column: Ints) -> FewPoints:
        """Return a column in this form."""
        rows = (column >= 0).nonzero()[0]
        return cls(np.append(rows, len(column)), narrowed(np.append(column[rows], -1)))

    def __getitem__(self, points: Ints | slice) -> Ints:
        """Return the numbers of some points."""
        if isinstance(points, slice):
            start, stop, _ = points.indices(int(self.rows[-1]))
            column, here = np.full(stop - start, -1, self.values.dtype), slice(*self.rows.searchsorted((start, stop)))
            column[self.rows[here] - start] = self.values[here]
            return column
        at = self.rows.searchsorted(points)
        return np.where(self.rows[at] == points, self.values[at], self.values[-1:])


@frozen
class OrderedEdges:
    """Edges of a whole job in order of their targets: those of a point stand together, so no column names it.

    Args:
        first: number of the first edge of each point, and the number of all edges.
        source, lag, kind: as in `Edges`.
    """

    first: Ints
    source: Ints
    lag: Ints
    kind: Codes

    @classmethod
    def of(cls, edges: Edges, count: int) -> OrderedEdges:
        """Return edges that are in order of their targets, among `count` points."""
        first = np.zeros(count + 1, small(len(edges)))
        for low in range(0, len(edges), _BLOCK):
            _count(edges.target[low : low + _BLOCK], first)
        return cls(np.cumsum(first, out=first), edges.source, edges.lag, edges.kind)

    @classmethod
    def joined(cls, parts: Iterable[Edges], count: int, most: int, kinds: tuple[Any, Any]) -> OrderedEdges:
        """Return the edges of parts, which come in order of their targets; each part is let go before the next one.

        Args:
            parts: the edges.
            count: number of points.
            most: most edges that there may be.
            kinds: the types of sources and lags.
        """
        first, at = np.zeros(count + 1, small(most)), 0
        columns = [np.empty(most, kind) for kind in (*kinds, np.int8)]
        for part in parts:
            _count(part.target, first)
            for into, column in zip(columns, (part.source, part.lag, part.kind), strict=True):
                into[at : at + len(part)] = column
            at += len(part)
        return cls(np.cumsum(first, out=first), *(column[:at] for column in columns))

    def __len__(self) -> int:
        return len(self.source)

    @functools.cached_property
    def lists(self) -> tuple[list[int], list[int], list[int]]:
        """First edges, sources and lags as lists: plain Python reads them three times as fast."""
        return self.first.tolist(), self.source.tolist(), self.lag.tolist()

    def target(self, rows: Ints) -> Ints:
        """Return the points that wait by some edges."""
        return np.searchsorted(self.first, rows.astype(self.first.dtype), side="right") - 1  # of one type: no copy

    def of_points(self, points: Ints) -> tuple[Ints, Ints]:
        """Return the numbers of the edges of points, point by point, and how many each point has."""
        first = self.first[points].astype(np.int64)
        many = self.first[points + 1] - first
        return np.repeat(first - np.append(0, np.cumsum(many)[:-1])[: len(many)], many) + np.arange(many.sum()), many

    def every(self) -> Edges:
        """Return the same with a column of targets."""
        target = np.repeat(np.arange(len(self.first) - 1, dtype=self.source.dtype), np.diff(self.first))
        return Edges(self.source, target, self.lag, self.kind)

    def also(self, edges: Edges, gone: Ints = NO_EDGES.source) -> OrderedEdges:
        """Return the same with a few more edges, each after those of its target, and without some.

        Args:
            edges: the further edges.
            gone: numbers of the edges that are left out, in order.
        """
        more = edges.take(np.argsort(edges.target, kind="stable"))
        end = self.first[more.target + 1]
        place = end - np.searchsorted(gone, end) + np.arange(len(more))
        changes = np.bincount(more.target + 1, minlength=len(self.first))
        changes -= np.bincount(self.target(gone) + 1, minlength=len(self.first))
        is_kept, is_old = np.ones(len(self), bool), np.ones(len(self) - len(gone) + len(more), bool)
        is_kept[gone], is_old[place] = False, False
        columns = []
        for old, new in ((getattr(each, name) for each in (self, more)) for name in ("source", "lag", "kind")):
            column = np.empty(len(is_old), np.result_type(old, new))
            column[is_old], column[place] = old[is_kept] if len(gone) else old, new
            columns.append(column)
        return OrderedEdges(self.first + np.cumsum(changes, dtype=self.first.dtype), *columns)


def _count(target: Ints, first: Ints) -> None:
    """Add the number of edges of each target to the place after it; targets are in order."""
    if len(target):
        many = np.bincount(target - target[0])
        first[1 + int(target[0]) :][: len(many)] += many.astype(first.dtype)


def numbers_in_time(time: Ints, tie: Codes, kind: Any) -> Ints:
    """Return the numbers of points in order of time, at equal times the lower tie first, in a type of numbers.

    They are sorted in blocks of time: numpy takes 24 bytes for each number that it sorts.
    """
    order, at = np.empty(len(time), kind), 0
    cuts = np.sort(time[::_EACH])[:: _BLOCK // _EACH][1:]
    for low, high in pairwise([int(time.min()), *distinct(cuts).tolist(), int(time.max()) + 1] if len(time) else []):
        rows = ((time >= low) & (time < high)).nonzero()[0]
        order[at : at + len(rows)] = rows[np.lexsort((tie[rows], time[rows]))]
        at += len(rows)
    return order


def in_time(time: Ints, tie: Codes | None = None) -> tuple[Ints, Ints]:
    """Return the order of points by time, at equal times the lower tie first; and the place of each point in it."""
    order = np.argsort(time, kind="stable") if tie is None else np.lexsort((tie, time))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return order, place


def in_order(parts: Sequence[Edges]) -> Edges:
    """Return the edges of several parts, ordered by target, without those that go back in time."""
    every = Edges.joined(parts)
    onward = (every.source < every.target).nonzero()[0]
    return every.take(onward[np.argsort(every.target[onward], kind="stable")])


def left_unexplained(points: Points, edges: Edges, some: slice) -> Ints:
    """Return the unexplained time of points [ns]: with it as their lag, a replay is the recording.

    Args:
        points: the points.
        edges: all edges to `some` of them, ordered by target.
        some: the points in question.
    """
    after = points.time[edges.source] + edges.lag
    first, _ = runs(edges.target)
    lag: Ints = np.subtract(points.time[some], points.work[some], dtype=np.int64)
    latest = np.zeros(len(lag), np.int64)
    latest[edges.target[first] - some.start] = np.maximum.reduceat(after, first) if len(first) else 0
    return lag - latest


def after_what_was_lost(points: Points, lag: Ints, some: slice, kind: Any) -> tuple[Edges, Ints]:
    """Return edges to points that start long after all that they wait for, and what then is unexplained [ns].

    The edges come from the operation that ended last before such a point, if that was after the waits: something
    behind it was not recorded, such as a lost kernel. Else the point would start as late whatever came before.

    Args:
        points: the points; those of the rank are in order of time.
        lag: unexplained time of the points of the rank [ns].
        some: the points of the rank.
        kind: the type of numbers of points.
    """
    target = (lag > _LONG_AFTER).nonzero()[0]
    time = points.time[some]
    ended = ((points.part[some] >= 0) & (points.kind[some] != Point.ARRIVAL)).nonzero()[0]
    starts = time[target].astype(np.int64) - points.work[some][target]
    at = time[ended].searchsorted(starts, "right") - 1
    source = np.append(ended, 0)[at]
    waited = starts - time[source]
    kept = (at >= 0) & (source < target) & (waited < lag[target])
    lag = lag.copy()
    lag[target[kept]] = waited[kept]
    return Edges.of(Edge.BETWEEN_STREAMS, source[kept], target[kept]).among(some.start, kind), lag


class WaitPlace(NamedTuple):
    """A communication kernel: its name, its stream, its number among these in its step; and the stream it waits for."""

    name: str
    stream: int
    number: int
    source: int


@frozen
class PossibleWaits:
    """Edges that may exist: other ranks may show whether they do.

    Args:
        edges: between points of the rank.
        at: for each edge, the number of its place.
        places: places of kernels that may wait, once for each stream.
    """

    edges: Edges
    at: Ints
    places: tuple[WaitPlace, ...]

    def where(self, waits: Collection[WaitPlace]) -> Edges:
        """Return the edges of places that wait on some rank, as in `waits`."""
        is_one = np.array([place in waits for place in self.places], bool)
        return self.edges.take(is_one[self.at]) if is_one.any() else NO_EDGES


@frozen
class RankGraph:
    """One rank as a graph.

    Args:
        points: the points of the rank, in order; their unexplained time is not known yet.
        edges: between the points.
        arrivals: row of each communication kernel, in order, and the number of the point at which it starts; it ends
            at the same place in `ends`.
        ends: numbers of the points at which communication kernels end.
        names: the names that points refer to by number.
        steps: number of a step -> numbers of the points at which it begins and ends.
        contradicted: number of waits that follow from the order of a stream or a launch, but were not kept.
        waits: places of communication kernels that wait for another stream, as inferred.
        possible: edges of places that may wait, but never show it.
        hidden: edges from communication to the next operation of each other stream, which never starts before it ends,
            though nothing shows that it waits: with other times it might.
        agents: stream -> place of its agent within the rank, from 0; also -1 - lane of each thread that computes on one
            agent alone; empty for a rank with one agent.
        marked: points that end host work around a marker without calls, and the number of the marker's name for each.
    """

    points: Points
    edges: Edges
    arrivals: tuple[Ints, Ints]
    ends: Ints
    names: tuple[str, ...]
    steps: dict[int, tuple[int, int]]
    contradicted: int
    waits: frozenset[WaitPlace] = frozenset()
    possible: PossibleWaits | None = None
    hidden: Edges = NO_EDGES
    agents: Mapping[int, int] = field(default_factory=dict)
    marked: tuple[Ints, Ints] = (np.zeros(0, np.int64), np.zeros(0, np.int64))

    def less_jump(self, jump: int, since: int) -> RankGraph:
        """Return the graph without a jump of the clock [ns] at its time `since` [ns]: no work lasts through it."""
        time, edges = self.points.time, self.edges
        work, lag = self.points.work.astype(np.int64), edges.lag.astype(np.int64)
        lasts = (time >= since) & (time - work < since)
        lags = (time[edges.target] >= since) & (time[edges.source] < since)
        return replace(
            self,
            points=replace(self.points, work=narrowed(np.where(lasts, np.maximum(work - jump, 0), work))),
            edges=replace(edges, lag=narrowed(np.where(lags, np.maximum(lag - jump, 0), lag))),
        )

    def in_order(self, order: Ints, place: Ints) -> RankGraph:
        """Return the graph with points in another `order`; `place`: of each in it. Its edges are then unordered."""
        rows, points = self.arrivals
        possible = self.possible
        return replace(
            self,
            points=self.points.take(order),
            edges=self.edges.between(place),
            arrivals=(rows, place[points]),
            ends=place[self.ends],
            steps={number: (int(place[a]), int(place[b])) for number, (a, b) in self.steps.items()},
            possible=possible and replace(possible, edges=possible.edges.between(place)),
            hidden=self.hidden.between(place),
            marked=(place[self.marked[0]], self.marked[1]),
        )

    @property
    def computes(self) -> bool:
        """Whether a kernel other than communication ran."""
        return bool((self.points.part == COMPUTE).any())


@frozen
class PackedGraph:
    """The graph of a rank in few bytes, kept so until all ranks are read: each of its dozens of columns takes 100 more.

    Args:
        points: number of points.
        edges: number of edges, with possible ones.
        computes: whether a kernel other than communication ran.
        names: the names that points refer to by number.
        kinds: types of the columns of points, and of the lags of edges, as numpy's letters.
        content: the graph without these names and its edges.
        waits: its edges, and the possible ones.
    """

    points: int
    edges: int
    computes: bool
    names: tuple[str, ...]
    kinds: str
    content: bytes
    waits: bytes

    @classmethod
    def of(cls, graph: RankGraph) -> PackedGraph:
        """Return a graph in packed form."""
        content = packed(replace(graph, names=(), edges=NO_EDGES, possible=None))
        every = [graph.edges, graph.possible.edges] if graph.possible else [graph.edges]
        lags = np.result_type(*(edges.lag for edges in every))
        kinds = "".join(column.dtype.char for column in graph.points.columns()) + lags.char
        count, waits = sum(map(len, every)), packed((graph.edges, graph.possible))
        return cls(len(graph.points), count, graph.computes, graph.names, kinds, content, waits)

    def __reduce__(self) -> tuple[Any, ...]:
        return _packed_graph, (*vars(self).values(),)

    def drawn(self) -> RankGraph:
        """Return the graph without its edges."""
        graph: RankGraph = unpacked(self.content)
        return replace(graph, names=self.names)

    def whole(self) -> RankGraph:
        """Return the graph."""
        edges, possible = unpacked(self.waits)
        return replace(self.drawn(), edges=edges, possible=possible)


def _packed_graph(points: int, edges: int, computes: bool, names: tuple[str, ...], *content: Any) -> PackedGraph:
    return PackedGraph(points, edges, computes, shared(names), *content)


@functools.lru_cache(64)
def shared(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the same object for equal texts, which many ranks have."""
    return texts


def no_times(count: int, kind: Any) -> Ints:
    """Return zeros for so many points, most of which stay 0: in a large job only the others take memory."""
    if count < _BLOCK:
        return np.zeros(count, kind)
    return np.frombuffer(mmap.mmap(-1, count * np.dtype(kind).itemsize, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), kind)


def add_to(times: Ints, more: Ints) -> None:
    """Add times to points [ns], few of which are not 0: the memory of the others is never touched."""
    rows = more.nonzero()[0]
    times[rows] += more[rows]


def places_of(step: Ints, steps: Ints) -> tuple[Ints, Flags]:
    """Return the place of each point's step among some steps, and whether it is one of them."""
    at, counts = np.empty(len(step), small(len(steps))), np.zeros(len(step), bool)
    for low in range(0, len(step), _BLOCK):
        some = slice(low, low + _BLOCK)
        at[some] = np.searchsorted(steps, step[some])
        counts[some] = steps[np.minimum(at[some], len(steps) - 1)] == step[some] if len(steps) else False
    return at, counts
