"""The graph of a whole job: the graphs of its ranks, joined where collectives and transfers meet; and its replay.

A collective starts to move data when its last member has come, and each member leaves when its part is done. Times of
ranks are put on a common line. Ranks whose clocks do not compare stay separate, and so does communication that is not
matched: the share that is matched is part of the answer.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from rocpd.base import Codes, Flags, Ints, by_key, frozen, process
from rocpd.base.packing import unpacked
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
    NO_POINTS,
    Edge,
    Edges,
    FewPoints,
    OrderedEdges,
    PackedGraph,
    Point,
    Points,
    PossibleWaits,
    RankGraph,
    WaitPlace,
    after_what_was_lost,
    in_order,
    in_time,
    left_unexplained,
    narrowed,
    numbers_in_time,
    small,
)
from rocpd.replay.set_clocks import jumps
from rocpd.replay.times import compiled, times_of
from rocpd.schema.rules.kernel_categories import Categories, load
from rocpd.schema.rules.steps import STEP_MARKER, is_step

MATCHED_AT_LEAST, WELL_MATCHED = 0.5, 0.9
"""Shares of matched communication below which waits for others are unknown, and below which costs may be higher."""

_MANY, _LARGE = 6_000_000, 1 << 20  # from so many points on, freed columns of so many bytes go back to the system
_FEW = 128  # ranks after which memory is given back; with more, the processes that read them are stopped meanwhile
_SOME = 1 << 18  # points from which on the free memory between columns is worth giving back
_AT_MEETINGS = (0, 0, Point.MEETING, -1, -1, -1, -1)
"""The columns of points of meetings, except for their times."""
_NAME = 5
"""The column of points that holds names."""


@frozen
class Link:
    """Ranks that communicate with each other in one way.

    Args:
        ranks: their numbers.
        name: number of the kernel's name.
        is_inferred: whether it is not known from calls: two ranks that each send to others at one time look like two
            that communicate, and their wait for these others looks like a slow transfer.
        sends: whether one rank sends to the other, as stages of a pipeline do.
        agents: the agents, rank by rank: those of several GPUs of the same ranks are links of their own.
    """

    ranks: tuple[int, ...]
    name: int
    is_inferred: bool
    sends: bool
    agents: tuple[int, ...] = ()


@frozen
class JobGraph:
    """A job as a graph.

    Args:
        points: those of each rank, in order, on one line of time, on which the first comes at 0; then meetings.
        edges: between the points, in order of their targets.
        own: rank -> the number of its first point, and of the first point after its last.
        order: numbers of points such that each comes after all that it waits for.
        link: the number of the link of each matched transfer.
        move: the number in `moves` of the operation of each matched transfer of which it is known.
        links: the links of collectives and transfers.
        moves: operations of transfers by their calls, as MPI names them, such as `ALLREDUCE`.
        names: the names that points refer to by number.
        steps: rank -> number of a step -> the points at which it begins and ends.
        hosts: rank -> name of its host.
        matched: share of the time in communication kernels whose partners are known; 1 without communication.
        contradicted: number of waits that follow from the order of a stream or a launch, but were not kept.
        clocks_ns: how far times of different clocks are likely to be apart for no reason.
        hidden: edges that never bind in the recording, but might with other times.
        agents: rank -> stream or thread -> place of its agent, as `RankGraph.agents`.
        moved: rank -> the offset added to its times on the line of its clock [ns].
    """

    points: Points
    edges: OrderedEdges
    own: Mapping[int, tuple[int, int]]
    order: Ints
    link: FewPoints
    move: FewPoints
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
        """Return the rank of each of some points; -1 for a meeting, which belongs to no rank."""
        ends = np.array([last for _, last in self.own.values()], np.int64)
        return np.array([*self.own, -1], np.int64)[np.searchsorted(ends, points, side="right")]

    def unmatched_in(self, counts: Flags) -> Ints:
        """Return the transfers without known partners among points; `counts`: whether each point is one of these."""
        return self.unmatched[counts[self.unmatched]]

    @functools.cached_property
    def rank(self) -> Ints:
        """The rank of each point; only changes need it for all points."""
        every: Ints = narrowed(self.rank_of(np.arange(len(self.points))))
        return every

    @functools.cached_property
    def unmatched(self) -> Ints:
        """The numbers of the transfers whose partners are not known."""
        ends = (self.points.kind == Point.TRANSFER).nonzero()[0]
        alone: Ints = ends[self.link[ends] < 0]
        return alone

    @functools.cached_property
    def launching(self) -> frozenset[int]:
        """The ranks of which calls that launch operations are recorded."""
        first, kind = self.edges.first, self.edges.kind
        ends = ((rank, slice(first[low], first[high])) for rank, (low, high) in self.own.items())
        return frozenset(rank for rank, edges in ends if (kind[edges] == Edge.LAUNCH).any())

    def replay(self, work: Ints | None = None) -> Ints:
        """Return the time of each point [ns], given the time that each takes [ns]; None: as recorded."""
        return self._times(np.array(self.points.work if work is None else work, np.int64))

    def replay_without(self, *less: Ints) -> Ints:
        """Return the time of each point [ns] if it takes less by the sum of some times [ns], but at least 0."""
        return self.replay_less(lambda: ((slice(None), each) for each in less), np.result_type(np.int8, *less))

    def replay_less(self, less: Callable[[], Iterable[tuple[slice, Ints]]], kind: Any) -> Ints:
        """Return the same, where `less` returns slices of points with the times they lose [ns], of type `kind`."""
        with contextlib.suppress(OverflowError):  # points with a negative excess take longer
            return self._without(less(), np.result_type(self.points.time, self.points.lag, kind))
        return self._without(less(), np.dtype(np.int64))

    def _without(self, less: Iterable[tuple[slice, Ints]], kind: Any) -> Ints:
        takes = self.points.work.astype(kind)
        for here, each in less:
            takes[here] -= each
        return self._times(np.maximum(takes, 0, out=takes))

    def _times(self, takes: Ints) -> Ints:
        takes += self.points.lag
        return times_of(self.edges, self.order, takes)

    @property
    def is_large(self) -> bool:
        """Whether memory hardly has room for a second one."""
        return len(self.points) >= _MANY

    def give_back(self) -> None:
        """Give free memory between columns back to the system, if the columns are long enough."""
        if len(self.points) >= _SOME:
            process.give_back()

    def cautious(self) -> JobGraph:
        """Return the graph with the hidden waits as well; its replay is the recording."""
        if not len(self.hidden):
            return self
        points, waits = self.points, self.hidden
        lag = points.lag.copy()  # less where a hidden wait explains how late a point starts
        left = points.time[waits.target] - points.work[waits.target] - points.time[waits.source] - waits.lag
        np.minimum.at(lag, waits.target, np.minimum(left, lag[waits.target]).astype(lag.dtype))
        return replace(self, points=replace(points, lag=lag), edges=self.edges.also(waits), hidden=NO_EDGES)

    def in_pieces(self, ranks: Sequence[int], start: Ints, end: Ints) -> JobGraph:
        """Return the graph with pieces of the trace in place of steps, numbered from 0.

        Args:
            ranks: the ranks of the columns of `start` and `end`.
            start, end: bounds of each piece (row) on each rank (column), as times of points [ns].
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
        step[meets] = step[self.edges.source[self.edges.first[meets]]]  # that of the first source
        return replace(self, points=replace(self.points, step=step), steps=steps)

    def _as_launched(self, rank: int, piece: Ints, edges: Ints) -> Ints:
        """Return the piece that each point of a rank was launched in, so that all ranks have the same work in a piece.

        When a collective ends, a fast rank is further in its computing. Host work belongs to the piece in which it is.

        Args:
            rank: the number of the rank.
            piece: the piece of each point by its time.
            edges: ends of the collectives that lie between pieces [ns]; if no collectives end there, `piece` is kept.
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
    """Return the graph of a job, over its whole trace, whatever the window.

    Args:
        session: the job.
        categories: say which kernels are communication; None: the built-in ones.
        step_marker: markers that are steps.
    """
    work = partial(_of_rank, categories=categories or load(None), step=is_step(step_marker))
    graphs: dict[int, PackedGraph] = {}
    channels: list[Channel] = []
    for rank, (graph, of_rank) in session.job.counted(Stage.GRAPHS, session.map_ranks(work)):
        graphs[rank.number] = graph
        channels += of_rank
    clocks = Clocks.of(session, channels)
    return join(graphs, clocks.match(channels), clocks, session)


def _of_rank(reader: RankReader, categories: Categories, step: re.Pattern[str]) -> tuple[PackedGraph, list[Channel]]:
    reading = RankReading.of(reader, {}).whole()
    names = OperationNames()
    graph = read_graph(reading, categories, step)
    return graph, channels_of(reading, read_ops(reading, names), names, categories)


def join(graphs: dict[int, PackedGraph], matched: MatchedChannels, clocks: Clocks, session: Federation) -> JobGraph:
    """Return the graph of a job, without ranks that neither compute nor meet others if some compute.

    Nobody waits for such ranks, as launchers and files without events: they would only be ranks unlike all others.

    Args:
        graphs: rank -> its graph; graphs are removed from it one by one, so that none is in memory twice.
        matched: its communication.
        clocks: says which times of ranks compare.
        session: the job; if it has many ranks, its processes are stopped during the replay.
    """
    if computing := {rank for rank, graph in graphs.items() if graph.computes}:
        groups = (*matched.groups, *((pair.sender, pair.receiver) for pair in matched.pairs))
        for rank in graphs.keys() - computing - {member.rank for group in groups for member in group}:
            del graphs[rank]
    is_large = sum(graph.points for graph in graphs.values()) >= _MANY
    process.keep_freed(_LARGE if is_large else process.KEPT)
    if is_large or len(graphs) > _FEW:
        session.executor.rest()
    hosts = {rank.number: rank.hostname for rank in session.ranks}
    job = _Joining(graphs, clocks, hosts).job(matched)
    job.give_back()
    if is_large:  # while memory has room for the compiler
        compiled(job.edges, job.order, np.result_type(job.points.time, job.points.lag))
    return job


class _Meeting(NamedTuple):
    """The collectives of a group: its members (rows) come to each (column), which starts when the last one has come.

    Args:
        group: the channels.
        came, left: numbers of the points at which the members come, and at which they leave.
        time: when each starts [ns].
        number: number of the point at which the first one starts.
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

    def left_by(self, member: int, time: Ints) -> Edges:
        """Return the edges from the collectives to the transfers of a member; `time`: of all points [ns]."""
        ends = self.left[member]
        some = time[ends] >= self.time
        return Edges.of(Edge.COLLECTIVE, self.numbers[some], ends[some])


class _Joining:
    """Joins the graphs of ranks. Points are numbered rank by rank, then come those of meetings."""

    def __init__(self, graphs: dict[int, PackedGraph], clocks: Clocks, hosts: Mapping[int, str | None]) -> None:
        self.packed, self.clocks, self.hosts = graphs, clocks, hosts
        edges = np.cumsum([0, *(graph.points for graph in graphs.values())]).tolist()
        self.own = dict(zip(graphs, pairwise(edges), strict=True))
        self.count: int = edges[-1]
        self.most = sum(graph.edges for graph in graphs.values())
        self.kinds = _kinds(graphs.values())
        self.codes: dict[str, int] = {}
        self.links: dict[Link, int] = {}
        self.moves: dict[str, int] = {}
        self.graphs: dict[int, RankGraph] = {}  # without points and edges
        self.edges: dict[int, bytes] = {}  # packed
        self.shifts = {rank: clocks.shift(rank) for rank in graphs}

    def job(self, matched: MatchedChannels) -> JobGraph:
        """Return the graph of the job."""
        groups = [*matched.groups, *((pair.sender, pair.receiver) for pair in matched.pairs)]
        groups = [group for group in groups if self._is_met(group)]
        time, moved = np.zeros(self.count + sum(len(group[0].rows) for group in groups), np.int64), self._moved()
        points = self._points(time, moved)
        origin = int(time[: self.count].min()) if self.count else 0
        time[: self.count] -= origin
        time = time.astype(np.result_type(np.int32, small(int(time.max(initial=0)))), copy=False)
        points, moved = replace(points, time=time), {rank: moved.get(rank, 0) - origin for rank in self.own}
        meetings = list(self._meetings(groups, time))
        link, move = map(FewPoints.of, self._moving(points, meetings))
        is_met = link[:] >= 0
        steps = {rank: self._steps(rank) for rank in self.graphs}
        share, contradicted = self._matched(time, is_met), sum(each.contradicted for each in self.graphs.values())
        hidden = [graph.hidden.among(self.own[rank][0], self.kind) for rank, graph in self.graphs.items()]
        agents = {rank: graph.agents for rank, graph in self.graphs.items()}
        points, edges = self._edges(points, is_met, meetings)
        order = numbers_in_time(time, _ties(points.kind), self.kind)
        texts = tuple(self.links), tuple(self.moves), tuple(self.codes)
        graph = JobGraph(points, edges, self.own, order, link, move, *texts, steps, self.hosts, share, contradicted)
        return replace(graph, clocks_ns=self.clocks.likely_ns, hidden=Edges.joined(hidden), agents=agents, moved=moved)

    def _is_met(self, group: Sequence[Channel]) -> bool:
        """Whether all members are on one line, and none may be on another line that does not fit with it."""
        lines = {self.clocks.line(member.rank) for member in group}
        return len(lines) == 1 and (not self.clocks.are_contradicted or self.clocks.is_whole(tuple(group)))

    def _moved(self) -> dict[int, int]:
        """Return rank -> the offset that lets lines that do not compare begin their steps together [ns].

        Else the job would seem as long as their clocks are apart. Jumps of clocks that were set go into `shifts`.
        """
        lines = {rank: self.clocks.line(rank) for rank in self.packed}
        if len(set(lines.values())) < 2:
            return {}
        begin = {rank: self._begin(rank) for rank, graph in self.packed.items() if graph.points}
        self.shifts |= jumps({rank: each for rank, each in begin.items() if len(each) > 1}, lines, self._events)
        steps = [{number for number in each if number is not None} for each in begin.values() if len(each) > 1]
        first = min(set.intersection(*steps), default=None) if steps else None
        begins: dict[int, int] = {}
        for rank, each in begin.items():
            at = each.get(first, each[None])
            begins[lines[rank]] = min(at, begins.get(lines[rank], at))
        base = min(begins.values(), default=0)
        return {rank: base - begins[line] for rank, line in lines.items() if begins.get(line, base) != base}

    def _begin(self, rank: int) -> dict[int | None, int]:
        """Return number of a step -> its begin on a rank [ns]; None -> the begin of the rank."""
        graph = self.packed[rank].drawn()
        at = [0, *(begin for begin, _ in graph.steps.values())]
        times = self.clocks.on_line(rank, graph.points.time[at]).tolist()
        return dict(zip([None, *graph.steps], times, strict=True))

    def _events(self, rank: int) -> Ints:
        """Return starts and ends of what a rank does [ns of its clock]."""
        points = self.packed[rank].drawn().points
        return np.concatenate([points.time, points.time - points.work])

    def _on_line(self, rank: int, packed: PackedGraph, time: Ints, moved: int) -> RankGraph:
        """Return the graph of a rank with its points in order of the line; `time` is filled with their times there.

        Its edges are kept packed, changed along with the points where necessary.
        """
        graph, shift = packed.drawn(), self.shifts[rank]
        time[:] = shift.to_line(graph.points.time) + moved
        ties = _ties(graph.points.kind)
        is_ordered = ((time[1:] > time[:-1]) | ((time[1:] == time[:-1]) & (ties[1:] >= ties[:-1]))).all()
        self.edges[rank] = packed.waits
        if shift.jump or not is_ordered:
            graph = packed.whole()
            graph = graph.less_jump(shift.jump, shift.since) if shift.jump else graph
            if not is_ordered:
                order, place = in_time(time, ties)
                time[:] = time[order]
                graph = graph.in_order(order, place)
            self.edges[rank] = PackedGraph.of(graph).waits
        return graph

    def _meetings(self, groups: Sequence[Sequence[Channel]], time: Ints) -> Iterator[_Meeting]:
        """Yield the collectives of groups; their times go into `time`, behind those of the points of ranks [ns]."""
        number = self.count
        for group in groups:
            came, left = (np.array(side) for side in zip(*map(self._ends_of, group), strict=True))
            meeting = _Meeting(group, came, left, time[came].max(0), number)
            time[meeting.numbers] = meeting.time
            yield meeting
            number += came.shape[1]

    def _points(self, time: Ints, moved: Mapping[int, int]) -> Points:
        """Return the points with the job's numbers of names; meetings still lack the columns that members give them."""
        codes = {
            names: np.array([*(self.codes.setdefault(text, len(self.codes)) for text in names), -1], np.int64)
            for names in dict.fromkeys(graph.names for graph in self.packed.values())
        }
        kinds = [*self.kinds[0]]
        kinds[_NAME] = np.dtype(small(len(self.codes)))
        # Empty columns: they are filled rank by rank, while the columns of the ranks are let go.
        points = Points(time, *(np.empty(len(time), kind) for kind in kinds[1:]))
        for column, value in zip(points.columns()[1:], _AT_MEETINGS, strict=True):
            column[self.count :] = value
        marked: list[tuple[Ints, Ints]] = []
        common: list[Ints] = []
        for rank in _few_at_once(self.own):
            packed, (first, last) = self.packed.pop(rank), self.own[rank]
            graph = self._on_line(rank, packed, time[first:last], moved.get(rank, 0))
            for into, column in zip(points.columns()[1:], graph.points.columns()[1:], strict=True):
                into[first:last] = codes[packed.names][column] if into is points.name else column
            marked.append((graph.marked[0] + first, codes[packed.names][graph.marked[1]]))
            common += [distinct(marked[-1][1])] if packed.computes else []
            self.graphs[rank] = replace(graph, points=NO_POINTS, names=(), edges=NO_EDGES, possible=None)
        # Names of markers around host work that all computing ranks have.
        of_all = functools.reduce(np.intersect1d, common) if len(common) > 1 else np.zeros(0, np.int64)
        for at, name in marked:
            points.name[at] = np.where(np.isin(name, of_all), name, points.name[at])
        return points

    def _moving(self, points: Points, meetings: Sequence[_Meeting]) -> tuple[Ints, Ints]:
        """Return link and move of each point; reduce the work of transfers to the time after all members have come."""
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

    def _edges(self, points: Points, is_met: Flags, meetings: Sequence[_Meeting]) -> tuple[Points, OrderedEdges]:
        """Return the points with the time that edges leave unexplained, and the edges; graphs are let go."""
        unexplained: list[Ints] = []

        def parts() -> Iterator[Edges]:
            waits, left = self.waits, _left(meetings)
            for rank in _few_at_once(self.own):
                (first, last), (edges, possible) = self.own[rank], unpacked(self.edges.pop(rank))
                edges = _own_edges(edges, possible, is_met[first:last], waits).among(first, self.kind)
                leaves = (each.left_by(member, points.time) for each, member in left.get(rank, ()))
                edges = _by_target([edges, *leaves])
                here = slice(first, last)
                lost, lag = after_what_was_lost(points, left_unexplained(points, edges, here), here, self.kind)
                unexplained.append(narrowed(lag))
                yield _by_target([edges, lost]) if len(lost) else edges
            for each in meetings:
                yield Edges.of(Edge.COLLECTIVE, each.came.T.reshape(-1), np.repeat(each.numbers, len(each.came)))

        most = self.most + self.count + 2 * sum(each.came.size for each in meetings)
        edges = OrderedEdges.joined(parts(), len(points), most, (self.kind, self.kinds[1]))
        lag = np.concatenate([*unexplained, np.zeros(len(points) - self.count, np.int8)])
        return replace(points, lag=lag), edges

    @functools.cached_property
    def kind(self) -> Any:
        """The type of numbers that holds numbers of points."""
        return small(2 * self.count)

    @functools.cached_property
    def waits(self) -> frozenset[WaitPlace]:
        """The places of communication kernels that wait on some rank."""
        return frozenset[WaitPlace]().union(*(graph.waits for graph in self.graphs.values()))

    def _steps(self, rank: int) -> dict[int, tuple[int, int]]:
        first, _ = self.own[rank]
        return {number: (a + first, b + first) for number, (a, b) in self.graphs[rank].steps.items()}

    def _matched(self, time: Ints, is_met: Flags) -> float:
        """Return the matched share of the time in communication kernels; 1 without any time."""
        every = known = 0
        for rank, graph in self.graphs.items():
            here = slice(*self.own[rank])
            lengths = time[here][graph.ends] - time[here][graph.arrivals[1]]
            every += int(lengths.sum())
            known += int(lengths[is_met[here][graph.ends]].sum())
        return known / every if every else 1.0

    def _moves(self, member: Channel, count: int) -> Ints:
        """Return the number of the operation of each transfer of a channel; -1 where no call says it."""
        if not len(member.moves):
            return np.full(count, -1)
        names = [move.operation if move else "" for move in member.transfers]
        codes = [self.moves.setdefault(name, len(self.moves)) if name else -1 for name in names]
        return np.array([*codes, -1], np.int64)[member.moves]

    def _link(self, group: Sequence[Channel], name: int) -> Link:
        ranks, agents = zip(*sorted((member.rank, member.agent) for member in group), strict=True)
        is_known = self.clocks.is_whole(tuple(group)) and all(member.is_recorded for member in group)
        return Link(tuple(sorted(set(ranks))), name, not is_known, any(member.role for member in group), agents)

    def _ends_of(self, member: Channel) -> tuple[Ints, Ints]:
        """Return the points at which the kernels of a channel start, and the points at which they end."""
        graph, (first, _) = self.graphs[member.rank], self.own[member.rank]
        rows, points = graph.arrivals
        order = np.argsort(rows)
        at = order[np.searchsorted(rows[order], member.rows)]
        return points[at] + first, graph.ends[at] + first


def _few_at_once(ranks: Iterable[int]) -> Iterator[int]:
    """Yield ranks whose graphs are taken apart; now and then, the memory freed by them is given back."""
    for number, rank in enumerate(ranks, 1):
        yield rank
        if number % _FEW == 0:
            process.give_back()


def _nearest(meetings: Sequence[_Meeting], time: Ints) -> dict[int, int]:
    """Return `id` of a channel in several pairs, as in a ring -> number of the pair whose ends lie closest.

    It ends with the later of its transfers, at the same time as the partner in that transfer.
    """
    apart: dict[int, dict[int, float]] = {}
    for number, each in enumerate(meetings):
        if len(each.group) == 2 and each.group[0].role:
            mean = float(np.abs(time[each.left[0]] - time[each.left[1]]).mean())
            for member in each.group:
                apart.setdefault(id(member), {})[number] = mean
    return {channel: min(each, key=each.__getitem__) for channel, each in apart.items()}


def _ties(kind: Codes) -> Codes:
    """Return the order of points at the same time: meetings after their arrivals, then transfers."""
    return np.select([kind == Point.MEETING, kind == Point.TRANSFER], [np.int8(1), np.int8(2)], np.int8(0))


def _by_target(parts: Sequence[Edges]) -> Edges:
    every = Edges.joined(parts)
    return every.take(np.argsort(every.target, kind="stable"))


def _own_edges(edges: Edges, possible: PossibleWaits | None, is_met: Flags, waits: Collection[WaitPlace]) -> Edges:
    """Return the edges of a rank, by target, without those from its own arrival to transfers that wait for all."""
    edges = edges.take(~((edges.kind == Edge.COLLECTIVE) & is_met[edges.target]))
    return in_order([edges, possible.where(waits)] if possible else [edges])


def _left(meetings: Iterable[_Meeting]) -> dict[int, list[tuple[_Meeting, int]]]:
    """Return rank -> the collectives that it comes to, each with its place among the members."""
    return by_key((member.rank, (each, at)) for each in meetings for at, member in enumerate(each.group))


def _kinds(graphs: Collection[PackedGraph]) -> tuple[list[Any], Any]:
    """Return the types that hold the columns of points of all graphs, and the type that holds the lags of edges."""
    *of_points, lags = zip(*{graph.kinds for graph in graphs} or {"l" * 9}, strict=True)
    return [np.result_type(*set(each)) for each in of_points], np.result_type(np.int16, *set(lags))
