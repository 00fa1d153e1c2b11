"""Owns running a plan: statements in every share on several threads, gathered in order, then combined.

The result does not depend on the number of threads: what they give is put together in the order of the shares.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeAlias

import apsw

from rocpd.federate.attach import stop_when
from rocpd.federate.open import told_as_input_error
from rocpd.federate.pool import Pool, Share, ShareDatabase
from rocpd.federate.result import Cursor
from rocpd.federate.spool import spooled
from rocpd.federate.steps import Combine, Plan, Scatter, Strategy
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
        stop_when(self._gathered)
        self._kept: dict[str, Scatter | Combine] = {}
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
                    self._keep(step, self._from_ranks(step.select, step.reads, progress, step.few))
                else:
                    self._keep(step, [self._combined(step.select, exact=True)])
            if self._plan.strategy is Strategy.ROWS:
                for rows in self._from_ranks(self._plan.final, self._plan.reads, progress):
                    yield from rows
            else:
                yield from self._combined(self._plan.final)
        finally:
            self._gathered.close(True)

    def _combined(self, select: str, exact: bool = False) -> Cursor:
        return Cursor(self._gathered, select, self._bindings, exact=exact)

    def _keep(self, step: Scatter | Combine, chunks: Iterable[Iterable[Row]]) -> None:
        self._kept[step.table] = step
        _create(self._gathered, step)
        with self._gathered:
            for rows in chunks:
                self._gathered.executemany(_insert(step), rows)

    def _from_ranks(
        self, select: str, reads: Sequence[str], progress: Progress | None, few: bool = False
    ) -> Iterator[list[Row]]:
        """Run `select` in every rank and give the rows in rank order.

        `few`: every rank gives few rows, so they run on threads. Else the first rank tells whether they do.
        """
        copies = {table: self._combined(f"SELECT * FROM {quote_name(table)}").fetchall() for table in reads}
        done, count, total = 0, 0, len(self._shares)
        shares = deque(self._shares)
        while shares and not few:
            for rows in self._chunks(shares.popleft(), select, copies):
                count += len(rows)
                yield rows
            done += 1
            if progress:
                progress(done, total)
            few = count < _MANY
        for rows in self._on_threads(shares, select, copies):
            yield rows
            done += 1
            if progress:
                progress(done, total)

    def _on_threads(self, shares: Iterable[Share], select: str, copies: Mapping[str, list[Row]]) -> Iterator[list[Row]]:
        """Give the rows of each share, in order. A share takes its turn when a thread is free and few wait ahead."""
        waiting = iter(shares)
        if self._threads == 1:
            for share in waiting:
                yield self._all(share, select, copies)
            return
        with _workers(self._threads, self._stopped.set) as workers:
            running: deque[Future[list[Row]]] = deque()
            for share in itertools.islice(waiting, 2 * self._threads):
                running.append(workers.submit(self._all, share, select, copies))
            while running:
                rows = running.popleft().result()
                for share in itertools.islice(waiting, 1):
                    running.append(workers.submit(self._all, share, select, copies))
                yield rows

    def _all(self, share: Share, select: str, copies: Mapping[str, list[Row]]) -> list[Row]:
        if self._stopped.is_set():
            return []
        return [row for rows in self._chunks(share, select, copies) for row in rows]

    def _chunks(self, share: Share, select: str, copies: Mapping[str, list[Row]]) -> Iterator[list[Row]]:
        # Text that Python can't hold as it is, is written otherwise: fine as a result, not for further use.
        exact = select is not self._plan.final
        path = share.opening.path
        with told_as_input_error(path), self._pool.lend(share) as database, self._lent(database, copies):
            stop_when(database.connection, self._stopped.is_set)
            cursor = database.execute(select, self._bindings, exact=exact)
            try:
                if not share.opening.is_live:
                    yield from _in_chunks(cursor)
                    return
                kept = spooled(cursor, len(cursor.columns))
            finally:
                cursor.close()
                stop_when(database.connection)
        yield from _in_chunks(kept)

    @contextlib.contextmanager
    def _lent(self, database: ShareDatabase, copies: Mapping[str, list[Row]]) -> Iterator[None]:
        """Give a rank copies of gathered tables for the length of a statement."""
        connection = database.connection
        for table, rows in copies.items():
            _create(connection, self._kept[table], "TEMP ")
            connection.executemany(_insert(self._kept[table]), rows)
        try:
            yield
        finally:
            for table in copies:
                connection.execute(f"DROP TABLE temp.{quote_name(table)}")


def _in_chunks(rows: Iterator[Row]) -> Iterator[list[Row]]:
    while chunk := list(itertools.islice(rows, _CHUNK)):
        yield chunk


def _create(connection: apsw.Connection, step: Scatter | Combine, kind: str = "") -> None:
    columns = (f"{quote_name(column)} {affinity}" for column, affinity in zip(step.columns, step.types, strict=True))
    connection.execute(f"CREATE {kind}TABLE {quote_name(step.table)} ({', '.join(columns)})")


def _insert(step: Scatter | Combine) -> str:
    return f"INSERT INTO {quote_name(step.table)} VALUES ({', '.join('?' * len(step.columns))})"


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
