"""Owns how far a duration lies from others of its kind: by the mean, and by the median, which outliers do not move.

The z-score is the distance from the mean in standard deviations (of the whole, n). The median score is the distance
from the median by 1.4826 times the median of all such distances, which is the deviation of a normal distribution.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rocpd.summary.spread import Spread
from rocpd.types import Floats, Ints

Z_LIMIT = 3.0
"""From this z-score on a duration is an outlier."""

MEDIAN_LIMIT = 3.5
"""From this median score on a duration is an outlier."""

_NORMAL = 1.4826  # deviation of a normal distribution by the median of distances from its median


class Typical(NamedTuple):
    """Middle and width of a distribution, by both measures [ns]; NaN for a width of 0, where nothing can be far."""

    mean: float
    deviation: float
    median: float
    distance: float

    def z_scores(self, durations: Ints) -> Floats:
        """Return the z-score of each duration, below the mean negative; NaN where all are equal."""
        return np.asarray((durations - self.mean) / self.deviation, np.float64)

    def median_scores(self, durations: Ints) -> Floats:
        """Return the median score of each duration; NaN where more than half are equal."""
        return np.asarray((durations - self.median) / self.distance, np.float64)


def typical_of(spread: Spread) -> Typical:
    """Return middle and width of a distribution.

    >>> typical_of(Spread.of(np.array([1, 2, 3, 4, 90])))
    Typical(mean=20.0, deviation=35.014282800023196, median=3.0, distance=1.4826)
    """
    values, counts = spread.distribution()
    if not len(values):
        return Typical(math.nan, math.nan, math.nan, math.nan)
    mean = float(np.average(values, weights=counts))
    deviation = math.sqrt(float(np.average((values - mean) ** 2, weights=counts)))
    median = _median(values.astype(np.float64), counts)
    distance = _NORMAL * _median(np.abs(values - median), counts)
    return Typical(mean, deviation or math.nan, median, distance or math.nan)


def outliers(spread: Spread) -> tuple[int, int]:
    """Return how many durations are outliers by z-score, and by median score."""
    values, counts = spread.distribution()
    typical = typical_of(spread)
    by_mean = np.abs(typical.z_scores(values)) >= Z_LIMIT
    by_median = np.abs(typical.median_scores(values)) >= MEDIAN_LIMIT
    return int(counts[by_mean].sum()), int(counts[by_median].sum())


def _median(values: Floats, counts: Ints) -> float:
    order = np.argsort(values, kind="stable")
    values, until = values[order], np.cumsum(counts[order])
    last = int(until[-1])
    middle = np.searchsorted(until, [(last - 1) // 2, last // 2], side="right")
    return float(values[middle].mean())
