"""How SQLite is set up: without counting its memory, and never under a program that uses it already."""

from __future__ import annotations

import subprocess
import sys

import pytest

_FILE_SYSTEM = """
class FileSystem(apsw.VFS):
    def __init__(self): super().__init__('theirs', 'unix', makedefault={})
theirs = FileSystem()"""


@pytest.mark.parametrize(
    ("before", "counts"),
    [
        ("", False),
        ("apsw.soft_heap_limit(1 << 30)", True),  # it takes counting
        ("apsw.using_amalgamation = False", True),  # Python's sqlite3 may use the same library
        ("theirs = apsw.Connection(':memory:'); theirs.execute('CREATE TABLE t AS SELECT 7')", True),
        ("theirs = apsw.Connection(':memory:'); theirs.close()", False),
        (_FILE_SYSTEM.format(True), True),
        (_FILE_SYSTEM.format(False), False),
    ],
)
def test_memory_is_counted_only_for_a_program_that_uses_sqlite_already(before: str, counts: bool) -> None:
    program = [
        "import apsw",
        before,
        "names = apsw.vfs_names()",
        "import rocpd.federate.open.opening",
        "assert (apsw.vfs_names()[0], set(apsw.vfs_names())) == (names[0], set(names))",
        "connection = apsw.Connection(':memory:')",
        "connection.execute('SELECT randomblob(100000)').get",
        f"assert (apsw.memory_used() > 0) is {counts}",
        "assert theirs.execute('SELECT * FROM t').get == 7" if "TABLE t" in before else "",
    ]
    done = subprocess.run([sys.executable, "-c", "\n".join(program)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
