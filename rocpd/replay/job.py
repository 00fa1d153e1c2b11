"""The graph of a whole job: those of its ranks, joined where collectives and transfers meet; and its replay.

A collective starts to move data when the last member has come, and each member leaves when its part is done. Times of
ranks are laid on one line. Ranks whose clocks cannot be compared stay apart, and so does what is not matched: how much
of the communication is matched is part of the answer.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from rocpd.base.frozen import frozen
from rocpd.base.types import NULL, Flags, Ints
from rocpd.facts.communication.collectives import Channel
from rocpd.facts.communication.matching import Clocks, MatchedChannels
from rocpd.facts.communication.members import channels_of
from rocpd.facts.operations import OperationNames, read_ops
from rocpd.facts.rank import RankReading
from rocpd.federate.federation import Federation
from rocpd.federate.run.rank_reader import RankReader
from rocpd.replay.graph import (
    INFERRED,
    NO_EDGES,
    Edge,
    Edges,
    Point,
    Points,
    RankGraph,
    WaitPlace,
    in_order,
    read_graph,
)
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
    return _Joining(graphs, clocks, hosts).job(matched)


def _edges(graph: RankGraph, waits: Collection[WaitPlace]) -> Iterator[Edges]:
    """Yield the edges of a rank, those too that other ranks show; `waits`: places that wait on some rank."""
    yield graph.edges
    if graph.possible:
        edges, places = graph.possible
        yield edges.take(np.array([place in waits for place in places], bool))


class _Joining:
    """Joins the graphs of ranks."""

    def __init__(self, graphs: Mapping[int, RankGraph], clocks: Clocks, hosts: Mapping[int, str | None]) -> None:
        self.graphs, self.clocks, self.hosts = graphs, clocks, hosts
        self.codes: dict[str, int] = {}
        sizes = [len(graph.points) for graph in graphs.values()]
        self.first = dict(zip(graphs, np.concatenate([[0], np.cumsum(sizes)])[:-1].tolist(), strict=True))
        self.columns = list(map(np.concatenate, zip(*map(self._laid, graphs.items()), strict=True)))
        self.time, self.work = self.columns[0], self.columns[1]
        waits = frozenset[WaitPlace]().union(*(graph.waits for graph in graphs.values()))
        every = [(number, edges) for number, graph in graphs.items() for edges in _edges(graph, waits)]
        self.edges = Edges.joined([self._moved(number, edges) for number, edges in every])
        self.link, self.meeting, self.move = (np.full(len(self.time), -1) for _ in range(3))
        self.links: dict[Link, int] = {}
        self.moves: dict[str, int] = {}
        self.met = 0

    def _laid(self, item: tuple[int, RankGraph]) -> tuple[Ints, ...]:
        """Return the points of a rank on the line, with names of the job."""
        number, graph = item
        time, work, lag, kind, rank, lane, name, step, part = graph.points.columns()
        codes = np.array([self.codes.setdefault(text, len(self.codes)) for text in graph.names], np.int64)
        name = np.where(name == NULL, NULL, codes[np.maximum(name, 0)] if len(codes) else NULL)
        return self.clocks.on_line(number, time), work, lag, kind, rank, lane, name, step, part

    def _moved(self, number: int, edges: Edges) -> Edges:
        by = self.first[number]
        return Edges(edges.source + by, edges.target + by, edges.lag, edges.kind)

    def job(self, matched: MatchedChannels) -> JobGraph:
        """Return the graph of the job."""
        parts, alone = [], np.zeros(len(self.time), bool)
        together = [*matched.groups, *((pair.sender, pair.receiver) for pair in matched.pairs)]
        for group in together:
            if len({self.clocks.line(member.rank) for member in group}) == 1:
                parts.append(self._meet(group, alone))
        local = (self.edges.kind == Edge.COLLECTIVE) & alone[self.edges.target]
        points = Points(*map(np.concatenate, zip(self.columns, *(new for new, _ in parts), strict=True)))
        edges = Edges.joined([self.edges.take(~local), *(between for _, between in parts)])
        added = len(points) - len(self.time)
        of_moves = self.link, self.meeting, self.move
        link, meeting, move = (np.append(column, np.full(added, -1)) for column in of_moves)
        tie = np.select([points.kind == Point.MEETING, points.kind == Point.TRANSFER], [1, 2], 0)
        ordered, edges, place = in_order(points, edges, tie)
        back = np.empty_like(place)
        back[place] = np.arange(len(place))
        talking = points.kind[: len(self.time)] == Point.TRANSFER
        lengths = self._lengths()
        return JobGraph(
            ordered,
            edges,
            link[back],
            meeting[back],
            move[back],
            tuple(self.links),
            tuple(self.moves),
            tuple(self.codes),
            {rank: self._steps(rank, graph, place) for rank, graph in self.graphs.items()},
            self.hosts,
            float(lengths[alone].sum() / lengths[talking].sum()) if lengths[talking].sum() else 1.0,
            sum(graph.contradicted for graph in self.graphs.values()),
            Edges.joined([self._moved(number, graph.hidden) for number, graph in self.graphs.items()]).between(place),
        )

    def _steps(self, rank: int, graph: RankGraph, place: Ints) -> dict[int, tuple[int, int]]:
        by = self.first[rank]
        return {number: (int(place[a + by]), int(place[b + by])) for number, (a, b) in graph.steps.items()}

    def _lengths(self) -> Ints:
        """Return how long each communication kernel ran, at the point where it ends; 0 elsewhere [ns]."""
        lengths = np.zeros(len(self.time), np.int64)
        for number, graph in self.graphs.items():
            by = self.first[number]
            lengths[graph.ends + by] = self.time[graph.ends + by] - self.time[graph.arrivals[1] + by]
        return lengths

    def _meet(self, group: Sequence[Channel], alone: Flags) -> tuple[tuple[Ints, ...], Edges]:
        """Return the points at which a group's collectives start, and their edges; mark the ends that follow these."""
        came, left = (np.array(side) for side in zip(*map(self._ends_of, group), strict=True))
        members, count = came.shape
        last = self.time[came].max(0)
        number = len(self.time) + self.met + np.arange(count)
        self.met += count
        in_time = self.time[left] >= last
        link = self.links.setdefault(self._link(group, int(self.columns[6][left[0, 0]])), len(self.links))
        move = self._moves(group[0], count)
        for row in range(members):
            some = in_time[row]
            ends = left[row, some]
            alone[ends] = True
            self.work[ends] = self.time[ends] - last[some]
            self.link[ends], self.meeting[ends], self.move[ends] = link, number[some], move[some]
        meets = np.broadcast_to(number, came.shape)
        source = np.concatenate([came.reshape(-1), meets[in_time]])
        target = np.concatenate([meets.reshape(-1), left[in_time]])
        nothing = np.zeros(len(source), np.int64)
        zeros, unknown = np.zeros(count, np.int64), np.full(count, -1)
        step = self.columns[7][came[0]]
        new = last, zeros, zeros, zeros + Point.MEETING, unknown, unknown, self.columns[6][left[0]], step, unknown
        return new, Edges(source, target, nothing, nothing + Edge.COLLECTIVE)

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
