"""Cells of a kind that their column does not hold: every format is written, the other rows as ever."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

from rocpd.convert import FORMATS
from tests.build import TraceBuilder
from tests.conftest import Cli
from tests.soak import sample

AGENT, EVENT = (f"""UPDATE "rocpd_{table}{{uuid}}" SET extdata = """ for table in ("info_agent", "event"))
DEEP = "replace(hex(zeroblob(5000)), '00', '[')"
ODD = {
    "text as a start": """UPDATE "rocpd_region{uuid}" SET start = 'early' WHERE id = 1""",
    "text as an end": """UPDATE "rocpd_sample{uuid}" SET timestamp = 'late'""",
    "a real as a start": """UPDATE "rocpd_kernel_dispatch{uuid}" SET start = 1e999, "end" = 0.5 WHERE id = 1""",
    "a blob as a name": """UPDATE "rocpd_info_kernel_symbol{uuid}" SET display_name = x'fffe'""",
    "a blob as a text": """UPDATE "rocpd_string{uuid}" SET string = CAST(id || 'x' AS BLOB)""",
    "a blob as an agent": """UPDATE "rocpd_info_agent{uuid}" SET name = x'ff', model_name = x'00', type = x'31'""",
    "a blob as a position": """UPDATE "rocpd_arg{uuid}" SET position = x'ff', value = 7""",
    "a number as a name": """UPDATE "rocpd_string{uuid}" SET string = 1000 + id""",
    "deep JSON of an agent": AGENT + DEEP,
    "deep JSON of an event": EVENT + DEEP,
    "a huge number of an agent": AGENT + """'{"cu_count":1' || hex(zeroblob(4000)) || '}'""",
}  # fmt: skip


@pytest.fixture
def trace() -> TraceBuilder:
    """A kernel with a counter, calls with arguments, marks, a copy and memory: rows for every file of CSV."""
    trace = TraceBuilder(0).kernel("gemm", 1000, 1010).counter("SQ_WAVES", 2.0)
    trace.region("hipLaunchKernel", 900, 950).arg("stream", "0x1").region("hipFree", 960, 970)
    trace.region("roctxRangePushA", 800, 1200, message="step").sample("mark", 1100, message="here")
    return trace.copy(1020, 1030).alloc(700, 710)


@pytest.mark.soak
@pytest.mark.parametrize("odd", sample([*ODD], 2))
def test_every_format_is_written(odd: str, trace: TraceBuilder, tmp_path: Path, cli: Cli) -> None:
    forms = [form for form in FORMATS if form != "otf2" or importlib.util.find_spec("otf2")]
    path = trace.sql("PRAGMA ignore_check_constraints = 1").sql(ODD[odd]).write(tmp_path / "odd.db")
    said = cli("convert", "-f", *forms, "--stats", "--annotate-args", "-d", tmp_path / "out", path)
    assert said.code == 0, said
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names >= {"out_kernel_trace.csv", "out_kernel_stats.csv", "out_results.pftrace", "out.json", "out_parquet"}
    assert "otf2" not in forms or "out_results.otf2" in names
    assert "out_kernels.arrow" in names


def test_rows_with_numbers_stay(trace: TraceBuilder, tmp_path: Path, cli: Cli) -> None:
    """Marks and ranges share a file: a text among the times of one must not stop the other."""
    path = trace.sql("""UPDATE "rocpd_region{uuid}" SET start = 'early' WHERE id = 3""").write(tmp_path / "odd.db")
    assert cli("convert", "-f", "csv", "-d", tmp_path / "out", path).code == 0
    lines = (tmp_path / "out" / "out_marker_api_trace.csv").read_text().splitlines()
    assert [line for line in lines if ",1100,1100" in line]
    assert [line for line in lines if '"early",1200' in line]


NO_NUMBERS = """
UPDATE "rocpd_kernel_dispatch{uuid}" SET grid_size_x = 'wide', queue_id = x'ff';
UPDATE "rocpd_memory_copy{uuid}" SET size = 'big';
UPDATE "rocpd_region{uuid}" SET tid = 'main' WHERE id < 3;
UPDATE "rocpd_memory_allocate{uuid}" SET size = 1e999;
UPDATE "rocpd_sample{uuid}" SET event_id = 'x';
UPDATE "rocpd_event{uuid}" SET stack_id = '' WHERE id = (SELECT event_id FROM "rocpd_memory_copy{uuid}")"""
OF_TRACES = (
    "values that are no numbers: taken as unknown (kernel_dispatch.queue_id: 1, kernel_dispatch.grid_size_x: 1, "
    "memory_copy.size: 1, memory_copy.stack_id: 1, region.tid: 2, memory_allocate.size: 1, sample.event_id: 1)"
)


@pytest.mark.parametrize("form", FORMATS)
def test_values_that_are_no_numbers_are_counted_in_one_line(
    form: str, trace: TraceBuilder, tmp_path: Path, cli: Cli
) -> None:
    if form == "otf2":
        pytest.importorskip("otf2", reason="the otf2 wheel is not installed")
    for statement in NO_NUMBERS.split(";"):
        trace.sql(statement)
    said = cli("convert", "-f", form, "-d", tmp_path / "out", trace.write(tmp_path / "odd.db"))
    (line,) = [line for line in said.err.splitlines() if "no numbers" in line]
    assert said.code == 0
    if form in ("pftrace", "json", "otf2"):
        assert sorted(re.findall(r"[\w.]+: \d", line)) == sorted(re.findall(r"[\w.]+: \d", OF_TRACES))
        assert line.startswith(f"rocpd: {OF_TRACES.partition(' (')[0]} (")
    else:
        assert line.startswith(f"rocpd: {form}: ")
        assert "kernels.grid_x" in line


def test_a_value_that_is_no_number_leaves_the_rest_of_its_row(trace: TraceBuilder, tmp_path: Path, cli: Cli) -> None:
    trace.sql("""UPDATE "rocpd_kernel_dispatch{uuid}" SET grid_size_x = 'wide'""")
    assert cli("convert", "-f", "json", "-d", tmp_path, trace.write(tmp_path / "odd.db")).code == 0
    events = json.loads((tmp_path / "out.json").read_text())["traceEvents"]
    (kernel,) = [event for event in events if event["name"] == "gemm"]
    assert ("grid_x" in kernel["args"], kernel["args"]["grid_y"], kernel["dur"]) == (False, 1, 0.01)
