"""How far an estimate may be from the truth by chance, also where it is of a series whose neighbours are alike.

Step times follow temperature and power: a slow step comes after a slow one, and many of them say less than as many that
are independent. So a series is one of Gauss and Markov: logarithms of values around a level, correlated by rho to the
power of how many steps lie between. The rho is not known: each has the weight that the series gives it. Knows numbers
alone, and decides nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rocpd.base.frozen import frozen
from rocpd.base.student import survival
from rocpd.base.types import Flags, Floats, Ints

RHOS: Floats = np.linspace(0.0, 0.99, 34)
"""Correlations of neighbours that may be; negative ones count as none."""

_LAGS: Ints = np.arange(1, 4000)  # beyond, the largest rho is negligible
_LOSSES: Floats = np.array(
    [(math.pi / 2 + 2 * np.arcsin(rho**_LAGS).sum()) / (1 + 2 * (rho**_LAGS).sum()) for rho in RHOS]
)
"""How many times as large the variance of a median is as that of a mean: signs of normal values that are correlated by
r are correlated by 2 / pi arcsin(r)."""

_TINY = 1e-12  # of logarithms: stands for no deviation at all
_MOST = 200  # degrees of freedom; more are as many
_NEGLIGIBLE = 1e-3  # of the largest weight
_OUTSIDE, _FEW = 3 * 1.4826, 0.1  # median deviations, and share of values that may lie farther out than these


@frozen
class Chance:
    """By how much an estimate may miss: a mixture of Student's t distributions.

    Args:
        weights: of each of them; 1 together.
        errors: standard error in each.
        freedoms: degrees of freedom of each, 1 at least.
    """

    weights: Sequence[float]
    errors: Sequence[float]
    freedoms: Sequence[int]

    def beyond(self, distance: float) -> float:
        """Return the probability that an estimate misses by at least so much, either way."""
        parts = zip(self.weights, self.errors, self.freedoms, strict=True)
        return sum(weight * 2 * survival(distance / max(error, _TINY), freedom) for weight, error, freedom in parts)

    def half_width(self, confidence: float) -> float:
        """Return by how much an estimate misses at most, with a confidence.

        >>> round(Chance([1.0], [1.0], [9]).half_width(0.95), 3)
        2.262
        """
        low, high = 0.0, max(self.errors)
        if not high:
            return 0.0
        while self.beyond(high) > 1 - confidence:
            high *= 2
        for _ in range(30):
            middle = (low + high) / 2
            low, high = (middle, high) if self.beyond(middle) > 1 - confidence else (low, middle)
        return high


@frozen
class Doubt:
    """The error that a series adds to an estimate, for each of `RHOS`.

    Args:
        likelihoods: of the series, as logarithms, but for its deviation.
        squares: sums of what is left of values when neighbours and levels are taken off.
        variances: of its share of the estimate, in units of that of a value.
        freedom: degrees of freedom of the squares.
    """

    likelihoods: Floats
    squares: Floats
    variances: Floats
    freedom: int


def of_level(values: Floats, share: float = 1.0) -> Doubt:
    """Return how well a series knows its level, the median.

    Args:
        values: logarithms, in order of time.
        share: that the level has in the estimate.
    """
    return of_contrast(np.zeros(len(values), bool), values, np.arange(len(values)), share)


def of_contrast(is_other: Flags, values: Floats, places: Ints, share: float = 1.0) -> Doubt:
    """Return how well a series knows how far the medians of some of its values are from those of the others.

    Args:
        is_other: which values are on the other side; none: the level of the values is meant.
        values: logarithms, in order of time.
        places: where each lies in the series, ascending.
        share: that this has in the estimate.
    """
    sides = [side for side in (~is_other, is_other) if side.any()]
    inner, weights, is_median = values.copy(), np.zeros(len(values)), np.zeros(len(values), bool)
    for side in sides:
        count = np.count_nonzero(side)
        inner[side] = _without_outliers(values[side])
        weights[side] = share / count
        is_median[side] = count > 2  # of fewer it is the mean
    weights[is_other] *= -1
    columns, gaps = np.stack(sides, 1).astype(np.float64), np.diff(places)
    likelihoods, squares, variances = np.empty((3, len(RHOS)))
    for number, (rho, loss) in enumerate(zip(RHOS.tolist(), _LOSSES.tolist(), strict=True)):
        likelihoods[number], squares[number] = _fitted(inner, columns, gaps, rho)
        apart = _products(np.where(is_median, math.sqrt(loss) * weights, weights), places)
        variances[number] = float(apart @ rho ** np.arange(len(apart)))
    return Doubt(likelihoods, squares, variances, len(values) - len(sides))


def _products(weights: Floats, places: Ints) -> Floats:
    """Return the sum of the products of weights that lie 0, 1, 2 … places apart, as far as values are alike there."""
    span = int(places[-1] - places[0]) + 1
    dense = np.zeros(1 << span.bit_length() + 1)
    dense[places - places[0]] = weights
    sums: Floats = np.fft.irfft(np.abs(np.fft.rfft(dense)) ** 2, len(dense))[: min(span, len(_LAGS))]
    sums[1:] *= 2
    return sums


def _fitted(values: Floats, columns: Floats, gaps: Ints, rho: float) -> tuple[float, float]:
    """Return the likelihood of a rho, as a logarithm without that of the deviation, and the squares that are left.

    The levels, which `columns` say, are integrated out: none of them is known.
    """
    alike = rho**gaps
    left = np.sqrt(1 - alike**2)
    inputs = np.column_stack([columns, values])
    inputs[1:] = (inputs[1:] - alike[:, None] * inputs[:-1]) / left[:, None]
    levels, target = inputs[:, :-1], inputs[:, -1]
    information = levels.T @ levels
    residual = target - levels @ np.linalg.solve(information, levels.T @ target)
    return float(-np.log(left).sum() - np.linalg.slogdet(information)[1] / 2), float(residual @ residual)


def _without_outliers(values: Floats) -> Floats:
    """Return values of which few, that lie far from the others, are drawn nearer: a median hardly feels them."""
    middle = float(np.median(values))
    most = _OUTSIDE * float(np.median(np.abs(values - middle)))
    is_few = np.count_nonzero(np.abs(values - middle) > most) <= max(len(values) > 4, _FEW * len(values))
    return np.clip(values, middle - most, middle + most) if most and is_few else values


def together(doubts: Sequence[Doubt], known: float = 0.0) -> Chance | None:
    """Return the error of an estimate that series have a share in: values of all of them vary alike.

    How they vary is not known. Each rho counts as much as it explains the series, and the deviation is integrated out:
    Zellner, An Introduction to Bayesian Inference in Econometrics, 1971, chapter 4.

    Args:
        doubts: of the series.
        known: variance that is known, whatever the series.

    Returns:
        None: nothing says how values vary.
    """
    freedom = sum(doubt.freedom for doubt in doubts)
    if not freedom:
        return Chance([1.0], [math.sqrt(known)], [_MOST]) if known else None
    squares = np.maximum(np.sum([doubt.squares for doubt in doubts], axis=0), _TINY**2)
    likelihoods = np.sum([doubt.likelihoods for doubt in doubts], axis=0) - freedom / 2 * np.log(squares)
    if known:  # a part of what wanders for longer than a series; by how much is calibrated
        likelihoods += np.log1p(-RHOS) / 4
    weights = np.exp(likelihoods - likelihoods.max())
    chosen = np.flatnonzero(weights > _NEGLIGIBLE)
    variances = (squares / freedom * np.sum([doubt.variances for doubt in doubts], axis=0))[chosen]
    total = known + variances
    # Satterthwaite, Biometrics Bulletin 2, 1946: what is known has all degrees of freedom.
    freedoms = np.clip(freedom * (total / variances) ** 2, 1, _MOST).astype(int)
    shares = weights[chosen] / weights[chosen].sum()
    return Chance(shares.tolist(), np.sqrt(total).tolist(), freedoms.tolist())
