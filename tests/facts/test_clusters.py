"""Clusters are those that joining the nearest two again and again gives, though not all distances are looked at."""

from __future__ import annotations

import numpy as np
import pytest

from rocpd.base import Floats, Ints
from rocpd.facts.communication import clusters


def _joined_at_length(apart: Floats) -> list[list[list[int]]]:
    """Return the clusters after each step from which on none is of one, by the least of all mean distances."""
    parts = {number: [number] for number in range(len(apart))}
    steps = []
    while len(parts) > 1:
        pairs = [
            (float(np.mean(apart[np.ix_(parts[a], parts[b])])), a, b) for a in sorted(parts) for b in parts if a < b
        ]
        distance, first, second = min(pairs)
        if not np.isfinite(distance):
            break
        parts[first] = sorted(parts[first] + parts.pop(second))
        if min(map(len, parts.values())) > 1:
            steps.append(sorted(parts.values()))
    return steps


def _lists(steps: list[list[Ints]]) -> list[list[list[int]]]:
    return [sorted(part.tolist() for part in parts) for parts in steps]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("count", [2, 5, 12])
@pytest.mark.parametrize("never", [0.0, 0.3])
def test_the_nearest_two_are_joined(seed: int, count: int, never: float) -> None:
    random = np.random.default_rng(seed)
    apart = random.integers(1, 1 << 20, (count, count)).astype(float)
    apart[random.random((count, count)) < never] = np.inf
    apart = np.maximum(apart, apart.T)
    np.fill_diagonal(apart, 0)
    assert _lists(list(clusters._joined(apart))) == _joined_at_length(apart)
