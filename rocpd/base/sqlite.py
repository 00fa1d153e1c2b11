"""SQLite for this package: apsw, set up for many files and threads in rocpd's own processes; its errors.

SQLite counts its memory under one lock of the process. Reading the schema of a file takes thousands of small pieces of
memory, so two threads that open files take longer than one: 1.7 s instead of 1.1 s for 1,000 files, and 0.6 s without
counting (measured). A host program may limit memory by that count: there the counting stays. Opens no connection.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator

from rocpd.base import ViewTextError, WriteError, process

_IS_FIRST = "apsw" not in sys.modules  # else other code may be using it, perhaps in other threads

import apsw  # noqa: E402

__all__ = ["apsw"]

READWRITE = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
"""Flags of a connection that attaches files by their URI."""

_REFUSED = {apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_TRUNCATE}


def _count_no_memory() -> None:
    """Stop SQLite from counting its memory, so that limits of memory have no effect.

    This is possible only before SQLite is initialised, which importing apsw does; so it is initialised again.
    """
    apsw.shutdown()
    try:
        with contextlib.suppress(apsw.Error):
            apsw.config(apsw.SQLITE_CONFIG_MEMSTATUS, False)
    finally:
        apsw.initialize()


if process.is_own() and _IS_FIRST and apsw.using_amalgamation:  # else Python's sqlite3 may be using the same library
    _count_no_memory()


@contextlib.contextmanager
def naming_view(name: str) -> Iterator[None]:
    """Turn SQLite's error about the text of one of rocpd's views into an error that names its file.

    Raises:
        ViewTextError: SQLite refuses the text.
    """
    try:
        yield
    except apsw.SQLError as error:
        raise ViewTextError(name, error) from error


@contextlib.contextmanager
def writing(connection: apsw.Connection) -> Iterator[None]:
    """Turn SQLite's errors of a write that the system refused into a `WriteError`, to which outputs add their name.

    Args:
        connection: connection to the written file, and perhaps to files that are read, whose errors pass.
    """
    try:
        yield
    except apsw.FullError as error:
        raise _write_error(errno.ENOSPC) from error
    except apsw.IOError as error:
        if getattr(error, "extendedresult", None) not in _REFUSED:
            raise
        raise _write_error(connection.system_errno or errno.EIO) from error


def _write_error(number: int) -> WriteError:
    return WriteError.of(OSError(number, os.strerror(number)))
