"""Says which few steps make much of the difference of the means of two sides, which medians, that decide, hide."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median

from rocpd.base import frozen
from rocpd.compare.options import STEP
from rocpd.compare.run_profile import STEPS, RunProfile
from rocpd.facts.communication.collectives import listed
from rocpd.table.human import readable

_LEAST = 0.01  # of the mean of the base: what changes by less is not explained
_LONGER, _DEVIATIONS = 0.05, 6  # of the median, and median deviations, above the median: an outlier
_FEWEST, _MOST = 4, 1 / 3  # steps to tell outliers from; share of them that outliers are at most
_EXPLAINED, _MUCH = 0.7, 0.2  # shares of the change: of outliers that make it, and of those that are worth saying
_MOST_SAID = 3  # steps whose time is said
_ELSEWHERE = 0.2  # of what they make: outliers of the other side at most


@frozen
class LongSteps:
    """The steps of a run that are far longer than most of it.

    Args:
        numbers: which.
        times: how long each takes [ns].
        longer: how much longer than usual, beyond what the same step takes longer on the other side [ns].
        usual: the median of all steps [ns].
        count: how many steps there are.
    """

    numbers: tuple[int, ...]
    times: tuple[float, ...]
    longer: tuple[float, ...]
    usual: float
    count: int

    @property
    def excess(self) -> float:
        """How much longer a step is on average than without them [ns]."""
        return sum(self.longer) / self.count


def long_steps(run: RunProfile, others: Sequence[RunProfile] = ()) -> LongSteps:
    """Return the steps of a run that stand out, and less in `others`; what its first one takes is warm-up."""
    usual, longer = median(run.samples[STEP]), _longer(run)
    least = max(_LONGER * usual, _DEVIATIONS * median(map(abs, longer.values())))
    for other in others:  # a step that stands out there as well may be longer by as much, or by the same share
        factor = max(1.0, usual / (median(other.samples[STEP]) or usual))
        for number, time in _longer(other).items():
            if number in longer:
                longer[number] -= factor * max(0.0, time) / len(others)
    chosen = [number for number in run.numbers[1:] if longer[number] > least]
    if run.units < _FEWEST or len(chosen) > _MOST * run.units:
        chosen = []
    taken = dict(zip(run.numbers, run.samples[STEP], strict=True))
    return LongSteps(
        tuple(chosen), tuple(map(taken.__getitem__, chosen)), tuple(map(longer.__getitem__, chosen)), usual, run.units
    )


def _longer(run: RunProfile) -> dict[int, float]:
    """Return how much longer than the median each step of a run takes [ns]."""
    times = run.samples[STEP]
    usual = median(times)
    return {number: time - usual for number, time in zip(run.numbers, times, strict=True)}


def outlying_steps(base: Sequence[RunProfile], new: Sequence[RunProfile]) -> tuple[str, bool] | None:
    """Return a sentence on few steps of one side that make much of the difference of the means, and if it is most."""
    sides = base, new
    if any(run.unit != STEPS or len(run.samples[STEP]) != run.units for side in sides for run in side):
        return None  # of runs of a history only medians are known
    before, after = (fmean(fmean(run.samples[STEP]) for run in side) for side in sides)
    change, side = after - before, sides[after > before]
    found = [[long_steps(run, others) for run in each] for each, others in ((base, new), (new, base))]
    own, other = (fmean(some.excess for some in found[is_own]) for is_own in (after > before, after <= before))
    share = own / abs(change) if change else 0.0
    if abs(change) < _LEAST * before or share < _MUCH or other > _ELSEWHERE * own:
        return None
    which = [(run, some) for run, some in zip(side, found[after > before], strict=True) if some.numbers]
    names = " and ".join(_named(some) + (f" of {run.name}" if len(side) > 1 else "") for run, some in which)
    steps = [step for _, some in which for step in zip(some.numbers, some.times, strict=True)]
    usual, of_base = median(some.usual for _, some in which), "" if after > before else " of the base"
    verb, taken = ("makes", f"it takes {readable(steps[0][1], 'ns')}") if len(steps) == 1 else ("make", _taken(steps))
    hidden = "which medians hide" if share >= _EXPLAINED else "and the verdict leaves that out"
    text = (
        f"{names}{of_base} {verb} {min(share, 1.0) * 100:.0f} % of the difference of the means, {hidden}: "
        f"{taken}, the median is {readable(usual, 'ns')}"
    )
    return text, share >= _EXPLAINED


def _taken(steps: Sequence[tuple[int, float]]) -> str:
    """Say how long each of several steps takes, of many the longest ones."""
    (first, time), *rest = sorted(steps, key=lambda step: -step[1])[:_MOST_SAID]
    more = "".join(f", step {number} {readable(also, 'ns')}" for number, also in rest)
    return f"step {first} takes {readable(time, 'ns')}{more}"


def _named(some: LongSteps) -> str:
    return f"step{'' if len(some.numbers) == 1 else 's'} {listed(some.numbers).replace(',', ', ')}"
