"""Rendering: which relations a statement names, and views over more ranks than a compound SELECT may have parts."""

from __future__ import annotations

import dataclasses
import pickle
from pathlib import Path

import apsw
import pytest

import rocpd
from rocpd.schema.load import OPTIONAL_TABLES, TABLES, VIEWS, table, view
from rocpd.schema.quote import quote_name
from rocpd.schema.render import RankTables, create_view_text, named, relations, select_text, with_relations
from rocpd.schema.versions import LATEST, suffix_of
from rocpd.schema.write import Writer, create_table_text, tables_of
from tests.build import TraceBuilder, guid_of
from tests.conftest import Shell
from tests.soak import sample

RANKS = 504
KEPT = ("rocpd_string", "rocpd_info_node", "rocpd_info_process", "rocpd_info_kernel_symbol", "rocpd_event")
TIMED = ("rocpd_region", "rocpd_kernel_dispatch")
"""Few tables per rank: SQLite reads its whole catalogue for every view."""

PART = RankTables(suffix_of(guid_of(0)), tables_of(LATEST), "f0", 0, "node0")


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select 1", ()),
        ("select * from kernels", ("kernels",)),
        ('SELECT * FROM Kernels k JOIN "regions" r', ("kernels", "regions")),
        ("select * from markers", ("regions", "sample_regions", "regions_and_samples", "markers")),
        (
            "select * from busy",
            ("rocpd_info_agent", "rocpd_kernel_dispatch", "rocpd_memory_copy", "processes", "agents", "busy"),
        ),
        ("select * from top_kernels_of_mine", ()),
    ],
)
def test_only_what_a_statement_names_is_created(sql: str, expected: tuple[str, ...]) -> None:
    assert named(sql, relations([PART])) == expected


def test_another_process_is_not_sent_what_is_known_of_a_rank() -> None:
    used = dataclasses.replace(PART)
    assert with_relations("SELECT count(*) FROM kernels", used)
    assert vars(used) != vars(PART)
    assert pickle.dumps(used) == pickle.dumps(PART)
    assert vars(pickle.loads(pickle.dumps(used))) == vars(PART)


def test_relations_are_tables_then_what_files_add_then_views() -> None:
    part = RankTables("_x", {**tables_of(LATEST), "rocpd_added": ("id",)})
    assert relations([part]) == (*TABLES, "rocpd_added", *VIEWS)


@pytest.mark.parametrize("name", [name for name in VIEWS if view(name).per_rank])
def test_rank_and_hostname_come_last(name: str) -> None:
    optional = {base: tuple(column.name for column in table(base).columns) for base in OPTIONAL_TABLES}
    text = select_text(name, [dataclasses.replace(PART, columns={**PART.columns, **optional})])
    documented = [column.name for column in view(name).columns]
    assert ',\n    0 AS "rank"' in text
    assert (",\n    'node0' AS \"hostname\"\nFROM" in text) == ("hostname" not in documented)
    assert '"rank"' not in select_text(name, [RankTables(PART.suffix, PART.columns)])


def test_a_hostname_with_quotes_is_text() -> None:
    part = RankTables("_x", tables_of(LATEST), None, 3, 'it\'s "odd"')
    assert ',\n    3 AS "rank",\n    \'it\'\'s "odd"\' AS "hostname"' in select_text("kernels", [part])


def test_columns_that_a_file_lacks_are_null_and_those_it_adds_are_carried() -> None:
    old = RankTables("_a", {"rocpd_sample": ("id", "guid", "track_id", "timestamp")})
    new = RankTables("_b", {"rocpd_sample": ("ID", "guid", "track_id", "timestamp", "event_id", "extdata", "colour")})
    assert select_text("rocpd_sample", [old, new]) == (
        'SELECT "id", "guid", "track_id", "timestamp", NULL AS "event_id", NULL AS "extdata", NULL AS "colour"'
        ' FROM "rocpd_sample_a"\nUNION ALL\n'
        'SELECT "id", "guid", "track_id", "timestamp", "event_id", "extdata", "colour" FROM "rocpd_sample_b"'
    )


def test_a_table_that_no_file_has_is_empty_with_its_columns() -> None:
    connection = apsw.Connection(":memory:")
    for name in (*TABLES, *VIEWS):
        connection.execute(create_view_text(name, select_text(name, [RankTables("_x", {}, None, 0, "h")])))
    for name in VIEWS:
        assert connection.execute(f"SELECT * FROM {name}").fetchall() == []
        columns = [row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (name,))]
        assert columns[: len(view(name).columns)] == [column.name for column in view(name).columns]


def many(path: Path) -> Path:
    """One file that holds the tables of more ranks than a compound SELECT may have parts, and views over them.

    Tables are created with short texts and get their own afterwards: SQLite reads all texts again for each new table.
    """
    connection = apsw.Connection(str(path))
    connection.pragma("synchronous", 0)
    connection.pragma("journal_mode", "off")
    connection.execute("BEGIN")
    connection.execute("CREATE TABLE rocpd_metadata (id INTEGER PRIMARY KEY, tag TEXT, value TEXT)")
    connection.execute("CREATE TABLE counted (id INTEGER PRIMARY KEY AUTOINCREMENT); DROP TABLE counted")
    tables = {name: tables_of(LATEST)[name] for name in (*KEPT, *TIMED)}
    writers = [Writer(connection, guid_of(number), LATEST) for number in range(RANKS)]
    texts = {name + each.suffix: create_table_text(name, each.suffix, each.guid) for each in writers for name in tables}
    own = {name: text for name, text in texts.items() if "UNIQUE" not in text}  # which makes an index, too
    for name, text in texts.items():
        connection.execute(f"CREATE TABLE {quote_name(name)} (id INTEGER PRIMARY KEY)" if name in own else text)
    rows = connection.execute("SELECT name, rowid FROM sqlite_master WHERE type = 'table'").fetchall()
    connection.pragma("writable_schema", True)
    changes = [(own[str(name)], row) for name, row in rows if name in own]
    connection.executemany("UPDATE sqlite_master SET sql = ? WHERE rowid = ?", changes)
    connection.execute("COMMIT")
    connection.pragma("writable_schema", "RESET")  # reads the new texts
    connection.execute("BEGIN")
    parts = []
    for number, writer in enumerate(writers):
        trace = TraceBuilder(number, pid=number + 1)
        trace.region("roctxRangePushA", 1, 5, message="step").kernel("gemm", 10, 20 + number)
        trace.rows = {base: rows for base, rows in trace.rows.items() if base in tables}
        trace.write_into(writer)
        facts = [("uuid", writer.suffix), ("guid", writer.guid)]
        connection.executemany("INSERT INTO rocpd_metadata (tag, value) VALUES (?, ?)", facts)
        parts.append(RankTables(writer.suffix, tables, None, number, "node0"))
    connection.pragma("writable_schema", True)
    views = ((name, name, create_view_text(name, select_text(name, parts))) for name in (*TABLES[1:], *VIEWS))
    connection.executemany("INSERT INTO sqlite_master VALUES ('view', ?, ?, 0, ?)", views)
    connection.execute("COMMIT")
    connection.close()
    return path


TOTAL = sum(10 + number for number in range(RANKS))
MANY = (
    ("SELECT count(*), sum(duration), count(DISTINCT rank) FROM kernels", (RANKS, TOTAL, RANKS)),
    ("SELECT name, total_calls, percentage FROM top_kernels", ("gemm", RANKS, 100.0)),
    ("SELECT count(*), sum(GpuTime) FROM busy", (RANKS, TOTAL)),
    ("SELECT name, function, count(*) FROM markers", ("step", "roctxRangePushA", RANKS)),
    ("SELECT calls, total_ns FROM kernel_summary", (RANKS, TOTAL)),
    ("SELECT region, calls FROM kernel_summary_region", ("", RANKS)),
    ("SELECT count(*) FROM memory_copies", (0,)),
    ("SELECT count(*), max(rank), min(hostname) FROM processes", (RANKS, RANKS - 1, "node0")),
    ("SELECT count(*) FROM rocpd_event", (2 * RANKS,)),
)


@pytest.mark.soak(7)
def test_more_than_500_ranks_in_one_file(tmp_path: Path, sqlite3_shell: Shell) -> None:
    """Each view over so many ranks takes seconds: the shell reads some, the session others."""
    path = many(tmp_path / "many.db")
    in_shell, here = sample(MANY, 16, 1), sample(MANY, 16)
    said = sqlite3_shell(path, ";\n".join(sql for sql, _ in in_shell))
    assert said.splitlines() == ["|".join(map(str, row)) for _, row in in_shell]
    with rocpd.connect(path) as session:
        assert len(session.ranks) == RANKS
        assert [session.sql(sql).fetchall() for sql, _ in here] == [[row] for _, row in here]


def test_summaries_work_above_a_hundred_ranks_of_ten_tables_each(tmp_path: Path) -> None:
    """SQLite 3.54 counts tables under a WITH clause and refuses the thousandth: ours have no WITH."""
    path = TraceBuilder().kernel("gemm", 1, 4).copy(5, 9).write(tmp_path / "a.db")
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    parts = [RankTables(PART.suffix, PART.columns, "main", rank, "h") for rank in range(110)]
    for name in ("kernels", "memory_copies"):
        connection.execute(create_view_text(name, select_text(name, parts), temporary=True))
    for name in ("kernel_summary", "kernel_summary_region", "memory_copy_summary"):
        rows = connection.execute(f"SELECT calls, std_ns FROM ({select_text(name, parts)})").fetchall()
        assert rows == [(110, 0.0)], name


def test_names_are_quoted_once() -> None:
    assert (
        RankTables('_x"y', {}, "f1").name("rocpd_arg") == quote_name("f1", 'rocpd_arg_x"y') == '"f1"."rocpd_arg_x""y"'
    )
