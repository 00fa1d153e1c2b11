"""How SQLite is set up: without counting its memory in rocpd's own processes, as it was in programs that use rocpd."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rocpd.base.sqlite
from rocpd.base.sqlite import apsw
from tests.build import TraceBuilder
from tests.costs import ROOT

ASKS = """
with rocpd.connect("job", jobs=2) as session:
    assert session.sql("SELECT count(*) FROM kernels").fetchall() == [(2,)]
    session.summary("kernels").fetchall()
"""
LIMITED = """
theirs = apsw.Connection(":memory:")
theirs.execute("CREATE TABLE t AS SELECT randomblob(100000)")
assert apsw.memory_used() > 100_000
apsw.hard_heap_limit(apsw.memory_used() + 2_000_000)
try:
    theirs.execute("SELECT length(randomblob(5000000))").get
except (MemoryError, apsw.NoMemError):
    print("limited")
"""


def run(program: str, *arguments: str, folder: Path = ROOT) -> str:
    """Run a program; return what it writes."""
    command, path = [sys.executable, "-c", program, *arguments], {**os.environ, "PYTHONPATH": os.fspath(ROOT)}
    done = subprocess.run(command, cwd=folder, env=path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("host")
    (made / "job").mkdir()
    for number in range(2):
        TraceBuilder(number).kernel("gemm", 1, 2).write(made / "job" / f"{number}.db")
    return made


@pytest.mark.parametrize("imports", ["import apsw, rocpd", "import rocpd; rocpd.connect; import apsw"])
def test_a_program_that_uses_rocpd_has_its_memory_counted_and_limited(imports: str, folder: Path) -> None:
    assert run("\n".join([imports, ASKS, LIMITED]), folder=folder) == "limited\n"


COMMAND = """
import atexit
from rocpd.cli import start

def report():
    from rocpd.base.sqlite import apsw
    print(apsw.memory_used())

atexit.register(report)
start()
"""


def test_a_command_line_counts_no_memory(folder: Path) -> None:
    said = run(COMMAND, "query", "SELECT count(*) AS n FROM kernels", "job", "--format", "csv", folder=folder)
    assert said.split() == ["n", "2", "0"]


WORKER = """
import rocpd
from rocpd.federate.run.workers import Workers
from tests.test_sqlite import memory_used

workers = Workers(1)
print(*workers.each(memory_used, [0]), memory_used(0) > 0)
workers.close()
"""


def memory_used(_: int) -> int:
    """Return the bytes that SQLite counts in this process, which has a connection."""
    connection = apsw.Connection(":memory:")
    connection.execute("SELECT randomblob(100000)").get  # noqa: B018
    return apsw.memory_used()


def test_workers_count_no_memory() -> None:
    assert run(WORKER) == "0 True\n"


def test_sqlite_is_set_up_again_even_where_it_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[object] = []

    def refuse(*arguments: object) -> None:
        steps.append(arguments)
        raise apsw.MisuseError

    monkeypatch.setattr(apsw, "shutdown", lambda: steps.append("shutdown"))
    monkeypatch.setattr(apsw, "config", refuse)
    monkeypatch.setattr(apsw, "initialize", lambda: steps.append("initialize"))
    rocpd.base.sqlite._count_no_memory()
    assert steps == ["shutdown", (apsw.SQLITE_CONFIG_MEMSTATUS, False), "initialize"]
