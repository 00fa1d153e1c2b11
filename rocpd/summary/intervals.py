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


def divide(edges: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Divide intervals at edges; return of each piece which interval, after which edge, its start and its end.

    >>> [a.tolist() for a in divide(np.array([0, 10, 20]), np.array([5, 12]), np.array([25, 14]))]
    [[0, 0, 0, 1], [0, 1, 2, 1], [5, 10, 20, 12], [10, 20, 25, 14]]

    Args:
        edges: ascending; the first lies before all intervals.
        start, end: of the intervals, none of which is empty.
    """
    first = np.searchsorted(edges, start, side="right") - 1
    counts = np.searchsorted(edges, end, side="left") - first
    of = np.repeat(np.arange(len(start)), counts)
    at = np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts) + first[of]
    until = np.append(edges[1:], np.iinfo(np.int64).max)
    return of, at, np.maximum(edges[at], start[of]), np.minimum(until[at], end[of])


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


def outside(parts: Union, others: Union) -> int:
    """Return the length of what one union covers and another one does not [ns].

    >>> outside((np.array([0, 20]), np.array([10, 30])), (np.array([5]), np.array([22])))
    13
    """
    return length(parts) - int((covered(others, parts[1]) - covered(others, parts[0])).sum())
