"""Slow steps: what to look at goes by what takes longer in them."""

from __future__ import annotations

import pytest

from rocpd.advice.rules.balance import STEP_OUTLIER
from tests.advice.made import found

CLOCKS = [{"rank": 0, "agent": 1, "name": "device_gfx_clock", "samples": 9}]


@pytest.mark.parametrize(
    ("grew", "samples", "hint"),
    [
        ("idle", [], "garbage collection"),
        ("compute", [], "no clocks of GPUs are sampled here"),
        ("compute", CLOCKS, "`rocpd summary step-samples JOB --step N`"),
        ("communication", [], "checkpoints, other jobs"),
        ("copy", [], "slowest-copies"),
    ],
)
def test_it_names_what_can_be_the_reason(grew: str, samples: list[dict[str, object]], hint: str) -> None:
    usual = {"mean_ns": 1e6, "max_ns": 1e6, "over_median": 1.0}
    slow = {"mean_ns": 5e6, "max_ns": 5e6, "over_median": 5.0, "grew": grew, "grew_by_ns": 4e6}
    rows = [{"step": f"step {at}", "at_ns": at, **(slow if at == 3 else usual)} for at in range(6)]
    (finding,) = found(STEP_OUTLIER, {"steps": rows, "samples": samples})
    assert finding.action
    assert hint in finding.action
    assert ("input" in finding.action) == (grew == "idle")
