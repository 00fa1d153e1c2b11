"""A session: many files answering as one until it is closed."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rocpd
from rocpd.base import ClosedError, InputError, QueryError
from rocpd.federate.limits import Limits
from rocpd.schema.load import TABLES, VIEWS
from rocpd.schema.versions import suffix_of
from rocpd.summary.relations import RELATIONS
from tests.build import TraceBuilder, guid_of
from tests.conftest import OpenJob
from tests.federate.writers import LIVE_WAL, killed_writer
from tests.soak import paired

SOURCE = Path(__file__).parents[2]


RANKS = [TraceBuilder(n, pid=10 + n).kernel("gemm", 10, 20 + n).region("f", 1, 2) for n in range(3)]


@pytest.fixture
def session(open_job: OpenJob) -> rocpd.Session:
    return open_job(*RANKS)


def test_what_a_session_knows(session: rocpd.Session) -> None:
    assert [(rank.number, rank.pid) for rank in session.ranks] == [(0, 10), (1, 11), (2, 12)]
    assert session.views == VIEWS
    assert session.tables == (*TABLES, *VIEWS)
    assert tuple(session.calculated()) == tuple(RELATIONS)
    assert session.time_range == (1, 22)
    assert session.notes == []


@pytest.mark.parametrize(
    ("sql", "parameters", "expected"),
    [
        ("SELECT rank FROM kernels WHERE duration > ? ORDER BY rank", (10,), [(1,), (2,)]),
        ("SELECT rank FROM kernels WHERE duration > :least", {"least": 11}, [(2,)]),
        ("SELECT ?, ?, ?, ?", (None, 1.5, "it's", b"\0"), [(None, 1.5, "it's", b"\0")]),
        ("SELECT count(*) FROM kernels WHERE name = ?", ["gemm"], [(3,)]),
        ("SELECT count(*) FROM kernels; SELECT count(*) FROM regions WHERE rank < ?", (2,), [(3,), (2,)]),
        ("-- only a comment", None, []),
        ("", None, []),
        ("SELECT 'kernels; regions' AS \"a;b\"", None, [("kernels; regions",)]),
    ],
)
def test_statements_and_parameters(
    sql: str, parameters: object, expected: list[object], session: rocpd.Session
) -> None:
    assert session.execute(sql, parameters).fetchall() == expected  # type: ignore[arg-type]


def test_cursors_are_like_those_of_sqlite3(session: rocpd.Session) -> None:
    cursor = session.cursor().execute("SELECT rank, duration FROM kernels ORDER BY rank")
    assert [column[0] for column in cursor.description or ()] == ["rank", "duration"]
    assert cursor.fetchone() == (0, 10)
    assert cursor.fetchmany(1) == [(1, 11)]
    assert cursor.fetchall() == [(2, 12)]
    assert cursor.fetchone() is None
    assert session.execute("CREATE TEMP TABLE t (a)").description is None


def test_two_cursors_do_not_disturb_each_other(session: rocpd.Session) -> None:
    first, second = (session.execute("SELECT rank FROM kernels ORDER BY rank") for _ in range(2))
    assert [next(first), next(second), next(first), next(second)] == [(0,), (0,), (1,), (1,)]
    first.close()
    assert list(second) == [(2,)]


@pytest.mark.parametrize(
    ("sql", "parameters", "message", "hint"),
    [
        ("SELECT * FROM kernals", None, "SQL: no such table: kernals", "lists what can be selected from"),
        ("SELECT colour FROM kernels", None, "SQL: no such column: colour", "rocpd schema NAME"),
        ("SELECT 1 FROM idle-calls", None, 'SQL: near "-": syntax error', "idle_calls"),
        ("SELEC 1", None, 'SQL: near "SELEC": syntax error', ""),
        ("SELECT * FROM kernels WHERE", None, "SQL: incomplete input", ""),
        ("SELECT ?", (), "SQL: ", ""),
        ("SELECT ?", (1, 2), "SQL: ", ""),
        ("SELECT ?", (object(),), "SQL: ", ""),
        ("SELECT 1; SELECT unheard()", None, "SQL: no such function: unheard", ""),
        ("SELECT json_extract('{', '$.a')", None, "SQL: malformed JSON", ""),
    ],
)
def test_errors_say_what_sqlite_says(
    sql: str, parameters: object, message: str, hint: str, session: rocpd.Session
) -> None:
    with pytest.raises(QueryError) as error:
        session.execute(sql, parameters).fetchall()  # type: ignore[arg-type]
    assert error.value.message.startswith(message)
    assert hint in (error.value.hint or "")
    assert error.value.exit_code == 1
    assert session.sql("SELECT 1").fetchall() == [(1,)]


def test_a_closed_session_says_so(session: rocpd.Session) -> None:
    result, cursor = session.sql("SELECT * FROM kernels"), session.execute("SELECT * FROM kernels")
    session.close()
    session.close()
    calls = (
        lambda: session.execute("SELECT 1"),
        lambda: session.sql("SELECT 1"),
        lambda: session.cursor(),
        lambda: session.spans,
        lambda: session.time_range,
    )
    for call in calls:
        with pytest.raises(ClosedError, match="the session is closed"):
            call()
    for rows in (result, cursor):
        with pytest.raises(ClosedError):
            list(rows)
    assert len(session.ranks) == 3


@pytest.mark.parametrize("strategy", ["rows", "attached"])
def test_rows_of_a_session_that_is_closed_meanwhile(strategy: str, tmp_path: Path) -> None:
    files = [rank.write(tmp_path / f"{rank.pid}.db") for rank in RANKS]
    for path in files:
        os.utime(path, (1, 1))  # a file that was just written is perhaps live: its rows are read at once
    session = rocpd.connect(files, limits=Limits(few_rows=0, chunk_rows=1))
    rows = session.execute("SELECT * FROM kernels", strategy=strategy)
    next(rows)
    session.close()
    with pytest.raises(ClosedError):
        list(rows)


def test_a_block_closes_its_session(tmp_path: Path) -> None:
    path = TraceBuilder().write(tmp_path / "a.db")
    with rocpd.connect(path) as session:
        assert session.sql("SELECT 1").fetchall() == [(1,)]
    with pytest.raises(ClosedError):
        session.execute("SELECT 1")
    with pytest.raises(ZeroDivisionError), rocpd.connect(path) as session:
        raise ZeroDivisionError
    with pytest.raises(ClosedError):
        session.execute("SELECT 1")


@pytest.mark.soak
@pytest.mark.parametrize(
    ("end", "strategy"),
    paired(["", "rows = session = None; gc.collect()", "session.me = session, rows; del rows"], ["rows", "attached"]),
)
def test_a_session_that_is_forgotten_half_read(end: str, strategy: str, tmp_path: Path) -> None:
    """A program that neither reads a result to its end nor closes anything still ends."""
    for number in range(2):
        path = TraceBuilder(number).kernel("gemm", 1, 5).kernel("relu", 2, 3).write(tmp_path / f"{number}.db")
        os.utime(path, (1e9, 1e9))
    program = f"""
import gc, rocpd
session = rocpd.connect({str(tmp_path)!r})
rows = session.execute("SELECT * FROM kernels", strategy={strategy!r})
next(rows)
{end}
gc.collect()
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=SOURCE, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_forgotten_session_closes_itself(tmp_path: Path) -> None:
    path = TraceBuilder().write(tmp_path / "a.db")
    gc.freeze()  # what other tests have left takes seconds to search
    session = rocpd.connect(path)
    session.sql("SELECT 1").fetchall()
    del session
    gc.collect()
    assert [link for link in Path("/proc/self/fd").iterdir() if link.exists() and link.samefile(path)] == []


@pytest.mark.parametrize("end", ["", "session.me = session"])
def test_a_session_that_is_never_closed_removes_its_recovered_copy(end: str, tmp_path: Path) -> None:
    path = TraceBuilder().kernel("gemm", 1, 2).write(tmp_path / "a.db")
    killed_writer(path, LIVE_WAL, f"rocpd_string{suffix_of(guid_of(0))}")
    (tmp_path / "temporary").mkdir()
    program = f"""
import rocpd
session = rocpd.connect({str(path)!r})
assert [opening.copy for opening in session.job.files.openings if opening.copy.exists()]
{end}
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary"), "PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list((tmp_path / "temporary").iterdir()) == []


def test_many_sessions_on_one_file(tmp_path: Path) -> None:
    path = TraceBuilder().kernel("gemm", 1, 2).write(tmp_path / "a.db")
    with rocpd.connect(path) as first, rocpd.connect([path]) as second:
        assert first.sql("SELECT * FROM kernels").fetchall() == second.sql("SELECT * FROM kernels").fetchall()


def test_nothing_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ROCPD_INPUT", raising=False)
    with pytest.raises(InputError, match="no input"):
        rocpd.connect()
    TraceBuilder().write(tmp_path / "here.db")
    with rocpd.connect() as session:
        assert session.notes == ["input: here.db"]


def test_a_bad_file_stops_or_is_left_out(tmp_path: Path) -> None:
    good = TraceBuilder().kernel("gemm", 1, 2).write(tmp_path / "good.db")
    (tmp_path / "bad.db").write_bytes(b"rubbish" * 1000)
    with pytest.raises(InputError, match=r"bad\.db: not a SQLite database"):
        rocpd.connect([good, tmp_path / "bad.db"])
    notes: list[str] = []
    with rocpd.connect([good, tmp_path / "bad.db"], skip_bad=True, on_note=notes.append) as session:
        assert notes == [f"left out: {tmp_path}/bad.db: not a SQLite database"]
        assert session.sql("SELECT count(*) FROM kernels").fetchall() == [(1,)]


def test_the_facade_names_everything_it_promises() -> None:
    assert {name for name in rocpd.__all__ if not hasattr(rocpd, name)} == set()
    assert set(dir(rocpd)) == set(rocpd.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        rocpd.nothing  # noqa: B018
