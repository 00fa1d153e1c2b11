"""The graph of a whole job: those of its ranks, joined where collectives and transfers meet; and its replay.

A collective starts to move data when the last member has come, and each member leaves when its part is done. Times of
ranks are laid on one line. Ranks whose clocks cannot be compared stay apart, and so does what is not matched: how much
of the communication is matched is part of the answer.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from rocpd.base import NULL, Codes, Flags, Ints, frozen, process
from rocpd.facts.communication.collectives import Channel
from rocpd.facts.communication.matching import Clocks, MatchedChannels
from rocpd.facts.communication.members import channels_of
from rocpd.facts.operations import OperationNames, read_ops
from rocpd.facts.rank import RankReading
from rocpd.federate.federation import Federation
from rocpd.federate.run.rank_reader import RankReader
from rocpd.replay.graph import RankGraph, WaitPlace, read_graph
from rocpd.replay.points import INFERRED, NO_EDGES, Edge, Edges, Point, Points, explained, in_order, in_time
from rocpd.replay.times import times_of
from rocpd.schema.rules.kernel_categories import Categories, load
from rocpd.schema.rules.steps import STEP_MARKER, is_step


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
        points: those of all ranks, in order, on one line of time.
        edges: between them, in order of what waits.
        link: of each transfer the number of its link, -1 of all other points.
        meeting: of each transfer the number of its collective, in order of links and time; -1 of all others.
        move: of each transfer the number in `moves` of what it does, -1 where unknown and of all others.
        links: those that collectives and transfers run on.
        moves: what calls say that transfers do, as MPI names it, such as `ALLREDUCE`.
        names: what numbers of names stand for.
        steps: rank -> number of a step -> the points at which it begins and ends.
        hosts: rank -> name of its host.
        matched: share of the time in communication kernels whose partners are known; 1 without communication.
        contradicted: how many waits that an order of stream or launch says were not kept.
        hidden: edges that never bind here, and might with other times.
    """

    points: Points
    edges: Edges
    link: Ints
    meeting: Ints
    move: Ints
    links: tuple[Link, ...]
    moves: tuple[str, ...]
    names: tuple[str, ...]
    steps: Mapping[int, Mapping[int, tuple[int, int]]]
    hosts: Mapping[int, str | None]
    matched: float
    contradicted: int
    hidden: Edges = NO_EDGES

    def replay(self, work: Ints | None = None, kept: Flags | None = None) -> Ints:
        """Return when each point comes [ns].

        Args:
            work: how long each point takes [ns]; None: as recorded.
            kept: which edges count; None: all.
        """
        edges = self.edges if kept is None else self.edges.take(kept)
        work = self.points.work if work is None else work
        return times_of(edges, work + self.points.lag)

    def cautious(self) -> JobGraph:
        """Return the same graph with the hidden waits, too; its replay is the recording."""
        edges = Edges.joined([self.edges, self.hidden])
        edges = edges.take(edges.source < edges.target)
        return replace(self, edges=edges.take(np.argsort(edges.target, kind="stable")), hidden=NO_EDGES)

    def in_pieces(self, ranks: Sequence[int], start: Ints, end: Ints) -> JobGraph:
        """Return the same graph with pieces of the trace in place of steps, numbered from 0.

        Args:
            ranks: whose pieces they are, one for each column of the others.
            start, end: of each piece (row) on each rank [ns of the line].
        """
        step = np.full(len(self.points), NULL)
        steps = {}
        for column, rank in enumerate(ranks):
            own = np.flatnonzero(self.points.rank == rank)
            times = self.points.time[own]
            at = np.searchsorted(start[:, column], times, side="right") - 1
            step[own] = np.where((at >= 0) & (times <= end[np.maximum(at, 0), column]), at, NULL)
            edges = [np.maximum(np.searchsorted(times, side[:, column]) - 1, 0) for side in (start, end)]
            steps[rank] = dict(enumerate(zip(*(own[edge].tolist() for edge in edges), strict=True)))
        return replace(self, points=replace(self.points, step=step), steps=steps)

    def recorded(self) -> Flags:
        """Return which edges are not inferred."""
        return ~np.isin(self.edges.kind, INFERRED)


def read_job(session: Federation, categories: Categories | None = None, step_marker: str = STEP_MARKER) -> JobGraph:
    """Return the graph of a job, of its whole trace whatever the window.

    Args:
        session: the job.
        categories: say which kernels are communication; None: the built-in ones.
        step_marker: markers that are steps.
    """
    work = partial(_of_rank, categories=categories or load(None), step=is_step(step_marker))
    answers = {rank.number: answer for rank, answer in session.map_ranks(work)}
    hosts = {rank.number: rank.hostname for rank in session.ranks}
    channels = [channel for _, of_rank in answers.values() for channel in of_rank]
    clocks = Clocks.of(session, channels)
    return join({number: graph for number, (graph, _) in answers.items()}, clocks.match(channels), clocks, hosts)


def _of_rank(reader: RankReader, categories: Categories, step: re.Pattern[str]) -> tuple[RankGraph, list[Channel]]:
    reading = RankReading.of(reader, {}).whole()
    names = OperationNames()
    graph = read_graph(reading, categories, step)
    return graph, channels_of(reading, read_ops(reading, names), names, categories)


def join(
    graphs: Mapping[int, RankGraph], matched: MatchedChannels, clocks: Clocks, hosts: Mapping[int, str | None]
) -> JobGraph:
    """Return the graph of a job.

    Args:
        graphs: rank -> its graph.
        matched: its communication.
        clocks: which times of ranks compare.
        hosts: rank -> name of its host.
    """
    process.keep_freed()
    return _Joining(graphs, clocks, hosts).job(matched)


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
    """Joins the graphs of ranks. Points are numbered rank by rank, then those of meetings, before they are in order."""

    def __init__(self, graphs: Mapping[int, RankGraph], clocks: Clocks, hosts: Mapping[int, str | None]) -> None:
        self.graphs, self.clocks, self.hosts = graphs, clocks, hosts
        sizes = [len(graph.points) for graph in graphs.values()]
        self.first = dict(zip(graphs, np.concatenate([[0], np.cumsum(sizes)])[:-1].tolist(), strict=True))
        self.codes: dict[str, int] = {}
        self.links: dict[Link, int] = {}
        self.moves: dict[str, int] = {}

    def job(self, matched: MatchedChannels) -> JobGraph:
        """Return the graph of the job."""
        ranks = np.concatenate([self.clocks.on_line(rank, graph.points.time) for rank, graph in self.graphs.items()])
        meetings = list(self._meetings(matched, ranks))
        time = np.concatenate([ranks, *(meeting.time for meeting in meetings)])
        order, place = in_time(time, self._ties(len(time)))
        points = self._points(time[order], place)
        columns = link, _, _ = self._moving(points, meetings, place)
        is_met = link >= 0
        local = [self._edges(rank, place, is_met) for rank in self.graphs]
        edges = in_order([*chain.from_iterable(local), *(self._between(points, each, place) for each in meetings)])
        return JobGraph(
            explained(points, edges),
            edges,
            *columns,
            tuple(self.links),
            tuple(self.moves),
            tuple(self.codes),
            {rank: self._steps(rank, place) for rank in self.graphs},
            self.hosts,
            self._matched(ranks, is_met[place]),
            sum(graph.contradicted for graph in self.graphs.values()),
            Edges.joined([graph.hidden.between(self._own(rank, place)) for rank, graph in self.graphs.items()]),
        )

    def _meetings(self, matched: MatchedChannels, time: Ints) -> Iterator[_Meeting]:
        """Yield the collectives of groups whose times compare; `time`: of the points of ranks [ns]."""
        number = len(time)
        for group in (*matched.groups, *((pair.sender, pair.receiver) for pair in matched.pairs)):
            if len({self.clocks.line(member.rank) for member in group}) == 1:
                came, left = (np.array(side) for side in zip(*map(self._ends_of, group), strict=True))
                yield _Meeting(group, came, left, time[came].max(0), number)
                number += came.shape[1]

    def _own(self, rank: int, column: Any) -> Any:
        """Return the part of a column of all points that is a rank's."""
        return column[self.first[rank] : self.first[rank] + len(self.graphs[rank].points)]

    def _ties(self, size: int) -> Codes:
        """Return of points at one time which come first: meetings after what comes to them, then transfers."""
        ties = np.ones(size, np.int8)
        for rank, graph in self.graphs.items():
            self._own(rank, ties)[:] = np.where(graph.points.kind == Point.TRANSFER, 2, 0)
        return ties

    def _points(self, time: Ints, place: Ints) -> Points:
        """Return the points in order, with names of the job; those of meetings without what they have of members."""
        nothing, none = np.zeros(len(time), np.int64), np.full(len(time), -1)
        kind, part = np.full(len(time), Point.MEETING, np.int8), np.full(len(time), -1, np.int8)
        points = Points(time, nothing, nothing, kind, none, none.copy(), none.copy(), none.copy(), part)
        for rank, graph in self.graphs.items():
            own, at = graph.points, self._own(rank, place)
            codes = np.array([self.codes.setdefault(text, len(self.codes)) for text in graph.names], np.int64)
            name = np.where(own.name == NULL, NULL, codes[np.maximum(own.name, 0)] if len(codes) else NULL)
            for column, values in (
                (points.work, own.work), (kind, own.kind), (points.rank, own.rank), (points.lane, own.lane),
                (points.name, name), (points.step, own.step), (part, own.part),
            ):  # fmt: skip
                column[at] = values
        return points

    def _moving(self, points: Points, meetings: Sequence[_Meeting], place: Ints) -> tuple[Ints, Ints, Ints]:
        """Return link, meeting and move of points; give transfers the work that is left once all have come."""
        link, meeting, move = (np.full(len(points), -1) for _ in range(3))
        for each in meetings:
            came, left, numbers = place[each.came], place[each.left], each.numbers
            points.name[place[numbers]], points.step[place[numbers]] = points.name[left[0]], points.step[came[0]]
            of = self.links.setdefault(self._link(each.group, int(points.name[left[0, 0]])), len(self.links))
            moves = self._moves(each.group[0], len(each.time))
            for ends in left:
                some = points.time[ends] >= each.time
                into = ends[some]
                points.work[into] = points.time[into] - each.time[some]
                link[into], meeting[into], move[into] = of, numbers[some], moves[some]
        return link, meeting, move

    def _edges(self, rank: int, place: Ints, is_met: Flags) -> Iterator[Edges]:
        """Yield the edges of a rank, but for those from its own arrival to transfers that wait for all members."""
        graph, own = self.graphs[rank], self._own(rank, place)
        edges = graph.edges.between(own)
        yield edges.take(~((edges.kind == Edge.COLLECTIVE) & is_met[edges.target]))
        if graph.possible:
            yield graph.possible.where(self.waits).between(own)

    @functools.cached_property
    def waits(self) -> frozenset[WaitPlace]:
        """Places that wait on some rank."""
        return frozenset[WaitPlace]().union(*(graph.waits for graph in self.graphs.values()))

    def _between(self, points: Points, meeting: _Meeting, place: Ints) -> Edges:
        """Return the edges of collectives."""
        came, left = place[meeting.came], place[meeting.left]
        in_time = points.time[left] >= meeting.time
        meets = np.broadcast_to(place[meeting.numbers], came.shape)
        source = np.concatenate([came.reshape(-1), meets[in_time]])
        return Edges.of(Edge.COLLECTIVE, source, np.concatenate([meets.reshape(-1), left[in_time]]))

    def _steps(self, rank: int, place: Ints) -> dict[int, tuple[int, int]]:
        own = self._own(rank, place)
        return {number: (int(own[a]), int(own[b])) for number, (a, b) in self.graphs[rank].steps.items()}

    def _matched(self, time: Ints, is_met: Flags) -> float:
        """Return the share of the time in communication kernels that wait for all; 1 without any time."""
        every = known = 0
        for rank, graph in self.graphs.items():
            own = self._own(rank, time)
            lengths = own[graph.ends] - own[graph.arrivals[1]]
            every += int(lengths.sum())
            known += int(lengths[self._own(rank, is_met)[graph.ends]].sum())
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
        graph, by = self.graphs[member.rank], self.first[member.rank]
        rows, points = graph.arrivals
        order = np.argsort(rows)
        at = order[np.searchsorted(rows[order], member.rows)]
        return points[at] + by, graph.ends[at] + by
