"""Panels, worked out by hand, and their laws."""

from __future__ import annotations

import io
from collections import defaultdict

import pytest

import rocpd
from rocpd.base import RocpdError, UsageError
from rocpd.table.palette import Screen
from tests.build import GPU2, TraceBuilder
from tests.conftest import OpenJob
from tests.summary.cells import cells


def job() -> list[TraceBuilder]:
    """gemm: hit rates 50 % of 2 and 90 % of 100 on two ranks, 400 and 100 instructions of 8 and 1 waves; relu: none.

    Its instructions come from two instances in the first dispatch.
    """
    first = TraceBuilder(0).kernel("gemm", 1000, 2000).counter("TCC_HIT_sum", 1).counter("TCC_MISS_sum", 1)
    first.counter("SQ_INSTS", 300).counter("SQ_INSTS", 100).counter("SQ_WAVES", 8).kernel("relu", 3000, 3100)
    first.counter("TCC_HIT_sum", 0).counter("TCC_MISS_sum", 0)
    second = TraceBuilder(1).kernel("gemm", 1000, 3000, agent=GPU2).counter("TCC_HIT_sum", 90)
    return [first, second.counter("TCC_MISS_sum", 10).counter("SQ_INSTS", 100).counter("SQ_WAVES", 1)]


def value(session: rocpd.Session, panel: str, metric: str, columns: str, by: str | None = None) -> list[object]:
    rows = cells(session, panel, f"metric kernel {columns}", by)
    return [row[1:] for row in rows if row[0] == metric]


def test_means_of_ratios_and_ratios_of_sums(open_job: OpenJob) -> None:
    session = open_job(*job())
    assert value(session, "speed-of-light", "L2 Cache Hit Rate", "value of_sums min max peak percent dispatches") == [
        ("gemm", 70.0, pytest.approx(100 * 91 / 102), 50.0, 90.0, 100.0, 70.0, 2),
        ("relu", None, None, None, None, 100.0, None, 0),
    ]
    assert value(session, "occupancy", "Instructions per wavefront", "value of_sums") == [
        ("gemm", 75.0, pytest.approx(500 / 9)),
        ("relu", None, None),
    ]


def test_what_no_kernel_has_comes_once_with_what_is_missing(open_job: OpenJob) -> None:
    session = open_job(*job())
    assert value(session, "speed-of-light", "L2 Cache BW", "value missing dispatches") == [
        (None, None, "TCC_REQ_sum", 0)
    ]
    assert ("speed-of-light", "gfx942", 1, 32) in cells(session, "panels", "panel architecture metrics of")


def test_divisions(open_job: OpenJob) -> None:
    session = open_job(*job())
    for by, keys in {"rank": [(0,), (1,)], "agent": [(0, 1), (1, 2)], "dispatch": [(0, 1), (1, 1)]}.items():
        columns = "rank " + {"agent": "agent ", "dispatch": "dispatch "}.get(by, "")
        rows = cells(session, "speed-of-light", f"{columns}kernel metric value", by)
        of_gemm = [row for row in rows if row[-3:-1] == ("gemm", "L2 Cache Hit Rate")]
        assert [row[:-3] for row in of_gemm] == keys
        assert [row[-1] for row in of_gemm] == [50.0, 90.0]


def test_what_amounts_are_counted_per(open_job: OpenJob) -> None:
    session = open_job(TraceBuilder().kernel("gemm", 1000, 3000).counter("SQ_INSTS_SMEM", 12).counter("SQ_WAVES", 4))
    found = {
        per: [row[3:6] for row in session.summary("instruction-mix", per=per) if row[2] == "SMEM"]
        for per in ("kernel", "wave", "cycle", "second")
    }
    assert found["kernel"] == [(12.0, "instructions/kernel", None)]
    assert found["wave"] == [(3.0, "instructions/wave", None)]
    assert found["cycle"] == [(None, "instructions/cycle", None)]
    assert found["second"] == [(12 / 2e-6, "instructions/second", None)]
    with pytest.raises(UsageError, match="unknown"):
        session.summary("instruction-mix", per="hour")


def test_a_split_job_has_the_same_panels(open_job: OpenJob) -> None:
    first, second = job()
    whole = open_job(first, second)
    parts = defaultdict(list)
    for session in (open_job(first), open_job(second)):
        for row in cells(session, "speed-of-light", "kernel metric value dispatches"):
            parts[row[:2]].append(row[2:])
    for kernel, metric, mean, dispatches in cells(whole, "speed-of-light", "kernel metric value dispatches"):
        some = [(part, count) for part, count in parts[kernel, metric] if part is not None]
        assert dispatches == sum(count for _, count in some)
        if mean is not None:
            assert mean == pytest.approx(sum(part * count for part, count in some) / dispatches)


def test_a_constant_that_the_file_lacks_is_named(open_job: OpenJob) -> None:
    """How many waves a compute unit holds, which what is shown of the mean needs."""
    trace = TraceBuilder().kernel("gemm", 1000, 2000).counter("SQ_BUSY_CU_CYCLES", 10).counter("GRBM_GUI_ACTIVE", 80)
    assert value(open_job(trace), "speed-of-light", "Active CUs", "value missing") == [(None, None, "waves_per_cu")]


def test_an_unknown_architecture_says_so(open_job: OpenJob) -> None:
    trace = TraceBuilder().kernel("gemm", 1, 2).counter("SQ_WAVES", 4)
    trace.sql("UPDATE rocpd_info_agent{uuid} SET name = 'gfx1100'")
    with pytest.raises(RocpdError, match="counters are known"):
        open_job(trace).summary("speed-of-light")


def test_panels_are_tables_on_80_columns(open_job: OpenJob) -> None:
    out = io.StringIO()
    left_out = open_job(*job()).summary("launch-stats").write_readable(out, screen=Screen(80))
    assert out.getvalue().startswith("kernel  metric ")
    assert "table" in left_out.columns


def test_a_file_that_does_not_say_how_many_passes_it_holds_has_one(open_job: OpenJob) -> None:
    """Its grid has more work-items than 64 bits count."""
    trace = TraceBuilder(extdata={"passes": "many"}).kernel("gemm", 10, 20, grid=(1 << 31, 1 << 31, 1 << 31))
    rows = open_job(trace.counter("SQ_WAVES", 4)).summary("launch-stats").fetchall()
    assert [row[3] for row in rows if row[2] == "Grid Size"] == [float(1 << 93)]
