"""The result of a statement: a cursor over rows, and a Result that becomes rows, Arrow, pandas or text.

Imports pyarrow and pandas only when an answer needs them. Invalid bytes in text that is not UTF-8 become `\\xNN`, the
same in rows, Arrow and pandas.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import itertools
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TextIO, TypeAlias, cast

from rocpd.base import Parameters, QueryError, RocpdError, Row, UsageError, entries
from rocpd.base.sqlite import apsw
from rocpd.schema.calculated import bare
from rocpd.schema.load import VIEWS, view

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from rocpd.chart.plot import Plot

_OnError: TypeAlias = Callable[[BaseException], None] | None
_Again: TypeAlias = Callable[[int], Iterator[Row]] | None
"""Returns the rows after the first n, whatever bytes their text holds; None: text must be UTF-8."""

_Turn: TypeAlias = AbstractContextManager[object]

_KEYWORDS = ("SELECT", "FROM", "WHERE", "GROUP", "ORDER", "LIMIT", "HAVING", "JOIN", "WITH", "VALUES", "EXPLAIN")
_CHARACTERS = 60  # of a text shown at a prompt
_ROWS_AT_A_PROMPT, _ROWS_IN_A_NOTEBOOK = 10, 50

_INSTEAD = {
    "rocpd_timestamp": 'no released schema has it: times are columns, start and "end" of rows, timestamp of samples',
    "ext_callstack": "nothing has to be made: callstack_inclusive and callstack_exclusive have the sums of each call",
    "ext_graph": "nothing has to be made: graphlaunch and graphkernel answer, and `rocpd summary graph-captures`",
    "ext_autogradapi": "autograd_launches has operators; region_args their seq, op_id and sizes, as PyTorch calls them",
    "rocpd_monitor": "samples and pmc_events have what was monitored",
    "args_id": "the text is in the column args of the view api",
    "description_id": "rocpd_op has the text itself, as description",
    "optype_id": "rocpd_op has the text itself, as opType",
    "kernelname_id": "rocpd_kernelapi has the text itself, as kernelName",
}
"""Name that documents of AMD or RPD print, and no table or view has -> where its content is found."""


class Rows:
    """Rows of a statement, streamed, with the methods of Python's DB-API for reading."""

    def __init__(self, columns: Sequence[str], rows: Iterator[Row]) -> None:
        self._names = columns
        self._rows = rows

    @property
    def description(self) -> tuple[tuple[str, None, None, None, None, None, None], ...] | None:
        """One 7-tuple per column, its name first; None if the statement returns no columns."""
        return tuple((name, None, None, None, None, None, None) for name in self._names) or None

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, as SQLite returns them."""
        return tuple(self._names)

    def __iter__(self) -> Iterator[Row]:
        return self._rows

    def __next__(self) -> Row:
        return next(self._rows)

    def fetchone(self) -> Row | None:
        """Return the next row, or None after the last."""
        return next(self, None)

    def fetchmany(self, size: int = 1000) -> list[Row]:
        """Return up to `size` further rows."""
        return list(itertools.islice(self._rows, size))

    def fetchall(self) -> list[Row]:
        """Return all further rows."""
        return list(self._rows)

    def close(self) -> None:
        """End the statement; no more rows are returned."""
        self._rows = iter(())


class Cursor(Rows):
    """Rows of one or more statements on a connection; `relations`: tables and views that they can name, for hints.

    Where several threads use the connection, each holds `turn` while SQLite is at work.

    Nothing refers back to a cursor: one that is abandoned half-read is closed at once, not by the garbage collector.
    """

    def __init__(  # noqa: PLR0913 (a statement, its connection, and the form of its errors)
        self,
        connection: apsw.Connection,
        sql: str,
        parameters: Parameters = None,
        on_error: _OnError = None,
        exact: bool = False,
        relations: Iterable[str] = (),
        turn: _Turn = contextlib.nullcontext(),
    ) -> None:
        names: list[str] = []
        self._turn = turn
        self._cursor = connection.cursor()
        self._cursor.exec_trace = functools.partial(_note_columns, names)
        tolerant = None if exact else functools.partial(_tolerant, connection, turn, sql, parameters, names)
        super().__init__(names, _stream(self._cursor, tolerant, on_error, turn))
        self._tolerant, self._on_error = tolerant, on_error
        with as_query_error(on_error, relations):
            self._cursor.execute(sql, parameters)

    def fetchall(self) -> list[Row]:
        """Return all further rows; in one step if no row was read yet, which takes half the time."""
        rows = self._rows
        if not isinstance(rows, Generator) or inspect.getgeneratorstate(rows) != inspect.GEN_CREATED:
            return super().fetchall()
        self._rows = iter(())
        with self._turn, as_query_error(self._on_error):
            try:
                return self._cursor.fetchall()
            except UnicodeDecodeError as error:
                return list(_again(self._tolerant, 0, error))

    def close(self) -> None:
        """End the statement; no more rows are returned."""
        if isinstance(self._rows, Generator):
            self._rows.close()
        with self._turn:
            self._cursor.close(force=True)


def _note_columns(names: list[str], cursor: apsw.Cursor, _sql: str, _bindings: object) -> bool:
    names[:] = [column[0] for column in cursor.get_description()]
    return True


_IN_A_TURN = 16  # rows: a turn for each row would double the cost


def _stream(cursor: apsw.Cursor, tolerant: _Again, on_error: _OnError, turn: _Turn) -> Iterator[Row]:
    """Yield the rows of a cursor: the first one in a turn of its own, then more and more in a turn.

    If text turns out not to be UTF-8, `tolerant` returns the rows after the first n.
    """
    count, wanted = 0, 1
    with as_query_error(on_error):
        while True:
            rows: list[Row] = []
            try:
                with turn:
                    rows.extend(itertools.islice(cursor, wanted))  # on an error, the rows before it stay
            except Exception as error:
                yield from rows
                if not isinstance(error, UnicodeDecodeError):
                    raise
                yield from _again(tolerant, count + len(rows), error)
                return
            yield from rows
            if len(rows) < wanted:
                return
            count += wanted
            wanted = min(_IN_A_TURN, 2 * wanted)


def _again(tolerant: _Again, count: int, error: UnicodeDecodeError) -> Iterator[Row]:
    """Return the rows after the first `count`, whatever bytes text holds; raise an error if text must be exact."""
    if not tolerant:
        raise QueryError(f"text that is not UTF-8: {error}") from error
    return tolerant(count)


def _tolerant(
    connection: apsw.Connection, turn: _Turn, sql: str, parameters: Parameters, columns: Sequence[str], count: int
) -> Iterator[Row]:
    """Run a statement again and yield the rows after the first `count`; text is read as bytes, as str must be UTF-8."""
    names = [f"c{i}" for i in range(len(columns))]
    items = ", ".join(f"typeof({n}), CASE typeof({n}) WHEN 'text' THEN CAST({n} AS BLOB) ELSE {n} END" for n in names)
    inner = sql.strip().rstrip(";")
    again = f"WITH q({', '.join(names)}) AS (\n{inner}\n) SELECT {items} FROM q LIMIT -1 OFFSET {count}"
    with turn:
        cursor = connection.execute(again, parameters)
    for row in _stream(cursor, None, None, turn):
        yield tuple(
            decoded(value) if kind == "text" else value for kind, value in zip(row[::2], row[1::2], strict=True)
        )


def decoded(value: object) -> str | None:
    """Return a cell as text; bytes that are not UTF-8 come as `\\xNN`.

    >>> decoded("gemm"), decoded(None), decoded(b"a\\xff"), decoded(3)
    ('gemm', None, 'a\\\\xff', '3')
    """
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return None if value is None else str(value)


class as_query_error:  # noqa: N801 (as `contextlib.suppress`: two for each statement, and a generator takes four times as long)
    """Turn SQLite's errors about a statement into a `QueryError`, unless `on_error` raises a better one."""

    def __init__(self, on_error: _OnError = None, relations: Iterable[str] = ()) -> None:
        self._on_error, self._relations = on_error, relations

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Raise the error for users."""
        if isinstance(error, apsw.AuthError):
            raise QueryError(
                f"refused: this statement would write ({error})",
                "raw files are never changed; CREATE TEMP TABLE or VIEW works",
            ) from error
        if isinstance(error, (apsw.Error, apsw.BindingsError, TypeError)):
            if self._on_error:
                self._on_error(error)
            raise QueryError(f"SQL: {error}", _hint(str(error), self._relations)) from error


def _hint(message: str, relations: Iterable[str]) -> str | None:
    """Return a hint for an error of SQLite: names similar to an unknown one, and where to look."""
    what, _, name = message.partition(": ")
    word = name.rpartition(".")[2]
    if word.lower() in _INSTEAD:
        return _INSTEAD[word.lower()]
    if what == "no such table":
        return _did_you_mean(word, map(bare, relations), "`rocpd schema` lists what can be selected from")
    if what == "no such column":
        if having := [name for name in VIEWS if word in _columns_of(name)]:
            example = "kernels" if "kernels" in having else having[0]
            return f"a column of views, such as {example}; `rocpd schema` lists them"
        known = sorted({column for name in VIEWS for column in _columns_of(name)})
        return _did_you_mean(word, known, "`rocpd schema NAME` lists the columns of a table or view")
    if message == "interrupted":
        return "the process has forked meanwhile: run the statement again"
    if message.startswith("string or blob too big"):
        return "a value has up to 100,000,000 bytes"
    if message == 'near "-": syntax error':
        return "names of tables are spelt with _ in SQL: idle_calls"
    if wrong := re.match(r'near "(\w+)": syntax error', message):
        return _did_you_mean(wrong[1], _KEYWORDS, "")
    return None


def _columns_of(name: str) -> set[str]:
    return {column.name for column in view(name).columns}


def _did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str | None:
    spelt = {each.lower().replace("_", "-"): each for each in known}  # as `closest` spells words
    words = [spelt[each] for each in entries.closest(word, spelt)]
    near = f"did you mean {' or '.join(words)}?" if words else ""
    return "; ".join(filter(None, (otherwise, near))) or None


class Result:
    """The rows of one statement, to iterate or to convert.

    Iterating streams rows. `fetchall`, `df`, `arrow`, `polars` and `show` read all rows once and keep them. Shown in a
    notebook or at the prompt, it reads its first rows only.

    Attributes:
        columns: names of the columns.
    """

    def __init__(self, run: Callable[[], Rows]) -> None:
        self._run = run
        self._fresh: Iterator[Row] | None
        self._fresh = rows = run()
        self.columns = rows.columns
        self._all: list[Row] | None = None

    def __iter__(self) -> Iterator[Row]:
        if self._all is not None:
            return iter(self._all)
        rows, self._fresh = self._fresh or self._run(), None
        return iter(rows)

    def fetchall(self) -> list[Row]:
        """Return all rows as tuples."""
        if self._all is None:
            self._all = list(self)
        return self._all

    def first(self, count: int) -> list[Row]:
        """Return up to `count` rows from the start, without reading much more; a later iteration has them too."""
        if self._all is not None:
            return self._all[:count]
        rows = iter(self)
        head = list(itertools.islice(rows, count))
        self._fresh = itertools.chain(head, rows)
        return head

    def arrow(self) -> pyarrow.Table:
        """Return all rows as a pyarrow Table: int64, double, string or binary columns, the widest type that fits."""
        from rocpd.table.arrow import to_arrow

        return to_arrow(self.columns, self.fetchall())

    def df(self) -> pandas.DataFrame:
        """Return all rows as a pandas DataFrame; integer columns with NULLs become `Int64`, exact to the last digit."""
        from rocpd.table.arrow import to_pandas

        return to_pandas(self.arrow())

    def polars(self) -> polars.DataFrame:
        """Return all rows as a polars DataFrame, with the types of `arrow`.

        Raises:
            UsageError: polars is not installed.
        """
        try:
            import polars
        except ImportError as error:
            raise UsageError("polars is not installed", "pip install polars") from error
        return cast("polars.DataFrame", polars.from_arrow(self.arrow()))

    def plot(self) -> Plot:
        """Return a chart: a line where a column is a time, else bars of the first rows.

        Raises:
            UsageError: no column holds numbers.
        """
        from rocpd.chart.plot import Plot, chart_of, unit_of

        return Plot(chart_of("", self.columns, [unit_of(name) for name in self.columns], self.fetchall()))

    def show(self, limit: int = 50) -> None:
        """Write up to `limit` rows (0: all) as a text table to standard output."""
        import sys

        self.write_text(sys.stdout, limit)

    def write_text(self, out: TextIO, limit: int = 0) -> bool:
        """Write up to `limit` rows (0: all) as a text table; return whether there were more."""
        from rocpd.table.human import write_console

        return write_console(self.columns, iter(self.first(limit + 1) if limit else self.fetchall()), out, limit)

    def _write_first(self, out: TextIO, limit: int) -> bool:
        """Write the first rows for a prompt, with long texts shortened; return whether there were more."""
        from rocpd.table.cell import one_line, shorten_apart
        from rocpd.table.human import write_console

        first = self.first(limit + 1)
        columns = zip(*first[:limit], strict=True)
        cells = [shorten_apart([one_line(v) for v in c], _CHARACTERS) if _is_text(c) else c for c in columns]
        write_console(self.columns, iter(zip(*cells, strict=True)), out)
        return len(first) > limit

    def write_html(self, out: TextIO, limit: int) -> None:
        """Write up to `limit` rows as an HTML table."""
        from rocpd.table.html import write_html_table

        write_html_table(self.columns, iter(self.first(limit)), out)

    def _repr_html_(self) -> str:
        """Return the table that notebooks show: the first rows."""
        out = io.StringIO()
        self.write_html(out, _ROWS_IN_A_NOTEBOOK)
        if len(self.first(_ROWS_IN_A_NOTEBOOK + 1)) > _ROWS_IN_A_NOTEBOOK:
            out.write(f"<p>the first {_ROWS_IN_A_NOTEBOOK} rows; .df() has all</p>")
        return out.getvalue()

    def __repr__(self) -> str:
        """Return the first rows as a text table."""
        out = io.StringIO()
        try:
            has_more = self._write_first(out, _ROWS_AT_A_PROMPT)
        except RocpdError as error:
            return f"<{type(self).__name__} columns={list(self.columns)}: {error.message}>"
        if has_more:
            out.write(f"the first {_ROWS_AT_A_PROMPT} rows; .show(0) writes all, .df() has all\n")
        return out.getvalue().rstrip("\n")


def _is_text(values: Iterable[object]) -> bool:
    return any(isinstance(value, (str, bytes)) for value in values)


class SessionCursor(Rows):
    """`cursor.execute(sql)`, then `cursor.fetchall()`, as in sqlite3.

    Args:
        execute: runs a statement.
    """

    def __init__(self, execute: Callable[[str, Parameters], Rows]) -> None:
        super().__init__((), iter(()))
        self._execute = execute

    def execute(self, sql: str, parameters: Parameters = None) -> SessionCursor:
        """Run SQL, as `Session.execute`; this cursor then yields its rows."""
        rows = self._execute(sql, parameters)
        self._names = rows.columns
        self._rows = iter(rows)
        return self


_IN_MEMORY = 50_000  # rows


def spooled(rows: Iterable[Row], width: int, in_memory: int = _IN_MEMORY) -> Iterator[Row]:
    """Read all rows now and return an iterator over them; rows beyond `in_memory` wait in a temporary file.

    Args:
        rows: rows of `width` values.
        width: number of columns.
        in_memory: number of rows that stay in memory.
    """
    source = iter(rows)
    first = list(itertools.islice(source, in_memory))
    if len(first) < in_memory or width == 0:
        return iter(first)
    database = apsw.Connection("")
    database.execute(f"CREATE TABLE spool ({', '.join(f'c{i}' for i in range(width))})")
    with database:
        database.executemany(f"INSERT INTO spool VALUES ({', '.join('?' * width)})", source)
    return itertools.chain(first, _rows_of(database))


def _rows_of(database: apsw.Connection) -> Iterator[Row]:
    try:
        yield from database.execute("SELECT * FROM spool ORDER BY rowid")
    finally:
        database.close(True)
