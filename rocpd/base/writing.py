"""SQLite's errors of writes that the system refused, as outputs name them. Writes nothing itself."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator

from rocpd.base.errors import WriteError
from rocpd.base.sqlite import apsw

_REFUSED = {apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_TRUNCATE}


@contextlib.contextmanager
def writing(connection: apsw.Connection) -> Iterator[None]:
    """Turn SQLite's errors of a write that the system refused into a `WriteError`, to which outputs add their name.

    Args:
        connection: to what is written, and perhaps also to what is read, whose errors pass.
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
