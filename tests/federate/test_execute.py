"""Statements over many ranks: in order, on threads, over more files than can be attached, beside a writer."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import rocpd
from rocpd.base import InputError, QueryError
from rocpd.federate import limits
from rocpd.federate.limits import Limits
from rocpd.federate.open import opening
from rocpd.federate.result import spooled
from rocpd.federate.run.attach import CopiedDatabase
from rocpd.schema.render import RankTables
from rocpd.schema.versions import suffix_of
from tests.build import TraceBuilder, guid_of
from tests.processes import reads
from tests.soak import paired, sized
from tests.waiting import until

SOURCE = Path(__file__).parents[2]
MANY = sized(150, 1000)
BY_NAME = "SELECT name, count(*), sum(duration), avg(duration) FROM kernels GROUP BY name ORDER BY 3 DESC, 1"
WRITER = """
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
db.execute("PRAGMA journal_mode=" + sys.argv[2])
def commit(text):
    start = time.monotonic()
    db.execute("INSERT INTO {table} (string) VALUES (?)", (text,))
    print("committed", time.monotonic() - start, flush=True)
commit("first")
for line in sys.stdin:
    commit(line)
"""


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def copies(folder: Path, count: int) -> list[Path]:
    """Many files from one: GUIDs have one length, so they can be replaced in the bytes."""
    folder.mkdir(exist_ok=True)
    pattern = TraceBuilder(0).kernel("gemm", 10, 20).kernel("relu", 20, 25).region("f", 1, 2).write(folder / "0.db")
    content, guid = pattern.read_bytes(), guid_of(0)
    for number in range(1, count):
        text = content.replace(guid.encode(), guid_of(number).encode())
        (folder / f"{number}.db").write_bytes(
            text.replace(suffix_of(guid).encode(), suffix_of(guid_of(number)).encode())
        )
    return sorted(folder.glob("*.db"))


@pytest.fixture(scope="module")
def many_files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return copies(tmp_path_factory.mktemp("many"), MANY)


@pytest.fixture(autouse=True)
def nothing_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "DEFAULT", Limits(small_bytes=0))


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    ranks = [TraceBuilder(n) for n in range(7)]
    for n, rank in enumerate(ranks):
        for i in range(20):
            rank.kernel(f"k{(i * n) % 5}", i, i * n + 7)
    return [rank.write(tmp_path / f"{n}.db") for n, rank in enumerate(ranks)]


@pytest.fixture
def session(files: list[Path]) -> Iterator[rocpd.Session]:
    with rocpd.connect(files) as opened:
        yield opened


@pytest.mark.parametrize(
    "sql", [BY_NAME, "SELECT rank, id FROM kernels", "SELECT * FROM kernels ORDER BY name LIMIT 9"]
)
def test_the_number_of_threads_changes_nothing(sql: str, files: list[Path]) -> None:
    """Not even the last digit of a float, nor the order of rows that have none."""
    answers = []
    for jobs in (1, 2, 3, 16, None):
        with rocpd.connect(files, jobs=jobs) as session:
            answers.append(session.execute(sql).fetchall())
    assert answers.count(answers[0]) == len(answers)
    assert len(answers[0]) > 0


def test_a_rank_of_many_rows_is_streamed(session: rocpd.Session, files: list[Path]) -> None:
    all_rows = session.execute("SELECT * FROM kernels").fetchall()
    with rocpd.connect(files, limits=Limits(small_bytes=0, few_rows=5, chunk_rows=3)) as streaming:
        assert streaming.execute("SELECT * FROM kernels").fetchall() == all_rows
    assert len(all_rows) == 140


def test_progress_counts_ranks(session: rocpd.Session) -> None:
    seen: list[tuple[int, int]] = []
    session.execute(BY_NAME, on_progress=lambda done, total: seen.append((done, total))).fetchall()
    assert seen == [(n, 7) for n in range(1, 8)]


def test_a_result_that_is_left_half_read(session: rocpd.Session) -> None:
    before = threading.active_count()
    rows = session.execute("SELECT * FROM kernels WHERE duration >= 0")
    next(rows)
    rows.close()
    del rows
    assert threading.active_count() == before
    assert session.execute("SELECT count(*) FROM kernels").fetchall() == [(140,)]


def test_what_fails_in_one_rank_may_run_attached(open_job: object, tmp_path: Path) -> None:
    """The sum of one rank exceeds 64 bits, but so does the sum of both: SQLite raises its own error."""
    big = 1 << 62
    ranks = [TraceBuilder(n).kernel("k", 0, big).kernel("k", 0, big - 1 + n) for n in range(2)]
    with rocpd.connect([rank.write(tmp_path / f"{n}.db") for n, rank in enumerate(ranks)]) as opened:
        with pytest.raises(QueryError, match="integer overflow"):
            opened.execute('SELECT sum("end") FROM kernels').fetchall()
        assert opened.execute('SELECT max("end") FROM kernels').fetchall() == [(big,)]


def test_a_file_that_is_damaged_after_opening(session: rocpd.Session) -> None:
    path = session.ranks[3].opening.path
    content = bytearray(path.read_bytes())
    content[4096:] = b"\x55" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"3\.db"):
        session.execute(BY_NAME).fetchall()


@pytest.mark.soak(7)
def test_hundreds_of_files(many_files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """More files than SQLite attaches, and than are kept open: the others' connections are closed."""
    monkeypatch.setattr(limits, "DEFAULT", Limits(small_bytes=0, idle_connections=MANY // 2))
    files_before = open_files()
    with rocpd.connect(many_files) as opened:
        assert open_files() <= files_before + MANY // 2
        assert opened.execute("SELECT count(*), sum(duration) FROM kernels").fetchall() == [(2 * MANY, 15 * MANY)]
        assert opened.execute(BY_NAME).fetchall() == [("gemm", MANY, 10 * MANY, 10.0), ("relu", MANY, 5 * MANY, 5.0)]
        assert open_files() < files_before + MANY // 2 + 100
    assert open_files() == files_before


def test_after_a_rest_few_of_the_files_stay_open_that_can_not_all(many_files: list[Path]) -> None:
    for most, kept in ((20, 16), (24, 24)):
        limited = Limits(small_bytes=0, idle_connections=most)
        with rocpd.connect(many_files[:24], limits=limited) as opened:
            opened.job.files.executor.rest()
            files_before = open_files()
            opened.execute("SELECT count(*) FROM kernels").fetchall()
            assert open_files() - files_before == kept


def test_few_file_descriptors(many_files: list[Path]) -> None:
    program = f"""
import resource, rocpd
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
notes = []
with rocpd.connect({list(map(str, many_files[:150]))!r}, on_note=notes.append) as s:
    print(s.execute("SELECT count(*), sum(duration) FROM kernels").fetchall())
    numbered = "SELECT row_number() OVER (ORDER BY start, rank) AS n FROM kernels"
    print(s.execute(f"SELECT max(n) FROM ({{numbered}})").fetchall())
    print(len(s.spans), len(s.execute("SELECT name FROM regions").fetchall()))
print(len(notes), notes[0].split(":")[0])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=SOURCE, check=False)
    assert (done.stderr, done.stdout.splitlines()) == (
        "",
        ["[(300, 2250)]", "[(300,)]", "150 150", "1 150 files are more than SQLite can attach"],
    )


def test_only_what_a_statement_names_is_copied(many_files: list[Path]) -> None:
    notes: list[str] = []
    with rocpd.connect(many_files[:130], on_note=notes.append) as opened:
        windows = "SELECT name, start, row_number() OVER (ORDER BY start, guid) FROM kernels ORDER BY 3 LIMIT 1"
        assert opened.execute(windows).fetchall() == [("gemm", 10, 1)]
        across = "SELECT count(*) FROM rocpd_region a JOIN rocpd_region b ON a.start = b.start"
        assert opened.execute(across).fetchall() == [(130 * 130,)]
    assert [note.split(" (less than")[0] for note in notes[1:]] == [
        "130 files are more than SQLite can attach: copying rocpd_region to a temporary database"
    ]
    assert "rocpd_kernel_dispatch" in notes[0]
    assert "rocpd_region" not in notes[0]


def test_a_name_of_with_after_the_view_of_many_ranks(many_files: list[Path]) -> None:
    """SQLite 3.54 fails once a view has named 1,000 tables, those of 100 ranks: "nested too deep"."""
    with rocpd.connect(many_files[:101]) as opened:
        number = "WITH number AS (SELECT 1 AS n) SELECT count(*) FROM kernels, number"
        assert opened.execute(number, strategy="attached").fetchall() == [(202,)]


def test_two_statements_at_a_time_over_copies(many_files: list[Path]) -> None:
    with rocpd.connect(many_files[:130]) as opened:
        rows = opened.execute("SELECT name, row_number() OVER (ORDER BY start, guid) FROM kernels")
        next(rows)
        assert opened.execute("SELECT median(duration) FROM regions").fetchall() == [(1,)]
        assert opened.execute('SELECT median("end") FROM rocpd_kernel_dispatch').fetchall() == [(22.5,)]
        assert len(list(rows)) == 259


def test_a_copy_that_was_interrupted_is_made_again(many_files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    copy = CopiedDatabase._copy_table
    seen: list[str] = []

    def stop(self: CopiedDatabase, tables: RankTables, base: str) -> None:
        seen.append(base)
        if len(seen) == 50:
            raise KeyboardInterrupt
        copy(self, tables, base)

    monkeypatch.setattr(CopiedDatabase, "_copy_table", stop)
    with rocpd.connect(many_files[:130]) as opened:
        with pytest.raises(KeyboardInterrupt):
            opened.execute("SELECT median(duration) FROM kernels")
        assert opened.execute("SELECT median(duration) FROM kernels").fetchall() == [(7.5,)]


@pytest.mark.soak
@pytest.mark.parametrize(("mode", "strategy"), paired(["delete", "wal"], ["auto", "attached"]))
def test_a_slow_reader_lets_the_writer_commit(mode: str, strategy: str, tmp_path: Path) -> None:
    """A pager holds the statement open; what the profiler writes meanwhile is committed, and does not show up.

    It takes half a second at most, or as many times as long as alone on a busy machine.
    """
    files = [TraceBuilder(n).region("f", 1, 2).write(tmp_path / f"{n}.db") for n in range(2)]
    with sqlite3.connect(files[0]) as strings:
        table = f"rocpd_string{suffix_of(guid_of(0))}"
        strings.executemany(f"INSERT INTO {table} (string) VALUES (?)", ((f"s{n}",) for n in range(30_000)))
    strings.close()
    command = [sys.executable, "-c", WRITER.format(table=table), str(files[0]), mode]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        alone = float(writer.stdout.readline().removeprefix("committed"))
        with rocpd.connect(files) as opened:
            rows = opened.execute("SELECT string FROM rocpd_string", strategy=strategy)
            first = next(rows)
            writer.stdin.write("while it reads\n")
            writer.stdin.flush()
            said = writer.stdout.readline().split()
            assert said[0] == "committed"
            assert float(said[1]) < max(0.5, 50 * alone)
            seen = [first, *rows]
            assert ("first",) in seen
            assert ("while it reads\n",) not in seen
            again = opened.execute("SELECT count(*) FROM rocpd_string WHERE string LIKE 'while%'", strategy=strategy)
            assert again.fetchall() == [(1,)]
        writer.stdin.close()


def test_files_that_rest_are_streamed(tmp_path: Path) -> None:
    path = TraceBuilder(0).region("f", 1, 2).write(tmp_path / "0.db")
    assert opening.opening_of(path).is_live
    os.utime(path, (time.time() - 3600,) * 2)
    assert not opening.opening_of(path).is_live


def test_a_spool_returns_rows_in_order() -> None:
    rows = [(n, f"x{n}", None, b"\0", 1.5) for n in range(100)]
    assert list(spooled(iter(rows), 5, in_memory=7)) == rows
    assert list(spooled(iter(rows), 5)) == rows


@pytest.mark.parametrize("strategy", ["auto", "attached"])
def test_ctrl_c_stops_a_statement(strategy: str, tmp_path: Path) -> None:
    for n in range(3):
        rank = TraceBuilder(n)
        for i in range(300):
            rank.region("f", i, i + 1)
        rank.write(tmp_path / f"{n}.db")
    joins = " ".join(f"JOIN regions {name} USING (guid)" for name in "bcd")
    endless = f"SELECT count(*) FROM regions a {joins}"
    program = (
        "from rocpd.federate import limits; limits.DEFAULT = limits.Limits(small_bytes=0);"
        "from rocpd.__main__ import main; main()"
    )
    command = [sys.executable, "-c", program, "query", endless, str(tmp_path), "--strategy", strategy]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=SOURCE) as process:
        until(lambda: reads(process.pid, tmp_path) or process.poll() is not None, "it opens the files")
        time.sleep(0.3)  # the statement runs
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, said = process.communicate()
    assert (process.returncode, out, said) == (130, "", "rocpd: interrupted; nothing partial is left\n")
