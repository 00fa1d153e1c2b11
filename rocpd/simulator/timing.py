"""The true times of everything. Knows no clocks and writes no rows.

A round is the setup, one step, or the teardown. Each op of its template gives an anchor. Ranks of one group meet in
exchanges, and a stage of a pipeline meets its neighbours; between these, each stage goes on alone, and the work of a
lane starts after its launch and after the work before it.

Lanes work on all steps, or on all ranks, at the same time: a row of `anchors` and an element of `stretch` for each.
`before` is the duration of the work before a piece; a piece that the GPU never waited for starts this long after the
first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from rocpd.base import Floats, Ints, frozen
from rocpd.simulator.conditions import Conditions
from rocpd.simulator.layout import ExchangeKind, ExchangeRequest, GroupKind, Layout
from rocpd.simulator.script import LANE_GAP, After, Exchange, Lane, LaneEnd, Template, Time


def time_columns(times: Sequence[Time]) -> tuple[Ints, Ints]:
    """Return the anchors and the distances from them [ns]."""
    anchor, fixed = np.array(times, dtype=np.int64).reshape(-1, 2).T
    return anchor, fixed


class LaneTimes:
    """A lane as arrays, one element for each piece of work."""

    def __init__(self, lane: Lane) -> None:
        self.start = lane.start
        self.scales = lane.scales
        self.anchor, self.fixed = time_columns(lane.ready)
        self.lengths = np.array(lane.lengths, dtype=np.int64)
        self.before = np.concatenate(([0], np.cumsum(self.lengths + LANE_GAP)[:-1]))

    def runs(self, anchors: Ints, stretch: Floats) -> tuple[Ints, Ints]:
        """Return start and end of each piece [ns]: a row for each row of `anchors`."""
        factor = (stretch if self.scales else np.ones(1))[:, None]
        before, lengths = scaled(factor, self.before), scaled(factor, self.lengths)
        ready = anchors[:, self.anchor] + self.fixed
        begin = anchors[:, self.start.anchor] + self.start.fixed
        # Start of the first piece if the GPU had no pause until this one; the latest of these so far applies.
        start: Ints = np.maximum.accumulate(np.maximum(ready - before, begin[:, None]), axis=1) + before
        return start, start + lengths


def scaled(factor: Floats, ns: Ints | int) -> Ints:
    """Return times multiplied by a factor, in whole ns."""
    return (factor * ns).astype(np.int64)


@frozen
class Meeting:
    """An exchange, with all groups that make it at this point.

    Args:
        exchange: the exchange; of a transfer, the send.
        members: ranks, a row for each group; of a transfer the sender and the receiver.
        start: anchor at which each member starts.
        end: anchor at which each member ends.
    """

    exchange: ExchangeRequest
    members: Ints
    start: Ints
    end: Ints


@frozen
class Latest:
    """An event that ranks of a stage wait for: `anchor` gets the latest time, plus a stall."""

    ranks: slice
    anchor: int
    times: tuple[Time, ...]
    lanes: tuple[tuple[LaneTimes, int], ...]
    stalls: bool

    def set(self, anchors: Ints, stretch: Floats, stall: Ints) -> None:
        """Set the anchor in the rows of the stage."""
        here = anchors[self.ranks]
        terms = [here[:, time.anchor] + time.fixed for time in self.times]
        terms += [lane.runs(here, stretch[self.ranks])[1][:, position] for lane, position in self.lanes]
        here[:, self.anchor] = functools.reduce(np.maximum, terms)
        if self.stalls:
            here[:, self.anchor] += stall[self.ranks]


Move: TypeAlias = Latest | Meeting


class RoundProgram:
    """The templates of one round, one per pipeline stage, as moves in a feasible order."""

    def __init__(self, templates: Sequence[Template], layout: Layout) -> None:
        self.templates = tuple(templates)
        self.width = 1 + max(len(template.ops) for template in templates)
        self._last = np.array([len(templates[layout.stage(rank)].ops) for rank in range(layout.ranks)], dtype=np.int64)
        self._moves = tuple(_Ordering(templates, layout).moves())

    @property
    def meetings(self) -> tuple[Meeting, ...]:
        """The exchanges, in order."""
        return tuple(move for move in self._moves if isinstance(move, Meeting))

    def run(self, anchors: Ints, stretch: Floats, stall: Ints, durations: Callable[[Meeting], Ints]) -> Ints:
        """Fill `anchors[rank, :]`, whose first column is given; return the end of each rank [ns].

        Args:
            anchors: anchors of one round, numbered as in `template.Time`.
            stretch: factor on the duration of kernels, by rank.
            stall: stall of the host, by rank [ns].
            durations: returns the time from the last arrival to the end of each member of each group [ns].
        """
        for move in self._moves:
            if isinstance(move, Latest):
                move.set(anchors, stretch, stall)
            else:
                arrived = anchors[move.members, move.start].max(axis=1, keepdims=True)
                anchors[move.members, move.end] = arrived + durations(move)
        return anchors[np.arange(len(anchors)), self._last]


class _Ordering:
    """Finds the order of moves: each stage goes on until it needs another stage."""

    def __init__(self, templates: Sequence[Template], layout: Layout) -> None:
        self._ops = [template.ops for template in templates]
        self._lanes = [[LaneTimes(lane) for lane in template.lanes] for template in templates]
        self._layout = layout
        self._at = [0] * len(templates)  # the next op of each stage

    def moves(self) -> Iterator[Move]:
        """Yield all moves."""
        while any(self._next(stage) for stage in range(len(self._ops))):
            before = list(self._at)
            for stage in range(len(self._ops)):
                yield from self._of_stage(stage)
            if before == self._at:
                raise RuntimeError(f"pipeline stages wait for each other, at ops {before}")

    def _next(self, stage: int) -> After | Exchange | None:
        ops, at = self._ops[stage], self._at[stage]
        return ops[at] if at < len(ops) else None

    def _of_stage(self, stage: int) -> Iterator[Move]:
        """Yield the moves that a stage can make now."""
        while (op := self._next(stage)) is not None:
            if isinstance(op, After):
                yield self._latest(op, stage)
                self._at[stage] += 1
                continue
            stages = self._stages(op.request, stage)
            if not all(self._is_answer(op.request, stage, other) for other in stages):
                return
            yield self._meeting(op.request, stages)
            for other in stages:
                self._at[other] += 1

    def _stages(self, asked: ExchangeRequest, stage: int) -> list[int]:
        """Return the stages that make an exchange together; for a transfer the sender's first."""
        if asked.group is GroupKind.WORLD:
            return list(range(len(self._ops)))
        if not asked.peer:
            return [stage]
        return [stage, stage + asked.peer] if asked.kind is ExchangeKind.SEND else [stage + asked.peer, stage]

    def _is_answer(self, asked: ExchangeRequest, stage: int, other: int) -> bool:
        """Whether another stage has reached its side of an exchange."""
        op = self._next(other)
        if not isinstance(op, Exchange) or op.request.group is not asked.group:
            return False
        kind, peer = op.request.kind, op.request.peer
        if not asked.peer or other == stage:
            return (kind, peer) == (asked.kind, asked.peer)
        return kind is not asked.kind and peer == -asked.peer

    def _latest(self, op: After, stage: int) -> Latest:
        latest: dict[int, int] = {}
        for term in op.terms:
            if isinstance(term, Time):
                latest[term.anchor] = max(term.fixed, latest.get(term.anchor, 0))
        lanes = ((self._lanes[stage][t.lane], t.position) for t in op.terms if isinstance(t, LaneEnd))
        times = tuple(Time(anchor, fixed) for anchor, fixed in latest.items())
        return Latest(self._layout.of_stage(stage), self._at[stage] + 1, times, tuple(lanes), op.stalls)

    def _meeting(self, asked: ExchangeRequest, stages: Sequence[int]) -> Meeting:
        first, last = self._layout.of_stage(stages[0]), self._layout.of_stage(stages[-1])
        if asked.peer:
            members = np.stack([np.arange(first.start, first.stop), np.arange(last.start, last.stop)], axis=1)
        else:
            groups = self._layout.members(asked.group)
            members = groups[(groups[:, 0] >= first.start) & (groups[:, 0] < last.stop)]
        of_members = [self._layout.stage(rank) for rank in members[0].tolist()]
        ops = [op for op in map(self._next, of_members) if isinstance(op, Exchange)]
        start = np.array([op.start for op in ops], dtype=np.int64)
        end = np.array([self._at[stage] + 1 for stage in of_members], dtype=np.int64)
        return Meeting(ops[0].request, members, start, end)


LEAST_JITTER = 5.0
"""Smallest distance between the ends of the members of an exchange [us], unless the options ask for less."""

_ROUND_GAP = 5000  # between two rounds [ns]
_LATENCY = 18_000  # of an exchange of any size [ns]
_CONNECTING = 2_500_000  # additional time of the first exchange of a group [ns]
_GROUP_RATE, _LINK_RATE = 320.0, 50.0  # bytes per ns, of a group and between two ranks


@frozen
class Timing:
    """True times [ns] of a job.

    Args:
        anchors: `[round, rank, anchor]`, numbered as in `template.Time`.
        end: end of each rank.
    """

    anchors: Ints
    end: Ints


class Exchanging:
    """The durations of exchanges."""

    def __init__(self, jitter: float, seed: int) -> None:
        """Let the members of each exchange end up to `jitter` us apart."""
        self._least, self._most = min(LEAST_JITTER, jitter) * 1000, jitter * 1000
        self._random = np.random.default_rng([seed, 4])

    def durations(self, meeting: Meeting, factor: Floats) -> Ints:
        """Return the time from the last arrival to the end of each member of each group [ns].

        Args:
            meeting: the exchange.
            factor: factor on the duration of transfers: a row for each group.
        """
        exchange, shape = meeting.exchange, meeting.members.shape
        rate = _LINK_RATE if exchange.peer else _GROUP_RATE
        shortest = _LATENCY + exchange.connects * _CONNECTING + exchange.size / rate * factor
        chance = self._random.random((shape[0], shape[1] + 1))
        apart = self._least + (self._most - self._least) * chance[:, :1]
        # End of each member between the first (0) and the last (1) of its group.
        share = chance[:, 1:] - np.minimum.reduce(chance[:, 1:], axis=1, keepdims=True)
        if shape[1] > 1:
            share /= np.maximum.reduce(share, axis=1, keepdims=True)
        return (shortest + apart * share).astype(np.int64)


def run(programs: Sequence[RoundProgram], conditions: Conditions, begin: Ints, exchanging: Exchanging) -> Timing:
    """Return the times of a job.

    Args:
        programs: one for each round.
        conditions: conditions of each round.
        begin: time at which each rank begins the first round [ns].
        exchanging: the durations of exchanges.
    """
    anchors = np.zeros((len(programs), len(begin), max(program.width for program in programs)), dtype=np.int64)
    now = begin
    for n, program in enumerate(programs):
        anchors[n, :, 0] = now + conditions.delay[n]

        def durations(meeting: Meeting, number: int = n) -> Ints:
            longer = conditions.transfers(number, meeting.exchange.group, meeting.members)
            return exchanging.durations(meeting, longer)

        now = program.run(anchors[n], conditions.stretch[n], conditions.stall[n], durations) + _ROUND_GAP
    return Timing(anchors, now)
