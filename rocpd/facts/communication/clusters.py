"""Divides items into clusters by their distances, where the clusters are clearly apart. Pure arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from rocpd.base import Flags, Floats, Ints

_SURE = 4.0  # standard errors between two mean distances, whose deviations are about as large as they are


def is_clear(near: float, far: float, times: int) -> bool:
    """Whether the first of two mean distances over so many times is smaller, and not by chance."""
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
        parts.append(part.nonzero()[0])
    return parts


def separated(apart: Floats, times: int, size: int | None = None) -> list[Ints]:
    """Return clusters of two or more members, each on average clearly nearer to its own than to any other cluster.

    Where nothing divides the members, all are one cluster; nothing is returned where they can't be.

    Args:
        apart: mean distance of each from each other; infinity for two that can't be in one cluster.
        times: number of distances in each mean.
        size: largest number of members of a cluster; None if unknown.

    >>> apart = np.array([[0, 1, 5, 3], [1, 0, 5, 5], [5, 5, 0, 2], [3, 5, 2, 0.0]])
    >>> [part.tolist() for part in separated(apart, 100)], [part.tolist() for part in separated(apart, 1)]
    ([[0, 1], [2, 3]], [[0, 1, 2, 3]])
    >>> separated(apart, 1, size=2), separated(np.array([[0, 1, np.inf], [1, 0, 1], [np.inf, 1, 0]]), 100)
    ([], [])
    """
    best: list[Ints] = []
    widest, most = 1.0, len(apart) if size is None else size
    for parts in _joined(apart):
        if max(map(len, parts)) <= most and len(parts) > 1:
            within, nearest = _distances(apart, parts)
            ratio = float((nearest / np.maximum(within, 1)).min())
            if ratio >= widest and all(
                is_clear(*pair, times) for pair in zip(within.tolist(), nearest.tolist(), strict=True)
            ):
                best, widest = parts, ratio
    return best or ([np.arange(len(apart))] if np.isfinite(apart).all() and len(apart) <= most else [])


def _joined(apart: Floats) -> Iterator[list[Ints]]:
    """Yield divisions into ever larger clusters, once no cluster has a single member.

    Each step joins the two clusters that are nearest on average. The distance of each from its nearest is kept: looking
    for the least of all each time would be cubic.
    """
    mean = apart + np.diag(np.full(len(apart), np.inf))
    parts, alone = {number: np.array([number]) for number in range(len(apart))}, len(apart)
    nearest = mean.min(1, initial=np.inf)
    while len(parts) > 1:
        first = int(nearest.argmin())
        second = int(mean[first].argmin())
        if not np.isfinite(mean[first, second]):
            return
        stale = ((nearest == mean[first]) | (nearest == mean[second])) & np.isfinite(nearest)
        counts = len(parts[first]), len(parts[second])
        mean[first] = mean[:, first] = (counts[0] * mean[first] + counts[1] * mean[second]) / sum(counts)
        mean[second] = mean[:, second] = mean[first, first] = np.inf
        stale[[first, second]] = True
        nearest = np.minimum(nearest, mean[first])
        nearest[stale] = mean[stale].min(1)
        parts[first] = np.sort(np.concatenate([parts[first], parts.pop(second)]))
        alone -= counts.count(1)
        if not alone:
            yield list(parts.values())


def _distances(apart: Floats, parts: list[Ints]) -> tuple[Floats, Floats]:
    """Return for each member its mean distance from its own cluster, and from the nearest other one."""
    of = np.empty(len(apart), np.int64)
    mean = np.empty((len(apart), len(parts)))
    for number, rows in enumerate(parts):
        of[rows] = number
        mean[:, number] = apart[:, rows].sum(1) / len(rows)
        mean[rows, number] *= len(rows) / (len(rows) - 1)
    members = np.arange(len(apart))
    within = mean[members, of]
    mean[members, of] = np.inf
    return within, mean.min(1)
