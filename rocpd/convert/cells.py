"""Turns values, ids and numbers into Arrow arrays of a fixed type, whatever a damaged file holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rocpd.schema.load import Kind
from rocpd.types import NULL, Ints

TYPES = {Kind.INTEGER: pa.int64(), Kind.REAL: pa.float64(), Kind.TEXT: pa.string(), Kind.JSON: pa.string()}
CODED_TEXT = pa.dictionary(pa.int32(), pa.string())
"""Texts that repeat: each once, and its number per row."""


class LookupColumn:
    """One column of a reference table, by id.

    Args:
        ids: of the rows, ascending.
        values: of the rows, as SQLite gave them.
        kind: kind of the values.
    """

    def __init__(self, ids: Sequence[int], values: Sequence[Any], kind: Kind) -> None:
        self._ids = np.array(ids, np.int64)
        self._values = array(values, kind)
        self._known = np.array([value is not None for value in self._values.to_pylist()], bool)
        self._is_text = kind.is_text

    def find(self, ids: Ints | pa.Array) -> pa.Array:
        """Return the value of each id, NULL where there is none; texts as a dictionary of those that occur."""
        if not isinstance(ids, np.ndarray) or not len(self._ids):
            return pa.nulls(len(ids), CODED_TEXT if self._is_text else self._values.type)
        row = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
        known = (self._ids[row] == ids) & self._known[row]
        if not self._is_text:
            return self._values.take(pa.array(row, mask=~known))
        used = np.zeros(len(self._ids), bool)
        used[row[known]] = True
        codes = np.cumsum(used, dtype=np.int32) - np.int32(1)
        index = pa.array(np.maximum(codes[row], 0), mask=None if known.all() else ~known)
        return pa.DictionaryArray.from_arrays(index, self._values.filter(pa.array(used)))


def plain(column: pa.Array) -> pa.Array:
    """Return a column without dictionary."""
    return column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column


def from_ints(values: Ints) -> pa.Array:
    """Return whole numbers, NULL where `NULL` stands for it."""
    missing = values == NULL
    return pa.array(values, mask=missing if missing.any() else None)


def array(values: Sequence[Any], kind: Kind) -> pa.Array:
    """Return values of SQLite as a column of one type."""
    try:
        return pa.array(values, TYPES[kind])
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([_fitting(value, kind) for value in values], TYPES[kind])


def _fitting(value: object, kind: Kind) -> object:
    """Return a value of a damaged file as the type of its column, None where it has no such value."""
    if value is None:
        return None
    if kind.is_text:
        return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
    return value if isinstance(value, (int, float)) and pc.is_valid(pa.scalar(value)).as_py() else None
