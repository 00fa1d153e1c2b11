"""Spread in context, worked out by hand."""

from __future__ import annotations

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
