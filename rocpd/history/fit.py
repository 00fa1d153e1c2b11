"""Where the level of a series of runs changes, with the noise that the series itself shows. Knows numbers alone.

A series is a level that steps, and may drift, plus an offset of each group of runs (machines), plus noise of Gauss and
Markov: neighbours are correlated by rho. Steps are added one by one, each where the likelihood gains most, and judged by
Student's t, averaged over what rho may be: a slow wander is no step. The search is that of a forward selection over all
places at once (the exact least squares of every place cost two cumulative sums), with pairs of steps for what comes
and goes: Fryzlewicz, Annals of Statistics 42, 2014, says why single steps miss those.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field, replace
from typing import NamedTuple

import numpy as np

from rocpd.base.frozen import frozen
from rocpd.base.student import survival
from rocpd.base.types import Flags, Floats, Ints

FEWEST = 8
"""Runs from which on a series says where it changes."""

LEAST_AFTER = 3
"""Runs on each side of a step: one or two that lie apart are outliers."""

RARE = 1e-3
"""What chance explains so rarely at one place is a step; with the costs below, less than one of 500 runs is taken for one."""

_DOUBTFUL = 0.02  # of a place: what may be one
_RHOS: Floats = np.linspace(0.0, 0.96, 13)
_COSTS: Floats = (1 - _RHOS**2) ** -3.0  # a heavy tail looks the more like a step, the more neighbours are alike
_JACOBIANS: Floats = 0.5 * np.log(1 - _RHOS**2)
_OUTSIDE = 4.0  # deviations of a run from the median of its neighbours
_COST_OF_PAIRS = 1.5  # of likelihood: there are more of them
_FREEDOM = 200  # degrees of freedom; more are as many
_MOST_STEPS, _RUNS_A_STEP = 24, 5
_TINY = 1e-9  # of logarithms: stands for no deviation at all


class Step(NamedTuple):
    """A step: the first run after it, by how much the logarithm changes, and how often chance explains one so large at
    one place of a series.
    """

    at: int
    size: float
    p: float


class Drift(NamedTuple):
    """A slope: from which run on, by how much the logarithm changes a run, and how often chance explains it."""

    start: int
    slope: float
    p: float


@frozen
class Fit:
    """What a series of runs consists of; logarithms.

    Args:
        level: of each run, without the offset of its group.
        steps: where it steps, in order.
        drift: where it slopes; None: nowhere.
        doubtful: a step that chance explains too often; None: there is none.
        offsets: of each group of runs from the most frequent one; 0 where that cannot be said.
        outliers: whether a run lies apart from its neighbours.
        rho: how alike the noise of neighbours is.
        deviation: standard deviation of the noise.
    """

    level: Floats
    steps: tuple[Step, ...] = ()
    drift: Drift | None = None
    doubtful: Step | None = None
    offsets: tuple[float, ...] = ()
    outliers: Flags = field(default_factory=lambda: np.zeros(0, bool))
    rho: float = 0.0
    deviation: float = 0.0

    @property
    def segment(self) -> int:
        """The first run of the current level."""
        return self.last_before(len(self.level))

    def last_before(self, place: int) -> int:
        """Return where the level began that holds before a run."""
        return max((step.at for step in self.steps if step.at < place), default=0)

    def first_after(self, place: int) -> int:
        """Return where the level ends that holds from a run on."""
        return min((step.at for step in self.steps if step.at > place), default=len(self.level))


def fit(values: Floats, groups: Ints) -> Fit:
    """Return where a series steps.

    Args:
        values: logarithms, in order of time; below `FEWEST` nothing but their median is said.
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
    """Columns of a design: those that are fixed, then a slope, then steps."""

    fixed: Floats
    slope: int | None
    steps: tuple[int, ...]

    def design(self) -> Floats:
        place = np.arange(len(self.fixed), dtype=np.float64)
        slopes = [] if self.slope is None else [np.maximum(place - self.slope, 0.0)]
        return np.column_stack([self.fixed, *slopes, *(np.where(place >= at, 1.0, 0.0) for at in self.steps)])

    def with_found(self, found: _Found) -> _Model:
        """Return the same with what a search found."""
        if found.is_slope:
            return self._replace(slope=found.places[0])
        return self._replace(steps=tuple(sorted({*self.steps, *found.places})))


class _Found(NamedTuple):
    """What would explain most: steps at these places, or a slope from one on; the likelihood with it, and chance."""

    places: tuple[int, ...]
    is_slope: bool
    likelihood: float
    p: float


def _selected(values: Floats, fixed: Floats) -> tuple[_Model, Step | None]:
    """Return the model of a series, and a step that is not in it because chance explains it too often."""
    model = _Model(fixed, None, ())
    most = min(_MOST_STEPS, len(values) // _RUNS_A_STEP)
    found = _best(values, model)
    while found.p < RARE and len(model.steps) < most:
        model = model.with_found(found)
        found = _best(values, model)
    model = _without_chance(values, model)
    model = _as_slope(values, model)
    is_doubtful = RARE <= found.p < _DOUBTFUL and not found.is_slope
    return model, Step(found.places[0], 0.0, found.p) if is_doubtful else None


def _best(values: Floats, model: _Model) -> _Found:
    """Return what would explain most of what a model leaves."""
    design = model.design()
    freedom = len(values) - design.shape[1] - 1
    scans = [_scan(values, design, rho) for rho in _RHOS.tolist()]
    left = np.array([scan.left for scan in scans])
    best = _Found((), False, -math.inf, 1.0)
    slopes = _hinges(len(values)) if model.slope is None else []
    slope_gains = np.array([_gains_of(values, design, rho, slopes) for rho in _RHOS.tolist()]) if slopes else None
    for width in (0, *_widths(len(values))):
        gains = np.array([scan.gains(width) for scan in scans])
        best = max(best, _judged(gains, left, freedom, width), key=lambda found: found.likelihood)
    if slope_gains is not None:
        found = _judged(slope_gains, left, freedom, 0)
        if found.likelihood > best.likelihood:
            best = found._replace(places=(slopes[found.places[0]],), is_slope=True)
    return best


def _judged(gains: Floats, left: Floats, freedom: int, width: int) -> _Found:
    """Return the place that explains most.

    Args:
        gains: squares that a step at each place explains: `[rho, place]`.
        left: squares that are left without: `[rho]`.
        freedom: degrees of freedom of those that are left then.
        width: of a pair of steps; 0: one step.
    """
    after = np.maximum(left[:, None] - gains, _TINY**2)
    likelihoods = _JACOBIANS[:, None] - freedom / 2 * np.log(after)
    likelihoods[:, gains.max(0) <= 0] = -np.inf
    place = int(likelihoods.max(0).argmax())
    best = float(likelihoods[:, place].max())
    if best == -math.inf:
        return _Found((place,), False, best, 1.0)
    weights = np.exp(likelihoods[:, place] - best)
    weights /= weights.sum()
    scores = np.sqrt(gains[:, place] * freedom / after[:, place])
    parts = zip((weights * _COSTS).tolist(), scores.tolist(), strict=True)
    p = sum(weight * 2 * survival(score, min(freedom, _FREEDOM)) for weight, score in parts if weight > 1e-4)
    if width:
        return _Found((place, place + width), False, best - _COST_OF_PAIRS, min(1.0, p * math.exp(_COST_OF_PAIRS)))
    return _Found((place,), False, best, min(1.0, p))


class _Scan(NamedTuple):
    """What steps at all places explain of a series for one rho.

    Args:
        rho: the correlation.
        left: squares that are left without a step.
        products: of a step at each place, and at the end, with what is left and with the base of the design.
    """

    rho: float
    left: float
    products: Floats

    def gains(self, width: int) -> Floats:
        """Return the squares that a step at each place explains, or a pair of steps so many runs apart."""
        count = len(self.products) - 1
        places = np.arange(count)
        products, own = self.products[:-1], 1 + (1 - self.rho) ** 2 * (count - 1.0 - places)
        if width:
            products = products.copy()
            products[: count - width] -= self.products[width:count]
            own = np.full(count, 1 + (1 - self.rho) ** 2 * (width - 1) + self.rho**2)
        unexplained = own - (products[:, 1:] ** 2).sum(1)
        gains = np.where(unexplained > 1e-6, products[:, 0] ** 2 / np.maximum(unexplained, 1e-6), 0.0)
        gains[:LEAST_AFTER] = 0.0
        gains[count - width - LEAST_AFTER + 1 :] = 0.0
        return gains


def _scan(values: Floats, design: Floats, rho: float) -> _Scan:
    base, residual = _projected(values, design, rho)
    columns = np.column_stack([residual, base])
    after = np.cumsum(columns[::-1], axis=0)[::-1] - columns
    products = np.vstack([columns + (1 - rho) * after, np.zeros(columns.shape[1])])
    return _Scan(rho, max(float(residual @ residual), _TINY**2), products)


def _projected(values: Floats, design: Floats, rho: float) -> tuple[Floats, Floats]:
    """Return an orthonormal base of the columns when neighbours are taken off, and what they leave of the values."""
    base, _ = np.linalg.qr(_whitened(design, rho))
    whitened = _whitened(values[:, None], rho)[:, 0]
    return base, whitened - base @ (base.T @ whitened)


def _whitened(columns: Floats, rho: float) -> Floats:
    whitened = columns.copy()
    whitened[1:] -= rho * columns[:-1]
    whitened[0] *= math.sqrt(1 - rho * rho)
    return whitened


def _widths(count: int) -> list[int]:
    """Return widths of what comes and goes that are tried: each half as long again."""
    widths, width = [], LEAST_AFTER
    while width <= count // 2 - LEAST_AFTER:
        widths.append(width)
        width += max(1, width // 2)
    return widths


def _hinges(count: int) -> list[int]:
    """Return places from which a slope is tried: few, because where a slope begins is hard to say."""
    return sorted({count * part // 8 for part in range(7)})


def _gains_of(values: Floats, design: Floats, rho: float, hinges: Sequence[int]) -> Floats:
    """Return the squares that a slope from each of some places explains."""
    base, residual = _projected(values, design, rho)
    place = np.arange(len(values), dtype=np.float64)
    columns = _whitened(np.column_stack([np.maximum(place - start, 0.0) for start in hinges]), rho)
    unexplained = (columns**2).sum(0) - ((base.T @ columns) ** 2).sum(0)
    gains: Floats = (columns.T @ residual) ** 2 / np.maximum(unexplained, 1e-6)
    return gains


def _without_chance(values: Floats, model: _Model) -> _Model:
    """Return a model without steps that, beside the others, chance explains."""
    while model.steps:
        steps, _ = _tested(values, model)
        worst = max(steps, key=lambda step: step.p)
        if worst.p < RARE:
            break
        model = model._replace(steps=tuple(at for at in model.steps if at != worst.at))
    return model


def _as_slope(values: Floats, model: _Model) -> _Model:
    """Return a slope for several steps that lead one way, where it explains as much: a drift is no staircase."""
    if len(model.steps) < 2 or model.slope is not None:
        return model
    steps, _ = _tested(values, model)
    if len({step.size > 0 for step in steps}) > 1:
        return model
    sloped = model._replace(steps=(), slope=0)
    return sloped if _likelihood(values, sloped) > _likelihood(values, model) - len(steps) + 1 else model


def _likelihood(values: Floats, model: _Model) -> float:
    design = model.design()
    freedom = len(values) - design.shape[1]
    left = [float((_projected(values, design, rho)[1] ** 2).sum()) for rho in _RHOS.tolist()]
    return float((_JACOBIANS - freedom / 2 * np.log(np.maximum(left, _TINY**2))).max())


class _Estimate(NamedTuple):
    """Coefficients of the columns of a design, for the most likely rho, and the deviation of the noise."""

    coefficients: Floats
    rho: float
    deviation: float


def _tested(values: Floats, model: _Model) -> tuple[list[Step], _Estimate]:
    """Return the steps of a model, each judged beside all others, and its coefficients."""
    design = model.design()
    freedom, first = len(values) - design.shape[1], design.shape[1] - len(model.steps)
    likelihoods, chances, estimates = [], [], []
    for rho, cost, jacobian in zip(_RHOS.tolist(), _COSTS.tolist(), _JACOBIANS.tolist(), strict=True):
        whitened, target = _whitened(design, rho), _whitened(values[:, None], rho)[:, 0]
        inverse = np.linalg.pinv(whitened.T @ whitened)
        coefficients = inverse @ (whitened.T @ target)
        left = max(float(((target - whitened @ coefficients) ** 2).sum()), _TINY**2)
        errors = np.sqrt(np.maximum(np.diag(inverse), 1e-12) * left / freedom)
        scores = np.abs(coefficients / errors)[first:].tolist()
        chances.append([cost * 2 * survival(score, min(freedom, _FREEDOM)) for score in scores])
        likelihoods.append(jacobian - freedom / 2 * math.log(left))
        estimates.append(_Estimate(coefficients, rho, math.sqrt(left / freedom / (1 - rho * rho))))
    weights = np.exp(np.array(likelihoods) - max(likelihoods))
    averaged = (weights / weights.sum()) @ np.array(chances).reshape(len(_RHOS), -1)
    best = estimates[int(np.argmax(likelihoods))]
    sizes = best.coefficients[first:].tolist()
    return [Step(*each) for each in zip(model.steps, sizes, averaged.tolist(), strict=True)], best


def _described(values: Floats, groups: Ints, model: _Model, of_columns: Sequence[int]) -> Fit:
    """Return what a model says of a series."""
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
    """Return a column for each group whose offset can be told from a step, and which these are.

    They take turns with others: a group that comes once for all is a step in time, and is found as that.
    """
    counts = np.bincount(groups)
    usual = int(counts.argmax())
    most = len(groups) // FEWEST
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    blocks = np.bincount(groups[starts], minlength=len(counts))
    told = [int(group) for group in np.argsort(-counts, kind="stable") if blocks[group] > 1 and counts[group] > 2]
    chosen = [group for group in told if group != usual][:most] if blocks[usual] > 1 or len(told) > 1 else []
    return np.column_stack([np.zeros((len(groups), 0)), *(groups == group for group in chosen)]), chosen


def _cleaned(values: Floats, offsets: Floats) -> tuple[Floats, Flags]:
    """Return values of which those that lie apart from their neighbours stand at the median of these, and which."""
    lifted = np.zeros(len(values))
    if offsets.shape[1]:  # groups take turns: neighbours lie apart by what their groups do
        beside = [np.median(values[column > 0]) for column in offsets.T]
        others = np.median(values[offsets.sum(1) == 0])
        lifted = offsets @ (np.array(beside) - others)
    own = values - lifted
    reach = (len(own) > 2) * 2
    padded = np.concatenate([np.full(reach, np.nan), own, np.full(reach, np.nan)])
    middle = np.nanmedian(np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1), axis=1)
    apart = np.abs(own - middle)
    scale = 1.4826 * float(np.median(apart)) / 0.75  # a median of five takes a quarter of the deviation along
    is_outside = apart > max(_OUTSIDE * scale, _TINY)
    return np.where(is_outside, middle + lifted, values), is_outside
