"""Owns adding up partial aggregates of some ranks before all are there, exactly: the whole comes out the same.

Sums of floats depend on their order; such rows are left for whoever sees all ranks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rocpd.types import Row

_EXACT = 1 << 53  # sums of whole numbers up to here are exact as floats
_LARGEST = (1 << 63) - 1


def reduced(rows: Iterable[Row], merges: Sequence[str]) -> list[Row]:
    """Add up rows with equal groups as far as that is exact, in order of first appearance.

    Args:
        rows: partial aggregates in rank order.
        merges: of each column, as `Scatter.merges`; with none, rows stay as they are.
    """
    if not merges:
        return list(rows)
    keys = [place for place, merge in enumerate(merges) if merge == "GROUP"]
    found: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        key = tuple((type(row[place]), row[place]) for place in keys)
        own = found.setdefault(key, [])
        # Only the first rows are added up: those behind one that stays, stay too, in their order.
        together = _added(own[0], row, merges) if len(own) == 1 else None
        if together:
            own[0] = together
        else:
            own.append(row)
    return [row for own in found.values() for row in own]


def _added(one: Row, two: Row, merges: Sequence[str]) -> Row | None:
    values = []
    for merge, a, b in zip(merges, one, two, strict=True):
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
    """Values that Python and SQLite order alike: numbers of one type, or texts."""
    return 1 if isinstance(value, int) else 2 if isinstance(value, float) else 3 if isinstance(value, str) else 0
