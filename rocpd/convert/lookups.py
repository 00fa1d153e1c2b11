"""Reads the reference tables of one rank, to which the ids in readable views lead: strings, agents, kernel symbols …

Of each table the columns of one view are read together: a statement per column takes longer than the rows of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from rocpd.base.types import NULL, Ints
from rocpd.convert.cells import Array, Coded, Values, missing, select_of, take, values_of
from rocpd.facts.columns import find_rows, read_all
from rocpd.federate.run.rank_reader import RankReader
from rocpd.schema.load import Kind, Lookup, ViewColumn
from rocpd.schema.quote import quote_name


class LookupColumn:
    """One column of a reference table, by id.

    Args:
        ids: of the rows, `NULL` where there is none.
        values: of the rows.
    """

    def __init__(self, ids: Ints, values: Array) -> None:
        known = np.flatnonzero((ids != NULL) & ~missing(values))
        self._ids = ids[known]
        self._values = take(values, known)

    def find(self, ids: Array) -> Values:
        """Return the value of each id, nothing where there is none; of texts each that occurs once."""
        row, known = np.zeros(len(ids), np.int64), np.zeros(len(ids), bool)
        if isinstance(ids, np.ndarray) and ids.dtype == np.int64:
            row, known = find_rows(self._ids, ids)
        if isinstance(self._values, list):
            used = np.zeros(len(self._ids), bool)
            used[row[known]] = True
            codes = np.full(len(ids), -1)
            codes[known] = (np.cumsum(used) - 1)[row[known]]
            return Coded(codes, [self._values[row] or "" for row in np.flatnonzero(used).tolist()])
        values = np.full(len(ids), NULL if self._values.dtype == np.int64 else np.nan, self._values.dtype)
        values[known] = self._values[row[known]]
        return values


class ReferenceTables:
    """The reference tables of one rank.

    Args:
        reader: reads the rank.
    """

    def __init__(self, reader: RankReader) -> None:
        self.reader = reader
        self._expected: dict[str, dict[str, Kind]] = {}
        self._tables: dict[str, dict[str, LookupColumn]] = {}

    def expect(self, columns: Iterable[ViewColumn]) -> None:
        """Prepare for the columns of a view: what they look up in a table is read together, when first needed."""
        for column in columns:
            if column.lookup:
                self._expected.setdefault(column.lookup.table, {})[column.lookup.column] = column.kind

    def column(self, lookup: Lookup) -> LookupColumn:
        """Return an expected column by id."""
        known = self._tables.setdefault(lookup.table, {})
        if lookup.column not in known:
            known |= self._read(lookup.table, known)
        return known[lookup.column]

    def _read(self, table: str, known: Collection[str]) -> dict[str, LookupColumn]:
        kinds = {"id": Kind.INTEGER} | {name: kind for name, kind in self._expected[table].items() if name not in known}
        listed = ", ".join(map(quote_name, kinds))
        select = select_of(f"SELECT {listed} FROM {quote_name(table)}", kinds, table)
        columns = values_of(select, read_all(self.reader, select))
        return {name: LookupColumn(np.asarray(columns["id"]), values) for name, values in columns.items()}
