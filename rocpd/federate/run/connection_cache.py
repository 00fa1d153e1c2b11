"""The one connection that a worker keeps open between tasks, to the file it read last.

Each rank of a merged file is a task, and SQLite reads the entire schema whenever a file is opened: kept open, that
happens once per worker, not once per rank. Nothing stays open outside of a worker's tasks.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

from rocpd.base.sqlite import apsw
from rocpd.base.types import Answer
from rocpd.federate.open.opening import Opening
from rocpd.federate.run.pool import Pool, Share, ShareDatabase
from rocpd.schema.render import RankTables

Task = TypeVar("Task")

_THREAD = threading.local()  # its `cache` is that of the worker whose task runs in this thread


class ConnectionCache:
    """Runs tasks one after the other; the file that `borrow` opens for one stays open for the next."""

    def __init__(self) -> None:
        self._idle: ShareDatabase | None = None

    def run(self, work: Callable[[Task], Answer], task: Task) -> Answer:
        """Return `work(task)`."""
        outer = getattr(_THREAD, "cache", None)
        _THREAD.cache = self
        try:
            return work(task)
        finally:
            _THREAD.cache = outer

    def take(self, opening: Opening) -> ShareDatabase | None:
        """Remove and return the open connection if it is to this file; else close it."""
        idle, self._idle = self._idle, None
        if idle and idle.share.opening != opening:
            idle.close()
            return None
        return idle

    def put_back(self, database: ShareDatabase) -> None:
        """Keep a connection open that is no longer in use."""
        self.close()
        self._idle = database

    def close(self) -> None:
        """Close what is open; idempotent."""
        if self._idle:
            self._idle.close()
            self._idle = None


class StatementConnections(ConnectionCache):
    """Runs tasks in the process of the session, on the connections that its statements use: files are open already."""

    def __init__(self, pool: Pool) -> None:
        super().__init__()
        self._pool = pool

    def take(self, opening: Opening) -> ShareDatabase | None:
        """Remove and return an idle connection to this file."""
        return self._pool.take(opening)

    def put_back(self, database: ShareDatabase) -> None:
        """Keep a connection open that is no longer in use."""
        self._pool.put_back(database)


@contextlib.contextmanager
def borrow(opening: Opening, tables: RankTables) -> Iterator[ShareDatabase]:
    """Yield a connection to a file for the duration of a block.

    Args:
        opening: the file.
        tables: those of any rank in it; each statement names the tables that it reads.

    Raises:
        InputError: the file cannot be opened.
    """
    cache: ConnectionCache | None = getattr(_THREAD, "cache", None)
    database = cache.take(opening) if cache else None
    database = database or ShareDatabase(Share(opening, 0, (tables.rank or 0,), (tables,)))
    try:
        yield database
    except BaseException:
        database.close()
        raise
    # A statement left open would keep the file locked.
    if cache and database.connection.txn_state() == apsw.SQLITE_TXN_NONE:
        cache.put_back(database)
    else:
        database.close()
