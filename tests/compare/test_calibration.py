"""Intervals cover the truth as often as they say, equal runs, ranks and steps raise no alarm, and a change is found.

On series of numbers: logarithms of step times are autocorrelated by a rho around the level of their run, and levels
deviate from run to run. `make soak` runs each cell 1,000 times.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import pytest

from rocpd.base import Floats
from rocpd.compare.decision import Decision, decide, decide_ranks, decide_steps
from rocpd.compare.options import DiffOptions
from tests.soak import paired, sized

TIMES = sized(25, 1000)
"""How often a cell is tried where one run knows its level from its steps; elsewhere ten times as often."""

DEVIATIONS = 1.45, 3.2
"""Of runs [%]."""

_T = {2: 4.303, 6: 2.447, 14: 2.145}
"""Two-sided 5 % points of Student's t, by degrees of freedom: Fisher and Yates, table III."""


def series(random: np.random.Generator, steps: int, rho: float, deviation: float) -> Floats:
    """Return logarithms that deviate by so many percent from 0."""
    values = random.standard_normal(steps)
    for step in range(1, steps):
        values[step] = rho * values[step - 1] + math.sqrt(1 - rho**2) * values[step]
    return values * deviation / 100


def runs_of(random: np.random.Generator, runs: int, rho: float, deviation: float, factor: float) -> list[list[float]]:
    """Return the times of 20 steps, which deviate by 2 %, of runs that deviate by so many percent."""
    levels = math.log(1e6 * factor) + random.standard_normal(runs) * deviation / 100
    return [np.exp(level + series(random, 20, rho, 2)).tolist() for level in levels]


def sides_of(runs: int, rho: float, deviation: float, factor: float) -> Iterator[tuple[list[list[float]], ...]]:
    """Yield many pairs of sides, of which the second is slower by a factor."""
    for seed in range(TIMES * (1 if runs == 1 else 10)):
        random = np.random.default_rng([seed, runs])
        yield runs_of(random, runs, rho, deviation, 1.0), runs_of(random, runs, rho, deviation, factor)


def compared(runs: int, rho: float, deviation: float, factor: float) -> Iterator[Decision]:
    """Yield what became of them."""
    options = DiffOptions(run_noise=deviation if runs == 1 else None)
    for base, new in sides_of(runs, rho, deviation, factor):
        yield decide(base, new, options)


def is_slower_by_t(base: list[list[float]], new: list[list[float]]) -> bool:
    """Whether a t interval of the logarithms of the medians of runs lies above the margin as a whole."""
    levels = [np.log(np.median(side, axis=1)) for side in (base, new)]
    error = math.sqrt(sum(side.var(ddof=1) / len(side) for side in levels))
    return bool(levels[1].mean() - levels[0].mean() - _T[2 * len(base) - 2] * error > math.log(1.03))


def share(found: list[bool]) -> float:
    return sum(found) / len(found)


def slack(share: float, times: int) -> float:
    """Return by how much a share of so many cases may be off by chance."""
    return 3 * math.sqrt(share * (1 - share) / times)


@pytest.mark.soak(20)
@pytest.mark.parametrize(("runs", "rho"), paired([1, 2, 4, 8], [0.0, 0.8]))
def test_intervals_cover_the_truth(runs: int, rho: float) -> None:
    covers = []
    for decision in compared(runs, rho, DEVIATIONS[0], 1.05):
        assert decision.ratio
        assert decision.ratio.low
        assert decision.ratio.high
        covers.append(decision.ratio.low <= 1.05 <= decision.ratio.high)
    print(f"{runs} runs a side, rho {rho}: the interval covers the truth in {share(covers):.1%} of {len(covers)}")
    assert 0.93 - slack(0.93, len(covers)) <= share(covers) <= 0.97 + slack(0.97, len(covers))


@pytest.mark.soak(20)
@pytest.mark.parametrize(
    ("runs", "deviation"),
    [*product(sized([1, 2], [1, 2, 4, 8]), DEVIATIONS), *product(sized([4], [4, 8]), [10.0])],
)
def test_equal_runs_raise_no_alarm(runs: int, deviation: float) -> None:
    alarms = [decision.verdict in ("slower", "faster") for decision in compared(runs, 0.8, deviation, 1.0)]
    print(f"{runs} runs a side that deviate by {deviation} %: {share(alarms):.1%} alarms of {len(alarms)}")
    assert share(alarms) <= 0.01 + slack(0.01, len(alarms))


@pytest.mark.soak(20)
@pytest.mark.parametrize(("runs", "change"), paired([2, 4, 8], [(1.45, 5), (3.2, 10)]))
def test_a_change_is_found_as_often_as_by_a_t_interval(runs: int, change: tuple[float, float]) -> None:
    deviation, percent = change
    sides = list(sides_of(runs, 0.0, deviation, 1 + percent / 100))
    found = [decide(base, new, DiffOptions()).verdict == "slower" for base, new in sides]
    expected = [is_slower_by_t(base, new) for base, new in sides]
    print(f"{runs} runs, {percent} % at {deviation} %: {share(found):.0%} are found, by t {share(expected):.0%}")
    assert share(found) >= share(expected) - 0.1


def ranks(random: np.random.Generator, steps: int, rho: float) -> Decision:
    """Compare two ranks that are equal."""
    first, second = (np.exp(14 + series(random, steps, rho, 6)).tolist() for _ in range(2))
    return decide_ranks(first, second, DiffOptions())


def halves(random: np.random.Generator, steps: int, rho: float) -> Decision:
    """Compare the steps of the first half of a run with the others."""
    times = dict(enumerate(np.exp(14 + series(random, steps, rho, 6)).tolist()))
    first = {step: time for step, time in times.items() if step < steps // 2}
    return decide_steps(first, {step: times[step] for step in times.keys() - first.keys()}, DiffOptions())


def one_step(random: np.random.Generator, steps: int, rho: float) -> Decision:
    """Compare one step of a run with the others."""
    times = dict(enumerate(np.exp(14 + series(random, steps, rho, 6)).tolist()))
    step = int(random.integers(steps))
    chosen = {step: times.pop(step)}
    return decide_steps(times, chosen, DiffOptions())


@pytest.mark.soak(20)
@pytest.mark.parametrize("steps", sized([20], [20, 100, 500]))
@pytest.mark.parametrize("rho", sized([0.0, 0.95], [0.0, 0.5, 0.8, 0.95]))
@pytest.mark.parametrize("compare", [ranks, halves, one_step])
def test_equal_ranks_and_steps_raise_no_alarm(
    compare: Callable[[np.random.Generator, int, float], Decision], rho: float, steps: int
) -> None:
    """They deviate by 6 % and wander; so rarely that chance explains it in one of 100."""
    verdicts = [compare(np.random.default_rng([seed, 2]), steps, rho).verdict for seed in range(TIMES)]
    alarms = share([verdict in ("slower", "faster") for verdict in verdicts])
    print(f"{compare.__name__}, {steps} steps, rho {rho}: {alarms:.1%} alarms of {TIMES}")
    most = 0.03 if rho > 0.9 else 0.01
    assert alarms <= most + slack(most, TIMES)


def test_the_noisier_the_base_the_rarer_it_is_the_same() -> None:
    """A gate does not pass because the machine is bad: it says that it is."""
    shares = []
    for deviation in (0.5, 1.5, 5.0):
        decisions = list(compared(4, 0.0, deviation, 1.0))
        shares.append(share([decision.verdict == "same" for decision in decisions]))
        noisy = [decision for decision in decisions if decision.reason == "too noisy to tell 3 %"]
        assert all(decision.verdict == "unclear" for decision in noisy)
    assert shares[0] > 0.9 > shares[1] > shares[2]
    assert shares[2] < 0.01
    assert len(noisy) > 0.9 * len(decisions)


@pytest.mark.parametrize("given", [None, 0.0, 1.0, 20.0])
def test_one_number_a_side_is_never_likely(given: float | None) -> None:
    decision = decide([[100.0]], [[200.0]], DiffOptions(run_noise=given))
    assert decision.confidence == "hint"
    assert decide([[100.0]], [[200.0] * 20], DiffOptions(run_noise=given)).confidence == "hint"


def test_runs_of_one_side_say_how_the_other_deviates() -> None:
    """Where it has one run, and nobody says it."""
    several, one = [[100.0] * 9, [101.0] * 9, [102.0] * 9], [[110.0] * 9]
    seen, given, assumed = (
        decide(base, one, DiffOptions(run_noise=noise)) for base, noise in ((several, None), (several, 4), (one, None))
    )
    assert [seen.noise, given.noise, assumed.noise] == pytest.approx([0.0099, 0.04, 0.05], abs=1e-4)
    assert [seen.is_assumed, given.is_assumed, assumed.is_assumed] == [False, False, True]


def test_steps_on_both_sides_say_nothing() -> None:
    times = {step: 100.0 + step % 3 for step in range(12)}
    some = {step: times[step] for step in range(8)}
    others = {step: times[step] for step in range(8, 12)}
    assert decide_steps(times, times, DiffOptions()).verdict == "same"
    inside, apart = decide_steps(times, some, DiffOptions()), decide_steps(others, some, DiffOptions())
    assert inside.ratio
    assert apart.ratio
    assert inside.ratio.high
    assert apart.ratio.high
    assert inside.ratio.high / inside.ratio.estimate == pytest.approx(apart.ratio.high / apart.ratio.estimate)


def test_one_step_against_one_has_no_interval() -> None:
    decision = decide_steps({1: 100.0}, {2: 150.0}, DiffOptions())
    assert decision.ratio
    assert (decision.verdict, decision.ratio.estimate, decision.ratio.low) == ("unclear", 1.5, None)


def test_sides_in_the_other_order_have_the_inverse_interval() -> None:
    random = np.random.default_rng(6)
    for counts in ((1, 1), (5, 7), (1, 4)):
        base, new = (runs_of(random, count, 0.5, 2, factor) for count, factor in zip(counts, (1.0, 1.03), strict=True))
        there, back = decide(base, new, DiffOptions()).ratio, decide(new, base, DiffOptions()).ratio
        assert there
        assert back
        assert back.low
        assert back.high
        expected = [1 / back.estimate, 1 / back.high, 1 / back.low]
        assert [there.estimate, there.low, there.high] == pytest.approx(expected)


def test_few_runs_that_deviate_by_more_are_not_taken_for_quiet_ones() -> None:
    """Eight quiet runs do not speak for two that differ by 8 %; of as many runs a side it is Student's interval."""
    quiet, noisy = [[100.0 + number % 2] for number in range(8)], [[100.0], [108.0]]
    few, many = decide(quiet, noisy, DiffOptions()), decide(noisy * 4, quiet, DiffOptions())
    assert few.ratio
    assert few.ratio.high
    assert math.log(few.ratio.high / few.ratio.estimate) == pytest.approx(12.706 * math.log(1.08) / 2, rel=0.01)
    assert many.ratio
    assert many.ratio.high
    assert math.log(many.ratio.high / many.ratio.estimate) < 0.05


@pytest.mark.parametrize("outliers", [(4,), (0, 4)])
def test_few_steps_that_take_five_times_as_long_hide_no_change(outliers: tuple[int, ...]) -> None:
    usual = [1.01, 0.99, 1.0, 1.005, 1.0, 0.995, 1.002, 0.998]
    new = [time * 1.35 * (5 if step in outliers else 1) for step, time in enumerate(usual)]
    assert decide([usual], [new], DiffOptions()).verdict == "slower"
