"""The forms in which a column may be given, and its values row by row.

A column is a sequence, a numpy array (masked: NULL), an Arrow array, or one value for all rows. None in place of a
column leaves it to the table: NULL, or the default that the table declares.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from rocpd.base import UsageError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    IntColumn: TypeAlias = Sequence[int | None] | npt.NDArray[np.integer[Any]] | np.integer[Any] | int | None
    FloatColumn: TypeAlias = Sequence[float | None] | npt.NDArray[np.number[Any]] | float | None
    TextColumn: TypeAlias = Sequence[str | int | None] | npt.NDArray[Any] | str | int | None
    """Texts, or their ids as `TraceWriter.string` returned them."""


_TYPES: Mapping[str, type] = {"i": int, "u": int, "f": float, "U": str}
"""Kind of a numpy array -> type of its values."""

_PLAIN = frozenset({type(None), str, int, float, list, tuple, range})


def plain(column: Any) -> Any:
    """Return a column without numpy: a sequence of Python values, or one value for all rows.

    >>> plain(range(3)), plain("text")
    (range(0, 3), 'text')
    """
    if type(column) in _PLAIN:
        return column
    if getattr(column, "dtype", None) == "uint64":
        # SQLite's integers are signed: addresses in the upper half become negative, as in the recorder's files.
        column = column.astype("int64")
    tolist = getattr(column, "tolist", None)
    return column if tolist is None else tolist()


def check_types(column: Any, allowed: tuple[type, ...], what: str) -> None:
    """Refuse values of other types than a column takes; None always passes.

    Arrays have one type; the values of other sequences are checked one by one.

    Args:
        column: the column as it was given.
        allowed: allowed types of its values.
        what: class and field, for the message.

    Raises:
        UsageError: a value has another type; the message names its row.

    >>> check_types([1, None, 1.5], (int,), "Regions: start")
    Traceback (most recent call last):
    rocpd.base.UsageError: Regions: start is 1.5 in row 2, not of type int
    """
    if column is None or isinstance(column, allowed):
        return
    held = _TYPES.get(getattr(getattr(column, "dtype", None), "kind", ""))
    if held is not None and issubclass(held, allowed):
        return
    values = plain(column)
    if is_single(values):
        values = (values,)
    with contextlib.suppress(TypeError):  # a value without hash is refused below
        # Takes a third of the time of checking each value: most columns repeat few values. That 1.0 equals 1 is
        # harmless, as SQLite stores it as 1. Texts mostly differ, and hashing them takes longer.
        if set(map(type, values if str in allowed else set(values))) <= {*allowed, type(None)}:
            return
    for row, value in enumerate(values):
        if value is not None and not isinstance(value, allowed):
            names = " or ".join(kind.__name__ for kind in allowed)
            raise UsageError(f"{what} is {value!r} in row {row}, not of type {names}")


def is_single(value: object) -> bool:
    """Whether a plain column is one value for all rows."""
    return value is None or isinstance(value, (str, bytes, int, float))


def count_rows(columns: Mapping[str, Any], what: str) -> int:
    """Return the number of rows of plain columns: 1 if all of them are single values.

    Args:
        columns: plain columns by name.
        what: name of the rows, for the message.

    Raises:
        UsageError: columns of different lengths.

    >>> count_rows({"start": [1, 2], "tid": 16}, "Regions")
    2
    """
    lengths = {name: len(values) for name, values in columns.items() if not is_single(values)}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {n}" for name, n in lengths.items())
        raise UsageError(f"{what}: columns of different lengths: {listed}", "one value per row, or one for all rows")
    return next(iter(lengths.values()), 1)


def values_of(column: Any, count: int) -> Sequence[Any]:
    """Return the `count` values of a plain column."""
    return [column] * count if is_single(column) else column
