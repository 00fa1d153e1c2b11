"""Says what the change of a kernel is: other calls, other work, other speed, other overlap, other waiting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rocpd.compare.kernel_pairs import KernelIdentity, KernelPair, MatchLevel
from rocpd.compare.launches import CodeFacts, Grid, KernelLaunch
from rocpd.compare.run_profile import UNMATCHED, WAITING
from rocpd.compare.sides import Difference, Side, UnitShare
from rocpd.frozen import frozen

_MOST_VALUES = 2
_ROUNDING = 3  # of effects, all together [ns]


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


def kernel_difference(pair: KernelPair, base: Side, new: Side) -> KernelDifference:
    """Return what kernels of both sides that are the same take of a unit, and what the change is."""
    sides = _shares(base, pair.base), _shares(new, pair.new)
    is_known = all(any(launch.grid for launch, _ in side) for side in sides)
    grids = [_by_grid(side, is_known) for side in sides]
    totals = [sum(share.total for _, share in side) for side in sides]
    waiting = [_part_of(side, (WAITING, UNMATCHED)) for side in sides]
    effects = _effects(*grids)
    calls, work, speed = map(round, effects)
    overlap = totals[1] - totals[0] - calls - work - speed - (waiting[1] - waiting[0])
    if abs(overlap) <= _ROUNDING:
        speed, overlap = speed + overlap, 0
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
        overlap,
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


def _by_grid(side: Iterable[tuple[KernelLaunch, UnitShare]], is_known: bool) -> dict[Grid | None, _Sum]:
    """Return what a kernel does on each grid; `is_known`: whether grids are known of both sides."""
    grids: dict[Grid | None, _Sum] = {}
    for launch, share in side:
        waited = _part_of([(launch, share)], (WAITING, UNMATCHED))
        median_calls = (share.median or 0.0) * share.calls
        added = _Sum(share.calls, share.total - waited, share.duration - waited, median_calls)
        grid = launch.grid if is_known else None
        grids[grid] = grids.get(grid, _Sum()).plus(added)
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
        says.append(f"grid {_few(grids[0])} -> {_few(grids[1])}")
    words = ("VGPR", "AGPR", "SGPR", "LDS", "scratch", "code object")
    for name, word in zip(CodeFacts._fields, words, strict=True):
        values = [sorted({getattr(launch.code, name) for launch in side} - {None}) for side in (base, new)]
        if all(values) and values[0] != values[1]:
            says.append(f"{word} {_few(values[0])} -> {_few(values[1])}")
    return "; ".join(says)


def _few(values: Sequence[object]) -> str:
    """List values, or the first of them and how many more there are."""
    more = f" and {len(values) - _MOST_VALUES} more" if len(values) > _MOST_VALUES else ""
    return ", ".join(map(str, values[:_MOST_VALUES])) + more


def _grid(grid: Grid) -> str:
    x, y, z, *group = grid
    return f"{x}x{y}x{z}/{'x'.join(map(str, group))}"
