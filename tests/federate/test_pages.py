"""Columns read from the pages of a file: the values that SQLite returns, or a refusal."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocpd.base import NULL, InputError
from rocpd.federate.open.opening import Opening, opening_of, uri_of
from rocpd.federate.run.pages import OtherFormError, pages_of
from tests.soak import sized

NAMES = ("id", "a", "b")
TABLE = 'CREATE TABLE t (id INTEGER NOT NULL PRIMARY KEY, a INTEGER, "text" TEXT, b BIGINT, "end" TEXT)'

EDGES = [
    0,
    1,
    -1,
    *(sign * ((1 << bits) - less) for bits in (7, 15, 23, 31, 47, 62) for sign in (1, -1) for less in (0, 1)),
]
NUMBERS = st.sampled_from([None, *EDGES, (1 << 63) - 1, -(1 << 63)]) | st.integers(-(1 << 63), (1 << 63) - 1)
ROWS = st.lists(st.tuples(NUMBERS, st.none() | st.text(max_size=14), NUMBERS, st.integers(0, 6000)), max_size=200)


def _written(path: Path, rows: Sequence[tuple[object, ...]], page: int = 4096, table: str = TABLE) -> Path:
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as file:
        file.execute(f"PRAGMA page_size = {page}")
        file.execute(table)
        file.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", rows)
        file.commit()
    return path


def _many(count: int = 3000) -> list[tuple[object, ...]]:
    return [(3 * n + 1, n, "x" * (n % 40), None if n % 7 == 0 else n << n % 50, None) for n in range(count)]


def _by_pages(opening: Opening, names: Sequence[str] = NAMES) -> list[list[int]]:
    with closing(opening.connect()) as connection, pages_of(opening, connection) as pages:
        return [column.tolist() for column in pages.columns("t", names)]


def _by_sqlite(path: Path, names: Sequence[str] = NAMES) -> list[list[int]]:
    with closing(sqlite3.connect(path)) as file:
        rows = file.execute(f"SELECT {', '.join(names)} FROM t ORDER BY id").fetchall()
    return [[NULL if row[place] is None else row[place] for row in rows] for place in range(len(names))]


@given(rows=ROWS, page=st.sampled_from([1024, 4096, 65536]), step=st.sampled_from([1, 1000, 1 << 40]))
def test_any_numbers_are_those_of_sqlite(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[object, str, object, int]], page: int, step: int
) -> None:
    # Long texts behind the numbers have pages of their own.
    of_table = [(1 + n * step, a, text, b, "y" * long) for n, (a, text, b, long) in enumerate(rows)]
    path = _written(tmp_path_factory.getbasetemp() / "any.db", of_table, page)
    assert _by_pages(opening_of(path)) == _by_sqlite(path)


@pytest.mark.parametrize("page", [512, 4096, 65536])
def test_many_rows_come_in_order(tmp_path: Path, page: int) -> None:
    path = _written(tmp_path / "a.db", random.Random(1).sample(_many(), 3000), page)
    assert _by_pages(opening_of(path)) == _by_sqlite(path)
    assert _by_pages(opening_of(path), ["b"]) == _by_sqlite(path, ["b"])


def test_an_index_is_no_table(tmp_path: Path) -> None:
    path = _written(tmp_path / "a.db", _many())
    with closing(sqlite3.connect(path)) as file:
        file.execute("CREATE INDEX by_a ON t (a)")
    assert _by_pages(opening_of(path)) == _by_sqlite(path)


def _refused(opening: Opening, names: Sequence[str] = NAMES) -> bool:
    try:
        _by_pages(opening, names)
    except OtherFormError:
        return True
    return False


@pytest.mark.parametrize("value", ["12", 2.5, b"\x01", "long" * 2000])
def test_values_that_are_no_whole_numbers_are_left_to_sqlite(tmp_path: Path, value: object) -> None:
    path = _written(
        tmp_path / "a.db", [*_many(300), (10_000, 1, None, None, None)], table=TABLE.replace("b BIGINT", "b")
    )
    assert not _refused(opening_of(path))
    with closing(sqlite3.connect(path)) as file:
        file.execute("UPDATE t SET b = ? WHERE id = 301", (value,))
        file.commit()
    assert _refused(opening_of(path))
    assert not _refused(opening_of(path), ("id", "a"))


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE t ADD COLUMN c INTEGER DEFAULT 7",
        "ALTER TABLE t ADD COLUMN c AS (a + 1)",
        "INSERT INTO t VALUES (-5, 1, NULL, 2, NULL)",
        "UPDATE t SET \"text\" = printf('%.*c', 9000, 'x') WHERE id = 4",
        "DROP TABLE t; CREATE TABLE t (id INTEGER PRIMARY KEY, a, b, c) WITHOUT ROWID",
        "DROP TABLE t; CREATE VIEW t AS SELECT 1 AS id, 2 AS a, 3 AS b, 4 AS c",
        "DROP TABLE t",
    ],
)
def test_other_forms_of_tables_are_left_to_sqlite(tmp_path: Path, change: str) -> None:
    path = _written(tmp_path / "a.db", _many(30))
    with closing(sqlite3.connect(path)) as file:
        file.executescript(change)
    names = ("id", "a", "b", "c") if "c " in change else NAMES
    assert _refused(opening_of(path), names)


def test_a_file_with_a_log_is_left_to_sqlite(tmp_path: Path) -> None:
    path = _written(tmp_path / "a.db", _many(30))
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode = wal")
        writer.execute("UPDATE t SET a = 5")
        writer.commit()
        assert _refused(Opening(path, uri_of(path, "mode=ro")))
    assert _by_pages(opening_of(path))[1] == [5] * 30


def test_no_writer_comes_between(tmp_path: Path) -> None:
    path = _written(tmp_path / "a.db", _many(30))
    write = (
        "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).executescript('BEGIN IMMEDIATE; DELETE FROM t')"
    )
    opening = opening_of(path)

    def is_locked() -> bool:
        command = [sys.executable, "-c", f"{write[:-2]}; COMMIT')", str(path)]
        return "database is locked" in subprocess.run(command, capture_output=True, text=True).stderr

    with closing(opening.connect()) as connection, closing(opening.connect()) as reader:
        with pages_of(opening, connection):
            assert is_locked()
        reader.execute("BEGIN")
        reader.execute("SELECT a FROM t").fetchone()
        assert not _refused(opening)
        assert is_locked()  # closing the file of pages has not dropped the lock of this process
        reader.execute("COMMIT")
        assert not is_locked()
        assert _by_pages(opening) == [[], [], []]


def test_a_writer_is_waited_for_once(tmp_path: Path) -> None:
    path = _written(tmp_path / "a.db", _many(30))
    opening = opening_of(path, busy_ms=1)
    with closing(apsw.Connection(str(path))) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(InputError, match="locked by a writer"):
            _by_pages(opening)
    assert not _refused(opening)


def test_a_connection_in_use_stays_as_it_is(tmp_path: Path) -> None:
    opening = opening_of(_written(tmp_path / "a.db", _many()))
    with closing(opening.connect()) as connection:
        rows = connection.execute("SELECT id FROM t ORDER BY id")
        first = next(rows)
        with pages_of(opening, connection) as pages:
            (ids,) = pages.columns("t", ["id"])
        assert [first, *rows] == [(number,) for number in ids.tolist()]
        connection.execute("BEGIN")
        with pytest.raises(OtherFormError), pages_of(opening, connection):
            pass
        assert connection.in_transaction


def _flipped(data: bytearray, dice: random.Random) -> None:
    data[dice.randrange(100, len(data))] = dice.choice([0, 1, 0x80, 0xFF, dice.randrange(256)])


def _zeroed(data: bytearray, dice: random.Random) -> None:
    at = dice.randrange(1, len(data) // 512) * 512
    data[at : at + 512] = bytes(512)


def _moved(data: bytearray, dice: random.Random) -> None:
    page, other = (dice.randrange(1, len(data) // 512) * 512 for _ in range(2))
    data[page : page + 512] = data[other : other + 512]


@pytest.mark.parametrize("damage", [_flipped, _zeroed, _moved])
def test_damaged_pages_are_never_read_otherwise_than_by_sqlite(
    tmp_path: Path, damage: Callable[[bytearray, random.Random], None]
) -> None:
    sound = _written(tmp_path / "a.db", _many(400), 512).read_bytes()
    path, dice, refusals = tmp_path / "b.db", random.Random(7), 0
    for _ in range(sized(100, 20_000)):
        data = bytearray(sound)
        damage(data, dice)
        path.write_bytes(data)
        opening = Opening(path, uri_of(path, "immutable=1"))
        try:
            columns = _by_pages(opening)
        except OtherFormError:
            refusals += 1
            continue
        assert columns == _by_sqlite(path)
    assert refusals
