"""Which time of a job counts: worked out by hand."""

from __future__ import annotations

import rocpd
from rocpd.facts.rank import Options
from rocpd.facts.units import RankTime, times_that_count
from tests.build import TraceBuilder
from tests.conftest import OpenJob

EVERYTHING = Options(everything=True)


def stepping(lengths: list[int], rank: int = 0) -> TraceBuilder:
    """Steps from 0 on, one after the other from 1000 ns, each with a kernel in its first half."""
    trace, at = TraceBuilder(rank, pid=20 + rank), 1000
    for step, length in enumerate(lengths):
        trace.region("roctxRangePushA", at, at + length, message=f"step {step}").kernel("gemm", at, at + length // 2)
        at += length
    return trace


def test_warm_up_is_one_number_for_the_job(open_job: OpenJob) -> None:
    """By the mean of both ranks two steps are warm-up, though on the second one step 1 is as long as the others."""
    session = open_job(stepping([900, 300, 100, 100, 100, 100]), stepping([900, 100, 100, 100, 100, 100], 1))
    assert times_that_count(session, Options()) == {0: RankTime(2200, 2600, 4, 2), 1: RankTime(2000, 2400, 4, 2)}


def test_a_slow_step_later_is_no_warm_up(open_job: OpenJob) -> None:
    session = open_job(stepping([100, 900, 100, 100]))
    assert times_that_count(session, Options()) == {0: RankTime(1000, 2200, 4, 0)}


def test_the_active_part_is_that_of_all_ranks_of_a_machine(open_job: OpenJob) -> None:
    """From the first to the last dispatch of both; copies before are start-up."""
    first = TraceBuilder(0, pid=20).copy(50, 90).kernel("a", 100, 200)
    second = TraceBuilder(1, pid=21).kernel("b", 150, 400).region("end", 400, 900)
    session = open_job(first, second)
    assert times_that_count(session, Options()) == {0: RankTime(100, 400), 1: RankTime(100, 400)}


def test_a_job_of_copies_alone_is_active_in_them(open_job: OpenJob) -> None:
    session = open_job(TraceBuilder().copy(50, 90).copy(200, 300))
    assert times_that_count(session, Options()) == {0: RankTime(50, 300)}


def test_ranks_whose_clocks_are_not_aligned_have_their_own(open_job: OpenJob) -> None:
    far = 10**15
    other = TraceBuilder(1, machine="other", host="n1").kernel("b", far, far + 70)
    session = open_job(TraceBuilder(0).kernel("a", 100, 200), other)
    assert {*times_that_count(session, Options()).values()} == {RankTime(100, 200), RankTime(far, far + 70)}


def test_a_window_is_what_counts(open_job: OpenJob) -> None:
    session = open_job(stepping([900, 100, 100, 100]).region("end", 3000, 5000))
    assert times_that_count(session.within(rocpd.Window(1100, 4000)), Options()) == {0: RankTime(1100, 4000)}


def test_everything_is_the_active_part(open_job: OpenJob) -> None:
    session = open_job(stepping([900, 100, 100, 100]).region("end", 3000, 5000))
    assert times_that_count(session, EVERYTHING) == {0: RankTime(1000, 2200)}


def test_filters_change_nothing(open_job: OpenJob) -> None:
    session = open_job(stepping([900, 100, 100, 100]).kernel("other", 1000, 1010))
    filtered = session.where(rocpd.Filters(kernel="other"))
    assert times_that_count(filtered, Options()) == times_that_count(session, Options())
