"""Kernels by marker and agent."""

from __future__ import annotations

from tests.build import GPU2, TraceBuilder
from tests.conftest import OpenJob
from tests.summary.cells import cells


def test_marker_agent_and_kernel(open_job: OpenJob) -> None:
    """Two kernels in the marker on one agent, one of them on another one too, and one outside."""
    trace = TraceBuilder().region("roctxRangePushA", 100, 200, message="forward 3")
    for stack, (name, length, agent) in enumerate((("a", 30, 1), ("a", 10, 1), ("b", 10, 1), ("a", 5, GPU2)), 1):
        trace.region("hipLaunchKernel", 100 + stack, 101 + stack, stack=stack)
        trace.kernel(name, 300 + 100 * stack, 300 + 100 * stack + length, stack=stack, agent=agent)
    session = open_job(trace.kernel("a", 900, 907), TraceBuilder(1, host="other").kernel("b", 1, 2))
    assert cells(session, "marker-kernels", "marker rank agent name calls total_ns min_ns percent") == [
        (None, 0, 1, "a", 1, 7, 7, 100.0),
        (None, 1, 1, "b", 1, 1, 1, 100.0),
        ("forward #", 0, 1, "a", 2, 40, 10, 80.0),
        ("forward #", 0, 1, "b", 1, 10, 10, 20.0),
        ("forward #", 0, 2, "a", 1, 5, 5, 100.0),
    ]
