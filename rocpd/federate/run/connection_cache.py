"""Owns the one connection that a worker keeps between tasks, to the file it read last.

The ranks of a merged file are tasks of their own, and SQLite reads the whole schema whenever the file is opened: kept
open, that happens once per worker, not once per rank. Nothing is kept outside of a worker's tasks.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

import apsw

from rocpd.federate.open.opening import Opening
from rocpd.federate.run.executor import Task
from rocpd.federate.run.pool import Share, ShareDatabase
from rocpd.schema.render import RankTables
from rocpd.types import Answer

_HERE = threading.local()  # cache: that of whoever's task this thread does


class ConnectionCache:
    """Does tasks one after the other; what `borrow` opens for one stays open for the next."""

    def __init__(self) -> None:
        self._idle: ShareDatabase | None = None

    def run(self, work: Callable[[Task], Answer], task: Task) -> Answer:
        """Give `work(task)`."""
        before = getattr(_HERE, "cache", None)
        _HERE.cache = self
        try:
            return work(task)
        finally:
            _HERE.cache = before

    def take(self, opening: Opening) -> ShareDatabase | None:
        """Give what is kept if it is this file, and keep nothing any more."""
        idle, self._idle = self._idle, None
        if idle and idle.share.opening != opening:
            idle.close()
            return None
        return idle

    def give(self, database: ShareDatabase) -> None:
        """Keep a file that nobody reads any more."""
        self.close()
        self._idle = database

    def close(self) -> None:
        """Close what is open; idempotent."""
        if self._idle:
            self._idle.close()
            self._idle = None


@contextlib.contextmanager
def borrow(opening: Opening, part: RankTables) -> Iterator[ShareDatabase]:
    """Lend a connection to a file for the length of a block.

    Args:
        opening: the file.
        part: tables of a rank in it; statements say whose they mean.

    Raises:
        InputError: the file cannot be opened.
    """
    cache: ConnectionCache | None = getattr(_HERE, "cache", None)
    database = (cache.take(opening) if cache else None) or ShareDatabase(Share(opening, 0, (part.rank or 0,), (part,)))
    try:
        yield database
    except BaseException:
        database.close()
        raise
    # A statement left open would keep the file locked.
    if cache and database.connection.txn_state() == apsw.SQLITE_TXN_NONE:
        cache.give(database)
    else:
        database.close()
