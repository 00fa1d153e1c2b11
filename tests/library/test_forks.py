"""A forked child may use, close or ignore the session of its parent: the parent goes on undisturbed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rocpd.federate.limits import Limits
from rocpd.federate.run.local import Executor, Local
from rocpd.federate.run.shares import Pool
from tests.build import TraceBuilder
from tests.costs import ROOT
from tests.library.jobs import WAYS, write_job
from tests.soak import sized

PROGRAM = """
import os, signal, sys
from pathlib import Path
import rocpd
from rocpd.base import leftovers
from tests.library.jobs import WAYS, count_kernels, questions

folder, way = Path(sys.argv[1]), sys.argv[2]
asked = questions()[::int(sys.argv[3])]
session = rocpd.connect(folder, **WAYS[way])
expected = [ask(session) for ask in asked]
session.execute("CREATE TEMP TABLE mine AS SELECT 7")
copies = [opening.copy for opening in session.job.files.openings if opening.copy]
unfinished = leftovers.make_folder(folder)

def workers():
    started = session.job.files.executor._workers
    return [child._process.pid for child in started._children if child._process] if started else []

before = workers()

def use():
    assert [ask(session) for ask in asked] == expected
    assert not set(workers()) & set(before)

def use_and_close():
    use()
    session.close()

def ignore():
    leftovers.remove_all()

def fork_again():
    assert forked(use_and_close) == 0
    use()

def read_on():
    for rows in unread:
        try:
            list(rows)
        except rocpd.RocpdError as error:
            assert error.hint, error
    use()

def forked(child):
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    signal.alarm(600)
    child()
    sys.exit()  # as a program ends: all that is left is thrown away

for child in (use, session.close, use_and_close, ignore, fork_again):
    assert forked(child) == 0, child
    assert all((copy / "copy.db").exists() for copy in copies) and unfinished.exists()
    assert workers() == before and all(os.path.exists(f"/proc/{pid}") for pid in before)
    assert [ask(session) for ask in asked] == expected
    assert session.execute("SELECT * FROM mine").fetchall() == [(7,)]

print(len(copies), len(before), flush=True)
ORDERED = "SELECT rank, start FROM kernels ORDER BY rank, start"
answers = [session.execute(ORDERED).fetchall(), session.execute("SELECT start FROM kernels").fetchall()]
answers.append(list(session.map_ranks(count_kernels)))
unread = [session.execute(ORDERED), session.execute("SELECT start FROM kernels"), session.map_ranks(count_kernels)]
first = [next(rows) for rows in unread]
assert forked(read_on) == 0
assert [[start, *rows] for start, rows in zip(first, unread)] == answers
session.close()
assert not any(copy.exists() for copy in copies)
"""


@pytest.mark.soak(2)
@pytest.mark.parametrize("way", sized(["planned", "indexed"], list(WAYS)))
def test_a_parent_goes_on_whatever_its_child_does(way: str, tmp_path: Path) -> None:
    write_job(tmp_path / "job", way)
    command = [
        sys.executable,
        "-W",
        "ignore::DeprecationWarning",
        "-c",
        PROGRAM,
        str(tmp_path / "job"),
        way,
        sized("5", "1"),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    held = {"attached": "2 0", "copied": "0 0", "planned": "2 1", "workers": "2 1", "indexed": "0 0"}[way]
    # What is open when a child ends stays open, of which DuckDB complains.
    said = "" if way == "indexed" and "Traceback" not in done.stderr else done.stderr
    assert (done.returncode, done.stdout, said) == (0, f"{held}\n", "")


class _Remote(Local):
    """Stands in for a cluster, whose client works in its own process alone."""

    is_remote = True

    def close(self) -> None:
        raise AssertionError("a child ends what is its parent's")


REMOTE = """
import os, sys
import rocpd
from tests.library.test_forks import remote

session = rocpd.connect(sys.argv[1], client=remote())
pid = os.fork()
if pid:
    assert os.waitpid(pid, 0)[1] == 0
    assert session.sql("SELECT 1").fetchall() == [(1,)]
    os._exit(0)
try:
    session.sql("SELECT 1")
except rocpd.base.ClosedError as error:
    assert "open a new one" in error.hint
    session.close()
    sys.exit()
sys.exit("a child asked the cluster of its parent")
"""


def remote() -> Executor:
    """Return a cluster that is none."""
    return _Remote(Pool(Limits()), 1, Limits())


def test_a_child_asks_no_cluster_of_its_parent(tmp_path: Path) -> None:
    TraceBuilder().kernel("gemm", 1, 2).write(tmp_path / "a.db")
    command = [sys.executable, "-W", "ignore:This process:DeprecationWarning", "-c", REMOTE, str(tmp_path / "a.db")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
