"""Bars of the search for steps, on planted series; laws of it."""

from __future__ import annotations

import numpy as np
import pytest

from rocpd.history.series import FEWEST, fit
from tests.history.series import Planted, noise, planted
from tests.soak import sized

_NEAR = 3  # runs: a step that is farther from a planted one is a false one


def steps_of(series: Planted, until: int | None = None) -> list[int]:
    return [step.at for step in fit(series.values[:until], series.machines[:until]).steps]


@pytest.mark.soak(times=10)
def test_jumps_are_found_within_3_runs_and_placed_within_1() -> None:
    """Of 3 to 8 deviations, rho up to 0.5: in 95 and 90 of 100 series; the sample allows for chance."""
    series = list(planted(sized(20, 200), 11, ("jump",), 0.5))
    soon = [min((abs(at - p.jump) for at in steps_of(p, p.jump + 3)), default=99) for p in series if p.jump]
    placed = [min((abs(at - p.jump) for at in steps_of(p)), default=99) for p in series if p.jump]
    assert np.mean(np.array(soon) <= _NEAR) >= sized(0.85, 0.94)
    assert np.mean(np.array(placed) <= 1) >= 0.9


@pytest.mark.soak(times=10)
@pytest.mark.parametrize("kind", ["none", "outliers", "machines", "jump"])
def test_at_most_one_run_of_500_is_taken_for_a_step(kind: str) -> None:
    series = list(planted(sized(20, 200), 23, (kind,)))
    false = sum(p.jump is None or abs(at - p.jump) > _NEAR for p in series for at in steps_of(p))
    assert false <= max(sized(6, 0), sum(len(p.values) for p in series) / 500)


def test_a_drift_is_no_staircase() -> None:
    random = np.random.default_rng(2)
    values = np.arange(100) * 0.002 + 0.01 * noise(random, 100, 0.2, is_heavy=False)
    found = fit(values, np.zeros(100, np.int64))
    assert found.steps == ()
    assert found.drift is not None
    assert found.drift.slope == pytest.approx(0.002, rel=0.1)


def test_machines_are_offsets_and_a_machine_for_good_is_a_step() -> None:
    random = np.random.default_rng(3)
    machines = random.integers(0, 2, 60)
    values = 0.05 * machines + 0.005 * random.standard_normal(60)
    found = fit(values, machines)
    assert found.steps == ()
    assert abs(found.offsets[1] - found.offsets[0]) == pytest.approx(0.05, abs=0.006)
    once = np.repeat([0, 1], 30)
    assert [step.at for step in fit(0.05 * once + 0.005 * random.standard_normal(60), once).steps] == [30]


def test_what_comes_and_goes_is_two_steps_and_one_run_is_an_outlier() -> None:
    random = np.random.default_rng(4)
    values = 0.01 * random.standard_normal(60)
    values[20:26] += 0.08
    values[50] += 0.2
    found = fit(values, np.zeros(60, np.int64))
    assert [step.at for step in found.steps] == [20, 26]
    assert found.outliers.nonzero()[0].tolist() == [50]


@pytest.mark.parametrize("count", [0, 1, 2, FEWEST - 1, FEWEST])
def test_short_and_constant_series(count: int) -> None:
    found = fit(np.full(count, 2.0), np.zeros(count, np.int64))
    assert (found.steps, found.drift, len(found.level)) == ((), None, count)


def test_a_factor_changes_nothing_but_the_level() -> None:
    (series,) = planted(1, 5, ("jump",))
    one, other = fit(series.values, series.machines), fit(series.values + 7.0, series.machines)
    assert [step.at for step in one.steps] == [step.at for step in other.steps]
    assert other.level - one.level == pytest.approx(7.0)
