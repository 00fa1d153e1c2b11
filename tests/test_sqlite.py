"""How SQLite is set up: without counting its memory, and never under a program that may be using it."""

from __future__ import annotations

import subprocess
import sys

import pytest

import rocpd.base.sqlite
from rocpd.base.sqlite import apsw
from tests.soak import paired

_THREAD = "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()"


_COUNTS = {
    "": False,
    "import rocpd, pandas, sqlite3": False,
    _THREAD: False,  # such as a notebook's
    "import apsw": True,
    "import apsw; theirs = apsw.Connection(':memory:'); theirs.execute('CREATE TABLE t AS SELECT 7')": True,
}


@pytest.mark.soak(3)
@pytest.mark.parametrize(("before", "used"), paired(_COUNTS, ["session", "schema.write", "redact.run"]))
def test_memory_is_counted_only_for_a_program_that_uses_sqlite_already(before: str, used: str) -> None:
    program = [
        before,
        f"import rocpd.{used}, rocpd.base.sqlite",
        "apsw = rocpd.base.sqlite.apsw",
        "connection = apsw.Connection(':memory:')",
        "connection.execute('SELECT randomblob(100000)').get",
        f"assert (apsw.memory_used() > 0) is {_COUNTS[before]}",
        "assert theirs.execute('SELECT * FROM t').get == 7" if "TABLE t" in before else "",
    ]
    done = subprocess.run([sys.executable, "-c", "\n".join(program)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


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
