"""SQLite as this package uses it: apsw, in rocpd's own processes set up for many files and threads.

SQLite counts the memory that it takes, under one lock of the process. Reading the schema of a file takes thousands of
small pieces, so two threads that open files need longer than one does: 1.7 s instead of 1.1 s for 1,000 files, and
0.6 s where nothing is counted (measured). A host program may limit memory by that count: there it stays. Opens no
connection.
"""

from __future__ import annotations

import contextlib
import sys

from rocpd.base import process

_IS_FIRST = "apsw" not in sys.modules  # else others may be at work with it, in other threads, too

import apsw  # noqa: E402

__all__ = ["apsw"]


def _count_no_memory() -> None:
    """Let SQLite not count its memory, so that limits of memory have no effect.

    It has to be said before SQLite is set up, which importing apsw does; so it is set up again.
    """
    apsw.shutdown()
    try:
        with contextlib.suppress(apsw.Error):
            apsw.config(apsw.SQLITE_CONFIG_MEMSTATUS, False)
    finally:
        apsw.initialize()


if process.is_own() and _IS_FIRST and apsw.using_amalgamation:  # else Python's sqlite3 may be using the same library
    _count_no_memory()
