"""How agents spend their time, worked out by hand."""

from __future__ import annotations

from itertools import pairwise

import pytest

import rocpd
from rocpd.base import RocpdError
from rocpd.facts.rank import By, Options
from rocpd.summary.reading import run
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
    assert rows == [(0, 200, 200, 2), (2, 100, 300, 2), (3, 190, 210, 2)]


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
    assert cells(session, "gpu-time", "agent span_ns gaps") == [(1, 500, 1), (2, 500, 1)]
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
        "largest-gaps: not divided by stream",
        "no overlap by stream: compute and communication run on different streams of an agent: --by agent",
    ]
    with pytest.raises(RocpdError, match="overlap"):
        session.summary("overlap", by="stream")


def test_a_window_is_the_base_of_its_use(open_job: OpenJob) -> None:
    """Idle before the first operation and after the last counts, and an agent that does nothing at all is 0 % busy."""
    session = open_job(job().kernel("elsewhere", 2000, 2100, agent=GPU2).region("whole", 1, 5000))
    columns = "agent operations span_ns busy_ns idle_ns busy_percent gaps max_gap_ns"
    assert cells(session.within(rocpd.Window(50, 650)), "gpu-time", columns) == [
        (1, 5, 600, 350, 250, pytest.approx(100 * 350 / 600), 3, 150),
        (2, 0, 600, 0, 600, 0.0, 1, 600),
    ]
    assert cells(session.within(rocpd.Window(600, 700)), "gpu-time", columns) == [
        (1, 0, 100, 0, 100, 0.0, 1, 100),
        (2, 0, 100, 0, 100, 0.0, 1, 100),
    ]
    gaps = cells(session.within(rocpd.Window(50, 650)), "largest-gaps", "agent gap_ns before after")
    assert gaps == [
        (2, 600, None, None),
        (1, 150, "ncclDevKernel_Generic_1", None),
        (1, 50, None, "a"),
        (1, 50, "b", "MEMORY_COPY_HOST_TO_DEVICE"),
    ]


def test_what_crosses_the_edge_is_busy_inside_only(open_job: OpenJob) -> None:
    """The kernel from 350 to 500 counts whole in sums; of the window it takes 25 ns."""
    session = open_job(job()).within(rocpd.Window(325, 375))
    columns = "operations span_ns busy_ns idle_ns sum_ns"
    assert cells(session, "gpu-time", columns) == [(2, 50, 50, 0, 250)]
    assert cells(session, "overlap", "busy_ns communication_ns copy_ns") == [(50, 25, 50)]


@pytest.mark.parametrize("clip", [False, True])
def test_busy_and_idle_of_adjoining_windows_add_up(clip: bool, open_job: OpenJob) -> None:
    session = open_job(job().region("whole", 1, 701))
    edges = ["0%", "21%", "25%", "50%", "73%", "100%"]
    windows = [session.within(rocpd.Window(a, b, clip=clip)) for a, b in pairwise(edges)]
    sums = [cells(window, "gpu-time", "span_ns busy_ns idle_ns")[0] for window in windows]
    assert [sum(column) for column in zip(*sums, strict=True)] == [700, 350, 350]


def test_the_base_of_a_step_is_what_it_launched(open_job: OpenJob) -> None:
    """Its work runs after it: first start to last end."""
    trace = TraceBuilder().region("roctxRangePushA", 10, 50, message="step 0").region("launch", 20, 30, stack=5)
    trace.kernel("a", 100, 150, stack=5).kernel("b", 170, 200, stack=5).region("end", 300, 310)
    session = open_job(trace).within(rocpd.Window(step=0))
    assert cells(session, "gpu-time", "operations span_ns busy_ns idle_ns") == [(2, 100, 80, 20)]


def test_by_step_time_goes_where_the_rank_is(open_job: OpenJob) -> None:
    trace = TraceBuilder()
    for step in range(4):
        at = 100 * step + 100
        trace.region("roctxRangePushA", at, at + 90, message=f"step {step}", stack=0).kernel("gemm", at + 5, at + 25)
    columns = "step operations busy_ns idle_ns gaps"
    steps = [(0, 1, 20, 70, 2), (1, 1, 20, 70, 2), (2, 1, 20, 70, 2), (3, 1, 20, 70, 2)]
    assert cells(open_job(trace), "gpu-time", columns, "step") == [*steps, (None, 0, 0, 30, 3)]
