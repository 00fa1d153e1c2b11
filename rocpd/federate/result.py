"""Owns what a statement gives back: a cursor over rows, and a Result that becomes rows, Arrow, pandas or text.

Never imports pyarrow or pandas before it is asked for them. Text that is not UTF-8 comes back with its
odd bytes written as `\\xNN`, the same in rows, Arrow and pandas.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import apsw

from rocpd.errors import QueryError

if TYPE_CHECKING:
    import pandas
    import pyarrow

Value: TypeAlias = int | float | str | bytes | None
Row: TypeAlias = tuple[Any, ...]
Parameters: TypeAlias = Sequence[Value] | Mapping[str, Value] | None


class Rows:
    """Rows of a statement, streamed; the part of Python's DB-API that reading needs.

    `description` is a tuple of 7-tuples with the column name first, or None when the statement gives no columns.
    """

    def __init__(self, columns: Sequence[str], rows: Iterator[Row]) -> None:
        self._set_columns(columns)
        self._rows = rows

    def _set_columns(self, columns: Sequence[str]) -> None:
        self.description: tuple[tuple[str, None, None, None, None, None, None], ...] | None
        self.description = tuple((name, None, None, None, None, None, None) for name in columns) or None

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, as SQLite gives them."""
        return tuple(column[0] for column in self.description or ())

    def __iter__(self) -> Iterator[Row]:
        return self._rows

    def __next__(self) -> Row:
        return next(self._rows)

    def fetchone(self) -> Row | None:
        """Give the next row, or None after the last."""
        return next(self, None)

    def fetchmany(self, size: int = 1000) -> list[Row]:
        """Give up to `size` further rows."""
        return list(itertools.islice(self._rows, size))

    def fetchall(self) -> list[Row]:
        """Give all further rows."""
        return list(self._rows)

    def close(self) -> None:
        """End the statement; further rows are not given."""
        self._rows = iter(())


class Cursor(Rows):
    """Rows of one or more statements on a connection."""

    def __init__(
        self,
        connection: apsw.Connection,
        sql: str,
        parameters: Parameters = None,
        blame: Callable[[BaseException], None] | None = None,
        exact: bool = False,
    ) -> None:
        super().__init__((), self._stream())
        self._exact = exact
        self._connection = connection
        self._blame = blame
        self._sql = sql
        self._parameters = parameters
        self._cursor = connection.cursor()
        self._cursor.exec_trace = self._note_columns
        with told_as_query_error(self._blame):
            self._cursor.execute(sql, parameters)

    def _note_columns(self, cursor: apsw.Cursor, _sql: str, _bindings: object) -> bool:
        self._set_columns([column[0] for column in cursor.get_description()])
        return True

    def _stream(self) -> Iterator[Row]:
        given = 0
        with told_as_query_error(self._blame):
            try:
                for row in self._cursor:
                    yield row
                    given += 1
            except UnicodeDecodeError as error:
                if self._exact:
                    raise QueryError(f"text that is not UTF-8: {error}") from error
                yield from self._tolerant(given)

    def close(self) -> None:
        """End the statement; further rows are not given."""
        if isinstance(self._rows, Generator):
            self._rows.close()
        self._cursor.close(force=True)

    def _tolerant(self, given: int) -> Iterator[Row]:
        """Run the statement again, text as bytes, after the rows that were given: Python's str must be UTF-8."""
        names = [f"c{i}" for i in range(len(self.columns))]
        items = ", ".join(
            f"typeof({n}), CASE typeof({n}) WHEN 'text' THEN CAST({n} AS BLOB) ELSE {n} END" for n in names
        )
        inner = self._sql.strip().rstrip(";")
        sql = f"WITH q({', '.join(names)}) AS (\n{inner}\n) SELECT {items} FROM q LIMIT -1 OFFSET {given}"
        for row in self._connection.execute(sql, self._parameters):
            yield tuple(
                value.decode("utf-8", "backslashreplace") if kind == "text" else value
                for kind, value in zip(row[::2], row[1::2], strict=True)
            )


@contextlib.contextmanager
def told_as_query_error(blame: Callable[[BaseException], None] | None = None) -> Iterator[None]:
    """Turn what SQLite says of a statement into a `QueryError`, unless `blame` raises what it knows better."""
    try:
        yield
    except apsw.AuthError as error:
        raise QueryError(
            f"refused: this statement would write ({error})",
            "raw files are never changed; CREATE TEMP TABLE or VIEW works",
        ) from error
    except (apsw.Error, apsw.BindingsError, TypeError) as error:
        if blame:
            blame(error)
        raise QueryError(f"SQL: {error}", _hint(str(error))) from error


def _hint(message: str) -> str | None:
    if message.startswith("no such table"):
        return "`rocpd schema` lists what can be selected from"
    if message.startswith("no such column"):
        return "SELECT * FROM the view LIMIT 1 shows its columns"
    return None


class Result:
    """What `Session.sql` gives: iterate it, or turn it into what you need.

    Iterating streams rows. `fetchall`, `df`, `arrow` and `show` read all rows once and keep them.
    """

    def __init__(self, run: Callable[[], Rows]) -> None:
        self._run = run
        self._fresh: Rows | None = run()
        self.columns = self._fresh.columns
        self._kept: list[Row] | None = None

    def __iter__(self) -> Iterator[Row]:
        if self._kept is not None:
            return iter(self._kept)
        rows, self._fresh = self._fresh or self._run(), None
        return iter(rows)

    def fetchall(self) -> list[Row]:
        """Give all rows as tuples."""
        if self._kept is None:
            self._kept = list(self)
        return self._kept

    def arrow(self) -> pyarrow.Table:
        """Give all rows as a pyarrow Table: int64, double, string or binary columns, the widest type that fits."""
        from rocpd.table.arrow import to_arrow

        return to_arrow(self.columns, self.fetchall())

    def df(self) -> pandas.DataFrame:
        """Give all rows as a pandas DataFrame; integer columns with NULLs become `Int64`, exact to the last digit."""
        from rocpd.table.arrow import to_pandas

        return to_pandas(self.arrow())

    def show(self, limit: int = 50) -> None:
        """Write up to `limit` rows as a text table to standard output."""
        import sys

        from rocpd.table.console import write_console

        write_console(self.columns, iter(self.fetchall()), sys.stdout, limit=limit)

    def _repr_html_(self) -> str:
        """Give the table that notebooks show: the first 50 rows."""
        import io

        from rocpd.table.html import write_html_table

        out = io.StringIO()
        rows = self.fetchall()
        write_html_table(self.columns, iter(rows[:50]), out)
        if len(rows) > 50:
            out.write(f"<p>{len(rows) - 50} more rows</p>")
        return out.getvalue()

    def __repr__(self) -> str:
        return f"<rocpd.Result columns={list(self.columns)}>"
