"""Rules on hardware counters: each fires on a kernel that is made for it, on no other, and abstains without one."""

from __future__ import annotations

import json

import pytest

import rocpd
from tests.advice.jobs import reasons, rules_of
from tests.build import TraceBuilder
from tests.conftest import OpenJob
from tests.soak import sized

FACTS = {
    "cu_count": 100,
    "num_xcc": 1,
    "max_engine_clk_fcompute": 1000,
    "mem_banks": [{"width": 8192, "mem_clk_max": 1000}],
}
"""Of a GPU with 4096 GB/s."""

LAUNCH = 100_000
"""Of a kernel: how long it takes [ns]."""

FETCHED = "TCC_EA0_RDREQ_sum"
GOOD: dict[str, dict[str, float]] = {
    "kernel.bandwidth": {
        FETCHED: 100_000, "TCC_BUBBLE_sum": 0, "TCC_EA0_RDREQ_32B_sum": 0, "TCC_EA0_WRREQ_64B_sum": 100_000,
        "TCC_EA0_WRREQ_sum": 100_000,
    },
    "kernel.strided": {
        "TA_TOTAL_WAVEFRONTS_sum": 1000, "TCP_TOTAL_ACCESSES_sum": 16_000, "TCP_TOTAL_CACHE_ACCESSES_sum": 16_000,
        "TCP_TCC_READ_REQ_sum": 1000, "TCP_TCC_WRITE_REQ_sum": 0, "TCP_TCC_ATOMIC_WITH_RET_REQ_sum": 0,
        "TCP_TCC_ATOMIC_WITHOUT_RET_REQ_sum": 0,
    },
    "kernel.bank_conflicts": {
        "SQ_LDS_BANK_CONFLICT": 10_000, "SQ_LDS_IDX_ACTIVE": 5_000_000, "GRBM_GUI_ACTIVE": 100_000,
    },
    "kernel.atomics": {
        "TCC_EA0_ATOMIC_sum": 100, "TCC_EA0_WRREQ_sum": 100_000, "TCC_EA0_WRREQ_LEVEL_sum": 50_000_000,
        "TCC_EA0_RDREQ_LEVEL_sum": 50_000_000, FETCHED: 100_000,
    },
    "kernel.matrix_idle": {"SQ_VALU_MFMA_BUSY_CYCLES": 30_000_000, "GRBM_GUI_ACTIVE": 100_000},
    "kernel.resources": {
        "SPI_RA_WAVE_SIMD_FULL_CSN": 100_000, "SPI_RA_VGPR_SIMD_FULL_CSN": 9_000_000, "SPI_RA_LDS_CU_FULL_CSN": 0,
        "SPI_RA_TGLIM_CU_FULL_CSN": 10_000, "GRBM_GUI_ACTIVE": 100_000,
    },
}  # fmt: skip
"""Rule -> counters of a kernel in which it finds nothing."""

BAD: dict[str, dict[str, float]] = {
    "kernel.bandwidth": {FETCHED: 3_000_000, "TCC_EA0_WRREQ_64B_sum": 2_000_000, "TCC_EA0_WRREQ_sum": 2_000_000},
    "kernel.strided": {"TCP_TOTAL_ACCESSES_sum": 64_000, "TCP_TCC_READ_REQ_sum": 15_000},
    "kernel.bank_conflicts": {"SQ_LDS_BANK_CONFLICT": 4_000_000},
    "kernel.atomics": {"TCC_EA0_ATOMIC_sum": 40_000, "TCC_EA0_WRREQ_LEVEL_sum": 500_000_000},
    "kernel.matrix_idle": {"SQ_VALU_MFMA_BUSY_CYCLES": 100_000},
    "kernel.resources": {"SPI_RA_WAVE_SIMD_FULL_CSN": 3_000_000},
}
"""Rule -> what changes where it finds something."""


def job(counters: dict[str, float]) -> TraceBuilder:
    """Make three steps, each with a matrix product and its counters."""
    trace = TraceBuilder().sql(f"UPDATE \"rocpd_info_agent{{uuid}}\" SET extdata = '{json.dumps(FACTS)}'")
    for step in range(3):
        start = 1_000_000 * (step + 1)
        trace.region("roctxRangePushA", start, start + 900_000, message=f"step {step}")
        trace.kernel("Cijk_gemm", start + 1000, start + 1000 + LAUNCH)
        for name, value in counters.items():
            trace.counter(name, value)
    return trace


@pytest.mark.parametrize("rule", GOOD)
def test_a_rule_fires_on_what_it_is_for(rule: str, open_job: OpenJob) -> None:
    assert rule not in rules_of(open_job(job(GOOD[rule])).advise())
    bad = {**GOOD[rule], **BAD[rule]}
    advice = open_job(job(bad)).advise()
    (finding,) = (finding for finding in advice.findings if finding.rule == rule)
    assert finding.text.startswith("GEMM Cijk") or "Cijk_gemm" in finding.text
    assert {other for other in GOOD if other != rule} & rules_of(advice) == set()


@pytest.mark.soak(5)
@pytest.mark.parametrize("rule", GOOD)
def test_without_one_counter_a_rule_abstains(rule: str, open_job: OpenJob) -> None:
    for name in sized(list(BAD[rule])[-1:], list(GOOD[rule])):
        without = {other: value for other, value in {**GOOD[rule], **BAD[rule]}.items() if other != name}
        advice = open_job(job({**without, "SQ_WAVES": 4})).advise()
        assert rule not in rules_of(advice)
        assert "rocpd counters" in reasons(advice)[rule]


def test_without_counters_nothing_is_read(open_job: OpenJob) -> None:
    session: rocpd.Session = open_job(job({}))
    assert set(GOOD) <= reasons(session.advise()).keys()
