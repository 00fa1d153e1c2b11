"""Owns a session: opened files answering as one read-only database, until it is closed.

Never prints: what the user should be told goes to `tell` and stays in `notes`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, TypeAlias, cast

import apsw

from rocpd.errors import ClosedError, InputError, QueryError, RocpdError, UsageError
from rocpd.federate.open import source
from rocpd.federate.open.damage import blame, check
from rocpd.federate.open.identify import Rank, distinct, identify, number
from rocpd.federate.open.opening import Opening, plan
from rocpd.federate.plan.steps import Plan, Strategy
from rocpd.federate.result import Cursor, Result, Rows, told_as_query_error
from rocpd.federate.run.attach import ATTACH_LIMIT, Attached, schemas_of
from rocpd.federate.run.executor import Executor
from rocpd.federate.run.local import Local
from rocpd.federate.run.pool import Pool, Share, shares_of
from rocpd.federate.run.rank_reader import RankReader, RankTask, do
from rocpd.federate.run.request import Request
from rocpd.federate.run.spool import spooled
from rocpd.federate.select.align import SPAN, Align, Alignment, Domain, Span, align, domains, given
from rocpd.federate.select.filters import EVENTS, Filters, keep, row_conditions, unmatched
from rocpd.federate.select.window import Interval, Window, conditions, cuts, owned, resolve
from rocpd.schema.load import TABLES, VIEWS, table
from rocpd.schema.quote import quote_name
from rocpd.schema.render import RankTables, named, relations
from rocpd.types import Answer, Parameters, Progress, Row

if TYPE_CHECKING:
    from distributed import Client

    from rocpd.federate.run.copying import Copied

Tell: TypeAlias = Callable[[str], None]

_SMALL_BYTES = 32_000_000  # read in about the time that importing sqlglot takes


class Session:
    """Many rocpd files as one database. Made by `rocpd.connect`; use it in a `with` block or call `close`.

    Attributes:
        ranks: the processes, by rank number.
        views: names of the readable views.
        notes: what was worth telling while opening.
        window: the part of the time line that counts, None for all of it.
        executor: works on ranks in parallel.
        shares: the files, or blocks of ranks of a merged one, with their tables as an own connection names them.
        parts: each rank's tables as the attached connection names them.
    """

    on_progress: Progress | None = None
    """Called with (ranks done, ranks in all) while a statement runs rank by rank."""

    def __init__(
        self, ranks: tuple[Rank, ...], how: Align, tell: Tell | None, executor: Executor | None = None
    ) -> None:
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
        self._small: bool | None = None
        self.executor: Executor = executor or Local(self._pool)
        self._whole: Attached | Copied | None = None
        further = _further(ranks)
        schemas = schemas_of(ranks)
        own = tuple(RankTables(rank.suffix, rank.tables, None, rank.number, rank.hostname, further) for rank in ranks)
        self.shares = shares_of(ranks, own, os.cpu_count() or 1)
        self.parts = tuple(
            dataclasses.replace(part, schema=schemas[rank.opening]) for rank, part in zip(ranks, own, strict=True)
        )
        self._plain = self.shares, self.parts
        self._homes: dict[int, tuple[Share, RankTables]] = {}
        self._places = {rank.number: place for place, rank in enumerate(ranks)}
        self._focus: dict[int, dict[str, str]] = {}

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
        self.shares, self.parts = self._plain
        self._homes = {}
        self._focus = {rank.number: own for rank, own in self.each(functools.partial(row_conditions, filters)) if own}
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
        shares, parts = self._plain
        self.shares = tuple(Share(share.opening, tuple(map(self._conditioned, share.parts))) for share in shares)
        self.parts = tuple(map(self._conditioned, parts))
        self._whole = None
        self._homes = {}

    def _conditioned(self, part: RankTables) -> RankTables:
        kept = self._kept(part)
        if self.window is None:
            return _filtered(part, kept)
        offset = self.alignment.offsets.get(part.rank or 0, 0)
        only = conditions(part, self.window, offset)
        if kept:
            both = {base: f"({one})" for base, one in only.items() if base not in kept}
            both |= {base: f"({only.get(base, '1')}) AND ({one})" for base, one in kept.items()}
            only = both | owned(part, both)
        return dataclasses.replace(part, only=only, values=cuts(part, self.window, offset))

    def _kept(self, part: RankTables) -> dict[str, str]:
        """What filters let count of a rank, as a connection to its tables says it."""
        own = self._focus.get(part.rank or 0, {})
        return {base: text.replace(EVENTS, part.name("rocpd_event")) for base, text in own.items()}

    def _check_any(self, *, filtered: bool) -> None:
        """Refuse a selection without rows: in the tables that filters name, if any, else in all."""
        for share in self.shares:
            for part in share.parts:
                named = self._focus.get(part.rank or 0, {}) if self._focus else part.only
                for base in named:
                    if base in part.only and self.reader(part.rank or 0).rows(f"SELECT 1 FROM {base} LIMIT 1"):
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
            threads: how many ranks are worked on at a time; 0: one per core. A cluster has its own.

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
        from rocpd.federate.plan.planner import plan as make_plan

        return make_plan(
            sql, self.parts, 0 if parameters is None or isinstance(parameters, Mapping) else len(parameters)
        )

    def _is_small(self) -> bool:
        """Whether reading all files on one connection takes less time than planning."""
        if self.executor.is_remote:
            return False
        if self._small is None:
            openings = {rank.opening for rank in self.ranks}
            size = sum(opening.size for opening in openings)
            self._small = len(self.shares) == 1 or (len(openings) <= ATTACH_LIMIT and size < _SMALL_BYTES)
        return self._small

    def _run(self, chosen: Plan, sql: str, parameters: Parameters, threads: int) -> Iterator[Row]:
        from rocpd.federate.plan.sqltext import PARAMETER
        from rocpd.federate.run.execute import Run

        bindings = (
            parameters
            if isinstance(parameters, Mapping)
            else {f"{PARAMETER}{index}": value for index, value in enumerate(parameters or ())}
        )
        executor = Local(self._pool, threads) if threads and not self.executor.is_remote else self.executor
        given = False
        try:
            for rows in Run(chosen, self.shares, executor, bindings).chunks(self.on_progress):
                given = given or bool(rows)
                yield from rows
        except (apsw.Error, RocpdError) as error:
            self._check_open()
            # What fails in parts may still be right as a whole; if not, the whole says so in SQLite's words.
            if given or not isinstance(error, QueryError):
                raise
            yield from self._attached(sql, parameters)

    def _attached(self, sql: str, parameters: Parameters) -> Rows:
        whole = self._attach()
        with told_as_query_error(self._blame):
            whole.prepare(sql)
        cursor = Cursor(whole.connection, sql, parameters, self._blame)
        if not self._is_in_the_way(sql):
            return cursor
        columns = cursor.columns
        return Rows(columns, self._while_open(spooled(cursor, len(columns))))

    def _while_open(self, rows: Iterator[Row]) -> Iterator[Row]:
        self._check_open()
        yield from rows

    def _is_in_the_way(self, sql: str) -> bool:
        """Whether a statement, while it is being read, locks a file that is perhaps still written, or the copies."""
        is_one = ";" not in sql.strip().rstrip(";")
        held = self._is_copied() or any(rank.opening.is_live for rank in self.ranks)
        return is_one and held and bool(named(sql, self.tables))

    def _is_copied(self) -> bool:
        return len({rank.opening for rank in self.ranks}) > ATTACH_LIMIT

    def _attach(self) -> Attached | Copied:
        """One connection that sees all ranks; made when a statement first needs it."""
        if self._whole is None:
            if self._is_copied():
                from rocpd.federate.run.copying import Copied

                self._whole = Copied(self.shares, self.note)
            else:
                self._whole = Attached(self.ranks, self.parts)
        return self._whole

    def reader(self, rank: int) -> RankReader:
        """Give what reads one rank, by its number."""
        self._check_open()
        share, part = self._home(rank)
        return RankReader(self.ranks[self._places[rank]], part, lambda: self._pool.lend(share))

    def each(self, work: Callable[[RankReader], Answer]) -> Iterator[tuple[Rank, Answer]]:
        """Do `work` for each rank, on all cores where that pays; give the answers in rank order.

        Args:
            work: a module-level function or a `functools.partial` of one; it and what it gives can be pickled.

        Raises:
            what `work` raises.
        """
        self._check_open()
        tasks = [RankTask(rank, self.part(rank.number), work) for rank in self.ranks]
        with contextlib.closing(self.executor.each(do, tasks, self.ranks)) as answers:
            yield from zip(self.ranks, answers, strict=True)

    def count(self, rank: int, base: str, condition: str = "1") -> int:
        """Give how many rows of a table of a rank count; `condition` is SQL on its columns."""
        sql = f"SELECT COUNT(*) FROM {quote_name(base)} WHERE {condition}"
        return cast("int", self.reader(rank).rows(sql)[0][0])

    def part(self, rank: int, schema: str | None = None) -> RankTables:
        """Give a rank's tables, with what window and filters let count, as a connection names them.

        Args:
            rank: its number.
            schema: the name under which the connection has the rank's file attached; None: it is its own file.
        """
        if schema is None:
            return self._home(rank)[1]
        return self._conditioned(self._plain_part(rank, schema))

    def unwindowed(self, rank: int) -> RankTables:
        """Give a rank's tables as `part` does, as filters alone let them count: what was before a window matters."""
        part = self._plain_part(rank)
        return _filtered(part, self._kept(part))

    def _plain_part(self, rank: int, schema: str | None = None) -> RankTables:
        return dataclasses.replace(self._plain[1][self._places[rank]], schema=schema)

    def _home(self, rank: int) -> tuple[Share, RankTables]:
        if not self._homes:
            self._homes = {part.rank or 0: (share, part) for share in self.shares for part in share.parts}
        return self._homes[rank]

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
            shares = self._plain[0]
            request = Request(SPAN, 2, {}, is_few=True)
            rows = itertools.chain.from_iterable(self.executor.rows(request, shares, None))
            parts = (part for share in shares for part in share.parts)
            self._spans = {
                part.rank or 0: Span(*row) for part, row in zip(parts, rows, strict=True) if row[0] is not None
            }
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
            self._let_go()
            self._pool.close()
            if self._whole:
                self._whole.connection.close(True)

    def _let_go(self) -> None:
        self._closed = True
        self.executor.close()
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
        # Connections close on their own: in a garbage collection apsw's close() never comes back while a cursor,
        # garbage as well, is open.
        if not getattr(self, "_closed", True):
            self._let_go()

    def _blame(self, error: BaseException | None) -> None:
        if isinstance(error, (apsw.ConnectionClosedError, apsw.CursorClosedError)):
            self._check_open()
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
        self._names = found.columns
        self._rows = iter(found)
        return self


def _filtered(part: RankTables, kept: Mapping[str, str]) -> RankTables:
    return dataclasses.replace(part, only={**kept, **owned(part, kept)}) if kept else part


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


def connect(  # noqa: PLR0913 (keywords, each an everyday choice)
    inputs: source.Input | Iterable[source.Input] | None = None,
    *,
    skip_bad: bool = False,
    align: str | Align = Align.AUTO,
    window: Window | None = None,
    filters: Filters | None = None,
    client: Client | Executor | str | None = None,
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
        client: whose workers read the files: a `distributed.Client`, the address of a Dask scheduler, or a
            `rocpd.federate.run.cluster.Cluster`, which has more to choose; None: the cores of this machine.
        tell: called with each line that is worth telling the user.

    Raises:
        InputError: nothing found, or a file that cannot be used.
        UsageError: a window or filter that makes no sense.
        RocpdError: nothing is left of the job.
    """
    how, chosen = Align(align), filters or Filters()
    found = source.find(inputs, skip_bad=skip_bad)
    openings: list[Opening] = []
    try:
        pool, notes = _identify_all(found, skip_bad, openings)
        kept, doubles = distinct(pool)
        executor = _executor(client, tell) if client else None
        ranks = number(kept)
        session = Session(keep(ranks, chosen), how, tell, executor)
    except BaseException:
        for opening in openings:
            opening.discard()
        raise
    for note in (*notes, *doubles, *unmatched(ranks, chosen)):
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


def _executor(client: Client | Executor | str, tell: Tell | None) -> Executor:
    from rocpd.federate.run.cluster import Cluster

    return client if isinstance(client, Cluster) else Cluster(cast("Client | str", client), tell=tell)


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
