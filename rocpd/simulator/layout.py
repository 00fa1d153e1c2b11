"""The ranks that belong together: tensor, data, expert and pipeline parallelism, and the groups that they form; and
on which node each is.

Ranks are numbered as Megatron numbers them: tensor parallelism fastest, then data, then pipeline; those that share
experts follow each other among those that share the data. Knows no times.
"""

from __future__ import annotations

import functools
from enum import StrEnum

import numpy as np

from rocpd.base import Ints, frozen
from rocpd.simulator.options import JobOptions


class GroupKind(StrEnum):
    """Kinds of groups of ranks; each group has a communicator of its own."""

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
        kind: what is done.
        group: the kind of group that does it.
        size: bytes.
        blocks: whether the computation waits for it.
        peer: stages to the partner of a send or receive, -1 or 1.
        connects: whether the group sets up its connections first.
        members: ranks that an all-to-all sends to.
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
    """Ranks that share a communicator, in their order in it."""

    kind: GroupKind
    members: tuple[int, ...]


@frozen
class Layout:
    """How many ranks share the data, the layers and each layer; `dp * tp * pp` is the number of ranks that compute.

    Of those that share the data, every `ep` share the experts.
    """

    dp: int
    tp: int = 1
    pp: int = 1
    ep: int = 1

    @property
    def ranks(self) -> int:
        """Ranks that compute."""
        return self.dp * self.tp * self.pp

    @property
    def gradients(self) -> GroupKind:
        """Who adds up gradients: where all ranks do, they use the communicator of all."""
        return GroupKind.WORLD if self.dp == self.ranks else GroupKind.DATA

    def size(self, kind: GroupKind) -> int:
        """Return how many ranks a group of a kind has."""
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
        """Return the kinds of communicators that a rank makes: that of all ranks, and those that divide them."""
        divided = (GroupKind.DATA, GroupKind.TENSOR, GroupKind.PIPELINE, GroupKind.EXPERT)
        return (GroupKind.WORLD, *(kind for kind in divided if self.has(kind)))

    def has(self, kind: GroupKind) -> bool:
        """Whether there are groups of a kind; gradients of all ranks need none of their own."""
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
    axis = {GroupKind.PIPELINE: 0, GroupKind.DATA: 1, GroupKind.TENSOR: 2}.get(kind)
    if axis is None:
        return grid.reshape(1, -1)
    members = np.moveaxis(grid, axis, -1).reshape(-1, grid.shape[axis])
    return members[np.argsort(members[:, 0], kind="stable")]


def layout_of(options: JobOptions) -> Layout:
    """Return which ranks of a job belong together."""
    return Layout(options.ranks // (options.tp * options.pp), options.tp, options.pp, options.ep)


def places_of(options: JobOptions) -> list[int]:
    """Return the node of each rank: those that compute in blocks, then those that don't in turn."""
    computing = [rank * options.nodes // options.ranks for rank in range(options.ranks)]
    return computing + [n % options.nodes for n in range(options.idle_ranks)]
