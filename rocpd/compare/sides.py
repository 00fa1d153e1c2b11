"""Owns the mean unit of a side, in whole nanoseconds that add up.

Shares of a unit are rounded so that parts add up to their sum (`apportioned`), on each side alone: so differences of
whole numbers are left, which add up too, and change their signs when the sides change places.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

from rocpd.compare.launches import KernelLaunch
from rocpd.compare.run_profile import PARTS, LaunchUse, RunProfile
from rocpd.frozen import frozen


class UnitShare(NamedTuple):
    """What a kind of launch takes of one unit of one side, on average.

    Args:
        calls: how often.
        duration: sum of durations [ns].
        times: part -> time [ns], whole numbers that add up with all others.
        median: of one [ns].
    """

    calls: float
    duration: float
    times: Mapping[str, int]
    median: float | None

    @property
    def total(self) -> int:
        """Time in all parts [ns]."""
        return sum(self.times.values())


@frozen
class Side:
    """The mean unit of one side, as whole numbers [ns].

    Args:
        shares: launch -> what it takes of a unit.
        idle: idle part -> time.
    """

    shares: Mapping[KernelLaunch, UnitShare]
    idle: Mapping[str, int]

    def parts(self) -> dict[str, int]:
        """Return the time of each part."""
        parts = dict.fromkeys(PARTS, 0)
        for share in self.shares.values():
            for part, time in share.times.items():
                parts[part] += time
        return {**parts, **self.idle}

    @property
    def total(self) -> int:
        """Time of the mean unit."""
        return sum(self.parts().values())


def apportioned(shares: Sequence[int], divisor: int) -> list[int]:
    """Divide whole numbers so that the results add up to their sum by the divisor, rounded down.

    >>> apportioned([5, 5, 5], 2), sum([5, 5, 5]) // 2
    ([2, 3, 2], 7)
    """
    result, before, total = [], 0, 0
    for share in shares:
        total += share
        result.append(total // divisor - before)
        before = total // divisor
    return result


def side_of(runs: Sequence[RunProfile]) -> Side:
    """Return the mean unit of all runs of a side."""
    scale = math.lcm(*(run.scale for run in runs))
    units = sum(run.units for run in runs)
    uses: dict[KernelLaunch, list[LaunchUse]] = {}
    calls: dict[KernelLaunch, int] = {}
    durations: dict[KernelLaunch, int] = {}
    times: dict[tuple[int, str, KernelLaunch | None], int] = {}
    for run in runs:
        factor = scale // run.scale
        for use in run.uses:
            uses.setdefault(use.launch, []).append(use)
            calls[use.launch] = calls.get(use.launch, 0) + factor * use.calls
            durations[use.launch] = durations.get(use.launch, 0) + factor * use.time
            for part, time in use.exposed.items():
                key = PARTS.index(part), part, use.launch
                times[key] = times.get(key, 0) + factor * time
        for part, time in run.idle.items():
            times[len(PARTS), part, None] = times.get((len(PARTS), part, None), 0) + factor * time
    ordered = sorted(times, key=lambda key: (key[0], key[1], repr(key[2])))
    shares = dict(zip(ordered, apportioned([times[key] for key in ordered], scale * units), strict=True))
    by_launch: dict[KernelLaunch, dict[str, int]] = {}
    for (_, part, launch), time in shares.items():
        if launch is not None:
            by_launch.setdefault(launch, {})[part] = time
    of_launches = {
        launch: UnitShare(
            calls[launch] / (scale * units), durations[launch] / (scale * units), by_launch[launch], _median(some)
        )
        for launch, some in uses.items()
    }
    return Side(of_launches, {part: time for (_, part, launch), time in shares.items() if launch is None})


def _median(uses: Sequence[LaunchUse]) -> float | None:
    known = [use.median for use in uses if use.median is not None]
    return median(known) if known else None


@frozen
class Difference:
    """A time of both sides, per unit [ns]."""

    base: int
    new: int

    @property
    def change(self) -> int:
        """How much longer it is."""
        return self.new - self.base
