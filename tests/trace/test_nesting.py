"""Ranges in each other, against their definition: around one is the last opened before it that ends no earlier."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rocpd.facts.regions import depths, nest_times, own_times
from rocpd.facts.timeline import owned

RANGES = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=12)


def around(ranges: Sequence[tuple[int, int]], row: int) -> int:
    """Return the range around one, by looking at all; -1: none."""
    opened = sorted((start, -end, other) for other, (start, end) in enumerate(ranges))
    before = opened[: opened.index((ranges[row][0], -ranges[row][1], row))]
    outer = [other for _, end, other in before if -end > ranges[row][0] and -end >= ranges[row][1]]
    return outer[-1] if outer else -1


def innermost(ranges: Sequence[tuple[int, int]], time: int) -> int:
    """Return the last opened range that a time is in, by looking at all; -1: it is in none."""
    opened = [(start, -end, row) for row, (start, end) in enumerate(ranges) if start <= time < end]
    return max(opened)[2] if opened else -1


@given(RANGES)
def test_the_sweep_agrees(lengths: list[tuple[int, int]]) -> None:
    ranges = [(start, start + length) for start, length in lengths]
    start, end = (np.array([each[side] for each in ranges], np.int64) for side in range(2))
    nesting = nest_times(start, end, np.full(len(ranges), 7))
    outer = [around(ranges, row) for row in range(len(ranges))]
    assert nesting.around.tolist() == outer
    assert depths(nesting.around).tolist() == [len(list(nesting.path(row))) - 1 for row in range(len(ranges))]
    for row, own in enumerate(own_times(start, end, nesting.around).tolist()):
        inner = [range(*ranges[each]) for each in range(len(ranges)) if outer[each] == row]
        assert own == len(set(range(*ranges[row])).difference(*inner))
    times = np.arange(26)
    assert nesting.innermost(np.full(26, 7), times).tolist() == [innermost(ranges, time) for time in times.tolist()]


def test_time_of_ranges_that_cross_counts_once() -> None:
    own = owned(np.array([0, 10, 30, 90]), np.array([90, 20, 95, 99]))
    assert list(zip(own.start.tolist(), own.end.tolist(), strict=True)) == [(0, 90), (90, 95), (95, 99)]
