"""The runs of one job in a store: changes and their times, noise, and the base for new runs.

Runs of other jobs, which `rocpd diff` would not compare, are kept apart. The first lines of entries hold nearly all
data; the profiles of a few runs are read to explain a change, or to compare a run.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from statistics import median

import numpy as np

from rocpd.base import Parameters, RocpdError, UsageError, amount, by_key, frozen, percent_text
from rocpd.base.sqlite import apsw
from rocpd.base.student import student_quantile
from rocpd.chart.model import Chart
from rocpd.chart.plot import Plot
from rocpd.compare.attribution import attribute, pair_kernels, side_of
from rocpd.compare.comparison import OTHER_GPU, OTHER_RECORDING, Comparison, comparability, compare
from rocpd.compare.decision import runs_needed
from rocpd.compare.options import STEP, DiffOptions
from rocpd.compare.run_profile import RunProfile
from rocpd.facts.short_names import kernel_name
from rocpd.federate.open.guard import guard
from rocpd.federate.result import Cursor, Result
from rocpd.history import tables
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
from rocpd.history.store import COMMAND, KERNEL, RunEntry, date_text, identity_of, read, unit_of, unwritten
from rocpd.history.tables import of_metric
from rocpd.summary.findings import JOB, Confidence, Finding, Verdict
from rocpd.summary.result import Summary
from rocpd.table.human import readable

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
        return tables.runs(self.entries, self.step, self.passing)

    def changes(self) -> Summary:
        """Return the changes, the largest first."""
        return tables.changes(self.entries, self.found, self.findings)

    def series(self) -> Summary:
        """Return the value of each metric in each run, with its level and band."""
        return tables.series(self.entries, list(self.fitted.values()))

    def noise(self) -> Summary:
        """Return the variation of each metric from run to run, by group of runs."""
        return tables.noise(list(self.fitted.values()), self.groups)

    def tables(self, names: Iterable[str] = tables.OF_JOB) -> Iterator[Summary]:
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
        return Result(lambda: Cursor(connection, statement, parameters, relations=tables.RELATIONS))

    @cached_property
    def _database(self) -> apsw.Connection:
        connection = apsw.Connection(":memory:")
        labels = tables.labels(self.entries)
        for table in (self.changes(), self.runs(), self.series(), self.noise(), labels):
            name = table.name.replace("-", "_").removeprefix("history_")
            columns = ", ".join(f'"{column}"' for column in table.columns)
            connection.execute(f"CREATE TABLE {name}({columns})")
            marks = ", ".join("?" * len(table.columns))
            connection.executemany(f"INSERT INTO {name} VALUES({marks})", table.fetchall())
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
    if metric.startswith(KERNEL):
        return kernel_name(metric.removeprefix(KERNEL)).short
    return metric.removeprefix("part:")


def _shown(metric: str) -> str:
    return f"{KERNEL}{_word(metric)}" if metric.startswith(KERNEL) else metric


def _said(text: str, rule: str = "history", verdict: Verdict = Verdict.NOTE) -> Finding:
    return Finding(text, rule, verdict, Confidence.CERTAIN)


def _few(names: Iterator[str] | Sequence[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:5]) + (" …" if len(listed) > 5 else "")
