"""Columns of a rank, whatever lies in them: packed by SQLite or row by row, they are the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

import rocpd
from rocpd.base import NULL
from rocpd.facts.columns import BATCH, PIECE, Piece, Select, columns, joined, pieces
from rocpd.federate.run.shares import ShareDatabase
from tests.build import TraceBuilder

START = 1_700_000_000_000_000_000
KERNELS = Select(
    "SELECT id, start, stream_id, grid_size_x FROM rocpd_kernel_dispatch",
    numbers=("start", "stream_id", "grid_size_x"),
    base="rocpd_kernel_dispatch",
)
ARGUMENTS = Select("SELECT id, position, value FROM rocpd_arg", ("position",), texts=("value",), base="rocpd_arg")
VALUES = Select("SELECT id, event_id, value FROM rocpd_pmc_event", ("event_id",), ("value",), base="rocpd_pmc_event")

SIZES = pytest.mark.parametrize("size", [1, 2, 3, 7, PIECE])


def _read(path: Path, select: Select, size: int, damaged: Counter[str] | None = None) -> Piece:
    with rocpd.connect([path]) as session:
        return joined(list(pieces(session.reader(0), select, damaged, size)))


def _trace(count: int) -> TraceBuilder:
    trace = TraceBuilder()
    for n in range(count):
        trace.kernel("gemm", START + n, START + n + 5)
    return trace


@SIZES
def test_all_rows_come_in_order(tmp_path: Path, size: int) -> None:
    start, stream, _ = _read(_trace(14).write(tmp_path / "a.db"), KERNELS, size).numbers
    assert start.tolist() == [START + n for n in range(14)]
    assert stream.tolist() == [0] * 14


@SIZES
def test_no_rows_are_no_piece(tmp_path: Path, size: int) -> None:
    with rocpd.connect([_trace(0).write(tmp_path / "a.db")]) as session:
        assert list(pieces(session.reader(0), KERNELS, size=size)) == []
        assert [len(each) for each in columns(session.reader(0), "rocpd_arg", "SELECT * FROM rocpd_arg", ["id"])] == [0]


def _noting(ran: list[str], run: Callable[..., Any]) -> Callable[..., Any]:
    def noting(database: ShareDatabase, sql: str, *of: Any, **more: Any) -> Any:
        ran.append(sql)
        return run(database, sql, *of, **more)

    return noting


def test_texts_of_no_row_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    for name in ("execute", "rows"):
        monkeypatch.setattr(ShareDatabase, name, _noting(ran, getattr(ShareDatabase, name)))
    with rocpd.connect([_trace(0).write(tmp_path / "a.db")]) as session:
        assert list(pieces(session.reader(0), ARGUMENTS)) == []
    assert len(ran) == 1


@SIZES
def test_ids_far_apart_and_below_zero(tmp_path: Path, size: int) -> None:
    trace = _trace(6)
    for old, new in zip(range(1, 7), (-(1 << 63), -5, 0, 1 << 40, (1 << 63) - 2, (1 << 63) - 1), strict=True):
        trace.sql(f"UPDATE rocpd_kernel_dispatch{{uuid}} SET id = {new} WHERE start = {START} + {old - 1}")
    assert _read(trace.write(tmp_path / "a.db"), KERNELS, size).count == 6


@SIZES
def test_what_is_no_whole_number(tmp_path: Path, size: int) -> None:
    trace = _trace(9)
    values = ("7", "2.75", "'many'", "x'00ff'", "1e300", "9e999", "'12'", "-3", "9223372036854775807")
    for n, value in enumerate(values, 1):
        trace.sql(f"UPDATE rocpd_kernel_dispatch{{uuid}} SET grid_size_x = {value} WHERE id = {n}")
    damaged: Counter[str] = Counter()
    select = Select(KERNELS.sql.replace("stream_id", "NULLIF(id, 2) AS stream_id"), KERNELS.numbers, base=KERNELS.base)
    _, second, last = _read(trace.write(tmp_path / "a.db"), select, size, damaged).numbers
    assert last.tolist() == [7, 2, NULL, NULL, NULL, NULL, 12, -3, 9223372036854775807]
    assert second.tolist() == [1, NULL, 3, 4, 5, 6, 7, 8, 9]
    assert damaged == {"grid_size_x": 4}


@SIZES
def test_texts_are_those_of_the_rows(tmp_path: Path, size: int) -> None:
    """Quotes, control characters and NUL, characters beyond 16 bits, what looks like JSON, and NULL."""
    texts = ("", '"\\', "\x01\n\x7f", "a\0b", "名\U0001f600", '{"a":[1]}', "[]", "null", None, "\\xff", "1", "1")
    trace = TraceBuilder().region("r", 1, 2)
    for text in texts:
        trace.arg("a", text or "")
    trace.sql('UPDATE "rocpd_arg{uuid}" SET value = NULL WHERE id = 9')
    piece = _read(trace.write(tmp_path / "a.db"), ARGUMENTS, size)
    assert piece.texts == [list(texts)]


@SIZES
@pytest.mark.parametrize(
    ("stored", "read"), [("CAST(x'62ff' AS TEXT)", "b\\xff"), ("x'62ff'", b"b\xff"), ("x'62'", b"b")]
)
def test_what_is_no_text(tmp_path: Path, size: int, stored: str, read: object) -> None:
    trace = TraceBuilder().region("r", 1, 2)
    for text in "xyz":
        trace.arg("a", text)
    trace.sql(f'UPDATE "rocpd_arg{{uuid}}" SET value = {stored} WHERE id = 2')
    piece = _read(trace.write(tmp_path / "a.db"), ARGUMENTS, size)
    assert piece.texts == [["x", read, "z"]]
    assert piece.numbers[0].tolist() == [0, 1, 2]


def test_documents_are_texts_even_when_sqlite_knows_them_as_json(tmp_path: Path) -> None:
    trace = TraceBuilder().region("r", 1, 2).region("r", 3, 4)
    trace.sql("""UPDATE "rocpd_event{uuid}" SET extdata = '{"a": [1, 2], "b": 3}' WHERE id = 1""")
    sql = "SELECT id, json_extract(extdata, '$.a') AS a, json_extract(extdata, '$.b') AS b FROM rocpd_event"
    select = Select(sql, numbers=("b",), texts=("a",), base="rocpd_event")
    piece = _read(trace.write(tmp_path / "a.db"), select, PIECE)
    assert (piece.texts, piece.numbers[0].tolist()) == ([["[1,2]", None]], [3, NULL])


@SIZES
def test_reals_to_the_last_bit(tmp_path: Path, size: int) -> None:
    stored = ("0.1", "1e300", "9e999", "-2.5", "NULL", "'many'", "4")
    trace = TraceBuilder()
    for n, value in enumerate(stored, 1):
        trace.kernel("gemm", n, n + 1).counter("SQ_WAVES", 1.0)
        trace.sql(f'UPDATE "rocpd_pmc_event{{uuid}}" SET value = {value} WHERE id = {n}')
    damaged: Counter[str] = Counter()
    piece = _read(trace.write(tmp_path / "a.db"), VALUES, size, damaged)
    wanted = np.array([0.1, 1e300, np.inf, -2.5, np.nan, np.nan, 4.0])
    np.testing.assert_array_equal(piece.reals[0], wanted)
    assert damaged == {"value": 1}


@SIZES
def test_ids_that_are_no_key(tmp_path: Path, size: int) -> None:
    """Another writer's table, in which an id comes twice: no row is lost."""
    trace = _trace(5)
    for text in (
        "CREATE TABLE other AS SELECT * FROM rocpd_kernel_dispatch{uuid}",
        "DROP TABLE rocpd_kernel_dispatch{uuid}",
        'ALTER TABLE other RENAME TO "rocpd_kernel_dispatch{uuid}"',
        "UPDATE rocpd_kernel_dispatch{uuid} SET id = 2 WHERE id < 4",
    ):
        trace.sql(text)
    assert _read(trace.write(tmp_path / "a.db"), KERNELS, size).count == 5


@SIZES
def test_a_window_holds(tmp_path: Path, size: int) -> None:
    path = _trace(9).write(tmp_path / "a.db")
    with rocpd.connect([path], window=rocpd.Window("+2ns", "+4ns")) as session:
        parts = list(pieces(session.reader(0), KERNELS, size=size))
        wanted = session.execute("SELECT count(*) FROM rocpd_kernel_dispatch").fetchall()[0][0]
    assert 0 < sum(piece.count for piece in parts) == wanted < 9
    assert max(piece.count for piece in parts) <= size


def test_batches_have_equally_many_rows() -> None:
    assert BATCH % PIECE == 0


def test_columns_of_a_file_that_grows_are_of_the_same_rows(tmp_path: Path) -> None:
    path = _trace(5).write(tmp_path / "a.db")
    with rocpd.connect([path]) as session:
        reader = session.reader(0).keeping()
        read = partial(columns, reader, KERNELS.base or "", KERNELS.sql)
        assert [len(column) for column in read(["start"])] == [5]
        with closing(apsw.Connection(str(path))) as writer:
            (table,) = reader.tables.name("rocpd_kernel_dispatch").split(".")[-1:]
            fields = [name for _, name, *_ in writer.execute(f"PRAGMA table_info({table})") if name != "id"]
            some = ", ".join(f'"{name}"' for name in fields)
            writer.execute(f"INSERT INTO {table} ({some}) SELECT {some} FROM {table} WHERE id > 2")
        assert [len(column) for column in read(["start", "stream_id"])] == [8, 8]
        assert [len(column) for column in read(["start", "stream_id", "grid_size_x"])] == [8, 8, 8]
