"""Decides whether one side is slower. Only runs decide: with one a side, most differences are unclear. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from rocpd.compare.options import DiffOptions
from rocpd.compare.statistics import Interval, largest_noise, mann_whitney, ratio_of_medians, runs_needed
from rocpd.frozen import frozen
from rocpd.summary.findings import Confidence
from rocpd.types import Floats

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
    if any(empty):
        who = "neither side" if all(empty) else "the base" if empty[0] else "the other side"
        reason = f"nothing to compare: {who} has {'any' if all(empty) else 'none'} of it"
        before, after = (float(np.median(side)) if side else 0.0 for side in medians)
        unclear, margin = ChangeVerdict.UNCLEAR, options.margin / 100
        return Decision(unclear, Confidence.HINT, (before, after), None, margin, runs, None, reason)
    ratio = ratio_of_medians(sides[0], sides[1])
    margin = max(options.margin / 100, largest_noise(sides[0]))
    is_single = min(runs) == 1
    verdict = _verdict(ratio, margin, options.run_noise / 100 if is_single else 0.0)
    confidence = Confidence.LIKELY if min(runs) < _SURE else Confidence.CERTAIN
    middle = float(np.median(medians[0])), float(np.median(medians[1]))
    p = None if is_single else mann_whitney(*medians)
    if verdict is not ChangeVerdict.UNCLEAR:
        is_equal = ratio == Interval(1.0, 1.0, 1.0)
        confidence = Confidence.CERTAIN if is_equal else confidence
        return Decision(verdict, confidence, middle, ratio, margin, runs, p)
    reason, needed = _why_unclear(medians, margin, options.run_noise)
    return Decision(verdict, Confidence.HINT, middle, ratio, margin, runs, p, reason, needed)


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
    deviation = max(_deviation(np.array(side)) for side in medians if len(side) > 1)
    return "runs differ too much for so few of them", max(fewest + 1, runs_needed(deviation, max(margin, 1e-6)))


def _deviation(values: Floats) -> float:
    return float(values.std(ddof=1) / values.mean())
