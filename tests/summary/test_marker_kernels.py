"""Kernels by marker and agent."""

from __future__ import annotations

import pytest

from rocpd.base import UsageError
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
        ("forward #", 0, 1, "a", 2, 40, 10, 80.0),
        ("forward #", 0, 1, "b", 1, 10, 10, 20.0),
        ("forward #", 0, 2, "a", 1, 5, 5, 100.0),
        (None, 0, 1, "a", 1, 7, 7, 100.0),
        (None, 1, 1, "b", 1, 1, 1, 100.0),
    ]


def test_it_is_kernels_with_options(open_job: OpenJob) -> None:
    """The old name says in one line what it is now, and both have the same rows; steps divide agents as well."""
    trace = TraceBuilder().region("roctxRangePushA", 100, 200, message="step 3")
    for stack, agent in enumerate((1, 1, GPU2), 1):
        trace.region("hipLaunchKernel", 100 + stack, 101 + stack, stack=stack)
        trace.kernel("a", 300 * stack, 300 * stack + 10 * stack, stack=stack, agent=agent)
    session = open_job(trace)
    old = session.summary("marker-kernels")
    assert session.notes == ["`marker-kernels` is `kernels --by marker --each-agent`"]
    new = session.summary("kernels", "marker", each_agent=True)
    assert (new.columns, new.fetchall()) == (old.columns, old.fetchall())
    by_step = cells(session, "kernels", "step rank agent name total_ns", "step", each_agent=True)
    assert by_step == [(3, 0, 1, "a", 30), (3, 0, 2, "a", 30)]
    in_sql = session.execute("SELECT step, agent, total_ns FROM summary.kernels('step', 'step', 1)")
    assert in_sql.fetchall() == [(3, 1, 30), (3, 2, 30)]


def test_each_agent_needs_a_division_by_launch(open_job: OpenJob) -> None:
    with pytest.raises(UsageError, match="only with --by step or --by marker"):
        open_job(TraceBuilder().kernel("a", 1, 2)).summary("kernels", each_agent=True)
