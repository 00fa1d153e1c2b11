"""Owns running a plan: statements in every share on several threads, gathered in order, then combined.

The result does not depend on the number of threads: what they give is put together in the order of the shares.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeAlias

import apsw

from rocpd.federate.open import told_as_input_error
from rocpd.federate.pool import Pool, Share, ShareDatabase
from rocpd.federate.result import Cursor
from rocpd.federate.steps import Plan, Scatter, Strategy
from rocpd.schema.quote import quote_name

Row: TypeAlias = tuple[Any, ...]
Bindings: TypeAlias = Mapping[str, Any]
Progress: TypeAlias = Callable[[int, int], None]

_CHUNK = 10_000  # rows handed over at a time
_MANY = 10_000  # rows of one rank from which threads only get in each other's way (measured: 1.5 times slower)


class Run:
    """One plan being run over `shares`."""

    def __init__(self, plan: Plan, shares: Sequence[Share], pool: Pool, bindings: Bindings, threads: int = 0) -> None:
        self._plan = plan
        self._shares = shares
        self._pool = pool
        self._bindings = bindings
        self._threads = threads or os.cpu_count() or 1
        self._gathered = apsw.Connection("")  # a temporary file that SQLite deletes, spilled to when it grows
        self._tables: dict[str, tuple[str, ...]] = {}
        self._stopped = threading.Event()

    def rows(self, progress: Progress | None = None) -> Iterator[Row]:
        """Give the rows of the result, streamed.

        Args:
            progress: called with (ranks done, ranks in all).

        Raises:
            QueryError: SQLite refuses something; the statement may still run attached.
            InputError: a file cannot be opened or is damaged.
        """
        try:
            for step in self._plan.steps:
                if isinstance(step, Scatter):
                    self._keep(step.table, step.columns, self._from_ranks(step.select, step.reads, progress))
                else:
                    self._keep(step.table, step.columns, [self._combined(step.select)])
            if self._plan.strategy is Strategy.ROWS:
                for rows in self._from_ranks(self._plan.final, self._plan.reads, progress):
                    yield from rows
            else:
                yield from self._combined(self._plan.final)
        finally:
            self._gathered.close(True)

    def _combined(self, select: str) -> Cursor:
        return Cursor(self._gathered, select, self._bindings)

    def _keep(self, table: str, columns: Sequence[str], chunks: Iterator[list[Row]] | list[Cursor]) -> None:
        _create(self._gathered, table, columns)
        self._tables[table] = tuple(columns)
        with self._gathered:
            for rows in chunks:
                self._gathered.executemany(_insert(table, columns), rows)

    def _from_ranks(self, select: str, reads: Sequence[str], progress: Progress | None) -> Iterator[list[Row]]:
        """Run `select` in every rank and give the rows in rank order.

        The first rank tells: few rows, then the others run on threads; many, then one after the other.
        """
        copies = {table: self._gathered.execute(f"SELECT * FROM {quote_name(table)}").fetchall() for table in reads}
        first, *others = self._shares
        count, total = 0, len(self._shares)
        for rows in self._chunks(first, select, copies):
            count += len(rows)
            yield rows
        if progress:
            progress(1, total)
        if count >= _MANY or self._threads == 1:
            for number, share in enumerate(others, 2):
                yield from self._chunks(share, select, copies)
                if progress:
                    progress(number, total)
            return
        for number, rows in enumerate(self._on_threads(others, select, copies), 2):
            yield rows
            if progress:
                progress(number, total)

    def _on_threads(self, shares: Sequence[Share], select: str, copies: Mapping[str, list[Row]]) -> Iterator[list[Row]]:
        with _workers(self._threads, self._stop) as workers:
            waiting = iter(shares)
            running: deque[Future[list[Row]]] = deque()
            for _ in shares:
                while len(running) <= self._threads and (share := next(waiting, None)):
                    running.append(workers.submit(self._all, share, select, copies))
                yield running.popleft().result()

    def _stop(self) -> None:
        self._stopped.set()
        self._pool.interrupt()

    def _all(self, share: Share, select: str, copies: Mapping[str, list[Row]]) -> list[Row]:
        if self._stopped.is_set():
            return []
        return [row for rows in self._chunks(share, select, copies) for row in rows]

    def _chunks(self, share: Share, select: str, copies: Mapping[str, list[Row]]) -> Iterator[list[Row]]:
        path = share.opening.path
        with told_as_input_error(path), self._pool.lend(share) as database, self._lent(database, copies):
            cursor = database.execute(select, self._bindings)
            while rows := cursor.fetchmany(_CHUNK):
                yield rows

    @contextlib.contextmanager
    def _lent(self, database: ShareDatabase, copies: Mapping[str, list[Row]]) -> Iterator[None]:
        """Give a rank copies of gathered tables for the length of a statement."""
        connection = database.connection
        for table, rows in copies.items():
            _create(connection, table, self._tables[table], "TEMP ")
            connection.executemany(_insert(table, self._tables[table]), rows)
        try:
            yield
        finally:
            for table in copies:
                connection.execute(f"DROP TABLE temp.{quote_name(table)}")


def _create(connection: apsw.Connection, table: str, columns: Sequence[str], kind: str = "") -> None:
    connection.execute(f"CREATE {kind}TABLE {quote_name(table)} ({', '.join(map(quote_name, columns))})")


def _insert(table: str, columns: Sequence[str]) -> str:
    return f"INSERT INTO {quote_name(table)} VALUES ({', '.join('?' * len(columns))})"


@contextlib.contextmanager
def _workers(threads: int, stop: Callable[[], None]) -> Iterator[ThreadPoolExecutor]:
    """A thread pool that ends at once when the block is left early: Ctrl-C, an error, an abandoned result."""
    workers = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="rocpd")
    try:
        yield workers
    except BaseException:
        stop()
        raise
    finally:
        workers.shutdown(wait=True, cancel_futures=True)
