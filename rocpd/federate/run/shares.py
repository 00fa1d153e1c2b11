"""Shares of a job: connections to them, and the questions to ranks that they answer.

A share is one file, or some ranks of a merged file. Connections have one borrower at a time and are kept for the next
one: a pool keeps a limited number of a session's connections for its next statement. A worker keeps the connection to
the file that it read last: each rank of a merged file is a task, and SQLite reads the entire schema whenever a file is
opened; so that happens once per worker, not once per rank.

A request is the question for one step of a plan, answered by a share on any machine, or by an index of columns. It is a
value that can be sent to another process, borrows a connection and leaves nothing on it. A `Columnar` answers without
reading files: `rocpd.index` has one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import re
import resource
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from typing import Any, Protocol, TypeAlias, TypeVar

from rocpd.base import Answer, Parameters, Row, frozen, process
from rocpd.base.sqlite import apsw
from rocpd.federate.limits import Limits
from rocpd.federate.open.guard import authorize, bound, let_signals_in
from rocpd.federate.open.identify import Rank, by_file
from rocpd.federate.open.opening import Opening, as_input_error, raise_for_damaged_file
from rocpd.federate.plan.steps import Scatter, Step, create_table, drop_table, insert_text
from rocpd.federate.result import Cursor, as_query_error, spooled
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


Bindings: TypeAlias = Mapping[str, Any]
"""Values of the parameters of a statement, by name."""


@frozen
class RankQuestion:
    """A SELECT for every rank.

    Args:
        step: the statement, which sees one rank.
        bindings: values of its parameters.
        gathered: gathered tables that it joins, with their rows.
    """

    step: Scatter
    bindings: Bindings
    gathered: tuple[tuple[Step, tuple[Row, ...]], ...] = ()


class Columnar(Protocol):
    """Answers questions in place of ranks, without reading their files."""

    def rows(
        self, question: RankQuestion, shares: Sequence[Share], *, insists: bool = False
    ) -> Iterator[list[Row]] | None:
        """Return the rows that ranks would return for a question, added up over ranks where they add up.

        Args:
            question: the question.
            shares: the ranks with their selected rows.
            insists: raise an error instead of returning None.

        Returns:
            Rows, some at a time; None: the ranks have to be asked.

        Raises:
            UsageError: the ranks have to be asked; the message says why.
        """

    @property
    def why_not(self) -> str:
        """Why no question can be answered: a file has no index or has changed; empty: some can."""

    def can_answer(self, question: RankQuestion, shares: Sequence[Share]) -> str:
        """Return why the ranks have to be asked; empty if they need not be, as far as known before gathering rows."""

    def of_ranks(self, numbers: Collection[int]) -> Columnar:
        """Return the index of some ranks, which can be sent to another process; that process looks up their entries.

        Args:
            numbers: numbers of the ranks.
        """

    def close(self) -> None:
        """Release all opened files; idempotent."""


Stopped: TypeAlias = Callable[[], bool]

_COLLECTED = "rows_of_share"


@frozen
class PlanLine:
    """A line of SQLite's plan of a statement.

    Args:
        number: number of the line.
        parent: number of the line that it belongs to; 0: it belongs to the statement.
        detail: the operation, as EXPLAIN QUERY PLAN prints it.
    """

    number: int
    parent: int
    detail: str


@frozen
class Request:
    """The question to every rank, and how it is asked.

    Args:
        question: the statement.
        exact: text that is not UTF-8 is an error; else its invalid bytes become `\\xNN`.
        chunk_rows: number of rows yielded at a time.
        index: answers for ranks on another machine, where their files have entries.
    """

    question: RankQuestion
    exact: bool = False
    chunk_rows: int = Limits.chunk_rows
    index: Columnar | None = None

    @property
    def step(self) -> Scatter:
        """The step of the plan that the request is for."""
        return self.question.step

    def of_shares(self, shares: Sequence[Share]) -> Request:
        """Return the request with only the part of the index that some shares need."""
        numbers = {number for share in shares for number in share.ranks}
        return dataclasses.replace(self, index=self.index and self.index.of_ranks(numbers))

    def from_index(self, shares: Sequence[Share]) -> list[Row] | None:
        """Return the rows of shares from the index; None: the shares have to be asked."""
        if self.index is None:
            return None
        with contextlib.closing(self.index):
            chunks = self.index.rows(self.question, shares)
            return None if chunks is None else [row for rows in chunks for row in rows]

    def chunks(self, database: ShareDatabase, stopped: Stopped = lambda: False) -> Iterator[list[Row]]:
        """Yield the rows of a share as they come, one rank after the other.

        Raises:
            QueryError: SQLite refuses the statement; it may still run attached.
            InputError: the file cannot be read.
        """
        spools: list[Iterator[Row]] = []
        with self._prepared(database, stopped):
            for tables in database.share.tables:
                cursor = database.execute(self.step.select, self.question.bindings, (tables,), self.exact)
                with contextlib.closing(cursor):
                    if database.share.opening.is_live:
                        spools.append(spooled(cursor, len(self.step.columns)))
                    else:
                        yield from in_chunks(cursor, self.chunk_rows)
        for rows in spools:
            yield from in_chunks(rows, self.chunk_rows)

    def plan(self, database: ShareDatabase, tables: RankTables) -> list[PlanLine]:
        """Return SQLite's plan of the statement on a rank of a share; errors as for `chunks`."""
        with self._prepared(database, lambda: False):
            explain = f"EXPLAIN QUERY PLAN {self.step.select}"
            with contextlib.closing(database.execute(explain, self.question.bindings, (tables,))) as cursor:
                return [PlanLine(number, parent, detail) for number, parent, _, detail in cursor]

    def collect(self, database: ShareDatabase, stopped: Stopped = lambda: False) -> list[Row]:
        """Return all rows of a share; errors as for `chunks`."""
        return [row for rows in self.chunks(database, stopped) for row in rows]

    def collect_up_to(self, database: ShareDatabase, most: int, stopped: Stopped = lambda: False) -> list[Row] | None:
        """Return all rows of a share, or None if there are more than `most`; errors as for `chunks`.

        SQLite collects them in a table: rows that go to Python one by one make threads wait for each other.
        """
        columns = ", ".join(f"c{i}" for i in range(len(self.step.columns)))
        connection = database.connection
        with self._prepared(database, stopped):
            connection.execute(f"CREATE TEMP TABLE {_COLLECTED} ({columns})")  # without types: values stay as they are
            try:
                for tables in database.share.tables:
                    insert = f"INSERT INTO temp.{_COLLECTED} SELECT * FROM (\n{self.step.select}\n) LIMIT {most + 1}"
                    database.execute(insert, self.question.bindings, (tables,), self.exact).close()
                select = f"SELECT {columns} FROM temp.{_COLLECTED} LIMIT {most + 1}"
                with contextlib.closing(Cursor(connection, select, exact=self.exact)) as cursor:
                    rows = cursor.fetchall()
            finally:
                connection.execute(f"DROP TABLE temp.{_COLLECTED}")
        return rows if len(rows) <= most else None

    @contextlib.contextmanager
    def _prepared(self, database: ShareDatabase, stopped: Stopped) -> Iterator[None]:
        """Create gathered tables beside those of the rank and let `stopped` end statements, while a block runs."""
        connection = database.connection
        with as_input_error(database.share.opening.path):
            for step, rows in self.question.gathered:
                create_table(connection, step, "TEMP ")
                connection.executemany(insert_text(step), rows)
            let_signals_in(connection, stopped)
            try:
                yield
            finally:
                with contextlib.suppress(apsw.ConnectionClosedError):  # rows that nobody read to the end
                    let_signals_in(connection)
                    for step, _ in self.question.gathered:
                        drop_table(connection, step)


def in_chunks(rows: Iterator[Row], size: int) -> Iterator[list[Row]]:
    """Yield rows `size` at a time."""
    while chunk := list(itertools.islice(rows, size)):
        yield chunk
