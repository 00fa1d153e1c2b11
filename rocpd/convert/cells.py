"""Owns columns as views have them, whatever a damaged file holds: arrays of numbers, lists of texts, coded texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rocpd.base.frozen import frozen
from rocpd.base.types import NULL, Flags, Ints
from rocpd.facts.columns import Piece, Select, TextCodes
from rocpd.federate.result import decoded
from rocpd.schema.load import Kind

if TYPE_CHECKING:
    import numpy.typing as npt

Array: TypeAlias = "npt.NDArray[Any] | list[str | None]"
"""What is read: whole numbers with `NULL` (int64), reals with NaN (float64), or texts."""


@frozen
class Coded:
    """Texts that repeat.

    Args:
        codes: number of the text of each row, -1 where there is none.
        texts: the texts.
    """

    codes: Ints
    texts: Sequence[str]

    @staticmethod
    def of(texts: Iterable[str | None]) -> Coded:
        """Return texts with each of them once."""
        numbers = TextCodes[str]()
        codes = [-1 if text is None else numbers.code(text) for text in texts]
        return Coded(np.array(codes, np.int64), numbers.texts)

    def __len__(self) -> int:
        return len(self.codes)


Values: TypeAlias = "Array | Coded"
"""A column."""


def texts(values: list[Any]) -> list[str | None]:
    """Return a column of texts; other values, which damaged files hold, as texts."""
    return values if {str, NoneType}.issuperset(map(type, values)) else list(map(decoded, values))


def missing(values: Array) -> Flags:
    """Whether there is no value, for each row."""
    if isinstance(values, list):
        return np.fromiter((value is None for value in values), bool, len(values))
    return np.isnan(values) if values.dtype == np.float64 else np.equal(values, NULL)


def listed(values: Values) -> list[Any]:
    """Return the value of each row."""
    if isinstance(values, Coded):
        known = (*values.texts, None)
        return [known[code] for code in values.codes.tolist()]
    return values if isinstance(values, list) else values.tolist()


def take(values: Array, rows: Ints) -> Array:
    """Return the rows of a column with these numbers."""
    return [values[row] for row in rows.tolist()] if isinstance(values, list) else values[rows]


def joined(parts: Sequence[Array]) -> Array:
    """Return the parts of a column as one."""
    if isinstance(parts[0], list):
        return list(chain.from_iterable(parts))
    return np.concatenate([part for part in parts if isinstance(part, np.ndarray)])


def select_of(sql: str, kinds: Mapping[str, Kind], base: str | None) -> Select:
    """Return what to read by the kind of each column; arguments as for `Select`."""

    def of(*wanted: Kind) -> tuple[str, ...]:
        return tuple(name for name, kind in kinds.items() if kind in wanted)

    return Select(sql, of(Kind.INTEGER), of(Kind.REAL), of(Kind.TEXT, Kind.JSON), base)


def values_of(select: Select, piece: Piece) -> dict[str, Array]:
    """Return the columns of a piece by name."""
    columns: tuple[Array, ...] = (*piece.numbers, *piece.reals, *map(texts, piece.texts))
    return dict(zip(select.names, columns, strict=True))
