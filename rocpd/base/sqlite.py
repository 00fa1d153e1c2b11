"""Owns SQLite as this package uses it: apsw, set up for many files and threads, and its errors of writes that the
system refused. Opens no connection.

SQLite counts the memory that it takes, under one lock of the process. Reading the schema of a file takes thousands of
small pieces, so two threads that open files need longer than one does: 1.7 s instead of 1.1 s for 1,000 files, and
0.6 s where nothing is counted (measured).
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator

_IS_OURS = "apsw" not in sys.modules  # else others may be at work with it, in other threads, too

import apsw  # noqa: E402

from rocpd.base.errors import WriteError  # noqa: E402

__all__ = ["apsw", "writing"]

_WRITE_FAILED = {apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_TRUNCATE}


@contextlib.contextmanager
def writing(connection: apsw.Connection) -> Iterator[None]:
    """Turn SQLite's errors of a write that the system refused into a `WriteError`, to which outputs add their name.

    Args:
        connection: to what is written, and perhaps also to what is read, whose errors pass.
    """
    try:
        yield
    except apsw.FullError as error:
        raise WriteError.of(_system_error(errno.ENOSPC)) from error
    except apsw.IOError as error:
        if getattr(error, "extendedresult", None) not in _WRITE_FAILED:
            raise
        raise WriteError.of(_system_error(connection.system_errno or errno.EIO)) from error


def _system_error(number: int) -> OSError:
    return OSError(number, os.strerror(number))


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


if _IS_OURS and apsw.using_amalgamation:  # else Python's sqlite3 may be using the same library
    _count_no_memory()
