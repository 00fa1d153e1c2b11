"""The graph of a whole job: those of its ranks, joined where collectives and transfers meet; and its replay.

A collective starts to move data when the last member has come, and each member leaves when its part is done. Times of
ranks are laid on one line. Ranks whose clocks cannot be compared stay apart, and so does what is not matched: how much
of the communication is matched is part of the answer.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from rocpd.base import Codes, Flags, Ints, frozen, process
from rocpd.base.stages import Stage
from rocpd.facts.columns import distinct
from rocpd.facts.communication.collectives import Channel
from rocpd.facts.communication.matching import Clocks, MatchedChannels
from rocpd.facts.communication.members import channels_of
from rocpd.facts.operations import OperationNames, read_ops
from rocpd.facts.rank import RankReading
from rocpd.federate.federation import Federation
from rocpd.federate.run.rank_reader import RankReader
from rocpd.replay.graph import read_graph
from rocpd.replay.points import (
    NO_EDGES,
    Edge,
    Edges,
    OrderedEdges,
    Point,
    Points,
    RankGraph,
    WaitPlace,
    in_order,
    in_time,
    left_unexplained,
    narrowed,
    small,
)
from rocpd.replay.times import times_of
from rocpd.schema.rules.kernel_categories import Categories, load
from rocpd.schema.rules.steps import STEP_MARKER, is_step

_MANY, _LARGE = 6_000_000, 1 << 20  # points, from which on columns of so many bytes are given back to the system
_FEW = 128  # ranks, after which memory is given back; a process that reads more of them is not kept meanwhile
_SOME = 1 << 18  # points, from which on memory that columns leave free is worth giving back
_AT_MEETINGS = (0, 0, Point.MEETING, -1, -1, -1, -1)
"""The columns of points of meetings, but for their times."""
_NAME = 5
"""Which column of points names are."""


@frozen
class Link:
    """Ranks that communicate with each other in one way.

    Args:
        ranks: their numbers.
        name: number of the kernel's name.
        is_inferred: whether no calls say so: two ranks that send to others at one time look like two that communicate,
            and what they wait for those like a slow transfer.
    """

    ranks: tuple[int, ...]
    name: int
    is_inferred: bool


@frozen
class JobGraph:
    """A job as a graph.

    Args:
        points: those of each rank, in order, on one line of time; then those of meetings.
        edges: between them, in order of what waits.
        own: rank -> the numbers of its first point, and of the first one after it.
        order: numbers of points so that each comes after all that it waits for.
        origin: when the first one comes [ns].
        link: of each transfer the number of its link, -1 of all other points.
        move: of each transfer the number in `moves` of what it does, -1 where unknown and of all others.
        links: those that collectives and transfers run on.
        moves: what calls say that transfers do, as MPI names it, such as `ALLREDUCE`.
        names: what numbers of names stand for.
        steps: rank -> number of a step -> the points at which it begins and ends.
        hosts: rank -> name of its host.
        matched: share of the time in communication kernels whose partners are known; 1 without communication.
        contradicted: how many waits that an order of stream or launch says were not kept.
        clocks_ns: how far times of different clocks are likely to be apart for no reason.
        hidden: edges that never bind here, and might with other times.
        agents: rank -> stream -> which of its agents it runs on, from 0; nothing of ranks with one.
        moved: rank -> what is added to its times so that clocks that do not compare begin together [ns].
    """

    points: Points
    edges: OrderedEdges
    own: Mapping[int, tuple[int, int]]
    order: Ints
    origin: int
    link: Ints
    move: Ints
    links: tuple[Link, ...]
    moves: tuple[str, ...]
    names: tuple[str, ...]
    steps: Mapping[int, Mapping[int, tuple[int, int]]]
    hosts: Mapping[int, str | None]
    matched: float
    contradicted: int
    clocks_ns: int = 0
    hidden: Edges = NO_EDGES
    agents: Mapping[int, Mapping[int, int]] = field(default_factory=dict)
    moved: Mapping[int, int] = field(default_factory=dict)

    def rank_of(self, points: Ints) -> Ints:
        """Return the rank of each of some points; -1: a meeting, which is of none."""
        ends = np.array([last for _, last in self.own.values()], np.int64)
        return np.array([*self.own, -1], np.int64)[np.searchsorted(ends, points, side="right")]

    @functools.cached_property
    def rank(self) -> Ints:
        """The rank of each point; only changes need it, and of all."""
        every: Ints = narrowed(self.rank_of(np.arange(len(self.points))))
        return every

    def replay(self, work: Ints | None = None) -> Ints:
        """Return when each point comes [ns], given how long each takes [ns]; None: as recorded."""
        return self._times(np.array(self.points.work if work is None else work, np.int64))

    def replay_without(self, *less: Ints) -> Ints:
        """Return when each point comes where it takes so much less [ns], in all, but no less than nothing."""
        takes = self.points.work.astype(np.int64)
        for each in less:
            takes -= each
        return self._times(np.maximum(takes, 0, out=takes))

    def _times(self, takes: Ints) -> Ints:
        takes += self.points.lag
        return times_of(self.edges, self.order, takes, self.origin)

    @property
    def is_large(self) -> bool:
        """Whether memory has hardly room for a second one."""
        return len(self.points) >= _MANY

    def give_back(self) -> None:
        """Let the system have memory that is free between columns, where these are not short."""
        if len(self.points) >= _SOME:
            process.give_back()

    def cautious(self) -> JobGraph:
        """Return the same graph with the hidden waits, too; its replay is the recording."""
        if not len(self.hidden):
            return self
        return replace(self, edges=self.edges.also(self.hidden), hidden=NO_EDGES)

    def in_pieces(self, ranks: Sequence[int], start: Ints, end: Ints) -> JobGraph:
        """Return the same graph with pieces of the trace in place of steps, numbered from 0.

        Args:
            ranks: whose pieces they are, one for each column of the others.
            start, end: of each piece (row) on each rank [ns of the line].
        """
        step = np.full(len(self.points), -1, small(len(start)))
        steps = {}
        for column, rank in enumerate(ranks):
            first, last = self.own[rank]
            times = self.points.time[first:last]
            at = np.searchsorted(start[:, column], times, side="right") - 1
            at = np.where((at >= 0) & (times <= end[np.maximum(at, 0), column]), at, -1)
            step[first:last] = self._as_launched(rank, at, np.append(start[:1, column], end[:, column]))
            edges = [np.maximum(np.searchsorted(times, side[:, column]) - 1, 0) + first for side in (start, end)]
            steps[rank] = dict(enumerate(zip(*(edge.tolist() for edge in edges), strict=True)))
        meets = (self.points.kind == Point.MEETING).nonzero()[0]
        step[meets] = step[self.edges.source[self.edges.first[meets]]]  # as the first one that comes
        return replace(self, points=replace(self.points, step=step), steps=steps)

    def _as_launched(self, rank: int, piece: Ints, edges: Ints) -> Ints:
        """Return the piece that each point of a rank is in by its launch, so that all ranks have the same work in it.

        Where a collective ends, a fast rank is further in what it computes. Host work goes with the launch of it.

        Args:
            rank: its number.
            piece: that each is in by its time.
            edges: when the collectives end between which pieces lie [ns]; what does not end there changes nothing.
        """
        points, first = self.points.take(slice(*self.own[rank])), self.own[rank][0]
        launched = np.where(points.kind <= Point.STEP, points.time, -1)
        rows = slice(*self.edges.first[[first, first + len(points)]].tolist())
        some = rows.start + (self.edges.kind[rows] == Edge.LAUNCH).nonzero()[0]
        launched[self.edges.target(some) - first] = self.points.time[self.edges.source[some]]
        ends = (points.kind == Point.TRANSFER).nonzero()[0]
        ends = ends[np.isin(points.time[ends], edges)]
        comes = (points.kind == Point.ARRIVAL).nonzero()[0]
        of = [comes[(comes < at) & (points.lane[comes] == points.lane[at])][-1:] for at in ends.tolist()]
        cuts = np.sort(launched[np.concatenate(of)]) if of else launched[:0]
        if len(cuts) != len(edges) or cuts[0] < 0:
            return piece
        at = np.searchsorted(cuts, launched) - 1
        by_launch = np.where((at >= 0) & (at < len(edges) - 1), at, -1)
        return np.where((launched >= 0) & (points.kind != Point.TRANSFER), by_launch, piece)


def read_job(session: Federation, categories: Categories | None = None, step_marker: str = STEP_MARKER) -> JobGraph:
    """Return the graph of a job, of its whole trace whatever the window.

    Args:
        session: the job.
        categories: say which kernels are communication; None: the built-in ones.
        step_marker: markers that are steps.
    """
    work = partial(_of_rank, categories=categories or load(None), step=is_step(step_marker))
    graphs: dict[int, RankGraph] = {}
    channels: list[Channel] = []
    for rank, (graph, of_rank) in session.job.counted(Stage.GRAPHS, session.map_ranks(work)):
        graphs[rank.number] = graph
        channels += of_rank
    clocks = Clocks.of(session, channels)
    return join(graphs, clocks.match(channels), clocks, session)


def _of_rank(reader: RankReader, categories: Categories, step: re.Pattern[str]) -> tuple[RankGraph, list[Channel]]:
    reading = RankReading.of(reader, {}).whole()
    names = OperationNames()
    graph = read_graph(reading, categories, step)
    return graph, channels_of(reading, read_ops(reading, names), names, categories)


def join(graphs: dict[int, RankGraph], matched: MatchedChannels, clocks: Clocks, session: Federation) -> JobGraph:
    """Return the graph of a job.

    Args:
        graphs: rank -> its graph; they are let go one by one, so that nothing is in memory twice.
        matched: its communication.
        clocks: which times of ranks compare.
        session: the job; of many ranks no more are read while it is replayed.
    """
    is_large = sum(len(graph.points) for graph in graphs.values()) >= _MANY
    process.keep_freed(_LARGE if is_large else process.KEPT)
    if is_large or len(graphs) > _FEW:
        session.executor.rest()
    hosts = {rank.number: rank.hostname for rank in session.ranks}
    job = _Joining(graphs, clocks, hosts).job(matched)
    job.give_back()
    return job


class _Meeting(NamedTuple):
    """The collectives of a group: the members (rows) come to each (columns), which starts when the last one has come.

    Args:
        group: the channels.
        came, left: numbers of the points at which the members come, and at which they leave.
        time: when each starts [ns].
        number: of the first one.
    """

    group: Sequence[Channel]
    came: Ints
    left: Ints
    time: Ints
    number: int

    @property
    def numbers(self) -> Ints:
        """The numbers of the points at which they start."""
        return self.number + np.arange(len(self.time))


class _Joining:
    """Joins the graphs of ranks. Points are numbered rank by rank, then those of meetings."""

    def __init__(self, graphs: dict[int, RankGraph], clocks: Clocks, hosts: Mapping[int, str | None]) -> None:
        self.graphs, self.clocks, self.hosts = graphs, clocks, hosts
        edges = np.cumsum([0, *(len(graph.points) for graph in graphs.values())]).tolist()
        self.own = dict(zip(graphs, pairwise(edges), strict=True))
        self.count: int = edges[-1]
        self.codes: dict[str, int] = {}
        self.links: dict[Link, int] = {}
        self.moves: dict[str, int] = {}

    def job(self, matched: MatchedChannels) -> JobGraph:
        """Return the graph of the job."""
        groups = [*matched.groups, *((pair.sender, pair.receiver) for pair in matched.pairs)]
        groups = [group for group in groups if len({self.clocks.line(member.rank) for member in group}) == 1]
        time = np.empty(self.count + sum(len(group[0].rows) for group in groups), np.int64)
        moved = self._moved()
        for rank in _few_at_once(self.graphs):
            self.graphs[rank] = self._on_line(rank, time[slice(*self.own[rank])], moved.get(rank, 0))
        meetings = list(self._meetings(groups, time))
        points = self._points(time)
        link, move = self._moving(points, meetings)
        origin = int(time.min()) if len(time) else 0
        steps = {rank: self._steps(rank) for rank in self.graphs}
        share, contradicted = self._matched(time, link >= 0), sum(each.contradicted for each in self.graphs.values())
        hidden = [graph.hidden.among(self.own[rank][0], self.kind) for rank, graph in self.graphs.items()]
        agents = {rank: graph.agents for rank, graph in self.graphs.items()}
        points, edges = self._edges(points, link >= 0, meetings, origin)
        order = np.lexsort((_ties(points.kind), time)).astype(self.kind)
        texts = tuple(self.links), tuple(self.moves), tuple(self.codes)
        graph = JobGraph(
            points, edges, self.own, order, origin, link, move, *texts, steps, self.hosts, share, contradicted
        )
        return replace(graph, clocks_ns=self.clocks.likely_ns, hidden=Edges.joined(hidden), agents=agents, moved=moved)

    def _moved(self) -> dict[int, int]:
        """Return rank -> what is added to its times, so that lines that do not compare begin their steps together [ns].

        Else a job would take as long as their clocks are apart.
        """
        steps = [set(graph.steps) for graph in self.graphs.values() if graph.steps]
        first = min(set.intersection(*steps), default=None) if steps else None
        begins: dict[int, int] = {}
        for rank, graph in self.graphs.items():
            if len(graph.points):
                at = graph.steps[first][0] if first in graph.steps else 0
                (begin,) = self.clocks.on_line(rank, graph.points.time[at : at + 1]).tolist()
                line = self.clocks.line(rank)
                begins[line] = min(begin, begins.get(line, begin))
        base = min(begins.values(), default=0)
        lines = {rank: self.clocks.line(rank) for rank in self.graphs}
        return {rank: base - begins[line] for rank, line in lines.items() if begins.get(line, base) != base}

    def _on_line(self, rank: int, time: Ints, moved: int) -> RankGraph:
        """Return the graph of a rank with its points in order of the line; `time` is filled with their times on it."""
        graph, shift = self.graphs[rank], self.clocks.shift(rank)
        time[:] = shift.to_line(graph.points.time) + moved
        graph = graph.less_jump(shift.jump, shift.since) if shift.jump else graph
        ties = _ties(graph.points.kind)
        if not ((time[1:] > time[:-1]) | ((time[1:] == time[:-1]) & (ties[1:] >= ties[:-1]))).all():
            order, place = in_time(time, ties)
            time[:] = time[order]
            graph = graph.in_order(order, place)
        return replace(graph, points=replace(graph.points, time=time))

    def _meetings(self, groups: Sequence[Sequence[Channel]], time: Ints) -> Iterator[_Meeting]:
        """Yield the collectives of groups; their times go into `time`, behind those of the points of ranks [ns]."""
        number = self.count
        for group in groups:
            came, left = (np.array(side) for side in zip(*map(self._ends_of, group), strict=True))
            meeting = _Meeting(group, came, left, time[came].max(0), number)
            time[meeting.numbers] = meeting.time
            yield meeting
            number += came.shape[1]

    def _points(self, time: Ints) -> Points:
        """Return the points with names of the job; those of meetings without what they have of members.

        The graphs have views of them from then on.
        """
        names = [
            np.array([*(self.codes.setdefault(text, len(self.codes)) for text in graph.names), -1], np.int64)
            for graph in self.graphs.values()
        ]
        common = self._common(names)
        every = zip(*((c.dtype for c in graph.points.columns()) for graph in self.graphs.values()), strict=True)
        kinds = [np.result_type(*set(each)) for each in every]
        kinds[_NAME] = np.dtype(small(len(self.codes)))
        # No value yet: what a rank has goes there as its own columns are let go.
        points = Points(time, *(np.empty(len(time), kind) for kind in kinds[1:]))
        for column, value in zip(points.columns()[1:], _AT_MEETINGS, strict=True):
            column[self.count :] = value
        for rank, codes in zip(_few_at_once(self.graphs), names, strict=True):
            own, graph = points.take(slice(*self.own[rank])), self.graphs[rank]
            for into, column in zip(own.columns(), graph.points.columns(), strict=True):
                into[:] = codes[column] if into is own.name else column
            marked, number = graph.marked
            own.name[marked] = np.where(np.isin(codes[number], common), codes[number], own.name[marked])
            self.graphs[rank] = replace(graph, points=own)
        return points

    def _common(self, names: Sequence[Ints]) -> Ints:
        """Return the names of markers, in those of the job, that host work of all ranks that compute lies in."""
        graphs = zip(self.graphs.values(), names, strict=True)
        each = [distinct(codes[graph.marked[1]]) for graph, codes in graphs if graph.computes]
        return functools.reduce(np.intersect1d, each) if len(each) > 1 else np.zeros(0, np.int64)

    def _moving(self, points: Points, meetings: Sequence[_Meeting]) -> tuple[Ints, Ints]:
        """Return link and move of points; give transfers the work that is left once all have come."""
        link: Any = np.full(len(points), -1, small(len(meetings)))
        move: Any = np.full(len(points), -1, small(sum(len(each.group[0].transfers) for each in meetings)))
        nearest = _nearest(meetings, points.time)
        for number, each in enumerate(meetings):
            left, numbers = each.left, each.numbers
            points.name[numbers], points.step[numbers] = points.name[left[0]], points.step[each.came[0]]
            of = self.links.setdefault(self._link(each.group, int(points.name[left[0, 0]])), len(self.links))
            moves = self._moves(each.group[0], len(each.time))
            for member, ends in zip(each.group, left, strict=True):
                some = points.time[ends] >= each.time
                into = ends[some]
                points.work[into] = np.minimum(points.work[into], points.time[into] - each.time[some])
                if nearest.get(id(member), number) == number:
                    link[into], move[into] = of, moves[some]
        return link, move

    def _edges(
        self, points: Points, is_met: Flags, meetings: Sequence[_Meeting], origin: int
    ) -> tuple[Points, OrderedEdges]:
        """Return the points with what their edges leave unexplained, and the edges; graphs are let go."""
        sizes = [len(graph.edges) + graph.could_be for graph in self.graphs.values()]
        count = sum(sizes) + 2 * sum(each.came.size for each in meetings)
        lags = {graph.edges.lag.dtype for graph in self.graphs.values()} | {np.dtype(np.int16)}
        every = Edges(*(np.empty(count, kind) for kind in (self.kind, self.kind, np.result_type(*lags), np.int8)))
        waits, left, unexplained, filled = self.waits, self._left(points.time, meetings), [], 0
        for rank in _few_at_once(self.own):
            graph, (first, last) = self.graphs.pop(rank), self.own[rank]
            own = _own_edges(graph, is_met[first:last], waits).among(first, self.kind)
            own = Edges.joined([own, left.get(rank, NO_EDGES)])
            own = own.take(np.argsort(own.target, kind="stable"))
            filled = every.fill(filled, own)
            unexplained.append(narrowed(left_unexplained(points, own, slice(first, last), origin)))
        for each in meetings:
            ends = each.came.T.reshape(-1), np.repeat(each.numbers, len(each.came))
            filled = every.fill(filled, Edges.of(Edge.COLLECTIVE, *ends))
        lag = np.concatenate([*unexplained, np.zeros(len(points) - self.count, np.int8)])
        return replace(points, lag=lag), OrderedEdges.of(every.take(slice(filled)), len(points))

    @functools.cached_property
    def kind(self) -> Any:
        """The type of numbers of points."""
        return small(2 * self.count)

    @functools.cached_property
    def waits(self) -> frozenset[WaitPlace]:
        """Places that wait on some rank."""
        return frozenset[WaitPlace]().union(*(graph.waits for graph in self.graphs.values()))

    def _left(self, time: Ints, meetings: Sequence[_Meeting]) -> dict[int, Edges]:
        """Return rank -> the edges from collectives to its transfers."""
        parts: dict[int, list[Edges]] = {}
        for each in meetings:
            for member, ends in zip(each.group, each.left, strict=True):
                some = time[ends] >= each.time
                edges = Edges.of(Edge.COLLECTIVE, each.numbers[some], ends[some])
                parts.setdefault(member.rank, []).append(edges)
        return {rank: Edges.joined(of_rank) for rank, of_rank in parts.items()}

    def _steps(self, rank: int) -> dict[int, tuple[int, int]]:
        first, _ = self.own[rank]
        return {number: (a + first, b + first) for number, (a, b) in self.graphs[rank].steps.items()}

    def _matched(self, time: Ints, is_met: Flags) -> float:
        """Return the share of the time in communication kernels that wait for all; 1 without any time."""
        every = known = 0
        for rank, graph in self.graphs.items():
            own = slice(*self.own[rank])
            lengths = time[own][graph.ends] - time[own][graph.arrivals[1]]
            every += int(lengths.sum())
            known += int(lengths[is_met[own][graph.ends]].sum())
        return known / every if every else 1.0

    def _moves(self, member: Channel, count: int) -> Ints:
        """Return the number of what each transfer of a channel does, -1 where no call says it."""
        if not len(member.moves):
            return np.full(count, -1)
        names = [move.operation if move else "" for move in member.transfers]
        codes = [self.moves.setdefault(name, len(self.moves)) if name else -1 for name in names]
        return np.array([*codes, -1], np.int64)[member.moves]

    def _link(self, group: Sequence[Channel], name: int) -> Link:
        ranks = tuple(sorted({member.rank for member in group}))
        return Link(ranks, name, not all(member.is_recorded for member in group))

    def _ends_of(self, member: Channel) -> tuple[Ints, Ints]:
        """Return the points at which the kernels of a channel start, and those at which they end."""
        graph, (first, _) = self.graphs[member.rank], self.own[member.rank]
        rows, points = graph.arrivals
        order = np.argsort(rows)
        at = order[np.searchsorted(rows[order], member.rows)]
        return points[at] + first, graph.ends[at] + first


def _few_at_once(ranks: Iterable[int]) -> Iterator[int]:
    """Yield ranks whose graphs are taken apart; memory that was theirs is given back now and then."""
    for number, rank in enumerate(ranks, 1):
        yield rank
        if number % _FEW == 0:
            process.give_back()


def _nearest(meetings: Sequence[_Meeting], time: Ints) -> dict[int, int]:
    """Return `id` of a channel that is in several pairs, as in a ring, -> which of these it ends closest to.

    It ends with the later one of its transfers, as the partner of that one does.
    """
    apart: dict[int, dict[int, float]] = {}
    for number, each in enumerate(meetings):
        if len(each.group) == 2 and each.group[0].role:
            mean = float(np.abs(time[each.left[0]] - time[each.left[1]]).mean())
            for member in each.group:
                apart.setdefault(id(member), {})[number] = mean
    return {channel: min(each, key=each.__getitem__) for channel, each in apart.items()}


def _ties(kind: Codes) -> Codes:
    """Return of points at one time which come first: meetings after what comes to them, then transfers."""
    return np.select([kind == Point.MEETING, kind == Point.TRANSFER], [np.int8(1), np.int8(2)], np.int8(0))


def _own_edges(graph: RankGraph, is_met: Flags, waits: Collection[WaitPlace]) -> Edges:
    """Return the edges of a rank, by target, but for those from its arrival to transfers that wait for all members."""
    edges = graph.edges.take(~((graph.edges.kind == Edge.COLLECTIVE) & is_met[graph.edges.target]))
    return in_order([edges, graph.possible.where(waits)] if graph.possible else [edges])
