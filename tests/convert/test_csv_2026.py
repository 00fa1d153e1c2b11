"""csv as AMD's tool of 2026 names its files and columns, columns with rank and host, and numbers of bit fields."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocpd.base import AmdVersion
from rocpd.convert import FORMATS
from rocpd.convert.formats.csv import FIELDS, packed_number
from rocpd.convert.options import ConvertOptions
from tests.build import TraceBuilder
from tests.conftest import OpenJob
from tests.convert.conftest import ToCsv
from tests.convert.small import small_job

V2026 = AmdVersion.V2026


def test_files_of_2026(csv_files: ToCsv) -> None:
    files = csv_files(*small_job(), amd_version=V2026)
    memory = ["memory_copy_trace", "memory_allocation_trace", "scratch_memory_trace"]
    calls = ["regions_trace", "graph_launch_trace"]
    assert list(files) == ["kernel_trace", *memory, "counter_collection_trace", *calls, "agent_info"]
    for name, rows in files.items():
        for word in (word for header in rows[0] for word in header.split("_") if not header.startswith("Cap_")):
            assert word == word.capitalize(), (name, word)


def test_the_same_values_under_other_names(csv_files: ToCsv) -> None:
    """Without the new column, a kernel has in both years the same cells in the same order."""
    old = csv_files(*small_job())["kernel_trace"]
    new = csv_files(*small_job(), amd_version=V2026, name="new")["new_kernel_trace"]
    assert [list(row.values()) for row in old] == [list(row.values())[:-1] for row in new]
    durations = [int(row["End_Timestamp"]) - int(row["Start_Timestamp"]) for row in new]
    assert [int(row["Duration"]) for row in new] == durations


def test_regions_of_every_category(csv_files: ToCsv) -> None:
    rows = csv_files(
        TraceBuilder()
        .region("hipMalloc", 1, 4)
        .region("MPI_Send", 5, 9, category="mpi")
        .region("omp", 10, 30, category="OMPT")
        .region("roctxRangePushA", 40, 50, message="step"),
        amd_version=V2026,
    )["regions_trace"]
    assert [(row["Domain"], row["Function"], row["Duration"]) for row in rows] == [
        ("HIP_RUNTIME_API_EXT", "hipMalloc", "3"),
        ("mpi", "MPI_Send", "4"),
        ("OMPT", "omp", "20"),
        ("MARKER_CORE_RANGE_API", "step", "10"),
    ]


@pytest.mark.parametrize("version", list(AmdVersion))
def test_columns_with_rank_and_host(csv_files: ToCsv, version: AmdVersion) -> None:
    plain = csv_files(*small_job(), amd_version=version)
    ranked = csv_files(*small_job(), amd_version=version, with_rank=True, name="ranked")
    for name, rows in plain.items():
        also = ranked[f"ranked_{name}"]
        assert [list(row.values()) for row in rows] == [list(row.values())[:-2] for row in also]
        assert {(row["Rank"], row["Hostname"]) for row in also} == {("0", "node0"), ("1", "node1")}, name


CAPABILITY = {
    "WatchPointsSupported": 1, "WatchPointsTotalBits": 2, "DoorbellType": 2, "DebugTrapSupported": 1,
    "WaveLaunchTrapOverrideSupported": 1, "WaveLaunchModeSupported": 1, "PreciseMemoryOperationsSupported": 1,
    "Mem_EDCSupport": 1, "RASEventNotify": 1, "ASICRevision": 1, "SRAM_EDCSupport": 1, "SVMAPISupported": 1,
    "DebugSupportedFirmware": 1, "HotPluggable": 0,
}  # fmt: skip
"""Of a real MI300X, for which AMD's own tool writes 746037888."""


def agents(open_job: OpenJob, folder: Path, **options: object) -> dict[str, str]:
    trace = TraceBuilder()
    described = {
        "capability": CAPABILITY,
        "fw_version": {"uCode": 185, "Major": 0},
        "sdma_fw_version": {"uCodeSDMA": 24},
    }
    trace.kernel("k", 1, 2).sql(f"UPDATE \"rocpd_info_agent{{uuid}}\" SET extdata = '{json.dumps(described)}'")
    paths = FORMATS["csv"].write(open_job(trace), ConvertOptions(folder, **options))  # type: ignore[arg-type]
    with paths[-1].open(newline="", encoding="utf-8") as file:
        return next(csv.DictReader(file))


def test_numbers_of_bit_fields(open_job: OpenJob, tmp_path: Path) -> None:
    row = agents(open_job, tmp_path)
    assert (row["Capability"], row["Fw_Version"], row["Sdma_Fw_Version"]) == ("746037888", "185", "24")


def test_a_column_for_each_capability(open_job: OpenJob, tmp_path: Path) -> None:
    row = agents(open_job, tmp_path, amd_version=V2026)
    assert len(row) == 78
    assert "Capability" not in row
    shown = (row["Cap_ASICRevision"], row["Cap_DoorbellType"], row["Cap_HotPluggable"], row["Cap_VALimit"])
    assert shown == ("1", "2", "0", "")
    assert row["Agent_Type"] in ("CPU", "GPU")


@given(st.sampled_from(sorted(FIELDS)), st.data())
def test_fields_can_be_read_back(name: str, data: st.DataObject) -> None:
    values = {field: data.draw(st.integers(0, (1 << width) - 1)) for field, width in FIELDS[name].items()}
    number = packed_number(name, values)
    assert number is not None
    for field, width in FIELDS[name].items():
        assert number & ((1 << width) - 1) == values[field]
        number >>= width
    assert number == 0


@pytest.mark.parametrize("value", [7, "x", None, {"uCode": 1 << 10}, {"uCode": -1}, {"uCode": "1"}, {"other": 1}])
def test_what_is_no_bit_field_stays(value: object) -> None:
    assert packed_number("fw_version", value) is None
    assert packed_number("name", {"uCode": 1}) is None
