"""Spread in context, worked out by hand."""

from __future__ import annotations

import pytest

from tests.build import GPU2, TraceBuilder
from tests.conftest import OpenJob
from tests.summary.cells import cells


def job() -> TraceBuilder:
    """a 10, b 20, a 16, b 20, a 16 on one agent; a 40 on another. Alone a spreads from 10 to 40."""
    trace, at = TraceBuilder(), 100
    for name, length in (("a", 10), ("b", 20), ("a", 16), ("b", 20), ("a", 16)):
        trace.kernel(name, at, at + length)
        at += 100
    return trace.kernel("a", 130, 170, agent=GPU2)


def test_alone(open_job: OpenJob) -> None:
    session = open_job(job())
    columns = "name after calls total_ns min_ns max_ns excess_ns excess_percent"
    assert cells(session, "variability", columns) == [
        ("a", None, 4, 82, 10, 40, 42, 42 * 100 / 122),
        ("b", None, 2, 40, 20, 20, 0, 0.0),
    ]
    assert cells(session, "variability-total", "what total_ns excess_ns") == [("other kernels", 122, 42)]


def test_in_context_no_operation_is_dropped_and_agents_stay_apart(open_job: OpenJob) -> None:
    session = open_job(job())
    table = cells(session, "variability", "name after calls total_ns excess_ns", sequence=1)
    assert table == [("a", "", 2, 50, 30), ("a", "b", 2, 32, 0), ("b", "a", 2, 40, 0)]
    two = cells(session, "variability", "name after calls", sequence=2)
    assert sorted(two) == [("a", "", 2), ("a", "b < a", 2), ("b", "a", 1), ("b", "a < b", 1)]
    assert sum(row[2] for row in two) == 6


def test_communication_is_told_apart(open_job: OpenJob) -> None:
    trace = TraceBuilder().kernel("ncclDevKernel_Generic", 1, 11).kernel("ncclDevKernel_Generic", 20, 50).copy(60, 70)
    assert cells(open_job(trace), "variability-total", "what total_ns excess_ns excess_percent") == [
        ("communication", 40, 20, 40.0),
        ("copies", 10, 0, 0.0),
    ]


def test_longer_contexts_than_operations(open_job: OpenJob) -> None:
    session = open_job(TraceBuilder().kernel("a", 1, 2).kernel("b", 3, 5))
    assert cells(session, "variability", "name after", sequence=5) == [("a", ""), ("b", "a")]


def test_narrow_terminals_keep_the_context(open_job: OpenJob) -> None:
    session = open_job(job())
    for sequence, is_shown in ((0, False), (1, True)):
        table = session.summary("variability", sequence=sequence)
        assert {field.name: field.minor for field in table.fields}["after"] is not is_shown


def test_when_and_after_which_gaps(open_job: OpenJob) -> None:
    """The first operation of an agent has no gap before it; the clock of the time line starts at the first event."""
    session = open_job(job())
    columns = "name first_ns last_ns gap_ns min_gap_ns mean_gap_ns std_gap_ns max_gap_ns"
    assert cells(session, "variability", columns) == [
        ("a", 0, 400, 160, 80, 80.0, 0.0, 80),
        ("b", 100, 300, 174, 84, 87.0, 18**0.5, 90),
    ]


def test_outliers_by_mean_and_by_median(open_job: OpenJob) -> None:
    """11 of 12 lie between 95 and 105; scipy has the same scores."""
    from scipy import stats  # type: ignore[import-untyped] # takes longer than this test: not in every worker

    lengths = [*range(95, 106), 900]
    trace = TraceBuilder()
    for at, length in enumerate(lengths):
        trace.kernel("k", 1000 * at + 1, 1000 * at + 1 + length)
    session = open_job(trace.kernel("same", 90_000, 90_010).kernel("same", 91_000, 91_010))
    rows = cells(session, "variability", "name outliers median_outliers")
    assert rows == [("k", 1, 1), ("same", 0, 0)]
    scores = cells(session, "op-trace", "name z_score median_score")
    assert [row[1:] for row in scores if row[0] == "same"] == [(None, None)] * 2
    of_k = [row for row in scores if row[0] == "k"]
    assert [row[1] for row in of_k] == pytest.approx(stats.zscore(lengths).tolist())
    distance = stats.median_abs_deviation(lengths, scale="normal")
    assert [row[2] for row in of_k] == pytest.approx([(x - 100.5) / distance for x in lengths], rel=1e-4)


def test_classes_of_durations(open_job: OpenJob) -> None:
    trace, at = TraceBuilder(), 10_000
    for length in (0, 1, 1, 2, 4, 5, 9, 10, 19, 20, 5_000):
        trace.kernel("k", at, at + length)
        at += 10_000
    session = open_job(trace)
    rows = cells(session, "durations", "from_ns until_ns calls total_ns")
    assert rows == [
        (0, 1, 1, 0),
        (1, 2, 2, 2),
        (2, 5, 2, 6),
        (5, 10, 2, 14),
        (10, 20, 2, 29),
        (20, 50, 1, 20),
        (5_000, 10_000, 1, 5_000),
    ]
    assert sum(cells(session, "durations", "percent")) == pytest.approx(100)
    assert cells(session, "durations", "calls total_ns", sequence=2) == [row[2:] for row in rows]
