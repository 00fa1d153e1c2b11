"""Files that lack columns which every profiler writes: NULL in their place in every format, as in SQL."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw
import pytest

import rocpd
from rocpd.schema.load import VIEWS, view
from rocpd.schema.versions import LATEST, suffix_of
from rocpd.schema.write import tables_of
from tests.build import TraceBuilder, guid_of
from tests.soak import sample

TABLES = tables_of(LATEST)
SHOWING = ("pftrace", "json")
# What rows are found by: without these there is no event, or the file says of no rank what it is.
KEPT = {"id", "guid", "start", "end", "timestamp", "tag", "value"}


def trace() -> TraceBuilder:
    built = TraceBuilder().region("hipLaunchKernel", 10, 20, stack=1).arg("stream", "0x0")
    built.kernel("gemm", 30, 40, stack=1).counter("SQ_WAVES", 8).copy(50, 60).alloc(1, 2).alloc(3, 4, level="SCRATCH")
    built.region("roctxRangePushA", 5, 90, message="step").sample("roctxMarkA", 6, message="m").graph_launch(7, 9)
    return built.sample("load", 7, category="amd_smi").counter("busy", 3)


def renamed(path: Path, base: str, *columns: str) -> Path:
    connection = apsw.Connection(str(trace().write(path)))
    for column in columns:
        connection.execute(f'ALTER TABLE "{base}{suffix_of(guid_of(0))}" RENAME COLUMN "{column}" TO "zz {column}"')
    connection.close()
    return path


@functools.cache
def reads(name: str, base: str) -> bool:
    """Whether a view reads a table, itself or by another view."""
    chosen = view(name)
    return base in chosen.select or any(reads(other, base) for other in chosen.reads if other in VIEWS)


def convert_all(path: Path, folder: Path, base: str, *formats: str) -> None:
    """Write a file that lacks columns of a table in some formats, and read each view on that table."""
    with rocpd.connect(path) as session:
        for name in formats:
            options: dict[str, Any] = dict.fromkeys(("annotate_args", "annotate_pmc"), True) if name in SHOWING else {}
            session.convert(name, folder / name, force=True, **options)
        for name in filter(lambda name: reads(name, base), VIEWS):
            session.execute(f"SELECT * FROM {name}", strategy="attached").fetchall()


def some_formats(base: str, first: int) -> Sequence[str]:
    """Return a format, in turn for the tables; all three in a soak."""
    return sample(("pftrace", "csv", "parquet"), 3, (list(TABLES).index(base) + first) % 3)


@pytest.mark.soak(2)
@pytest.mark.parametrize("base", sample([*TABLES], 3))
def test_a_table_without_any_of_its_columns(base: str, tmp_path: Path) -> None:
    columns = [column for column in TABLES[base] if column not in KEPT]
    convert_all(renamed(tmp_path / "a.db", base, *columns), tmp_path, base, *some_formats(base, 0))


@pytest.mark.soak(2)
@pytest.mark.parametrize("base", sample([*TABLES], 3, 1))
def test_a_table_without_ids(base: str, tmp_path: Path) -> None:
    convert_all(renamed(tmp_path / "a.db", base, "id"), tmp_path, base, *some_formats(base, 1))


@pytest.mark.soak
@pytest.mark.parametrize("column", sample([column for column in TABLES["rocpd_event"] if column not in KEPT], 2))
def test_events_without_a_column_in_every_format(column: str, tmp_path: Path) -> None:
    formats = ("pftrace", "csv", "json", "otf2", "parquet", "arrow")
    convert_all(renamed(tmp_path / "a.db", "rocpd_event", column), tmp_path, "rocpd_event", *formats)


@pytest.mark.parametrize("column", ["tag", "value"])
def test_metadata_without_its_columns_says_nothing(column: str, tmp_path: Path) -> None:
    with rocpd.connect(renamed(tmp_path / "a.db", "rocpd_metadata", column)) as session:
        assert [(rank.guid, rank.version) for rank in session.ranks] == [(guid_of(0), "3.0.0")]


def test_info_says_what_is_missing(tmp_path: Path) -> None:
    whole = trace().write(tmp_path / "whole.db", views=True)
    lacking = renamed(tmp_path / "lacking.db", "rocpd_event", "category_id", "line_info")
    connection = apsw.Connection(str(lacking))
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute(f'DROP TABLE "rocpd_pmc_event{suffix_of(guid_of(0))}"')
    connection.close()
    with rocpd.connect(whole) as session:
        assert session.info()["problems"].fetchall() == []
    with rocpd.connect(lacking) as session:
        assert session.info()["problems"].fetchall() == [
            (0, "rocpd_event: lacks category_id, line_info, taken as NULL"),
            (0, "rocpd_pmc_event: is missing, counts as empty"),
        ]
