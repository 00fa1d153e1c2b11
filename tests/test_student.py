"""Student's t distribution against published tables, and against scipy where it is installed."""

from __future__ import annotations

import pytest

from rocpd.base.student import student_quantile, survival

_T = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 9: 2.262, 10: 2.228, 20: 2.086, 30: 2.042, 120: 1.980}
"""Two-sided 5 % points of Student's t, by degrees of freedom: Fisher and Yates, table III."""


def test_quantiles_of_t_are_those_of_the_tables() -> None:
    assert {freedom: round(student_quantile(0.975, freedom), 3) for freedom in _T} == _T
    assert student_quantile(0.025, 7) == pytest.approx(-student_quantile(0.975, 7))


def test_as_much_lies_above_a_quantile_as_the_tables_say() -> None:
    assert {freedom: round(survival(t, freedom), 4) for freedom, t in _T.items()} == dict.fromkeys(_T, 0.025)
    assert survival(-1.5, 6) == pytest.approx(1 - survival(1.5, 6))
    assert survival(1e9, 8) >= 0


def test_survival_is_that_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    for freedom in (1, 2, 3, 8, 99):
        for t in (-4.0, -0.1, 0.5, 3.0, 9.0):
            assert survival(t, freedom) == pytest.approx(stats.t.sf(t, freedom), rel=1e-6, abs=1e-14)
