"""Kernels that take longer while communication runs beside them."""

from __future__ import annotations

import pytest

from rocpd.advice.case import CannotLookError
from rocpd.advice.rules.kernels import KERNEL_BESIDE as RULE
from tests.advice.made import found

SLOWED = {"rank": 0, "name": "gemm", "calls": 100, "total_ns": 6_000_000, "beside_ns": 500_000}
ALONE = {"rank": 0, "name": "alone", "calls": 100, "total_ns": 4_000_000}


def test_what_is_longer_beside_communication_is_the_most_it_gains() -> None:
    """0.5 of 10 ms, of a step of which 80 % is computing."""
    (finding,) = found(RULE, {"kernel-shapes": [SLOWED, ALONE]})
    assert finding.text == (
        "kernels of rank 0 take 500 us longer beside communication than alone, 5 % of the compute time, most in gemm"
    )
    assert finding.gain_percent == pytest.approx(5 * 0.8)
    assert finding.evidence == {"name": "gemm", "beside_ns": 500_000, "total_ns": 10_000_000}


def test_little_and_what_is_gained_elsewhere_is_no_loss() -> None:
    quicker = {**SLOWED, "name": "quicker", "beside_ns": -400_000}
    assert found(RULE, {"kernel-shapes": [SLOWED, ALONE, quicker]}) == []


def test_without_runs_of_both_kinds_it_cannot_look() -> None:
    with pytest.raises(CannotLookError, match="beside communication"):
        found(RULE, {"kernel-shapes": [ALONE, {**SLOWED, "rank": 1}]})
