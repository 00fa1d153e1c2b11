"""Says where the difference of two sides comes from. Every level adds up to it, to the nanosecond.

Shares of a unit are rounded so that parts add up to their sum (`apportioned`), on each side alone: so differences of
whole numbers are left, which add up too, and change their signs when the sides change places.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from statistics import median
from typing import NamedTuple

from rocpd.compare.kernel_pairs import KernelIdentity, KernelPair, MatchLevel
from rocpd.compare.launches import CodeFacts, Grid, KernelLaunch
from rocpd.compare.run_profile import PARTS, UNMATCHED, WAITING, LaunchUse, RunProfile
from rocpd.frozen import frozen

_CANCEL = 3  # times the difference: parts that change by so much together cancel each other


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


@frozen
class KernelDifference(Difference):
    """What a kernel, or several that are taken for one, takes of a unit.

    The change of its time is `calls` + `work` + `speed` + `overlap` + `waiting`, exactly.

    Args:
        pair: the kernels.
        calls_per_unit: of both sides.
        calls: how much of the change is that of the number of calls, each as long as in the base [ns].
        work: that of the length of calls on another grid [ns].
        speed: that of the length of calls on the same grid [ns].
        overlap: that of how much of these is hidden behind other work [ns].
        waiting: that of waiting for other ranks, and of what is not matched [ns].
        ratio: how many times as long a call is, by medians, on equal grids where there are any; None: unknown, or
            communication, which waits.
        is_other_work: whether its grids differ.
        launched: what differs in how it is launched and built.
        p: of the runs of both sides, by Mann-Whitney, adjusted by Holm; None with one run a side.
    """

    pair: KernelPair = KernelPair(MatchLevel.NEW, (), ())
    calls_per_unit: tuple[float, float] = (0.0, 0.0)
    calls: int = 0
    work: int = 0
    speed: int = 0
    overlap: int = 0
    waiting: int = 0
    ratio: float | None = None
    is_other_work: bool = False
    launched: str = ""
    p: float | None = None


@frozen
class Attribution:
    """Where a difference comes from.

    Args:
        unit: time of a unit.
        parts: its parts.
        kernels: kernels and copies, those that change most first; they add up to the parts that are no idle time.
        categories, paths: the same by what kernels do, and by marker ranges.
    """

    unit: Difference
    parts: Mapping[str, Difference]
    kernels: Sequence[KernelDifference]
    categories: Mapping[str, Difference] = field(default_factory=dict)
    paths: Mapping[str, Difference] = field(default_factory=dict)

    @property
    def cancels(self) -> bool:
        """Whether parts change by far more than the unit."""
        return sum(abs(part.change) for part in self.parts.values()) > _CANCEL * abs(self.unit.change)

    @property
    def like_for_like(self) -> float:
        """Share of the kernel time of the base whose kernels do the same work per call."""
        computing = [kernel for kernel in self.kernels if kernel.pair.base and kernel.pair.base[0].kind == "compute"]
        total = sum(kernel.base for kernel in computing)
        return sum(kernel.base for kernel in computing if not kernel.is_other_work) / total if total else 1.0


def attribute(base: Side, new: Side, pairs: Sequence[KernelPair]) -> Attribution:
    """Return where the difference of two sides comes from."""
    parts = base.parts(), new.parts()
    by_part = {part: Difference(parts[0].get(part, 0), parts[1].get(part, 0)) for part in PARTS}
    known = {part: times for part, times in by_part.items() if times.base or times.new}
    kernels = [_kernel(pair, base, new) for pair in pairs]
    ordered = sorted(kernels, key=lambda kernel: (-abs(kernel.change), -kernel.base, kernel.pair))
    return Attribution(
        Difference(base.total, new.total),
        known,
        ordered,
        _by(base, new, lambda launch: launch.category),
        _by(base, new, lambda launch: launch.path),
    )


def _by(base: Side, new: Side, key: Callable[[KernelLaunch], str]) -> dict[str, Difference]:
    sums: list[dict[str, int]] = [{}, {}]
    for side, of_side in zip((base, new), sums, strict=True):
        for launch, share in side.shares.items():
            of_side[key(launch)] = of_side.get(key(launch), 0) + share.total
    every = sorted({*sums[0], *sums[1]})
    times = {name: Difference(sums[0].get(name, 0), sums[1].get(name, 0)) for name in every}
    return dict(sorted(times.items(), key=lambda item: (-abs(item[1].change), item[0])))


class _Sum(NamedTuple):
    """What a kernel does on one grid, in a unit; times in ns.

    Args:
        calls: how often it runs.
        own: time that it adds to the unit, without waiting.
        duration: sum of durations, without the waiting that shows.
        median_calls: median of a call, times calls.
    """

    calls: float = 0.0
    own: int = 0
    duration: float = 0.0
    median_calls: float = 0.0

    def plus(self, other: _Sum) -> _Sum:
        calls, own, duration, median_calls = other
        return _Sum(self.calls + calls, self.own + own, self.duration + duration, self.median_calls + median_calls)


def _kernel(pair: KernelPair, base: Side, new: Side) -> KernelDifference:
    sides = _shares(base, pair.base), _shares(new, pair.new)
    grids = [_by_grid(side) for side in sides]
    totals = [sum(share.total for _, share in side) for side in sides]
    waiting = [_part_of(side, (WAITING, UNMATCHED)) for side in sides]
    effects = _effects(*grids)
    calls, work, speed = map(round, effects)
    others = [_sum(grid for key, grid in grids[side].items() if key not in grids[1 - side]) for side in (0, 1)]
    is_other = bool(others[0].calls and others[1].calls)
    waited = waiting[1] - waiting[0]
    return KernelDifference(
        totals[0],
        totals[1],
        pair,
        (_sum(grids[0].values()).calls, _sum(grids[1].values()).calls),
        calls,
        work,
        speed,
        totals[1] - totals[0] - calls - work - speed - waited,
        waited,
        None if any(launch.kind == "communication" for launch, _ in sides[0]) else _ratio(*grids),
        is_other,
        _launched(*([launch for launch, _ in side] for side in sides)),
    )


def _shares(side: Side, kernels: Iterable[KernelIdentity]) -> list[tuple[KernelLaunch, UnitShare]]:
    wanted = set(kernels)
    return [
        (launch, share)
        for launch, share in side.shares.items()
        if KernelIdentity(launch.kind, launch.symbol, launch.name, launch.category) in wanted
    ]


def _part_of(side: Iterable[tuple[KernelLaunch, UnitShare]], parts: Sequence[str]) -> int:
    return sum(time for _, share in side for part, time in share.times.items() if part in parts)


def _by_grid(side: Iterable[tuple[KernelLaunch, UnitShare]]) -> dict[Grid | None, _Sum]:
    grids: dict[Grid | None, _Sum] = {}
    for launch, share in side:
        waited = _part_of([(launch, share)], (WAITING, UNMATCHED))
        median_calls = (share.median or 0.0) * share.calls
        added = _Sum(share.calls, share.total - waited, share.duration - waited, median_calls)
        grids[launch.grid] = grids.get(launch.grid, _Sum()).plus(added)
    return grids


def _sum(sums: Iterable[_Sum]) -> _Sum:
    total = _Sum()
    for each in sums:
        total = total.plus(each)
    return total


def _effects(base: Mapping[Grid | None, _Sum], new: Mapping[Grid | None, _Sum]) -> tuple[float, float, float]:
    """Return how much of a change is that of the number of calls, of other work in a call, and of its length [ns]."""
    calls = work = speed = 0.0
    for grid in base.keys() & new.keys():
        calls += _of_calls(base[grid], new[grid])
        speed += _of_speed(base[grid], new[grid])
    gone = _sum(each for grid, each in base.items() if grid not in new)
    added = _sum(each for grid, each in new.items() if grid not in base)
    if gone.calls and added.calls:
        more = _of_calls(gone, added)
        calls += more
        work += added.own - gone.own - more
    else:
        calls += added.own - gone.own
    return calls, work, speed


def _of_speed(base: _Sum, new: _Sum) -> float:
    """Return how much calls add that take longer, if as much of them is hidden as in the base [ns]."""
    if not (base.calls and new.calls and base.duration > 0):
        return 0.0
    longer = new.duration / new.calls - base.duration / base.calls
    return new.calls * longer * base.own / base.duration


def _of_calls(base: _Sum, new: _Sum) -> float:
    return (new.calls - base.calls) * base.own / base.calls if base.calls else float(new.own - base.own)


def _ratio(base: Mapping[Grid | None, _Sum], new: Mapping[Grid | None, _Sum]) -> float | None:
    """Return how many times as long a call is, by medians; each grid counts by its calls in the base."""
    common = [grid for grid in base if grid in new and base[grid].median_calls and new[grid].calls]
    if common:
        now = sum(new[grid].median_calls / new[grid].calls * base[grid].calls for grid in common)
        return now / sum(base[grid].median_calls for grid in common)
    before, after = _sum(base.values()), _sum(new.values())
    if not (before.median_calls and after.calls):
        return None
    return (after.median_calls / after.calls) / (before.median_calls / before.calls)


def _launched(base: Sequence[KernelLaunch], new: Sequence[KernelLaunch]) -> str:
    """Say what differs in how a kernel is launched and built."""
    if not base or not new:
        return ""
    says: list[str] = []
    grids = [sorted({_grid(launch.grid) for launch in side if launch.grid}) for side in (base, new)]
    if all(grids) and not set(grids[0]) & set(grids[1]):
        says.append(f"grid {', '.join(grids[0])} -> {', '.join(grids[1])}")
    words = ("VGPR", "AGPR", "SGPR", "LDS", "scratch", "code object")
    for name, word in zip(CodeFacts._fields, words, strict=True):
        values = [sorted({getattr(launch.code, name) for launch in side} - {None}) for side in (base, new)]
        if all(values) and values[0] != values[1]:
            says.append(f"{word} {', '.join(map(str, values[0]))} -> {', '.join(map(str, values[1]))}")
    return "; ".join(says)


def _grid(grid: Grid) -> str:
    x, y, z, *group = grid
    return f"{x}x{y}x{z}/{'x'.join(map(str, group))}"


def explaining(rows: Sequence[Difference], share: float = 0.9) -> Iterator[int]:
    """Yield the numbers of rows, in their order, until these make up a share of all changes."""
    total, seen = sum(abs(row.change) for row in rows), 0
    for number, row in enumerate(rows):
        if not row.change or seen >= share * total:
            return
        seen += abs(row.change)
        yield number
