"""Intervals and tests against published values, and against scipy where it is installed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from rocpd.compare.decision import holm, mann_whitney, runs_needed

_SMALLEST_P = {2: 1 / 3, 3: 0.1, 4: 2 / 70, 5: 2 / 252}
"""Of Mann-Whitney, two-sided, for as many values a side."""


def test_few_values_a_side_cannot_reach_a_small_p() -> None:
    for count, p in _SMALLEST_P.items():
        low, high = list(range(count)), list(range(count, 2 * count))
        assert mann_whitney(low, high) == mann_whitney(high, low) == pytest.approx(p)


def test_the_exact_distribution_of_u_is_that_of_all_orders() -> None:
    """Counted by hand: of all ways to deal 7 ranks to 3 and 4 values, those at least as far from the middle."""
    dealt = [set(chosen) for chosen in itertools.combinations(range(7), 3)]
    u = [sum(a > b for a in chosen for b in set(range(7)) - chosen) for chosen in dealt]
    for chosen, value in zip(dealt, u, strict=True):
        expected = min(1.0, 2 * sum(other >= max(value, 12 - value) for other in u) / len(u))
        assert mann_whitney(sorted(chosen), sorted(set(range(7)) - chosen)) == pytest.approx(expected)


def test_mann_whitney_is_that_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    random = np.random.default_rng(3)
    for n, m in ((3, 5), (10, 10), (40, 60)):
        for values in (random.normal(size=n + m), random.integers(0, 6, n + m)):
            has_ties = len(set(values.tolist())) < n + m
            method = "exact" if not has_ties and n * m <= 400 else "asymptotic"
            expected = stats.mannwhitneyu(values[:n], values[n:], method=method).pvalue
            assert mann_whitney(values[:n].tolist(), values[n:].tolist()) == pytest.approx(expected)


def test_holm_is_that_of_the_paper() -> None:
    """Larger of its own and of all before, as many times as are left."""
    assert holm([0.01, 0.02, 0.03, 0.04]) == [0.04, 0.06, 0.06, 0.06]
    assert holm([]) == []


def test_runs_that_differ_need_more_of_them() -> None:
    assert [runs_needed(deviation, 0.03) for deviation in (0.001, 0.02, 0.1)] == [4, 7, 171]
