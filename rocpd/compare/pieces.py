"""Arithmetic of intervals that belong to somebody: whom each nanosecond of a union counts for. Pure.

What adds up to a union exactly is asked of it here: of two that overlap, the one that started first has the time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rocpd.summary.intervals import Union
from rocpd.types import Ints


class Pieces(NamedTuple):
    """Disjoint stretches of time.

    Args:
        of: row of the interval that each is a piece of.
        start, end: [ns].
    """

    of: Ints
    start: Ints
    end: Ints

    @property
    def length(self) -> Ints:
        """Length of each [ns]."""
        return self.end - self.start


def owned(start: Ints, end: Ints) -> Pieces:
    """Divide the union of intervals among them: each has what no interval that started before it covers.

    >>> [column.tolist() for column in owned(np.array([0, 2, 3, 9]), np.array([5, 4, 8, 9]))]
    [[0, 2], [0, 5], [5, 8]]
    """
    order = np.lexsort((-end, start))
    until = np.maximum.accumulate(end[order]) if len(order) else end
    covered = np.append(np.iinfo(np.int64).min, until[:-1])[: len(order)]
    first = np.maximum(start[order], covered)
    some = end[order] > first
    return Pieces(order[some], first[some], end[order][some])


def outside(pieces: Pieces, union: Union) -> Pieces:
    """Return what of some pieces lies outside of a union.

    >>> union = np.array([2, 8]), np.array([4, 9])
    >>> [column.tolist() for column in outside(Pieces(np.array([7]), np.array([1]), np.array([12])), union)]
    [[7, 7, 7], [1, 4, 9], [2, 8, 12]]
    """
    info = np.iinfo(np.int64)
    free_from, free_to = np.append(info.min, union[1]), np.append(union[0], info.max)
    first = np.searchsorted(free_to, pieces.start, side="right")
    counts = np.maximum(np.searchsorted(free_from, pieces.end, side="left") - first, 0)
    at, of = _spread(first, counts)
    start, end = np.maximum(pieces.start[of], free_from[at]), np.minimum(pieces.end[of], free_to[at])
    some = end > start
    return Pieces(pieces.of[of][some], start[some], end[some])


def divided(pieces: Pieces, edges: Ints) -> tuple[Ints, Pieces]:
    """Cut pieces at edges; return between which two each lies, from 0, and the pieces. What lies outside is left out.

    >>> unit, cut = divided(Pieces(np.array([7]), np.array([1]), np.array([12])), np.array([3, 5, 9]))
    >>> unit.tolist(), [column.tolist() for column in cut]
    ([0, 1], [[7, 7], [3, 5], [5, 9]])
    """
    start, end = np.maximum(pieces.start, edges[0]), np.minimum(pieces.end, edges[-1])
    some = end > start
    of, start, end = pieces.of[some], start[some], end[some]
    first = np.searchsorted(edges, start, side="right") - 1
    unit, row = _spread(first, np.searchsorted(edges, end, side="left") - first)
    return unit, Pieces(of[row], np.maximum(start[row], edges[unit]), np.minimum(end[row], edges[unit + 1]))


def _spread(first: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """Return first, first + 1 … of each row, so many as it has, and the rows that these are of."""
    row = np.repeat(np.arange(len(first)), counts)
    at = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts) + first[row]
    return at, row
