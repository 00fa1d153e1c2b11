"""Reads the reference tables of one rank, to which the ids in readable views lead: strings, agents, kernel symbols …

Each table is read once, with all columns that some view shows: a statement per column takes longer than the rows of it.
"""

from __future__ import annotations

import functools

import numpy as np
import pyarrow as pa

from rocpd.convert.cells import CODED_TEXT, from_ints, select_of, values_of
from rocpd.federate.run.rank_reader import RankReader
from rocpd.read.columns import read_all
from rocpd.read.ids import find_rows
from rocpd.schema.load import VIEWS, Kind, Lookup, view
from rocpd.schema.quote import quote_name
from rocpd.types import NULL, Ints


class LookupColumn:
    """One column of a reference table, by id.

    Args:
        ids: of the rows, `NULL` where there is none.
        values: of the rows.
    """

    def __init__(self, ids: Ints, values: pa.Array) -> None:
        known = (ids != NULL) & np.asarray(values.is_valid())
        self._ids = ids[known]
        self._values = values.filter(pa.array(known))

    def find(self, ids: Ints | pa.Array) -> pa.Array:
        """Return the value of each id, NULL where there is none; texts as a dictionary of those that occur."""
        is_text = pa.types.is_string(self._values.type)
        if not isinstance(ids, np.ndarray) or not len(self._ids):
            return pa.nulls(len(ids), CODED_TEXT if is_text else self._values.type)
        row, known = find_rows(self._ids, ids)
        if not is_text:
            return self._values.take(pa.array(row, mask=~known))
        used = np.zeros(len(self._ids), bool)
        used[row[known]] = True
        codes = np.cumsum(used, dtype=np.int32) - np.int32(1)
        index = pa.array(np.maximum(codes[row], 0), mask=None if known.all() else ~known)
        return pa.DictionaryArray.from_arrays(index, self._values.filter(pa.array(used)))


class ReferenceTables:
    """The reference tables of one rank.

    Args:
        reader: reads the rank.
    """

    def __init__(self, reader: RankReader) -> None:
        self.reader = reader
        self._tables: dict[str, dict[str, LookupColumn]] = {}

    def column(self, lookup: Lookup) -> LookupColumn:
        """Return a column by id."""
        if lookup.table not in self._tables:
            self._tables[lookup.table] = self._read(lookup.table)
        return self._tables[lookup.table][lookup.column]

    def _read(self, table: str) -> dict[str, LookupColumn]:
        kinds = _shown_columns()[table]
        listed = ", ".join(map(quote_name, dict.fromkeys(("id", *kinds))))
        select = select_of(f"SELECT {listed} FROM {quote_name(table)}", {"id": Kind.INTEGER} | kinds, table)
        columns = values_of(select, read_all(self.reader, select))
        return {
            name: LookupColumn(columns["id"], from_ints(values) if isinstance(values, np.ndarray) else values)
            for name, values in columns.items()
        }


@functools.cache
def _shown_columns() -> dict[str, dict[str, Kind]]:
    """Return the columns of each reference table that views show, and what they hold."""
    tables: dict[str, dict[str, Kind]] = {}
    for column in (column for name in VIEWS for column in view(name).columns):
        if column.lookup:
            tables.setdefault(column.lookup.table, {})[column.lookup.column] = column.kind
    return tables
