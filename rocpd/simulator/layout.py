"""Owns which ranks belong together: tensor, data and pipeline parallelism, and the groups that they form.

Ranks are numbered as Megatron numbers them: tensor parallelism fastest, then data, then pipeline. Knows no times.
"""

from __future__ import annotations

import functools
from enum import StrEnum

import numpy as np

from rocpd.base.frozen import frozen
from rocpd.base.types import Ints


class GroupKind(StrEnum):
    """Kinds of groups of ranks; each group has a communicator of its own."""

    WORLD = "world"
    DATA = "dp"
    TENSOR = "tp"
    PIPELINE = "pp"


class ExchangeKind(StrEnum):
    """What ranks do together."""

    ALL_REDUCE = "all_reduce"
    ALL_GATHER = "all_gather"
    BARRIER = "barrier"
    SEND = "send"
    RECEIVE = "receive"


@frozen
class RankGroup:
    """Ranks that share a communicator, in their order in it."""

    kind: GroupKind
    members: tuple[int, ...]


@frozen
class Layout:
    """How many ranks share the data, the layers and each layer; `dp * tp * pp` is the number of ranks that compute."""

    dp: int
    tp: int = 1
    pp: int = 1

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
        return {GroupKind.WORLD: self.ranks, GroupKind.DATA: self.dp, GroupKind.TENSOR: self.tp}.get(kind, self.pp)

    def stage(self, rank: int) -> int:
        """Return the pipeline stage of a rank."""
        return rank // (self.dp * self.tp)

    def of_stage(self, stage: int) -> slice:
        """Return the ranks of a stage."""
        size = self.dp * self.tp
        return slice(stage * size, (stage + 1) * size)

    def communicators(self) -> tuple[GroupKind, ...]:
        """Return the kinds of communicators that a rank makes: that of all ranks, and those that divide them."""
        divided = (GroupKind.DATA, GroupKind.TENSOR, GroupKind.PIPELINE)
        return (GroupKind.WORLD, *(kind for kind in divided if self.has(kind)))

    def has(self, kind: GroupKind) -> bool:
        """Whether there are groups of a kind; gradients of all ranks need none of their own."""
        return kind is GroupKind.WORLD or (self.size(kind) > 1 and not self._is_of_all(kind))

    def _is_of_all(self, kind: GroupKind) -> bool:
        return kind is GroupKind.DATA and self.gradients is GroupKind.WORLD

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
    every = np.arange(layout.ranks, dtype=np.int64).reshape(layout.pp, layout.dp, layout.tp)
    axis = {GroupKind.PIPELINE: 0, GroupKind.DATA: 1, GroupKind.TENSOR: 2}.get(kind)
    if axis is None:
        return every.reshape(1, -1)
    members = np.moveaxis(every, axis, -1).reshape(-1, every.shape[axis])
    return members[np.argsort(members[:, 0], kind="stable")]
