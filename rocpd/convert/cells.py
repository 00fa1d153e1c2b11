"""Owns single columns: values, ids and numbers into Arrow arrays of a fixed type, whatever a damaged file holds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rocpd.schema.load import Kind
from rocpd.types import NULL, Ints

TYPES = {Kind.INTEGER: pa.int64(), Kind.REAL: pa.float64(), Kind.TEXT: pa.string(), Kind.JSON: pa.string()}


class Small:
    """One column of a small table by id."""

    def __init__(self, ids: Sequence[int], values: Sequence[Any], kind: Kind) -> None:
        self._ids = np.array(ids, np.int64)
        self._values = array(values, kind)
        self._known = np.array([value is not None for value in self._values.to_pylist()], bool)
        self._text = kind.is_text

    def find(self, ids: Any) -> pa.Array:
        """Give the value of each id, NULL where there is none; texts as a dictionary of those that occur."""
        if not isinstance(ids, np.ndarray) or not len(self._ids):
            return pa.nulls(len(ids), pa.dictionary(pa.int32(), pa.string()) if self._text else self._values.type)
        place = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
        known = (self._ids[place] == ids) & self._known[place]
        if not self._text:
            return self._values.take(pa.array(place, mask=~known))
        used = np.zeros(len(self._ids), bool)
        used[place[known]] = True
        numbers = np.cumsum(used, dtype=np.int32) - np.int32(1)
        index = pa.array(np.maximum(numbers[place], 0), mask=None if known.all() else ~known)
        return pa.DictionaryArray.from_arrays(index, self._values.filter(pa.array(used)))


def plain(column: pa.Array) -> pa.Array:
    """Give a column without dictionary."""
    return column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column


def from_ints(values: Ints) -> pa.Array:
    """Give numbers, NULL where they stand for it."""
    missing = values == NULL
    return pa.array(values, mask=missing if missing.any() else None)


def documents(empty: Ints, texts: Iterator[tuple[Any, ...]]) -> pa.Array:
    """Give '{}' where `empty` says so, else the next of `texts`."""
    if empty.all():
        return pa.repeat(pa.scalar("{}"), len(empty))
    count = len(empty) - int(np.count_nonzero(empty))
    found = list(itertools.chain.from_iterable(itertools.islice(texts, count)))
    values = pa.concat_arrays([pa.array(["{}"]), array(found, Kind.TEXT)])
    return values.take(pa.array(np.where(empty, 0, np.cumsum(empty == 0))))


def array(values: Sequence[Any], kind: Kind) -> pa.Array:
    """Give values that SQLite gave as a column of one type."""
    try:
        return pa.array(values, TYPES[kind])
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([_fitting(value, kind) for value in values], TYPES[kind])


def _fitting(value: object, kind: Kind) -> object:
    """Give a value of a damaged file as the type of its column, None where it is none."""
    if value is None:
        return None
    if kind.is_text:
        return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
    return value if isinstance(value, (int, float)) and pc.is_valid(pa.scalar(value)).as_py() else None
