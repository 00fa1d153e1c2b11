"""Slow steps: what to look at goes by what takes longer in them."""

from __future__ import annotations

import pytest

from rocpd.advice.rules.balance import STEP_OUTLIER
from tests.advice.made import found

Cells = dict[str, object]


def _clocks(in_slow_step: float) -> list[Cells]:
    """Clocks of each step of a GPU [MHz]."""
    of_gpu: Cells = {"rank": 0, "agent": 1, "name": "device_gfx_clock", "units": "MHz"}
    return [{**of_gpu, "step": at, "mean_over_time": in_slow_step if at == 3 else 2000.0} for at in range(6)]


@pytest.mark.parametrize(
    ("grew", "clocks", "hint"),
    [
        ("idle", [], "garbage collection"),
        ("compute", [], "The clock in that step is not known: none was sampled."),
        ("compute", _clocks(1500), "The clock was 1500 MHz in it and 2000 in others: look at power and temperature"),
        ("compute", _clocks(1990), "The clock was as in other steps (1990 MHz)."),
        ("communication", [], "checkpoints, other jobs"),
        ("copy", [], "slowest-copies"),
    ],
)
def test_it_names_what_can_be_the_reason(grew: str, clocks: list[Cells], hint: str) -> None:
    usual = {"mean_ns": 1e6, "max_ns": 1e6, "over_median": 1.0}
    slow = {"mean_ns": 5e6, "max_ns": 5e6, "over_median": 5.0, "grew": grew, "grew_by_ns": 4e6}
    rows = [{"step": f"step {at}", "at_ns": at, **(slow if at == 3 else usual)} for at in range(6)]
    (finding,) = found(STEP_OUTLIER, {"steps": rows, "step-samples": clocks})
    assert finding.action
    assert hint in finding.action
    assert ("input" in finding.action) == (grew == "idle")


def test_time_between_steps_is_a_pause() -> None:
    rows = [{"step": f"step {at}", "at_ns": at, "mean_ns": 1e6, "max_ns": 1e6, "over_median": 1.0} for at in range(6)]
    periods = [{**row, "period_ns": 4e6 if at == 3 else 1.1e6} for at, row in enumerate(rows)]
    (finding,) = found(STEP_OUTLIER, {"steps": periods})
    assert finding.text == "3.00 ms pass between step 3 and the next one: 2.73 times the median step"
    assert finding.gain_percent == pytest.approx(290 / 9.5)
    assert (finding.step, finding.window) == ("step 3", (1_000_003, 4_000_003))
    assert STEP_OUTLIER.without(finding) == []
