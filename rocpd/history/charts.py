"""Series of runs as charts: values, the band of their level, and where it changed."""

from __future__ import annotations

from collections.abc import Sequence

from rocpd.chart.model import Chart, Lines, MarkedPoint, Series
from rocpd.history.entry import unit_of
from rocpd.history.series import MetricChange, MetricSeries
from rocpd.summary.result import Summary
from rocpd.table.palette import BLUE, GREY, ORANGE


def of_metric(series: MetricSeries, changes: Sequence[MetricChange], title: str) -> Chart:
    """Return the chart of a metric over the runs, numbered from 1."""
    numbers = [float(place) + 1 for place in series.places.tolist()]
    level, low, high = (ends.tolist() for ends in series.band())
    values = dict(zip(numbers, series.values.tolist(), strict=True))
    marked = tuple(
        MarkedPoint(change.at + 1.0, values[change.at + 1.0], f"{change.ratio - 1:+.1%}")
        for change in changes
        if change.metric == series.name and change.at + 1.0 in values
    )
    return _lines(title, numbers, (series.values.tolist(), level, low, high), marked)


def of_table(table: Summary) -> Chart:
    """Return the chart of the first metric of the table `series`."""
    first = next(iter(table), ("series", None))[:2]
    rows = [row for row in table if row[:2] == first]
    columns = [[row[n] for row in rows] for n in range(4, 8)]
    return _lines(str(first[1] or first[0]), [float(row[2]) for row in rows], columns, ())


def _lines(
    title: str,
    numbers: Sequence[float],
    columns: Sequence[Sequence[float]],
    marked: tuple[MarkedPoint, ...],
) -> Lines:
    names = ("runs", BLUE), ("level", ORANGE), ("95 of 100 runs", GREY), ("", GREY)
    lines = [
        Series(name, colour, tuple(zip(numbers, column, strict=True)), marked if name == "runs" else ())
        for (name, colour), column in zip(names, columns, strict=True)
    ]
    return Lines(title, tuple(lines), "", unit_of(title), has_zero=False)
