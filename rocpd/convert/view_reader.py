"""Reads readable views of one rank as columns, in row order and in batches.

The rows equal those of the view in SQL, cell for cell (except `guid`, which is the rank's). Values that a view looks up
in a reference table (strings, agents, kernels …) are read as ids, and each value once: SQLite leaves out a join if none
of its columns is read. The columns of a view from one reference table are read together, since a statement per column
takes longer than its rows. A cell that should be a number and is not (a damaged file) is NULL and counted.

Columns are arrays of numbers, lists of texts or coded texts, whatever a damaged file holds. Markers are regions and
samples of the marker categories, named by their message: the view `markers` is written over other views and has no
tables of its own.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rocpd.base import NULL, Flags, Ints, frozen
from rocpd.base.texts import json_object
from rocpd.facts.columns import BATCH, Piece, Select, TextCodes, find_rows, pieces, read_all
from rocpd.federate.open.identify import Rank
from rocpd.federate.result import decoded
from rocpd.federate.run.rank_reader import RankReader
from rocpd.schema.load import Kind, Lookup, ViewColumn
from rocpd.schema.load import view as view_of
from rocpd.schema.quote import quote_name
from rocpd.schema.render import rank_select
from rocpd.schema.rules.categories import marker_categories

if TYPE_CHECKING:
    import numpy.typing as npt


Array: TypeAlias = "npt.NDArray[Any] | list[str | None]"
"""A column as read: whole numbers with `NULL` (int64), reals with NaN (float64), or texts."""


@frozen
class Coded:
    """Texts that repeat.

    Args:
        codes: number of the text of each row, -1 for none.
        texts: the texts.
    """

    codes: Ints
    texts: Sequence[str]

    @staticmethod
    def of(texts: Iterable[str | None]) -> Coded:
        """Return texts in coded form."""
        numbers = TextCodes[str]()
        codes = [-1 if text is None else numbers.code(text) for text in texts]
        return Coded(np.array(codes, np.int64), numbers.texts)

    def __len__(self) -> int:
        return len(self.codes)


Values: TypeAlias = "Array | Coded"
"""A column."""


def texts(values: list[Any]) -> list[str | None]:
    """Return a column of texts; other values, which damaged files hold, become texts."""
    return values if {str, NoneType}.issuperset(map(type, values)) else list(map(decoded, values))


def missing(values: Array) -> Flags:
    """Whether the value of each row is missing."""
    if isinstance(values, list):
        return np.fromiter((value is None for value in values), bool, len(values))
    return np.isnan(values) if values.dtype == np.float64 else np.equal(values, NULL)


def listed(values: Values) -> list[Any]:
    """Return the value of each row."""
    if isinstance(values, Coded):
        known = (*values.texts, None)
        return [known[code] for code in values.codes.tolist()]
    return values if isinstance(values, list) else values.tolist()


def as_coded(values: Values) -> Coded:
    """Return a column of texts in coded form."""
    return values if isinstance(values, Coded) else Coded.of(listed(values))


def take(values: Array, rows: Ints) -> Array:
    """Return the rows of a column by their numbers."""
    return [values[row] for row in rows.tolist()] if isinstance(values, list) else values[rows]


def joined(parts: Sequence[Array]) -> Array:
    """Return the parts of a column as one column."""
    if isinstance(parts[0], list):
        return list(chain.from_iterable(parts))
    return np.concatenate([part for part in parts if isinstance(part, np.ndarray)])


def select_of(sql: str, kinds: Mapping[str, Kind], base: str | None) -> Select:
    """Return the statement for columns by their kinds; arguments as for `Select`."""

    def of(*wanted: Kind) -> tuple[str, ...]:
        return tuple(name for name, kind in kinds.items() if kind in wanted)

    return Select(sql, of(Kind.INTEGER), of(Kind.REAL), of(Kind.TEXT, Kind.JSON), base)


def values_of(select: Select, piece: Piece) -> dict[str, Array]:
    """Return the columns of a piece by name."""
    columns: tuple[Array, ...] = (*piece.numbers, *piece.reals, *map(texts, piece.texts))
    return dict(zip(select.names, columns, strict=True))


def _values_at(keys: Ints, values: Array, ids: Array) -> Values:
    """Return the value for each id, by matching keys; missing for unknown ids. Texts are coded."""
    row, known = np.zeros(len(ids), np.int64), np.zeros(len(ids), bool)
    if isinstance(ids, np.ndarray) and ids.dtype == np.int64:
        row, known = find_rows(keys, ids)
    if isinstance(values, list):
        used = np.zeros(len(keys), bool)
        used[row[known]] = True
        codes = np.full(len(ids), -1)
        codes[known] = (np.cumsum(used) - 1)[row[known]]
        return Coded(codes, [values[row] or "" for row in np.flatnonzero(used).tolist()])
    numbers = np.full(len(ids), NULL if values.dtype == np.int64 else np.nan, values.dtype)
    numbers[known] = values[row[known]]
    return numbers


class ReferenceTables:
    """The reference tables of one rank.

    Args:
        reader: reads the rank.
    """

    def __init__(self, reader: RankReader) -> None:
        self.reader = reader
        self._expected: dict[str, dict[str, Kind]] = {}
        self._tables: dict[str, dict[str, tuple[Ints, Array]]] = {}

    def expect(self, columns: Iterable[ViewColumn]) -> None:
        """Prepare for the columns of a view: values from a reference table are read together, at first use."""
        for column in columns:
            if column.lookup:
                self._expected.setdefault(column.lookup.table, {})[column.lookup.column] = column.kind

    def find(self, lookup: Lookup, ids: Array) -> Values:
        """Return the values for ids from an expected column; texts are coded."""
        known = self._tables.setdefault(lookup.table, {})
        if lookup.column not in known:
            known |= self._read(lookup.table, known)
        return _values_at(*known[lookup.column], ids)

    def _read(self, table: str, known: Collection[str]) -> dict[str, tuple[Ints, Array]]:
        """Return ids and values of columns, for rows that have both."""
        kinds = {"id": Kind.INTEGER} | {name: kind for name, kind in self._expected[table].items() if name not in known}
        listed = ", ".join(map(quote_name, kinds))
        select = select_of(f"SELECT {listed} FROM {quote_name(table)}", kinds, table)
        columns = values_of(select, read_all(self.reader, select))
        ids = np.asarray(columns["id"])
        there = {name: np.flatnonzero((ids != NULL) & ~missing(values)) for name, values in columns.items()}
        return {name: (ids[rows], take(columns[name], rows)) for name, rows in there.items()}


class ViewRows:
    """Some rows of a view; reference tables are looked up when a column is asked for.

    Attributes:
        count: number of rows.
    """

    def __init__(self, reader: ViewReader, values: Mapping[str, Array], count: int) -> None:
        self._reader = reader
        self._values = values
        self.count = count

    @property
    def rank(self) -> Rank:
        """The rank of the rows."""
        return self._reader.references.reader.rank

    def ints(self, name: str) -> Ints:
        """Return the numbers that were read for a column: its values or, if they are looked up, the ids."""
        values = self._values[_source(self._reader.view.column(name))]
        return values if isinstance(values, np.ndarray) and values.dtype == np.int64 else np.full(self.count, NULL)

    def column(self, name: str) -> Values:
        """Return one column; looked-up texts and the GUID are coded."""
        if name == "guid":
            return Coded(np.zeros(self.count, np.int64), [self.rank.guid])
        column = self._reader.view.column(name)
        values = self._values[_source(column)]
        return self._reader.references.find(column.lookup, values) if column.lookup else values

    def take(self, which: Ints | Flags) -> ViewRows:
        """Return the rows by their numbers or by flags."""
        rows = which.nonzero()[0] if which.dtype == np.bool_ else which.astype(np.int64, copy=False)
        values = {source: take(column, rows) for source, column in self._values.items()}
        return ViewRows(self._reader, values, len(rows))


class ViewReader:
    """Reads one view of one rank.

    Args:
        references: the reference tables of the rank.
        view: name of a view that is one SELECT per rank.
        columns: names of the columns to read, all if empty.
        where: SQL condition over the aliases of the view, or empty.

    Attributes:
        columns: names of the columns that are read.
    """

    def __init__(self, references: ReferenceTables, view: str, columns: Sequence[str] = (), where: str = "") -> None:
        self.references = references
        self.view = view_of(view)
        self._where = where
        self._damaged = Counter[str]()
        self._mixed: set[str] = set()
        chosen = [column for column in self.view.columns if not columns or column.name in columns]
        self.columns = tuple(column.name for column in chosen)
        self._read = [column for column in chosen if column.name != "guid"]
        references.expect(self._read)

    @property
    def damaged(self) -> Counter[str]:
        """Number of cells that should be numbers and are not, by column; grows while rows are read."""
        names = {_source(column): column.name for column in sorted(self._read, key=lambda each: each.lookup is None)}
        return Counter({names[source]: count for source, count in self._damaged.items()})

    @property
    def mixed(self) -> frozenset[str]:
        """Names of columns with values of a wrong kind, or looked up by such values; grows while rows are read."""
        return frozenset(column.name for column in self._read if _source(column) in self._mixed)

    def batches(self) -> Iterator[ViewRows]:
        """Yield all rows, `BATCH` at a time; nothing if there are none."""
        parts: list[dict[str, Array]] = []
        count = 0
        for size, values in self._pieces(self._read):
            parts.append(values)
            count += size
            if count >= BATCH:
                yield ViewRows(self, _joined(parts), count)
                parts, count = [], 0
        if parts:
            yield ViewRows(self, _joined(parts), count)

    def read_all(self) -> ViewRows | None:
        """Return all rows at once, None if there are none.

        A column of whole numbers that holds other values comes as texts, unless values are looked up by it.
        """
        if not (parts := list(self._pieces(self._read))):
            return None
        values = _joined([values for _, values in parts])
        keys = {_source(column) for column in self._read if column.lookup}
        if tangled := [c for c in self._read if c.kind is Kind.INTEGER and _source(c) in self._damaged.keys() - keys]:
            texts = self._pieces([replace(column, kind=Kind.TEXT) for column in tangled])
            values |= _joined([values for _, values in texts])
        return ViewRows(self, values, sum(count for count, _ in parts))

    def _pieces(self, columns: Sequence[ViewColumn]) -> Iterator[tuple[int, dict[str, Array]]]:
        """Yield the number of rows and the values for columns, in batches of some thousand rows."""
        reader = self.references.reader
        first, *more = self.view.tables
        kinds = {_source(column): Kind.INTEGER if column.lookup else column.kind for column in columns}
        items = {source: source for source in kinds}
        base, order = None, ""
        if "id" not in map(str.lower, reader.tables.columns.get(first.table, ())):
            pass  # a damaged file: rows in the order of the file
        elif self.view.group_by:
            order = f"\nORDER BY MIN({first.alias}.id)"
        elif all(table.key for table in more):  # rows of other tables are joined by id: at most one each
            base, items["id"] = first.table, f"{first.alias}.id"
        else:
            order = f"\nORDER BY {first.alias}.id"
        select = select_of(rank_select(self.view, reader.tables, items, where=self._where) + order, kinds, base)
        for piece in pieces(reader, select, self._damaged):
            self._mixed |= piece.mixed
            yield piece.count, values_of(select, piece)


def damage_line(form: str, damaged: Counter[str], shown: str = "written as NULL") -> str:
    """Return a note on the values that a format could not write as numbers.

    >>> damage_line("parquet", Counter({"kernels.grid_x": 1}))
    'parquet: 1 values of kernels.grid_x are no numbers: written as NULL'
    >>> damage_line("csv", Counter({"kernels.grid_x": 2, "regions.pid": 1}), "left empty")
    'csv: 3 values of kernels.grid_x (2), regions.pid (1) are no numbers: left empty'
    """
    columns = [f"{column} ({count})" if len(damaged) > 1 else column for column, count in sorted(damaged.items())]
    return f"{form}: {damaged.total()} values of {', '.join(columns)} are no numbers: {shown}"


def _joined(parts: Sequence[dict[str, Array]]) -> dict[str, Array]:
    return {source: joined([part[source] for part in parts]) for source in parts[0]}


def _source(column: ViewColumn) -> str:
    """The source of a column: its expression, or the id that it is looked up by."""
    return column.lookup.key if column.lookup else column.expression


MARKER_SOURCES = ("regions", "sample_regions")
"""Views that may hold markers, in order."""


def marker_items() -> tuple[ViewColumn, ...]:
    """Return the columns of the view `markers`: those of `regions`, with the message as name."""
    known = {item.name: item for item in view_of("regions").columns}
    known |= {"name": replace(known["name"], lookup=None), "function": replace(known["name"], name="function")}
    return tuple(replace(known[column.name], doc=column.doc, unit=column.unit) for column in view_of("markers").columns)


def marker_batches(references: ReferenceTables, damaged: Counter[str]) -> Iterator[dict[str, Values]]:
    """Yield the columns of the view `markers`, regions first, in batches of some thousand rows.

    Args:
        references: the reference tables of the rank.
        damaged: gets the number of cells that should be numbers and are not, by column.
    """
    for source in MARKER_SOURCES:
        reader = ViewReader(references, source, where=f"E.category_id IN ({marker_categories()})")
        for rows in reader.batches():
            columns = {item.name: rows.column(item.name) for item in marker_items() if item.name != "function"}
            yield columns | {"function": columns["name"], "name": marker_messages(rows)}
        damaged.update(reader.damaged)


def marker_messages(rows: ViewRows) -> list[str | None]:
    """Return the message of each row, or the name of the region if it has none."""
    names, documents = (listed(rows.column(name)) for name in ("name", "extdata"))
    shown = (json_value(text, "message") if text else None for text in documents)
    return [name if message is None else message for message, name in zip(shown, names, strict=True)]


@functools.lru_cache(1 << 12)  # messages repeat often
def json_value(text: str, key: str) -> str | None:
    """Return a value of a JSON object as text; None if it is absent or the text is not a JSON object."""
    value = (json_object(text) or {}).get(key)
    return value if isinstance(value, str) or value is None else json.dumps(value)
