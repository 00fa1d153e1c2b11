"""The groups of ranks in tensor, data, expert and pipeline parallelism; and the node of each rank.

Ranks are numbered as in Megatron: tensor parallelism fastest, then data, then pipeline; ranks that share experts are
neighbours among the ranks that share the data. Knows no times.
"""

from __future__ import annotations

import functools
from enum import StrEnum

import numpy as np

from rocpd.base import Ints, frozen
from rocpd.simulator.options import JobOptions


class GroupKind(StrEnum):
    """Kinds of groups of ranks; each group has a communicator."""

    WORLD = "world"
    DATA = "dp"
    TENSOR = "tp"
    PIPELINE = "pp"
    EXPERT = "ep"


class ExchangeKind(StrEnum):
    """Exchanges of ranks."""

    ALL_REDUCE = "all_reduce"
    ALL_GATHER = "all_gather"
    ALL_TO_ALL = "all_to_all"
    BARRIER = "barrier"
    SEND = "send"
    RECEIVE = "receive"


@frozen
class ExchangeRequest:
    """The exchange that a rank asks for.

    Args:
        kind: kind of the exchange.
        group: kind of its group.
        size: bytes.
        blocks: whether the computation waits for it.
        peer: stages to the partner of a send or receive, -1 or 1.
        connects: whether the group sets up its connections first.
        members: number of ranks in an all-to-all.
    """

    kind: ExchangeKind
    group: GroupKind
    size: int
    blocks: bool = False
    peer: int = 0
    connects: bool = False
    members: int = 0

    @property
    def receives(self) -> bool:
        """Whether it can start before anything is computed."""
        return self.kind is ExchangeKind.RECEIVE


@frozen
class RankGroup:
    """Ranks that share a communicator, in its order."""

    kind: GroupKind
    members: tuple[int, ...]


@frozen
class Layout:
    """Numbers of ranks that share the data, the layers and each layer; `dp * tp * pp` ranks compute.

    Every `ep` of the ranks that share the data share the experts.
    """

    dp: int
    tp: int = 1
    pp: int = 1
    ep: int = 1

    @property
    def ranks(self) -> int:
        """Number of ranks that compute."""
        return self.dp * self.tp * self.pp

    @property
    def gradients(self) -> GroupKind:
        """The group that adds up gradients: if all ranks do, the communicator of all."""
        return GroupKind.WORLD if self.dp == self.ranks else GroupKind.DATA

    def size(self, kind: GroupKind) -> int:
        """Return the number of ranks in a group of a kind."""
        sizes = {GroupKind.DATA: self.dp, GroupKind.TENSOR: self.tp, GroupKind.PIPELINE: self.pp}
        return sizes.get(kind, self.ep if kind is GroupKind.EXPERT else self.ranks)

    def stage(self, rank: int) -> int:
        """Return the pipeline stage of a rank."""
        return rank // (self.dp * self.tp)

    def of_stage(self, stage: int) -> slice:
        """Return the ranks of a stage."""
        size = self.dp * self.tp
        return slice(stage * size, (stage + 1) * size)

    def communicators(self) -> tuple[GroupKind, ...]:
        """Return the kinds of communicators of a rank: that of all ranks, and those that divide them."""
        divided = (GroupKind.DATA, GroupKind.TENSOR, GroupKind.PIPELINE, GroupKind.EXPERT)
        return (GroupKind.WORLD, *(kind for kind in divided if self.has(kind)))

    def has(self, kind: GroupKind) -> bool:
        """Whether there are groups of a kind; gradients of all ranks need no extra group."""
        is_of_all = kind is GroupKind.DATA and self.gradients is GroupKind.WORLD
        return kind is GroupKind.WORLD or (self.size(kind) > 1 and not is_of_all)

    def members(self, kind: GroupKind) -> Ints:
        """Return the ranks of all groups of a kind: a row for each group, in rank order."""
        return _members(self, kind)

    def group_of(self, rank: int, kind: GroupKind) -> RankGroup:
        """Return the group of a kind that a rank belongs to."""
        rows = self.members(kind)
        (row,) = np.flatnonzero((rows == rank).any(1))
        return RankGroup(kind, tuple(rows[row].tolist()))

    def groups(self) -> tuple[RankGroup, ...]:
        """Return all groups of two ranks or more."""
        kinds = [kind for kind in self.communicators() if self.size(kind) > 1]
        return tuple(RankGroup(kind, tuple(row)) for kind in kinds for row in self.members(kind).tolist())


@functools.cache
def _members(layout: Layout, kind: GroupKind) -> Ints:
    grid = np.arange(layout.ranks, dtype=np.int64).reshape(layout.pp, layout.dp, layout.tp)
    if kind is GroupKind.EXPERT:
        grid, kind = grid.reshape(-1, layout.ep, layout.tp), GroupKind.DATA
    if (axis := {GroupKind.PIPELINE: 0, GroupKind.DATA: 1, GroupKind.TENSOR: 2}.get(kind)) is None:
        return grid.reshape(1, -1)
    members = np.moveaxis(grid, axis, -1).reshape(-1, grid.shape[axis])
    return members[np.argsort(members[:, 0], kind="stable")]


def layout_of(options: JobOptions) -> Layout:
    """Return the groups of the ranks of a job."""
    return Layout(options.ranks // (options.tp * options.pp), options.tp, options.pp, options.ep)


def places_of(options: JobOptions) -> list[int]:
    """Return the node of each rank: ranks that compute in blocks, then the others in turn."""
    computing = [rank * options.nodes // options.ranks for rank in range(options.ranks)]
    return computing + [n % options.nodes for n in range(options.idle_ranks)]
