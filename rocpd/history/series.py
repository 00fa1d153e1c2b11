"""The course of a metric from run to run: its values, its fit, and the steps in it. Reads no profiles."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from rocpd.base.frozen import frozen
from rocpd.base.types import Floats, Ints
from rocpd.compare.options import STEP
from rocpd.compare.run_profile import NUMBER, masked
from rocpd.facts.short_names import kernel_name
from rocpd.history.entry import COMMAND, GRID, RunEntry, unit_of
from rocpd.history.fit import NARROWEST, RARE, Fit, fit
from rocpd.table.cell import shorten

_MOST = 24  # metrics that are searched beside the step, those that take most
_LEAST_SHARE = 0.01  # of the step: what takes less is not searched
_USUAL = 0.8  # of the runs that have a metric
_LONGEST = 80  # characters of a command, in a reason
_NEAR = 2  # runs of a place that the configuration is not asked of: a step may lie one run beside
_LONG_AGO = 8  # runs before a change, all of one machine, for another one to be its reason
_NOT_SET = "not set"
_BAND = 1.96  # deviations


@frozen
class MetricSeries:
    """A metric over the runs that have it.

    Args:
        name: of the metric.
        places: which runs of the history have it.
        values: of each of them [ns or bytes].
        fit: what its logarithms consist of.
        own: of each run the level with the offset of its group, as a logarithm.
    """

    name: str
    places: Ints
    values: Floats
    fit: Fit
    own: Floats

    def band(self) -> tuple[Floats, Floats, Floats]:
        """Return of each run the level, and between what 95 of 100 runs lie."""
        half = _BAND * self.fit.deviation
        return np.exp(self.own), np.exp(self.own - half), np.exp(self.own + half)


@frozen
class MetricChange:
    """Where a metric changed.

    Args:
        metric: its name.
        at: the first run after it, as a place in the history.
        before, after: its level on both sides [ns or bytes].
        p: how often chance explains it at one place.
        kind: `jump`, `drift` or `unclear`.
        reasons: what of the configuration changed there: it is no regression.
    """

    metric: str
    at: int
    before: float
    after: float
    p: float
    kind: str
    reasons: tuple[str, ...] = ()

    @property
    def ratio(self) -> float:
        """How many times as large it is."""
        return self.after / self.before


JUMP, DRIFT, MAYBE = "jump", "drift", "unclear"


def metrics_of(entries: Sequence[RunEntry], chosen: Sequence[str] = ()) -> list[str]:
    """Return the metrics that are searched: the step, and of the others those that take most.

    Args:
        entries: the runs.
        chosen: only these.
    """
    sums: dict[str, list[float]] = {}
    for entry in entries:
        for name, value in entry.metrics.items():
            if value > 0:
                sums.setdefault(name, []).append(value)
    if chosen:
        return [name for name in chosen if name in sums]
    usual = {name: math.fsum(values) for name, values in sums.items() if len(values) >= _USUAL * len(entries)}
    least = _LEAST_SHARE * usual.get(STEP, 0.0)
    times = [name for name in usual if name != STEP and unit_of(name) == "ns" and usual[name] >= least]
    times = sorted(times, key=lambda name: -usual[name])[:_MOST]
    return [*([STEP] if STEP in usual else []), *times, *(name for name in usual if unit_of(name) != "ns")]


def groups_of(entries: Sequence[RunEntry]) -> list[str]:
    """Return the machines of each run, in words."""
    return [", ".join(entry.hosts) for entry in entries]


def series_of(
    entries: Sequence[RunEntry], name: str, groups: Sequence[str], without: Container[int] = ()
) -> MetricSeries:
    """Return a metric over the runs that have it.

    Args:
        entries: the runs.
        name: of the metric.
        groups: the group of each run.
        without: places of runs that do not count.
    """
    has = [n for n, entry in enumerate(entries) if entry.metrics.get(name, 0.0) > 0 and n not in without]
    places = np.array(has, np.int64)
    values = np.array([entries[place].metrics[name] for place in has], np.float64)
    number = {group: n for n, group in enumerate(dict.fromkeys(groups[place] for place in has))}
    of_runs = np.array([number[groups[place]] for place in has], np.int64)
    fitted = fit(np.log(values), of_runs)
    own = fitted.level + np.array(fitted.offsets)[of_runs] if len(has) else fitted.level
    return MetricSeries(name, places, values, fitted, own)


def passing(entries: Sequence[RunEntry]) -> dict[int, tuple[str, ...]]:
    """Return the places of runs of another configuration that came and went, and what of it was another one.

    Fewer than `NARROWEST` at a time, whose step lies apart from those around them: of more the fit finds both ends, and
    these have their reasons. The configuration before them and after them is the same.
    """
    found: dict[int, tuple[str, ...]] = {}
    usual = 0
    for at in range(1, len(entries)):
        if at in found:
            continue
        names = _other_config(entries[usual], entries[at])
        ends = range(at + 1, min(at + NARROWEST, len(entries))) if names else ()
        back = {end: names - _other_config(entries[usual], entries[end]) for end in ends}
        end = next((end for end, same in back.items() if same), None)
        if end is not None and _is_apart(entries, [n for n in range(at) if n not in found], at, end):
            for place in range(at, end):
                found[place] = tuple(_differences([entries[usual]], [entries[place]], back[end]))
        else:
            usual = at
    return found


def _other_config(one: RunEntry, other: RunEntry) -> set[str]:
    """Return of what the configuration of two runs is not the same."""
    if one.config == other.config:
        return set()
    return {name for name in {*one.config, *other.config} if any(_differences([one], [other], [name]))}


def _is_apart(entries: Sequence[RunEntry], before: Sequence[int], at: int, end: int) -> bool:
    """Return whether the steps of the runs from one place to another lie far out of the range of those around them."""
    around = [*before[1 - NARROWEST :], *range(end, min(end + NARROWEST - 1, len(entries)))]
    logs = [math.log(entries[place].metrics[STEP]) for place in around]
    width = max(logs) - min(logs)
    own = [math.log(entry.metrics[STEP]) for entry in entries[at:end]]
    return all(not min(logs) - width <= value <= max(logs) + width for value in own)


def changes_of(entries: Sequence[RunEntry], every: Mapping[str, MetricSeries], least: float) -> list[MetricChange]:
    """Return where metrics changed, the step first, and those first that change most [ns].

    Of the steps of all metrics but that of the unit those stay that are rare enough for how many metrics were searched:
    Benjamini and Hochberg, Journal of the Royal Statistical Society B 57, 1995.

    Args:
        entries: the runs.
        every: their metrics.
        least: changes below this share are left out.
    """
    found = [change for each in every.values() for change in _of_series(each)]
    others = sorted((c for c in found if c.metric != STEP and c.kind != MAYBE), key=lambda change: change.p)
    searched = max(1, len(every) - 1)
    rare = [n for n, change in enumerate(others, 1) if change.p <= RARE * min(1.0, n / searched)]
    kept = [c for c in found if c.metric == STEP] + others[: max(rare, default=0)]
    large = [change for change in kept if abs(change.ratio - 1) >= least]
    reasoned = [replace(change, reasons=tuple(_reasons(entries, change))) for change in large]
    return sorted(reasoned, key=_by_size)


def _by_size(change: MetricChange) -> tuple[bool, bool, bool, float]:
    is_time = unit_of(change.metric) == "ns"
    return change.kind == MAYBE, change.metric != STEP, not is_time, -abs(change.after - change.before)


def _of_series(series: MetricSeries) -> Iterable[MetricChange]:
    level, places, fitted = np.exp(series.fit.level), series.places, series.fit
    for step in fitted.steps:
        before = float(level[step.at - 1])
        yield MetricChange(series.name, int(places[step.at]), before, before * math.exp(step.size), step.p, JUMP)
    if fitted.drift:
        start = fitted.drift.start
        run = len(level) - 1 - start
        before = float(level[start])
        after = before * math.exp(fitted.drift.slope * run)
        yield MetricChange(series.name, int(places[start]), before, after, fitted.drift.p, DRIFT)
    if fitted.doubtful and series.name == STEP:
        at = fitted.doubtful.at
        before = math.exp(float(np.median(np.log(series.values[fitted.last_before(at) : at]))))
        after = math.exp(float(np.median(np.log(series.values[at : fitted.first_after(at)]))))
        yield MetricChange(series.name, int(places[at]), before, after, fitted.doubtful.p, MAYBE)


def _reasons(entries: Sequence[RunEntry], change: MetricChange) -> Iterator[str]:
    """Yield what of the configuration is another one before a change than after it."""
    if change.kind == DRIFT:
        return
    before = entries[max(0, change.at - 1 - _NEAR) : max(1, change.at - 1)]
    after = entries[min(len(entries) - 1, change.at + 1) : change.at + 1 + _NEAR]
    yield from _differences(before, after, sorted({name for entry in (*before, *after) for name in entry.config}))
    hosts = groups_of(entries[max(0, change.at - _LONG_AGO) : change.at]), groups_of(after)
    # Names of containers are new with each run: they are no reason.
    if len({*hosts[0]}) == len({*hosts[1]}) == 1 and hosts[0][0] != hosts[1][0]:
        yield f"machines: {hosts[0][0]} -> {hosts[1][0]}"


def _differences(before: Sequence[RunEntry], after: Sequence[RunEntry], names: Iterable[str]) -> Iterator[str]:
    """Yield in words what of the configuration no run before has in common with one after."""
    for name in names:
        sides = [{entry.config.get(name, _NOT_SET) for entry in side} for side in (before, after)]
        if name == COMMAND:
            yield from _other_words(*map(masked, sides))
            continue
        if name.startswith(GRID):  # where a kernel is not there it has no grid: another kernel is no configuration
            sides = [side - {_NOT_SET} for side in sides]
        if all(sides) and sides[0].isdisjoint(sides[1]):
            short = f"{GRID}{kernel_name(name.removeprefix(GRID)).short}" if name.startswith(GRID) else name
            yield f"{short}: {' or '.join(sorted(sides[0]))} -> {' or '.join(sorted(sides[1]))}"


def _other_words(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """Yield in which words the command is another one; nothing where it is new with each run.

    Numbers in which runs of one side differ do not count: of dates, ports and folders.
    """
    if len(before) != 1 or len(after) != 1:
        return
    sides = (before[0], after[0])
    first, second = map(NUMBER.findall, sides)
    is_same = NUMBER.sub("#", sides[0]) == NUMBER.sub("#", sides[1])
    if is_same and all(one == other or "#" in (one, other) for one, other in zip(first, second, strict=True)):
        return
    words = [side.split() for side in sides]
    if len(words[0]) == len(words[1]):
        at = [n for n, (one, other) in enumerate(zip(*words, strict=True)) if one != other]
        starts = [n - (n > 0 and words[0][n - 1].startswith("-")) for n in at]
        words = [[word for n, start in zip(at, starts, strict=True) for word in side[start : n + 1]] for side in words]
    yield f"{COMMAND}: {' -> '.join(shorten(' '.join(side), _LONGEST) for side in words)}"
