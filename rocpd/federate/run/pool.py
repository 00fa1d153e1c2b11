"""Connections to the shares of a job, which have one borrower at a time and are kept for the next one.

A share is one file, or some ranks of a merged file. A pool keeps a limited number of a session's connections for its
next statement. A worker keeps the connection to the file that it read last: each rank of a merged file is a task, and
SQLite reads the entire schema whenever a file is opened; so that happens once per worker, not once per rank.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
import resource
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from typing import TypeAlias, TypeVar

from rocpd.base import Answer, Parameters, Row, frozen, process
from rocpd.base.sqlite import apsw
from rocpd.federate.limits import Limits
from rocpd.federate.open.guard import authorize, bound
from rocpd.federate.open.identify import Rank, by_file
from rocpd.federate.open.opening import Opening, raise_for_damaged_file
from rocpd.federate.result import Cursor, as_query_error
from rocpd.federate.unify import Unifier
from rocpd.schema.render import RankTables, with_relations

_MOST_WITH_PAGES = 64  # idle connections that keep their page cache, up to 2 MB each
_MANY_TIMES, _MOST_OF_MANY = 16, 16  # with so many times more files than connections, hardly any is open when needed
_PART_OF_DESCRIPTORS = 4  # a quarter of the descriptors: temporary files and the rest of the process need some too
_ONE_READING = re.compile(r"(EXPLAIN QUERY PLAN |)\s*(?:SELECT|INSERT INTO temp\.\w+ SELECT)\b[^;]*\Z", re.IGNORECASE)
"""One statement that can't write to a file, so that no authorizer has to be asked about each of its columns."""


@frozen
class Share:
    """The ranks of one file that one statement of a plan runs on.

    Shares of the same ranks are equal, whichever rows are selected: they use the same connection.

    Args:
        opening: the file.
        block: number of this block of the file's ranks.
        ranks: numbers of the ranks.
        tables: tables of the ranks as a connection to the file names them.
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
        most: greatest number of shares of a file.
    """
    shares = []
    for opening, ranks_of_file in by_file(ranks).items():
        size = -(-len(ranks_of_file) // most)
        for block, first in enumerate(range(0, len(ranks_of_file), size)):
            numbers = tuple(rank.number for rank in ranks_of_file[first : first + size])
            shares.append(Share(opening, block, numbers, tuple(tables[number] for number in numbers)))
    return tuple(shares)


_form_of = functools.lru_cache(512)(_ONE_READING.match)  # the same statements run rank after rank


def _reading(sql: str, tables: RankTables) -> str | None:
    """Return a statement on one rank rewritten to need no view; None if it is not a single SELECT or INSERT."""
    form = _form_of(sql)
    return form[1] + with_relations(sql[form.end(1) :], tables) if form else None


class ShareDatabase:
    """A connection to one share: its tables and views show all of the share's ranks, or one of them."""

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
            tables: tables of the ranks that it sees; None: of all ranks of the share.
            exact: text that is not UTF-8 is an error.
        """
        tables = self.share.tables if tables is None else tables
        text = _reading(sql, tables[0]) if len(tables) == 1 else None
        if text is None:
            self._prepare(sql, tables)
        return Cursor(self.connection, text or sql, bindings, self._on_error, exact)

    def rows(self, sql: str, bindings: Parameters, tables: RankTables) -> list[Row]:
        """Return all rows of a statement on one rank, as `execute`; its cursor takes as long as a small statement."""
        if text := _reading(sql, tables):
            with as_query_error(self._on_error), contextlib.suppress(UnicodeDecodeError):
                return self.connection.execute(text, bindings).fetchall()
        return self.execute(sql, bindings, (tables,)).fetchall()

    def _on_error(self, error: BaseException | None) -> None:
        raise_for_damaged_file([self.share.opening], error)

    def _prepare(self, sql: str, tables: Sequence[RankTables]) -> None:
        """Create the views that a statement names; the statement may write to temp only."""
        if self._guarded is None or self._guarded.tables != tables:
            if self._guarded:
                self._guarded.drop()
            self._guarded = Unifier(self.connection, tables, keyed=True)
        self.connection.authorizer = authorize
        self._guarded.prepare(sql)

    def close(self) -> None:
        """Close the connection, unless it belongs to a parent process."""
        if self._maker == process.number():
            self.connection.close(True)


class Pool:
    """Connections by share; idle ones are kept up to a limit.

    Connections that identified files become the first ones of their shares: SQLite reads the schema once for each
    connection, which takes longer than most statements on a small file.
    """

    def __init__(self, limits: Limits, files: int = 0) -> None:
        """Take the limits, and the number of files."""
        self.limits = limits
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = limits.idle_connections if files < _MANY_TIMES * limits.idle_connections else _MOST_OF_MANY
        self._most = max(4, min(most, soft // _PART_OF_DESCRIPTORS))
        self._most_later = self._most if files <= self._most else min(self._most, _MOST_OF_MANY)
        self._idle: dict[Share, ShareDatabase] = {}
        self._busy: set[ShareDatabase] = set()
        self._lock = threading.Lock()
        process.renew_when_forked(self)

    def renew(self) -> None:
        """Have no connections, in a forked child."""
        process.abandon(self._idle, self._busy)
        self._idle, self._busy, self._lock = {}, set(), threading.Lock()

    def keep(self, opening: Opening, connection: apsw.Connection) -> None:
        """Keep the connection that identified a file, or close it if there is no room."""
        database = ShareDatabase(Share(opening, 0, (), ()), connection)
        with self._lock:
            has_room = len(self._idle) < self._most
            if has_room:
                self._idle[database.share] = database
        if not has_room:
            connection.close()
        elif len(self._idle) > _MOST_WITH_PAGES:
            connection.release_memory()

    def rest(self) -> None:
        """Close idle connections; where not all files can stay open, keep few later, as few ranks are read again."""
        self._most = self._most_later
        self.keep_only(())

    def keep_only(self, openings: Collection[Opening]) -> None:
        """Close the connections to all files but some, if they are not in use."""
        with self._lock:
            others = [self._idle.pop(share) for share in [*self._idle] if share.opening not in openings]
        for database in others:
            database.close()

    @contextlib.contextmanager
    def lend(self, share: Share) -> Iterator[ShareDatabase]:
        """Lend a share's database for the length of a block.

        Raises:
            InputError: the file cannot be opened.
        """
        with self._lock:
            same = share if share in self._idle else next((e for e in self._idle if e.opening is share.opening), None)
            idle = self._idle.pop(same) if same else None
        database = idle or ShareDatabase(share)
        database.share = share  # another selection may have used the connection
        with self._lock:
            self._busy.add(database)
        try:
            yield database
        finally:
            self._take_back(database)

    def _take_back(self, database: ShareDatabase) -> None:
        with self._lock:
            was_closed = database not in self._busy
            self._busy.discard(database)
            if was_closed or database.connection.txn_state() != apsw.SQLITE_TXN_NONE:
                database.close()  # a statement was left open, which would keep the file locked
                return
            surplus = [self._idle.pop(database.share)] if database.share in self._idle else []
            self._idle[database.share] = database
            if len(self._idle) > _MOST_WITH_PAGES:
                database.connection.release_memory()
            if len(self._idle) > self._most:
                # Statements go through the shares in turn: the least recently used ones come next, so they are kept.
                surplus.append(self._idle.pop(next(itertools.islice(reversed(self._idle), 1, None))))
        for old in surplus:
            old.connection.close()

    def close(self) -> None:
        """Close everything."""
        self.keep_only(())
        with self._lock:
            databases = [*self._busy]
            self._busy.clear()
        for database in databases:
            try:
                database.close()
            except apsw.ThreadingViolationError:  # a thread is at work on it, and will close it
                database.connection.interrupt()


Task = TypeVar("Task")
Lend: TypeAlias = Callable[[Share], AbstractContextManager[ShareDatabase]]
"""Lends a connection to the file of a share for the length of a block."""

_THREAD = threading.local()  # its `lend` lends connections to the task that runs in this thread


def run_lending(lend: Lend, work: Callable[[Task], Answer], task: Task) -> Answer:
    """Return `work(task)`, which borrows its connections from `lend`."""
    outer = getattr(_THREAD, "lend", None)
    _THREAD.lend = lend
    try:
        return work(task)
    finally:
        _THREAD.lend = outer


def borrow(share: Share) -> AbstractContextManager[ShareDatabase]:
    """Return a connection to the file of a share for the length of a block, a new one outside of tasks.

    Raises:
        InputError: the file cannot be opened.
    """
    lend: Lend | None = getattr(_THREAD, "lend", None)
    return lend(share) if lend else contextlib.closing(ShareDatabase(share))


class ConnectionCache:
    """Lends connections to tasks that run one after the other: the file of a task stays open for the next task."""

    def __init__(self) -> None:
        self._idle: ShareDatabase | None = None

    @contextlib.contextmanager
    def lend(self, share: Share) -> Iterator[ShareDatabase]:
        """Lend a connection to the file of a share for the length of a block; errors as `Pool.lend`."""
        if self._idle and self._idle.share.opening != share.opening:
            self.close()
        database, self._idle = self._idle or ShareDatabase(share), None
        try:
            yield database
        except BaseException:
            database.close()
            raise
        self.close()
        if database.connection.txn_state() == apsw.SQLITE_TXN_NONE:
            self._idle = database
        else:  # a statement was left open, which would keep the file locked
            database.close()

    def close(self) -> None:
        """Close the idle connection; idempotent."""
        if self._idle:
            self._idle.close()
            self._idle = None
