"""Decides whether one side is slower, and has the statistics for it. Knows nothing of traces.

Runs are the replicates: what is measured again when nothing changed. Events of one run are not, so with one run a side
most differences are unclear.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from statistics import NormalDist

import numpy as np

from rocpd.base.frozen import frozen
from rocpd.base.student import student_quantile
from rocpd.base.types import Floats
from rocpd.compare.options import DiffOptions
from rocpd.summary.findings import Confidence

DRAWS = 2000
"""Resamples of a bootstrap."""

_SEED = 20_251_223
_EXACT = 400  # of n * m: up to this the distribution of U is counted
_TINY = 1e-3  # stands for 0, which has no logarithm; values are whole numbers
_CHUNK = 1 << 22  # resampled times in memory at once
_NORMAL = NormalDist()


@frozen
class Interval:
    """An estimate, and where the truth lies with a given confidence."""

    estimate: float
    low: float
    high: float


def ratio_of_medians(base: Sequence[Floats], new: Sequence[Floats], confidence: float = 0.95) -> Interval:
    """Return how many times as large the new values are as those of the base, with a bootstrap interval.

    The value of a side is the median of the medians of its runs. A resample draws runs with replacement, and of each
    run blocks of ceil(sqrt(n)) consecutive values, as neighbours depend on each other (Künsch, Annals of Statistics 17,
    1989). Intervals are percentiles of the logarithm of the ratio, widened for few runs (`expanded`), and where both
    sides have several at least as wide as Student's with the runs of the smaller side: few runs have few resamples. The
    seed is fixed, and the same for both sides: equal sides have the interval [1, 1], and exchanging sides inverts it.

    Args:
        base: values of each run of the base, in order of time; their median is above 0.
        new: those of the other side.
        confidence: of the interval.

    >>> same = [np.array([3.0, 4.0, 5.0])]
    >>> ratio_of_medians(same, same)
    Interval(estimate=1.0, low=1.0, high=1.0)
    """
    estimate = _middle(new) / _middle(base)
    if len(base) == len(new) and all(map(np.array_equal, base, new)):
        return Interval(1.0, 1.0, 1.0)
    after, before = (np.log(np.maximum(_resampled_medians(side), _TINY)) for side in (new, base))
    draws = after - before
    fewest = min(len(base), len(new))
    tail = expanded((1 - confidence) / 2, fewest)
    ordered = np.sort(draws)
    low, high = _quantile(ordered, tail), -_quantile(-ordered[::-1], tail)
    half = _half_width(base, new, (1 + confidence) / 2) if fewest > 1 else 0.0
    return Interval(
        estimate, min(math.exp(low), estimate * math.exp(-half)), max(math.exp(high), estimate * math.exp(half))
    )


def _half_width(base: Sequence[Floats], new: Sequence[Floats], probability: float) -> float:
    """Return half of Student's interval of the difference of the logarithms of medians of runs, several a side."""
    medians = [np.log([float(np.median(run)) for run in side]) for side in (base, new)]
    variance = sum(float(side.var(ddof=1)) / len(side) for side in medians)
    freedom = min(map(len, medians)) * 2 - 2
    return student_quantile(probability, freedom) * math.sqrt(variance)


def _middle(runs: Sequence[Floats]) -> float:
    return float(np.median([float(np.median(run)) for run in runs]))


def _resampled_medians(runs: Sequence[Floats]) -> Floats:
    """Return the median of the medians of the runs in each resample."""
    random = np.random.default_rng(_SEED)
    chosen = random.integers(len(runs), size=(DRAWS, len(runs)))
    of_runs = np.array([_block_medians(np.asarray(run, np.float64)) for run in runs])
    turns = random.permuted(np.tile(np.arange(DRAWS), (len(runs), 1)), axis=1)
    medians: Floats = np.median(of_runs[chosen, turns.T], axis=1)
    return medians


def _block_medians(values: Floats) -> Floats:
    """Return the medians of resamples of one run, by blocks of consecutive values."""
    random = np.random.default_rng(_SEED + 1)
    n = len(values)
    length = math.ceil(math.sqrt(n))
    count = -(-n // length)
    starts = random.integers(n - length + 1, size=(DRAWS, count))
    rows = max(1, _CHUNK // n)
    parts = []
    for low in range(0, DRAWS, rows):
        at = (starts[low : low + rows, :, None] + np.arange(length)).reshape(-1, count * length)[:, :n]
        parts.append(np.median(values[at], axis=1))
    return np.concatenate(parts)


def _quantile(ordered: Floats, share: float) -> float:
    """Return the value below which a share of the values lies, by straight line between neighbours."""
    position = share * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return float(ordered[below] + (ordered[above] - ordered[below]) * (position - below))


def expanded(tail: float, n: int) -> float:
    """Return the share of a bootstrap distribution to cut off so that an interval of n values misses with `tail`.

    Percentiles of a bootstrap are too narrow by sqrt((n - 1) / n) and by the normal's tails instead of Student's t.
    Hesterberg, What Teachers Should Know About the Bootstrap, The American Statistician 69, 2015, section 5.3. One
    value says nothing of its spread: it is left as it is.

    >>> round(expanded(0.025, 10), 4), expanded(0.025, 1)
    (0.0086, 0.025)
    """
    if n < 2:
        return tail
    return _NORMAL.cdf(math.sqrt(n / (n - 1)) * student_quantile(tail, n - 1))


def mann_whitney(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the probability of two samples that lie as far apart when both come from one distribution.

    Two-sided. Without ties and for few values the distribution of U is counted, else it is normal, corrected for ties
    and continuity. Mann and Whitney, Annals of Mathematical Statistics 18, 1947. Four values a side can reach 0.029,
    three 0.1.

    >>> round(mann_whitney([1, 2, 3, 4], [5, 6, 7, 8]), 3), mann_whitney([1, 2], [1, 2])
    (0.029, 1.0)
    """
    n, m = len(first), len(second)
    if not n or not m:
        return 1.0
    values = np.concatenate([np.asarray(first, np.float64), np.asarray(second, np.float64)])
    ordered, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    u = float(ranks[:n].sum()) - n * (n + 1) / 2
    u = max(u, n * m - u)
    if len(ordered) == n + m and n * m <= _EXACT:
        return _exact_tail(round(u), n, m)
    ties = float((counts**3 - counts).sum())
    variance = n * m / 12 * ((n + m + 1) - ties / ((n + m) * (n + m - 1)))
    if variance <= 0:
        return 1.0
    return min(1.0, 2 * _NORMAL.cdf(-(u - n * m / 2 - 0.5) / math.sqrt(variance)))


def _exact_tail(u: int, n: int, m: int) -> float:
    """Return 2 P(U >= u), at most 1, by counting the orders of n and m values with each U."""
    ways = np.zeros(n * m + 1, dtype=object)
    ways[0] = 1
    for k in range(1, n + 1):  # the Gaussian binomial: times (1 - q^(m + k)), by (1 - q^k)
        for at in range(n * m, m + k - 1, -1):
            ways[at] -= ways[at - m - k]
        for at in range(k, n * m + 1):
            ways[at] += ways[at - k]
    return min(1.0, 2 * int(ways[u:].sum()) / math.comb(n + m, n))


def holm(probabilities: Sequence[float]) -> list[float]:
    """Return the probabilities adjusted for how many they are, by Holm: the family errs in one at most so often.

    Holm, Scandinavian Journal of Statistics 6, 1979.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(probabilities)), key=lambda index: probabilities[index])
    adjusted, largest = [0.0] * len(order), 0.0
    for place, index in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - place) * probabilities[index]))
        adjusted[index] = largest
    return adjusted


def runs_needed(deviation: float, difference: float) -> int:
    """Return about how many runs a side show a difference: (2 * 1.96 * deviation / difference)^2, at least 4.

    Args:
        deviation: of runs of one side, as a share of their mean.
        difference: that should show, as a share.

    >>> runs_needed(0.02, 0.03), runs_needed(0.001, 0.03)
    (7, 4)
    """
    return max(4, math.ceil((2 * 1.96 * deviation / difference) ** 2))


def largest_noise(runs: Sequence[Floats]) -> float:
    """Return by how much runs of one side differ at most, as a share: what a change has to exceed to mean anything.

    >>> round(largest_noise([np.array([1.0]), np.array([1.02]), np.array([1.01])]), 3)
    0.02
    """
    middles = [float(np.median(run)) for run in runs]
    return max(middles) / min(middles) - 1 if len(middles) > 1 else 0.0


_SURE = 4  # runs a side, from which on a verdict is certain


class ChangeVerdict(StrEnum):
    """What became of the question whether the other side is slower than the base."""

    SLOWER = "slower"
    FASTER = "faster"
    SAME = "same"
    UNCLEAR = "unclear"


@frozen
class Decision:
    """Whether a value changed.

    Args:
        verdict: whether it did.
        confidence: how sure that is.
        medians: of both sides: of the medians of their runs.
        ratio: of these, with its interval; None without values.
        margin: share up to which a difference does not matter.
        runs: of both sides.
        p: probability of runs as different by chance (Mann-Whitney); None with one run a side.
        reason: why it is unclear.
        needed: about how many runs a side would tell, where it is unclear.
    """

    verdict: ChangeVerdict
    confidence: Confidence
    medians: tuple[float, float]
    ratio: Interval | None
    margin: float
    runs: tuple[int, int]
    p: float | None = None
    reason: str = ""
    needed: int | None = None


def decide(base: Sequence[Sequence[float]], new: Sequence[Sequence[float]], options: DiffOptions) -> Decision:
    """Decide whether values changed.

    Args:
        base, new: of each run its values, in order of time.
        options: the margin.
    """
    sides = [[np.array(run, np.float64) for run in side if len(run)] for side in (base, new)]
    runs = len(sides[0]), len(sides[1])
    medians = [[float(np.median(run)) for run in side] for side in sides]
    empty = [not side or not all(side) for side in medians]
    before, after = (float(np.median(side)) if side else 0.0 for side in medians)
    unclear = Decision(ChangeVerdict.UNCLEAR, Confidence.HINT, (before, after), None, options.margin / 100, runs)
    if any(empty):
        who = "neither side" if all(empty) else "the base" if empty[0] else "the other side"
        return replace(unclear, reason=f"nothing to compare: {who} has {'any' if all(empty) else 'none'} of it")
    ratio, is_single = ratio_of_medians(sides[0], sides[1]), min(runs) == 1
    margin = max(options.margin / 100, largest_noise(sides[0]))
    verdict = _verdict(ratio, margin, options.run_noise / 100 if is_single else 0.0)
    p = None if is_single else mann_whitney(*medians)
    decided = replace(unclear, verdict=verdict, ratio=ratio, margin=margin, p=p)
    if verdict is ChangeVerdict.UNCLEAR:
        reason, needed = _why_unclear(medians, margin, options.run_noise)
        return replace(decided, reason=reason, needed=needed)
    is_sure = min(runs) >= _SURE or ratio == Interval(1.0, 1.0, 1.0)
    return replace(decided, confidence=Confidence.CERTAIN if is_sure else Confidence.LIKELY)


def _verdict(ratio: Interval, margin: float, run_noise: float) -> ChangeVerdict:
    """Compare an interval with the margin; `run_noise`: share that the estimate has to exceed, too."""
    above, far = 1 + margin, 1 + max(margin, run_noise)
    if ratio == Interval(1.0, 1.0, 1.0):
        return ChangeVerdict.SAME
    if ratio.low > above and ratio.estimate > far:
        return ChangeVerdict.SLOWER
    if ratio.high < 1 / above and ratio.estimate < 1 / far:
        return ChangeVerdict.FASTER
    if ratio.low >= 1 / above and ratio.high <= above and run_noise <= margin:
        return ChangeVerdict.SAME
    return ChangeVerdict.UNCLEAR


def _why_unclear(medians: Sequence[Sequence[float]], margin: float, run_noise: float) -> tuple[str, int | None]:
    """Return why a verdict is unclear, and about how many runs a side would tell."""
    fewest = min(map(len, medians))
    if fewest == 1:
        reason = (
            f"runs of one program may differ by {run_noise:g} %" if run_noise else "what is compared differs too much"
        )
        return reason, runs_needed(0.0, 1.0) if run_noise else None
    several = [np.array(side) for side in medians if len(side) > 1]
    deviation = max(float(side.std(ddof=1) / side.mean()) for side in several)
    return "runs differ too much for so few of them", max(fewest + 1, runs_needed(deviation, max(margin, 1e-6)))
