"""Real writers for the tests of opening: other processes that hold locks, or were killed while they wrote."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

LIVE_WAL = """
db.execute("PRAGMA journal_mode=wal"); db.execute("PRAGMA wal_autocheckpoint=0")
db.execute("INSERT INTO {strings} (string) VALUES ('committed'), ('too')")
"""
HALF_DONE = """
db.execute("PRAGMA cache_size=2"); db.execute("PRAGMA cache_spill=2"); db.execute("BEGIN")
db.execute("UPDATE {strings} SET string = string || hex(zeroblob(2000))")
"""
RESERVED = """
db.execute("BEGIN IMMEDIATE"); db.execute("INSERT INTO {strings} (string) VALUES ('not committed')")
"""
EXCLUSIVE = """
db.execute("BEGIN EXCLUSIVE")
"""

_PROGRAM = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
{body}
print("ready", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def writer(path: Path, body: str, strings: str) -> Iterator[subprocess.Popen[str]]:
    """Run `body` with `db` open on `path` in another process, hold it there, and kill it at the end of the block."""
    program = _PROGRAM.format(body=body.format(strings=strings))
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def killed_writer(path: Path, body: str, strings: str) -> None:
    """Leave the files of a writer that was killed after `body`."""
    with writer(path, body, strings):
        pass
