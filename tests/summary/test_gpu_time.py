"""How agents spend their time, worked out by hand."""

from __future__ import annotations

import pytest

from rocpd.errors import RocpdError
from rocpd.summary.options import By, Options
from rocpd.summary.run import run
from tests.build import GPU2, TraceBuilder
from tests.conftest import OpenJob
from tests.summary.cells import cells


def job() -> TraceBuilder:
    """Compute 100-250 (two kernels), copy 300-400, communication 350-500 and, hidden, 160-200."""
    trace = TraceBuilder().kernel("a", 100, 200).kernel("b", 150, 250, stream=2)
    trace.copy(300, 400).kernel("ncclDevKernel_Generic_1", 350, 500, stream=3)
    return trace.kernel("ncclDevKernel_Generic_1", 160, 200, stream=3)


def test_busy_is_a_union(open_job: OpenJob) -> None:
    columns = "rank agent operations span_ns busy_ns idle_ns busy_percent sum_ns gaps max_gap_ns"
    assert cells(open_job(job()), "gpu-time", columns) == [(0, 1, 5, 400, 350, 50, 87.5, 490, 1, 50)]


def test_by_stream_each_has_its_own_gaps(open_job: OpenJob) -> None:
    rows = cells(open_job(job()), "gpu-time", "stream busy_ns idle_ns gaps", "stream")
    assert rows == [(0, 200, 100, 1), (2, 100, 0, 0), (3, 190, 150, 1)]


def test_overlap(open_job: OpenJob) -> None:
    columns = (
        "busy_ns compute_ns communication_ns copy_ns hidden_communication_ns exposed_communication_ns exposed_copy_ns"
    )
    [rows] = cells(open_job(job()), "overlap", columns)
    assert rows == (350, 150, 190, 100, 40, 150, 50)
    assert rows[1] + rows[5] + rows[6] == rows[0]


def test_gaps_each_for_itself(open_job: OpenJob) -> None:
    """Gaps of 10 us (on the edge), 10.001 us, 2 ms; touching and overlapping operations have none."""
    trace = TraceBuilder().kernel("a", 1000, 2000).kernel("b", 2000, 3000).kernel("c", 13_000, 14_000)
    trace.kernel("long", 24_001, 60_000).kernel("inside", 30_000, 31_000).kernel("late", 2_060_000, 2_061_000)
    session = open_job(trace)
    rows = cells(session, "gaps", "length gaps total_ns max_ns")
    assert rows[0] == ("up to 10 us", 1, 10_000, 10_000)
    assert rows[1] == ("10 us to 20 us", 1, 10_001, 10_001)
    assert rows[5] == ("1 ms to 10 ms", 1, 2_000_000, 2_000_000)
    assert sum(row[1] for row in rows) == 3
    assert cells(session, "largest-gaps", "at_ns gap_ns before after") == [
        (59_000, 2_000_000, "long", "late"),
        (13_000, 10_001, "c", "long"),
        (2000, 10_000, "b", "c"),
    ]


def test_agents_are_apart(open_job: OpenJob) -> None:
    trace = TraceBuilder().kernel("a", 100, 200).kernel("b", 500, 600, agent=GPU2).kernel("c", 0, 9)
    session = open_job(trace)
    assert cells(session, "gpu-time", "agent span_ns gaps") == [(1, 100, 0), (2, 100, 0)]
    assert session.notes == [
        "1 GPU operations left out: invalid timestamps (start 0, or end before start)",
        "no communication kernels found",
    ]


def test_no_operation_is_no_zero(open_job: OpenJob) -> None:
    with pytest.raises(RocpdError, match="no kernels or copies in the selection"):
        open_job(TraceBuilder().region("f", 1, 2)).summary("overlap")


def test_shares_of_communication(open_job: OpenJob) -> None:
    """Of 190 ns of communication 40 are hidden; busy are 350."""
    [shares] = cells(open_job(job()), "overlap", "hidden_percent exposed_percent exposed_busy_percent")
    assert shares == pytest.approx((4000 / 190, 15000 / 190, 15000 / 350))


def test_no_overlap_by_stream(open_job: OpenJob) -> None:
    """Compute and communication of an agent run on different streams."""
    session = open_job(job())
    assert "overlap" not in {table.name for table in run(session, "gpu-time", Options(By.STREAM))}
    assert session.notes == [
        "no overlap by stream: compute and communication run on different streams of an agent: --by agent"
    ]
    with pytest.raises(RocpdError, match="overlap"):
        session.summary("overlap", by="stream")
