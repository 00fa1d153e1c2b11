"""Owns in which order the anchors of one round get their values, for all ranks at a time.

Each op of a template gives an anchor. Ranks of one group meet in exchanges, and a stage of a pipeline meets its
neighbours; between these, each stage goes on alone. Knows neither how long an exchange takes nor any clock.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from rocpd.frozen import frozen
from rocpd.simulator.lanes import LaneEndTimes, LaneTimes
from rocpd.simulator.layout import GroupKind, Layout
from rocpd.simulator.template import After, Exchange, ExchangeKind, LaneEnd, Template, Time
from rocpd.types import Floats, Ints


@frozen
class Meeting:
    """An exchange, with all groups that make it at this point.

    Args:
        exchange: what is done; of a transfer, the sending.
        members: ranks, a row for each group; of a transfer the sender and the receiver.
        start: anchor at which each member starts.
        end: anchor at which each member ends.
    """

    exchange: Exchange
    members: Ints
    start: Ints
    end: Ints


@frozen
class Latest:
    """What the ranks of one stage wait for before they go on: `anchor` is the latest of all."""

    ranks: slice
    anchor: int
    times: tuple[Time, ...]
    lanes: tuple[LaneEndTimes, ...]

    def set(self, anchors: Ints, stretch: Floats) -> None:
        """Set the anchor in the rows of the stage."""
        here = anchors[self.ranks]
        terms = [here[:, time.anchor] + time.fixed for time in self.times]
        terms += [lane.end(here, stretch[self.ranks]) for lane in self.lanes]
        here[:, self.anchor] = functools.reduce(np.maximum, terms)


Move: TypeAlias = Latest | Meeting


class RoundProgram:
    """The templates of one round, one for each pipeline stage, as moves in an order in which each can be made."""

    def __init__(self, templates: Sequence[Template], layout: Layout) -> None:
        self.templates = tuple(templates)
        self.width = 1 + max(len(template.ops) for template in templates)
        self._last = np.array([len(templates[layout.stage(rank)].ops) for rank in range(layout.ranks)], dtype=np.int64)
        self._moves = tuple(_Ordering(templates, layout).moves())

    @property
    def meetings(self) -> tuple[Meeting, ...]:
        """The exchanges, in order."""
        return tuple(move for move in self._moves if isinstance(move, Meeting))

    def run(self, anchors: Ints, stretch: Floats, durations: Callable[[Meeting], Ints]) -> Ints:
        """Fill `anchors[rank, :]`, whose first column is given; return when each rank is done [ns].

        Args:
            anchors: of one round, as `template.Time` numbers them.
            stretch: how much longer kernels take, by rank.
            durations: returns how long after the last arrival each member of each group is done [ns].
        """
        for move in self._moves:
            if isinstance(move, Latest):
                move.set(anchors, stretch)
            else:
                arrived = anchors[move.members, move.start].max(axis=1, keepdims=True)
                anchors[move.members, move.end] = arrived + durations(move)
        ends: Ints = anchors[np.arange(len(anchors)), self._last]
        return ends


class _Ordering:
    """Finds the order of moves: each stage goes on until it needs another one."""

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
            stages = self._stages(op, stage)
            if not all(self._is_answer(op, stage, other) for other in stages):
                return
            yield self._meeting(op, stages)
            for other in stages:
                self._at[other] += 1

    def _stages(self, op: Exchange, stage: int) -> list[int]:
        """Return the stages that make an exchange together, of a transfer the sender's first."""
        if op.group is GroupKind.WORLD:
            return list(range(len(self._ops)))
        if not op.peer:
            return [stage]
        return [stage, stage + op.peer] if op.kind is ExchangeKind.SEND else [stage + op.peer, stage]

    def _is_answer(self, op: Exchange, stage: int, other: int) -> bool:
        """Whether another stage has come to its side of an exchange."""
        there = self._next(other)
        if not isinstance(there, Exchange) or there.group is not op.group:
            return False
        if not op.peer or other == stage:
            return (there.kind, there.peer) == (op.kind, op.peer)
        return there.kind is not op.kind and there.peer == -op.peer

    def _latest(self, op: After, stage: int) -> Latest:
        latest: dict[int, int] = {}
        for term in op.terms:
            if isinstance(term, Time):
                latest[term.anchor] = max(term.fixed, latest.get(term.anchor, 0))
        lanes = (LaneEndTimes(self._lanes[stage][t.lane], t.position) for t in op.terms if isinstance(t, LaneEnd))
        times = tuple(Time(anchor, fixed) for anchor, fixed in latest.items())
        return Latest(self._layout.of_stage(stage), self._at[stage] + 1, times, tuple(lanes))

    def _meeting(self, op: Exchange, stages: Sequence[int]) -> Meeting:
        first, last = self._layout.of_stage(stages[0]), self._layout.of_stage(stages[-1])
        if op.peer:
            members = np.stack([np.arange(first.start, first.stop), np.arange(last.start, last.stop)], axis=1)
        else:
            every = self._layout.members(op.group)
            members = every[(every[:, 0] >= first.start) & (every[:, 0] < last.stop)]
        at = np.array([self._at[self._layout.stage(rank)] for rank in members[0].tolist()], dtype=np.int64)
        ops = [self._ops[self._layout.stage(rank)][n] for rank, n in zip(members[0].tolist(), at.tolist(), strict=True)]
        start = np.array([there.start for there in ops if isinstance(there, Exchange)], dtype=np.int64)
        sent = next(there for there in ops if isinstance(there, Exchange))
        return Meeting(sent, members, start, at + 1)
