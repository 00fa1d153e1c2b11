"""Adds up partial aggregates of some ranks, exactly: the final result stays the same to the last bit.

Sums of floats depend on their order: such rows stay as they are until all ranks are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rocpd.base.types import Row

_EXACT = 1 << 53  # sums of whole numbers up to here are exact as floats
_LARGEST = (1 << 63) - 1


def reduced(rows: Iterable[Row], merges: Sequence[str]) -> list[Row]:
    """Add up rows with equal groups as far as that is exact; groups come in order of first appearance.

    Args:
        rows: partial aggregates in rank order.
        merges: how each column adds up, as `Scatter.merges`; if empty, rows stay as they are.
    """
    if not merges:
        return list(rows)
    group_columns = [index for index, merge in enumerate(merges) if merge == "GROUP"]
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        key = tuple((type(row[index]), row[index]) for index in group_columns)
        members = groups.setdefault(key, [])
        # Only the first rows are added up: all rows after one that could not be added stay, in their order.
        added = _added(members[0], row, merges) if len(members) == 1 else None
        if added:
            members[0] = added
        else:
            members.append(row)
    return [row for members in groups.values() for row in members]


def _added(first: Row, second: Row, merges: Sequence[str]) -> Row | None:
    """Return one row for two of a group; None if that would not be exact."""
    values = []
    for merge, a, b in zip(merges, first, second, strict=True):
        if merge == "GROUP" or b is None:
            values.append(a)
        elif a is None:
            values.append(b)
        elif merge in ("SUM", "TOTAL"):
            if not _is_exact(a, b):
                return None
            values.append(a + b)
        elif _class(a) == _class(b) != 0:
            values.append(min(a, b) if merge == "MIN" else max(a, b))
        else:
            return None
    return tuple(values)


def _is_exact(a: Any, b: Any) -> bool:
    if isinstance(a, int) and isinstance(b, int):
        return abs(a + b) <= _LARGEST
    if isinstance(a, float) and isinstance(b, float):
        return a.is_integer() and b.is_integer() and abs(a) + abs(b) < _EXACT
    return False


def _class(value: object) -> int:
    """Return a class in which Python and SQLite order values alike (numbers of one type, or texts); 0: none."""
    return 1 if isinstance(value, int) else 2 if isinstance(value, float) else 3 if isinstance(value, str) else 0
