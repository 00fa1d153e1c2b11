"""Turns values, ids and numbers into Arrow arrays of a fixed type, whatever a damaged file holds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from rocpd.federate.result import decoded
from rocpd.read.ids import find_rows
from rocpd.schema.load import Kind
from rocpd.types import NULL, Ints

TYPES = {Kind.INTEGER: pa.int64(), Kind.REAL: pa.float64(), Kind.TEXT: pa.string(), Kind.JSON: pa.string()}
CODED_TEXT = pa.dictionary(pa.int32(), pa.string())
"""Texts that repeat: each once, and its number per row."""


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


def plain(column: pa.Array) -> pa.Array:
    """Return a column without dictionary."""
    return column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column


def from_ints(values: Ints) -> pa.Array:
    """Return whole numbers, NULL where `NULL` stands for it."""
    missing = values == NULL
    return pa.array(values, mask=missing if missing.any() else None)


def from_texts(values: Sequence[object]) -> pa.Array:
    """Return texts, those of a damaged file too."""
    try:
        return pa.array(values, pa.string())
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array(list(map(decoded, values)), pa.string())
