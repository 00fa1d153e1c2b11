"""The writer: valid files of every version, complete or not at all."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from rocpd.base import OutputError, UsageError
from rocpd.schema.load import view
from rocpd.schema.render import views_over
from rocpd.schema.versions import VERSIONS, declared_version, suffix_of
from rocpd.schema.write import create, tables_of
from tests.build import TraceBuilder, guid_of
from tests.conftest import Shell


def full() -> TraceBuilder:
    """One row of every kind that all versions have."""
    trace = TraceBuilder().region("hipLaunchKernel", 10, 20, stack=1).arg("stream", "0x0", extdata='{"stream_id":0}')
    trace.kernel("gemm", 30, 40, stack=1).counter("SQ_WAVES", 8).copy(50, 60).alloc(1, 2)
    trace.alloc(3, 4, level="SCRATCH").region("roctxRangePushA", 5, 90, message="step").sample("roctxMarkA", 6)
    return trace


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_is_a_valid_file(version: str, tmp_path: Path) -> None:
    path = full().write(tmp_path / "a.db", version, views=True)
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    assert connection.pragma("integrity_check") == "ok"
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    assert connection.pragma("journal_mode") == "delete"
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'rocpd%'")
    assert {str(name) for (name,) in tables} == {name + suffix_of(guid_of(0)) for name in tables_of(version)}
    metadata = connection.execute("SELECT tag, value FROM rocpd_metadata").fetchall()
    assert declared_version([(str(tag), str(value)) for tag, value in metadata]) == version
    assert {("uuid", suffix_of(guid_of(0))), ("guid", guid_of(0))} <= set(metadata)


@pytest.mark.parametrize("version", VERSIONS)
def test_sqlite_shell_reads_every_view(version: str, tmp_path: Path, sqlite3_shell: Shell) -> None:
    path = full().write(tmp_path / "a.db", version, views=True)
    stored = views_over(tables_of(version))
    counts = sqlite3_shell(path, " UNION ALL ".join(f"SELECT '{name} ' || count(*) FROM {name}" for name in stored))
    count_of = {name: int(count) for name, count in (line.split() for line in counts.splitlines())}
    assert sorted(count_of) == sorted(stored)
    empty = {name for name, count in count_of.items() if not count}
    assert {name for name in empty if "WHERE" not in view(name).select and not view(name).where} == {
        "graph_launches"
    }  # others may show a few rows
    assert count_of["regions_and_samples"] == 3
    assert count_of["memory_allocations"] == 2


def test_plain_views_show_the_suffixed_tables(tmp_path: Path) -> None:
    connection = apsw.Connection(str(full().write(tmp_path / "a.db", views=True)))
    for base in tables_of("3.0.3"):
        plain = connection.execute(f"SELECT * FROM {base}").fetchall()
        assert plain == connection.execute(f'SELECT * FROM "{base}{suffix_of(guid_of(0))}"').fetchall()


def test_foreign_keys_of_a_written_file_refuse_orphans(tmp_path: Path) -> None:
    connection = apsw.Connection(str(full().write(tmp_path / "a.db")))
    connection.pragma("foreign_keys", True)
    with pytest.raises(apsw.ConstraintError):
        connection.execute(f"UPDATE rocpd_region{suffix_of(guid_of(0))} SET tid = 999")


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 200])
def test_any_number_of_rows_goes_in_and_guid_fills_itself_in(count: int, tmp_path: Path) -> None:
    with create(tmp_path / "a.db", guid_of(3)) as writer:
        ids = range(1, count + 1)
        writer.insert("rocpd_string", {"string": [f"text {i}" for i in ids], "id": ids})
    rows = apsw.Connection(str(tmp_path / "a.db")).execute("SELECT * FROM rocpd_string").fetchall()
    assert rows == [(i, guid_of(3), f"text {i}") for i in range(1, count + 1)]


def test_a_guid_with_quotes_makes_a_valid_file(tmp_path: Path) -> None:
    with create(tmp_path / "a.db", """o'odd"guid""") as writer:
        writer.insert("rocpd_string", {"string": ["x"]})
    connection = apsw.Connection(str(tmp_path / "a.db"))
    assert connection.execute("SELECT guid FROM rocpd_string").fetchall() == [("""o'odd"guid""",)]
    assert connection.execute("SELECT count(*) FROM kernels").fetchall() == [(0,)]


def test_nothing_is_left_when_filling_fails(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), create(tmp_path / "new" / "a.db", guid_of(0)):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_stays_unless_forced(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with create(path, guid_of(1)):
        pass
    before = path.read_bytes()
    with pytest.raises(OutputError, match=r"a\.db: exists"), create(path, guid_of(2)):
        pass
    assert path.read_bytes() == before
    with create(path, guid_of(2), force=True):
        pass
    assert path.read_bytes() != before
    assert [p.name for p in tmp_path.iterdir()] == ["a.db"]


def test_unknown_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"schema version 3\.0\.9"), create(tmp_path / "a.db", guid_of(0), "3.0.9"):
        pass
