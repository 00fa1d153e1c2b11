"""The question to ranks for one step of a plan, answered by a share on any machine, or by an index of columns.

A request is a value that can be sent to another process. It borrows a connection and leaves nothing on it. A
`Columnar` answers without reading files: `rocpd.index` has one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from rocpd.base import Row, frozen
from rocpd.base.sqlite import apsw
from rocpd.federate.limits import Limits
from rocpd.federate.open.guard import let_signals_in
from rocpd.federate.open.opening import as_input_error
from rocpd.federate.plan.steps import Scatter, Step, create_table, drop_table, insert_text
from rocpd.federate.result import Cursor, spooled
from rocpd.federate.run.pool import Share, ShareDatabase
from rocpd.schema.render import RankTables

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
