"""Derived counters: by the file's own formulas, by rocprofv3's, and against AMD's tables."""

from __future__ import annotations

from pathlib import Path

import pytest

import rocpd
from tests.build import TraceBuilder
from tests.conftest import OpenJob, private
from tests.summary.cells import cells


def test_a_files_own_formulas_come_first(open_job: OpenJob) -> None:
    """Cycles of two instances: 100 and 60, then 50 and 80; hits 30 and 20, then 10."""
    trace = TraceBuilder().kernel("gemm", 1, 5).counter("GRBM_GUI_ACTIVE", 100).counter("GRBM_GUI_ACTIVE", 60)
    trace.counter("HIT", 30).counter("HIT", 20).counter("FetchSize", 7)
    trace.kernel("gemm", 6, 9).counter("GRBM_GUI_ACTIVE", 50).counter("GRBM_GUI_ACTIVE", 80).counter("HIT", 10)
    for name, formula in {
        "Most": "reduce(GRBM_GUI_ACTIVE,max)",
        "Rate": "100*reduce(HIT,sum)/reduce(GRBM_GUI_ACTIVE,avr)",
        "PerUnit": "HIT_sum/cu_count",
        "FetchSize": "Absent*2",
        "Part": "select(HIT, [DIMENSION_XCC=[0]])",
        "Apart": "HIT+GRBM_GUI_ACTIVE",
        "Broken": "HIT+",
        "Itself": "Itself*2",
    }.items():
        trace.counter(name, 0).rows["rocpd_pmc_event"].pop()
        trace.sql(f"UPDATE \"rocpd_info_pmc{{uuid}}\" SET expression = '{formula}' WHERE name = '{name}'")
    session = open_job(trace)
    rows = cells(session, "derived", "metric value collected min max dispatches source")
    assert [row for row in rows if row[-1] == "file"] == [
        ("FetchSize", None, 7.0, None, None, 0, "file"),
        ("Most", 90.0, None, 80.0, 100.0, 2, "file"),
        ("PerUnit", 30 / 304, None, 10 / 304, 50 / 304, 2, "file"),
        ("Rate", pytest.approx((50 / 0.8 + 10 / 0.65) / 2), None, pytest.approx(10 / 0.65), 62.5, 2, "file"),
    ]
    missing = {row[0]: row[1] for row in cells(session, "derived-missing", "metric reason")}
    assert "select needs the dimensions" in missing["Part"]
    assert "not a formula" in missing["Broken"]
    assert missing["Itself"] == "it is derived from itself"
    assert missing["WRITE_SIZE"] == "not there: TCC_EA0_WRREQ_sum TCC_EA0_WRREQ_64B_sum"


def test_what_amds_tables_have_is_the_same_by_rocprofv3s_formulas() -> None:
    (path,) = private("rocprof-compute/path_MI200/workload/pmc_perf.csv", 1)
    with rocpd.connect(path.parent) as session:
        derived = {row[1]: row[2] for row in session.summary("derived")}
        metrics = {
            (panel, row[2]): row[3] for panel in ("l1", "compute", "fabric", "l2") for row in session.summary(panel)
        }
    for name, key in {
        "L2CacheHit": ("l2", "Hit Rate"),
        "VmemLatency": ("compute", "VMEM Latency"),
        "AvgNumActiveThreads": ("compute", "VALU Active Threads"),
        "vL1dCacheUtil": ("l1", "Utilization"),
        "vL1dBufCoalesceRate": ("l1", "Coalescing"),
        "EaRdLatency": ("fabric", "Read Latency"),
    }.items():
        assert derived[name] == pytest.approx(metrics[key]), name


@pytest.mark.parametrize(("value", "reason"), [("5", "GPUs whose counters are known"), ("", "no counter values")])
def test_why_nothing_is_derived(value: str, reason: str, tmp_path: Path) -> None:
    """The first rocprof does not say which GPUs it ran on."""
    (tmp_path / "a.csv").write_text(f"Index,KernelName,gpu-id,grd,wgr,C\n0,k,0,64,64,{value}\n")
    with rocpd.connect(tmp_path / "a.csv") as session, pytest.raises(rocpd.base.RocpdError, match=reason):
        session.summary("derived").fetchall()
