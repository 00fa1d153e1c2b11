"""Arithmetic of intervals against counting nanosecond by nanosecond."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rocpd.base import Ints
from rocpd.facts.timeline import covered, length, union, unite

SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)), max_size=12)


def arrays(spans: list[tuple[int, int]]) -> tuple[Ints, Ints]:
    starts = np.array([start for start, _ in spans], np.int64)
    return starts, starts + np.array([size for _, size in spans], np.int64)


def points(spans: list[tuple[int, int]]) -> set[int]:
    return {at for start, size in spans for at in range(start, start + size)}


@given(SPANS, SPANS)
def test_against_counting(some: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    first, second = union(*arrays(some)), union(*arrays(other))
    assert length(first) == len(points(some))
    assert length(unite(first, second)) == len(points(some) | points(other))
    assert all(a < b for a, b in zip(first[1][:-1], first[0][1:], strict=True))
    edges = np.arange(-2, 60)
    assert covered(first, edges).tolist() == [sum(at < edge for at in points(some)) for edge in edges.tolist()]
