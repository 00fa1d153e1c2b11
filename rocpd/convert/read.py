"""Owns reading the tables of one rank as columns: whole numbers as numpy arrays, names as dictionaries.

Goes by the columns that a file has: a missing table is empty, a missing column is NULL. Never interprets a value.

Rows come through apsw into one flat stream of numbers (`numpy.fromiter` over a chain), which costs about twice a
Python loop that looks at no value; one statement per table with the event joined in is cheaper than two scans.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

import apsw
import numpy as np

from rocpd.federate.result import Cursor
from rocpd.federate.select.window import Interval
from rocpd.schema.quote import quote_name
from rocpd.schema.render import RankTables
from rocpd.trace.tables import EVENTS
from rocpd.types import NULL, Flags, Floats, Ints

Columns = dict[str, Ints]


class Tables:
    """Reads the tables of one rank; of its events only those in the window.

    Args:
        connection: to the rank's own file.
        part: the rank's tables as statements on it name them.
        interval: the window on the common time line, or None.
        whole: `part` as it is without the window; None: the same.
    """

    def __init__(
        self,
        connection: apsw.Connection,
        part: RankTables,
        interval: Interval | None = None,
        whole: RankTables | None = None,
    ) -> None:
        self.connection = connection
        self.part = part
        self.interval = interval
        self._whole = whole

    def whole(self) -> Tables:
        """Give a reader of all rows that pass the filters, whatever the window."""
        return Tables(self.connection, self._whole or self.part)

    def selects(self, base: str) -> bool:
        """Whether a window or filter leaves rows of a table out, or cuts them."""
        return base in self.part.only or base in self.part.values

    def unselected(self) -> Tables:
        """Return a reader of all rows, whatever window and filters."""
        return Tables(self.connection, dataclasses.replace(self.part, only={}, values={}))

    def has(self, base: str, column: str) -> bool:
        """Whether the rank's file has this column."""
        return column in self.part.tables.get(base, ())

    def count(self, base: str) -> int:
        """Count the rows of a table."""
        if base not in self.part.tables:
            return 0
        row = self.connection.execute(f"SELECT COUNT(*) FROM {self.part.rows(base)} T").fetchone()
        return int(row[0]) if row else 0

    def events(self, base: str, columns: Sequence[str]) -> Columns:
        """Read columns of an event table in row order, with `category_id` and `stack_id` of the event.

        NULL and what is no number become `NULL`; fractions are cut off.
        """
        return self._integers(base, columns, ("category_id", "stack_id"))

    def integers(self, base: str, columns: Sequence[str], where: str = "") -> Columns:
        """Read columns of any table, as `events` does; `where` as for `rows`."""
        return self._integers(base, columns, (), where)

    def reals(self, base: str, column: str, where: str = "") -> tuple[Floats, Flags]:
        """Read a column of floating-point numbers in row order, and whether each one is a number."""
        if base not in self.part.tables:
            return np.zeros(0), np.zeros(0, bool)
        name = f"T.{quote_name(column)}" if self.has(base, column) else "NULL"
        source = f"FROM {self.part.rows(base)} T {where} {self._in_order(base)}"
        checked = f"SELECT CASE WHEN typeof({name}) IN ('integer', 'real') THEN {name} END {source}"
        values = [value for (value,) in self.connection.execute(checked)]
        sound = np.fromiter((value is not None for value in values), bool, len(values))
        return np.array(values, np.float64), sound

    def texts(self, base: str, column: str) -> dict[int, str]:
        """Read id -> text of a table; rows without text are left out."""
        return {i: str(text) for i, text in self.rows(base, ("id", column)) if text is not None}

    def rows(self, base: str, columns: Sequence[str], where: str = "") -> Iterator[tuple[Any, ...]]:
        """Read rows of a table, NULL for a column that is not there; no rows when the table is not there.

        Args:
            where: what follows FROM, with the table as T.
        """
        if base not in self.part.tables:
            return iter(())
        items = ", ".join(f"T.{quote_name(c)}" if self.has(base, c) else "NULL" for c in columns)
        return self.run(f"SELECT {items} FROM {self.part.rows(base)} T {where}")

    def run(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """Run a statement; bytes of text that are no UTF-8 come as `\\xNN`."""
        return iter(Cursor(self.connection, sql, blame=_as_it_is))

    def event_texts(self, column: str, where: str) -> dict[int, str]:
        """Read event id -> text of a JSON column of `rocpd_event`, without empty ones."""
        if not self.has("rocpd_event", column):
            return {}
        name = quote_name(column)
        return {
            i: text.decode("utf-8", "backslashreplace") if isinstance(text, bytes) else str(text)
            for i, text in self.rows(
                "rocpd_event", ("id", column), f"WHERE T.{name} NOT IN ('{{}}', '[]', '') AND {where}"
            )
        }

    def _in_order(self, base: str) -> str:
        # Without it SQLite may read along an index that someone added, in another order than the next statement.
        return "ORDER BY T.id" if self.has(base, "id") else ""

    def name(self, base: str) -> str:
        """Quoted name of the rank's table."""
        return self.part.name(base)

    def _integers(self, base: str, columns: Sequence[str], event: Sequence[str], where: str = "") -> Columns:
        if base not in self.part.tables:
            return {column: np.zeros(0, np.int64) for column in (*columns, *event)}
        items = [("T", c, self.has(base, c)) for c in columns]
        join = ""
        if event:
            linked = self.has(base, "event_id") and self.has("rocpd_event", "id")
            items += [("E", c, linked and self.has("rocpd_event", c)) for c in event]
            join = f"LEFT JOIN {self.name('rocpd_event')} E ON E.id = T.event_id" if linked else ""
        source = f"FROM {self.part.rows(base)} T {join} {where} {self._in_order(base)}"
        try:
            values = self._flat(f"SELECT {', '.join(_plain(*item) for item in items)} {source}")
        except (TypeError, ValueError, OverflowError):  # text or infinity where numbers belong: a damaged file
            values = self._flat(f"SELECT {', '.join(_checked(*item) for item in items)} {source}")
        table = np.ascontiguousarray(values.reshape(-1, len(items)).T)
        return {column: table[i] for i, (_, column, _) in enumerate(items)}

    def _flat(self, sql: str) -> Ints:
        return np.fromiter(itertools.chain.from_iterable(self.connection.execute(sql)), np.int64)


def _as_it_is(error: BaseException) -> None:
    raise error


def _plain(alias: str, column: str, present: bool) -> str:
    return f"IFNULL({alias}.{quote_name(column)}, {NULL})" if present else str(NULL)


def _checked(alias: str, column: str, present: bool) -> str:
    if not present:
        return str(NULL)
    name = f"{alias}.{quote_name(column)}"
    return f"CASE typeof({name}) WHEN 'integer' THEN {name} WHEN 'real' THEN CAST({name} AS INTEGER) ELSE {NULL} END"


@functools.lru_cache(1 << 12)  # messages come again and again
def json_value(text: str, key: str) -> str | None:
    """Give a value of a JSON object as text; None when it is absent or the text is no JSON object."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    value = found.get(key) if isinstance(found, dict) else None
    return value if isinstance(value, str) or value is None else json.dumps(value)


def select(columns: Columns, keep: Any) -> Columns:
    """Give the rows of all columns that `keep` (flags or row numbers) names."""
    return {name: values[keep] for name, values in columns.items()}


def total_rows(tables: Tables) -> int:
    """Count the events of a rank."""
    return sum(map(tables.count, EVENTS))
