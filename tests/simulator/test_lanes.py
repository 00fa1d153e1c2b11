"""Work of a stream: each piece starts as soon as it is launched and the one before is done, and not earlier."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from rocpd.simulator.job_plan import LaneTimes
from rocpd.simulator.script import LANE_GAP, Lane, Time

RANKS = 3


def lane_of(random: np.random.Generator, scales: bool) -> Lane:
    """Return a lane whose host is now faster than the GPU, now slower, and sometimes waits for another anchor."""
    lane, at = Lane(Time(0, 5000), scales), Time(0, 2000)
    for _ in range(25):
        at = Time(1, int(random.integers(0, 300_000))) if random.random() < 0.1 else at
        at = at.later(int(random.integers(1_000, 60_000)))
        lane.add(at, int(random.integers(1_000, 60_000)))
    return lane


@pytest.mark.parametrize("scales", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_work_runs_when_it_can(seed: int, scales: bool) -> None:
    random = np.random.default_rng(seed)
    lane = lane_of(random, scales)
    anchors = random.integers(10**6, 2 * 10**6, (RANKS, 2))
    stretch = np.array([0.4, 1.0, 2.7])
    start, end = LaneTimes(lane).runs(anchors, stretch)
    for rank in range(RANKS):
        free = int(anchors[rank, 0]) + 5000
        factor = stretch[rank] if scales else 1.0
        for n, (ready, length) in enumerate(zip(lane.ready, lane.lengths, strict=True)):
            earliest = max(free, int(anchors[rank, ready.anchor]) + ready.fixed)
            assert start[rank, n] == pytest.approx(earliest, abs=len(lane.lengths))  # whole ns
            assert end[rank, n] - start[rank, n] == int(factor * length)
            free = start[rank, n] + factor * (length + LANE_GAP)
        assert all(a <= b for a, b in pairwise(np.stack([start[rank], end[rank]], axis=1).ravel().tolist()))
