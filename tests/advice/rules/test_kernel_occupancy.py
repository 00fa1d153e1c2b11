"""What keeps waves of hot kernels from a SIMD unit: registers, LDS, spills; matrix kernels take these on purpose."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rocpd.advice.case import CannotLookError
from rocpd.advice.rules.kernels import KERNEL_OCCUPANCY as RULE
from tests.advice.made import found

SMOOTH = {"rank": 0, "name": "smooth", "total_ns": 8_000_000, "vector_registers": 64, "scratch_bytes": 0}
ROOMY = {**SMOOTH, "waves_per_simd": 8, "limited_by": "waves"}


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"waves_per_simd": 1, "limited_by": "LDS"}, "1 wave fits on a SIMD unit, limited by LDS"),
        ({"waves_per_simd": 2, "limited_by": "registers"}, "2 waves fit on a SIMD unit, limited by registers"),
        ({"waves_per_simd": 7, "limited_by": "registers", "scratch_bytes": 48}, "takes 48 bytes of scratch per work-"),
    ],
)
def test_what_limits_waves_is_said(row: Mapping[str, object], said: str) -> None:
    """It takes 80 % of a step: nothing else computes."""
    (finding,) = found(RULE, {"kernel-shapes": [{**SMOOTH, **row}]})
    assert said in finding.text
    assert finding.gain_percent == pytest.approx(80)


def test_kernels_that_leave_room_or_take_little_time() -> None:
    cold = {**ROOMY, "name": "cold", "total_ns": 100_000, "waves_per_simd": 1}
    assert found(RULE, {"kernel-shapes": [ROOMY, cold]}) == []


@pytest.mark.parametrize(("scratch", "findings"), [(0, 0), (16, 1)])
def test_matrix_products_fill_registers_on_purpose_and_do_not_spill(scratch: int, findings: int) -> None:
    product = {**ROOMY, "name": "Cijk_Ailk_Bljk_gemm", "waves_per_simd": 1, "scratch_bytes": scratch}
    assert len(found(RULE, {"kernel-shapes": [product]})) == findings


def test_a_gpu_whose_registers_are_given_out_differently() -> None:
    with pytest.raises(CannotLookError, match="registers of kernels are not recorded"):
        found(RULE, {"kernel-shapes": [{**SMOOTH, "waves_per_simd": None}]})
