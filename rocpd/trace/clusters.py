"""Divides things into clusters by their distances, where it is clear that they lie apart. Pure arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from rocpd.types import Flags, Floats, Ints

_SURE = 4.0  # standard errors between two mean distances, each about as large as its deviation


def is_clear(near: float, far: float, times: int) -> bool:
    """Whether of two mean distances over so many times one is smaller, and not by chance."""
    return far > near * (1 + _SURE / math.sqrt(times))


def connected(near: Flags) -> list[Ints]:
    """Return the rows of each connected part of a graph.

    >>> [part.tolist() for part in connected(np.array([[1, 0, 1], [0, 1, 0], [1, 0, 1]], bool))]
    [[0, 2], [1]]
    """
    left = np.ones(len(near), bool)
    parts = []
    while left.any():
        part = np.zeros(len(near), bool)
        part[left.argmax()] = True
        while (grown := near[part].any(0) & left | part).sum() > part.sum():
            part = grown
        left &= ~part
        parts.append(np.flatnonzero(part))
    return parts


def separated(apart: Floats, times: int) -> list[Ints]:
    """Return clusters: inside all are nearer than any two of different ones, and on average clearly so.

    Where nothing divides them, all are one cluster; nothing is returned where two of it can't be together.

    Args:
        apart: mean distance of each from each other; infinity for two that can't be in one cluster.
        times: how many distances each mean is of.

    >>> apart = np.array([[0, 1, 5, 4], [1, 0, 5, 4], [5, 5, 0, 2], [4, 4, 2, 0.0]])
    >>> [part.tolist() for part in separated(apart, 100)], [part.tolist() for part in separated(apart, 1)]
    ([[0, 1], [2, 3]], [[0, 1, 2, 3]])
    >>> separated(np.array([[0, 1, np.inf], [1, 0, 1], [np.inf, 1, 0]]), 100)
    []
    """
    every = np.sort(apart[np.triu_indices(len(apart), 1)])
    best, widest = [], 1.0
    for limit, following in _gaps(apart, every):
        parts = connected(apart <= limit)
        within = float(every[: int(np.searchsorted(every, following))].mean())
        if following >= widest * limit and is_clear(within, _between(apart, parts), times):
            best, widest = parts, following / limit if limit else np.inf
    return best or ([np.arange(len(apart))] if np.isfinite(every).all() else [])


def _between(apart: Floats, parts: list[Ints]) -> float:
    """Return the mean distance of the two clusters that are nearest to each other."""
    member = np.zeros((len(apart), len(parts)))
    for number, rows in enumerate(parts):
        member[rows, number] = 1 / len(rows)
    mean = member.T @ np.minimum(apart, np.finfo(float).max / len(apart)) @ member
    return float(mean[~np.eye(len(parts), dtype=bool)].min())


def _gaps(apart: Floats, every: Floats) -> Iterator[tuple[float, float]]:
    """Yield distances with none between them, where all that hang together by shorter ones are that near to each other.

    Args:
        apart: distance of each from each other.
        every: distances of all pairs, ascending.
    """
    edges = _tree(apart)
    of, pairs = np.arange(len(apart)), 0
    for (first, second, longest), (_, _, following) in pairwise(edges):
        joined, other = of == of[first], of == of[second]
        pairs += int(joined.sum() * other.sum())
        of[other] = of[first]
        if longest < following and int(np.searchsorted(every, following)) == pairs:
            yield float(every[pairs - 1]), following


def _tree(apart: Floats) -> list[tuple[int, int, float]]:
    """Return the edges of the shortest tree that joins all, the shortest first."""
    nearest, source = apart[0].copy(), np.zeros(len(apart), np.int64)
    left = np.flatnonzero(np.arange(len(apart)) > 0)
    edges = []
    while len(left):
        at = int(nearest[left].argmin())
        row = int(left[at])
        edges.append((int(source[row]), row, float(nearest[row])))
        left = np.delete(left, at)
        closer = apart[row] < nearest
        nearest, source = np.where(closer, apart[row], nearest), np.where(closer, row, source)
    return sorted(edges, key=lambda edge: edge[2])
