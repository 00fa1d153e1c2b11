"""Owns a session: opened files answering as one read-only database, until it is closed.

Never prints: what the user should be told goes to `tell` and stays in `notes`.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, TypeAlias, cast

import apsw

from rocpd.errors import ClosedError, InputError, QueryError, RocpdError, UsageError
from rocpd.federate import source
from rocpd.federate.align import Align, Alignment, Domain, Span, align, domains, given, span_of
from rocpd.federate.attach import ATTACH_LIMIT, Attached, schemas_of
from rocpd.federate.damage import blame, check
from rocpd.federate.filters import EVENTS, Filters, keep, row_conditions
from rocpd.federate.identify import Rank, distinct, identify, number
from rocpd.federate.open import Opening, plan
from rocpd.federate.pool import Pool, Share, shares_of
from rocpd.federate.result import Cursor, Parameters, Result, Row, Rows, told_as_query_error
from rocpd.federate.spool import spooled
from rocpd.federate.steps import Plan, Strategy
from rocpd.federate.window import Interval, Window, conditions, cuts, owned, resolve
from rocpd.schema.load import TABLES, VIEWS, table
from rocpd.schema.render import Part, named, relations

if TYPE_CHECKING:
    from rocpd.federate.copying import Copied

Tell: TypeAlias = Callable[[str], None]

_SMALL_BYTES = 32_000_000  # read in about the time that importing sqlglot takes


class Session:
    """Many rocpd files as one database. Made by `rocpd.connect`; use it in a `with` block or call `close`.

    Attributes:
        ranks: the processes, by rank number.
        views: names of the readable views.
        notes: what was worth telling while opening.
        window: the part of the time line that counts, None for all of it.
        shares: the files, or blocks of ranks of a merged one, with their tables as an own connection names them.
        parts: each rank's tables as the attached connection names them.
    """

    on_progress: Callable[[int, int], None] | None = None
    """Called with (ranks done, ranks in all) while a statement runs rank by rank."""

    def __init__(self, ranks: tuple[Rank, ...], how: Align, tell: Tell | None) -> None:
        self.ranks = ranks
        self.views = VIEWS
        self.notes: list[str] = []
        self.window: Interval | None = None
        self._how = how
        self._tell = tell
        self._spans: dict[int, Span] | None = None
        self._alignment: Alignment | None = None
        self._closed = False
        self._pool = Pool()
        self._whole: Attached | Copied | None = None
        further = _further(ranks)
        schemas = schemas_of(ranks)
        own = tuple(Part(rank.suffix, rank.tables, None, rank.number, rank.hostname, further) for rank in ranks)
        self.shares = shares_of(ranks, own, os.cpu_count() or 1)
        self.parts = tuple(
            dataclasses.replace(part, schema=schemas[rank.opening]) for rank, part in zip(ranks, own, strict=True)
        )
        self._plain = self.shares, self.parts
        self._filters = Filters()
        self._focus: dict[int | None, dict[str, str]] = {}

    def restrict(self, window: Window) -> None:
        """Let only events in `window` count, in every table and view; errors as `window.resolve`.

        Raises:
            RocpdError: nothing is left.
        """
        self.window = resolve(self, window)
        self._apply()
        if window:
            self._check_any(filtered=False)

    def select(self, filters: Filters) -> None:
        """Let only what `filters` name count: events of some agents, streams, categories, kernels; before `restrict`.

        Ranks and hosts are up to `connect`, which leaves out whole ranks.

        Raises:
            RocpdError: nothing is left.
            UsageError: a filter that can't be read.
        """
        self._filters = filters
        self._apply()
        self._check_any(filtered=True)

    def lay(self, shifts: Mapping[str, int]) -> None:
        """Lay clocks on each other by offsets that are known, in place of `align`; before `restrict`.

        Args:
            shifts: host -> what is added to its times [ns].

        Raises:
            UsageError: a host that no rank ran on.
        """
        self._alignment = given(shifts, self.ranks)
        self.note(self._alignment.note or "")

    def _apply(self) -> None:
        """Give each rank's tables the conditions of filters and window."""
        plain_shares, plain_parts = self._plain
        self.shares, self.parts = plain_shares, plain_parts
        found = {part.rank: row_conditions(self, part, self._filters) for part in plain_parts} if self._filters else {}
        self._focus = kept = {rank: own for rank, own in found.items() if own}
        self.shares = tuple(
            Share(share.opening, tuple(self._conditioned(part, kept.get(part.rank, {})) for part in share.parts))
            for share in plain_shares
        )
        self.parts = tuple(self._conditioned(part, kept.get(part.rank, {})) for part in plain_parts)
        self._whole = None

    def _conditioned(self, part: Part, kept: Mapping[str, str]) -> Part:
        kept = {base: text.replace(EVENTS, part.name("rocpd_event")) for base, text in kept.items()}
        if self.window is None:
            return dataclasses.replace(part, only={**kept, **owned(part, kept)}) if kept else part
        offset = self.alignment.offsets.get(part.rank or 0, 0)
        only = conditions(part, self.window, offset)
        if kept:
            both = {base: f"({one})" for base, one in only.items() if base not in kept}
            both |= {base: f"({only.get(base, '1')}) AND ({one})" for base, one in kept.items()}
            only = both | owned(part, both)
        return dataclasses.replace(part, only=only, values=cuts(part, self.window, offset))

    def _check_any(self, *, filtered: bool) -> None:
        """Refuse a selection without rows: in the tables that filters name, if any, else in all."""
        for share in self.shares:
            for part in share.parts:
                named = self._focus.get(part.rank, {}) if self._focus else part.only
                for base in named:
                    if base in part.only and self.rows_in(part.rank or 0, f"SELECT 1 FROM {base} LIMIT 1"):
                        return
        if self.window is None and not self._focus:
            return
        why = "passes the filters" if filtered else "lies in the window"
        if not filtered and self._focus:
            why += " and passes the filters"
        raise RocpdError(f"nothing is left: no event {why}", "rocpd info shows what there is")

    def note(self, message: str) -> None:
        """Tell the user something once."""
        if message not in self.notes:
            self.notes.append(message)
            if self._tell:
                self._tell(message)

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of everything that can be selected from: base tables, then views."""
        return relations(self.parts)

    def execute(
        self, sql: str, parameters: Parameters = None, *, strategy: str | Strategy = Strategy.AUTO, threads: int = 0
    ) -> Rows:
        """Run SQL on all ranks; base tables and views are those of the whole job.

        Args:
            sql: one or more statements; reads, and writes to temp tables and views.
            parameters: values for `?` or `:name`.
            strategy: `auto`, or force `rows`, `aggregates` or `attached`; the answer is the same.
            threads: how many ranks are worked on at a time; 0: one per core.

        Raises:
            QueryError: SQLite refuses the statement, or it would write to a file.
            InputError: a file turns out to be damaged or locked; the cursor may raise it too.
            UsageError: the statement can't run by the strategy that was forced.
            ClosedError: the session was closed.
        """
        self._check_open()
        wanted = Strategy(strategy)
        if wanted is Strategy.ATTACHED or (wanted is Strategy.AUTO and self._is_small()):
            return self._attached(sql, parameters)
        chosen = self._plan(sql, parameters)
        if wanted is not Strategy.AUTO and chosen.strategy is not wanted:
            raise UsageError(
                f"this statement can't run by strategy {wanted}: {chosen.reason}", "--explain shows the plan"
            )
        if chosen.strategy is Strategy.ATTACHED:
            return self._attached(sql, parameters)
        return Rows(chosen.columns, self._run(chosen, sql, parameters, threads))

    def explain(self, sql: str, parameters: Parameters = None) -> Result:
        """Say how `execute` would run a statement: columns `step`, `where`, `sql`, one row per step."""
        self._check_open()
        chosen = self._plan(sql, parameters)
        small = self._is_small() and chosen.strategy is not Strategy.ATTACHED
        return Result(lambda: Rows(("step", "where", "sql"), chosen.rows(len(self.ranks), small)))

    def _plan(self, sql: str, parameters: Parameters) -> Plan:
        from rocpd.federate.plan import plan as make_plan

        return make_plan(
            sql, self.parts, 0 if parameters is None or isinstance(parameters, Mapping) else len(parameters)
        )

    def _is_small(self) -> bool:
        """Whether reading all files on one connection takes less time than planning."""
        if len(self.shares) == 1:
            return True
        openings = {rank.opening for rank in self.ranks}
        return len(openings) <= ATTACH_LIMIT and sum(o.path.stat().st_size for o in openings) < _SMALL_BYTES

    def _run(self, chosen: Plan, sql: str, parameters: Parameters, threads: int) -> Iterator[Row]:
        from rocpd.federate.execute import Run
        from rocpd.federate.sqltext import PARAMETER

        bindings = (
            parameters
            if isinstance(parameters, Mapping)
            else {f"{PARAMETER}{index}": value for index, value in enumerate(parameters or ())}
        )
        given = False
        try:
            for row in Run(chosen, self.shares, self._pool, bindings, threads).rows(self.on_progress):
                given = True
                yield row
        except QueryError:
            # What fails in parts may still be right as a whole; if not, the whole says so in SQLite's words.
            if given:
                raise
            yield from self._attached(sql, parameters)

    def _attached(self, sql: str, parameters: Parameters) -> Rows:
        whole = self._attach()
        with told_as_query_error(self._blame):
            whole.prepare(sql)
        cursor = Cursor(whole.connection, sql, parameters, self._blame)
        if not self._holds_a_writer_up(sql):
            return cursor
        columns = cursor.columns
        return Rows(columns, self._while_open(spooled(cursor, len(columns))))

    def _while_open(self, rows: Iterator[Row]) -> Iterator[Row]:
        self._check_open()
        yield from rows

    def _holds_a_writer_up(self, sql: str) -> bool:
        """Whether a statement, while it is being read, locks a file that is perhaps still written."""
        is_one = ";" not in sql.strip().rstrip(";")
        return is_one and any(rank.opening.is_live for rank in self.ranks) and bool(named(sql, self.tables))

    def _attach(self) -> Attached | Copied:
        """One connection that sees all ranks; made when a statement first needs it."""
        if self._whole is None:
            if len({rank.opening for rank in self.ranks}) <= ATTACH_LIMIT:
                self._whole = Attached(self.ranks, self.parts)
            else:
                from rocpd.federate.copying import Copied

                self._whole = Copied(self.shares, self.note)
        return self._whole

    def rows_in(self, rank: int, select: str, parameters: Parameters = None) -> list[Row]:
        """Run a SELECT in which every table and view is that of one rank; give all rows. Errors as for `execute`."""
        self._check_open()
        share, part = self._home(rank)
        with self._pool.lend(share) as database:
            return database.execute(select, parameters, (part,)).fetchall()

    def stream_in(
        self, rank: int, select: str, parameters: Parameters = None, size: int = 100_000
    ) -> Iterator[list[Row]]:
        """Run a SELECT as `rows_in` does; give its rows in lists of up to `size`, so that memory stays flat."""
        self._check_open()
        share, part = self._home(rank)
        with self._pool.lend(share) as database:
            cursor = database.execute(select, parameters, (part,))
            while rows := cursor.fetchmany(size):
                yield rows

    def count(self, rank: int, base: str, condition: str = "1") -> int:
        """Give how many rows a table of a rank has, whatever the window; `condition` is SQL on its columns."""
        self._check_open()
        share, part = self._home(rank)
        with told_as_query_error(self._blame), self._pool.lend(share) as database:
            cursor = database.connection.execute(f"SELECT COUNT(*) FROM {part.name(base)} WHERE {condition}")
            return cast("int", cursor.fetchall()[0][0])

    def part(self, rank: int) -> Part:
        """Give a rank's tables as a connection to its own file names them, with what window and filters let count."""
        return self._home(rank)[1]

    def _home(self, rank: int) -> tuple[Share, Part]:
        return next((share, part) for share in self.shares for part in share.parts if part.rank == rank)

    def sql(self, sql: str, parameters: Parameters = None) -> Result:
        """Run one statement; give a Result (rows, Arrow, pandas, text). Errors as for `execute`."""
        return Result(lambda: self.execute(sql, parameters))

    def open_views(self) -> apsw.Connection:
        """Create every table and view and give the connection itself, for tools that take one; do not close it."""
        self._check_open()
        whole = self._attach()
        whole.prepare(" ".join(self.tables))
        return whole.connection

    def cursor(self) -> SessionCursor:
        """Give a DB-API style cursor, for code written for sqlite3."""
        self._check_open()
        return SessionCursor(self)

    @property
    def connection(self) -> apsw.Connection:
        """The attached read-only connection; `parts` name each rank's tables on it."""
        self._check_open()
        return self._attach().connection

    @property
    def spans(self) -> dict[int, Span]:
        """Rank number -> first start and last end of its events [ns, as recorded]; none for ranks without events."""
        self._check_open()
        if self._spans is None:
            found = {}
            for share in self.shares:
                with told_as_query_error(self._blame), self._pool.lend(share) as database:
                    for part in share.parts:
                        found[part.rank or 0] = span_of(database.connection, part)
                    database.connection.release_memory()  # 2 MB of pages per file, which would add up over ranks
            self._spans = {rank: span for rank, span in found.items() if span}
        return self._spans

    @property
    def clock_domains(self) -> tuple[Domain, ...]:
        """Sets of ranks whose timestamps compare."""
        return domains(self.ranks, self.spans)

    @property
    def alignment(self) -> Alignment:
        """What is added to each rank's timestamps where ranks are laid on one time line [ns]; told once."""
        if self._alignment is None:
            self._alignment = align(self._how, self.clock_domains, self.spans)
            if self._alignment.note:
                self.note(self._alignment.note)
        return self._alignment

    @property
    def time_range(self) -> tuple[int, int] | None:
        """First start and last end over all ranks after alignment [ns]; None without events."""
        offsets = self.alignment.offsets
        if not self.spans:
            return None
        starts = [span.start + offsets[rank] for rank, span in self.spans.items()]
        return min(starts), max(span.end + offsets[rank] for rank, span in self.spans.items())

    def close(self) -> None:
        """Close the files and delete recovered copies; closing twice is fine."""
        if not self._closed:
            self._closed = True
            self._pool.close()
            if self._whole:
                self._whole.connection.close(True)
            for rank in self.ranks:
                rank.opening.discard()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._blame(error)
        finally:
            self.close()

    def __del__(self) -> None:
        if hasattr(self, "_closed"):
            self.close()

    def _blame(self, error: BaseException | None) -> None:
        blame((rank.opening for rank in self.ranks), error)

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("the session is closed", "open a new one with rocpd.connect(...)")


class SessionCursor(Rows):
    """`cursor.execute(sql)`, then `cursor.fetchall()`, as in sqlite3; runs on the session."""

    def __init__(self, session: Session) -> None:
        super().__init__((), iter(()))
        self._session = session

    def execute(self, sql: str, parameters: Parameters = None) -> SessionCursor:
        """Run SQL, as `Session.execute`; the rows are then those of this cursor."""
        found = self._session.execute(sql, parameters)
        self._set_columns(found.columns)
        self._rows = iter(found)
        return self


@functools.cache
def _contract(base: str) -> frozenset[str]:
    return frozenset(column.name.lower() for column in table(base).columns) if base in TABLES else frozenset()


def _further(ranks: Iterable[Rank]) -> dict[str, tuple[str, ...]]:
    """Base table -> columns beyond the contract, over all ranks in their order."""
    found: dict[str, dict[str, str]] = {}
    for rank in ranks:
        for base, columns in rank.tables.items():
            known = _contract(base)
            for column in columns:
                if column.lower() not in known:
                    found.setdefault(base, {}).setdefault(column.lower(), column)
    return {base: tuple(columns.values()) for base, columns in found.items()}


def connect(
    inputs: source.Input | Iterable[source.Input] | None = None,
    *,
    skip_bad: bool = False,
    align: str | Align = Align.AUTO,
    window: Window | None = None,
    filters: Filters | None = None,
    tell: Tell | None = None,
) -> Session:
    """Open rocpd files as one database.

    Args:
        inputs: file, glob, folder, package or a list of them; None: `$ROCPD_INPUT`, else what lies in the working
            directory.
        skip_bad: leave out files that cannot be used, with a note, instead of raising.
        align: `auto`, `none` or `start`: how ranks are laid on one time line where that matters.
        window: let only events in it count.
        filters: let only these ranks, hosts, agents, streams, categories or kernels count.
        tell: called with each line that is worth telling the user.

    Raises:
        InputError: nothing found, or a file that cannot be used.
        UsageError: a window or filter that makes no sense.
        RocpdError: nothing is left of the job.
    """
    how = Align(align)
    found = source.find(inputs, skip_bad=skip_bad)
    openings: list[Opening] = []
    try:
        pool, notes = _identify_all(found, skip_bad, openings)
        kept, doubles = distinct(pool)
        session = Session(keep(number(kept), filters or Filters()), how, tell)
    except BaseException:
        for opening in openings:
            opening.discard()
        raise
    for note in (*notes, *doubles):
        session.note(note)
    used = {rank.opening for rank in session.ranks}
    for opening in openings:
        if opening not in used:
            opening.discard()
    try:
        if filters:
            session.select(filters)
        if window:
            session.restrict(window)
    except BaseException:
        session.close()
        raise
    return session


def _identify_all(found: source.Found, skip_bad: bool, openings: list[Opening]) -> tuple[list[Rank], list[str]]:
    pool: list[Rank] = []
    notes = list(found.notes)
    for path in found.paths:
        try:
            opening = plan(path)
            openings.append(opening)
            found_ranks = identify(opening)
            if skip_bad:
                check(opening)
            pool += found_ranks
        except InputError as error:
            if not skip_bad:
                raise
            notes.append(f"left out: {error.message}")
        else:
            notes += [opening.note] if opening.note else []
    if not pool:
        left_out = [note.removeprefix("left out: ") for note in notes if note.startswith("left out: ")]
        raise InputError("every input was left out: " + "; ".join(left_out))
    return pool, notes
