"""The kinds of values that the index knows, and the stored columns of a view. A column holds one kind, or no index."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from rocpd.base.frozen import frozen


class ValueKind(enum.StrEnum):
    """What the values of a column or an expression are, beside NULL."""

    INT = "int"
    REAL = "real"
    TEXT = "text"
    BOOL = "bool"
    """What comparisons return: in SQLite 0 or 1, in DuckDB a type of its own. No column is stored so."""
    NULL = "null"
    """Nothing but NULL."""


@frozen
class StoredView:
    """A view of one rank in the index.

    Args:
        rows: how many.
        columns: column -> kind of its values. A column with values of several kinds is left out.
        ascii: columns of texts that hold characters of ASCII only.
        greatest: column of whole numbers -> the greatest of them without their signs.
        is_by_id: ids rise from row to row, so there is one for each row of the table that the view is of.
    """

    rows: int
    columns: Mapping[str, ValueKind]
    ascii: frozenset[str]
    greatest: Mapping[str, int]
    is_by_id: bool
