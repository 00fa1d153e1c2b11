"""Which file is damaged: SQLite's error in the middle of a statement on many files does not name it."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

import rocpd
from rocpd.base import InputError, QueryError
from rocpd.federate.open.opening import check_file, opening_of
from rocpd.schema.versions import suffix_of
from tests.build import TraceBuilder, guid_of

REGIONS = "SELECT count(*) FROM regions"


def lose_regions(path: Path, number: int) -> Path:
    """Overwrite the page that holds the regions; the file opens as if nothing was wrong."""
    name = f"rocpd_region{suffix_of(guid_of(number))}"
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).get
    size = connection.pragma("page_size")
    connection.close()
    with path.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * size)
    return path


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Three ranks; the second one's regions are lost."""
    paths = [TraceBuilder(n, pid=n).kernel("k", 5, 6).region("f", 1, 2).write(tmp_path / f"{n}.db") for n in range(3)]
    lose_regions(paths[1], 1)
    return paths


def test_the_damaged_file_is_named(files: list[Path]) -> None:
    with rocpd.connect(files) as session:
        assert session.sql("SELECT count(*) FROM kernels").fetchall() == [(3,)]
        with pytest.raises(InputError, match=rf"^{files[1]}: damaged: "):
            session.sql(REGIONS)
        with pytest.raises(InputError, match=rf"^{files[1]}: damaged: "):
            session.sql("SELECT name FROM regions").fetchall()
        with pytest.raises(InputError, match=rf"^{files[1]}: damaged: "):
            _ = session.time_range


def test_damage_met_on_the_bare_connection(files: list[Path]) -> None:
    """Converters and shells read there; the session names the file when its block ends."""
    with pytest.raises(InputError, match=rf"^{files[1]}: damaged: "), rocpd.connect(files) as session:
        session.open_views().execute(REGIONS).fetchall()


def test_errors_of_a_statement_blame_no_file(files: list[Path]) -> None:
    with rocpd.connect(files) as session, pytest.raises(QueryError, match="no such column: nix"):
        session.sql("SELECT nix FROM kernels")


def test_errors_of_others_pass(files: list[Path]) -> None:
    with pytest.raises(ZeroDivisionError), rocpd.connect(files) as session:
        _ = len(session.ranks) // 0


def test_skip_bad_reads_whole_files(files: list[Path]) -> None:
    with rocpd.connect(files, skip_bad=True) as session:
        assert session.sql("SELECT pid FROM regions ORDER BY pid").fetchall() == [(0,), (2,)]
        assert [note.split(": damaged: ")[0] for note in session.notes] == [f"left out: {files[1]}"]


def test_rows_that_break_a_constraint_are_no_damage(tmp_path: Path) -> None:
    trace = TraceBuilder().sql("PRAGMA ignore_check_constraints = 1")
    path = trace.sql("UPDATE \"rocpd_info_agent{uuid}\" SET type = 'TPU'").write(tmp_path / "0.db")
    check_file(opening_of(path))
    connection = apsw.Connection(str(path))
    assert "CHECK constraint failed" in str(connection.execute("PRAGMA quick_check(1)").get)
