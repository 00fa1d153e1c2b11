"""Intervals and tests against published values, and against scipy where it is installed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from rocpd.compare.decision import (
    expanded,
    holm,
    largest_noise,
    mann_whitney,
    ratio_of_medians,
    runs_needed,
)

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


def test_an_interval_covers_the_truth() -> None:
    """Of 10 runs a side in nine of ten at least, though runs differ by far more than steps of one."""
    random, hits = np.random.default_rng(5), 0
    for _ in range(40):
        base, new = ([random.normal(100 * (1 + 0.02 * random.normal()), 0.2, 8) for _ in range(10)] for _ in range(2))
        interval = ratio_of_medians(base, [run * 1.07 for run in new])
        hits += interval.low <= 1.07 <= interval.high
    assert hits >= 36


def test_exchanged_sides_have_the_inverse_interval() -> None:
    random = np.random.default_rng(6)
    base, new = ([random.normal(at, 1, 16) for _ in range(count)] for at, count in ((100, 5), (103, 7)))
    there, back = ratio_of_medians(base, new), ratio_of_medians(new, base)
    assert [there.estimate, there.low, there.high] == pytest.approx([1 / back.estimate, 1 / back.high, 1 / back.low])


def test_widening_for_few_runs() -> None:
    """Hesterberg's table: of 10 values each tail is 0.0086 instead of 0.025."""
    assert round(expanded(0.025, 10), 4) == 0.0086
    assert expanded(0.025, 1000) == pytest.approx(0.025, abs=2e-4)


def test_runs_that_differ_need_more_of_them() -> None:
    assert [runs_needed(deviation, 0.03) for deviation in (0.001, 0.02, 0.1)] == [4, 7, 171]
    assert largest_noise([np.array([10.0]), np.array([11.0])]) == pytest.approx(0.1)
    assert largest_noise([np.array([10.0])]) == 0.0
