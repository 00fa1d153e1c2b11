"""Whether what one of several takes longer lasts: series whose neighbours are alike are no independent trials."""

from __future__ import annotations

import numpy as np
import pytest

from rocpd.base import Floats
from rocpd.replay import trend
from rocpd.replay.chance import LIKELY, chance_among, chance_of
from tests.soak import sized

RANKS = 8
CELLS = [(rho, steps) for rho in (0.0, 0.5, 0.8, 0.95) for steps in (20, 100, 500)]


def series(random: np.random.Generator, rho: float, steps: int, ranks: int = RANKS) -> Floats:
    """Return times of steps (rows) of ranks (columns) with a deviation of 3 %, whose neighbours are alike by `rho`."""
    noise = random.standard_normal((steps, ranks))
    for step in range(1, steps):
        noise[step] = rho * noise[step - 1] + np.sqrt(1 - rho**2) * noise[step]
    times: Floats = 1e6 * (1 + 0.03 * noise)
    return times


def is_likely(times: Floats) -> tuple[int, bool]:
    """Return the rank that takes longest, and whether it lasts, likely or certainly."""
    rank = int(times.mean(0).argmax())
    return rank, chance_of(times, rank) <= LIKELY


@pytest.mark.soak(60)
@pytest.mark.parametrize(("rho", "steps"), sized(CELLS[::5], CELLS))
def test_equal_ranks_are_hardly_ever_blamed(rho: float, steps: int) -> None:
    """In at most 1 of 100 jobs, 3 where neighbours are nearly the same; a sample may have a little more."""
    random, jobs = np.random.default_rng(round(rho * 100) + steps), sized(100, 1000)
    blamed = sum(is_likely(series(random, rho, steps))[1] for _ in range(jobs))
    most = 0.03 if rho > 0.9 else 0.01
    assert blamed <= most * jobs + 2 * np.sqrt(most * jobs), (blamed, jobs)


@pytest.mark.soak(20)
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8])
def test_few_equal_ranks_are_hardly_ever_blamed(rho: float, ranks: int) -> None:
    """Nine steps hardly know how alike neighbours are: in 1 of 100 jobs, 2 where they are nearly the same."""
    random, jobs = np.random.default_rng(round(rho * 100) + ranks), sized(200, 2000)
    blamed = sum(is_likely(centred(series(random, rho, 9, ranks)))[1] for _ in range(jobs))
    most = 0.02 if rho > 0.5 else 0.01
    assert blamed <= most * jobs + 2 * np.sqrt(most * jobs), (blamed, jobs)


def centred(times: Floats) -> Floats:
    """Return times as the blame has them: beyond the median of the ranks in each step."""
    beyond: Floats = times - np.median(times, axis=1)[:, None]
    return beyond


@pytest.mark.soak(20)
@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_a_slow_rank_is_found(rho: float) -> None:
    """A rank 10 % slower, with a deviation of 3 %, in 100 steps: in nine of ten jobs at least."""
    random, jobs = np.random.default_rng(round(rho * 100)), sized(40, 1000)
    slower = np.where(np.arange(RANKS) == 5, 1.1, 1.0)
    found = [is_likely(series(random, rho, 100) * slower) for _ in range(jobs)]
    assert found.count((5, True)) >= 0.9 * jobs


def test_a_slow_host_hides_no_slower_rank() -> None:
    """Three hosts of two ranks: without the slow one, how far ranks lie apart says that one of another is slower."""
    hosts = ["a", "a", "b", "b", "c", "c"]
    times = series(np.random.default_rng(3), 0.0, 10, 6) * np.array([1.0, 1.0, 1.15, 1.15, 1.0, 1.35])
    assert chance_among(times, 5, hosts) > LIKELY
    assert chance_among(times, 5, hosts, ["b"]) <= LIKELY
    assert chance_among(times, 0, hosts, ["b"]) > LIKELY


def test_too_few_steps_say_nothing() -> None:
    times = series(np.random.default_rng(1), 0.0, 3) * np.where(np.arange(RANKS) == 2, 2.0, 1.0)
    assert chance_of(times, 2) == 1.0


def test_one_outlier_makes_nobody_slow() -> None:
    times = series(np.random.default_rng(2), 0.0, 40)
    times[7, 3] *= 50
    assert chance_of(times, 3) > LIKELY


def test_what_goes_up_and_down_slowly_has_no_onset() -> None:
    """Neighbouring steps are alike; a rank that is slower from one step on changes more in that step than others do."""
    random = np.random.default_rng(1)
    named = slow = 0
    for _ in range(40):
        times = series(random, 0.5, 12)
        named += any(trend.onset(times, [rank], 1e6) is not None for rank in range(RANKS))
        times[4:, 2] *= 1.18
        slow += trend.onset(times, [2], 1e6) == 4
    assert named <= 3
    assert slow >= 30
    alike = [series(random, 0.8, 14) for _ in range(40)]
    assert sum(any(trend.onset(times, [rank], 1e6) is not None for rank in range(RANKS)) for times in alike) <= 4


def test_a_rank_is_as_the_others_without_what_it_takes_longer() -> None:
    """What all take longer is left of it: else the others would seem to take longer."""
    longer = np.array([[26.0, 25.0, 90.0], [26.0, 25.0, 95.0]])
    assert trend.left(longer, np.array([[0.0, 0.0, 90.0], [0.0, 0.0, 95.0]])).tolist() == [[26, 25, 25.5]] * 2
    assert trend.left(longer, longer).tolist() == [[0, 0, 0]] * 2


def test_few_steps_show_no_stall_that_is_as_long_as_some_are_by_chance() -> None:
    random, jobs = np.random.default_rng(3), 300
    named = 0
    for _ in range(jobs):
        times = series(random, 0.3, 5) / 1e6
        alone = trend.alone(times - np.median(times, axis=0), np.ones(RANKS))
        named += bool((alone[trend.stalls(alone, 1.0, is_one_kind=True)] >= 0.05).any())
    assert named <= 0.02 * jobs + 2 * np.sqrt(0.02 * jobs)
