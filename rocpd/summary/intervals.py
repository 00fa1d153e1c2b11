"""Arithmetic of intervals [start, end) in whole nanoseconds: unions, lengths, overlaps, shares of a time grid.

A union is a pair of arrays, sorted, disjoint and not touching. Intervals without length vanish in a union.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from rocpd.types import Ints

Union: TypeAlias = tuple[Ints, Ints]


def union(start: Ints, end: Ints) -> Union:
    """Return the union of intervals in any order; those that touch become one.

    >>> [a.tolist() for a in union(np.array([5, 0, 2, 9]), np.array([7, 2, 4, 9]))]
    [[0, 5], [4, 7]]
    """
    some = end > start
    start, end = start[some], end[some]
    if not len(start):
        return start, end
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    first = np.flatnonzero(np.concatenate([[True], start[1:] > end[:-1]]))
    return start[first], end[np.append(first[1:] - 1, len(end) - 1)]


def length(parts: Union) -> int:
    """Return the total length of a union [ns]."""
    return int((parts[1] - parts[0]).sum())


def unite(first: Union, second: Union) -> Union:
    """Return the union of two unions."""
    return union(np.concatenate([first[0], second[0]]), np.concatenate([first[1], second[1]]))


def covered(parts: Union, times: Ints) -> Ints:
    """Return how much of a union lies before each of `times` [ns]."""
    start, end = parts
    if not len(start):
        return np.zeros(times.shape, np.int64)
    before = np.concatenate([[0], np.cumsum(end - start)])
    index = np.searchsorted(start, times, side="right")
    inside = np.where(index > 0, np.minimum(times, end[index - 1]) - start[index - 1], 0)
    length_before: Ints = np.where(index > 0, before[np.maximum(index - 1, 0)] + inside, 0)
    return length_before
