"""Answers statements: planned per rank, or attached on one connection that sees all ranks.

Decides between the two. `plan` takes a statement apart; a run of the plan has executors run its steps in every share,
gathers their rows in order, and combines them: the result does not depend on the executor. Never decides which rows
count.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property

from rocpd.base import Parameters, Progress, QueryError, RocpdError, Row, UsageError, frozen, process
from rocpd.base.sqlite import apsw
from rocpd.federate.open.guard import let_signals_in
from rocpd.federate.open.identify import Rank
from rocpd.federate.plan.steps import Plan, Scatter, Step, Strategy, create_table, insert_text
from rocpd.federate.result import Cursor, Rows, as_query_error, spooled
from rocpd.federate.run.attach import ATTACH_LIMIT, CopiedDatabase, attached
from rocpd.federate.run.calculated import Load, add_calculated
from rocpd.federate.run.files import Files
from rocpd.federate.run.shares import Bindings, Columnar, RankQuestion, Request, Share, in_chunks
from rocpd.federate.unify import Unifier
from rocpd.schema.quote import quote_name
from rocpd.schema.render import RankTables, named, relations


class Engine:
    """Answers statements over the selected rows of a job.

    Args:
        files: the open files.
        ranks: the processes.
        shares: the files with the tables of their ranks, as a connection to each names them.
        tables: each rank's tables as the attached connection names them.
        note: called with each note for the user.
        calculated: calculated table -> function that returns it.
    """

    def __init__(
        self,
        files: Files,
        ranks: Sequence[Rank],
        shares: Sequence[Share],
        tables: Sequence[RankTables],
        note: Callable[[str], None],
        calculated: Mapping[str, Load],
    ) -> None:
        self._calculated = calculated
        self._tables = tables
        self._files = files
        self._ranks = ranks
        self._openings = {rank.opening for rank in ranks}
        self._shares = shares
        self._note = note
        self._attached: Unifier | None = None
        files.close_with(self)
        process.renew_when_forked(self)

    def execute(
        self, sql: str, parameters: Parameters, strategy: Strategy = Strategy.AUTO, progress: Progress | None = None
    ) -> Rows:
        """Run SQL on all ranks; as `Federation.execute`."""
        self._files.check_open()
        if strategy is Strategy.ATTACHED or (strategy is Strategy.AUTO and self._is_small):
            return self._run_attached(sql, parameters)
        plan = self.plan(sql, parameters)
        if strategy is Strategy.COLUMNAR:
            if reason := self._why_not_columnar(plan, parameters):
                hint = "--strategy auto answers it"
                raise UsageError(f"this statement can't run by strategy columnar: {reason}", hint)
        elif strategy is not Strategy.AUTO and plan.strategy is not strategy:
            raise UsageError(
                f"this statement can't run by strategy {strategy}: {plan.reason}", "--explain shows the plan"
            )
        if plan.strategy is Strategy.ATTACHED:
            return self._run_attached(sql, parameters)
        return Rows(plan.columns, self._run(plan, sql, parameters, strategy, progress))

    def explain(self, sql: str, parameters: Parameters) -> Rows:
        """Return the steps by which `execute` would run a statement, as `Federation.explain`."""
        self._files.check_open()
        plan = self.plan(sql, parameters)
        runs_attached = self._is_small and plan.strategy is not Strategy.ATTACHED
        steps = plan.rows(len(self._ranks), runs_attached)
        if not runs_attached and self._files.index and not self._why_not_columnar(plan, parameters):
            steps = itertools.chain(steps, [("but", "the index", "no file is read: the index answers for the ranks")])
        return Rows(("step", "where", "sql"), steps)

    def lacks_index(self, sql: str) -> bool:
        """Whether an index, had there been one, might have answered in place of the ranks of a large job."""
        index = self._files.index
        if index is None or self._size < self._files.limits.small_bytes or not index.why_not:
            return False
        return self.plan(sql, None).strategy is not Strategy.ATTACHED

    def plan(self, sql: str, parameters: Parameters) -> Plan:
        """Return the plan by which a statement can run over the ranks."""
        from rocpd.federate.plan.planner import plan

        positional = 0 if parameters is None or isinstance(parameters, Mapping) else len(parameters)
        return plan(sql, self._tables, positional, self._calculated)

    def _why_not_columnar(self, plan: Plan, parameters: Parameters) -> str:
        index = self._files.index
        if index is None or index.why_not:
            return index.why_not if index else "there is no index"
        if plan.strategy is Strategy.ATTACHED:
            return plan.reason
        bindings = _bindings(parameters)
        for step in plan.scattered:
            gathered = tuple((each, ()) for each in plan.steps if each.table in step.reads)
            if reason := index.can_answer(RankQuestion(step, bindings, gathered), self._shares):
                return reason
        return ""

    def attach(self) -> Unifier:
        """Return the views on the connection that sees all ranks; it is opened when first needed."""
        with self._files.turn:
            self._files.check_open()
            if self._attached is None:
                self._attached = self._new_attached()
            return self._attached

    def _new_attached(self) -> Unifier:
        if self._is_copied:
            new: Unifier = CopiedDatabase(self._shares, self._note, self._files.limits.busy_ms)
        else:
            new = attached(self._ranks, self._tables, self._files.limits.busy_ms)
        add_calculated(new.connection, self._calculated)
        return new

    @cached_property
    def relations(self) -> tuple[str, ...]:
        """Names of the files' base tables, then of their views."""
        return relations(self._tables)

    def close(self) -> None:
        """Close the attached connection, and end any statement that another thread runs on it; idempotent."""
        if self._attached:
            with contextlib.suppress(apsw.ConnectionClosedError):
                self._attached.connection.interrupt()
            with self._files.turn:
                self._attached.connection.close(True)

    def renew(self) -> None:
        """Abandon the connection, in a forked child: its temp tables belong to the parent."""
        process.abandon(self._attached)
        self._attached = None

    @cached_property
    def _is_small(self) -> bool:
        """Whether reading all files on one connection takes less time than planning."""
        if self._files.executor.is_remote:
            return False
        limits = self._files.limits
        if len(self._shares) == 1:
            return self._size < limits.indexed_bytes or self._files.index is None or bool(self._files.index.why_not)
        return not self._is_copied and self._size < limits.small_bytes

    @cached_property
    def _size(self) -> int:
        """The size of all files [bytes]."""
        return sum(opening.size for opening in self._openings)

    @property
    def _is_copied(self) -> bool:
        return len(self._openings) > ATTACH_LIMIT

    def _run(
        self, plan: Plan, sql: str, parameters: Parameters, strategy: Strategy, progress: Progress | None
    ) -> Iterator[Row]:
        insists = strategy is Strategy.COLUMNAR
        index = self._files.index if insists or strategy is Strategy.AUTO else None
        run = Run(plan, self._shares, self._files, _bindings(parameters), index, insists)
        has_yielded_rows = False
        try:
            for rows in run.chunks(progress):
                has_yielded_rows = has_yielded_rows or bool(rows)
                yield from rows
        except (apsw.Error, RocpdError) as error:
            self._files.check_open()
            # A statement that fails in steps may still run attached; if not, the error there is SQLite's own.
            if has_yielded_rows or not isinstance(error, QueryError):
                raise
            yield from self._run_attached(sql, parameters)

    def _run_attached(self, sql: str, parameters: Parameters) -> Rows:
        turn, on_error = self._files.turn, self._files.raise_for_damaged_file
        with turn:
            database = self.attach()
            with as_query_error(on_error):
                database.prepare(self._without_calculated(sql))
            names = (*self._calculated, *self.relations)
            cursor = Cursor(database.connection, sql, parameters, on_error, relations=names, turn=turn)
            if not self._holds_a_lock(sql):
                return cursor
            columns = cursor.columns
            return Rows(columns, self._while_open(spooled(cursor, len(columns))))

    def _without_calculated(self, sql: str) -> str:
        """Remove calculated tables such as `summary.kernels` from SQL: no table of files has to be copied for them."""
        return re.sub(r"\w+\.\w+", lambda name: "" if name[0].lower() in self._calculated else name[0], sql)

    def _while_open(self, rows: Iterator[Row]) -> Iterator[Row]:
        self._files.check_open()
        yield from rows

    def _holds_a_lock(self, sql: str) -> bool:
        """Whether a statement, until its last row is read, locks the copies or a file with a possible writer."""
        is_one_statement = ";" not in sql.strip().rstrip(";")
        is_locking = self._is_copied or any(rank.opening.is_live for rank in self._ranks)
        return is_one_statement and is_locking and bool(named(sql, self.relations))


def _bindings(parameters: Parameters) -> Bindings:
    """Return the parameters by name; a plan gives names to positional ones."""
    from rocpd.federate.plan.sqltext import PARAMETER

    if isinstance(parameters, Mapping):
        return parameters
    return {f"{PARAMETER}{index}": value for index, value in enumerate(parameters or ())}


@frozen
class Run:
    """One run of a plan over the shares of a job.

    Args:
        plan: the plan.
        shares: the ranks with their selected rows.
        files: the open files.
        bindings: values of the statement's parameters.
        index: answers the steps that it can; None: the ranks answer all steps.
        insists: the index has to answer all steps.
        stored: gathered table -> the step that made it.
    """

    plan: Plan
    shares: Sequence[Share]
    files: Files
    bindings: Bindings
    index: Columnar | None = None
    insists: bool = False
    stored: dict[str, Step] = field(default_factory=dict)

    @cached_property
    def gathered(self) -> apsw.Connection:
        """The database of gathered tables: a temporary file that SQLite deletes, written to only when it grows."""
        connection = apsw.Connection("")
        let_signals_in(connection)
        return connection

    def chunks(self, progress: Progress | None = None) -> Iterator[list[Row]]:
        """Yield the rows of the result, some at a time.

        Args:
            progress: called with (ranks done, ranks in all).

        Raises:
            QueryError: SQLite refuses something; the statement may still run attached.
            InputError: a file cannot be opened or is damaged.
        """
        try:
            for step in self.plan.steps:
                if isinstance(step, Scatter):
                    self._store(step, self._scattered(step, progress, exact=True))
                else:
                    self._store(step, [self._combined(step.select, exact=True)])
            if self.plan.strategy is Strategy.ROWS:
                yield from self._scattered(self.plan.scattered[-1], progress, exact=False)
            else:
                yield from in_chunks(self._combined(self.plan.final), self.files.limits.chunk_rows)
        finally:
            self.gathered.close(True)

    def _scattered(self, step: Scatter, progress: Progress | None, *, exact: bool) -> Iterator[list[Row]]:
        question = RankQuestion(step, self.bindings, tuple(map(self._rows_of, step.reads)))
        if self.index and (rows := self.index.rows(question, self.shares, insists=self.insists)) is not None:
            return rows
        index = self.index if self.files.executor.is_remote else None
        return self.files.executor.rows(
            Request(question, exact, self.files.limits.chunk_rows, index), self.shares, progress
        )

    def _rows_of(self, table: str) -> tuple[Step, tuple[Row, ...]]:
        """Return the step and rows of a gathered table, for a statement that joins it in every rank."""
        return self.stored[table], tuple(self._combined(f"SELECT * FROM {quote_name(table)}"))

    def _combined(self, select: str, exact: bool = False) -> Cursor:
        return Cursor(self.gathered, select, self.bindings, exact=exact)

    def _store(self, step: Step, chunks: Iterable[Iterable[Row]]) -> None:
        self.stored[step.table] = step
        create_table(self.gathered, step)
        with self.gathered:
            for rows in chunks:
                self.gathered.executemany(insert_text(step), rows)
