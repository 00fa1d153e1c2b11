"""Laws of whom time counts for: pieces are disjoint, and add up to unions, whatever the intervals."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rocpd.base import Ints
from rocpd.compare.attribution import apportioned
from rocpd.facts.timeline import Pieces, divided, length, outside, owned, union, unite

Spans = list[tuple[int, int]]
spans = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 25)), max_size=12)


def columns(chosen: Spans) -> tuple[Ints, Ints]:
    start = np.array([start for start, _ in chosen], np.int64)
    return start, start + np.array([length for _, length in chosen], np.int64)


def times(pieces: Pieces) -> list[int]:
    """Return each nanosecond of the pieces."""
    return sorted(at for start, end in zip(pieces.start, pieces.end, strict=True) for at in range(start, end))


@given(spans)
def test_what_each_owns_is_the_union_and_nothing_twice(chosen: Spans) -> None:
    start, end = columns(chosen)
    pieces = owned(start, end)
    assert int(pieces.length.sum()) == length(union(start, end))
    assert len(times(pieces)) == len(set(times(pieces)))
    assert all(start[of] <= low < high <= end[of] for of, low, high in zip(*pieces, strict=True))


@given(spans, spans)
def test_what_lies_outside_completes_the_union(first: Spans, second: Spans) -> None:
    covered, rest = union(*columns(first)), owned(*columns(second))
    left = outside(rest, covered)
    assert length(covered) + int(left.length.sum()) == length(unite(covered, union(*columns(second))))
    assert set(times(left)) == set(times(rest)) - set(times(Pieces(covered[0], *covered)))


@given(spans, st.sets(st.integers(0, 90), min_size=2, max_size=8))
def test_cut_at_edges_nothing_is_lost(chosen: Spans, at: set[int]) -> None:
    edges = np.array(sorted(at), np.int64)
    pieces = owned(*columns(chosen))
    after, cut = divided(pieces, edges)
    assert times(cut) == times(pieces)
    around = [-1, *edges.tolist(), 1000]
    assert all(around[n + 1] <= low < high <= around[n + 2] for n, low, high in zip(after, *cut[1:], strict=True))


@given(st.lists(st.integers(0, 10**15), max_size=20), st.integers(1, 10**6))
def test_shares_add_up_to_their_sum(shares: list[int], divisor: int) -> None:
    parts = apportioned(shares, divisor)
    assert sum(parts) == sum(shares) // divisor
    assert all(share // divisor <= part <= share // divisor + 1 for share, part in zip(shares, parts, strict=True))
