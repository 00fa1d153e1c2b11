"""Merging: every row of every table, views that any SQLite reads, complete or not at all."""

from __future__ import annotations

import contextlib
import itertools
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

import rocpd
from rocpd.base import InputError, OutputError
from rocpd.federate import merge as merging
from rocpd.federate.merge import merge
from rocpd.schema import render
from rocpd.schema.load import VIEWS
from rocpd.schema.quote import quote_name
from rocpd.schema.render import RankTables
from rocpd.schema.versions import suffix_of
from rocpd.schema.write import Writer
from rocpd.simulator import JobOptions, simulate
from tests.build import TraceBuilder, guid_of
from tests.conftest import Shell, state_of
from tests.places import small_disk
from tests.soak import sample, sized

SUFFIX = [suffix_of(guid_of(number)) for number in range(4)]


def trace(number: int, **who: Any) -> TraceBuilder:
    """One row of every kind."""
    built = TraceBuilder(number, **{"pid": 16 + number, **who})
    built.region("hipLaunchKernel", 10, 20, stack=1).arg("stream", "0x0")
    built.kernel("gemm", 30 + number, 40 + 2 * number, stack=1).counter("SQ_WAVES", 8).copy(50, 60).alloc(1, 2)
    built.alloc(3, 4, level="SCRATCH").region("roctxRangePushA", 5, 90, message="step").sample("roctxMarkA", 6)
    return built


def merged(folder: Path, *inputs: Path, name: str = "merged.db") -> Path:
    with rocpd.connect(inputs) as session:
        merge(session, folder / name)
    return folder / name


def content(path: Path) -> dict[str, list[Any]]:
    """All rows of all real tables, in order of rowid, and the texts of all indexes."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'rocpd%'")
    rows_of = {str(name): connection.execute(f'SELECT * FROM "{name}"').fetchall() for (name,) in tables.fetchall()}
    indexes = connection.execute("SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL ORDER BY 1")
    return {**rows_of, "indexes": indexes.fetchall()}


def views_of_session(*inputs: Path) -> dict[str, list[Any]]:
    with rocpd.connect(inputs) as session:
        return {view: sorted(session.sql(f"SELECT * FROM {view}").fetchall(), key=repr) for view in VIEWS}


def stored_views(path: Path) -> dict[str, list[Any]]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    return {view: sorted(connection.execute(f"SELECT * FROM {view}").fetchall(), key=repr) for view in VIEWS}


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    return trace(0).write(tmp_path / "0.db", views=True), trace(1, host="node1").write(tmp_path / "1.db", views=True)


def test_every_row_of_every_table(pair: tuple[Path, Path], tmp_path: Path) -> None:
    out = merged(tmp_path, *pair)
    assert content(out) == content(pair[0]) | content(pair[1])
    assert apsw.Connection(str(out)).pragma("integrity_check") == "ok"
    assert apsw.Connection(str(out)).execute("PRAGMA foreign_key_check").fetchall() == []


def test_extra_tables_columns_and_indexes_come_along(tmp_path: Path) -> None:
    """Two tools gave their indexes equal names in both files; a merged file can hold a name once."""
    for number in (0, 1):
        built = trace(number).sql('CREATE TABLE "rocpd_notes{uuid}" (body, at REAL)')
        built.sql("""INSERT INTO "rocpd_notes{uuid}" VALUES (x'00ff', 1.5), ('é', NULL)""")
        built.sql('CREATE TABLE "rocpd_pairs{uuid}" (a, b, PRIMARY KEY (a, b)) WITHOUT ROWID')
        built.sql('INSERT INTO "rocpd_pairs{uuid}" VALUES (2, 1), (1, 2)')
        built.sql('ALTER TABLE "rocpd_region{uuid}" ADD COLUMN "odd name" TEXT DEFAULT \'x\'')
        built.sql('CREATE INDEX by_start ON "rocpd_region{uuid}" (start) WHERE start > 5')
        built.sql('CREATE UNIQUE INDEX [by (id)] ON "rocpd_sample{uuid}" (id)').write(tmp_path / f"{number}.db")
    out = merged(tmp_path, tmp_path / "0.db", tmp_path / "1.db")
    for number in (0, 1):
        expected = content(tmp_path / f"{number}.db")
        assert {name: rows for name, rows in content(out).items() if name.endswith(SUFFIX[number])} == {
            name: rows for name, rows in expected.items() if name != "indexes"
        }
    assert [text for (text,) in content(out)["indexes"]] == [
        text
        for suffix in SUFFIX[:2]
        for text in (f'CREATE INDEX "by_start{suffix}" ON "rocpd_region{suffix}" (start) WHERE start > 5',)
    ] + [f'CREATE UNIQUE INDEX "by (id){suffix}" ON "rocpd_sample{suffix}" (id)' for suffix in SUFFIX[:2]]
    with rocpd.connect(out) as session:
        assert session.sql('SELECT DISTINCT "odd name" FROM rocpd_region').fetchall() == [("x",)]
        assert session.sql("SELECT count(*) FROM rocpd_notes").fetchall() == [(4,)]


def test_stored_views_are_those_of_the_session(pair: tuple[Path, Path], tmp_path: Path) -> None:
    out = merged(tmp_path, *pair)
    assert stored_views(out) == views_of_session(*pair) == views_of_session(out)


def test_sqlite_shell_shows_the_job_as_one(pair: tuple[Path, Path], tmp_path: Path, sqlite3_shell: Shell) -> None:
    out = merged(tmp_path, *pair)
    assert sqlite3_shell(out, "SELECT rank, hostname, pid, duration FROM kernels ORDER BY rank") == (
        "0|node0|16|10\n1|node1|17|11"
    )
    assert sqlite3_shell(out, "SELECT rank, hostname FROM processes ORDER BY rank") == "0|node0\n1|node1"
    assert sqlite3_shell(out, "SELECT * FROM top_kernels") == "gemm|2|0.021|0.0105|100.0"
    assert sqlite3_shell(out, "SELECT count(*) FROM rocpd_region") == "4"
    counts = sqlite3_shell(out, " UNION ALL ".join(f"SELECT '{v} ' || count(*) FROM {v}" for v in VIEWS))
    expected = {view: len(rows) for view, rows in views_of_session(*pair).items()}
    assert {name: int(count) for name, count in map(str.split, counts.splitlines())} == expected


def test_merging_merged_files_gives_the_same(tmp_path: Path) -> None:
    parts = [trace(n).sql('CREATE INDEX by_start ON "rocpd_region{uuid}" (start)') for n in range(4)]
    files = [part.write(tmp_path / f"{i}.db", views=True) for i, part in enumerate(parts)]
    whole = merged(tmp_path, *files, name="whole.db")
    left, right = merged(tmp_path, *files[:2], name="left.db"), merged(tmp_path, *files[2:], name="right.db")
    again = merged(tmp_path, right, left, name="again.db")
    assert content(again) == content(whole)
    assert stored_views(again) == stored_views(whole)
    assert content(merged(tmp_path, whole, name="copy.db")) == content(whole)


def test_overlapping_inputs_count_each_guid_once(tmp_path: Path) -> None:
    files = [trace(n).write(tmp_path / f"{n}.db") for n in range(3)]
    left, right = merged(tmp_path, *files[:2], name="left.db"), merged(tmp_path, *files[1:], name="right.db")
    notes: list[str] = []
    with rocpd.connect([left, right, files[2]], on_note=notes.append) as session:
        merge(session, tmp_path / "all.db")
    assert content(tmp_path / "all.db") == content(merged(tmp_path, *files, name="expected.db"))
    assert [guid_of(1) in notes[0], guid_of(2) in notes[1], len(notes)] == [True, True, 2]


def test_schema_versions_mix(tmp_path: Path) -> None:
    old = trace(0).write(tmp_path / "old.db", "3.0.0", views=True)
    new = trace(1).graph_launch(7, 9).write(tmp_path / "new.db", "3.0.3", views=True)
    out = merged(tmp_path, old, new)
    assert content(out) == content(old) | content(new)
    assert stored_views(out) == views_of_session(old, new)
    with rocpd.connect(out) as session:
        assert [rank.version for rank in session.ranks] == ["3.0.0", "3.0.3"]
        rows = session.sql("SELECT rank, count(graph_exec_id) FROM graph_launches GROUP BY rank").fetchall()
        assert rows == [(1, 1)]


def test_rows_that_break_a_constraint_are_kept(tmp_path: Path) -> None:
    """An agent type that a later version of the profiler knows."""
    built = trace(0).sql("PRAGMA ignore_check_constraints = 1")
    path = built.sql("UPDATE \"rocpd_info_agent{uuid}\" SET type = 'NPU' WHERE id = 2").write(tmp_path / "0.db")
    assert content(merged(tmp_path, path)) == content(path)


def test_tables_of_no_rank_are_noted(tmp_path: Path) -> None:
    path = trace(0).sql("CREATE TABLE roc_optiq_bookmarks (a)").sql("CREATE TABLE notes (a)").write(tmp_path / "0.db")
    with rocpd.connect([path]) as session:
        merge(session, tmp_path / "out.db")
        assert session.notes == [f"{path}: not merged, tables that belong to no rank: notes, roc_optiq_bookmarks"]
    assert not {"notes", "roc_optiq_bookmarks"} & set(content(tmp_path / "out.db"))


def test_inputs_are_not_touched(pair: tuple[Path, Path], tmp_path: Path) -> None:
    before = state_of(tmp_path)
    out = merged(tmp_path, *pair)
    assert {**before, "merged.db": state_of(tmp_path)[out.name]} == state_of(tmp_path)


MANY = ("rocpd_metadata", "rocpd_string", "rocpd_info_node", "rocpd_info_process", "rocpd_kernel_dispatch")


def tiny(number: int, path: Path) -> Path:
    """A rank with few tables: SQLite's own CREATE TABLE gets slower with each table in a file."""
    built = TraceBuilder(number, pid=100 + number, host=f"node{number // 8:03}").kernel("gemm", 10, 20 + number)
    built.rows = {base: rows for base, rows in built.rows.items() if base in MANY}
    connection = apsw.Connection(str(path))
    connection.pragma("synchronous", 0)
    connection.pragma("journal_mode", "off")
    connection.execute("BEGIN")
    writer = Writer(connection, built.guid, "3.0.3")
    writer.tables = {base: columns for base, columns in writer.tables.items() if base in MANY}
    writer.create_tables()
    built.write_into(writer)
    connection.execute("COMMIT")
    connection.close()
    return path


@pytest.mark.soak(8)
def test_more_ranks_than_a_compound_select_has_parts(
    tmp_path: Path, sqlite3_shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From more files than can be attached, some of which are merged already; views have 500 parts in a soak."""
    count, some, parts = sized((144, 24, 100), (504, 84, render.COMPOUND_LIMIT))
    monkeypatch.setattr(render, "COMPOUND_LIMIT", parts)
    files = [tiny(number, tmp_path / f"{number:03}.db") for number in range(count)]
    out = merged(tmp_path, merged(tmp_path, *files[:some], name="group.db"), *files[some:])
    wanted = "SELECT count(*), count(DISTINCT rank), sum(duration), count(DISTINCT hostname) FROM kernels"
    expected = (count, count, sum(range(10, count + 10)), count // 8)
    assert sqlite3_shell(out, wanted) == "|".join(map(str, expected))
    with rocpd.connect(out) as session:
        assert session.sql(wanted).fetchall() == [expected]
        last = session.sql(f"SELECT pid, duration FROM kernels WHERE rank = {count - 1}").fetchall()
        assert last == [(count + 99, count + 9)]


def test_tables_of_every_kind_keep_their_own_text(tmp_path: Path, sqlite3_shell: Shell) -> None:
    """Tables get their texts after they were created: SQLite's own shell reads and checks them, and can add rows."""
    kinds = {
        "counted": "(id INTEGER PRIMARY KEY AUTOINCREMENT, v TEXT DEFAULT 'none')",
        "keyless": "(a, b /* without: rowid */)",
        "unique": "(a INTEGER, b TEXT UNIQUE)",
        "keyed": "(a TEXT PRIMARY KEY, b REAL) WITHOUT ROWID",
        "late": "(a INTEGER, id INTEGER PRIMARY KEY)",
        "strict": "(a INTEGER, b TEXT) STRICT",
        "made": "(a INTEGER, b INTEGER AS (a + 1) STORED, c AS (a * 2))",
    }
    files = []
    for number in range(2):
        built = trace(number)
        for kind, columns in kinds.items():
            built = built.sql(f'CREATE TABLE "rocpd_{kind}{{uuid}}" {columns}')
            column = "v" if kind == "counted" else "a"
            built = built.sql(f'INSERT INTO "rocpd_{kind}{{uuid}}" ({column}) VALUES (7), (8)')
        files.append(built.write(tmp_path / f"{number}.db"))
    out = merged(tmp_path, *files)
    assert sqlite3_shell(out, "PRAGMA integrity_check; PRAGMA foreign_key_check") == "ok"
    texts = "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name LIKE 'rocpd%'"
    sources = [row for file in files for row in apsw.Connection(str(file)).execute(texts).fetchall()]
    connection = apsw.Connection(str(out))
    assert sorted(connection.execute(texts).fetchall()) == sorted(sources)
    counted = f'"rocpd_counted{SUFFIX[1]}"'
    connection.execute(f"DELETE FROM {counted}; INSERT INTO {counted} DEFAULT VALUES")
    assert connection.execute(f"SELECT * FROM {counted}").fetchall() == [(3, "none")]
    assert connection.execute(f'SELECT * FROM "rocpd_made{SUFFIX[0]}"').fetchall() == [(7, 8, 14), (8, 9, 16)]


def test_far_apart_ids_and_many_rows_are_copied_in_steps(tmp_path: Path) -> None:
    """More rows than a step takes, with gaps larger than a step, negative ids, and the largest id there is."""
    rows = 70_000
    fill = f"WITH n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n LIMIT {rows}) INSERT INTO "
    path = TraceBuilder().sql(
        fill + "\"rocpd_string{uuid}\" (id, string) SELECT i * 100003 - 350000000, 's' || i FROM n"
    )
    path = path.sql("""INSERT INTO "rocpd_string{uuid}" (id, string) VALUES (9223372036854775807, 'last')""")
    path = path.sql('CREATE TABLE "rocpd_keyed{uuid}" (k TEXT PRIMARY KEY, v) WITHOUT ROWID')
    path = path.sql(fill + "\"rocpd_keyed{uuid}\" SELECT printf('%05d', i), i FROM n")
    source = path.write(tmp_path / "0.db")
    steps: list[tuple[int, int]] = []
    with rocpd.connect([source]) as session:
        merge(session, tmp_path / "out.db", progress=lambda done, total: steps.append((done, total)))
    assert content(tmp_path / "out.db") == content(source)
    assert len(content(source)[f"rocpd_string{SUFFIX[0]}"]) == rows + 2
    done, totals = zip(*steps, strict=True)
    assert list(done) == sorted(set(done))
    assert {done[-1]} == set(totals)
    assert max(b - a for a, b in itertools.pairwise(done)) <= 70_000


def test_existing_output_stays_unless_forced(pair: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "merged.db"
    out.write_text("mine")
    with pytest.raises(OutputError, match=r"merged\.db: exists"):
        merged(tmp_path, *pair)
    assert out.read_text() == "mine"
    with rocpd.connect(pair) as session:
        merge(session, out, force=True)
    assert content(out) == content(pair[0]) | content(pair[1])


def test_suffixes_that_differ_in_capitals_are_refused(tmp_path: Path) -> None:
    first, second = trace(10).write(tmp_path / "0.db"), trace(10).kernel("other", 1, 2)
    second.guid = second.guid.upper()
    second.write(tmp_path / "1.db")
    with pytest.raises(InputError, match=r"0\.db: its table suffix is also used in .*1\.db"):
        merged(tmp_path, first, tmp_path / "1.db")


def test_a_lost_row_is_noticed(pair: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy_rows = merging._copy_rows

    def lossy(connection: apsw.Connection, base: str, tables: RankTables, count: int) -> Iterator[int]:
        yield from copy_rows(connection, base, tables, count)
        if base == "rocpd_region":
            connection.execute(f"DELETE FROM main.{quote_name(base + tables.suffix)} WHERE rowid = 1")

    monkeypatch.setattr(merging, "_copy_rows", lossy)
    before = state_of(tmp_path)
    with pytest.raises(
        OutputError, match=r"merged\.db: verification failed: rocpd_region_\w+ has 1 rows, its source 2"
    ):
        merged(tmp_path, *pair)
    assert state_of(tmp_path) == before


def test_a_damaged_copy_is_noticed(pair: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store_views = merging._store_views

    def damaging(connection: apsw.Connection, session: rocpd.Session) -> None:
        store_views(connection, session)
        connection.execute("CREATE TABLE broken (a); INSERT INTO broken VALUES (NULL)")
        connection.pragma("writable_schema", True)
        connection.execute("UPDATE sqlite_master SET sql = 'CREATE TABLE broken (a NOT NULL)' WHERE name = 'broken'")
        connection.pragma("writable_schema", "RESET")

    monkeypatch.setattr(merging, "_store_views", damaging)
    before = state_of(tmp_path)
    with pytest.raises(OutputError, match=r"merged\.db: verification failed: quick_check says NULL value in"):
        merged(tmp_path, *pair)
    assert state_of(tmp_path) == before


def test_a_damaged_source_is_named(pair: tuple[Path, Path], tmp_path: Path) -> None:
    bad = break_table(pair[1], "rocpd_region")
    before = state_of(tmp_path)
    with pytest.raises(InputError, match=rf"^{bad}: damaged: "):
        merged(tmp_path, *pair)
    assert state_of(tmp_path) == before


def break_table(path: Path, base: str) -> Path:
    """Overwrite the page that holds a table's rows; the file opens as if nothing was wrong."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (base + SUFFIX[1],)).get
    size = connection.pragma("page_size")
    connection.close()
    with path.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * size)
    return path


SLOW_MERGE = """
import sys, time
import rocpd.federate.merge as merging
from rocpd.cli import run
original = merging._copy_rows
def slow(connection, base, part, count):
    for copied in original(connection, base, part, count):
        print("copying", flush=True)
        time.sleep(0.05)
        yield copied
    if base == "rocpd_region":
        time.sleep(60)
merging._copy_rows = slow
sys.exit(run(["merge", sys.argv[1], "-o", sys.argv[2]]))
"""


def test_a_live_wal_file_is_merged_while_its_writer_goes_on(tmp_path: Path) -> None:
    raw = tmp_path / "raw.db"
    trace(0).write(raw)
    writer = sqlite3.connect(raw, timeout=0, isolation_level=None)
    writer.execute("PRAGMA journal_mode = wal")
    table = quote_name("rocpd_string" + SUFFIX[0])
    writer.execute(f"INSERT INTO {table} (string) VALUES ('before')")
    commits = []

    def commit(done: int, total: int) -> None:
        commits.append(writer.execute(f"INSERT INTO {table} (string) VALUES ('meanwhile {done}')").rowcount)

    with rocpd.connect(raw) as session:
        merge(session, tmp_path / "merged.db", progress=commit)
    writer.close()
    assert commits
    with rocpd.connect(tmp_path / "merged.db") as session:
        assert session.execute("SELECT COUNT(*) FROM rocpd_string WHERE string = 'before'").fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("what", "code", "left"),
    [(signal.SIGKILL, -9, 1), (signal.SIGTERM, 143, 0), (signal.SIGINT, 130, 0)],
    ids=["kill", "term", "int"],
)
def test_ended_in_the_middle(pair: tuple[Path, Path], tmp_path: Path, what: int, code: int, left: int) -> None:
    folder = tmp_path / "out"
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_MERGE, str(pair[0]), str(folder / "merged.db")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "copying\n"
    assert [path.suffix for path in folder.iterdir()] == [".partial"]
    process.send_signal(what)
    _, said = process.communicate()
    assert process.returncode == code
    assert "Traceback" not in said
    assert [path.suffix for path in folder.rglob("*")] == [".partial"] * left
    assert folder.exists() == bool(left)


def test_full_disk(tmp_path: Path) -> None:
    built = trace(0).sql(
        "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300) "
        'INSERT INTO "rocpd_string{uuid}" (string) SELECT hex(randomblob(4000)) FROM n'
    )
    source = built.write(tmp_path / "0.db")
    with small_disk(tmp_path / "small") as disk, rocpd.connect([source]) as session:
        with pytest.raises(OutputError, match=r"small/new/merged\.db: cannot be written: No space left"):
            merge(session, disk / "new" / "merged.db")
        assert list(disk.iterdir()) == []


@pytest.mark.parametrize(
    ("window", "filters", "is_odd"),
    [
        (rocpd.Window("30%", "90%"), None, False),
        (rocpd.Window("30%", "90%", clip=True), None, True),
        (None, rocpd.Filters(kernel="gemm|Cijk"), False),
        (None, rocpd.Filters(ranks="1", categories="HIP,KERNELS"), True),
        (rocpd.Window("30%"), rocpd.Filters(categories="KERNELS"), True),
    ],
)
@pytest.mark.soak(2)
def test_what_counts_is_what_is_merged(
    window: rocpd.Window | None, filters: rocpd.Filters | None, is_odd: bool, tmp_path: Path
) -> None:
    """A merged selection has the selected rows, in every table and view; all its references have a target.

    Some selections compare each other table and view, others those between; in a soak each compares all.
    """
    files = list(simulate(JobOptions(out=tmp_path / "job", ranks=2, events_per_rank=300)))
    before = [state_of(file) for file in files]
    with rocpd.connect(files, window=window, filters=filters) as session:
        merge(session, tmp_path / "merged.db")
        with rocpd.connect(tmp_path / "merged.db") as merged:
            kernels = merged.execute("SELECT count(*) FROM kernels").fetchall()[0][0]
            assert 0 < kernels < 200
            for name in sample(list(session.tables), 2, is_odd):
                columns = [c for c in session.execute(f'SELECT * FROM "{name}" LIMIT 0').columns if c != "rank"]
                sql = f"SELECT {', '.join(map(quote_name, columns))} FROM {name}"
                if name == "rocpd_metadata":  # holds the window too
                    sql += " WHERE tag <> 'rocpd_window'"
                wanted, actual = (Counter(map(repr, s.execute(sql))) for s in (session, merged))
                assert actual == wanted, name
    with contextlib.closing(sqlite3.connect(tmp_path / "merged.db")) as plain:
        assert plain.execute("PRAGMA foreign_key_check").fetchall() == []
        assert plain.execute("SELECT count(*) FROM kernels").fetchone() == (kernels,)
    assert [state_of(file) for file in files] == before
