"""Decides whether one side is slower, with the statistics for it. Knows nothing of traces.

Runs are the replicates: they are measured again when nothing changed. Events of one run are not: with one run a side,
the deviation of runs is given or assumed. Within a run its steps vary, and neighbours are alike.

Step times follow temperature and power: a slow step comes after a slow one, so many of them carry less information than
as many independent ones. So a series is modelled as a Gauss-Markov process: logarithms of values around a level, with a
correlation of rho to the power of the number of steps between. The rho is not known: each has the weight that the
series gives it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from statistics import NormalDist, geometric_mean

import numpy as np

from rocpd.base import Flags, Floats, Ints, frozen
from rocpd.base.student import survival
from rocpd.compare.options import RUN_NOISE, DiffOptions
from rocpd.summary.findings import Confidence

RHOS: Floats = np.linspace(0.0, 0.99, 34)
"""Possible correlations of neighbours; negative ones count as none."""

_LAGS: Ints = np.arange(1, 4000)  # beyond, the largest rho is negligible
_LOSSES: Floats = np.array(
    [(math.pi / 2 + 2 * np.arcsin(rho**_LAGS).sum()) / (1 + 2 * (rho**_LAGS).sum()) for rho in RHOS]
)
"""Variance of a median as times that of a mean: signs of normal values that are correlated by r are correlated by
2 / pi arcsin(r)."""

_NO_DEVIATION = 1e-12  # of logarithms: used in place of 0
_MOST = 200  # degrees of freedom; more make no difference
_NEGLIGIBLE = 1e-3  # share of the largest weight
_LEAST_APART, _LEAST_CHANGE = 3, math.log(1.05)  # values before and after a lasting change; its least size
_SUDDEN = 6 * 1.4826  # median changes from a value to the next
_OUTSIDE, _FEW = 3 * 1.4826, 0.25  # median deviations; share of values that may lie farther out


@frozen
class Chance:
    """The distribution of the error of an estimate: a mixture of Student's t distributions.

    Args:
        weights: weight of each distribution; their sum is 1.
        errors: standard error of each.
        freedoms: degrees of freedom of each, 1 at least.
    """

    weights: Sequence[float]
    errors: Sequence[float]
    freedoms: Sequence[int]

    def beyond(self, distance: float) -> float:
        """Return the probability that an estimate misses by at least a distance, either way."""
        parts = zip(self.weights, self.errors, self.freedoms, strict=True)
        return sum(
            weight * 2 * survival(distance / max(error, _NO_DEVIATION), freedom) for weight, error, freedom in parts
        )

    def half_width(self, confidence: float) -> float:
        """Return the largest error of an estimate with a confidence.

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
        likelihoods: logarithms of the likelihood of the series, without that of its deviation.
        squares: sums of squares of the values without the influence of neighbours and levels.
        variances: variances of its share of the estimate, in units of the variance of a value.
        freedom: degrees of freedom of the squares.
    """

    likelihoods: Floats
    squares: Floats
    variances: Floats
    freedom: int


def of_level(values: Floats, share: float = 1.0) -> Doubt:
    """Return the error of the level, the median, of a series.

    Args:
        values: logarithms, in order of time.
        share: weight of the level in the estimate.
    """
    if at := lasting_change(values):  # a level that changes once is no wandering level: each part knows its own
        values = values[at:] if 2 * at < len(values) else values[:at]
    return of_contrast(np.zeros(len(values), bool), values, np.arange(len(values)), share)


def lasting_change(values: Floats) -> int:
    """Return the place from which on all values lie above, or below, all values before it; 0: there is none.

    The change is sudden, for slow ones happen by chance: far larger than that from other values to the next.

    Args:
        values: logarithms, in order of time.
    """
    if len(values) < 2 * _LEAST_APART:
        return 0
    changes = np.diff(values)
    at = int(np.abs(changes).argmax()) + 1
    before, after = (values[:at], values[at:]) if changes[at - 1] > 0 else (values[at:], values[:at])
    is_far = abs(changes[at - 1]) > max(_SUDDEN * float(np.median(np.abs(changes))), _LEAST_CHANGE)
    are_apart = min(at, len(values) - at) >= _LEAST_APART and float(before.max()) < float(after.min())
    return at if is_far and are_apart else 0


def of_contrast(is_other: Flags, values: Floats, places: Ints, share: float = 1.0) -> Doubt:
    """Return the error of the difference between the medians of some values of a series and of the others.

    Args:
        is_other: which values are on the other side; none: the level of the values is meant.
        values: logarithms, in order of time.
        places: place of each value in the series, ascending.
        share: weight of the difference in the estimate.
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
    """Return the sums of products of weights 0, 1, 2 … places apart, as far as values are alike there."""
    span = int(places[-1] - places[0]) + 1
    dense = np.zeros(1 << span.bit_length() + 1)
    dense[places - places[0]] = weights
    sums: Floats = np.fft.irfft(np.abs(np.fft.rfft(dense)) ** 2, len(dense))[: min(span, len(_LAGS))]
    sums[1:] *= 2
    return sums


def _fitted(values: Floats, columns: Floats, gaps: Ints, rho: float) -> tuple[float, float]:
    """Return the logarithm of the likelihood of a rho, without that of the deviation, and the sum of squares left.

    The levels, one for each of `columns`, are integrated out, as none of them is known.
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
    """Return values with outliers, if they are few, drawn nearer to the others: a median hardly depends on them."""
    middle = float(np.median(values))
    most = _OUTSIDE * float(np.median(np.abs(values - middle)))
    is_few = np.count_nonzero(np.abs(values - middle) > most) <= max(len(values) > 4, _FEW * len(values))
    return np.clip(values, middle - most, middle + most) if most and is_few else values


def together(doubts: Sequence[Doubt], known: float = 0.0) -> Chance | None:
    """Return the error of an estimate from several series, all of whose values vary alike.

    How they vary is not known. Each rho has a weight by how well it explains the series, and the deviation is
    integrated out: Zellner, An Introduction to Bayesian Inference in Econometrics, 1971, chapter 4.

    Args:
        doubts: errors of the series.
        known: variance that is known, independent of the series.

    Returns:
        None: nothing shows how values vary.
    """
    freedom = sum(doubt.freedom for doubt in doubts)
    if not freedom:
        return Chance([1.0], [math.sqrt(known)], [_MOST]) if known else None
    squares = np.maximum(np.sum([doubt.squares for doubt in doubts], axis=0), _NO_DEVIATION**2)
    likelihoods = np.sum([doubt.likelihoods for doubt in doubts], axis=0) - freedom / 2 * np.log(squares)
    if known:  # part of a drift longer than a series; its size is calibrated
        likelihoods += np.log1p(-RHOS) / 4
    weights = np.exp(likelihoods - likelihoods.max())
    chosen = np.flatnonzero(weights > _NEGLIGIBLE)
    variances = (squares / freedom * np.sum([doubt.variances for doubt in doubts], axis=0))[chosen]
    total = known + variances
    # Satterthwaite, Biometrics Bulletin 2, 1946: the known variance has all degrees of freedom.
    freedoms = np.clip(freedom * (total / variances) ** 2, 1, _MOST).astype(int)
    shares = weights[chosen] / weights[chosen].sum()
    return Chance(shares.tolist(), np.sqrt(total).tolist(), freedoms.tolist())


_EXACT = 400  # n * m up to which the distribution of U is counted
_TINY = 1e-3  # used in place of 0, which has no logarithm; values are whole numbers
_NORMAL = NormalDist()
_CONFIDENCE = 0.95  # of intervals
_WIDEST = math.log(1e3)  # half width of an interval above which it means nothing
_RARE = 0.01  # chance below which a difference is likely
_FEWEST_ALIKE, _FAR = 5, 6  # steps that are alike; least distance of the other steps in deviations of these
_SURE = 4  # runs a side from which on a verdict is certain
_NO_ERROR = Chance([1.0], [0.0], [1])


class ChangeVerdict(StrEnum):
    """The answer to whether the other side is slower than the base."""

    SLOWER = "slower"
    FASTER = "faster"
    SAME = "same"
    UNCLEAR = "unclear"


@frozen
class Interval:
    """An estimate with its 95 % confidence interval; without ends the interval is not known."""

    estimate: float
    low: float | None = None
    high: float | None = None


@frozen
class Decision:
    """The decision whether a value changed.

    Args:
        verdict: whether it changed.
        confidence: certainty of the verdict.
        medians: values of both sides: the median of one run, the geometric mean of the medians of several.
        ratio: the new value as times the old one, with its interval; None without values.
        margin: share up to which a difference does not matter.
        runs: numbers of runs of both sides.
        noise: standard deviation of runs used for the interval, as a share; None within a run.
        is_assumed: whether this deviation is assumed, given neither by the user nor by other runs.
        p: probability of runs as different by chance (Mann-Whitney); None with one run a side.
        reason: why the verdict is unclear.
        needed: about how many runs a side would make it clear, if it is unclear.
    """

    verdict: ChangeVerdict
    confidence: Confidence
    medians: tuple[float, float]
    ratio: Interval | None
    margin: float
    runs: tuple[int, int]
    noise: float | None = None
    is_assumed: bool = False
    p: float | None = None
    reason: str = ""
    needed: int | None = None


def decide(base: Sequence[Sequence[float]], new: Sequence[Sequence[float]], options: DiffOptions) -> Decision:
    """Decide whether values changed from some runs to others.

    The interval is Student's, for the logarithms of the medians of runs. If a side has one run, and `options` give the
    deviation of runs or no third run shows it, then that deviation counts together with the error of the level within
    a run.

    Args:
        base, new: values of each run, in order of time.
        options: the margin, and the deviation of runs.
    """
    sides = [[np.array(run, np.float64) for run in side if len(run)] for side in (base, new)]
    medians = [[float(np.median(run)) for run in side] for side in sides]
    unclear = _nothing_yet(medians, options)
    if unclear.reason:
        return unclear
    before, after = unclear.medians
    count, fewest = sum(unclear.runs), min(unclear.runs)
    is_seen = count > 2 and (fewest > 1 or options.run_noise is None)
    chance: Chance | None
    if is_seen:
        noise, chance = _of_runs([np.log(side) for side in medians])
    else:
        noise = (RUN_NOISE if options.run_noise is None else options.run_noise) / 100
        doubts = [of_level(_logarithms(run), 1 / len(side)) for side in sides for run in side]
        chance = together(doubts, sum(noise**2 / len(side) for side in sides))
    is_identical = unclear.runs[0] == unclear.runs[1] and all(map(np.array_equal, *sides))
    is_assumed = not is_seen and options.run_noise is None
    p = None if fewest == 1 else mann_whitney(*medians)
    known = replace(unclear, noise=noise, is_assumed=is_assumed, p=p)
    # The margin prevents false alarms only if runs deviate by less.
    needs_rare = not is_seen or noise > known.margin
    decided = _decided(known, after / before, _NO_ERROR if is_identical else chance, needs_rare=needs_rare)
    if decided.verdict is ChangeVerdict.UNCLEAR:
        needed = runs_needed(0.0 if is_assumed else noise, max(decided.margin, 1e-6))
        return replace(decided, needed=max(fewest + 1, needed))
    if any(len(side) == 1 and len(side[0]) == 1 for side in sides):  # one side is a single number
        return replace(decided, confidence=Confidence.HINT)
    is_sure = decided.confidence is Confidence.LIKELY and (fewest >= _SURE or is_identical)
    return replace(decided, confidence=Confidence.CERTAIN) if is_sure else decided


def _of_runs(levels: Sequence[Floats]) -> tuple[float, Chance]:
    """Return the deviation of runs, and the error of the difference of the means of both sides.

    Runs of both sides are taken to deviate alike, unless those of the side with fewer deviate more: then Welch's
    interval holds, Biometrika 34, 1947.

    Args:
        levels: levels of the runs of each side, as logarithms: three at least.
    """
    freedom, of_means = sum(map(len, levels)) - 2, sum(1 / len(side) for side in levels)
    variance = sum(float(side.var()) * len(side) for side in levels) / freedom
    if min(map(len, levels)) > 1:
        each = [float(side.var(ddof=1)) / len(side) for side in levels]
        if sum(each) > variance * of_means * 1.001:
            variance = sum(each) / of_means
            doubt = sum(part**2 / (len(side) - 1) for part, side in zip(each, levels, strict=True))
            freedom = int(sum(each) ** 2 / doubt)
    return math.sqrt(variance), Chance([1.0], [math.sqrt(variance * of_means)], [freedom])


def decide_steps(base: Mapping[int, float], new: Mapping[int, float], options: DiffOptions) -> Decision:
    """Decide whether some steps of a run differ from others of it.

    Args:
        base, new: place of each step in the run -> its value.
        options: the margin.
    """
    unclear = _nothing_yet([[float(np.median(list(side.values())))] for side in (base, new)], options)
    if unclear.reason:
        return unclear
    before, after = unclear.medians
    chance: Chance | None = _NO_ERROR
    if base != new:  # steps on both sides don't show how far the sides are apart by chance
        others, chosen = base.keys() - new.keys() or base.keys(), new.keys() - base.keys() or new.keys()
        places = np.array(sorted(others | chosen))
        every = {**base, **new}
        values = _logarithms([every[place] for place in places.tolist()])
        chance = together([of_contrast(np.isin(places, list(chosen)), values, places)])
    return _decided(unclear, after / before, chance, needs_rare=True)


def decide_ranks(base: Sequence[float], new: Sequence[float], options: DiffOptions) -> Decision:
    """Decide whether ranks of a run differ from others of it, step by step: steps slow on all ranks are on both sides.

    Args:
        base, new: values of both, for the same steps.
        options: the margin.
    """
    unclear = _nothing_yet([[float(np.median(side))] for side in (base, new)], options)
    if unclear.reason:
        return unclear
    differences = _logarithms(new) - _logarithms(base)
    chance = together([of_level(differences)]) if differences.any() else _NO_ERROR
    decided = _decided(unclear, math.exp(float(np.median(differences))), chance, needs_rare=True)
    is_told = decided.verdict in (ChangeVerdict.SLOWER, ChangeVerdict.FASTER)
    change = sum(new) / sum(base) - 1
    # A difference in some steps, which the median hides. Ranks shorter in these are not faster: another one is slow.
    if is_told or change <= unclear.margin or not steps_apart(base, new, options):
        return decided
    return replace(decided, verdict=ChangeVerdict.SLOWER, confidence=Confidence.HINT, reason="")


def steps_apart(base: Sequence[float], new: Sequence[float], options: DiffOptions) -> list[int]:
    """Return the places of steps in which both sides are far apart, if they are alike in the others; else none.

    Alike means within the margin, far apart beyond a gap that is wide compared with the deviation of the other steps.

    >>> steps_apart([10] * 8, [10, 16, 10.1, 15, 9.9, 16, 10, 10], DiffOptions())
    [1, 3, 5]

    Args:
        base, new: values of both, for the same steps.
        options: the margin.
    """
    differences, margin = _logarithms(new) - _logarithms(base), math.log1p(options.margin / 100)
    fewest = max(_FEWEST_ALIKE, math.ceil(_FEW * len(differences)))
    for sign in (1, -1):
        ordered = np.sort(sign * differences)
        for count in range(fewest, len(ordered)):
            least = max(margin, _FAR * float(ordered[:count].std()))
            is_alike = np.count_nonzero(np.abs(ordered[:count]) <= margin) >= fewest
            if is_alike and ordered[count] - ordered[count - 1] > least:
                return np.flatnonzero(sign * differences >= ordered[count]).tolist()
    return []


def _nothing_yet(medians: Sequence[Sequence[float]], options: DiffOptions) -> Decision:
    """Return the decision on the medians of the runs of both sides alone; it has a reason if these are 0."""
    base, new = map(_middle, medians)
    reason = ""
    if not (base and new):
        who = "the base" if new else "the other side" if base else "neither side"
        reason = f"nothing to compare: {who} has {'none' if base or new else 'any'} of it"
    margin, runs = options.margin / 100, (len(medians[0]), len(medians[1]))
    return Decision(ChangeVerdict.UNCLEAR, Confidence.HINT, (base, new), None, margin, runs, reason=reason)


def _middle(medians: Sequence[float]) -> float:
    """Return the geometric mean of medians; 0 if one of them is 0, or there are none."""
    if len(medians) == 1:
        return medians[0]
    return geometric_mean(medians) if medians and all(medians) else 0.0


def _logarithms(values: Sequence[float] | Floats) -> Floats:
    return np.log(np.maximum(values, _TINY))


def _decided(known: Decision, ratio: float, chance: Chance | None, *, needs_rare: bool) -> Decision:
    """Return a decision with its verdict.

    Args:
        known: the decision without a verdict.
        ratio: ratio of the sides.
        chance: error of its logarithm; None: not known.
        needs_rare: whether a difference that chance explains in more than one case of a hundred is unclear.
    """
    half = chance.half_width(_CONFIDENCE) if chance else math.inf
    if not chance or half > _WIDEST:
        return replace(known, ratio=Interval(ratio), reason="too few values to say what chance does")
    decided = replace(known, ratio=Interval(ratio, ratio * math.exp(-half), ratio * math.exp(half)))
    change, margin = abs(math.log(ratio)), math.log1p(known.margin)
    probability = chance.beyond(change)
    is_rare = probability <= _RARE
    if change - half > margin:
        if needs_rare and not is_rare:
            return replace(decided, reason=f"chance explains it in {probability * 100:.0f} of 100 cases")
        verdict = ChangeVerdict.SLOWER if ratio > 1 else ChangeVerdict.FASTER
        return replace(decided, verdict=verdict, confidence=Confidence.LIKELY if is_rare else Confidence.HINT)
    if change + half <= margin:
        return replace(decided, verdict=ChangeVerdict.SAME, confidence=Confidence.LIKELY)
    is_noisy = half > margin
    return replace(decided, reason=f"too noisy to tell {known.margin * 100:.3g} %" if is_noisy else "at the margin")


def mann_whitney(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the probability that two samples of one distribution lie as far apart.

    Two-sided. Without ties and for few values the distribution of U is counted; else it is normal, corrected for ties
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
    return 1.0 if variance <= 0 else min(1.0, 2 * _NORMAL.cdf(-(u - n * m / 2 - 0.5) / math.sqrt(variance)))


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
    """Return the probabilities adjusted for their number by Holm, which bounds the probability of any error.

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
        deviation: standard deviation of runs of one side, as a share of their mean.
        difference: difference to be shown, as a share.

    >>> runs_needed(0.02, 0.03), runs_needed(0.001, 0.03)
    (7, 4)
    """
    return max(4, math.ceil((2 * 1.96 * deviation / difference) ** 2))
