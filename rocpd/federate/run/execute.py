"""Runs a plan: an executor runs statements in every share, their rows are gathered in order, then combined.

The result does not depend on the executor: rows are gathered in the order of the shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rocpd.base.sqlite import apsw
from rocpd.base.types import Progress, Row
from rocpd.federate.open.guard import let_signals_in
from rocpd.federate.plan.gathered import create_table, insert_text
from rocpd.federate.plan.steps import Plan, Scatter, Step, Strategy
from rocpd.federate.result import Cursor
from rocpd.federate.run.columnar import Bindings, Columnar, RankQuestion
from rocpd.federate.run.files import Files
from rocpd.federate.run.pool import Share
from rocpd.federate.run.request import Request, in_chunks
from rocpd.schema.quote import quote_name


class Run:
    """One run of a plan over the shares of a job.

    Args:
        plan: the plan.
        shares: the ranks with their selected rows.
        files: the open files.
        bindings: values of the statement's parameters.
        index: answers the steps that it can; None: the ranks answer all.
        insists: the index has to answer all.
    """

    def __init__(
        self,
        plan: Plan,
        shares: Sequence[Share],
        files: Files,
        bindings: Bindings,
        index: Columnar | None = None,
        *,
        insists: bool = False,
    ) -> None:
        self._plan = plan
        self._shares = shares
        self._executor = files.executor
        self._chunk_rows = files.limits.chunk_rows
        self._bindings = bindings
        self._index = index
        self._insists = insists
        self._gathered = apsw.Connection("")  # a temporary file that SQLite deletes, written to only when it grows
        let_signals_in(self._gathered)
        self._stored: dict[str, Step] = {}

    def chunks(self, progress: Progress | None = None) -> Iterator[list[Row]]:
        """Yield the rows of the result, some at a time.

        Args:
            progress: called with (ranks done, ranks in all).

        Raises:
            QueryError: SQLite refuses something; the statement may still run attached.
            InputError: a file cannot be opened or is damaged.
        """
        try:
            for step in self._plan.steps:
                if isinstance(step, Scatter):
                    self._store(step, self._scattered(step, progress, exact=True))
                else:
                    self._store(step, [self._combined(step.select, exact=True)])
            if self._plan.strategy is Strategy.ROWS:
                yield from self._scattered(self._plan.scattered[-1], progress, exact=False)
            else:
                yield from in_chunks(self._combined(self._plan.final), self._chunk_rows)
        finally:
            self._gathered.close(True)

    def _scattered(self, step: Scatter, progress: Progress | None, *, exact: bool) -> Iterator[list[Row]]:
        question = RankQuestion(step, self._bindings, tuple(map(self._rows_of, step.reads)))
        if self._index:
            rows = self._index.rows(question, self._shares, insists=self._insists)
            if rows is not None:
                return rows
        index = self._index if self._executor.is_remote else None
        return self._executor.rows(Request(question, exact, self._chunk_rows, index), self._shares, progress)

    def _rows_of(self, table: str) -> tuple[Step, tuple[Row, ...]]:
        """Return a gathered table with its rows, for a statement that joins it in every rank."""
        return self._stored[table], tuple(self._combined(f"SELECT * FROM {quote_name(table)}"))

    def _combined(self, select: str, exact: bool = False) -> Cursor:
        return Cursor(self._gathered, select, self._bindings, exact=exact)

    def _store(self, step: Step, chunks: Iterable[Iterable[Row]]) -> None:
        self._stored[step.table] = step
        create_table(self._gathered, step)
        with self._gathered:
            for rows in chunks:
                self._gathered.executemany(insert_text(step), rows)
