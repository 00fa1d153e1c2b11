"""Reads readable views of one rank as columns, in row order and in batches.

The rows are those that the view gives in SQL, cell for cell (but `guid`, which is the rank's). What a view looks up in
a reference table (strings, agents, kernels …) is read as ids, and each value once: SQLite leaves out a join when none
of its columns is read. A cell that is no number where numbers belong (a damaged file) is NULL and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from rocpd.base.types import NULL, Flags, Ints
from rocpd.convert.cells import Array, Coded, Values, joined, select_of, take, values_of
from rocpd.convert.lookups import ReferenceTables
from rocpd.facts.columns import BATCH, pieces
from rocpd.federate.open.identify import Rank
from rocpd.schema.load import Kind, ViewColumn
from rocpd.schema.load import view as view_of
from rocpd.schema.render import rank_select


class ViewRows:
    """Some rows of a view; what is looked up is looked up when a column is asked for.

    Attributes:
        count: how many rows.
    """

    def __init__(self, reader: ViewReader, values: Mapping[str, Array], count: int) -> None:
        self._reader = reader
        self._values = values
        self.count = count

    @property
    def rank(self) -> Rank:
        """The rank whose rows these are."""
        return self._reader.references.reader.rank

    def ints(self, name: str) -> Ints:
        """Return the numbers that were read for a column: its values or, where it is looked up, the ids."""
        values = self._values[_source(self._reader.view.column(name))]
        return values if isinstance(values, np.ndarray) and values.dtype == np.int64 else np.full(self.count, NULL)

    def column(self, name: str) -> Values:
        """Return one column; looked-up texts and the GUID are coded."""
        if name == "guid":
            return Coded(np.zeros(self.count, np.int64), [self.rank.guid])
        column = self._reader.view.column(name)
        values = self._values[_source(column)]
        return self._reader.references.column(column.lookup).find(values) if column.lookup else values

    def take(self, which: Ints | Flags) -> ViewRows:
        """Return the rows of these numbers or flags."""
        rows = which.nonzero()[0] if which.dtype == np.bool_ else which.astype(np.int64, copy=False)
        values = {source: take(column, rows) for source, column in self._values.items()}
        return ViewRows(self._reader, values, len(rows))


class ViewReader:
    """Reads one view of one rank.

    Args:
        references: the reference tables of the rank.
        view: name of a view that is one SELECT per rank.
        columns: those to read, all when empty.
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
        """Number of cells that are no numbers where numbers belong, by column; grows while rows are read."""
        names = {_source(column): column.name for column in sorted(self._read, key=lambda each: each.lookup is None)}
        return Counter({names[source]: count for source, count in self._damaged.items()})

    @property
    def mixed(self) -> frozenset[str]:
        """Names of columns that hold values of another kind than they should, or are looked up by such; grows too."""
        return frozenset(column.name for column in self._read if _source(column) in self._mixed)

    def batches(self) -> Iterator[ViewRows]:
        """Yield all rows, `BATCH` at a time; nothing when there are none."""
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
        """Return all rows at once, None when there are none.

        A column of whole numbers, nothing looked up by them, that holds something else comes as texts.
        """
        parts = list(self._pieces(self._read))
        if not parts:
            return None
        values = _joined([values for _, values in parts])
        keys = {_source(column) for column in self._read if column.lookup}
        tangled = [c for c in self._read if c.kind is Kind.INTEGER and _source(c) in self._damaged.keys() - keys]
        if tangled:
            texts = self._pieces([replace(column, kind=Kind.TEXT) for column in tangled])
            values |= _joined([values for _, values in texts])
        return ViewRows(self, values, sum(count for count, _ in parts))

    def _pieces(self, columns: Sequence[ViewColumn]) -> Iterator[tuple[int, dict[str, Array]]]:
        """Yield the number of rows, and the values of what columns are read from, some thousand rows at a time."""
        reader = self.references.reader
        first, *more = self.view.tables
        kinds = {_source(column): Kind.INTEGER if column.lookup else column.kind for column in columns}
        items = {source: source for source in kinds}
        base, order = None, ""
        if "id" not in map(str.lower, reader.tables.columns.get(first.table, ())):
            pass  # a damaged file: its rows come as they lie
        elif self.view.group_by:
            order = f"\nORDER BY MIN({first.alias}.id)"
        elif all(table.key for table in more):  # rows of other tables are found by id: at most one each
            base, items["id"] = first.table, f"{first.alias}.id"
        else:
            order = f"\nORDER BY {first.alias}.id"
        select = select_of(rank_select(self.view, reader.tables, items, where=self._where) + order, kinds, base)
        for piece in pieces(reader, select, self._damaged):
            self._mixed |= piece.mixed
            yield piece.count, values_of(select, piece)


def damage_line(form: str, damaged: Counter[str], shown: str = "written as NULL") -> str:
    """Say how many values a format could not write as numbers, where numbers belong.

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
    """What is read for a column: its expression, or the id that it is looked up by."""
    return column.lookup.key if column.lookup else column.expression
