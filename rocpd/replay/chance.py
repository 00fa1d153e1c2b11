"""Whether the excess of one of several alike lasts, or may be chance. Pure arithmetic of series, one value per step.

Neighbouring steps are alike, for temperature and power change slowly. So steps are no independent trials. The error of
a mean follows from how alike neighbours are, in all series together (an autoregressive process of order 1, its estimate
corrected for short series: Marriott and Pope, Biometrika 41, 1954; of few series, several by their likelihood), or from
how far the means of the others lie apart, whichever is larger. What all series have in a step says nothing of any of
them. Single outliers count no more than the largest usual value.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np

from rocpd.base import Flags, Floats
from rocpd.base.student import student_quantile, survival

LIKELY, CERTAIN = 0.007, 1e-5
"""Chances below which an excess likely, or certainly, lasts; calibrated to err in 1 of 100 jobs."""

MODEL = 0.06
"""Share of a change by which replays of simulated jobs are off."""

LEAST_TO_TELL = 4
"""The fewest steps that can rule out chance."""

_FAR = 4.0  # deviations: further away is an outlier
_NORMAL = 1.4826  # factor from a median distance to a standard deviation
_MOST_ALIKE = 0.99
_MOST_FREEDOM = 300  # beyond it Student's t hardly changes
_SECOND = 4  # factor on the chance of a second comparison, so that both together hardly err more often than the first
_FEWEST_OF_HOST = 3  # ranks of a host that show how far its ranks lie apart
_DRAWN = 400  # resamplings of steps
_FEWEST = 2  # steps that have an error
_BOUND = 0.975  # probability that an estimate lies below its upper bound, and also that it lies above the lower one
_FEW = 3  # series: too few for their means to show how far apart they lie
_RHOS: Floats = np.array([*np.arange(10) / 10, 0.95])  # possible correlations of neighbours in few series
_LEAST = 1e-12  # share of the squares of a series that is left at least


def chance_of(series: Floats, column: int) -> float:
    """Return the probability that one of several series that are alike lies so far above the others by chance.

    The series is taken as one of all, not as singled out beforehand. 1.0 where there are too few steps.

    Args:
        series: a row for each step, a column for each of the series that are alike.
        column: the column in question.
    """
    steps, count = series.shape
    if steps < LEAST_TO_TELL or count < 2:
        return 1.0
    values = tamed(series - np.median(series, axis=1)[:, None])  # of a step that is long in all of them
    means = values.mean(0)
    rest = values - means
    variance = float((rest**2).sum())
    more = float(means[column] - np.median(np.delete(means, column)))
    if not variance:
        return 0.0 if more > 0 else 1.0
    rhos, weights = _alike(rest)
    lags = np.arange(1, steps)
    shares = (1 + 2 * ((1 - lags / steps) * rhos[:, None] ** lags).sum(1)) / steps  # of the variance, kept by the mean
    within = variance / ((count - 1) * steps) / np.maximum(1 - shares, 0.02) * shares
    is_few = count <= _FEW
    between = 0.0 if is_few else (_NORMAL * float(np.median(np.abs(means - np.median(means))))) ** 2
    errors = np.sqrt(np.maximum(within, between) * (1 + 1 / (count - 1)))
    freedom = (count - 1) * (steps - 1) if is_few else np.maximum(count - 1, (1 / shares - 1) * count)
    freedoms = np.broadcast_to(np.clip(freedom, 2, _MOST_FREEDOM).astype(int), len(rhos))
    parts = zip(weights.tolist(), errors.tolist(), freedoms.tolist(), strict=True)
    chance = sum(weight * survival(more / error, freedom) for weight, error, freedom in parts)
    return float(min(1.0, count * chance))


def _alike(rest: Floats) -> tuple[Floats, Floats]:
    """Return how alike neighbours may be, and the weight of each possibility.

    Few series hardly know it. So all possibilities have a weight then, by how well they explain the series, whose means
    and deviation are integrated out; see `rocpd.compare.decision` for the method.

    Args:
        rest: series without their means.
    """
    steps, count = rest.shape
    squares, products = float((rest**2).sum()), float((rest[1:] * rest[:-1]).sum())
    if count > _FEW:
        alike = min(_MOST_ALIKE, max(0.0, (products / squares * steps + 1) / (steps - 3)))
        return np.array([alike]), np.ones(1)
    ends, both = float((rest[[0, -1]] ** 2).sum()), float(((rest[0] + rest[-1]) ** 2).sum())
    of_mean = (steps - 2) * (1 - _RHOS) ** 2 + 2 * (1 - _RHOS)
    left = squares + (squares - ends) * _RHOS**2 - 2 * products * _RHOS - both * (_RHOS * (1 - _RHOS)) ** 2 / of_mean
    likelihoods = np.log1p(-(_RHOS**2)) - np.log(of_mean) - (steps - 1) * np.log(np.maximum(left, _LEAST * squares))
    weights = np.exp((likelihoods - likelihoods.max()) * (count - 1) / 2)
    return _RHOS, weights / weights.sum()


def chance_among(series: Floats, column: int, hosts: Sequence[str], late: Collection[str] = ()) -> float:
    """Return the chance that a series lies so far above all others, or above those of its host, whichever is less.

    Where hosts differ, series lie far apart, which would hide one that is above all of its host.

    Args:
        series: a row for each step, a column for each rank.
        column: the column in question.
        hosts: name of the host of each rank.
        late: hosts whose ranks take longer than all others. Where that is no chance, other ranks are compared as if
            these hosts were like the rest.
    """
    names = np.array(hosts)
    for here in (names == name for name in late if name != hosts[column]):
        if chance_of(np.column_stack([series[:, here].mean(1), series[:, ~here]]), 0) <= LIKELY:
            means = np.median(series, axis=0)
            series = series - here * (np.median(means[here]) - np.median(means[~here]))
    numbers, ranks = np.unique(names, return_inverse=True, return_counts=True)[1:]
    chance = chance_of(series, column)
    if len(ranks) < 2 or ranks.min() < _FEWEST_OF_HOST:
        return chance
    usual = [np.median(series[:, numbers == number], axis=1) for number in range(len(ranks))]
    return min(chance, _SECOND * chance_of(series - np.column_stack(usual)[:, numbers], column))


def tamed(series: Floats) -> Floats:
    """Return series whose outliers are cut to the largest usual value."""
    middle = np.median(series, axis=0)
    far = _FAR * _NORMAL * np.median(np.abs(series - middle), axis=0)
    return np.where(far > 0, np.clip(series, middle - far, middle + far), series)


def uncertainty(series: Floats, here: Flags, usual: Flags, taken: float) -> float:
    """Return the share by which an estimated excess may be too large or too small, from how steps and ranks differ.

    Args:
        series: excess in each step (row) of those that are alike (columns) [ns].
        here: the columns that the excess is of.
        usual: the columns that it is compared with.
        taken: the excess in a step [ns].
    """
    series = tamed(series)  # a slow step is no property of a rank
    together, others = series[:, here].sum(1), series[:, usual]
    error = math.hypot(
        _error_of_mean(together),
        _error_between(others) * math.sqrt(here.sum() * (1 + here.sum() / max(1, others.shape[1]))),
    )
    return min(1.0, errors_to_bound(len(series)) * error / taken)


def errors_to_bound(count: int) -> float:
    """Return how many standard errors the bounds of an estimate from so many steps lie away from it."""
    return student_quantile(_BOUND, max(1, min(count, 30) - 1))


def _error_of_mean(series: Floats) -> float:
    """Return the standard error of the mean of a series, by resampling blocks of neighbours."""
    count = len(series)
    if count < _FEWEST:
        return 0.0
    size = max(1, round(math.sqrt(count) / 2))
    random = np.random.default_rng(0)
    starts = random.integers(0, count, (_DRAWN, math.ceil(count / size)))
    rows = (starts[:, :, None] + np.arange(size)).reshape(_DRAWN, -1)[:, :count] % count
    return float(series[rows].mean(1).std())


def _error_between(series: Floats) -> float:
    """Return the standard deviation of the means of series (columns); of a single series, the error of its mean."""
    if series.shape[1] == 1:
        return _error_of_mean(series[:, 0])
    return float(series.mean(0).std(ddof=1)) if series.shape[1] else 0.0
