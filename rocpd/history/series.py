"""The course of a metric from run to run: its values, its fit, and the steps in it. Reads no profiles.

A fit finds the changes of the level of a series, with the noise that the series itself shows; it knows only numbers. A
series is a level with steps and maybe a drift, plus an offset of each group of runs (machines), plus Gauss-Markov
noise: neighbours are correlated by rho. Steps are added one by one, each where the likelihood gains most, and judged by
Student's t, averaged over the possible values of rho: a slow wander is no step. The search is a forward selection over
all places at once (the exact least squares of every place cost two cumulative sums), with pairs of steps for temporary
changes: Fryzlewicz, Annals of Statistics 42, 2014, shows why single steps miss those.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import NamedTuple

import numpy as np

from rocpd.base import Flags, Floats, Ints, by_key, frozen
from rocpd.base.student import survival
from rocpd.compare.options import STEP
from rocpd.compare.run_profile import NUMBER, masked
from rocpd.facts.short_names import kernel_name
from rocpd.history.store import COMMAND, GRID, RunEntry, unit_of
from rocpd.table.cell import shorten

FEWEST = 8
"""Fewest runs of a series with changes."""

LEAST_AFTER = 3
"""Fewest runs on each side of a step: one or two runs apart from others are outliers."""

NARROWEST = 5
"""Fewest runs of a temporary change with two steps: three outliers in a row look like fewer runs."""

RARE = 1.8e-3
"""Largest probability of chance at one place for a step: with the costs below, chance makes a step in fewer than one
of 500 runs.
"""

_DOUBTFUL = 0.02  # at one place: a possible step
_NEW = 10  # runs at the end, where further runs will decide
_RHOS: Floats = np.linspace(0.0, 0.96, 13)
_COSTS: Floats = np.minimum((1 - _RHOS**2) ** -4.0, 200.0)
"""Factors on the probability from Student's t: heavy tails resemble a step the more, the more neighbours correlate. The
factors are calibrated.
"""

_JACOBIANS: Floats = 2.5 * np.log(1 - _RHOS**2)  # 0.5 of it is from the first run; the rest: few series wander far
_OUTSIDE, _FEW = 4.0, 0.1  # deviations of an outlier from the median of its neighbours, and largest share of outliers
_COST_OF_PAIRS = 5.0  # of likelihood: there are more pairs than steps
_FREEDOM = 200  # degrees of freedom; larger numbers make no difference
_MOST_STEPS, _RUNS_A_STEP = 24, 5
_WIDEST = 64  # runs between a pair of steps: longer changes are found as two steps
_TINY = 1e-9  # of logarithms: stands for no deviation


class LevelStep(NamedTuple):
    """A step: the first run after it, the change of the logarithm, and the probability that chance explains a step
    of this size at one place of a series.
    """

    at: int
    size: float
    p: float


class Drift(NamedTuple):
    """A slope: its first run, the change of the logarithm per run, and the probability that chance explains it."""

    start: int
    slope: float
    p: float


@frozen
class Fit:
    """The parts of a series of runs; logarithms.

    Args:
        level: level of each run, without the offset of its group.
        steps: the steps, in order.
        drift: the slope; None: there is none.
        doubtful: a step that chance explains too often; None: there is none.
        offsets: offset of each group of runs from the most frequent one; 0 if it cannot be determined.
        outliers: whether each run is apart from its neighbours.
        rho: correlation of the noise of neighbours.
        deviation: standard deviation of the noise.
    """

    level: Floats
    steps: tuple[LevelStep, ...] = ()
    drift: Drift | None = None
    doubtful: LevelStep | None = None
    offsets: tuple[float, ...] = ()
    outliers: Flags = field(default_factory=lambda: np.zeros(0, bool))
    rho: float = 0.0
    deviation: float = 0.0

    @property
    def segment(self) -> int:
        """The first run of the current level."""
        return self.last_before(len(self.level))

    def last_before(self, place: int) -> int:
        """Return the first run of the level before a place."""
        return max((step.at for step in self.steps if step.at < place), default=0)

    def first_after(self, place: int) -> int:
        """Return the end of the level that begins at or before a place."""
        return min((step.at for step in self.steps if step.at > place), default=len(self.level))


def fit(values: Floats, groups: Ints) -> Fit:
    """Return the fit of a series.

    Args:
        values: logarithms, in order of time; fewer than `FEWEST` have only their median as level.
        groups: number of the group of each run, from 0.
    """
    count = len(values)
    if count < FEWEST:
        level = np.full(count, float(np.median(values)) if count else 0.0)
        deviation = float(np.std(values, ddof=1)) if count > 1 else 0.0
        return Fit(level, offsets=(0.0,) * _number(groups), outliers=np.zeros(count, bool), deviation=deviation)
    offsets, of_columns = _dummies(groups)
    cleaned, outliers = _cleaned(values, offsets)
    fixed = np.column_stack([np.ones(count), offsets])
    model, doubtful = _selected(cleaned, fixed)
    return replace(_described(cleaned, groups, model, of_columns), outliers=outliers, doubtful=doubtful)


class _Model(NamedTuple):
    """Columns of a design: first the fixed ones, then a slope, then steps."""

    fixed: Floats
    slope: int | None
    steps: tuple[int, ...]

    def design(self) -> Floats:
        place = np.arange(len(self.fixed), dtype=np.float64)
        slopes = [] if self.slope is None else [np.maximum(place - self.slope, 0.0)]
        return np.column_stack([self.fixed, *slopes, *(np.where(place >= at, 1.0, 0.0) for at in self.steps)])

    def with_change(self, change: _Candidate) -> _Model:
        """Return the model with a change that a search proposes."""
        if change.is_slope:
            return self._replace(slope=change.places[0])
        return self._replace(steps=tuple(sorted({*self.steps, *change.places})))


class _Candidate(NamedTuple):
    """The changes that would explain most: steps at these places, or a slope from one place on; the likelihood with it,
    the squares that it explains for each of `_RHOS`, and the probability that chance explains as much.
    """

    places: tuple[int, ...]
    is_slope: bool
    likelihood: float
    gains: Floats
    p: float = 1.0


def _selected(values: Floats, fixed: Floats) -> tuple[_Model, LevelStep | None]:
    """Return the model of a series, and a step that is left out because chance explains it too often."""
    model = _Model(fixed, None, ())
    most = min(_MOST_STEPS, len(values) // _RUNS_A_STEP)
    change = _best(values, model)
    while change.p < RARE and len(model.steps) < most:
        model = model.with_change(change)
        change = _best(values, model)
    model = _without_chance(values, model)
    model = _as_slope(values, model)
    is_new = change.places[0] >= len(values) - _NEW
    is_doubtful = RARE <= change.p < _DOUBTFUL and is_new and not change.is_slope
    return model, LevelStep(change.places[0], 0.0, change.p) if is_doubtful else None


def _best(values: Floats, model: _Model) -> _Candidate:
    """Return the change that would explain most of the squares that a model leaves."""
    design = model.design()
    freedom = len(values) - design.shape[1] - 1
    scan = _scan(values, design)
    place = np.arange(len(values))
    allowed: Flags = np.all([abs(place - at) >= LEAST_AFTER for at in model.steps] or [place >= 0], axis=0)
    changes = [
        _judged(scan.gains(width) * (allowed & _ahead(allowed, width)), scan.left, freedom, width)
        for width in (0, *_widths(len(values)))
    ]
    if model.slope is None:
        # Few places, because the start is hard to find, in the first half: a short slope at the end is a step.
        starts = sorted({len(values) * part // 8 for part in range(5)})
        slope = _judged(scan.gains_of_slopes(starts), scan.left, freedom, 0)
        changes.append(slope._replace(places=(starts[slope.places[0]],), is_slope=True))
    best = max(changes, key=lambda each: each.likelihood)
    return best._replace(p=_chance(best, scan.left, freedom))


def _ahead(flags: Flags, width: int) -> Flags:
    """Return for each run the flag of the run `width` later; True beyond the end."""
    return np.append(flags[width:], np.ones(min(width, len(flags)), bool))


def _judged(gains: Floats, left: Floats, freedom: int, width: int) -> _Candidate:
    """Return the place that explains most; its probability of chance is not filled in yet.

    Args:
        gains: squares that a step at each place explains: `[rho, place]`.
        left: squares that are left without a step: `[rho]`.
        freedom: degrees of freedom of the squares left with a step.
        width: width of a pair of steps; 0: one step.
    """
    highest = gains.argmax(1)  # for one rho the likelihood grows with the explained squares
    after = np.maximum(left - gains[np.arange(len(left)), highest], _TINY**2)
    likelihoods = _JACOBIANS - freedom / 2 * np.log(after)
    rho = int(likelihoods.argmax())
    place = int(highest[rho])
    best = float(likelihoods[rho]) - (_COST_OF_PAIRS if width else 0.0)
    is_some = gains[:, place].any()
    places = (place, place + width) if width else (place,)
    return _Candidate(places, False, best if is_some else -math.inf, gains[:, place])


def _chance(change: _Candidate, left: Floats, freedom: int) -> float:
    """Return the probability that chance explains as much at one place: Student's t, averaged over values of rho."""
    if change.likelihood == -math.inf:
        return 1.0
    after = np.maximum(left - change.gains, _TINY**2)
    p = _averaged(_JACOBIANS - freedom / 2 * np.log(after), np.sqrt(change.gains * freedom / after), freedom)
    return min(1.0, p * (math.exp(_COST_OF_PAIRS) if len(change.places) > 1 else 1.0))


def _averaged(likelihoods: Floats, scores: Floats, freedom: int) -> float:
    """Return the probability of scores by chance, one for each of `_RHOS`, averaged by their likelihoods."""
    weights = np.exp(likelihoods - likelihoods.max())
    weights *= _COSTS / weights.sum()
    parts = zip(weights.tolist(), scores.tolist(), strict=True)
    p: float = sum(weight * 2 * survival(score, min(freedom, _FREEDOM)) for weight, score in parts if weight > 1e-4)
    return p


class _Scan(NamedTuple):
    """The gain of steps at all places of a series, for each of `_RHOS`.

    Args:
        left: squares that are left without a step: `[rho]`.
        products: products of a step at each place with the residuals, and with the base of the design:
            `[rho, place, 1 + base]`.
        columns: the residuals, and the base: `[rho, run, 1 + base]`.
    """

    left: Floats
    products: Floats
    columns: Floats

    def gains(self, width: int) -> Floats:
        """Return the squares that a step at each place explains, or a pair of steps `width` runs apart."""
        count, apart = self.products.shape[1], 1 - _RHOS[:, None]
        low, high = LEAST_AFTER, count - width - LEAST_AFTER + 1
        products, squares = self.products[:, low:high], 1 + apart**2 * (count - 1.0 - np.arange(low, high))
        if width:
            products = products - self.products[:, low + width : high + width]
            squares = 1 + apart**2 * (width - 1) + _RHOS[:, None] ** 2
        gains = np.zeros(self.products.shape[:2])
        gains[:, low:high] = _explained(products, squares)
        return gains

    def gains_of_slopes(self, starts: Sequence[int]) -> Floats:
        """Return the squares that a slope from each of some places explains."""
        place = np.arange(self.columns.shape[1])[:, None]
        slopes = _whitened(np.maximum(place - np.array(starts, np.float64), 0.0))
        return _explained(slopes.transpose(0, 2, 1) @ self.columns, (slopes**2).sum(1))


def _explained(products: Floats, squares: Floats) -> Floats:
    """Return the squares that columns explain beside a design.

    Args:
        products: products of the columns with the residuals, and with the base.
        squares: squares of the columns.
    """
    base = products[:, :, 1:]
    unexplained = squares - np.einsum("rpb,rpb->rp", base, base)
    return products[:, :, 0] ** 2 / np.where(unexplained > 1e-6, unexplained, np.inf)


def _scan(values: Floats, design: Floats) -> _Scan:
    base, residual = _projected(values, design)
    columns = np.concatenate([residual[:, :, None], base], axis=2)
    after = np.cumsum(columns[:, ::-1], axis=1)[:, ::-1] - columns
    left = np.maximum((residual**2).sum(1), _TINY**2)
    return _Scan(left, columns + (1 - _RHOS[:, None, None]) * after, columns)


def _projected(values: Floats, design: Floats) -> tuple[Floats, Floats]:
    """Return an orthonormal base of the columns with neighbours taken off, and the residuals of the values."""
    base, _ = np.linalg.qr(_whitened(design))
    target = _whitened(values[:, None])
    return base, (target - base @ (base.transpose(0, 2, 1) @ target))[:, :, 0]


def _whitened(columns: Floats) -> Floats:
    """Return columns with neighbours taken off, for each of `_RHOS`: `[rho, run, column]`."""
    whitened = np.repeat(columns[None], len(_RHOS), axis=0)
    whitened[:, 1:] -= _RHOS[:, None, None] * columns[:-1]
    whitened[:, 0] *= np.sqrt(1 - _RHOS**2)[:, None]
    return whitened


def _widths(count: int) -> list[int]:
    """Return the widths of temporary changes to try: all short ones, then each half as long again."""
    widths, width = [], NARROWEST
    while width <= min(count // 2 - LEAST_AFTER, _WIDEST):
        widths.append(width)
        width += 1 if width < 8 else width // 2
    return widths


def _without_chance(values: Floats, model: _Model) -> _Model:
    """Return a model without the steps that chance explains beside the others."""
    while model.steps:
        steps, _ = _tested(values, model)
        worst = max(steps, key=lambda step: step.p)
        if worst.p < RARE:
            break
        model = model._replace(steps=tuple(at for at in model.steps if at != worst.at))
    return model


def _as_slope(values: Floats, model: _Model) -> _Model:
    """Return a model with a slope in place of several steps in one direction, if it explains as much."""
    if len(model.steps) < 2 or model.slope is not None:
        return model
    steps, _ = _tested(values, model)
    if len({step.size > 0 for step in steps}) > 1:
        return model
    sloped = model._replace(steps=(), slope=0)
    return sloped if _likelihood(values, sloped) > _likelihood(values, model) - len(steps) + 1 else model


def _likelihood(values: Floats, model: _Model) -> float:
    design = model.design()
    left = np.maximum((_projected(values, design)[1] ** 2).sum(1), _TINY**2)
    likelihoods: Floats = _JACOBIANS - (len(values) - design.shape[1]) / 2 * np.log(left)
    return float(likelihoods.max())


class _Estimate(NamedTuple):
    """Coefficients of the columns of a design, for the most likely rho, and the deviation of the noise."""

    coefficients: Floats
    rho: float
    deviation: float


def _tested(values: Floats, model: _Model) -> tuple[list[LevelStep], _Estimate]:
    """Return the steps of a model, each judged beside all others, and its coefficients."""
    design = model.design()
    freedom, first = len(values) - design.shape[1], design.shape[1] - len(model.steps)
    whitened, target = _whitened(design), _whitened(values[:, None])
    turned = whitened.transpose(0, 2, 1)
    inverse = np.linalg.pinv(turned @ whitened)
    coefficients = (inverse @ (turned @ target))[:, :, 0]
    left = np.maximum(((target[:, :, 0] - np.einsum("rnc,rc->rn", whitened, coefficients)) ** 2).sum(1), _TINY**2)
    errors = np.sqrt(np.maximum(np.diagonal(inverse, axis1=1, axis2=2), 1e-12) * (left / freedom)[:, None])
    likelihoods = _JACOBIANS - freedom / 2 * np.log(left)
    steps = []
    best = int(likelihoods.argmax())
    for column, at in enumerate(model.steps, first):
        scores = np.abs(coefficients[:, column] / errors[:, column])
        p = _averaged(likelihoods, scores, freedom)
        steps.append(LevelStep(at, float(coefficients[best, column]), p))
    rho = float(_RHOS[best])
    deviation = math.sqrt(float(left[best]) / freedom / (1 - rho * rho))
    return steps, _Estimate(coefficients[best], rho, deviation)


def _described(values: Floats, groups: Ints, model: _Model, of_columns: Sequence[int]) -> Fit:
    """Return the fit that a model gives for a series."""
    steps, best = _tested(values, model)
    design = model.design()
    known = dict(zip(of_columns, best.coefficients[1 : 1 + len(of_columns)].tolist(), strict=True))
    is_level = np.ones(design.shape[1], bool)
    is_level[1 : 1 + len(of_columns)] = False
    drift = None
    if model.slope is not None:
        slope = float(best.coefficients[1 + len(of_columns)])
        bare = model._replace(slope=None)
        drift = Drift(model.slope, slope, _best(values, bare).p)
    level = design[:, is_level] @ best.coefficients[is_level]
    offsets = tuple(known.get(group, 0.0) for group in range(_number(groups)))
    return Fit(level, tuple(steps), drift, None, offsets, rho=best.rho, deviation=best.deviation)


def _number(groups: Ints) -> int:
    return int(groups.max()) + 1 if len(groups) else 0


def _dummies(groups: Ints) -> tuple[Floats, list[int]]:
    """Return a column for each group whose offset can be distinguished from a step, and the numbers of these groups.

    Their runs alternate with those of others: a group that comes only once is a step in time, and is found as a step.
    """
    counts = np.bincount(groups)
    usual = int(counts.argmax())
    most = len(groups) // FEWEST
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    blocks = np.bincount(groups[starts], minlength=len(counts))
    told = [int(group) for group in np.argsort(-counts, kind="stable") if blocks[group] > 1 and counts[group] > 2]
    chosen = [group for group in told if group != usual][:most] if blocks[usual] > 1 or len(told) > 1 else []
    return np.column_stack([np.zeros((len(groups), 0)), *(groups == group for group in chosen)]), chosen


def _middles(values: Floats) -> Floats:
    """Return the median of each value and its neighbours: four on each side, fewer near the ends, so that each of the
    last `LEAST_AFTER` runs after a step is among its like.
    """
    count = len(values)
    place = np.arange(count)
    reach = np.clip(np.minimum(place, count - 1 - place), LEAST_AFTER - 1, NARROWEST - 1)
    beyond = np.full(NARROWEST - 1, np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(np.concatenate([beyond, values, beyond]), 2 * NARROWEST - 1)
    is_near = abs(np.arange(windows.shape[1]) - NARROWEST + 1) <= reach[:, None]
    return np.nanmedian(np.where(is_near, windows, np.nan), axis=1)


def _cleaned(values: Floats, offsets: Floats) -> tuple[Floats, Flags]:
    """Return values with outliers replaced by the median of their neighbours, and whether each value is an outlier."""
    lifted = np.zeros(len(values))
    if offsets.shape[1]:  # groups alternate: neighbours differ by the offsets of their groups
        beside = [np.median(values[column > 0]) for column in offsets.T]
        others = np.median(values[offsets.sum(1) == 0])
        lifted = offsets @ (np.array(beside) - others)
    lowered = values - lifted
    middle = _middles(lowered)
    apart = np.abs(lowered - middle)
    # A median of few values follows an outlier by a quarter of the deviation; in short series by nearly all of it.
    scale = 1.4826 * max(float(np.median(apart)) / 0.75, float(np.median(np.abs(np.diff(lowered)))) / math.sqrt(2))
    most = np.sort(apart)[-max(1, round(_FEW * len(lowered))) - 1]
    is_outside = apart > max(_OUTSIDE * scale, most, _TINY)
    return np.where(is_outside, middle + lifted, values), is_outside


_MOST = 24  # metrics that are searched beside the step, by time
_LEAST_SHARE = 0.01  # of the step: smaller parts are not searched
_USUAL = 0.8  # share of the runs that must have a metric
_LONGEST = 80  # characters of a command in a reason
_NEAR = 2  # runs next to a place whose configuration is not compared: the step may be one run away
_LONG_AGO = 8  # runs before a change that must share a machine for another machine to be its reason
_NOT_SET = "not set"
_BAND = 1.96  # deviations


@frozen
class MetricSeries:
    """A metric over the runs that have it.

    Args:
        name: name of the metric.
        places: places in the history of the runs that have it.
        values: its value in each of these runs [ns or bytes].
        fit: the fit of its logarithms.
        levels: level of each of these runs with the offset of its group, as a logarithm.
    """

    name: str
    places: Ints
    values: Floats
    fit: Fit
    levels: Floats

    def band(self) -> tuple[Floats, Floats, Floats]:
        """Return the level of each run, and the bounds within which 95 of 100 runs lie."""
        half = _BAND * self.fit.deviation
        return np.exp(self.levels), np.exp(self.levels - half), np.exp(self.levels + half)


@frozen
class MetricChange:
    """A change of a metric.

    Args:
        metric: its name.
        at: the first run after it, as a place in the history.
        before, after: its level on both sides [ns or bytes].
        p: probability that chance explains it at one place.
        kind: `jump`, `drift` or `unclear`.
        reasons: differences of the configuration at this place: with them it is no regression.
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
        """The level after the change by the level before it."""
        return self.after / self.before


JUMP, DRIFT, MAYBE = "jump", "drift", "unclear"


def metrics_of(entries: Sequence[RunEntry], chosen: Sequence[str] = ()) -> list[str]:
    """Return the metrics to search: the step, and of the others those with most time.

    Args:
        entries: the runs.
        chosen: only these metrics.
    """
    sums = by_key((name, value) for entry in entries for name, value in entry.metrics.items() if value > 0)
    if chosen:
        return [name for name in chosen if name in sums]
    usual = {name: math.fsum(values) for name, values in sums.items() if len(values) >= _USUAL * len(entries)}
    least = _LEAST_SHARE * usual.get(STEP, 0.0)
    times = [name for name in usual if name != STEP and unit_of(name) == "ns" and usual[name] >= least]
    times = sorted(times, key=lambda name: -usual[name])[:_MOST]
    return [*([STEP] if STEP in usual else []), *times, *(name for name in usual if unit_of(name) != "ns")]


def series_of(
    entries: Sequence[RunEntry], name: str, groups: Sequence[str], without: Container[int] = ()
) -> MetricSeries:
    """Return a metric over the runs that have it.

    Args:
        entries: the runs.
        name: name of the metric.
        groups: the group of each run.
        without: places of runs to leave out.
    """
    has = [n for n, entry in enumerate(entries) if entry.metrics.get(name, 0.0) > 0 and n not in without]
    places = np.array(has, np.int64)
    values = np.array([entries[place].metrics[name] for place in has], np.float64)
    number = {group: n for n, group in enumerate(dict.fromkeys(groups[place] for place in has))}
    of_runs = np.array([number[groups[place]] for place in has], np.int64)
    fitted = fit(np.log(values), of_runs)
    levels = fitted.level + np.array(fitted.offsets)[of_runs] if len(has) else fitted.level
    return MetricSeries(name, places, values, fitted, levels)


def passing(entries: Sequence[RunEntry]) -> dict[int, tuple[str, ...]]:
    """Return the places of runs with a temporary configuration, and its differences.

    These are fewer than `NARROWEST` runs in a row, with steps apart from those around them; of longer rows the fit
    finds both ends, with the configuration as their reason. The configurations before and after them are the same.
    """
    passed: dict[int, tuple[str, ...]] = {}
    usual = 0
    for at in range(1, len(entries)):
        if at in passed:
            continue
        names = _other_config(entries[usual], entries[at])
        ends = range(at + 1, min(at + NARROWEST, len(entries))) if names else ()
        back = {end: names - _other_config(entries[usual], entries[end]) for end in ends}
        end = next((end for end, same in back.items() if same), None)
        if end is not None and _is_apart(entries, [n for n in range(at) if n not in passed], at, end):
            for place in range(at, end):
                passed[place] = tuple(_differences([entries[usual]], [entries[place]], back[end]))
        else:
            usual = at
    return passed


def _other_config(first: RunEntry, second: RunEntry) -> set[str]:
    """Return the names of settings in which the configurations of two runs differ."""
    if first.config == second.config:
        return set()
    return {name for name in {*first.config, *second.config} if any(_differences([first], [second], [name]))}


def _is_apart(entries: Sequence[RunEntry], before: Sequence[int], at: int, end: int) -> bool:
    """Return whether the steps of the runs from `at` to `end` are far out of the range of the runs around them."""
    around = [*before[1 - NARROWEST :], *range(end, min(end + NARROWEST - 1, len(entries)))]
    logs = [math.log(entries[place].metrics[STEP]) for place in around]
    width = max(logs) - min(logs)
    steps = [math.log(entry.metrics[STEP]) for entry in entries[at:end]]
    return all(not min(logs) - width <= value <= max(logs) + width for value in steps)


def changes_of(entries: Sequence[RunEntry], metrics: Mapping[str, MetricSeries], least: float) -> list[MetricChange]:
    """Return the changes of metrics, the step first, and then by size [ns].

    Changes of metrics other than the step are kept if they are rare enough for the number of metrics searched:
    Benjamini and Hochberg, Journal of the Royal Statistical Society B 57, 1995.

    Args:
        entries: the runs.
        metrics: their metrics.
        least: least share of a change that is kept.
    """
    changes = [change for each in metrics.values() for change in _of_series(each)]
    others = sorted((c for c in changes if c.metric != STEP and c.kind != MAYBE), key=lambda change: change.p)
    searched = max(1, len(metrics) - 1)
    rare = [n for n, change in enumerate(others, 1) if change.p <= RARE * min(1.0, n / searched)]
    kept = [c for c in changes if c.metric == STEP] + others[: max(rare, default=0)]
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
    """Yield the differences between the configurations before and after a change."""
    if change.kind == DRIFT:
        return
    before = entries[max(0, change.at - 1 - _NEAR) : max(1, change.at - 1)]
    after = entries[min(len(entries) - 1, change.at + 1) : change.at + 1 + _NEAR]
    yield from _differences(before, after, sorted({name for entry in (*before, *after) for name in entry.config}))
    long_before = entries[max(0, change.at - _LONG_AGO) : change.at]
    hosts = [{", ".join(entry.hosts) for entry in side} for side in (long_before, after)]
    # Names of containers are new in each run, and so no reason.
    if len(hosts[0]) == len(hosts[1]) == 1 and hosts[0] != hosts[1]:
        yield f"machines: {' -> '.join(map(min, hosts))}"


def _differences(before: Sequence[RunEntry], after: Sequence[RunEntry], names: Iterable[str]) -> Iterator[str]:
    """Yield, as text, the settings in which no run before equals a run after."""
    for name in names:
        sides = [{entry.config.get(name, _NOT_SET) for entry in side} for side in (before, after)]
        if name == COMMAND:
            yield from _other_words(*map(masked, sides))
            continue
        if name.startswith(GRID):  # a kernel that is missing on one side has no grid there; that is no difference
            sides = [side - {_NOT_SET} for side in sides]
        if all(sides) and sides[0].isdisjoint(sides[1]):
            short = f"{GRID}{kernel_name(name.removeprefix(GRID)).short}" if name.startswith(GRID) else name
            yield f"{short}: {' or '.join(sorted(sides[0]))} -> {' or '.join(sorted(sides[1]))}"


def _other_words(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """Yield the words in which the commands differ; nothing if the command is new in each run.

    Numbers that differ within a side do not count, such as dates, ports and folders.
    """
    if len(before) != 1 or len(after) != 1:
        return
    sides = (before[0], after[0])
    first, second = map(NUMBER.findall, sides)
    is_same = NUMBER.sub("#", sides[0]) == NUMBER.sub("#", sides[1])
    if is_same and all(was == now or "#" in (was, now) for was, now in zip(first, second, strict=True)):
        return
    words = [side.split() for side in sides]
    if len(words[0]) == len(words[1]):
        at = [n for n, (was, now) in enumerate(zip(*words, strict=True)) if was != now]
        starts = [n - (n > 0 and words[0][n - 1].startswith("-")) for n in at]
        words = [[word for n, start in zip(at, starts, strict=True) for word in side[start : n + 1]] for side in words]
    yield f"{COMMAND}: {' -> '.join(shorten(' '.join(side), _LONGEST) for side in words)}"
