"""The one connection: everything that writes is refused, and the files prove it."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

import rocpd
from rocpd.base import InputError, QueryError
from rocpd.schema.load import VIEWS, view
from rocpd.schema.versions import suffix_of
from tests.build import TraceBuilder, guid_of
from tests.conftest import OpenJob, state_of

TABLE = f'f0."rocpd_region{suffix_of(guid_of(0))}"'

WRITES = [
    f"INSERT INTO {TABLE} (id) VALUES (9)",
    f"INSERT OR REPLACE INTO {TABLE} SELECT * FROM {TABLE}",
    f"UPDATE {TABLE} SET start = 0",
    f"DELETE FROM {TABLE}",
    f"WITH x AS (SELECT 1) DELETE FROM {TABLE}",
    "INSERT INTO rocpd_region (id) VALUES (9)",
    "DELETE FROM rocpd_region",
    "UPDATE regions SET start = 0",
    f"DROP TABLE {TABLE}",
    "DROP VIEW f0.kernels",
    f"ALTER TABLE {TABLE} RENAME TO x",
    f"ALTER TABLE {TABLE} ADD COLUMN x",
    "CREATE TABLE f0.x (a)",
    "CREATE TABLE main.x (a)",
    "CREATE TABLE x (a)",
    "CREATE VIEW f0.x AS SELECT 1",
    f"CREATE INDEX f0.x ON {TABLE.removeprefix('f0.')} (start)",
    "CREATE VIRTUAL TABLE f0.x USING fts5(a)",
    f"CREATE TRIGGER f0.x AFTER INSERT ON {TABLE.removeprefix('f0.')} BEGIN SELECT 1; END",
    "ATTACH ':memory:' AS other",
    "DETACH f0",
    "VACUUM",
    "VACUUM f0",
    "REINDEX f0.x",
    "ANALYZE",
    "ANALYZE f0",
    "PRAGMA journal_mode = wal",
    "PRAGMA f0.journal_mode = wal",
    "PRAGMA f0.user_version = 7",
    "PRAGMA user_version = 7",
    "PRAGMA writable_schema = 1",
    "PRAGMA query_only = 0",
    "PRAGMA optimize",
    "PRAGMA wal_checkpoint",
    "PRAGMA incremental_vacuum",
    "PRAGMA temp_store_directory = '/tmp'",
    "SELECT load_extension('x')",
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return TraceBuilder().region("f", 10, 20).kernel("gemm", 12, 18).write(tmp_path / "data" / "a.db")


@pytest.mark.parametrize("sql", WRITES)
def test_what_writes_is_refused(sql: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = state_of(path.parent)
    monkeypatch.chdir(path.parent)
    with rocpd.connect(path) as session:
        session.execute("SELECT 1 FROM regions, rocpd_region")
        with pytest.raises(QueryError):
            session.execute(sql).fetchall()
        assert session.sql("SELECT count(*) FROM kernels").fetchall() == [(1,)]
    assert state_of(path.parent) == before


@pytest.mark.parametrize(
    "target", ["VACUUM INTO '{}/x.db'", "ATTACH '{}/x.db' AS x", "ATTACH 'file:{}/x.db?mode=rwc' AS x"]
)
def test_no_file_is_made(target: str, path: Path) -> None:
    before = state_of(path.parent)
    with rocpd.connect(path) as session, pytest.raises(QueryError):
        session.execute(target.format(path.parent))
    assert state_of(path.parent) == before


def test_a_refusal_says_what_is_allowed(path: Path) -> None:
    with (
        rocpd.connect(path) as session,
        pytest.raises(QueryError, match="refused: this statement would write") as error,
    ):
        session.execute(f"DELETE FROM {TABLE}")
    assert "CREATE TEMP TABLE" in (error.value.hint or "")


TEMP = """
CREATE TEMP TABLE mine (a, b);
INSERT INTO mine SELECT name, duration FROM kernels;
ALTER TABLE mine RENAME COLUMN b TO twice;
UPDATE mine SET twice = twice * 2;
CREATE INDEX temp.mine_a ON mine (a);
CREATE TEMP VIEW seen AS SELECT * FROM mine;
CREATE TEMP TRIGGER t AFTER DELETE ON mine BEGIN INSERT INTO mine VALUES ('gone', old.twice); END;
DELETE FROM mine;
BEGIN; SAVEPOINT s; INSERT INTO mine VALUES ('rolled back', 1); ROLLBACK TO s; COMMIT;
DROP TRIGGER t;
SELECT * FROM seen;
"""


def test_temp_tables_views_and_triggers_are_allowed(path: Path) -> None:
    before = state_of(path.parent)
    with rocpd.connect(path) as session:
        assert session.execute(TEMP).fetchall() == [("gone", 12)]
        session.execute("DROP VIEW seen; DROP INDEX mine_a; DROP TABLE mine")
        with pytest.raises(QueryError, match="no such table"):
            session.execute("SELECT * FROM mine")
    assert state_of(path.parent) == before


@pytest.mark.parametrize(
    "sql",
    [
        "PRAGMA table_info(kernels)",
        "PRAGMA f0.user_version",
        "PRAGMA database_list",
        "PRAGMA f0.quick_check",
        "PRAGMA compile_options",
        "SELECT name FROM pragma_table_info('kernels')",
        "SELECT name FROM f0.sqlite_master",
        "EXPLAIN QUERY PLAN SELECT * FROM kernels",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9) SELECT sum(i) FROM n",
        "SELECT json_extract('{\"a\": 1}', '$.a'), sqrt(2), printf('%d', 1), row_number() OVER ()",
        "VALUES (1), (2)",
    ],
)
def test_what_reads_is_allowed(sql: str, path: Path) -> None:
    with rocpd.connect(path) as session:
        assert session.sql(sql).fetchall()


def limit() -> int:
    return apsw.Connection(":memory:").limit(apsw.SQLITE_LIMIT_ATTACHED)


def test_as_many_files_as_sqlite_attaches(tmp_path: Path) -> None:
    first = TraceBuilder(0).kernel("gemm", 1, 2).write(tmp_path / "0.db", "3.0.0").read_bytes()
    suffix, guid = suffix_of(guid_of(0)).encode(), guid_of(0).encode()
    for n in range(1, limit() + 1):
        content = first.replace(suffix, suffix_of(guid_of(n)).encode()).replace(guid, guid_of(n).encode())
        (tmp_path / f"{n}.db").write_bytes(content)
    paths = sorted(tmp_path.iterdir())
    with rocpd.connect(paths[:-1]) as session:
        expected = [(limit(), limit(), limit())]
        assert (
            session.sql("SELECT count(*), count(DISTINCT rank), count(DISTINCT guid) FROM kernels").fetchall()
            == expected
        )
        assert session.sql("SELECT calls FROM kernel_summary").fetchall() == [(limit(),)]
    with rocpd.connect(paths) as session:
        for strategy in ("aggregates", "attached"):
            rows = session.execute("SELECT count(*) FROM kernels", strategy=strategy).fetchall()
            assert rows == [(limit() + 1,)]
        assert "more than SQLite can attach: copying rocpd_event" in session.notes[0]


def test_a_file_whose_pages_are_rubbish_is_named(tmp_path: Path) -> None:
    path = TraceBuilder().kernel("gemm", 1, 2).write(tmp_path / "a.db")
    path.write_bytes(path.read_bytes()[:4096] + b"\xaa" * (path.stat().st_size - 4096))
    with pytest.raises(InputError, match=r"a\.db: damaged"):
        rocpd.connect(path)


@pytest.mark.parametrize("name", [name for name in VIEWS if "ORDER BY" in view(name).select])
def test_a_statement_over_a_view_has_its_own_order(name: str, open_job: OpenJob) -> None:
    """By whatever column of an ordered view a statement groups and sorts."""
    ranks = [TraceBuilder(n) for n in range(2)]
    for n in range(20):
        ranks[n % 2].kernel(f"k{n % 5}", 100 * n, 100 * n + 7 * n, region=f"r{n % 3}")
        ranks[n % 2].copy(100 * n, 100 * n + n, name=f"c{n % 3}").alloc(n, n + n, level=["REAL", "VIRTUAL"][n % 2])
    session = open_job(*ranks)
    for column in view(name).columns:
        for order in ("ASC", "DESC"):
            sql = f'SELECT "{column.name}", count(*) FROM {name} GROUP BY 1 ORDER BY 1 {order}'
            values = [row[0] for row in session.execute(sql, strategy="attached") if row[0] is not None]
            assert values == sorted(values, reverse=order == "DESC"), sql
