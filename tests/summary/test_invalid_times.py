"""Views that add times up agree with the summaries on rows with invalid timestamps."""

from __future__ import annotations

import pytest

from tests.build import TraceBuilder
from tests.conftest import OpenJob
from tests.summary.cells import cells

STATISTICS = "name calls total_ns mean_ns min_ns max_ns std_ns percent"


def damaged(number: int = 0) -> TraceBuilder:
    """Kernels, copies and allocations with sound times, a start of 0, and an end before the start."""
    trace = TraceBuilder(number)
    for start, end in ((100, 150), (200, 270 + number), (0, 10**15), (400, 300)):
        trace.kernel("gemm", start, end, region="step").copy(start, end, size=64).alloc(start, end, size=32)
    return trace.kernel("never", 0, 5).kernel("relu", 500, 510)


@pytest.mark.parametrize(("view", "table"), [("kernel_summary", "kernels"), ("memory_copy_summary", "copies")])
def test_a_view_and_its_summary_say_the_same(view: str, table: str, open_job: OpenJob) -> None:
    session = open_job(damaged(0), damaged(1))
    statistics = STATISTICS + (" bytes gib_per_s" if table == "copies" else "")
    rows = session.sql(f"SELECT {statistics.replace(' ', ', ')} FROM {view}").fetchall()
    zeroes = [tuple(value or 0 for value in row) for row in rows]
    expected = [tuple(value or 0 for value in row) for row in cells(session, table, statistics)]
    assert len(zeroes) == len(expected)
    for row, values in zip(sorted(zeroes), sorted(expected), strict=True):
        assert row == pytest.approx(values)


def test_invalid_times_are_no_time(open_job: OpenJob) -> None:
    session = open_job(damaged())
    assert session.sql("SELECT name, total_calls, total_duration, average, percentage FROM top_kernels").fetchall() == [
        ("gemm", 4, 0.12, 0.06, pytest.approx(12000 / 130)),
        ("relu", 1, 0.01, 0.01, pytest.approx(1000 / 130)),
        ("never", 1, None, None, None),
    ]
    assert session.sql("SELECT GpuTime, WallTime FROM busy").fetchall() == [(250, 410)]
    assert session.sql("SELECT calls, bytes, total_ns FROM memory_allocation_summary").fetchall() == [(4, 64, 120)]
    assert session.sql("SELECT name, total_calls FROM top WHERE percentage > 100 OR percentage < 0").fetchall() == []
    assert session.sql("SELECT calls, total_ns FROM kernel_summary_region WHERE region = 'step'").fetchall() == [
        (4, 120)
    ]
