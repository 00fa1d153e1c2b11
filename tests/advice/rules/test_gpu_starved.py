"""A GPU that waits for its host: all of it together, or for what the host does in one marker of most steps."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rocpd.advice.case import LEAST_GAIN
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


@pytest.mark.parametrize(("percent", "is_found"), [(5.3, True), (3.0, False)])
def test_launches_that_the_gpu_waits_for_need_a_replay(percent: float, is_found: bool) -> None:
    idle = [{"rank": 0, "cause": "launching", "idle_ns": MS // 2, "span_percent": percent}]
    findings = found(GPU_STARVED, {"idle": idle, "idle-calls": [], "steps": STEPS})
    assert [each.text for each in findings] == ["the GPU of rank 0 idles 5.3 % of the time while its host launches"] * (
        is_found
    )
    assert all(each.evidence[LEAST_GAIN] == 3.0 for each in findings)
