"""The index gives rows as SQLite does, whatever was done to the files: what it can't is left to SQLite."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import rocpd
from rocpd.base import UsageError
from rocpd.federate.run.shares import Request
from rocpd.index.build import build
from tests.build import TraceBuilder
from tests.index.test_entries import PLANNED, _change, _suffix

Arrange: TypeAlias = Callable[[Path], object]


def _rank(path: Path, number: int) -> Path:
    """Nine copies whose sizes fall while ids rise."""
    trace = TraceBuilder(number)
    for row in range(9):
        trace.copy(100 + row, 200 + row, name=("copy", "Copy")[row % 2], size=99 - row, stack=row)
    return trace.write(path)


def _make_again(path: Path, base: str, edit: Callable[[str], str], order: str = "id") -> None:
    """Make a table again, as `edit` changes its text, with its rows put in in an order."""
    connection = sqlite3.connect(path, isolation_level=None)
    name = base + _suffix(path)
    (text,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (name,)).fetchone()
    views = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'view'").fetchall()
    assert edit(text) != text
    for view, _ in views:
        connection.execute(f'DROP VIEW "{view}"')
    connection.execute(f'CREATE TEMP TABLE rows AS SELECT * FROM "{name}"')
    connection.execute(f'DROP TABLE "{name}"')
    connection.execute(edit(text))
    connection.execute(f'INSERT INTO "{name}" SELECT * FROM rows ORDER BY {order}')
    for _, definition in views:
        connection.execute(definition)
    connection.close()


_KEY = re.compile(r'"id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT')


def _with_key(path: Path, column: str, constraint: str = "", end: str = "", base: str = "rocpd_memory_copy") -> None:
    """Make a table again whose id, keys and end are others."""

    def edit(text: str) -> str:
        text = _KEY.sub(column, text)
        if constraint:
            text = text.replace("FOREIGN KEY", f"{constraint}, FOREIGN KEY", 1)
        return text.rstrip() + end

    _make_again(path, base, edit, order="size" if base == "rocpd_memory_copy" else "id")


def _nothing(path: Path) -> None:
    pass


def _add_index(path: Path) -> None:
    """As a viewer does."""
    _change(path, 'CREATE INDEX added_by_a_viewer ON "rocpd_memory_copy{uuid}" (size)')


def _add_descending_index(path: Path) -> None:
    _change(path, 'CREATE INDEX added_by_a_viewer ON "rocpd_memory_copy{uuid}" (size DESC)')


def _make_unique(path: Path) -> None:
    """As a writer of its own may have it, whose tables have other keys."""
    _with_key(path, '"id" INTEGER PRIMARY KEY', "UNIQUE (size)")


def _leave_the_key_out(path: Path) -> None:
    """As a copy by hand does, here of rows in another order."""
    _with_key(path, '"id" INTEGER')


def _key_apart(path: Path) -> None:
    """SQLite takes this for a column with an index: https://sqlite.org/lang_createtable.html#rowid."""
    _with_key(path, '"id" INTEGER PRIMARY KEY DESC')


def _key_of_two(path: Path) -> None:
    _with_key(path, '"id" INTEGER', "PRIMARY KEY (id, size)")


def _key_in_place_of_rows(path: Path) -> None:
    _with_key(path, '"id" INTEGER PRIMARY KEY DESC', end=" WITHOUT ROWID")


def _analyse(path: Path) -> None:
    """SQLite notes how many rows tables have, and reads joined tables in another order."""
    _change(path, "ANALYZE")


def _collate(path: Path) -> None:
    """Texts are compared as the table of all texts has it."""
    _make_again(
        path,
        "rocpd_string",
        lambda text: text.replace(
            '"string" TEXT NOT NULL UNIQUE ON CONFLICT ABORT', '"string" TEXT COLLATE NOCASE NOT NULL'
        ),
    )


ORDERS = (
    ("rows of a table", "SELECT size FROM rocpd_memory_copy"),
    ("the first rows", "SELECT size FROM rocpd_memory_copy LIMIT 3"),
    ("some rows", "SELECT id, size FROM memory_copies WHERE size BETWEEN 93 AND 98"),
    ("some ids", "SELECT id, size FROM rocpd_memory_copy WHERE id IN (5, 2, 4)"),
    ("two searches", "SELECT id, size FROM rocpd_memory_copy WHERE id = 5 OR size = 97"),
    ("equal rows", "SELECT id, name FROM memory_copies ORDER BY name LIMIT 3"),
    ("backwards", "SELECT id FROM memory_copies ORDER BY id DESC LIMIT 3"),
    ("by a name", "SELECT id FROM memory_copies WHERE name = 'copy'"),
    ("different rows", "SELECT DISTINCT size % 4 FROM rocpd_memory_copy"),
    ("groups of a rank", "SELECT guid, size, count(*) FROM rocpd_memory_copy GROUP BY guid, size"),
    ("groups by id", "SELECT guid, size % 3, id, count(*) FROM rocpd_memory_copy GROUP BY guid, size % 3, id"),
    ("groups of all ranks", "SELECT size, count(*) FROM rocpd_memory_copy GROUP BY size"),
)
"""What is asked of a job of two ranks."""

_BY_SIZE = {"rows of a table", "the first rows", "some rows", "two searches", "different rows", "groups by id"}
_ROWS = {name for name, _ in ORDERS if "groups" not in name}
SQLITES: dict[Arrange, set[str]] = {
    _nothing: {"groups by id"},
    _add_index: _BY_SIZE,
    _add_descending_index: _BY_SIZE,
    _make_unique: _BY_SIZE | {"groups of a rank"},
    _leave_the_key_out: _ROWS | {"groups by id"},
    _key_apart: _ROWS | {"groups by id"},
    _key_of_two: _ROWS | {"groups by id"},
    _key_in_place_of_rows: _ROWS | {"groups by id"},
    _analyse: {"groups by id"},
    _collate: {"groups by id", "equal rows", "by a name"},
}
"""What was done to the file of a rank -> what the index leaves to SQLite then."""


@contextmanager
def _both(files: Sequence[Path], root: Path) -> Iterator[tuple[rocpd.Session, rocpd.Session]]:
    """Open files with an index, and without."""
    with rocpd.connect(files) as session:
        build(session, root)
    with (
        rocpd.connect(files, limits=PLANNED, index="require", index_folder=root) as indexed,
        rocpd.connect(files, limits=PLANNED, index="off") as plain,
    ):
        yield indexed, plain


@pytest.mark.parametrize("arrange", SQLITES)
def test_rows_come_as_sqlite_gives_them(arrange: Arrange, tmp_path: Path) -> None:
    """It reads them in the order of an index that has all it needs; groups come in descending order of such one."""
    files = [_rank(tmp_path / f"{rank}.db", rank) for rank in range(2)]
    arrange(files[0])
    refused = set()
    with _both(files, tmp_path / "index") as (indexed, plain):
        for name, sql in ORDERS:
            rows = plain.execute(sql).fetchall()
            try:
                columnar = indexed.execute(sql, strategy="columnar").fetchall()
            except UsageError:
                refused.add(name)
            else:
                assert columnar == rows, name
            assert indexed.execute(sql).fetchall() == rows, name
    assert refused == SQLITES[arrange]


def _kernels(path: Path) -> Path:
    trace = TraceBuilder()
    for row in range(6):
        trace.kernel(f"k{row % 2}", 1000 - row * 10, 1005 - row * 10, stack=row)
        trace.counter("SQ_WAVES", row / 7)
    return trace.write(path)


def _one_event_of_several_dispatches(path: Path) -> None:
    """Which come in an order of their own: an index that SQLite makes for itself has all that is asked for."""
    _change(
        path,
        'UPDATE "rocpd_kernel_dispatch{uuid}" SET event_id = 1, dispatch_id = -id',
        'UPDATE "rocpd_pmc_event{uuid}" SET event_id = 1',
    )


def _unique_agents(path: Path) -> None:
    """What is unique may be NULL in several rows."""
    agents = (
        'INSERT INTO "rocpd_info_agent{{uuid}}" (id, guid, nid, pid, type, logical_index, type_index)'
        " SELECT {}, guid, nid, pid, 'GPU', {}, NULL FROM \"rocpd_info_agent{{uuid}}\" LIMIT 1"
    )
    _change(path, 'UPDATE "rocpd_info_agent{uuid}" SET type_index = NULL')
    _make_again(
        path, "rocpd_info_agent", lambda text: text.replace('"type_index" INTEGER', '"type_index" INTEGER UNIQUE')
    )
    _change(path, *(agents.format(number, number) for number in (90, 91, 92)))
    _change(path, 'UPDATE "rocpd_kernel_dispatch{uuid}" SET agent_id = 92 - id % 3')


def _events_with_one_id(path: Path) -> None:
    _with_key(path, '"id" INTEGER NOT NULL', "PRIMARY KEY (id, stack_id)", " WITHOUT ROWID", "rocpd_event")
    columns = "guid, category_id, stack_id, parent_stack_id, correlation_id, call_stack, line_info, extdata"
    selected = columns.replace("stack_id,", "stack_id - 100,", 1)
    _change(
        path,
        f'INSERT INTO "rocpd_event{{uuid}}" (id, {columns}) SELECT id, {selected} FROM "rocpd_event{{uuid}}" LIMIT 5',
    )


JOINED: tuple[tuple[Arrange, str], ...] = (
    (
        _one_event_of_several_dispatches,
        "SELECT id, dispatch_id FROM pmc_events WHERE id = 1 AND dispatch_id < 0 LIMIT 3",
    ),
    (_one_event_of_several_dispatches, "SELECT DISTINCT start FROM pmc_events WHERE id = 1 AND start > 0"),
    (_unique_agents, "SELECT id FROM kernels WHERE agent_type_index IS NULL AND agent_log_index >= 0 LIMIT 4"),
    (_events_with_one_id, "SELECT count(*) FROM rocpd_kernel_dispatch"),
    (_events_with_one_id, "SELECT id, stack_id FROM kernels"),
)


@pytest.mark.parametrize(("arrange", "sql"), JOINED)
def test_rows_that_meet_several_of_another_table(arrange: Arrange, sql: str, tmp_path: Path) -> None:
    file = _kernels(tmp_path / "0.db")
    with _both([file], tmp_path / "before") as (indexed, _):
        assert indexed.execute(sql, strategy="columnar").columns
    arrange(file)
    with _both([file], tmp_path / "index") as (indexed, plain):
        assert indexed.execute(sql).fetchall() == plain.execute(sql).fetchall()
        with pytest.raises(UsageError, match=r"its rows|their order"):
            indexed.execute(sql, strategy="columnar")


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list that grows by an item whenever SQLite is asked for a plan."""
    asked: list[object] = []
    plan = Request.plan

    def counted(request: Request, *given: Any) -> object:
        asked.append(request)
        return plan(request, *given)

    monkeypatch.setattr(Request, "plan", counted)
    return asked


ASKED_OF_MANY = (
    "SELECT rank, id, name FROM kernels",
    "SELECT id, name FROM kernels LIMIT 90",
    "SELECT guid, name, count(*) FROM kernels GROUP BY guid, name",
    f"SELECT rank, id FROM kernels WHERE id IN ({', '.join(map(str, range(1, 40, 2)))})",
    f"SELECT rank, id FROM kernels WHERE rank IN ({', '.join(map(str, range(1, 20, 2)))})",
    "SELECT DISTINCT name FROM kernels WHERE rank NOT IN (3, 4, 5, 9, 11, 13, 17)",
)
SELECTIONS: dict[str, Callable[[rocpd.Session], rocpd.Session]] = {
    "all": lambda session: session,
    "window": lambda session: session.within(rocpd.Window("10%", "60%")),
    "kernels": lambda session: session.where(rocpd.Filters(kernel="k[0-4]")),
    "streams": lambda session: session.where(rocpd.Filters(streams="0-3")),
}


def test_one_rank_is_asked_for_its_plan(planned: list[object], tmp_path: Path) -> None:
    """Ranks differ in their suffix, in the numbers of a window and in which kernels they have."""
    files = []
    for rank in range(8):
        trace = TraceBuilder(rank)
        for row in range(20):
            trace.kernel(f"k{row % (1 + rank)}", 1000 + rank + row * 10, 1005 + rank + row * 10, stack=row)
        files.append(trace.write(tmp_path / f"{rank}.db"))
    with _both(files, tmp_path / "index") as both:
        for name, select in SELECTIONS.items():
            indexed, plain = map(select, both)
            for sql in ASKED_OF_MANY:
                planned.clear()
                columnar = indexed.execute(sql, strategy="columnar").fetchall()
                assert 0 < len(planned) <= (2 if name == "kernels" else 1), (name, sql)
                assert columnar == plain.execute(sql).fetchall(), (name, sql)


def test_few_files_stay_open(tmp_path: Path) -> None:
    files = [_rank(tmp_path / f"{rank}.db", rank) for rank in range(30)]
    with _both(files, tmp_path / "index") as (indexed, _):
        before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
        for rank in range(30):
            part = indexed.where(rocpd.Filters(ranks=str(rank)))
            assert part.execute("SELECT id FROM memory_copies LIMIT 1", strategy="columnar").fetchall() == [(1,)]
        assert len(os.listdir("/proc/self/fd")) - before <= 17  # noqa: PTH208


def test_no_row_of_a_key_of_two_is_lost(tmp_path: Path) -> None:
    """An id may occur twice, also where one piece of rows ends and the next one starts."""
    file = TraceBuilder().copy(1, 2, size=1).write(tmp_path / "0.db")
    _with_key(file, '"id" INTEGER', "PRIMARY KEY (id, size)")
    rows = "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)"
    columns = ("guid", "nid", "pid", "tid", "start", '"end"', "name_id", "dst_agent_id", "src_agent_id", "event_id")
    listed = ", ".join(columns)
    _change(
        file,
        f'{rows} INSERT INTO "rocpd_memory_copy{{uuid}}" (id, size, {listed})'
        f' SELECT i / 2, i, {", ".join(f"M.{each}" for each in columns)} FROM n, "rocpd_memory_copy{{uuid}}" M',
    )
    sql = "SELECT count(*), sum(size) FROM memory_copies"
    with _both([file], tmp_path / "index") as (indexed, plain):
        assert indexed.execute(sql, strategy="columnar").fetchall() == plain.execute(sql).fetchall()
