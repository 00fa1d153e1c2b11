"""First runs of kernels that take far longer than later ones."""

from __future__ import annotations

import pytest

from rocpd.advice.case import CannotLookError
from rocpd.advice.rules.kernels import KERNEL_FIRST_TOUCH as RULE
from tests.advice.made import found

USUAL = {"rank": 0, "name": "usual", "calls": 50, "total_ns": 5_000_000, "median_ns": 100_000, "first_ns": 900_000}
TOUCHED = {"rank": 0, "name": "touched", "calls": 10, "total_ns": 5_000_000, "median_ns": 50_000, "first_ns": 3_050_000}


def test_a_first_run_that_takes_sixty_times_as_long() -> None:
    """3 of 10 ms; it costs once, and so gains nothing in a step."""
    (finding,) = found(RULE, {"kernel-shapes": [USUAL, TOUCHED]})
    assert "take 3.0 ms longer than later ones, 30 % of the compute time of the trace" in finding.text
    assert finding.text.endswith("that of touched 61 times as long")
    assert finding.gain_percent is None


def test_nine_times_as_long_is_usual() -> None:
    assert found(RULE, {"kernel-shapes": [USUAL]}) == []


def test_few_runs_say_nothing() -> None:
    with pytest.raises(CannotLookError, match="no kernel runs 5 times"):
        found(RULE, {"kernel-shapes": [{**TOUCHED, "calls": 4}]})
