"""Launching, worked out by hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import rocpd
from rocpd.base import RocpdError
from rocpd.simulator import JobOptions, simulate
from tests.build import GPU, GPU2, TraceBuilder
from tests.conftest import OpenJob
from tests.summary.cells import cells


def job() -> TraceBuilder:
    """Launches return at 20, 30 and 400; kernels run 25-100, 100-200 and 450-500; a graph starts two, 610 and 640."""
    trace = TraceBuilder().region("launch", 10, 20, stack=1).region("launch", 22, 30, stack=2)
    trace.region("launch", 380, 400, stack=3).region("graph", 590, 615, stack=4)
    trace.region("roctxRangePushA", 1, 700, message="step 1").region("roctxRangePushA", 700, 800, message="step 2")
    trace.kernel("a", 25, 100, stack=1).kernel("a", 100, 200, stack=2).kernel("b", 450, 500, stack=3)
    return trace.kernel("g", 610, 620, stack=4).kernel("h", 640, 650, stack=4).kernel("lost", 700, 710, stack=99)


def test_delays(open_job: OpenJob) -> None:
    """A kernel that starts before its call returns has no delay; a graph's call counts for its first kernel.

    A copy that its call waits for says nothing of what launching takes.
    """
    columns = "name launched delay_ns median_delay_ns max_delay_ns api_ns gpu_ns onto_idle idle_delay_ns"
    trace = job().region("hipMemcpy", 655, 695, stack=5).copy(660, 690, name="H2D", stack=5)
    assert cells(open_job(trace), "launch", columns) == [
        ("a", 2, 75, 37.5, 70, 18, 175, 0, None),
        ("b", 1, 50, 50.0, 50, 20, 50, 1, 50.0),
        ("h", 1, 25, 25.0, 25, 0, 10, 0, None),
        ("H2D", 1, 0, 0.0, 0, 40, 30, 0, None),
        ("g", 1, 0, 0.0, 0, 25, 10, 1, 0.0),
    ]


@pytest.mark.parametrize(("call", "says"), [("hipLaunchKernel", "launch-b"), ("hipFree", "host-bound, mostly not by")])
def test_the_first_line_says_whether_launches_bind(open_job: OpenJob, call: str, says: str) -> None:
    """Steps from 1000 to 1800: the GPU is idle for 500, for 425 of that the next kernel is not launched yet."""
    trace = TraceBuilder().region("hipFree", 1, 2).kernel("a", 5, 10)
    for step in (0, 1):
        trace.region("roctxRangePushA", 1000 + step * 400, 1400 + step * 400, message=f"step {step}")
    for stack, at in enumerate((1000, 1400), 1):
        trace.region(call, at, at + 200, stack=stack).kernel("a", at + 225, at + 375, stack=stack)
    session = open_job(trace)
    assert cells(session, "bottleneck", "operations span_ns idle_ns cpu_bound_ns") == [(2, 800, 500, 425)]
    for table in ("launch", "bottleneck"):
        [finding] = session.summary(table).findings
        assert finding.text.startswith(says)
        assert "for all that the host does; usually an operation starts 25 ns after its launch" in finding.text


def test_the_usual_delay_is_that_of_all_launches(open_job: OpenJob) -> None:
    """What queues behind others starts long after its launch; onto an idle GPU launching takes 25 ns."""
    trace = TraceBuilder().kernel("a", 1, 5)
    for stack in range(1, 6):
        trace.region("hipLaunchKernel", stack * 10, stack * 10 + 5, stack=stack)
        trace.kernel("a", stack * 1000 - 960, stack * 1000 - 10, stack=stack)
    (finding,) = open_job(trace).summary("launch").findings
    usual, alone = "2.00 us after its launch", "25 ns after its launch"
    assert finding.text.endswith(f"; usually an operation starts {usual}, a kernel on an idle GPU {alone} (median)")
    assert (finding.evidence["delay_ns"], finding.evidence["idle_delay_ns"]) == (2005.0, 25.0)


def test_delays_by_the_call_that_launched(open_job: OpenJob) -> None:
    """The same kernel launched by two functions; what has no call is in no row, the other tables stay as they are."""
    trace = job().region("launchLate", 710, 720, stack=5).kernel("a", 725, 735, stack=5)
    session = open_job(trace)
    assert cells(session, "launch", "api name launched delay_ns gpu_ns", "api") == [
        ("graph", "h", 1, 25, 10),
        ("graph", "g", 1, 0, 10),
        ("launch", "a", 2, 75, 175),
        ("launch", "b", 1, 50, 50),
        ("launchLate", "a", 1, 5, 10),
    ]
    for table in ("bottleneck", "queue-depth"):
        assert session.summary(table, "api").fetchall() == session.summary(table).fetchall()
    assert session.summary("bottleneck", "api").columns[:2] == ("rank", "agent")


def test_waiting_for_the_cpu(open_job: OpenJob) -> None:
    """Gaps 200-450 (launched at 400), 500-610 (returned later), 620-640 (long launched), 650-700 (unknown)."""
    columns = "operations launched launches launches_per_step span_ns idle_ns cpu_bound_ns unknown_ns"
    [row] = cells(open_job(job()), "bottleneck", columns)
    assert row == (6, 5, 4, 2.0, 685, 250 + 110 + 20 + 50, 200 + 110, 50)


def test_without_calls_it_says_so(open_job: OpenJob) -> None:
    with pytest.raises(RocpdError, match="no operation has a call that launched it"):
        open_job(TraceBuilder().kernel("a", 1, 2)).summary("launch")


def test_two_agents_of_a_rank_go_through_the_same_steps(open_job: OpenJob) -> None:
    """Each of two steps launches once on each GPU."""
    trace = TraceBuilder()
    for step in (1, 2):
        at, stack = 1000 * step, 10 * step
        trace.region("roctxRangePushA", at, at + 900, message=f"step {step}")
        for agent in (GPU, GPU2):
            trace.region("launch", at + agent, at + 10, stack=stack + agent)
            trace.kernel("a", at + 20, at + 50, stack=stack + agent, agent=agent)
    session = open_job(trace)
    assert cells(session, "bottleneck", "launches_per_step") == [1.0, 1.0]
    assert cells(session, "bottleneck", "launches_per_step", "rank") == [2.0]


def test_calls_before_the_window_count(open_job: OpenJob) -> None:
    """What runs in a window was mostly launched before it; an edge that cuts a kernel is no later start."""
    session = open_job(job())
    session = session.within(rocpd.Window(90, 480, clip=True))
    columns = "name launched delay_ns max_delay_ns api_ns gpu_ns"
    assert cells(session, "launch", columns) == [("a", 2, 75, 70, 18, 110), ("b", 1, 50, 50, 20, 30)]
    assert cells(session, "bottleneck", "operations launched idle_ns cpu_bound_ns unknown_ns") == [(3, 3, 250, 200, 0)]


def test_a_window_without_work_waits_for_the_next_launch(open_job: OpenJob) -> None:
    """The agent is idle from 100 to 900; the next kernel is launched at 800: until then it waits for the CPU."""
    trace = TraceBuilder().region("launch", 5, 8, stack=1).kernel("a", 10, 100, stack=1)
    trace.region("launch", 790, 800, stack=2).kernel("b", 900, 950, stack=2).region("whole", 1, 1500)
    session = open_job(trace)
    columns = "operations span_ns idle_ns cpu_bound_ns unknown_ns cpu_bound_percent"
    assert cells(session.within(rocpd.Window(200, 600)), "bottleneck", columns) == [(0, 400, 400, 400, 0, 100.0)]
    assert cells(session.within(rocpd.Window(700, 850)), "bottleneck", columns) == [
        (0, 150, 150, 100, 0, pytest.approx(100 / 1.5))
    ]
    # After the last operation nothing is waited for.
    assert cells(session.within(rocpd.Window(940, 1040)), "bottleneck", columns) == [(1, 100, 90, 0, 0, 0.0)]


def test_queue_depth(open_job: OpenJob) -> None:
    """Calls return at 20, 30, 40; kernels start at 60, 50, 45, and one before its call returns."""
    trace = TraceBuilder().region("hipInit", 1, 2).region("hipFree", 100, 101)
    for number, (returned, start) in enumerate([(20, 60), (30, 50), (40, 45), (90, 80)], 1):
        trace.region("hipLaunchKernel", returned - 5, returned, stack=number).kernel(
            "k", start, start + 1, stack=number
        )
    columns = "at_ns mean_depth max_depth empty_percent"
    assert cells(open_job(trace), "queue-depth", columns, bins=4) == [
        (0, 0.24, 1, 76.0),
        (25, (4 + 10 * 2 + 5 * 3 + 5 * 2 + 1) / 25, 3, 0.0),
        (50, 9 / 25, 1, 64.0),
        (75, 0.0, 0, 100.0),
    ]


def test_queue_depth_adds_up_to_the_delays(tmp_path: Path) -> None:
    """What waits, over time, is the sum of all delays; a trace counts the same."""
    with rocpd.connect(simulate(JobOptions(tmp_path / "job", ranks=2, nodes=2, steps=2, seed=811))) as session:
        delay = sum(cells(session, "launch", "delay_ns", everything=True))
        rows = cells(session, "queue-depth", "rank at_ns mean_depth max_depth", bins=7)
        width = rows[1][1] - rows[0][1]
        assert sum(mean for _, _, mean, _ in rows) * width == pytest.approx(delay, rel=1e-6)
        (path,) = session.convert("json", tmp_path / "trace.json", queue_depth=True)
        counted = re.findall(r'operations waiting","args":{"value":([0-9.]+)}', path.read_text())
        assert max(map(float, counted)) == max(most for *_, most in rows)
        assert counted[-1] == "0.0"
