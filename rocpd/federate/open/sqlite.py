"""Sets SQLite up for many files and threads. Opens no connection.

SQLite counts the memory that it takes, under one lock of the process. Reading the schema of a file takes thousands of
small pieces, so two threads that open files need longer than one does: 1.7 s instead of 1.1 s for 1,000 files, and
0.6 s where nothing is counted (measured).
"""

from __future__ import annotations

import apsw


def count_no_memory() -> None:
    """Let SQLite not count its memory; do nothing where the program uses SQLite already, or shares it with others.

    It has to be said before SQLite is set up, which importing apsw does; so it is set up again.
    """
    is_unused = not apsw.connections() and not apsw.soft_heap_limit(-1) and apsw.vfs_names()[:1] == ["unix"]
    if is_unused and apsw.using_amalgamation:  # else Python's sqlite3 may be using the same library
        apsw.shutdown()
        apsw.config(apsw.SQLITE_CONFIG_MEMSTATUS, False)
        apsw.initialize()
