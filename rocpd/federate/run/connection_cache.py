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

_HERE = threading.local()  # keeper: whose task this thread does


class Keeper:
    """Does tasks one after the other; what `lent` opens for one stays open for the next."""

    def __init__(self) -> None:
        self._kept: ShareDatabase | None = None

    def do(self, work: Callable[[Task], Answer], task: Task) -> Answer:
        """Give `work(task)`."""
        before = getattr(_HERE, "keeper", None)
        _HERE.keeper = self
        try:
            return work(task)
        finally:
            _HERE.keeper = before

    def take(self, opening: Opening) -> ShareDatabase | None:
        """Give what is kept if it is this file, and keep nothing any more."""
        kept, self._kept = self._kept, None
        if kept and kept.share.opening != opening:
            kept.close()
            return None
        return kept

    def give(self, database: ShareDatabase) -> None:
        """Keep a file that nobody reads any more."""
        self.close()
        self._kept = database

    def close(self) -> None:
        """Close what is kept; twice is fine."""
        if self._kept:
            self._kept.close()
            self._kept = None


@contextlib.contextmanager
def lent(opening: Opening, part: RankTables) -> Iterator[ShareDatabase]:
    """Lend a connection to a file for the length of a block.

    Args:
        opening: the file.
        part: tables of a rank in it; statements say whose they mean.

    Raises:
        InputError: the file cannot be opened.
    """
    keeper: Keeper | None = getattr(_HERE, "keeper", None)
    database = (keeper.take(opening) if keeper else None) or ShareDatabase(Share(opening, (part,)))
    try:
        yield database
    except BaseException:
        database.close()
        raise
    # A statement left open would keep the file locked.
    if keeper and database.connection.txn_state() == apsw.SQLITE_TXN_NONE:
        keeper.give(database)
    else:
        database.close()
