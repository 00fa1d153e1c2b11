"""Graphs: launches, their time on CPU and GPU, idle time in them, kernels; each process has handles of its own."""

from __future__ import annotations

import pytest

import rocpd
from rocpd.base import RocpdError
from tests.build import TraceBuilder
from tests.conftest import OpenJob, private
from tests.summary.cells import cells

HANDLE = "0x77"


def launch(trace: TraceBuilder, at: int, stack: int, *kernels: tuple[str, int, int], graph: str = HANDLE) -> None:
    """A call of 10 ns, and kernels with their starts and ends after it."""
    trace.region("hipGraphLaunch", at, at + 10, stack=stack).arg("graphExec", graph)
    for name, start, end in kernels:
        trace.kernel(name, at + start, at + end, stack=stack)


def test_launches_and_their_kernels(open_job: OpenJob) -> None:
    """The second launch has a gap of 20 ns; in the first two kernels overlap."""
    trace = TraceBuilder()
    launch(trace, 100, 1, ("a", 20, 40), ("b", 30, 60))
    launch(trace, 200, 2, ("a", 15, 25), ("b", 45, 55))
    trace.region("hipLaunchKernel", 300, 310, stack=3).kernel("alone", 320, 330, stack=3)
    launch(trace, 400, 4)
    session = open_job(trace)
    columns = "graph launches operations api_ns gpu_ns wall_ns busy_ns idle_ns busy_percent"
    assert cells(session, "graphs", columns) == [(HANDLE, 2, 2.0, 20, 70, 80, 60, 20, 75.0)]
    assert cells(session, "graph-launches", "at_ns api_ns delay_ns operations gpu_ns wall_ns idle_ns") == [
        (0, 10, 20, 2, 50, 40, 0),
        (100, 10, 15, 2, 20, 40, 20),
    ]
    assert cells(session, "graph-kernels", "kernel calls per_launch total_ns") == [("b", 2, 1.0, 40), ("a", 2, 1.0, 30)]
    assert "graphs: 1 launches left out: no operations of theirs are in the selection" in session.notes


def test_equal_handles_of_two_processes_are_two_graphs(open_job: OpenJob) -> None:
    builders = [TraceBuilder(number, pid=10 + number) for number in range(2)]
    for number, trace in enumerate(builders):
        launch(trace, 100, 1, ("a", 20, 40 + number))
    assert cells(open_job(*builders), "graphs", "rank graph wall_ns") == [(0, HANDLE, 20), (1, HANDLE, 21)]


def test_handles_of_dispatches_stand_for_those_of_calls(open_job: OpenJob) -> None:
    trace = TraceBuilder().region("cudaGraphLaunch", 100, 110, stack=1)
    trace.kernel("a", 120, 130, stack=1, graph_exec_id=0x55)
    assert cells(open_job(trace), "graphs", "graph launches") == [("0x55", 1)]


def test_without_graphs_there_is_no_table(open_job: OpenJob) -> None:
    with pytest.raises(RocpdError, match="no graph was launched"):
        open_job(TraceBuilder().kernel("a", 1, 2)).summary("graphs")


def test_a_real_trace_without_capture_calls() -> None:
    """20 launches of 418 operations; sums over the tables of the trace itself."""
    with rocpd.connect(private("rpd/mytrace.rpd.gz", 1)) as session:
        assert cells(session, "graphs", "graph launches operations wall_ns gpu_ns") == [
            ("0x24922d90", 20, 418.0, 94_200_093, 94_200_004)
        ]


def captured(trace: TraceBuilder, at: int, kernel: str, stream: str, **columns: object) -> None:
    """A launch of 10 ns that records a kernel of 4 blocks of 32 x 2 work-items."""
    trace.region("hipLaunchKernel", at, at + 10, **columns)  # type: ignore[arg-type]
    trace.arg("kernel", kernel).arg("grid", "4, 1, 1").arg("workgroup", "32, 2, 1").arg("stream", stream)


def test_captures_their_kernels_and_what_was_made_of_them(open_job: OpenJob) -> None:
    """Two captures of one graph handle, and two threads; one launch forks, one has an operation, one is elsewhere."""
    trace = TraceBuilder()
    for at, executable in ((1000, "0x70"), (2000, HANDLE)):
        trace.region("hipStreamBeginCapture", at, at + 10).arg("stream", "0x5000")
        captured(trace, at + 20, "a", "0x5000")
        captured(trace, at + 40, "forked", "0x6000")
        captured(trace, at + 60, "b", "0x5000", tid=99)
        captured(trace, at + 80, "elsewhere", "0x6000", tid=99)
        captured(trace, at + 100, "made", "0x5000", stack=at)
        trace.kernel("made", at + 120, at + 130, stack=at)
        trace.region("hipStreamEndCapture", at + 200, at + 210).arg("stream", "0x5000").arg("graph", "0x9")
        trace.region("hipGraphInstantiate", at + 300, at + 310).arg("graphExec", executable).arg("graph", "0x9")
    launch(trace, 3000, 7, ("a", 20, 40), ("b", 30, 60), ("unknown", 70, 75))
    trace.rows["rocpd_kernel_dispatch"][-1] |= {f"grid_size_{axis}": 8 for axis in "xyz"}
    for row in trace.rows["rocpd_kernel_dispatch"][-3:-1]:
        row |= {f"{what}_size_{axis}": 0 for what in ("grid", "workgroup") for axis in "xyz"}
    session = open_job(trace)
    assert cells(session, "graph-captures", "capture graph executables stream at_ns duration_ns kernels") == [
        (1, "0x9", "0x70", "0x5000", 0, 210, 3),
        (2, "0x9", HANDLE, "0x5000", 1000, 210, 3),
    ]
    assert cells(session, "captured-kernels", "capture number kernel grid workgroup function")[3:] == [
        (2, 1, "a", "128x2x1", "32x2x1", "hipLaunchKernel"),
        (2, 2, "forked", "128x2x1", "32x2x1", "hipLaunchKernel"),
        (2, 3, "b", "128x2x1", "32x2x1", "hipLaunchKernel"),
    ]
    assert sorted(cells(session, "graph-kernels", "kernel grid workgroup")) == [
        ("a", "128x2x1", "32x2x1"),
        ("b", "128x2x1", "32x2x1"),
        ("unknown", "8x8x8", "256x1x1"),
    ]


def test_calls_that_never_ended_are_left_out(open_job: OpenJob) -> None:
    """A launch whose end is 0 would take less than no time, and so would a capture."""
    trace = TraceBuilder().region("hipGraphLaunch", 100, 0, stack=5).kernel("a", 200, 250, stack=5)
    trace.region("hipGraphLaunch", 300, 310, stack=6).kernel("b", 320, 350, stack=6)
    trace.region("hipStreamBeginCapture", 400, 410).region("hipStreamEndCapture", 420, 0)
    session = open_job(trace)
    assert cells(session, "graphs", "launches api_ns wall_ns") == [(1, 10, 30)]
    assert cells(session, "graph-kernels", "kernel") == ["b"]
    with pytest.raises(RocpdError, match="graph-captures"):
        session.summary("graph-captures")
    assert any("1 launches of graphs left out" in note for note in session.notes)


def test_a_capture_without_launches_or_end(open_job: OpenJob) -> None:
    trace = TraceBuilder().region("hipStreamBeginCapture", 10, 20).region("hipStreamEndCapture", 30, 40)
    session = open_job(trace.region("hipStreamBeginCapture", 50, 60))
    assert cells(session, "graph-captures", "graph stream duration_ns kernels") == [(None, None, 30, 0)]
    assert cells(session, "graphs", "graph") == []
