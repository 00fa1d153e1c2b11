"""A recorded file beside rocprofv3's: the columns that hold values, the categories, the keys of JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import private
from tests.record.build import Build
from tests.record.runs import CODE, client, only, rows

SHAPE = json.loads(Path(__file__).with_name("rocprofv3_shape.json").read_text())
"""What rocprofv3 fills: `columns` of each table, and the keys of `json` in extdata. Tables of which the files of the
test data have rows are as these files are, the others as rocprofv3's source says."""


@pytest.fixture(scope="module")
def recorded(built: Build, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file of the stand-in's script, with counters."""
    folder = tmp_path_factory.mktemp("recorded")
    assert client(built, folder, threads=1, rounds=2, ROCPD_COUNTERS="SQ_WAVES").returncode == CODE
    return only(folder)


def filled(path: Path, table: str) -> set[str]:
    """Return the columns that have a value in some row."""
    names = [row[1] for row in rows(path, f"SELECT * FROM pragma_table_info('{table}')")]
    columns = ", ".join(f'COUNT("{name}")' for name in names)
    counts = rows(path, f"SELECT {columns} FROM {table}")[0]
    return {name for name, count in zip(names, counts, strict=True) if count}


def keys(value: Any) -> Any:
    """Return the keys of JSON, of lists those of the first item."""
    if isinstance(value, dict):
        return {name: keys(item) for name, item in value.items()}
    return [keys(item) for item in value[:1]] if isinstance(value, list) else None


def extdata(path: Path, table: str, where: str = "1") -> Any:
    return keys(json.loads(rows(path, f"SELECT extdata FROM {table} WHERE {where} LIMIT 1")[0][0]))


@pytest.mark.parametrize("table", SHAPE["columns"])
def test_columns(recorded: Path, table: str) -> None:
    assert set(SHAPE["columns"][table]) <= filled(recorded, table)


def test_columns_that_rocprofv3_leaves_empty(recorded: Path) -> None:
    assert "queue_id" not in filled(recorded, "rocpd_memory_copy")


@pytest.mark.parametrize("table", SHAPE["json"])
def test_keys_of_json(recorded: Path, table: str) -> None:
    where = "type = 'GPU'" if table == "rocpd_info_agent" else "1"
    ours, theirs = extdata(recorded, table, where), SHAPE["json"][table]
    assert ours == theirs
    assert list(ours) == list(theirs)  # AMD's reader takes them in this order


def test_counters_have_the_facts_of_their_agent(recorded: Path) -> None:
    assert extdata(recorded, "rocpd_info_pmc") == SHAPE["json"]["rocpd_info_agent"]
    assert rows(recorded, "SELECT component, value_type FROM rocpd_info_pmc") == [("rocm", "ABS")]


def test_categories_and_what_they_hold(recorded: Path) -> None:
    by_table = {
        table: {
            row[0]
            for row in rows(
                recorded,
                f"SELECT DISTINCT S.string FROM {table} T JOIN rocpd_event E ON E.id = T.event_id "
                "JOIN rocpd_string S ON S.id = E.category_id",
            )
        }
        for table in ("rocpd_kernel_dispatch", "rocpd_memory_copy", "rocpd_memory_allocate", "rocpd_sample")
    }
    assert by_table == {
        "rocpd_kernel_dispatch": {"KERNEL_DISPATCH"},
        "rocpd_memory_copy": {"MEMORY_COPY"},
        "rocpd_memory_allocate": {"MEMORY_ALLOCATION", "SCRATCH_MEMORY"},
        "rocpd_sample": {"MARKER_CORE_RANGE_API"},
    }
    track = "SELECT S.string, T.tid = T.pid OR T.tid > 0 FROM rocpd_track T JOIN rocpd_string S ON S.id = T.name_id"
    assert rows(recorded, track) == [("MARKER_CORE_RANGE_API", 1)]


def test_shape_is_that_of_real_files() -> None:
    for path in private("rocprofv3/*.db", 12):
        for table, columns in SHAPE["columns"].items():
            assert rows(path, f"SELECT COUNT(*) FROM {table}") == [(0,)] or filled(path, table) <= set(columns), table
        for table, tree in SHAPE["json"].items():
            assert extdata(path, table, "type = 'GPU'" if table == "rocpd_info_agent" else "1") == tree
