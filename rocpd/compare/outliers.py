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
_ELSEWHERE = 0.2  # of what they make: outliers of the other side at most


@frozen
class LongSteps:
    """The steps of a run that are far longer than most of it.

    Args:
        numbers: which.
        times: how long each takes [ns].
        usual: the median of all steps [ns].
        count: how many steps there are.
    """

    numbers: tuple[int, ...]
    times: tuple[float, ...]
    usual: float
    count: int

    @property
    def excess(self) -> float:
        """How much longer a step is on average than without them [ns]."""
        return sum(time - self.usual for time in self.times) / self.count


def long_steps(run: RunProfile) -> LongSteps:
    """Return the steps of a run that stand out; what its first one takes is warm-up."""
    times = run.samples[STEP]
    usual = median(times)
    spread = median(abs(time - usual) for time in times)
    bound = usual + max(_LONGER * usual, _DEVIATIONS * spread)
    long = [step for step in zip(run.numbers[1:], times[1:], strict=True) if step[1] > bound]
    chosen = long if len(times) >= _FEWEST and len(long) <= _MOST * len(times) else []
    return LongSteps(tuple(number for number, _ in chosen), tuple(time for _, time in chosen), usual, len(times))


def outlying_steps(base: Sequence[RunProfile], new: Sequence[RunProfile]) -> tuple[str, bool] | None:
    """Return a sentence on few steps of one side that make much of the difference of the means, and if it is most."""
    sides = base, new
    if any(run.unit != STEPS or len(run.samples[STEP]) != run.units for side in sides for run in side):
        return None  # of runs of a history only medians are known
    before, after = (fmean(fmean(run.samples[STEP]) for run in side) for side in sides)
    change, side = after - before, sides[after > before]
    found = [[long_steps(run) for run in each] for each in sides]
    own, other = (fmean(some.excess for some in found[is_own]) for is_own in (after > before, after <= before))
    share = own / abs(change) if change else 0.0
    if abs(change) < _LEAST * before or share < _MUCH or other > _ELSEWHERE * own:
        return None
    which = [(run, some) for run, some in zip(side, found[after > before], strict=True) if some.numbers]
    names = " and ".join(_named(some) + (f" of {run.name}" if len(side) > 1 else "") for run, some in which)
    times = [time for _, some in which for time in some.times]
    usual, of_base = median(some.usual for _, some in which), "" if after > before else " of the base"
    verb, each = ("makes", "it takes") if len(times) == 1 else ("make", "on average they take")
    hidden = "which medians hide" if share >= _EXPLAINED else "and the verdict leaves that out"
    text = (
        f"{names}{of_base} {verb} {min(share, 1.0) * 100:.0f} % of the difference of the means, {hidden}: "
        f"{each} {readable(fmean(times), 'ns')}, the median is {readable(usual, 'ns')}"
    )
    return text, share >= _EXPLAINED


def _named(some: LongSteps) -> str:
    return f"step{'' if len(some.numbers) == 1 else 's'} {listed(some.numbers).replace(',', ', ')}"
