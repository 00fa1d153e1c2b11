"""A chart for Python and notebooks, and the choice of a chart for rows with only names and units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from rocpd.base import Row, UsageError
from rocpd.base.output import complete_or_nothing
from rocpd.chart.draw import draw, svg
from rocpd.chart.model import BarPart, Bars, Chart, Lines, Series
from rocpd.table.palette import BLUE


class Plot:
    """A chart. A notebook shows it; `.svg` is its text, `.save(path)` writes a file.

    Attributes:
        chart: the chart as data.
    """

    def __init__(self, chart: Chart) -> None:
        self.chart = chart

    @property
    def svg(self) -> str:
        """The chart as SVG."""
        return svg(draw(self.chart), self.chart.title)

    def save(self, path: str | Path) -> Path:
        """Write the chart as SVG, replacing an existing file unless it is a recording; return the path.

        Raises:
            OutputError: the path is a recording, or cannot be written.
        """
        path = Path(path)
        with complete_or_nothing(path, force=True) as temporary:
            temporary.write_text(self.svg, encoding="utf-8")
        return path

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        """Return its title in brackets."""
        return f"<chart: {self.chart.title}>"


_TOP = 15  # bars
_AT = ("at_ns", "start", "start_ns", "timestamp", "time")
NAMING = (
    "rank",
    "agent",
    "stream",
    "run",
    "number",
    "step",
    "graph",
    "waiter",
    "late",
    "line",
    "dispatch",
    "straggler",
)
"""Columns of numbers that are names."""

_SKIPPED = ("node", "parent", "depth", *_AT)  # neither names nor measures of a row
_VALUES = ("total_ns", "time_ns", "cpu_bound_ns", "busy_ns", "caused_wait_ns", "wait_ns", "idle_ns", "delay_ns")


def chart_of(title: str, columns: Sequence[str], units: Sequence[str], rows: Sequence[Row]) -> Chart:
    """Return bars of the first rows, named by their first columns; a line if the only name is a time.

    Args:
        title: title of the chart.
        columns: names.
        units: unit of each column; empty for names and numbers of things.
        rows: all rows, or the first ones.

    Raises:
        UsageError: no column holds numbers.
    """
    numbers = [place for place in range(len(columns)) if _is_number(rows, place)]
    keys = _keys(columns, numbers)
    value = _value(columns, units, [place for place in numbers if place not in keys])
    if value is None:
        raise UsageError("no chart shows it: no column holds numbers", ".df() has the rows")
    at = next((place for place in numbers if columns[place] in _AT), None)
    if at is not None and not keys:
        known = [row for row in rows if row[at] is not None and row[value] is not None]
        points = tuple((_finite(row[at]), _finite(row[value])) for row in known)
        return Lines(title, (Series(columns[value], BLUE, points),), "ns", units[value])
    labels = tuple(" · ".join(_word(columns[key], row[key]) for key in keys) for row in rows[:_TOP])
    values = tuple(_finite(row[value]) for row in rows[:_TOP])
    return Bars(title, labels, (BarPart(columns[value], BLUE, values),), units[value])


def _finite(value: float | None) -> float:
    """Return a number that can be drawn; None, NaN and infinite values count as 0."""
    return float(value) if value is not None and math.isfinite(value) else 0.0


def _keys(columns: Sequence[str], numbers: Sequence[int]) -> list[int]:
    """Return the columns that name a row: the first ones, up to the first measure."""
    keys = []
    for place, column in enumerate(columns):
        if place in numbers and column not in (*NAMING, *_SKIPPED):
            break
        keys += [place] if column not in _SKIPPED else []
    return keys


def _word(column: str, value: object) -> str:
    shown = "-" if value is None else str(value)
    return f"{column} {shown}" if isinstance(value, int) else shown


def _value(columns: Sequence[str], units: Sequence[str], numbers: Sequence[int]) -> int | None:
    """Return the column to show: a known name, else the first column with a unit, else the first."""
    measures = [place for place in numbers if columns[place] not in _SKIPPED]
    known = [columns.index(name) for name in _VALUES if name in columns]
    return next((place for place in (*known, *(m for m in measures if units[m]), *measures) if place in measures), None)


def _is_number(rows: Sequence[Row], place: int) -> bool:
    known = [row[place] for row in rows if row[place] is not None]
    return bool(known) and all(isinstance(value, (int, float)) for value in known)


def unit_of(column: str) -> str:
    """Return the unit at the end of the name of a column.

    >>> unit_of("total_ns"), unit_of("bytes"), unit_of("calls")
    ('ns', 'bytes', '')
    """
    ends = (unit for unit in ("ns", "bytes") if f"_{column}".endswith(f"_{unit}"))
    return next(ends, _USUAL.get(column, ""))


_USUAL = {"duration": "ns", "start": "ns", "end": "ns", "percent": "%"}
