"""Regions that repeat operations: counted once, as the operation, by every analysis and format."""

from __future__ import annotations

from pathlib import Path

import rocpd
from tests.build import TraceBuilder


def trace(*, twice: bool, operations: bool = True) -> TraceBuilder:
    built = TraceBuilder().region("hipLaunchKernel", 1, 5, stack=7)
    if operations:
        built.kernel("gemm", 10, 30, stack=7)
    if twice:
        built.region("gemm.kd", 10, 30, stack=7, category="rocm_kernel_dispatch")
    return built


def answers(path: Path) -> list[object]:
    with rocpd.connect(path) as session:
        trace_text = session.convert("json", path.with_suffix(".json"))[0].read_text()
        tables = [str(session.summary(name)) for name in ("domains", "api", "launch", "calls")]
        recorded = [line for line in trace_text.splitlines() if '"ph":"X"' in line and '"category":' in line]
        return [*tables, len(recorded), trace_text.count('"ph":"s"')]


def test_they_change_no_analysis_and_no_trace(tmp_path: Path) -> None:
    with_regions = answers(trace(twice=True).write(tmp_path / "a.db"))
    assert with_regions == answers(trace(twice=False).write(tmp_path / "b.db"))
    assert with_regions[-2:] == [2, 1]


def test_without_the_operations_they_are_all_there_is(tmp_path: Path) -> None:
    with rocpd.connect(trace(twice=True, operations=False).write(tmp_path / "a.db")) as session:
        assert "gemm.kd" in str(session.summary("api"))
