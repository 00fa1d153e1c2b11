"""The federation: the selected rows of many files as one read-only database, until it is closed.

Never changes: another selection is another federation on the same files. Never prints: notes for the user go to
`on_note` and stay in `notes`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias

from rocpd.base import Answer, Parameters, Progress, RocpdError
from rocpd.base.sqlite import apsw
from rocpd.federate.job import Job
from rocpd.federate.open.identify import Rank
from rocpd.federate.plan.steps import Strategy
from rocpd.federate.result import Result, Rows, SessionCursor
from rocpd.federate.run.local import Executor
from rocpd.federate.run.rank_reader import RankReader
from rocpd.federate.run.shares import Share
from rocpd.federate.select.align import Alignment, Domain, Span
from rocpd.federate.select.filters import Filters, of_rank, select_ranks
from rocpd.federate.select.selection import Cut, Selection
from rocpd.federate.select.window import WholeTrace, Window, resolve
from rocpd.schema.load import VIEWS
from rocpd.schema.quote import quote_name
from rocpd.schema.render import RankTables

if TYPE_CHECKING:
    from rocpd.federate.engine import Engine
    from rocpd.federate.run.calculated import Load

OnNote: TypeAlias = Callable[[str], None]


class Notes(list[str]):
    """Notes for the user, each line once; `on_note` is called with each line."""

    def __init__(self, on_note: OnNote | None = None) -> None:
        super().__init__()
        self._on_note = on_note
        self._first: dict[str, object] = {}

    def add(self, message: str) -> None:
        """Note a line unless it was noted before, by this or another thread."""
        first = object()
        if self._first.setdefault(message, first) is first:
            self.append(message)
            if self._on_note:
                self._on_note(message)


class Federation:
    """The selected rows of a job as one database.

    Args:
        job: the ranks and their files.
        selection: the rows that count.
        notes: notes for the user; shared by all federations of a job.
        owns_files: closing this federation closes the files. Federations from `within` and `where` do not own them.

    Attributes:
        views: names of the readable views.
    """

    views = VIEWS

    def __init__(self, job: Job, selection: Selection, notes: Notes, *, owns_files: bool = True) -> None:
        self.job = job
        self.selection = selection
        self.notes = notes
        self._owns_files = owns_files

    @property
    def ranks(self) -> tuple[Rank, ...]:
        """The processes, by rank number."""
        return self.job.ranks

    @cached_property
    def runs(self) -> int:
        """Number of separate runs among the ranks; the ranks of one job are one run."""
        return len(self.job.by_run)

    def counted_once(self) -> Self:
        """Return a session with one pass of each program that ran several times for different counters."""
        return self._of_first_passes("what is no counter is of the first pass")

    @cached_property
    def in_rows(self) -> Self:
        """The session whose rows SQL and converters read: one pass of each program, unless it opened all."""
        return self if self.job.has_all_passes else self._of_first_passes("the first is read; --all-passes reads all")

    def _of_first_passes(self, why: str) -> Self:
        if not self.job.programs:
            return self
        self.note(f"{max(map(len, self.job.programs))} passes of one program, for different counters: {why}")
        return self._with(self.job.of_first_passes(keep_alignment=self.window is not None), self.selection)

    def note_runs(self) -> None:
        """Note that there are several runs, where an answer takes them together."""
        if self.runs > 1:
            self.note(f"{self.runs} separate runs, not one job: --rank chooses one, `rocpd summary --by run` divides")

    @property
    def window(self) -> Cut | None:
        """The part of each rank's time that counts, None for all of it; in files merged from a window, that window."""
        return self.selection.window or self.job.window

    @property
    def is_part(self) -> bool:
        """Whether a window or filters leave only a part of the recorded rows."""
        return self.window is not None or bool(self.selection.filtered)

    @property
    def executor(self) -> Executor:
        """The executor, which works on ranks in parallel."""
        return self.job.files.executor

    @cached_property
    def shares(self) -> tuple[Share, ...]:
        """The files, or blocks of ranks of a merged one, with the selected rows of their ranks."""
        return tuple(
            dataclasses.replace(share, tables=tuple(map(self.selection.apply, share.ranks, share.tables)))
            for share in self.job.shares
        )

    @cached_property
    def attached_tables(self) -> tuple[RankTables, ...]:
        """Each rank's tables, with the selected rows, as the attached connection names them."""
        from rocpd.federate.run.attach import schemas_of

        ranks = self.in_rows.ranks
        schemas = schemas_of(ranks)
        return tuple(self.rank_tables(rank.number, schemas[rank.opening]) for rank in ranks)

    def rank_tables(self, rank: int, schema: str | None = None) -> RankTables:
        """Return a rank's tables, with the selected rows, as a connection names them.

        Args:
            rank: its number.
            schema: the name under which the connection has the rank's file attached; None: a connection to that file.
        """
        tables = self.job.rank_tables[rank]
        return self.selection.apply(rank, dataclasses.replace(tables, schema=schema) if schema else tables)

    @property
    def spans(self) -> dict[int, Span]:
        """Rank number -> first start and last end of its events [ns, as recorded]; ranks without events are absent."""
        self.job.files.check_open()
        return self.job.spans

    @property
    def clock_domains(self) -> tuple[Domain, ...]:
        """Sets of ranks whose timestamps compare."""
        self.job.files.check_open()
        return self.job.clock_domains

    def reader(self, rank: int) -> RankReader:
        """Return the reader of one rank, by its number."""
        self.job.files.check_open()
        lend = partial(self.job.files.pool.lend, self.job.share_of[rank])
        return RankReader(self.job.rank_of[rank], self.rank_tables(rank), lend)

    def map_ranks(self, work: Callable[[RankReader], Answer], *, brief_bytes: int = 0) -> Iterator[tuple[Rank, Answer]]:
        """Do `work` for each rank, on all cores where that is faster; yield the answers in rank order.

        Args:
            work: a module-level function or a `functools.partial` of one; it and its result can be pickled.
            brief_bytes: size of a file below which the work takes less time than opening it in another process.

        Raises:
            any error that `work` raises.
        """
        tables = {rank.number: self.rank_tables(rank.number) for rank in self.ranks}
        yield from self.job.work_on(tables, work, brief_bytes=brief_bytes)

    def count(self, rank: int, base: str, condition: str = "1") -> int:
        """Return the number of selected rows of a rank's table; `condition` is SQL on its columns."""
        return int(self.reader(rank).rows(f"SELECT COUNT(*) FROM {quote_name(base)} WHERE {condition}")[0][0])

    def counts(self, rank: int, of: Sequence[tuple[str, str]]) -> list[int]:
        """Return the numbers of selected rows of tables of a rank, by one statement, which needs no view.

        Args:
            rank: its number.
            of: tables of the rank, each with an SQL condition on its columns; an empty condition: all rows count.
        """
        return self.reader(rank).counts(of)

    def table_rows(self, rank: Rank) -> dict[str, int]:
        """Return table -> number of selected rows, for all tables of a rank."""
        return self.reader(rank.number).table_rows()

    def require_rows(self) -> None:
        """Refuse a selection without rows in the tables that filters name, or in all tables if they name none.

        Raises:
            RocpdError: no row is left.
        """
        if self.selection.window is None and not self.selection.filtered:
            return
        for share in self.shares:
            for number, tables in zip(share.ranks, share.tables, strict=True):
                reader = self.reader(number)
                for base in self.selection.tables_to_check(number, tables):
                    if reader.rows(f"SELECT 1 FROM {quote_name(base)} LIMIT 1"):
                        return
        raise self.selection.empty_error()

    def within(self, window: Window) -> Self:
        """Return a session in which only events in `window` count, in every table and view.

        It shares files with this session and is closed with it. The window is relative to the entire time line, or
        to markers of each rank, and replaces the window of this session; filters stay.
        `session.within(rocpd.Window(step=16))` selects the work of a step: all that each rank launched in it.

        Raises:
            UsageError: a side is unreadable or given twice, a marker is unknown or ambiguous, or the end is before the
                start.
            RocpdError: the window lies outside the trace, or no event lies in it.
        """
        unwindowed = self._with(self.job, self.selection.with_window(None))
        if not window:
            return unwindowed
        if (line := self.job.time_line) is None:
            raise RocpdError("no events, so there is no time line to take a window of")
        if window.ways & {"times", "kernels"}:
            self._note_alignment()
        return self.cut_to(resolve(window, WholeTrace(line, list(self.job.rank_of), unwindowed.map_ranks, self.note)))

    def cut_to(self, cut: Cut | None) -> Self:
        """Return a session in which only events in a resolved window count; as `within`.

        Raises:
            RocpdError: no event lies in it.
        """
        selected = self._with(self.job, self.selection.with_window(cut))
        selected.require_rows()
        return selected

    def where(self, filters: Filters) -> Self:
        """Return a session in which only events that pass `filters` count.

        It shares files with this session and is closed with it. The filters and the window of this session still apply.

        Raises:
            UsageError: a filter that cannot be parsed.
            RocpdError: no event passes the filters.
        """
        job = self.job.of_ranks(select_ranks(self.ranks, filters), keep_alignment=self.window is not None)
        whole = self._with(job, Selection())
        by_rank = [*whole.map_ranks(partial(of_rank, filters))] if filters.on_rows else []
        conditions = {rank.number: of_rows for rank, (of_rows, _) in by_rank if of_rows}
        selected = self._with(job, self.selection.with_filters(conditions))
        selected.require_rows()
        first, *others = [unmatched for _, (_, unmatched) in by_rank] or [[]]
        for note in first:
            if all(note in other for other in others):
                self.note(note)
        return selected

    def of_ranks(self, ranks: tuple[Rank, ...]) -> Self:
        """Return a session of some of the ranks, with the same rows of each; this session if they are all its ranks."""
        if len(ranks) == len(self.ranks):
            return self
        return self._with(self.job.of_ranks(ranks, keep_alignment=self.window is not None), self.selection)

    def with_amds_windows(self) -> Self:
        """Return a session in which an event counts if its start or end is in the window, as AMD's converters do."""
        window = self.selection.window
        return self.cut_to(window.as_amd_counts()) if window else self

    def _with(self, job: Job, selection: Selection) -> Self:
        alike = object.__new__(type(self))  # a subclass may be made of other things
        Federation.__init__(alike, job, selection, self.notes, owns_files=False)
        return alike

    def note(self, message: str) -> None:
        """Note a line for the user, once."""
        self.notes.add(message)

    @property
    def _engine(self) -> Engine:
        with self.job.files.turn:
            return self._made_engine

    @cached_property
    def _made_engine(self) -> Engine:
        from rocpd.federate.engine import Engine

        read = self.in_rows
        return Engine(self.job.files, read.ranks, read.shares, self.attached_tables, self.note, self.calculated())

    def calculated(self) -> Mapping[str, Load]:
        """Return calculated table -> function that returns it; subclasses with calculated tables override this."""
        return {}

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the files' base tables, then of their views; `calculated` has the names of calculated tables."""
        return self._engine.relations

    def execute(
        self,
        sql: str,
        parameters: Parameters = None,
        *,
        strategy: str | Strategy = Strategy.AUTO,
        on_progress: Progress | None = None,
    ) -> Rows:
        """Run SQL on all ranks; base tables and views hold the rows of the entire job, of one pass of each program.

        Args:
            sql: one or more statements, which may write to temp tables and views only.
            parameters: values for `?` or `:name`.
            strategy: `auto`, or force `rows`, `aggregates` or `attached`; the answer is the same, but for the
                last digit of sums of reals.
            on_progress: called with (ranks done, ranks in all) while a statement runs rank by rank.

        Raises:
            QueryError: SQLite refuses the statement, or it would write to a file.
            InputError: a file turns out to be damaged or locked; iterating over the rows may raise it too.
            UsageError: the statement cannot run by the strategy that is forced.
            ClosedError: the session is closed.
        """
        return self._engine.execute(sql, parameters, Strategy(strategy), on_progress)

    def sql(self, sql: str, parameters: Parameters = None) -> Result:
        """Return the Result of one statement (rows, Arrow, pandas, text). Errors as for `execute`."""
        return Result(lambda: self.execute(sql, parameters))

    def explain(self, sql: str, parameters: Parameters = None) -> Result:
        """Return the plan of `execute` for a statement: columns `step`, `where`, `sql`, one row per step."""
        self.job.files.check_open()
        return Result(lambda: self._engine.explain(sql, parameters))

    def lacks_index(self, sql: str) -> bool:
        """Whether a statement that took long might take little time after `rocpd index`."""
        return self._engine.lacks_index(sql)

    def cursor(self) -> SessionCursor:
        """Return a DB-API style cursor, for code written for sqlite3."""
        self.job.files.check_open()
        return SessionCursor(self.execute)

    @property
    def connection(self) -> apsw.Connection:
        """The attached read-only connection, for one thread; `attached_tables` names each rank's tables on it."""
        return self._engine.attach().connection

    def open_views(self) -> apsw.Connection:
        """Create all tables and views and return the attached connection, for other tools; do not close it."""
        with self.job.files.turn:
            attached = self._engine.attach()
            attached.prepare(" ".join(self.tables))
        return attached.connection

    @property
    def alignment(self) -> Alignment:
        """The shift of each rank's times that aligns all ranks on one time line, and how it is known; noted once."""
        self._note_alignment()
        return self.job.alignment

    def _note_alignment(self) -> None:
        self.note_runs()
        if self.job.alignment.note:
            self.note(self.job.alignment.note)

    @property
    def time_range(self) -> tuple[int, int] | None:
        """First start and last end over all ranks after alignment [ns]; None without events."""
        self._note_alignment()
        self.job.files.check_open()
        line = self.job.time_line
        return (line.start, line.end) if line else None

    def close(self) -> None:
        """Close the files and delete recovered copies; closing a session from `within` or `where` leaves them open."""
        if self._owns_files:
            self.job.files.close()
        elif "_made_engine" in vars(self):
            self._made_engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.job.files.raise_for_damaged_file(error)
        finally:
            self.close()
