"""Clocks aligned by collectives: the true offset lies within the certain bounds, and near the likely one."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from dataclasses import dataclass

import numpy as np
import pytest

from rocpd.base import NULL, Floats, Ints
from rocpd.federate.select.align import Shift
from rocpd.federate.select.clocks import (
    MOST_DRIFT,
    ClockJump,
    ClockLine,
    ContradictionError,
    Meetings,
    align_clocks,
    align_set_clock,
)
from tests.conftest import private


@dataclass(frozen=True)
class World:
    """True times [ns] as rows, and what clocks make of them."""

    offset: Ints
    drift: Floats

    def shown(self, true: Floats) -> Ints:
        return np.asarray(np.rint(true * (1 + self.drift)) + self.offset, np.int64)

    def true_difference(self, at: Ints, clock: int, reference: int) -> Floats:
        """What has to be added to times of a clock to get times of the reference."""
        true = (at - self.offset[clock]) / (1 + self.drift[clock])
        return np.asarray(np.rint(true * (1 + self.drift[reference])) + self.offset[reference] - at)


def world(random: np.random.Generator, clocks: int) -> World:
    """Clocks hours apart that drift by 1 to 50 ppm."""
    sign = random.choice([-1, 1], clocks)
    return World(random.integers(0, 10**14, clocks), sign * random.uniform(1e-6, 50e-6, clocks))


def meetings(
    random: np.random.Generator, of: World, count: int, span_s: float, ranks: int = 8, share: float = 1.0
) -> Meetings:
    """Collectives at random times: arrivals spread over a millisecond, ends 5 to 30 us apart."""
    clocks = len(of.drift)
    true = np.sort(random.uniform(0, span_s * 1e9, count))[:, None, None]
    arrival = true + random.exponential(200_000, (count, clocks, ranks))
    lasts = random.choice([20_000, 60_000, 700_000], (count, 1, 1))
    end = arrival.max((1, 2), keepdims=True) + lasts + random.uniform(0, 30_000, (count, clocks, ranks))
    entered, left, ended = (of.shown(each) for each in (arrival.max(2), end.min(2), end.mean(2)))
    absent = random.random((count, clocks)) > share
    return Meetings(*(np.where(absent, NULL, each) for each in (entered, left, ended)))


def on_line(line: ClockLine, times: Ints) -> Ints:
    """Return times of a clock as those of the reference."""
    return Shift(line.offset_ns, line.at_ns, line.drift).to_line(times)


def errors(of: World, found: Meetings, lines: tuple[ClockLine | None, ...]) -> list[tuple[float, ClockLine]]:
    """Return by how much each clock is wrong at its worst, against the reference."""
    known = [line for line in lines if line]
    reference = next(number for number, line in enumerate(lines) if line and line.drift == 0 and line.offset_ns == 0)
    assert known
    result = []
    for clock, line in enumerate(lines):
        if line and clock != reference:
            times = found.ended[found.ended[:, clock] != NULL, clock]
            wrong = on_line(line, times) - times - of.true_difference(times, clock, reference)
            result.append((float(np.abs(wrong).max()), line))
    return result


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("clocks", "count", "span_s"), [(2, 10, 0.1), (3, 300, 60.0), (8, 1000, 3600.0)])
def test_truth_is_within_what_is_certain(seed: int, clocks: int, count: int, span_s: float) -> None:
    random = np.random.default_rng([seed, clocks])
    of = world(random, clocks)
    found = meetings(random, of, count, span_s)
    for wrong, line in errors(of, found, align_clocks(found)):
        assert line.certain_ns is not None
        assert wrong <= line.certain_ns + 2, line
        assert wrong < 25_000


@pytest.mark.parametrize("share", [1.0, 0.4])
def test_of_many_clocks_a_few_pairs_bound_the_truth(share: float) -> None:
    random = np.random.default_rng(24)
    of = world(random, 24)
    found = meetings(random, of, 300, 60.0, ranks=1, share=share)
    lines = align_clocks(found)
    assert None not in lines
    for wrong, line in errors(of, found, lines):
        assert line.certain_ns is not None
        assert wrong <= line.certain_ns + 2, line


@pytest.mark.parametrize("ranks", [1, 8])
def test_a_few_collectives_in_milliseconds_show_no_drift(ranks: int) -> None:
    """Ends that scatter by 30 us look, over 5 ms, like thousands of ppm; the bounds have room for an even line."""
    for seed in range(20):
        random = np.random.default_rng([seed, 7])
        of = world(random, 40)
        found = meetings(random, of, 7, 0.005, ranks)
        lines = align_clocks(found)
        for wrong, line in errors(of, found, lines):
            assert line.certain_ns is not None
            assert wrong <= line.certain_ns + 2, line
            assert abs(line.drift) <= 1.01 * MOST_DRIFT
            assert type(line.drift) is float
        assert sum(line is not None and line.drift == 0 for line in lines) > 20


def test_the_likely_error_is_a_few_microseconds() -> None:
    wrong = []
    for seed in range(20):
        random = np.random.default_rng([seed, 99])
        of = world(random, 2)
        found = meetings(random, of, 200, 10.0)
        wrong += [error for error, _ in errors(of, found, align_clocks(found))]
    assert np.median(wrong) < 10_000


def test_clocks_that_never_meet_are_joined_by_a_third() -> None:
    random = np.random.default_rng(5)
    of = world(random, 3)
    found = meetings(random, of, 400, 20.0)
    for column in (found.entered, found.left, found.ended):
        column[::2, 0] = NULL
        column[1::2, 2] = NULL
    lines = align_clocks(found)
    assert all(lines)
    for wrong, line in errors(of, found, lines):
        assert line.certain_ns is not None
        assert wrong <= line.certain_ns + 2


def test_a_clock_that_was_set_is_a_contradiction() -> None:
    random = np.random.default_rng(6)
    found = meetings(random, world(random, 3), 400, 20.0)
    for column in (found.entered, found.left, found.ended):
        column[200:, 1] += 5_000_000
    with pytest.raises(ContradictionError) as raised:
        align_clocks(found)
    assert 1 in raised.value.clocks


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(("clocks", "span_s"), [(2, 1.0), (3, 20.0), (8, 600.0)])
def test_a_jump_ahead_is_found_and_taken_out(clocks: int, span_s: float, seed: int) -> None:
    random = np.random.default_rng([seed, clocks])
    of = world(random, clocks)
    clock, at = int(random.integers(clocks)), int(random.integers(10, 390))
    set_one = with_jump(found := meetings(random, of, 400, span_s), clock, at, 5_000_000)
    with pytest.raises(ContradictionError) as raised:
        align_clocks(set_one)
    assert clock in raised.value.clocks
    lines = align_set_clock(set_one, range(clocks))
    (set_clock,) = [number for number, line in enumerate(lines) if isinstance(line, ClockLine) and line.jump]
    line = lines[set_clock]
    assert isinstance(line, ClockLine)
    assert line.jump
    assert line.jump.jump_ns == pytest.approx(5_000_000, abs=60_000)
    if set_clock == clock:  # of two clocks, either
        assert found.ended[at - 1, clock] < line.jump.at_ns <= set_one.ended[at, clock]
        of_lines = tuple(line for line in lines if line is None or isinstance(line, ClockLine))
        assert all(wrong <= (line.certain_ns or 0) + 60_000 for wrong, line in errors(of, found, of_lines))
    assert clocks == 2 or set_clock == clock


@pytest.mark.parametrize("seed", range(5))
def test_a_jump_longer_than_the_job_is_taken_for_no_drift(seed: int) -> None:
    """Times of the clock that jumps have a hole there: over them a jump looks nearly like a slope."""
    random = np.random.default_rng([seed, 17])
    found = meetings(random, of := world(random, 2), 400, 0.2)
    lines = align_set_clock(with_jump(found, 1, 200, 3_000_000_000), (0, 1))
    ahead = lines[1]
    assert isinstance(ahead, ClockLine)
    assert ahead.jump
    assert ahead.jump.jump_ns == pytest.approx(3_000_000_000, abs=20_000)
    of_lines = tuple(line for line in lines if isinstance(line, ClockLine))
    assert all(wrong < 20_000 for wrong, _ in errors(of, found, of_lines))


def test_a_clock_that_was_set_back_is_named_and_others_are_aligned() -> None:
    random = np.random.default_rng(12)
    of = world(random, 3)
    back = with_jump(meetings(random, of, 400, 20.0), 1, 150, -5_000_000)
    first, jump, third = align_set_clock(back, (0, 1))
    assert isinstance(jump, ClockJump)
    assert jump.jump_ns == pytest.approx(-5_000_000, abs=60_000)
    assert isinstance(first, ClockLine)
    assert isinstance(third, ClockLine)


def with_jump(found: Meetings, clock: int, at: int, jump_ns: int) -> Meetings:
    """Return collectives of which a clock was set between two."""
    sides = [side.copy() for side in (found.entered, found.left, found.ended)]
    for side in sides:
        side[at:, clock] += jump_ns
    return Meetings(*sides)


def test_a_few_collectives_that_were_matched_wrongly_do_not_matter() -> None:
    random = np.random.default_rng(7)
    of = world(random, 2)
    found = meetings(random, of, 400, 20.0)
    for column in (found.entered, found.left, found.ended):
        column[[3, 200, 301], 1] += 3_000_000
    for wrong, line in errors(of, found, align_clocks(found)):
        assert line.certain_ns is not None
        assert wrong <= line.certain_ns + 2


def test_half_of_the_collectives_held_out_keep_their_order() -> None:
    random = np.random.default_rng(8)
    of = world(random, 4)
    found = meetings(random, of, 600, 100.0)
    halves = [Meetings(*(c[part::2] for c in (found.entered, found.left, found.ended))) for part in range(2)]
    lines = align_clocks(halves[0])
    entered, left = (
        np.array([on_line(line, column) for line, column in zip(lines, side.T, strict=True) if line])
        for side in (halves[1].entered, halves[1].left)
    )
    assert (entered.max(0) <= left.min(0)).all()


def test_clocks_that_meet_nobody_are_not_aligned() -> None:
    random = np.random.default_rng(9)
    found = meetings(random, world(random, 3), 50, 1.0)
    for column in (found.entered, found.left, found.ended):
        column[:, 2] = NULL
    lines = align_clocks(found)
    assert lines[2] is None
    assert lines[0]
    assert lines[1]


def test_one_direction_bounds_one_side() -> None:
    """A broadcast: only its root is waited for, and may leave early."""
    random = np.random.default_rng(10)
    found = meetings(random, world(random, 2), 50, 1.0)
    found.left[:, 0] = NULL
    found.entered[:, 1] = NULL
    lines = align_clocks(found)
    assert lines[1]
    assert lines[1].certain_ns is None
    assert lines[1].likely_ns < 30_000


def test_many_clocks_are_quick() -> None:
    random = np.random.default_rng(11)
    found = meetings(random, world(random, 64), 1000, 600.0, ranks=1)
    start = time.process_time()
    align_clocks(found)
    print(f"64 clocks, 1000 collectives: {time.process_time() - start:.2f} s")


def test_real_kernels_of_two_processes_on_one_clock() -> None:
    """Sends and receives of two GPUs, which an NVIDIA profiler recorded by one clock: the true offset is 0."""
    for path in private("nsys/mfu_2gpu_*.sqlite", 2):
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            rows = connection.execute(
                "SELECT deviceId, start, end FROM CUPTI_ACTIVITY_KIND_KERNEL K JOIN StringIds S ON S.id = K.shortName"
                " WHERE S.value LIKE 'nccl%' ORDER BY start"
            ).fetchall()
        start, end = (np.array([[row[at] for row in rows if row[0] == gpu] for gpu in (0, 1)]).T for at in (1, 2))
        first, second = align_clocks(Meetings(start, end, end))
        assert first is not None
        assert second is not None
        assert second.certain_ns is not None
        assert abs(second.offset_ns) <= min(second.certain_ns, 30_000)
        assert second.certain_ns < 150_000


@pytest.mark.parametrize(
    ("times", "at"),
    [
        ([10, 20, 9_000, 9_010, 11_020], 11_020),  # a host stalls before
        ([10, 20, 11_000], 11_000),  # the clock is set while it stalls
        ([10, 1_500, 1_510, 3_000], 1_500),  # no gap is long enough
    ],
)
def test_a_jump_lies_in_the_gap_that_is_as_long(times: list[int], at: int) -> None:
    jump = ClockJump(2_000, 0, (0, times[-1] + 10)).at_gap(np.array(times))
    assert (jump.at_ns, jump.jump_ns) == (at, min(2_000, int(np.diff(times).max())))
