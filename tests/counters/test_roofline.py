"""Rooflines of kernels with known operations and bytes, and of a real one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import rocpd
from rocpd.base import RocpdError, UsageError
from rocpd.summary.findings import Verdict
from tests.build import TraceBuilder
from tests.conftest import OpenJob, private
from tests.summary.cells import cells

FACTS = {
    "cu_count": 100, "num_xcc": 1, "max_engine_clk_fcompute": 1000, "wave_front_size": 64,
    "mem_banks": [{"width": 8192, "mem_clk_max": 1000}],
}  # fmt: skip
"""Of a GPU with 12,800 GFLOP/s of vectors, 204,800 of matrices of BF16, and 4096 GB/s."""


def kernel(trace: TraceBuilder, name: str, fma: int, mops: int, kilobytes: float) -> TraceBuilder:
    """Add a kernel of 1000 ns with multiply-adds of F32 and matrix operations of BF16, and bytes read."""
    at = 10_000 * (1 + len(trace.rows.get("rocpd_kernel_dispatch", ())))
    trace.kernel(name, at, at + 1000).counter("SQ_INSTS_VALU_FMA_F32", fma).counter("FETCH_SIZE", kilobytes)
    return trace.counter("SQ_INSTS_VALU_MFMA_MOPS_BF16", mops).counter("WRITE_SIZE", 0)


@pytest.fixture
def job(open_job: OpenJob) -> rocpd.Session:
    trace = TraceBuilder().sql(f"UPDATE \"rocpd_info_agent{{uuid}}\" SET extdata = '{json.dumps(FACTS)}'")
    kernel(trace, "stream", 1000, 0, 4000 * 0.8)
    kernel(trace, "vectors", 75_000, 0, 40)
    kernel(trace, "matrices", 1000, 320_000, 40)
    kernel(trace, "copy", 0, 0, 2000)
    return open_job(trace)


def test_kernels_lie_where_they_must(job: rocpd.Session) -> None:
    columns = "kernel type flops bytes intensity gflop_per_s roof_gflop_per_s roof_percent bandwidth_percent nearest"
    of_stream = 128_000 / (3200 * 1024)
    assert {row[0]: row[1:] for row in cells(job, "roofline", columns)} == {
        "stream": (
            "VALU F32", 128_000, 3_276_800, of_stream, 128.0, pytest.approx(of_stream * 4096), pytest.approx(80.0),
            pytest.approx(80.0), "HBM",
        ),
        "vectors": (
            "VALU F32", 9_600_000, 40_960, pytest.approx(234.375), 9600.0, 12_800.0, 75.0, pytest.approx(1.0),
            "VALU F32",
        ),
        "matrices": (
            "MFMA BF16", 163_968_000, 40_960, pytest.approx(4003.125), 163_968.0, 204_800.0, pytest.approx(80.0625),
            pytest.approx(1.0), "MFMA BF16",
        ),
        "copy": (None, 0, 2_048_000, 0.0, 0.0, None, None, pytest.approx(50.0), "HBM"),
    }  # fmt: skip


RATES = {"F16": 2048, "BF16": 2048, "F8": 4096, "F32": 256, "F64": 256, "I8": 4096}
"""Operations of a compute unit of gfx942 in a cycle, by type of its matrix units."""

VECTORS = [f"SQ_INSTS_VALU_{what}_{kind}" for kind in ("F16", "F32", "F64") for what in ("ADD", "MUL", "TRANS", "FMA")]


def test_each_type_has_its_own_roof(open_job: OpenJob) -> None:
    """A kernel for each type of matrix and vector operations, at half of its highest rate: 100 units, 1 GHz, 1 us."""
    trace = TraceBuilder().sql(f"UPDATE \"rocpd_info_agent{{uuid}}\" SET extdata = '{json.dumps(FACTS)}'")
    matrices = [f"SQ_INSTS_VALU_MFMA_MOPS_{kind}" for kind in RATES]
    half = {name: rate * 100_000 / 2 / 512 for name, rate in zip(matrices, RATES.values(), strict=True)}
    half |= {f"SQ_INSTS_VALU_FMA_{kind}": 128 * 100_000 / 2 / 128 for kind in ("F16", "F32", "F64")}
    for number, (name, count) in enumerate(half.items(), 1):
        trace.kernel(name, number * 10_000, number * 10_000 + 1000).counter("FETCH_SIZE", 4).counter("WRITE_SIZE", 0)
        for other in (*matrices, *VECTORS):
            trace.counter(other, count if other == name else 0)
    columns = "kernel type flops peak_gflop_per_s roof_percent nearest bound note"
    rows = {row[0]: row[1:] for row in cells(open_job(trace), "roofline", columns)}
    expected = {f"SQ_INSTS_VALU_MFMA_MOPS_{kind}": (f"MFMA {kind}", rate) for kind, rate in RATES.items()}
    expected |= {f"SQ_INSTS_VALU_FMA_{kind}": (f"VALU {kind}", 128) for kind in ("F16", "F32", "F64")}
    taken = "HBM (FETCH_SIZE, WRITE_SIZE) taken"
    assert rows == {
        name: (kind, rate * 50_000, rate * 100, pytest.approx(50), kind, None, taken)
        for name, (kind, rate) in expected.items()
    }


def test_a_sentence_says_what_limits_each_kernel(job: rocpd.Session) -> None:
    findings = job.summary("roofline").findings
    assert {finding.verdict for finding in findings} == {Verdict.NOTE}
    bound = dict(cells(job, "roofline", "kernel bound"))
    assert (bound["stream"], bound["vectors"], bound["copy"]) == ("HBM", "VALU F32", None)
    said = {finding.text.partition(":")[0]: finding.text for finding in findings}
    assert "bound by HBM, at 80 % of its rate" in said["stream"]
    assert "bound by VALU F32, at 75 % of its rate" in said["vectors"]
    assert "matrix instructions or smaller types would move it" in said["vectors"]
    assert "smaller types or fewer operations would move it" in said["matrices"]
    assert "near no limit, HBM at 50 %: 2,048 GB/s and no floating-point operations" in said["copy"]


def test_hot_kernels_without_counters_are_named(open_job: OpenJob) -> None:
    trace = TraceBuilder().sql(f"UPDATE \"rocpd_info_agent{{uuid}}\" SET extdata = '{json.dumps(FACTS)}'")
    trace.kernel("counted", 1000, 2000).counter("FETCH_SIZE", 4).counter("WRITE_SIZE", 0)
    for name in VECTORS:
        trace.counter(name, 8)
    first, *_ = open_job(trace.kernel("hot", 3000, 9000)).summary("roofline").findings
    assert first.text == (
        "1 of the 2 kernels with most time has no counters of operations and bytes: hot; "
        "the counters that `rocpd summary collected` lists say it, once recorded for all kernels"
    )


def test_the_chart_has_a_roof_for_each_limit(job: rocpd.Session) -> None:
    svg = job.summary("roofline").plot().svg
    for word in ("HBM", "VALU F32", "MFMA BF16", "stream", "matrices", "FLOP/byte", "GFLOP/s"):
        assert word in svg


def test_measured_roofs(job: rocpd.Session, tmp_path: Path) -> None:
    roofs = tmp_path / "roofline.csv"
    roofs.write_text("device,HBMBw,FP32Flops\n0,3000,10000\n1,3400,10000\n")
    rows = {row[0]: row for row in job.summary("roofline", roofs=roofs)}
    table = job.summary("roofline").columns
    stream = dict(zip(table, rows["stream"], strict=True))
    assert (stream["peak_gb_per_s"], stream["peak_gflop_per_s"], stream["roofs"]) == (3200.0, 10_000.0, "measured")
    roofs.write_text("device\n0\n")
    with pytest.raises(UsageError, match="no rates in it"):
        job.summary("roofline", roofs=roofs)


@pytest.mark.parametrize("counters", [("SQ_WAVES",), ("FETCH_SIZE", "WRITE_SIZE"), ("SQ_INSTS_VALU_FMA_F32",)])
def test_without_operations_or_bytes_there_is_none(open_job: OpenJob, counters: tuple[str, ...]) -> None:
    trace = TraceBuilder().kernel("gemm", 1000, 2000)
    for name in counters:
        trace.counter(name, 4)
    with pytest.raises(RocpdError, match="operations and bytes of no kernel were counted"):
        open_job(trace).summary("roofline")


def test_a_real_copy_makes_no_operations() -> None:
    """AMD's tool has an intensity of 0 for it at every level."""
    (path,) = private("rocprof-compute/path_MI200/workload/pmc_perf.csv", 1)
    with rocpd.connect(path.parent) as session:
        rows = cells(session, "roofline", "level intensity bytes nearest")
    assert [row[0] for row in rows] == ["HBM", "L2", "L1", "LDS"]
    assert [row[1] for row in rows] == [0.0, 0.0, 0.0, None]
    assert rows[2][2] == 64 * 2**19
    assert {row[3] for row in rows} == {"HBM"}


def test_simulated_kernels_have_their_operations(tmp_path: Path) -> None:
    rocpd.simulate(tmp_path / "job", ranks=1, steps=2, seed=31)
    with rocpd.connect(tmp_path / "job") as session:
        rows = {row[0].split("_MT")[0]: row[1:] for row in cells(session, "roofline", "kernel type flops nearest")}
    assert all(row[0] == "MFMA BF16" for name, row in rows.items() if name.startswith("Cijk"))
    assert {row[1] % 1e9 for name, row in rows.items() if name.startswith("Cijk")} == {0.0}
