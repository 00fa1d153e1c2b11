"""Exact distributions: moments and percentiles are those of all values, however they come."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocpd.facts.spread import Moments, Spread
from tests.summary.exact import moments_one_by_one

VALUES = st.lists(st.integers(0, 2**40), min_size=1, max_size=60)
CUTS = st.lists(st.integers(0, 60), max_size=5)


def parts_of(values: list[int], cuts: list[int]) -> list[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    edges = [0, *sorted(min(cut, len(values)) for cut in cuts), len(values)]
    return [np.array(values[a:b], np.int64) for a, b in pairwise(edges)]


@given(VALUES, CUTS, st.booleans())
def test_any_split_gives_the_whole(values: list[int], cuts: list[int], by_merging: bool) -> None:
    spread = Spread()
    for part in parts_of(values, cuts):
        if by_merging:
            other = Spread()
            other.add(part)
            spread += other
        else:
            spread.add(part)
    assert spread.moments == moments_one_by_one(values)
    quantiles = [spread.quantile(share) for share in (0, 0.5, 0.95, 0.99, 1)]
    assert quantiles == pytest.approx(pd.Series(values).quantile([0, 0.5, 0.95, 0.99, 1]).tolist(), rel=1e-12)


@given(st.lists(st.integers(0, 2**63 - 1), max_size=30))
def test_moments_never_overflow(values: list[int]) -> None:
    assert Spread.of(np.array(values, np.int64)).moments == moments_one_by_one(values)


@given(st.lists(st.lists(st.one_of(st.integers(0, 9), st.integers(0, 2**63 - 1)), max_size=9), max_size=9))
def test_many_settled_together_are_as_each_alone(groups: list[list[int]]) -> None:
    spreads = [Spread.of(np.array(values, np.int64), len(values) + 1) for values in groups]
    Spread.settle(spreads)
    for spread, values in zip(spreads, groups, strict=True):
        alone = Spread.of(np.array(values, np.int64), len(values) + 1)
        assert spread.moments == alone.moments
        assert [part.tolist() for part in spread.distribution()] == [part.tolist() for part in alone.distribution()]


def test_many_equal_values_are_kept_once() -> None:
    spread = Spread()
    for _ in range(5):
        spread.add(np.arange(100_000, dtype=np.int64) % 7)
    assert [part.tolist() for part in spread.distribution()] == [list(range(7)), [71430] * 5 + [71425] * 2]


def test_nothing_timed_has_no_middle() -> None:
    spread = Spread()
    spread.add(np.empty(0, np.int64), 3)
    assert (spread.moments, spread.quantile(0.5)) == (Moments(3), None)


def test_many_at_once_are_the_same_as_one_by_one() -> None:
    parts = [Spread.of(np.array([number % 5, number], np.int64), 3) for number in range(50)]
    together, apart = Spread.sum(parts), Spread()
    for part in parts:
        apart = apart + part
    assert (together.calls, together.moments) == (apart.calls, apart.moments)
    assert [column.tolist() for column in together.distribution()] == [c.tolist() for c in apart.distribution()]
    assert together.calls == 150


@given(st.lists(st.integers(0, 10**12), max_size=60), st.integers(1, 30))
def test_counts_hold_every_duration_once(durations: list[int], bins: int) -> None:
    counts = Spread.of(np.array(durations, np.int64)).counts(bins)
    assert sum(counts) == len(durations)
    assert len(counts) in {0, 1, bins}
    if len(counts) == bins > 1:
        assert counts[0]  # the shortest
        assert counts[-1]  # and the longest


def test_counts_are_of_equal_ratios() -> None:
    assert Spread.of(np.array([10, 99, 101, 999, 1001, 10_000], np.int64)).counts(3) == (2, 2, 2)
