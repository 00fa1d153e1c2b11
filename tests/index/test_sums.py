"""Sums near the end of 64 bits: the index returns what SQLite does, or leaves it to SQLite."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

import rocpd
from rocpd.base import RocpdError
from rocpd.index.build import build
from rocpd.index.entries import ValueKind
from tests.build import TraceBuilder
from tests.index.test_entries import _change

_ROWS = 3
_HALF, _END = 1 << 62, (1 << 63) - 1
_SIXTH = _END // (2 * _ROWS)
SIZES = {
    "small": ((1, 2, 3), (4, 5, 6)),
    "up to where all fit": ((_SIXTH,) * _ROWS, (_SIXTH,) * _ROWS),
    "one more": ((_SIXTH + 1,) * _ROWS, (_SIXTH + 1,) * _ROWS),
    "one that is large": ((_HALF, 1, 1), (1, 1, 1)),
    "too much in a rank": ((_HALF, _HALF, 1), (1, 1, 1)),
    "too much on the way": ((_HALF, _HALF, -_HALF), (1, 1, 1)),
    "too much in two ranks": ((_HALF, 1, 1), (_HALF, 1, 1)),
    "the greatest": ((_END, 0, 0), (0, 0, 0)),
    "the least": ((-_END - 1, 0, 0), (0, 0, 0)),
    "less than the least": ((-_HALF, -_HALF, -1), (0, 0, 0)),
}
STATEMENTS = (
    "SELECT sum(size), count(*) FROM memory_copies",
    "SELECT total(size), avg(size) FROM memory_copies",
    "SELECT rank, sum(size) FROM memory_copies GROUP BY rank",
    "SELECT name, sum(size) FILTER (WHERE id > 1) FROM memory_copies GROUP BY name",
    "SELECT sum(size) FROM (SELECT size FROM memory_copies UNION ALL SELECT size FROM memory_copies)",
    "SELECT sum(a.size) FROM memory_copies a JOIN memory_copies b ON a.guid = b.guid AND a.id <= b.id",
    "SELECT sum(size + 1) FROM memory_copies WHERE id <> 2",
)


def _job(folder: Path, sizes: tuple[tuple[int, ...], ...]) -> list[Path]:
    files = []
    for number, of_rank in enumerate(sizes):
        trace = TraceBuilder(number)
        for row in range(_ROWS):
            trace.copy(100 + row, 200 + row, name=("copy", "Copy")[row % 2])
        files.append(trace.write(folder / f"rank{number}.db"))
        sets = " ".join(f"WHEN {row} THEN {size}" for row, size in enumerate(of_rank, 1))
        _change(files[-1], f'UPDATE "rocpd_memory_copy{{uuid}}" SET size = CASE id {sets} END')
    return files


def _answer(session: rocpd.Session, sql: str, strategy: str) -> object:
    try:
        return session.execute(sql, strategy=strategy).fetchall()
    except RocpdError as error:
        return type(error)


@pytest.mark.parametrize("case", SIZES)
def test_sums_are_those_of_sqlite(case: str, tmp_path: Path) -> None:
    files, folder = _job(tmp_path, SIZES[case]), tmp_path / "index"
    with rocpd.connect(files, index="off") as plain:
        build(plain, folder)
        with rocpd.connect(files, index="require", index_folder=folder) as indexed:
            for sql in STATEMENTS:
                truth = _answer(plain, sql, "attached")
                assert _answer(indexed, sql, "auto") == truth, sql
                if isinstance(columnar := _answer(indexed, sql, "columnar"), list):
                    assert columnar == truth, sql
                else:
                    assert case != "small", sql


def test_the_greatest_number_of_each_column_is_known(tmp_path: Path) -> None:
    files, folder = _job(tmp_path, SIZES["one that is large"]), tmp_path / "index"
    with rocpd.connect(files, index="off") as plain:
        build(plain, folder)
    for entry in folder.glob("*/entry.json"):
        views = json.loads(entry.read_text())["views"]
        for name, stored in ((name, stored) for name, stored in views.items() if stored["rows"]):
            numbers = {column for column, kind in stored["columns"].items() if kind == ValueKind.INT}
            assert numbers == stored["greatest"].keys()
            for column in numbers:
                sql = f'SELECT coalesce(max(abs("{column}"::HUGEINT)), 0) FROM read_parquet(?)'
                ((most,),) = duckdb.execute(sql, [str(entry.parent / f"{name}.parquet")]).fetchall()
                assert stored["greatest"][column] == most
