"""Owns which chart shows rows of which nothing is known but names of columns and units."""

from __future__ import annotations

from collections.abc import Sequence

from rocpd.chart.model import BarPart, Bars, Chart, Lines, Series
from rocpd.errors import UsageError
from rocpd.table.palette import BLUE
from rocpd.types import Row

_TOP = 15  # bars
_AT = ("at_ns", "start", "start_ns", "timestamp", "time")
_NAMES = ("name", "part", "cause", "category", "measure", "phase", "class", "size", "call", "rank", "step")
_VALUES = ("total_ns", "time_ns", "idle_ns", "busy_ns", "wait_ns", "delay_ns", "duration_ns", "gap_ns", "bytes")


def chart_of(title: str, columns: Sequence[str], units: Sequence[str], rows: Sequence[Row]) -> Chart:
    """Return a line where a column is a time and another one a number, else bars of the first rows.

    Args:
        title: of the chart.
        columns: names.
        units: of each column; empty for names and numbers of things.
        rows: all rows, or the first ones.

    Raises:
        UsageError: no column holds numbers.
    """
    numbers = [place for place in range(len(columns)) if _is_number(rows, place)]
    at = next((place for place in numbers if columns[place] in _AT), None)
    name = _first(columns, _NAMES, [place for place in range(len(columns)) if place not in numbers])
    value = _first(columns, _VALUES, [place for place in numbers if place not in (at, name)], units)
    if value is None:
        raise UsageError("no chart shows it: no column holds numbers", ".df() has the rows")
    if at is not None and name is None:
        points = tuple((float(row[at]), float(row[value])) for row in rows if None not in (row[at], row[value]))
        return Lines(title, (Series(columns[value], BLUE, points),), "ns", units[value])
    front = range(name or 0) if name is not None else ()
    shown = [place for place in (*front, name) if place is not None and not units[place] and place != value]
    labels = tuple(" · ".join("-" if row[place] is None else str(row[place]) for place in shown) for row in rows[:_TOP])
    values = tuple(float(row[value] or 0) for row in rows[:_TOP])
    return Bars(title, labels, (BarPart(columns[value], BLUE, values),), units[value])


def _is_number(rows: Sequence[Row], place: int) -> bool:
    known = [row[place] for row in rows if row[place] is not None]
    return bool(known) and all(isinstance(value, (int, float)) for value in known)


def _first(
    columns: Sequence[str], known: Sequence[str], otherwise: Sequence[int], units: Sequence[str] = ()
) -> int | None:
    """Return the column of a known name, else the first of the others, one with a unit before one without."""
    for name in known:
        if name in columns:
            return columns.index(name)
    return next((place for place in otherwise if units and units[place]), next(iter(otherwise), None))


def unit_of(column: str) -> str:
    """Return the unit that the name of a column ends in.

    >>> unit_of("total_ns"), unit_of("bytes"), unit_of("calls")
    ('ns', 'bytes', '')
    """
    return next(
        (unit for unit in ("ns", "bytes") if column == unit or column.endswith(f"_{unit}")), _USUAL.get(column, "")
    )


_USUAL = {"duration": "ns", "start": "ns", "end": "ns", "percent": "%"}
