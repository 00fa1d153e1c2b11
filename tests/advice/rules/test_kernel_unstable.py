"""Runs of a kernel with one grid that take unequally long."""

from __future__ import annotations

import pytest

from rocpd.advice.case import CannotLookError
from rocpd.advice.rules.kernels import KERNEL_UNSTABLE as RULE
from tests.advice.made import found

STEADY = {"rank": 0, "name": "steady", "calls": 100, "total_ns": 6_000_000, "groups": 304, "unstable_ns": 50_000}
UNSTABLE = {"rank": 0, "name": "unstable", "calls": 100, "total_ns": 4_000_000, "groups": 304, "unstable_ns": 2_000_000}


def test_time_above_fast_runs_is_what_it_gains() -> None:
    """2.05 of 10 ms, of a step of which 80 % is computing."""
    (finding,) = found(RULE, {"kernel-shapes": [STEADY, UNSTABLE]})
    assert "together 20 % of the compute time, most in unstable" in finding.text
    assert finding.gain_percent == pytest.approx(20.5 * 0.8)
    assert (finding.rank, finding.evidence["unstable_ns"]) == (0, 2_000_000)


def test_other_ranks_and_communication_do_not_count() -> None:
    waiting = {**UNSTABLE, "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL"}
    assert found(RULE, {"kernel-shapes": [STEADY, {**UNSTABLE, "rank": 1}, waiting]}) == []


def test_few_runs_say_nothing() -> None:
    with pytest.raises(CannotLookError, match="no kernel runs 20 times with one grid"):
        found(RULE, {"kernel-shapes": [{**UNSTABLE, "calls": 19}]})
