"""Owns columns as views have them, whatever a damaged file holds: numpy arrays, and texts that repeat, each once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rocpd.federate.result import decoded
from rocpd.frozen import frozen
from rocpd.read.columns import Piece, Select
from rocpd.read.names import TextCodes
from rocpd.schema.load import Kind
from rocpd.types import NULL, Flags, Ints

if TYPE_CHECKING:
    import numpy.typing as npt

Texts: TypeAlias = "npt.NDArray[np.object_]"
"""Texts and None."""

Array: TypeAlias = "npt.NDArray[Any]"
"""What is read: whole numbers with `NULL` (int64), reals with NaN (float64), or texts (object)."""


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

    def plain(self) -> Texts:
        """Return the text of each row."""
        return texts((*self.texts, None))[self.codes]


Values: TypeAlias = "Array | Coded"
"""A column."""


def texts(values: Sequence[object]) -> Texts:
    """Return a column of texts; other values, which damaged files hold, as texts."""
    if not {str, NoneType}.issuperset(map(type, values)):
        values = list(map(decoded, values))
    column = np.empty(len(values), object)
    column[:] = values
    return column


def missing(values: Array) -> Flags:
    """Whether there is no value, for each row."""
    if values.dtype == object:
        return np.fromiter((value is None for value in values), bool, len(values))
    return np.isnan(values) if values.dtype == np.float64 else np.equal(values, NULL)


def plain(values: Values) -> Array:
    """Return a column with a value in each row."""
    return values.plain() if isinstance(values, Coded) else values


def take(values: Values, rows: Ints) -> Values:
    """Return the rows of a column with these numbers."""
    return Coded(values.codes[rows], values.texts) if isinstance(values, Coded) else values[rows]


def select_of(sql: str, kinds: Mapping[str, Kind], base: str | None) -> Select:
    """Return what to read by the kind of each column; arguments as for `Select`."""

    def of(*wanted: Kind) -> tuple[str, ...]:
        return tuple(name for name, kind in kinds.items() if kind in wanted)

    return Select(sql, of(Kind.INTEGER), of(Kind.REAL), of(Kind.TEXT, Kind.JSON), base)


def values_of(select: Select, piece: Piece) -> dict[str, Array]:
    """Return the columns of a piece by name."""
    columns = (*piece.numbers, *piece.reals, *map(texts, piece.texts))
    return dict(zip(select.names, columns, strict=True))
