"""The tables of a history, with unit and meaning of each column, and its charts: values, level, changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from rocpd.base import Row
from rocpd.chart.model import Chart, Lines, MarkedPoint, Series
from rocpd.history.series import MetricChange, MetricSeries
from rocpd.history.store import KERNEL, PART, RunEntry, date_text, unit_of
from rocpd.summary.findings import Finding
from rocpd.summary.result import Field, Summary, by_name, table_of
from rocpd.table.human import CHANCE, OF_ROW
from rocpd.table.palette import BLUE, GREY, ORANGE

_NUMBER = Field("run", "", "number of the run, from 1, in order of time")
_METRIC = (
    Field("metric", "", "step, part of a step, kernel, or the metric that was chosen when runs were added"),
    Field("name", "", "of the part, or of the kernel", is_kernel=True),
)
_UNIT = Field("unit", "", "of the values: ns, bytes or J", True)
_LEAST_OF_GROUP = 3  # runs: smaller groups get no offset

TABLES = by_name(
    table_of(
        "changes",
        "What changed, the step first, and the largest first.",
        *_METRIC,
        Field("run", "", "number of the first run after it"),
        Field("date", "", "when that ran, of UTC"),
        Field("labels", "", "labels that were given to it", True),
        Field("kind", "", "jump, drift, or unclear: chance explains it too often"),
        Field("before", OF_ROW, "level before it", True),
        Field("after", OF_ROW, "level after it", True),
        Field("change_percent", "%", "from one to the other"),
        Field("p", CHANCE, "how often chance explains as much at one run"),
        Field("reason", "", "parts of the configuration that changed there; NULL: none that is known"),
        _UNIT,
    ),
    table_of(
        "runs",
        "The runs, the newest first.",
        _NUMBER,
        Field("date", "", "when it ran, of UTC"),
        Field("labels", "", "labels that were given to it"),
        Field("hosts", "", "its machines"),
        Field("ranks", "", "how many"),
        Field("units", "", "how many steps, or other units, count", True),
        Field("value_ns", "ns", "the step, or the metric that was asked for first; NULL: it has none"),
        Field("level_ns", "ns", "its value without noise"),
        Field("deviations", "", "how many standard deviations lie between"),
        Field("is_outlier", "", "1: it lies apart from its neighbours"),
        Field("id", "", "identity of the run", True),
        Field("name", "", "where it was read from", True),
        Field("reason", "", "parts of its configuration that differed for a while, so that it is in no series", True),
    ),
    table_of(
        "series",
        "Each metric in each run, with the band in which 95 of 100 runs of the level lie.",
        *_METRIC,
        _NUMBER,
        Field("date", "", "when it ran, of UTC"),
        Field("value", OF_ROW, "of the run"),
        Field("level", OF_ROW, "without noise"),
        Field("low", OF_ROW, "lower end of the band"),
        Field("high", OF_ROW, "upper end"),
        _UNIT,
        chart="rocpd.history.tables:of_table",
    ),
    table_of(
        "noise",
        "How metrics vary from run to run where nothing changed.",
        *_METRIC,
        Field(
            "group",
            "",
            "runs of a host, a GPU or a label, which may lie apart; NULL: not known, or of fewer than three runs",
        ),
        Field("runs", "", "how many"),
        Field("level", OF_ROW, "median of its runs"),
        Field("deviation_percent", "%", "standard deviation of runs around the level"),
        Field("offset_percent", "%", "how far the group lies from the most frequent one, as far as that can be said"),
        Field("rho", "", "how alike neighbours are, of all groups"),
        Field("outliers", "", "runs that lie apart from their neighbours"),
        _UNIT,
    ),
    table_of(
        "labels", "What is said of runs.", _NUMBER, Field("name", "", "of the label"), Field("value", "", "of it")
    ),
)
"""Name -> definition."""

OF_JOB = ("changes", "runs", "series", "noise")
"""The tables to show, in this order."""

RELATIONS = tuple(TABLES)
"""The relations that SQL can name."""


def labels_text(entry: RunEntry) -> str:
    """Return the labels of a run as words."""
    return " ".join(f"{name}={value}" for name, value in entry.labels.items())


def names_of(metric: str) -> tuple[str, str | None]:
    """Return the kind of a metric, and the name of its part or kernel.

    >>> names_of("kernel:gemm"), names_of("step")
    (('kernel', 'gemm'), ('step', None))
    """
    for prefix in (PART, KERNEL):
        if metric.startswith(prefix):
            return prefix[:-1], metric.removeprefix(prefix)
    return metric, None


def changes(entries: Sequence[RunEntry], of_metrics: Sequence[MetricChange], findings: Sequence[Finding]) -> Summary:
    """Return the changes of metrics."""
    rows: list[Row] = [
        (
            *names_of(change.metric),
            change.at + 1,
            date_text(entries[change.at].at),
            labels_text(entries[change.at]) or None,
            change.kind,
            change.before,
            change.after,
            (change.ratio - 1) * 100,
            change.p,
            "; ".join(change.reasons) or None,
            unit_of(change.metric),
        )
        for change in of_metrics
    ]
    return Summary.whole(TABLES["changes"], rows, findings)


def runs(entries: Sequence[RunEntry], metric: MetricSeries, passing: Mapping[int, Sequence[str]]) -> Summary:
    """Return the runs, with the place of each around its level; `passing`: reasons why some do not count."""
    level, _, _ = metric.band()
    place = {int(at): n for n, at in enumerate(metric.places)}

    def rows() -> Iterator[Row]:
        for at, entry in reversed(list(enumerate(entries))):
            n = place.get(at)
            known: Row = (entry.metrics.get(metric.name), None, None, None)
            if n is not None:
                value, middle = float(metric.values[n]), float(level[n])
                apart = float(np.log(value / middle)) / metric.fit.deviation if metric.fit.deviation else 0.0
                known = value, middle, round(apart, 2), int(metric.fit.outliers[n])
            about = at + 1, date_text(entry.at), labels_text(entry) or None, ", ".join(entry.hosts) or None
            reason = "; ".join(passing.get(at, ())) or None
            yield (*about, entry.ranks, entry.units, *known, entry.run, entry.name, reason)

    return Summary.whole(TABLES["runs"], rows())


def series(entries: Sequence[RunEntry], metrics: Sequence[MetricSeries]) -> Summary:
    """Return the values of metrics."""
    rows: list[Row] = []
    dates = [date_text(entry.at) for entry in entries]
    for metric in metrics:
        columns = zip(metric.places.tolist(), metric.values.tolist(), *(a.tolist() for a in metric.band()), strict=True)
        names = names_of(metric.name)
        rows += [(*names, at + 1, dates[at], *numbers, unit_of(metric.name)) for at, *numbers in columns]
    return Summary.whole(TABLES["series"], rows)


def noise(metrics: Sequence[MetricSeries], groups: Sequence[str]) -> Summary:
    """Return the variation of metrics, by group."""
    rows: list[Row] = []
    for metric in metrics:
        of_runs = [groups[at] for at in metric.places.tolist()]
        number = {group: n for n, group in enumerate(dict.fromkeys(of_runs))}
        runs = Counter(of_runs)
        shown = np.array([group if runs[group] >= _LEAST_OF_GROUP else "" for group in of_runs])
        left = np.log(metric.values) - metric.levels
        for group in dict.fromkeys(shown.tolist()):
            everyone = shown == group
            usual = everyone & ~metric.fit.outliers
            deviation = float(left[usual].std()) * 100 if usual.sum() > 1 else None
            offset = (float(np.exp(metric.fit.offsets[number[group]])) - 1) * 100 if group in number else None
            numbers = int(everyone.sum()), float(np.median(metric.values[everyone])), deviation, offset
            outliers = int((everyone & metric.fit.outliers).sum())
            names, unit = names_of(metric.name), unit_of(metric.name)
            rows.append((*names, group or None, *numbers, metric.fit.rho, outliers, unit))
    return Summary.whole(TABLES["noise"], rows)


def labels(entries: Sequence[RunEntry]) -> Summary:
    """Return the labels of runs."""
    rows = [(at + 1, *label) for at, entry in enumerate(entries) for label in entry.labels.items()]
    return Summary.whole(TABLES["labels"], rows)


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
    title: str, numbers: Sequence[float], columns: Sequence[Sequence[float]], marked: tuple[MarkedPoint, ...]
) -> Lines:
    names = ("runs", BLUE), ("level", ORANGE), ("95 of 100 runs", GREY), ("", GREY)
    lines = [
        Series(name, colour, tuple(zip(numbers, column, strict=True)), marked if name == "runs" else ())
        for (name, colour), column in zip(names, columns, strict=True)
    ]
    return Lines(title, tuple(lines), "", unit_of(title), has_zero=False)
