"""Counters say what kernels did: no arithmetic in a fill, nothing beyond what a GPU can do."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocpd.simulator import PROFILES, JobOptions, simulate
from rocpd.simulator.hardware import CLOCK_GHZ, DIES
from rocpd.simulator.kernels import KERNELS
from tests.simulator.jobs import read, rows
from tests.soak import paired

VALUES = """SELECT
        D.id, S.kernel_name, D."end" - D.start, I.name, P.value, D.grid_size_x * D.grid_size_y * D.grid_size_z
    FROM rocpd_kernel_dispatch D JOIN rocpd_pmc_event P USING (event_id) JOIN rocpd_info_pmc I ON I.id = P.pmc_id
    JOIN rocpd_info_kernel_symbol S ON S.id = D.kernel_id"""
PEAK_FLOPS_PER_NS = {"MFMA_BF16": 1_307_400.0, "F32": 163_400.0, "F64": 81_700.0}  # of an MI300X, by unit
PEAK_BYTES_PER_NS = 5300.0  # of its memory
OPS = {
    "SQ_INSTS_VALU_MFMA_MOPS_BF16": ("MFMA_BF16", 512),
    "SQ_INSTS_VALU_FMA_F32": ("F32", 128),
    "SQ_INSTS_VALU_FMA_F64": ("F64", 128),
}


@pytest.mark.soak
@pytest.mark.parametrize(
    ("profile", "plant"), paired(PROFILES, ["none", "straggler", "small-kernels", "imbalance,throttled"])
)
def test_no_rate_is_above_the_peak(profile: str, plant: str, tmp_path: Path) -> None:
    counted = set()
    for path in simulate(JobOptions(tmp_path, ranks=2, steps=6, profile=profile, noise=5.0, plant=plant)):
        moved: dict[int, float] = {}
        for dispatch, name, duration, counter, value, items in rows(read(path), VALUES):
            counted.add(name)
            assert value >= 0
            if counter in OPS:
                unit, flops = OPS[counter]
                assert value * flops / duration <= PEAK_FLOPS_PER_NS[unit], name
                assert value == 0 or "fill" not in name
            elif counter in ("FETCH_SIZE", "WRITE_SIZE"):
                moved[dispatch] = moved.get(dispatch, 0) + value * 1024
                assert moved[dispatch] / duration <= PEAK_BYTES_PER_NS, name
            elif counter == "SQ_WAVES":
                assert value == -(-items // 64)
            elif counter == "GRBM_GUI_ACTIVE":
                assert value / duration <= CLOCK_GHZ * DIES
    assert len(counted) >= 4


def test_fill_computes_nothing_and_reads_nothing() -> None:
    (fill,) = (kernel for kernel in KERNELS if kernel.key == "fill")
    assert (fill.flops, fill.reads) == (0, 0)
    assert fill.writes > 0


def test_hot_kernels_fill_the_gpu() -> None:
    """A job without planted facts has none of the shapes that advice is about: few groups, few waves, spilling."""
    for kernel in KERNELS:
        if kernel.communicates or kernel.micros < 10:
            continue
        x, y, z = kernel.groups
        assert x * y * z >= 304, kernel.key
        assert x * y * z / 304 >= 4 or 0 <= -(x * y * z) % 304 <= 152, kernel.key
        assert 512 // (kernel.registers[1] + kernel.registers[2]) >= 3, kernel.key
        assert kernel.scratch == 0, kernel.key
        assert kernel.lds == 0 or 65536 // kernel.lds * -(-kernel.block[0] // 256) >= 3, kernel.key
