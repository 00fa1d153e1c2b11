"""A GPU that waits for its host: all of it together, or for what the host does in one marker of most steps."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rocpd.advice.rules.host import GPU_STARVED
from tests.advice.made import found

MS = 1_000_000
STEPS = [{"step": f"step {at}", "is_warm_up": 0, "mean_ns": MS, "max_ns": MS, "at_ns": at * MS} for at in range(10)]


@pytest.mark.parametrize(
    ("work", "says"),
    [
        ({"name": "load batch", "idle_ns": MS // 2, "longest_ns": MS // 15}, "5.0 % of the time while its host is in"),
        ({"name": "load batch", "idle_ns": MS // 5, "longest_ns": MS // 50}, None),  # too little
        ({"name": "checkpoint", "idle_ns": MS // 2, "longest_ns": MS // 2}, None),  # a stall of one step
        ({"name": None, "idle_ns": MS // 2, "longest_ns": MS // 15}, None),
    ],
)
def test_work_in_one_marker_of_most_steps_is_named(work: Mapping[str, object], says: str | None) -> None:
    calls = [{"rank": 0, "cause": "host work", "at_ns": 0, **work}]
    idle = [{"rank": 0, "cause": "host work", "idle_ns": work["idle_ns"], "span_percent": 5.0}]
    findings = found(GPU_STARVED, {"idle": idle, "idle-calls": calls, "steps": STEPS})
    assert [says is not None and says in finding.text for finding in findings] == [True] * bool(says)
