"""Connections to the shares of a job, which have one borrower at a time and are kept for the next one.

A share is one file, or some ranks of a merged one. A pool keeps those of a session, limited in number, for its next
statement. A worker keeps the one to the file that it read last: each rank of a merged file is a task, and SQLite reads
the entire schema whenever a file is opened; so that happens once per worker, not once per rank.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import resource
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import TypeVar

from rocpd.base import Answer, Parameters, frozen, process
from rocpd.base.sqlite import apsw
from rocpd.federate.limits import Limits
from rocpd.federate.open.guard import authorize, bound
from rocpd.federate.open.identify import Rank, by_file
from rocpd.federate.open.opening import Opening, raise_for_damaged_file
from rocpd.federate.result import Cursor
from rocpd.federate.unify import Unifier
from rocpd.schema.render import RankTables, with_relations

_MOST_WITH_PAGES = 64  # idle connections that keep their page cache, up to 2 MB each
_PART_OF_DESCRIPTORS = 4  # a quarter of them: temporary files and the rest of the process need some too
_ONE_READING = re.compile(r"(EXPLAIN QUERY PLAN |)\s*(?:SELECT|INSERT INTO temp\.\w+ SELECT)\b[^;]*\Z", re.IGNORECASE)
"""One statement that can't write to a file, so that no authorizer is asked, for each column, whether it may."""


@frozen
class Share:
    """The ranks of one file that one statement of a plan runs on.

    Shares of the same ranks are equal, whichever of their rows are selected: they use the same connection.

    Args:
        opening: the file.
        block: which block of the file's ranks this is.
        ranks: their numbers.
        tables: their tables as a connection to the file names them.
    """

    opening: Opening
    block: int
    ranks: tuple[int, ...]
    tables: tuple[RankTables, ...] = field(compare=False)


def shares_of(ranks: Sequence[Rank], tables: Mapping[int, RankTables], most: int) -> tuple[Share, ...]:
    """Return one share per file; the ranks of a merged file are split into up to `most` shares, in blocks.

    Args:
        ranks: the ranks.
        tables: rank number -> its tables.
        most: shares of a file.
    """
    shares = []
    for opening, ranks_of_file in by_file(ranks).items():
        size = -(-len(ranks_of_file) // most)
        for block, first in enumerate(range(0, len(ranks_of_file), size)):
            numbers = tuple(rank.number for rank in ranks_of_file[first : first + size])
            shares.append(Share(opening, block, numbers, tuple(tables[number] for number in numbers)))
    return tuple(shares)


class ShareDatabase:
    """A connection to one share: its tables and views are those of the share's ranks, or of one of them."""

    def __init__(self, share: Share, connection: apsw.Connection | None = None) -> None:
        self.share = share
        self._maker = process.number()
        self.connection = connection or share.opening.connect()
        bound(self.connection)
        self._guarded: Unifier | None = None

    def execute(
        self, sql: str, bindings: Parameters = None, tables: Sequence[RankTables] | None = None, exact: bool = False
    ) -> Cursor:
        """Run a statement; errors as for `Session.execute`.

        Args:
            sql: the statement.
            bindings: values of its parameters.
            tables: those of the ranks that it sees; None: of all ranks of the share.
            exact: text that is not UTF-8 is an error.
        """
        tables = self.share.tables if tables is None else tables
        if len(tables) == 1 and (form := _ONE_READING.match(sql)):
            sql = form[1] + with_relations(sql[form.end(1) :], tables[0])
        else:
            self._prepare(sql, tables)
        return Cursor(self.connection, sql, bindings, partial(raise_for_damaged_file, [self.share.opening]), exact)

    def _prepare(self, sql: str, tables: Sequence[RankTables]) -> None:
        """Create the views that a statement names; it may write to temp alone."""
        if self._guarded is None or self._guarded.tables != tables:
            if self._guarded:
                self._guarded.drop()
            self._guarded = Unifier(self.connection, tables, keyed=True)
        self.connection.authorizer = authorize
        self._guarded.prepare(sql)

    def close(self) -> None:
        """Close the connection, unless it is a parent's."""
        if self._maker == process.number():
            self.connection.close(True)


class Pool:
    """Connections by share; idle ones are kept up to a limit.

    Those by which files were identified become the first ones of their shares: SQLite reads the schema once for each
    connection, which takes longer than most statements on a small file.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._most = max(4, min(limits.idle_connections, soft // _PART_OF_DESCRIPTORS))
        self._idle: dict[Share, ShareDatabase] = {}
        self._first: dict[Opening, apsw.Connection] = {}
        self._busy: set[ShareDatabase] = set()
        self._lock = threading.Lock()
        process.renew_when_forked(self)

    def renew(self) -> None:
        """Have no connections, in a forked child."""
        process.abandon(self._idle, self._busy, self._first)
        self._idle, self._busy, self._first, self._lock = {}, set(), {}, threading.Lock()

    def keep(self, opening: Opening, connection: apsw.Connection) -> None:
        """Keep the connection by which a file was identified, or close it where there is no room."""
        with self._lock:
            has_room = len(self._first) < self._most
            if has_room:
                self._first[opening] = connection
        if not has_room:
            connection.close()
        elif len(self._first) > _MOST_WITH_PAGES:
            connection.release_memory()

    def keep_only(self, openings: Collection[Opening]) -> None:
        """Close the connections to all files but some."""
        with self._lock:
            others = [self._first.pop(opening) for opening in [*self._first] if opening not in openings]
        for connection in others:
            connection.close()

    @contextlib.contextmanager
    def lend(self, share: Share) -> Iterator[ShareDatabase]:
        """Lend a share's database for the length of a block.

        Raises:
            InputError: the file cannot be opened.
        """
        with self._lock:
            idle = self._idle.pop(share, None)
            first = None if idle else self._first.pop(share.opening, None)
        database = idle or ShareDatabase(share, first)
        database.share = share  # another selection may have used the connection
        with self._lock:
            self._busy.add(database)
        try:
            yield database
        finally:
            self._take_back(database)

    def take(self, share: Share) -> ShareDatabase | None:
        """Return an idle connection to the file of a share, in use from now on; None: there is none."""
        with self._lock:
            first = self._first.pop(share.opening, None)
            same = share if share in self._idle else next((e for e in self._idle if e.opening is share.opening), None)
            database = ShareDatabase(share, first) if first else self._idle.pop(same) if same else None
            if database:
                self._busy.add(database)
            return database

    def put_back(self, database: ShareDatabase) -> None:
        """Keep a connection that is no longer in use, taken from here or not."""
        with self._lock:
            self._busy.add(database)
        self._take_back(database)

    def _take_back(self, database: ShareDatabase) -> None:
        with self._lock:
            if database not in self._busy:  # closed meanwhile
                database.close()
                return
            self._busy.discard(database)
            surplus = [self._idle.pop(database.share).connection] if database.share in self._idle else []
            self._idle[database.share] = database
            if len(self._idle) > _MOST_WITH_PAGES:
                database.connection.release_memory()
            if len(self._idle) + len(self._first) > self._most:
                # Statements go through the shares in turn: the least recently used ones come next, so they are kept.
                before = next(itertools.islice(reversed(self._idle), 1, None), database.share)
                surplus.append(self._first.popitem()[1] if self._first else self._idle.pop(before).connection)
        for old in surplus:
            old.close()

    def close_idle(self) -> None:
        """Close the connections that are not in use."""
        with self._lock:
            idle = [*self._idle.values()]
            self._idle.clear()
        self.keep_only(())
        for database in idle:
            database.close()

    def close(self) -> None:
        """Close everything."""
        self.close_idle()
        with self._lock:
            databases = [*self._busy]
            self._busy.clear()
        for database in databases:
            try:
                database.close()
            except apsw.ThreadingViolationError:  # a thread is at work on it, and will close it
                database.connection.interrupt()


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

    def take(self, share: Share) -> ShareDatabase | None:
        """Remove and return the open connection if it is to the file of this share; else close it."""
        idle, self._idle = self._idle, None
        if idle and idle.share.opening != share.opening:
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

    def take(self, share: Share) -> ShareDatabase | None:
        """Remove and return an idle connection to the file of this share."""
        return self._pool.take(share)

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
    share = Share(opening, 0, (tables.rank or 0,), (tables,))
    database = (cache.take(share) if cache else None) or ShareDatabase(share)
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
