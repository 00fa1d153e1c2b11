"""Owns rules of memory: which rows are scratch memory, which operations allocate, and which allocation a free ends.

The runtime takes scratch memory by itself, without an address: it is counted apart from what programs allocate. The
view `scratch_memory` and the trace writer say the same by themselves, which a test compares.
"""

from __future__ import annotations

from collections.abc import Hashable

from rocpd.base.types import NULL

SCRATCH = "SCRATCH"
"""The `level` of scratch memory."""

IS_SCRATCH = f"level = '{SCRATCH}'"
"""SQL condition on rows of scratch memory."""

NOT_SCRATCH = f"level IS NOT '{SCRATCH}'"
"""SQL condition on all other rows, those without a level included."""

ALLOCATING = frozenset({"ALLOC", "REALLOC"})
"""Operations (`type`) after which memory is held; the others free it."""


def held_by(level: str | None, address: int | None, agent: int | None, queue: int | None) -> Hashable:
    """Return what allocation and free have in common: level and address; of scratch memory, agent and queue.

    Reserved addresses (VIRTUAL) and the memory behind them (REAL) are held apart although their addresses are equal.

    Args:
        level: REAL, VIRTUAL, SCRATCH.
        address: where it starts; None, `NULL` or 0 where unknown.
        agent, queue: ids; scratch memory belongs to a queue.

    >>> held_by("REAL", 4096, 1, 2) == held_by("REAL", 4096, None, None)
    True
    >>> held_by("SCRATCH", 0, 1, 2) == held_by("SCRATCH", 0, 1, 3)
    False
    """
    if level != SCRATCH and address not in (None, NULL, 0):
        return level, address
    return level, agent, queue
