"""The work of a rank as points in time, each with the points that it waited for. Reads one rank, never another.

A point is the time at which a call launched something, a step began, a wait was over, or an operation ended. It comes
when the latest point that it waits for has come and its own work is done: that of a kernel, or of the host between two
calls. The edges:

- a thread goes on from point to point; after a long pause, from the last action of another thread of the rank;
- an operation waits for its launch, and for the operation before it on its stream;
- a call that synchronises, blocks or takes long ends no earlier than the operations that it waits for;
- operations of other streams that were launched before may be waited for as well, the last one or an earlier one: this
  is inferred where points of a kind never start before them, and often start at once when they end.

Time that no edge explains stays as the lag of a point once ranks are joined, so that a replay without a change is the
recording. Sources: the dependency graphs of Daydream (Zhu et al., ATC 2020) and dPRO (Hu et al., MLSys 2022).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from rocpd.base import NULL, Flags, Ints, by_key, frozen
from rocpd.facts.agent_time import PAUSE, History, read_history
from rocpd.facts.columns import EqualColumns, distinct, first_of, grouped, nth_of, numbered
from rocpd.facts.operations import OperationNames, Ops, kinds_of, read_ops
from rocpd.facts.rank import RankReading
from rocpd.facts.regions import HostCall
from rocpd.facts.timeline import COMMUNICATION, COMPUTE, outermost
from rocpd.replay.marked import BEGINS, ENDS, OrderedCalls, StepEdge, StepMarks
from rocpd.replay.points import (
    NO_EDGES,
    Edge,
    Edges,
    PackedGraph,
    Point,
    Points,
    PossibleWaits,
    RankGraph,
    WaitPlace,
    in_order,
    in_time,
    narrowed,
    shared,
)
from rocpd.schema.rules.categories import is_marker as is_mark
from rocpd.schema.rules.kernel_categories import Categories
from rocpd.schema.rules.launch import launching_regions
from rocpd.schema.rules.steps import folded

AT_ONCE = 10_000
"""An operation starts, or a call returns, at most so long after the end of its wait [ns]."""

_OVERLAP = 1_000  # of operations that run one after the other, by inexact clocks [ns]
_EXPLAINED = 2_000  # unexplained time after an edge up to which the edge is the wait [ns]
_LONG = 20_000  # from so long on, calls and pauses of the host may be waits [ns]
_SEEN = 0.02  # share of the points of a kind that may contradict an inferred wait
_WOKEN = 50_000  # from the action of a thread to the thread that waited for it [ns]
_MUCH_LONGER = 4  # times: a pause and the time since another thread's action; a launch and unhindered ones of its kind
_UNHINDERED = 10  # one of so many launches does not wait for room in its queue
_FOR_SOMETHING = 100_000  # at the end of waits so long, an operation that ends just before is no chance [ns]
_PART = 5  # of a call that waits for its copy, or that synchronises: at most this fraction comes after the wait
_NEARLY = 0.8  # of the pauses of a thread
_NEARLY_ALL = 0.95  # of the operations that are queued on a stream
_SYNCHRONISES, _COPIES = (list(HostCall).index(kind) for kind in (HostCall.SYNCHRONISE, HostCall.COPY))
_NEVER = np.iinfo(np.int64).max
_AHEAD = 3  # operations of a stream that may be launched between an earlier one and the point that waits for it
_MOST_STREAMS, _OF_GPU = 12, 4  # busiest streams of a rank that are searched for waits, and at least of each GPU


BEFORE, INSIDE = "host work before ", "host work in "
"""Prefixes of names of host work that is no call; then comes the name of the next call, or of the marker around it."""

_AT_STEPS = ("time between steps", "host work at the end of the step")


def read_graph(reading: RankReading, categories: Categories, step: re.Pattern[str]) -> PackedGraph:
    """Return the graph of a rank, over its whole trace.

    Args:
        reading: reads the rank.
        categories: say which kernels are communication.
        step: markers that are steps.
    """
    whole = reading.whole()

    def derive() -> tuple[PackedGraph, dict[str, int]]:
        return _read_graph(whole, categories, step), dict(whole.left_out)

    asked = "graph", step  # no fact: keeping it takes a quarter of the time of drawing it again, and much space
    graph, left_out = whole.reader.once(asked, derive) if categories.is_built_in else derive()
    reading.also_left_out(left_out)
    return graph


def _read_graph(whole: RankReading, categories: Categories, step: re.Pattern[str]) -> PackedGraph:
    operations = OperationNames()
    ops = read_ops(whole, operations, stacks=True)
    history = read_history(whole)
    kinds = kinds_of(ops, categories, operations)
    steps = StepMarks.read(whole, step)
    return PackedGraph.of(_Drawing(ops, kinds, operations.full, history, steps).graph())


class _Asked(NamedTuple):
    """Points whose waits are to be inferred.

    Args:
        time: when the work of each starts [ns].
        own: when it could have started by recorded waits [ns].
        soon: longest time from the end of a wait to this start [ns].
        since: it does not wait for operations that are launched later [ns].
        kind: a number shared by points of one place.
        stream: its own stream, within which no waits are inferred.
        late: whether it may wait for an operation that ended before `own`, by clocks that differ a little.
    """

    time: Ints
    own: Ints
    soon: Ints
    since: Ints
    kind: Ints
    stream: Ints
    late: Flags

    def take(self, rows: Ints) -> _Asked:
        """Return some of the points."""
        columns: Any = (column[rows] for column in self)
        return _Asked(*columns)


class _Waits(NamedTuple):
    """Points that never start before the operations of a stream that were launched before them.

    Args:
        stream: its id.
        source: rows of operations.
        target: places among the points in question.
        waited: time from the end of the operation to the start of each point [ns].
        is_seen: whether points of its kind start right after these operations often enough.
        usual: usual time from the end to the start then [ns].
    """

    stream: int
    source: Ints
    target: Ints
    waited: Ints
    is_seen: Flags
    usual: int


@frozen
class _Host(EqualColumns):
    """Points of the host, thread by thread, in order of time; all columns are equally long.

    Args:
        thread, time: of each point [ns].
        name: number of the name of the call that ends at it; `NULL`: none.
        since: it does not wait for operations launched from then on [ns]; `NULL`: it waits for no operation.
        call: row of the region that launches at it; -1: none.
        is_step: `BEGINS` or `ENDS` if a step does at it, else 0.
        woken: whether another thread may have woken this one.
        is_call: whether the work up to it belongs to the call, not to the host before the call.
        is_pause: whether it only ends a pause before a call.
        begins: whether a call begins at it.
    """

    thread: Ints
    time: Ints
    name: Ints
    since: Ints
    call: Ints
    is_step: Ints
    woken: Ints
    is_call: Ints
    is_pause: Ints
    begins: Ints

    @classmethod
    def at(cls, thread: Ints, time: Ints, name: Ints) -> _Host:
        """Return points that wait for nothing and launch nothing."""
        nothing = np.zeros(len(time), np.int64)
        return cls(thread, time, name, nothing + NULL, nothing - 1, *[nothing] * 5)


class _Drawing:
    """Draws the graph of one rank. Points are numbered from 0: first those of the host, then those of operations."""

    def __init__(
        self, ops: Ops, kinds: Ints, operations: Sequence[str | None], history: History, steps: StepMarks
    ) -> None:
        regions, self.names = history.regions, history.names.texts
        self.ops, self.kinds, self.regions, self.calls = ops, kinds, regions, history.calls
        calls = [text or "" for text in history.names.texts]
        before = [BEFORE + text for text in calls]
        self.texts = shared((*(text or "" for text in operations), *calls, *before, *_AT_STEPS))
        self.named_before, self.before_calls = len(operations), len(calls)
        self.call = launching_regions(regions.stack, regions.start, regions.end, ops.stack)
        self.steps = steps.with_unmarked(self._calls())
        self.launched = self._launched()
        self.step = self.steps.at(np.append(regions.thread, NULL)[self.call], self.launched)
        self.host = self._host()
        self.host = self.host.take(np.flatnonzero(~self._is_needless()))
        # Time between steps belongs to the step that it delays; all other time to the step that it lies in.
        begins = (self.host.is_step == BEGINS) | self.host.begins
        self.host_step = self.steps.at(self.host.thread, self.host.time - 1 + begins)
        self.edges: list[Edges] = []
        self.contradicted = 0
        self.waits: set[WaitPlace] = set()
        self.possible: list[PossibleWaits] = []
        self.hidden = [NO_EDGES]

    def _calls(self) -> OrderedCalls:
        """Return the calls of all threads; those do the same that have one name, and launch operations of one name."""
        regions, launches = self.regions, np.full(len(self.regions.start) + 1, NULL)
        launches[self.call] = self.ops.name
        rows = (self.calls >= 0).nonzero()[0]
        rows = rows[np.argsort(regions.start[rows], kind="stable")]
        does = numbered(regions.name[rows], launches[rows])
        return OrderedCalls(regions.thread[rows], regions.start[rows], regions.end[rows], does)

    def graph(self) -> RankGraph:
        """Return the graph."""
        ops, host, first = self.ops, self.host, len(self.host.time)
        talks = (self.kinds == COMMUNICATION).nonzero()[0]
        arrival = np.full(len(ops), -1)
        arrival[talks] = first + len(ops) + np.arange(len(talks))
        begins = np.where(arrival >= 0, arrival, first + np.arange(len(ops)))
        ends = first + np.arange(len(ops))
        self._launches(begins)
        self._streams(begins, ends)
        self._between_streams(begins, ends)
        self._edge(arrival[talks], ends[talks], np.zeros(len(talks), np.int64), Edge.COLLECTIVE)
        work = self._threads(ends)
        communicates = self.kinds == COMMUNICATION
        zeros = np.zeros(len(talks), np.int64)
        columns = (
            (host.time, ops.end, ops.start[talks]),
            (work, ops.duration, zeros),
            (np.where(host.is_step, Point.STEP, Point.HOST), np.where(communicates, Point.TRANSFER, Point.OPERATION),
             zeros + Point.ARRIVAL),
            (numbered(host.thread), ops.stream, ops.stream[talks]),
            (self._host_names(), ops.name, ops.name[talks]),
            (self.host_step, self.step, self.step[talks]),
            (np.full(first, -1), self.kinds, self.kinds[talks]),
        )  # fmt: skip
        time, work, kind, lane, name, step, part = (np.concatenate(column) for column in columns)
        nothing = np.zeros(len(time), np.int64)
        name, step = np.maximum(name, -1), np.maximum(step, -1)  # `NULL` needs eight bytes
        points = Points(time, work, nothing, kind, lane, name, step, part)
        order, place = in_time(time)
        edges = in_order([each.between(place) for each in self.edges])
        rows = ops.row[talks]
        *marked, texts = self._marked(place)
        return RankGraph(
            points.take(order).narrowed(),
            edges.narrowed(),
            (rows, place[arrival[talks]]),
            place[ends[talks]],
            shared((*self.texts, *texts)),
            {number: (int(place[a]), int(place[b])) for number, (a, b) in self._step_points().items()},
            self.contradicted,
            frozenset(self.waits),
            self._possible(place),
            Edges.joined(self.hidden).between(place).narrowed(),
            self._agents(),
            (marked[0], marked[1]),
        )

    def _marked(self, place: Ints) -> tuple[Ints, Ints, tuple[str, ...]]:
        """Return the points that end host work around a marker without calls; then number and text of each one's name.

        Points have their final numbers. Ranks that do the same between two calls may differ in the next call: the
        marker shows that the work is the same.
        """
        regions, host = self.regions, self.host
        is_marker = np.array([is_mark(text) for text in self.names], bool)
        rows = ((self.calls < 0) & is_marker[regions.category]).nonzero()[0]
        if not len(rows) or not len(host.time):
            return np.zeros(0, np.int64), np.zeros(0, np.int64), ()
        thread, start, end, name = (
            column[rows] for column in (regions.thread, regions.start, regions.end, regions.name)
        )
        called = (self.calls >= 0).nonzero()[0]
        called = called[np.lexsort((regions.start[called], regions.thread[called]))]
        calls = regions.thread[called], regions.start[called]
        at = _first_at((host.thread, host.time), (thread, end))
        held = np.minimum(at, len(host.time) - 1)
        is_inside = (at == held) & (at > 0) & (_first_at(calls, (thread, start)) == _first_at(calls, (thread, end)))
        some = (is_inside & (host.thread[held] == thread) & (host.thread[held - 1] == thread)).nonzero()[0]
        some = some[(host.time[at[some] - 1] <= start[some]) & (host.is_step[at[some]] + host.is_call[at[some]] == 0)]
        some = some[first_of(numbered(at[some]))]
        texts = {folded(self.names[code] or ""): None for code in name[some].tolist()}
        number = {text: len(self.texts) + each for each, text in enumerate(texts)}
        numbers = [number[folded(self.names[code] or "")] for code in name[some].tolist()]
        return place[at[some]], np.array(numbers, np.int64), tuple(INSIDE + text for text in texts)

    def _agents(self) -> dict[int, int]:
        """Return the agents of streams and threads, as `RankGraph.agents`."""
        computes = self.kinds == COMPUTE
        stream, agent = (column[computes] for column in (self.ops.stream, self.ops.agent))
        agents = distinct(agent).tolist()
        if len(agents) < 2:
            return {}
        thread = np.append(self.regions.thread, NULL)[self.call[computes]]
        lane = -1 - np.searchsorted(distinct(self.host.thread), thread)
        pairs = {*zip(stream.tolist(), agent.tolist(), strict=True), *zip(lane.tolist(), agent.tolist(), strict=True)}
        return {lane: agents.index(each[0]) for lane, each in sorted(by_key(pairs).items()) if len(each) == 1}

    def _possible(self, place: Ints) -> PossibleWaits | None:
        """Return the edges that may exist, between points by their final numbers."""
        if not self.possible:
            return None
        first = np.cumsum([0, *(len(each.places) for each in self.possible)]).tolist()
        return PossibleWaits(
            Edges.joined([each.edges for each in self.possible]).between(place).narrowed(),
            narrowed(np.concatenate([each.at + by for each, by in zip(self.possible, first, strict=False)])),
            tuple(chain.from_iterable(each.places for each in self.possible)),
        )

    def _host_names(self) -> Ints:
        """Return the number of the name of each piece of host work: the call that it is, or the call after it."""
        host = self.host
        names = host.name + self.named_before + np.where(host.is_call, 0, self.before_calls)
        at_step = len(self.texts) - len(_AT_STEPS) + (host.is_step == ENDS)
        return np.where(host.is_step, at_step, np.where(host.name == NULL, NULL, names))

    def _is_needless(self) -> Flags:
        """Return the pauses that end for no known reason: they are joined to the work that comes after them.

        Else ranks would differ in the number of pieces of work there, and could not be compared in any of them.
        """
        host = self.host
        needless: Flags = (host.is_pause > 0) & (host.since == NULL)
        if host.woken[needless].any():
            needless &= self._woken(self._pauses()[1]) < 0
        return needless

    def _step_points(self) -> dict[int, tuple[int, int]]:
        rows = self.host.is_step.nonzero()[0]
        places = zip(self.host.time[rows].tolist(), self.host.thread[rows].tolist(), rows.tolist(), strict=True)
        at = {StepEdge(time, thread): row for time, thread, row in places}
        return {number: (at[start], at[end]) for number, (start, end) in self.steps.every.items()}

    def _edge(self, source: Ints, target: Ints, lag: Ints, kind: Edge) -> None:
        self.edges.append(Edges.of(kind, source, target, lag))

    def _keep(self, source: Ints, target: Ints, waited: Ints, usual: int, kind: Edge) -> None:
        """Add edges; `waited`: from source to start of the target's work [ns], negative where the wait was not kept."""
        kept = waited >= 0
        self.contradicted += int((~kept).sum())
        self._edge(source[kept], target[kept], np.minimum(waited[kept], usual), kind)

    def _host(self) -> _Host:
        """Return the points of the host."""
        regions = self.regions
        earliest = np.full(len(regions.start) + 1, _NEVER)
        np.minimum.at(earliest, self.call, self.ops.start)
        (launching,) = self._is_launching[:-1].nonzero()
        starts, ends = regions.start[launching], regions.end[launching]
        at = np.where(earliest[launching] >= ends, ends, starts)
        launches = _Host.at(regions.thread[launching], at, regions.name[launching])
        parts = [replace(launches, call=launching, begins=(at == starts).astype(np.int64))]
        for (_,), rows in grouped([regions.thread]):
            calls = rows[self.calls[rows] >= 0]
            parts += self._of_thread(calls[outermost(regions.start[calls], regions.end[calls])])
        parts += self._step_rows()
        host = _Host.joined(parts)
        # Within one ns, as by clocks of µs: a call ends, a step ends; a step begins, then a call, which launches.
        then = host.is_step == BEGINS, host.call >= 0, host.is_step > 0, host.begins, -host.is_call
        return host.take(np.lexsort((*then, host.time, host.thread)))

    @functools.cached_property
    def _is_launching(self) -> Flags:
        """Whether each region launches an operation; the last value is for no region."""
        is_launching = np.zeros(len(self.regions.start) + 1, bool)
        is_launching[self.call] = True
        return is_launching

    def _of_thread(self, calls: Ints) -> list[_Host]:
        """Return the points at which a thread may wait: the ends of its calls, and of its pauses."""
        regions, does = self.regions, self.calls[calls]
        thread, start, end, name = regions.thread[calls], regions.start[calls], regions.end[calls], regions.name[calls]
        waits = (does == _SYNCHRONISES) | (does == _COPIES)
        waits |= end - start >= self._long(name, end - start, self._is_launching[calls] & ~waits)
        blocks = (does == _COPIES) | self._is_launching[calls]
        before = np.append(NULL, end[:-1])[: len(end)]
        is_late = start - before >= _LONG
        is_late[:1] = True
        some, late, on_time = (rows.nonzero()[0] for rows in (waits, is_late, waits & ~is_late))
        begun = _Host.at(thread[on_time], start[on_time], name[on_time])
        paused = _Host.at(thread[late], start[late], name[late])
        ended = _Host.at(thread[some], end[some], name[some])
        woken = (start[late] - before[late] >= PAUSE).astype(np.int64)
        tells = bool((self.calls == _SYNCHRONISES).any())  # then only calls wait for operations
        return [
            replace(begun, begins=begun.begins + 1),
            replace(
                paused,
                begins=paused.begins + 1,
                since=np.where(tells, NULL, before[late]),
                woken=woken,
                is_pause=1 - waits[late],
            ),
            replace(ended, since=np.where(blocks, end, start)[some], is_call=ended.is_call + 1),
        ]

    def _long(self, name: Ints, takes: Ints, launches: Flags) -> Ints:
        """Return the length from which on calls may be waits [ns]; for launches, far longer than unhindered ones.

        A host that is slow in all launches would else have other pieces of work than others, and compare with none.
        """
        least = np.full(len(name), _LONG)
        some = launches.nonzero()[0]
        for (_,), rows in grouped([name[some]]):
            tenth = len(rows) // _UNHINDERED
            usual = int(np.partition(takes[some[rows]], tenth)[tenth])
            least[some[rows]] = max(_LONG, min(_MUCH_LONGER * usual, _NEVER))
        return least

    def _step_rows(self) -> list[_Host]:
        """Return the points at which steps begin and end, on the threads of their markers."""
        time, thread, kind = self.steps.edges()
        at = _Host.at(thread, time, np.full(len(time), NULL))
        return [replace(at, since=time, is_step=kind, woken=np.minimum(kind, 1))]

    def _threads(self, ends: Ints) -> Ints:
        """Add the edges of the host; return the work of its points [ns]."""
        host = self.host
        follows, pauses = self._pauses()
        row = np.arange(len(host.time))
        gap = np.where(follows, pauses, 0)
        may_wait = ((host.since != NULL) & follows).nonzero()[0]
        waits = self._synchronised(may_wait, ends)
        least = self._least(gap, waits)
        work = np.where(waits, 0, gap)
        woken = self._woken(pauses)
        since = host.time - host.time[woken]
        work = np.where(woken < 0, work, np.where(follows, np.minimum(work, since), since))
        before = row[follows]
        self._edge(before - 1, before, np.where(waits, np.minimum(gap, least), 0)[before], Edge.PROGRAM)
        some = ((woken >= 0) & ~waits).nonzero()[0]
        self._edge(woken[some], some, np.zeros(len(some), np.int64), Edge.BETWEEN_THREADS)
        return work

    def _pauses(self) -> tuple[Flags, Ints]:
        """Return which points follow another one of their thread, and the time since then [ns].

        The first point of a thread counts as after the thread's longest pause, as another thread may have woken it.
        """
        host, count = self.host, len(self.host.time)
        follows = np.append(False, host.thread[1:] == host.thread[:-1])[:count]
        gap = np.where(follows, host.time - np.append(0, host.time[:-1])[:count], 0)
        return follows, np.where(follows, gap, self._longest(gap))

    def _longest(self, gap: Ints) -> Ints:
        """Return the longest pause of the thread of each point [ns]."""
        thread = numbered(self.host.thread)
        longest = np.zeros(len(gap) + 1, np.int64)
        np.maximum.at(longest, thread, gap)
        return longest[thread]

    def _least(self, gap: Ints, waits: Flags) -> Ints:
        """Return the host's own time in points that wait, by the shortest one of the same name [ns]."""
        least = np.full(len(gap), _EXPLAINED)
        for (_,), rows in grouped([np.where(waits, self.host.name, -1)]):
            least[rows] = min(int(gap[rows].min()), _LONG)
        return least

    def _woken(self, gap: Ints) -> Ints:
        """Return the point of another thread that each point follows after a pause; -1: it follows its own thread.

        It does so where a thread pauses in most steps, and nearly always goes on right after an action of another one;
        pauses that are far longer than most may be stalls of the process.
        """
        host = self.host
        woken = np.full(len(host.time), -1)
        order = np.argsort(host.time, kind="stable")
        threads = host.thread[order]
        row = np.arange(len(order))
        run = np.maximum.accumulate(np.where(np.append(True, threads[1:] != threads[:-1])[: len(row)], row, 0))
        other = np.full(len(order), -1)
        other[order] = np.where(run > 0, order[run - 1], -1)
        paused = (host.woken & (other >= 0) & (gap >= PAUSE)).nonzero()[0]
        ago = host.time[paused] - host.time[other[paused]]
        soon = (ago <= _WOKEN) | (ago <= gap[paused] // _MUCH_LONGER)
        for _, rows in grouped([host.thread[paused], host.name[paused], (host.is_step == ENDS)[paused]]):
            usual = gap[paused[rows]] <= 2 * np.median(gap[paused[rows]])
            if soon[rows[usual]].mean() >= _NEARLY and len(rows) * 2 >= len(self.steps.every):
                woken[paused[rows[soon[rows]]]] = other[paused[rows[soon[rows]]]]
        return woken

    def _launches(self, begins: Ints) -> None:
        """Add the edges from launches to operations."""
        ops, host = self.ops, self.host
        at = np.full(len(self.regions.start) + 1, -1)
        launching = (host.call >= 0).nonzero()[0]
        at[host.call[launching]] = launching
        source = at[self.call]
        some = (source >= 0).nonzero()[0]
        waited = ops.start[some] - host.time[source[some]]
        before = self._before(ops)
        free = (ops.start[some] - before[some] > 2 * waited + _EXPLAINED) & (waited >= 0)
        # The wait may also have been for an operation of another stream that ended meanwhile.
        ended = np.sort(ops.end)
        free &= ended.searchsorted(ops.start[some], "right") == ended.searchsorted(host.time[source[some]], "right")
        self._keep(source[some], begins[some], waited, _usual(waited[free], _EXPLAINED), Edge.LAUNCH)

    def _launched(self) -> Ints:
        """Return the launch time of each operation [ns]; if its call is unknown, that of the next one of its stream."""
        ops, known = self.ops, self.call >= 0
        if not known.any():
            return ops.start
        launched = np.where(known, self.regions.start[self.call], _NEVER)
        if not known.all():
            for _, rows in grouped([ops.agent, ops.stream]):
                latest_first = rows[np.argsort(ops.start[rows], kind="stable")][::-1]
                launched[latest_first] = np.minimum.accumulate(launched[latest_first])
        return np.where(known, launched, np.minimum(launched, ops.start))

    def _before(self, ops: Ops) -> Ints:
        """Return the end of the operation before each on its stream [ns], `NULL` of the first."""
        self.order = np.lexsort((ops.row, ops.end, ops.start, ops.stream, ops.agent))
        agent, stream, end = (column[self.order] for column in (ops.agent, ops.stream, ops.end))
        same = np.append(False, (agent[1:] == agent[:-1]) & (stream[1:] == stream[:-1]))[: len(end)]
        before = np.full(len(ops), NULL)
        before[self.order] = np.where(same, np.append(NULL, end[:-1])[: len(end)], NULL)
        self.previous = np.full(len(ops), -1)
        self.previous[self.order] = np.where(same, np.append(-1, self.order[:-1])[: len(end)], -1)
        self.before = before
        return before

    def _streams(self, begins: Ints, ends: Ints) -> None:
        """Add the edges from each operation to the next one of its stream."""
        some = (self.previous >= 0).nonzero()[0]
        waited = self.ops.start[some] - self.before[some]
        # By some recorders, an operation begins a little before the one ahead of it ends.
        overlaps = (waited < 0) & (waited > -_OVERLAP) & (self.ops.end[some] > self.before[some])
        overlaps &= self.kinds[some] != COMMUNICATION
        early = some[overlaps]
        self._edge(ends[self.previous[early]], begins[early], waited[overlaps], Edge.STREAM)
        some, waited = some[~overlaps], waited[~overlaps]
        queued = (self.launched[some] < self.before[some] - AT_ONCE) & (waited >= 0) & (waited < AT_ONCE)
        usual = _usual(waited[queued], _EXPLAINED)
        # An operation that starts as soon after the one before it as queued ones do waits for nothing else.
        self.at_most = int(np.quantile(waited[queued], _NEARLY_ALL)) if queued.any() else 0
        self._keep(ends[self.previous[some]], begins[some], waited, usual, Edge.STREAM)

    def _between_streams(self, begins: Ints, ends: Ints) -> None:
        """Add the edges between streams, which are inferred."""
        ops, known = self.ops, self.call >= 0
        returned = self._launch_times()
        could_start = np.maximum(self.before + self.at_most, np.where(known, returned, NULL))
        number = _nth_in_step((ops.name, ops.stream), self.step, ops.start)
        kind = _place_of((ops.name, ops.stream), number, self._before_them())
        at_once = np.full(len(ops), AT_ONCE)
        asked = _Asked(ops.start, could_start, at_once, self.launched, kind, ops.stream, np.zeros(len(ops), bool))
        talks = (self.kinds == COMMUNICATION) & (self.step != NULL)
        for each in self._inferred(asked):
            seen, unseen = each.is_seen.nonzero()[0], (~each.is_seen & talks[each.target]).nonzero()[0]
            lag = np.minimum(each.waited, each.usual)
            source, target = ends[each.source], begins[each.target]
            self._edge(source[seen], target[seen], lag[seen], Edge.BETWEEN_STREAMS)
            places = self._places(each, number)
            if len(told := seen[talks[each.target[seen]]]):
                self.waits.update(places(told)[1])
            self._hide(each, begins, ends, ~talks)
            maybe = Edges.of(Edge.BETWEEN_STREAMS, source[unseen], target[unseen], lag[unseen])
            self.possible.append(PossibleWaits(maybe, *places(unseen)))

    def _hide(self, waits: _Waits, begins: Ints, ends: Ints, some: Flags) -> None:
        """Keep the waits of operations for communication that never show, the first of each stream."""
        talks = self.kinds[waits.source] == COMMUNICATION
        rows = (~waits.is_seen & talks & some[waits.target]).nonzero()[0]
        if not len(rows):
            return
        rows = rows[np.argsort(self.ops.start[waits.target[rows]], kind="stable")]
        source, target = waits.source[rows], waits.target[rows]
        first = first_of(numbered(source, self.ops.stream[target]))
        self.hidden.append(Edges.of(Edge.BETWEEN_STREAMS, ends[source[first]], begins[target[first]]))

    def _places(self, waits: _Waits, number: Ints) -> Callable[[Ints], tuple[Ints, tuple[WaitPlace, ...]]]:
        """Return the function that numbers the places of waits; `number`: of each operation in its step."""
        ops = self.ops

        def places(rows: Ints) -> tuple[Ints, tuple[WaitPlace, ...]]:
            target = waits.target[rows]
            columns = ops.name[target], ops.stream[target], number[target]
            place = numbered(*columns)
            first = first_of(place)  # the places repeat in each step
            every = zip(*(column[first].tolist() for column in columns), strict=True)
            return place, tuple(WaitPlace(self.texts[name], stream, nth, waits.stream) for name, stream, nth in every)

        return places

    def _before_them(self) -> tuple[Ints, Ints]:
        """Return the names of the last and the last but one operation before each on its stream; -1: none."""
        first = self.previous
        second = np.where(first >= 0, self.previous[first], -1)
        names = self.ops.name
        return np.where(first >= 0, names[first], -1), np.where(second >= 0, names[second], -1)

    def _launch_times(self) -> Ints:
        """Return the time of the point at which each operation was launched [ns]; `NULL` where unknown."""
        times = np.full(len(self.regions.start) + 1, NULL)
        launching = (self.host.call >= 0).nonzero()[0]
        times[self.host.call[launching]] = self.host.time[launching]
        return times[self.call]

    def _synchronised(self, rows: Ints, ends: Ints) -> Flags:
        """Add edges from operations to points of the host that wait for them; return which points wait."""
        host = self.host
        waits = np.zeros(len(host.time), bool)
        if not len(rows) or not len(self.ops):
            return waits
        before = np.append(-1, host.name)[rows], np.append([-1, -1], host.name)[rows]
        key = host.name[rows], host.thread[rows]
        kind = _place_of(key, _nth_in_step(key, self.host_step[rows], host.time[rows]), before)
        could_start = np.append(0, host.time[:-1])[rows]
        names = np.maximum(self.regions.name, -1)
        does = np.full(int(names.max(initial=-1)) + 2, -1)  # the last one is for points without a name
        does[names] = self.calls
        # Pages are copied after the engine is done, too; and a call that synchronises may be slow to notice the end.
        takes_part = (host.since[rows] == host.time[rows]) | (does[np.maximum(host.name[rows], -1)] == _SYNCHRONISES)
        takes_part &= host.is_call[rows] > 0
        soon = np.where(takes_part, np.maximum((host.time[rows] - could_start) // _PART, AT_ONCE), AT_ONCE)
        nowhere, late = np.full(len(rows), NULL), host.is_step[rows] == 0
        asked = _Asked(host.time[rows], could_start, soon, host.since[rows], kind, nowhere, late)
        for each in self._inferred(asked):
            some = each.is_seen.nonzero()[0]
            target = rows[each.target[some]]
            waits[target] = True
            lag = np.minimum(each.waited, each.usual)[some]
            self._edge(ends[each.source[some]], target, lag, Edge.SYNCHRONISED)
        return waits

    @functools.cached_property
    def _running(self) -> tuple[Ints, list[Ints], Ints, Ints]:
        """The busiest streams: ids, launch times of the operations of each, and the operation that so far ends last.

        The operations of all streams stand in one column, with the place at which each stream begins before it.
        """
        ops, number = self.ops, numbered(self.ops.stream)
        counts, launched, last = np.bincount(number), list[Ints](), list[Ints]()
        busiest = (-counts).argsort()[: max(_MOST_STREAMS, _OF_GPU * len(distinct(ops.agent)))]
        for each in busiest.tolist():
            (rows,) = (number == each).nonzero()
            rows = rows[np.lexsort((ops.end[rows], self.launched[rows]))]
            is_latest = ops.end[rows] == np.maximum.accumulate(ops.end[rows])
            launched.append(self.launched[rows])
            last.append(rows[np.maximum.accumulate(np.where(is_latest, np.arange(len(rows)), 0))])
        first = counts[busiest].cumsum() - counts[busiest]
        return ops.stream[first_of(number)][busiest], launched, first, np.concatenate(last) if last else first

    def _inferred(self, asked: _Asked) -> Iterator[_Waits]:
        """Yield the operations of each stream that points never start before.

        Points with unexplained time that start before the last operation of a stream may wait for an earlier one: with
        weights that are fetched ahead for the next layers, each layer waits for its own.
        """
        size = int(asked.kind.max(initial=-1)) + 1
        starts_before = np.ones((len(self._running[0]), size), bool)
        is_open = np.zeros(size, bool)
        is_open[asked.kind[asked.time - asked.own > _EXPLAINED]] = True
        rows = np.arange(len(asked.kind))
        for back in range(_AHEAD + 1):
            for each in self._waits(asked.take(rows), back, starts_before):
                is_open[asked.kind[rows[each.target[each.is_seen]]]] = False
                yield each._replace(target=rows[each.target])
            rows = rows[(is_open & starts_before.any(0))[asked.kind[rows]]]
            if not len(rows):
                return

    def _waits(self, asked: _Asked, back: int, starts_before: Flags) -> Iterator[_Waits]:
        """Yield the operations of each stream, the n-th back from the last launched one, that no points start before.

        Args:
            asked: the points.
            back: how far back; 0: the last one. Of earlier ones, only waits that show count.
            starts_before: for each stream, the kinds of points that start before its later operations; those that do
                not start before these ones are cleared.
        """
        streams = self._running[0]
        if not len(streams):
            return
        kind, size = asked.kind, starts_before.shape[1]
        source = self._sources(asked, back, starts_before)
        some, wait = source >= 0, np.where(source >= 0, asked.time - self.ops.end[source], NULL)
        is_after = wait >= 0
        place = kind + size * np.arange(len(streams))[:, None]

        def counted(points: Flags) -> Ints:
            return np.bincount(place[points], minlength=starts_before.size).reshape(starts_before.shape)

        is_kept = counted(some & ~is_after) <= _SEEN * counted(some)
        # Of several GPUs that end together, those that points start before are not what they wait for.
        nearest = np.where(is_after & is_kept[:, kind], wait, _NEVER).min(axis=0)
        started = asked.time - asked.own
        is_open = started > _EXPLAINED
        unexplained = np.bincount(kind[is_open], minlength=size)
        # Two streams often end at about the same time: an operation then waits for the later end.
        is_nearest = is_open & (nearest <= asked.soon) & ((nearest < started) | asked.late)
        starts_before &= ~is_kept
        binds = is_nearest & is_after & (wait == nearest)
        times = counted(binds)
        is_seen = is_kept & (times > 0) & (times * (2 if back else 5) >= unexplained)
        if not back:  # a rank may be late only at times: then a long wait is for the operation that ends just before it
            is_explained = (is_seen[:, kind] & is_after & (wait <= asked.soon)).any(0)
            rest = (started > _FOR_SOMETHING) & ~is_explained
            times = counted(binds & rest & (nearest <= AT_ONCE))
            is_seen |= is_kept & (times > 0) & (times * 5 >= np.bincount(kind[rest], minlength=size))
        chosen = is_after & (is_seen if back else is_kept)[:, kind]
        for number in np.flatnonzero(chosen.any(1)).tolist():
            (rows,), waited = chosen[number].nonzero(), wait[number]
            seen = is_seen[number][kind]
            usual = _usual(waited[binds[number] & seen], _EXPLAINED)
            yield _Waits(int(streams[number]), source[number, rows], rows, waited[rows], seen[rows], usual)

    def _sources(self, asked: _Asked, back: int, may: Flags) -> Ints:
        """Return the n-th operation back from points (columns) on each stream (row), as in `_waits`; -1: none."""
        streams, launched, first, last = self._running
        at = np.array([times.searchsorted(asked.since) for times in launched]) - 1 - back
        is_any = (at >= 0) & (asked.stream != streams[:, None]) & may[:, asked.kind]
        return np.where(is_any, last[first[:, None] + np.maximum(at, 0)], -1)


def _first_at(times: tuple[Ints, Ints], asked: tuple[Ints, Ints]) -> Ints:
    """Return the place of the first point at or after each asked time on the asked thread, else of the next thread.

    Args:
        times: thread and time of the points, in order [ns].
        asked: thread and time that are asked for [ns].
    """
    first = np.append(times[0], asked[0])
    order = np.lexsort((np.arange(len(first)) < len(times[0]), np.append(times[1], asked[1]), first))
    place = np.empty(len(order), np.int64)
    place[order] = np.cumsum(order < len(times[0]))
    return place[len(times[0]) :]


def _nth_in_step(key: tuple[Ints, Ints], step: Ints, time: Ints) -> Ints:
    """Return the place of each point among those of its key in its step, from 0; -1 outside of steps."""
    return np.where(step == NULL, -1, nth_of((*key, step), time))


def _place_of(key: tuple[Ints, Ints], number: Ints, before: tuple[Ints, Ints]) -> Ints:
    """Return numbers of the places of points, by their key and their number for it in the step.

    Outside of steps, where that number is -1, the operations or calls before a point identify its place.
    """
    return numbered(*key, np.where(number < 0, -1 - numbered(*before), number))


def _usual(waited: Ints, otherwise: int) -> int:
    """Return the median of times [ns]; `otherwise` where there are none."""
    if not len(waited):
        return otherwise
    ordered = np.sort(waited)  # numpy's median takes five times as long
    return int((float(ordered[(len(waited) - 1) // 2]) + float(ordered[len(waited) // 2])) / 2)
