"""Owns a session: opened files answering as one read-only database, until it is closed.

Never prints: what the user should be told goes to `tell` and stays in `notes`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TypeAlias

import apsw

from rocpd.errors import ClosedError, InputError
from rocpd.federate import source
from rocpd.federate.align import Align, Alignment, Domain, Span, align, domains, span_of
from rocpd.federate.attach import attach
from rocpd.federate.damage import blame, check
from rocpd.federate.identify import Rank, distinct, identify, number
from rocpd.federate.open import Opening, plan
from rocpd.federate.result import Cursor, Parameters, Result, told_as_query_error
from rocpd.federate.unify import Unifier
from rocpd.federate.window import Interval, Window, conditions, resolve
from rocpd.schema.load import VIEWS
from rocpd.schema.render import Part, for_one_rank

Tell: TypeAlias = Callable[[str], None]


class Session:
    """Many rocpd files as one database. Made by `rocpd.connect`; use it in a `with` block or call `close`.

    Attributes:
        ranks: the processes, by rank number.
        views: names of the readable views.
        notes: what was worth telling while opening.
        window: the part of the time line that counts, None for all of it.
    """

    def __init__(self, ranks: tuple[Rank, ...], how: Align, tell: Tell | None) -> None:
        self.ranks = ranks
        self.views = VIEWS
        self.notes: list[str] = []
        self._how = how
        self._tell = tell
        self._spans: dict[int, Span] | None = None
        self._alignment: Alignment | None = None
        connection, self.parts = attach(ranks)
        self._open = connection
        self._unifier = Unifier(connection, self.parts)
        self._closed = False
        self.window: Interval | None = None

    def restrict(self, window: Window) -> None:
        """Let only events in `window` count, in every table and view; errors as `window.resolve`."""
        self.window = resolve(self, window)
        if self.window is None:
            return
        offsets = self.alignment.offsets
        self.parts = tuple(
            dataclasses.replace(part, only=conditions(part, self.window, offsets.get(part.rank or 0, 0)))
            for part in self.parts
        )
        self._unifier = Unifier(self._open, self.parts)

    def note(self, message: str) -> None:
        """Tell the user something once."""
        if message not in self.notes:
            self.notes.append(message)
            if self._tell:
                self._tell(message)

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of everything that can be selected from: base tables, then views."""
        return self._unifier.relations

    def execute(self, sql: str, parameters: Parameters = None) -> Cursor:
        """Run SQL on all ranks; base tables and views are those of the whole job.

        Args:
            sql: one or more statements; reads, and writes to temp tables and views.
            parameters: values for `?` or `:name`.

        Raises:
            QueryError: SQLite refuses the statement, or it would write to a file.
            InputError: a file turns out to be damaged or locked; the cursor may raise it too.
            ClosedError: the session was closed.
        """
        self._check_open()
        with told_as_query_error(self._blame):
            self._unifier.prepare(sql)
        return Cursor(self._open, sql, parameters, self._blame)

    def execute_in(self, part: Part, select: str, parameters: Parameters = None) -> Cursor:
        """Run a SELECT (without WITH) in which every table and view is that of one rank; errors as for `execute`."""
        self._check_open()
        return Cursor(self._open, for_one_rank(select, part), parameters, self._blame)

    def sql(self, sql: str, parameters: Parameters = None) -> Result:
        """Run one statement; give a Result (rows, Arrow, pandas, text). Errors as for `execute`."""
        return Result(lambda: self.execute(sql, parameters))

    def open_views(self) -> apsw.Connection:
        """Create every table and view and give the connection itself, for tools that take one; do not close it."""
        self._check_open()
        self._unifier.prepare(" ".join(self.tables))
        return self._open

    def cursor(self) -> SessionCursor:
        """Give a DB-API style cursor, for code written for sqlite3."""
        self._check_open()
        return SessionCursor(self)

    @property
    def connection(self) -> apsw.Connection:
        """For converters: the attached read-only connection; `parts` name each rank's tables on it."""
        self._check_open()
        return self._open

    @property
    def spans(self) -> dict[int, Span]:
        """Rank number -> first start and last end of its events [ns, as recorded]; none for ranks without events."""
        self._check_open()
        if self._spans is None:
            with told_as_query_error(self._blame):
                found = {}
                for part in self.parts:
                    found[part.rank or 0] = span_of(self._open, part)
                    self._open.release_memory()  # 2 MB of pages per file, which would add up over ranks
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
            self._open.close(True)
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


class SessionCursor:
    """`cursor.execute(sql).fetchall()` as in sqlite3; runs on the session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._cursor: Cursor | None = None

    def execute(self, sql: str, parameters: Parameters = None) -> Cursor:
        """Run SQL, as `Session.execute`."""
        self._cursor = self._session.execute(sql, parameters)
        return self._cursor


def connect(
    inputs: source.Input | Iterable[source.Input] | None = None,
    *,
    skip_bad: bool = False,
    align: str | Align = Align.AUTO,
    window: Window | None = None,
    tell: Tell | None = None,
) -> Session:
    """Open rocpd files as one database.

    Args:
        inputs: file, glob, folder, package or a list of them; None: `$ROCPD_INPUT`, else what lies in the working
            directory.
        skip_bad: leave out files that cannot be used, with a note, instead of raising.
        align: `auto`, `none` or `start`: how ranks are laid on one time line where that matters.
        window: let only events in it count.
        tell: called with each line that is worth telling the user.

    Raises:
        InputError: nothing found, or a file that cannot be used.
        UsageError: a window that makes no sense.
    """
    how = Align(align)
    found = source.find(inputs, skip_bad=skip_bad)
    openings: list[Opening] = []
    try:
        pool, notes = _identify_all(found, skip_bad, openings)
        kept, doubles = distinct(pool)
        session = Session(number(kept), how, tell)
    except BaseException:
        for opening in openings:
            opening.discard()
        raise
    for note in (*notes, *doubles):
        session.note(note)
    if window:
        try:
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
