"""Laws of the statistics: any split adds up to the whole, and every digit is right."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from fractions import Fraction
from functools import reduce
from operator import add

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocpd.facts.spread import Moments
from tests.summary.exact import moments_one_by_one

DURATIONS = st.lists(st.none() | st.integers(0, 2**63 - 1), max_size=40)


@given(DURATIONS, st.lists(st.integers(0, 40), max_size=6), st.randoms(use_true_random=False))
def test_any_split_in_any_order_gives_the_whole(
    durations: list[int | None], cuts: list[int], shuffler: random.Random
) -> None:
    edges = [0, *sorted(min(cut, len(durations)) for cut in cuts), len(durations)]
    parts = [moments_one_by_one(durations[a:b]) for a, b in itertools.pairwise(edges)]
    shuffler.shuffle(parts)
    assert reduce(add, parts, Moments()) == moments_one_by_one(durations)


@given(DURATIONS)
def test_against_exact_fractions(durations: list[int | None]) -> None:
    sums, known = moments_one_by_one(durations), [d for d in durations if d is not None]
    assert (sums.calls, sums.timed, sums.total) == (len(durations), len(known), sum(known))
    assert (sums.shortest, sums.longest) == ((min(known), max(known)) if known else (None, None))
    assert sums.mean == (float(Fraction(sum(known), len(known))) if known else None)
    if len(known) < 2:
        assert sums.deviation is None
    else:
        mean = Fraction(sum(known), len(known))
        variance = sum((d - mean) ** 2 for d in known) / (len(known) - 1)
        assert sums.deviation == pytest.approx(math.sqrt(variance), rel=1e-15)


@given(st.lists(st.integers(0, 10**15), min_size=2, max_size=40))
def test_against_the_standard_library(durations: list[int]) -> None:
    assert moments_one_by_one(durations).deviation == pytest.approx(statistics.stdev(durations), rel=1e-12)


@given(st.integers(0, 2**63 - 1), st.integers(2, 50))
def test_equal_durations_do_not_spread(duration: int, calls: int) -> None:
    assert moments_one_by_one([duration] * calls).deviation == 0.0


def test_a_small_spread_on_large_values_is_not_lost() -> None:
    """A sum of squares in doubles would give 0 or nonsense here."""
    large = 10**18
    assert moments_one_by_one([large, large + 1, large + 2]).deviation == 1.0
