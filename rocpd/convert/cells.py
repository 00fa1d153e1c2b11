"""Turns what was read into Arrow arrays of a fixed type, whatever a damaged file holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa

from rocpd.federate.result import decoded
from rocpd.read.columns import Piece, Select
from rocpd.schema.load import Kind
from rocpd.types import NULL, Ints

Values: TypeAlias = "Ints | pa.Array"
"""A column as it is read: whole numbers with `NULL`, else an Arrow array."""

TYPES = {Kind.INTEGER: pa.int64(), Kind.REAL: pa.float64(), Kind.TEXT: pa.string(), Kind.JSON: pa.string()}
CODED_TEXT = pa.dictionary(pa.int32(), pa.string())
"""Texts that repeat: each once, and its number per row."""


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


def select_of(sql: str, kinds: Mapping[str, Kind], base: str | None) -> Select:
    """Return what to read by the kind of each column; arguments as for `Select`."""

    def of(*wanted: Kind) -> tuple[str, ...]:
        return tuple(name for name, kind in kinds.items() if kind in wanted)

    return Select(sql, of(Kind.INTEGER), of(Kind.REAL), of(Kind.TEXT, Kind.JSON), base)


def values_of(select: Select, piece: Piece) -> dict[str, Values]:
    """Return the columns of a piece by name."""
    values: dict[str, Values] = dict(zip(select.numbers, piece.numbers, strict=True))
    values |= zip(select.reals, (pa.array(column, from_pandas=True) for column in piece.reals), strict=True)
    return values | dict(zip(select.texts, map(from_texts, piece.texts), strict=True))
