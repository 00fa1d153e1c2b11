"""The runs of one job in a store: changes and their times, noise, and the base for new runs; as tables and charts.

Runs of other jobs, which `rocpd diff` would not compare, are kept apart. The first lines of entries hold nearly all
data; the profiles of a few runs are read to explain a change, or to compare a run.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from statistics import median

import numpy as np

from rocpd.base import Parameters, RocpdError, Row, UsageError, amount, by_key, frozen, percent_text
from rocpd.base.sqlite import apsw
from rocpd.base.student import student_quantile
from rocpd.chart.model import Chart, Lines, MarkedPoint, Series
from rocpd.chart.plot import Plot
from rocpd.compare.attribution import attribute, pair_kernels, side_of
from rocpd.compare.comparison import OTHER_GPU, OTHER_RECORDING, Comparison, comparability, compare
from rocpd.compare.decision import runs_needed
from rocpd.compare.options import STEP, DiffOptions
from rocpd.compare.run_profile import RunProfile
from rocpd.facts.short_names import kernel_name
from rocpd.federate.open.guard import guard
from rocpd.federate.result import Cursor, Result
from rocpd.history.series import (
    DRIFT,
    FEWEST,
    JUMP,
    MAYBE,
    MetricChange,
    MetricSeries,
    changes_of,
    metrics_of,
    passing,
    series_of,
)
from rocpd.history.store import COMMAND, KERNEL, PART, RunEntry, date_text, identity_of, read, unit_of, unwritten
from rocpd.summary.findings import JOB, Confidence, Finding, Verdict
from rocpd.summary.result import Field, Summary, by_name, table_of
from rocpd.table.human import CHANCE, OF_ROW, readable
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
        chart="rocpd.history.history:of_table",
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


_LEAST = DiffOptions().least_score
_Kind = tuple[object, ...]


def jobs_of(entries: Iterable[RunEntry]) -> list[tuple[RunEntry, ...]]:
    """Divide runs, in order of time, into jobs; the job with the newest run comes first.

    A run belongs to the job whose newest run before it is most similar.
    """
    jobs: list[list[RunEntry]] = []
    scores: dict[tuple[_Kind, _Kind], float] = {}
    for entry in entries:
        best: tuple[float, list[RunEntry]] = (0.0, [])
        for job in jobs:
            pair = _kind(job[-1]), _kind(entry)
            if pair not in scores:
                scores[pair] = score(job[-1], entry)
            best = max(best, (scores[pair], job), key=lambda each: each[0])
        if best[0] >= _LEAST:
            best[1].append(entry)
        else:
            jobs.append([entry])
    return [tuple(job) for job in sorted(jobs, key=lambda job: (-job[-1].at, job[-1].run))]


def closest(jobs: Sequence[Sequence[RunEntry]], entry: RunEntry) -> int:
    """Return the number of the job that is most similar to a run, from 1."""
    scores = [_quick(job[-1], entry) for job in jobs]
    return 1 + scores.index(max(scores))


def score(first: RunEntry, second: RunEntry) -> float:
    """Return how well two runs compare, from 0 to 1: by their first lines, or in full if these score too low."""
    quick = _quick(first, second)
    if quick >= _LEAST or first.unit != second.unit:
        return quick
    base, new = [first.profile()], [second.profile()]
    pairs = pair_kernels(base[0].uses, new[0].uses, None)
    return comparability(base, new, attribute(side_of(base), side_of(new), pairs), _LEAST).score


def _quick(first: RunEntry, second: RunEntry) -> float:
    """Return the score of `comparability` with kernels matched by name only."""
    if (first.unit, first.config.get("what counts")) != (second.unit, second.config.get("what counts")):
        return 0.0
    score = min(first.ranks, second.ranks) / max(first.ranks, second.ranks, 1)
    gpus = [entry.config.get("GPU") for entry in (first, second)]
    score *= OTHER_GPU if all(gpus) and gpus[0] != gpus[1] else 1.0
    score *= OTHER_RECORDING ** len({*first.recorded} ^ {*second.recorded})
    return score * min(_shared(first.compute, second.compute), _shared(second.compute, first.compute))


def _shared(mine: Mapping[str, float], other: Container[str]) -> float:
    total = sum(mine.values())
    return sum(share for name, share in mine.items() if name in other) / total if total else 1.0


def _kind(entry: RunEntry) -> _Kind:
    """Return the properties that scores depend on."""
    config = entry.config.get("GPU"), entry.config.get("what counts")
    return entry.unit, entry.ranks, *config, entry.recorded, tuple(sorted(entry.compute))


_SIDE = 3  # runs on each side of a change that explain it
_BASE = 12  # runs of the current level that are the base of a new one
_EXPLAINED = 3  # changes whose profiles are read
_LINES = 10  # lines of the first screen
_BESIDE = 2  # runs: metrics that change this close to a change of the step are parts of it
_ALIKE = 0.05  # correlation of neighbours that is reported
_WORTH = 0.03  # a change that should be seen; the number of runs for it is reported


@frozen
class HistoryOptions:
    """Options of a history.

    Args:
        job: number of the job, from 1, in the order of their newest runs; the first one ran last.
        metrics: only these metrics; after `kernel:` and `part:` comes a regular expression. None: the important ones.
        by: property that groups runs: `host`, `gpu`, or the name of a label; empty: all runs are one group.
        least: least share of a change that is kept.
    """

    job: int = 1
    metrics: tuple[str, ...] = ()
    by: str = "host"
    least: float = 0.01


class JobHistory:
    """The history of a job. `.runs()`, `.changes()`, `.series()` and `.noise()` are tables: `.df()` makes data frames.

    Args:
        folder: the store.
        asked: options.

    Attributes:
        entries: its runs, in order of time.
        problems: parts of the store that were left out or are odd.
        jobs: the runs of each job in the store, the job that ran last first.

    Raises:
        InputError: there is no store at the path, or it has no runs.
        UsageError: a job, metric or label is unknown.
    """

    def __init__(self, folder: str | Path, asked: HistoryOptions | None = None) -> None:
        self.folder, self.asked = Path(folder), asked or HistoryOptions()
        stored = read(self.folder)
        self.problems = stored.problems
        self.jobs = jobs_of(stored.entries)
        if not 1 <= self.asked.job <= len(self.jobs):
            raise UsageError(f"--job {self.asked.job}: no such job", f"1 to {len(self.jobs)}")
        self.entries: tuple[RunEntry, ...] = self.jobs[self.asked.job - 1]

    @cached_property
    def passing(self) -> Mapping[int, Sequence[str]]:
        """Place of each run with a temporary configuration -> the differences; these runs are in no series."""
        return passing(self.entries)

    @cached_property
    def metrics(self) -> list[str]:
        """Names of the metrics that are searched for changes."""
        if not self.asked.metrics:
            return metrics_of(self.entries)
        known = {name for entry in self.entries for name in entry.metrics}
        chosen = [name for word in self.asked.metrics for name in sorted(known) if _is_asked(word, name)]
        if not chosen:
            names = sorted(map(_shown, known), key=lambda name: (name.startswith(KERNEL), name))
            raise UsageError(f"no metric is called {' or '.join(self.asked.metrics)}", f"such as {_few(names)}")
        return metrics_of(self.entries, list(dict.fromkeys(chosen)))

    @cached_property
    def groups(self) -> list[str]:
        """The group of each run; runs of one group share an offset, such as that of their machine."""
        labels = sorted({name for entry in self.entries for name in entry.labels})
        if self.asked.by not in ("", "host", "gpu", *labels):
            raise UsageError(f"--by {self.asked.by}: no run has such a label", _few(["host", "gpu", *labels]))
        return [group_of(entry, self.asked.by) for entry in self.entries]

    @cached_property
    def fitted(self) -> Mapping[str, MetricSeries]:
        """The metrics, with their fits."""
        return {name: series_of(self.entries, name, self.groups, self.passing) for name in self.metrics}

    @cached_property
    def found(self) -> Sequence[MetricChange]:
        """The changes, the largest first."""
        return changes_of(self.entries, self.fitted, self.asked.least)

    @cached_property
    def step(self) -> MetricSeries:
        """The metric for the speed of the job; another one if the step was not asked for."""
        return self.fitted.get(STEP) or next(iter(self.fitted.values()))

    def explained(self, change: MetricChange) -> Comparison:
        """Return the comparison of a few runs before a change with a few after it."""
        before, after = self.sides(change)
        options = DiffOptions(least_score=0.0, run_noise=self.noise_percent)
        return compare([e.profile() for e in before], [e.profile() for e in after], options)

    def sides(self, change: MetricChange) -> tuple[Sequence[RunEntry], Sequence[RunEntry]]:
        """Return a few runs of the levels on both sides of a change."""
        usual = [place for place in range(len(self.entries)) if place not in self.passing]
        if change.kind == DRIFT:
            since = usual[bisect_left(usual, change.at) :]
            return self._at(since[:_SIDE]), self._at(since[-_SIDE:])
        edges = [0, *sorted({c.at for c in self.found if c.metric == change.metric}), len(self.entries)]
        first = max(edge for edge in edges if edge < change.at)
        last = min(edge for edge in edges if edge > change.at)
        before = [place for place in usual if first <= place < change.at][-_SIDE:]
        return self._at(before), self._at([place for place in usual if change.at <= place < last][:_SIDE])

    def _at(self, places: Iterable[int]) -> Sequence[RunEntry]:
        return [self.entries[place] for place in places]

    def explanation(self, change: MetricChange) -> str:
        """Return words for the main cause of a change of the step; empty if there is none."""
        attribution = self.explained(change).attribution
        causes = [(kernel_name(k.pair.new[0].name if k.pair.new else k.pair.base[0].name).short, k.change)
                  for k in attribution.kernels]  # fmt: skip
        causes += [(part, row.change) for part, row in attribution.parts.items() if part.startswith("idle")]
        whole = attribution.unit.change
        same = [(name, part) for name, part in causes if part * whole > 0]
        if not same:
            return ""
        name, part = max(same, key=lambda cause: abs(cause[1]))
        return f"{name} explains {min(part / whole, 1.0) * 100:.0f} %"

    @property
    def noise_percent(self) -> float:
        """Standard deviation of runs around their level, including outliers, since the next run may be one [%]."""
        left = np.log(self.step.values) - self.step.levels
        freedom = max(1, len(left) - len(self.step.fit.steps) - 1)
        return max(self.step.fit.deviation, math.sqrt(float((left**2).sum()) / freedom)) * 100

    def base(self, without: Sequence[RunProfile] = ()) -> list[RunProfile]:
        """Return the newest runs of the current level, the base for new runs.

        Args:
            without: runs to leave out: the new ones.

        Raises:
            RocpdError: there are no runs left.
        """
        skipped = {identity_of(run) for run in without}
        first = int(self.step.places[self.step.fit.segment])
        level = self._at(place for place in range(first, len(self.entries)) if place not in self.passing)
        chosen = [entry for entry in level if entry.run not in skipped][-_BASE:]
        if not chosen:
            raise RocpdError(f"{self.folder}: no other run of the current level", "add runs before the change, or more")
        return [entry.profile() for entry in chosen]

    def against(self, runs: Sequence[RunProfile], options: DiffOptions) -> Comparison:
        """Compare runs with the current level: `rocpd diff` with the noise of the history."""
        base = self.base(runs)
        if len(self.step.values) < FEWEST or options.run_noise is not None:
            return compare(base, runs, options)
        freedom = len(self.step.values) - len(self.step.fit.steps) - 1
        wide = student_quantile(0.975, freedom) / student_quantile(0.975, 1000)  # few runs hardly know how they deviate
        options = replace(options, run_noise=max(self.noise_percent * wide, 0.01))
        return compare([_one_number(run) for run in base], [_one_number(run) for run in runs], options)

    def runs(self) -> Summary:
        """Return the runs: number, date, labels, hosts, step, place in the band of their level."""
        metric = self.step
        level, _, _ = metric.band()
        place = {int(at): n for n, at in enumerate(metric.places)}

        def rows() -> Iterator[Row]:
            for at, entry in reversed(list(enumerate(self.entries))):
                n = place.get(at)
                known: Row = (entry.metrics.get(metric.name), None, None, None)
                if n is not None:
                    value, middle = float(metric.values[n]), float(level[n])
                    apart = float(np.log(value / middle)) / metric.fit.deviation if metric.fit.deviation else 0.0
                    known = value, middle, round(apart, 2), int(metric.fit.outliers[n])
                about = at + 1, date_text(entry.at), labels_text(entry) or None, ", ".join(entry.hosts) or None
                reason = "; ".join(self.passing.get(at, ())) or None
                yield (*about, entry.ranks, entry.units, *known, entry.run, entry.name, reason)

        return Summary.whole(TABLES["runs"], rows())

    def changes(self) -> Summary:
        """Return the changes, the largest first."""
        rows: list[Row] = []
        for change in self.found:
            entry = self.entries[change.at]
            about = *names_of(change.metric), change.at + 1, date_text(entry.at), labels_text(entry) or None
            measured = change.kind, change.before, change.after, (change.ratio - 1) * 100, change.p
            rows.append((*about, *measured, "; ".join(change.reasons) or None, unit_of(change.metric)))
        return Summary.whole(TABLES["changes"], rows, self.findings)

    def series(self) -> Summary:
        """Return the value of each metric in each run, with its level and band."""
        rows: list[Row] = []
        dates = [date_text(entry.at) for entry in self.entries]
        for metric in self.fitted.values():
            columns = zip(
                metric.places.tolist(), metric.values.tolist(), *(a.tolist() for a in metric.band()), strict=True
            )
            names = names_of(metric.name)
            rows += [(*names, at + 1, dates[at], *numbers, unit_of(metric.name)) for at, *numbers in columns]
        return Summary.whole(TABLES["series"], rows)

    def noise(self) -> Summary:
        """Return the variation of each metric from run to run, by group of runs."""
        rows: list[Row] = []
        for metric in self.fitted.values():
            of_runs = [self.groups[at] for at in metric.places.tolist()]
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

    def tables(self, names: Iterable[str] = OF_JOB) -> Iterator[Summary]:
        """Yield the tables of these names; `changes` has the findings of the history in sentences."""
        makers = {"changes": self.changes, "runs": self.runs, "series": self.series, "noise": self.noise}
        for name in names:
            yield makers[name]()

    def chart(self, metric: str = STEP) -> Chart:
        """Return the chart of a metric: its values, the band of their level, and its changes.

        Raises:
            UsageError: the history has no such metric.
        """
        if metric not in self.fitted:
            raise UsageError(f"{metric}: no metric of this history", _few(list(self.fitted)))
        return of_metric(self.fitted[metric], self.found, _word(metric))

    def plot(self, metric: str = STEP) -> Plot:
        """Return the chart of a metric, drawn. Errors as `chart`."""
        return Plot(self.chart(metric))

    def sql(self, statement: str, parameters: Parameters = None) -> Result:
        """Ask SQL of the tables `runs`, `changes`, `series`, `noise` and `labels`.

        Raises:
            QueryError: SQLite refuses the statement.
        """
        connection = self._database
        return Result(lambda: Cursor(connection, statement, parameters, relations=RELATIONS))

    @cached_property
    def _database(self) -> apsw.Connection:
        connection = apsw.Connection(":memory:")
        rows = [(at + 1, *label) for at, entry in enumerate(self.entries) for label in entry.labels.items()]
        labels = Summary.whole(TABLES["labels"], rows)
        for table in (*self.tables(), labels):
            columns = ", ".join(f'"{column}"' for column in table.columns)
            connection.execute(f"CREATE TABLE {table.name}({columns})")
            marks = ", ".join("?" * len(table.columns))
            connection.executemany(f"INSERT INTO {table.name} VALUES({marks})", table.fetchall())
        guard(connection)
        return connection

    @cached_property
    def findings(self) -> list[Finding]:
        """The findings of the history, in ten sentences at most."""
        findings = list(self._findings())
        more = _said(f"{len(findings) - _LINES + 1} more: --format json has them all")
        return findings if len(findings) <= _LINES else [*findings[: _LINES - 1], more]

    def _findings(self) -> Iterator[Finding]:
        yield _said(self._about(), rule=JOB, verdict=Verdict.NOTE)
        if len(self.step.values) < FEWEST:
            yield _said(self._too_few(), verdict=Verdict.UNKNOWN)
        else:
            yield from map(self._change, self._to_say())
            if not any(change.kind != MAYBE and not change.reasons for change in self.found):
                yield _said(
                    "nothing changed that chance, or another configuration, does not explain", verdict=Verdict.NONE
                )
            yield _said(self._noise())
        yield from map(_said, (*self._passing(), *self._others()))
        yield from (_said(problem, verdict=Verdict.UNKNOWN) for problem in self.problems)

    def _about(self) -> str:
        first, last = self.entries[0], self.entries[-1]
        what = last.config.get(COMMAND) or last.name
        # Few runs have no known level: half of them may be after a change.
        newest = self.step.values[-1] if len(self.step.values) < FEWEST else float(self.step.band()[0][-1])
        level = readable(newest, unit_of(self.step.name))
        dates = " to ".join(dict.fromkeys(date_text(each.at)[:10] for each in (first, last)))
        runs, ranks = amount(len(self.entries), "run"), amount(last.ranks, "rank")
        return f"{runs} of {what} on {ranks}, {dates}: {_word(self.step.name)} {level} now"

    def _too_few(self) -> str:
        low, high = (readable(f(self.step.values), unit_of(self.step.name)) for f in (min, max))
        name = _word(self.step.name)
        return f"where it changed is said from {FEWEST} runs on; so far {name} lies between {low} and {high}"

    def _noise(self) -> str:
        fitted = self.step.fit
        needed = runs_needed(self.noise_percent / 100, _WORTH)
        alike = f" (runs that follow each other correlate by {fitted.rho:.1f})" if fitted.rho >= _ALIKE else ""
        shows = f"a change of {_WORTH * 100:.0f} % shows with {needed} runs a side"
        text = f"runs deviate by {percent_text(self.noise_percent)}{alike}: {shows}"
        outliers = [int(self.step.places[n]) + 1 for n in fitted.outliers.nonzero()[0]]
        return text + (f"; {amount(len(outliers), 'outlier')}: run {_few(map(str, outliers))}" if outliers else "")

    def _to_say(self) -> list[int]:
        """Return the numbers of changes to report: those of the step, and of other metrics at other times."""
        of_step = [change.at for change in self.found if change.metric == STEP]
        return [
            number
            for number, change in enumerate(self.found)
            if change.metric == STEP or all(abs(change.at - at) > _BESIDE for at in of_step)
        ]

    def _change(self, number: int) -> Finding:
        change = self.found[number]
        run = self.entries[change.at]
        labels = [f"{name} {value}" for name, value in run.labels.items()]
        since = ", ".join([f"run {change.at + 1}", *labels, date_text(run.at)[:10]])
        before, after = (readable(value, unit_of(change.metric)) for value in (change.before, change.after))
        how = {JUMP: "since", DRIFT: "drifts since", MAYBE: "may have changed at"}[change.kind]
        text = f"{_word(change.metric)} {before} -> {after} ({(change.ratio - 1) * 100:+.1f} %) {how} {since}"
        if change.kind == MAYBE and not change.reasons:
            text += f": chance explains it at {change.p * 100:.1g} of 100 runs; more runs would tell"
        elif change.reasons:
            text += f": another configuration, {'; '.join(change.reasons[:2])}"
        elif change.metric == STEP and number < _EXPLAINED and (why := self.explanation(change)):
            text += f"; {why}"
        is_bad = change.kind != MAYBE and not change.reasons and change.ratio > 1
        verdict = Verdict.PROBLEM if is_bad else Verdict.UNKNOWN if change.kind == MAYBE else Verdict.NOTE
        evidence = {"p": change.p, "run": change.at + 1}
        return Finding(text, "history.change", verdict, Confidence.LIKELY, evidence=evidence)

    def _passing(self) -> Iterator[str]:
        of_reasons = by_key(("; ".join(reasons[:2]), str(place + 1)) for place, reasons in self.passing.items())
        for why, numbers in of_reasons.items():
            yield f"run {_few(numbers)}: another configuration that came and went, {why}; in no series"

    def _others(self) -> Iterator[str]:
        if others := sum(map(len, self.jobs)) - len(self.entries):
            numbers = [str(number) for number in range(1, len(self.jobs) + 1) if number != self.asked.job]
            yield f"{amount(others, 'run')} of other jobs, which do not compare: --job {_few(numbers)}"


def open_history(folder: str | Path, options: HistoryOptions | None = None) -> JobHistory:
    """Open the history of a job: `rocpd.open_history("store").changes().df()` are its changes.

    Args:
        folder: the store, as `rocpd history add` fills it.
        options: job, metrics and groups.

    Raises:
        InputError: there is no store at the path, or it has no runs.
        UsageError: a job or metric is unknown.
    """
    return JobHistory(folder, options)


def history_of(folder: str | Path, run: RunProfile, options: HistoryOptions | None = None) -> JobHistory:
    """Open the history of the job of a run: the job in a store that is most similar.

    Args:
        folder: the store.
        run: the run.
        options: if they name another job than the first one, it is taken.

    Raises:
        InputError: there is no store at the path, or it has no runs.
    """
    history = JobHistory(folder, options)
    number = closest(history.jobs, unwritten(run))
    is_chosen = history.asked.job in (number, *range(2, len(history.jobs) + 1))
    return history if is_chosen else JobHistory(folder, replace(history.asked, job=number))


def _one_number(run: RunProfile) -> RunProfile:
    """Return a run with only the medians of its units: their deviation comes from the history."""
    return replace(run, samples={name: (median(values),) for name, values in run.samples.items() if values})


def group_of(entry: RunEntry, by: str) -> str:
    """Return the group of a run: its hosts, its GPUs, or the value of a label."""
    if by == "host":
        return ", ".join(entry.hosts)
    return entry.config.get("GPU", "") if by == "gpu" else entry.labels.get(by, "")


def _is_asked(word: str, name: str) -> bool:
    kind, colon, pattern = word.partition(":")
    if not colon:
        return name == word
    if not name.startswith(f"{kind}:"):
        return False
    try:
        return any(re.search(pattern, text) for text in (name.removeprefix(f"{kind}:"), _word(name)))
    except re.error as error:
        raise UsageError(f"--metric {word}: not a regular expression: {error}") from error


def _word(metric: str) -> str:
    return kernel_name(metric.removeprefix(KERNEL)).short if metric.startswith(KERNEL) else metric.removeprefix("part:")


def _shown(metric: str) -> str:
    return f"{KERNEL}{_word(metric)}" if metric.startswith(KERNEL) else metric


def _said(text: str, rule: str = "history", verdict: Verdict = Verdict.NOTE) -> Finding:
    return Finding(text, rule, verdict, Confidence.CERTAIN)


def _few(names: Iterator[str] | Sequence[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:5]) + (" …" if len(listed) > 5 else "")
