"""Finds the offsets between the clocks of a job, from its collectives. Never changes a time or a duration.

No rank leaves a collective before every rank has entered it. So a collective that two clocks see bounds the offset
between them from both sides, and all collectives leave a corridor in which the line of the true offset over time lies.
This corridor is *certain*. The members of a collective also leave nearly together, so one line in the corridor is
*likely*. Bounds between three and more clocks tighten each other, as shortest paths do.

Lines between bounds from both sides: A. Duda, G. Harrus, Y. Haddad, G. Bernard, "Estimating global time in distributed
systems", 1987.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from typing import TypeVar

import numpy as np

from rocpd.base import NULL, Flags, Floats, Ints, frozen

Time = TypeVar("Time", float, Floats)

MOST_DRIFT = 200e-6
"""Quartz drifts by 1 to 50 parts per million: clocks that drift more against each other do not run evenly."""

_MOST_CLOCKS = 16  # with all pairs compared; of more clocks, each is compared with a few
_FURTHER = (1, 2, 4, 8, 16)  # a clock is compared with those that come so many later
_BLOCKS = 64  # of collectives in order of time; of each the tightest bound is kept
_FEWER_BLOCKS = 16  # where many pairs of clocks tighten each other's bounds
_MANY_PAIRS = 300
_STEPS = 36  # of a search for a slope: to a ns in a day
_WINDOWS = 16  # of collectives: the drift is fitted to their medians
_NEARLY = 0.95  # share of a jump that the gap where it lies has at least, as its size is not known better
_LEAST = 3  # collectives of a window
_MOST_OUTLIERS = 0.01  # of the collectives of two clocks: they may have been matched wrongly
_FAR = 10.0  # median distances from a line: a point farther away does not belong to it
_SIGNIFICANT = 4.0  # standard errors from which a drift counts


@frozen
class Meetings:
    """Collectives as clocks see them: a row for each, a column for each clock, `NULL` where no member has the clock.

    Args:
        entered: time at which the last member with this clock that others wait for entered [ns of the clock].
        left: time at which the first member that waits for others left [ns].
        ended: average time at which members left [ns].
    """

    entered: Ints
    left: Ints
    ended: Ints


@frozen
class ClockJump:
    """A clock that was set: its times from `at_ns` on are `jump_ns` further ahead, or behind if negative.

    Args:
        jump_ns: size of the jump ahead [ns].
        at_ns: time of the jump [ns].
        within: ends of the last collective before and of the first one after it, between which the jump lies [ns].
    """

    jump_ns: int
    at_ns: int
    within: tuple[int, int]

    def at_gap(self, times: Ints) -> ClockJump:
        """Return the jump moved to the end of a gap, as no event starts or ends at skipped times.

        Of gaps that are long enough it is the shortest: usual gaps are short, and a longer one may be a host that
        stalls. If none is, the jump is as long as the longest gap.

        Args:
            times: starts and ends of events within it [ns of the clock].
        """
        ordered = np.unique(np.concatenate([times, self.within]))
        gaps = np.diff(ordered)
        least = min(int(gaps.max()), self.jump_ns * _NEARLY) if self.jump_ns > 0 else int(gaps.max())
        at = int(np.where(gaps >= least, gaps, gaps.max() + 1).argmin())
        return replace(self, at_ns=int(ordered[1 + at]), jump_ns=min(self.jump_ns, int(gaps[at])))


@frozen
class ClockLine:
    """The shift of a clock's times: `offset_ns` at its time `at_ns`, and `drift` more for each ns after it.

    Args:
        certain_ns: greatest distance of the true offset from this one during the collectives; None: it has no bounds.
        likely_ns: median distance of single collectives from the line.
        collectives: number of compared collectives.
        jump: the jump by which the clock was set, to be taken out of its times first; None: it was not set.
    """

    at_ns: int
    offset_ns: int
    drift: float
    certain_ns: int | None
    likely_ns: int
    collectives: int
    jump: ClockJump | None = None


class ContradictionError(Exception):
    """No evenly running clocks agree with the collectives: one was set, or the compared calls are no collectives.

    Args:
        clocks: two clocks that contradict each other; none where the collectives of no two clocks could be matched.
    """

    def __init__(self, *clocks: int) -> None:
        super().__init__(f"clocks {', '.join(map(str, clocks))}")
        self.clocks = clocks


def align_set_clock(meetings: Meetings, contradicting: Sequence[int]) -> list[ClockLine | ClockJump | None]:
    """Return the lines of clocks one of which was set once: all agree with its jump taken out, or without that clock.

    Of two clocks either may have been set: then the clock that jumps ahead counts as set.

    Args:
        meetings: collectives that no lines agree with.
        contradicting: clocks that contradict each other.

    Raises:
        ContradictionError: it is not clear which clock was set.
    """
    count = meetings.ended.shape[1]
    jumps = {clock: _jump(meetings, clock) for clock in contradicting}
    ahead = {clock: jump for clock, jump in jumps.items() if jump and jump.jump_ns > 0}
    for clock, jump in ahead.items():
        with suppress(ContradictionError):
            lines: list[ClockLine | ClockJump | None] = [*align_clocks(_without(meetings, clock, jump))]
            line = lines[clock]
            if isinstance(line, ClockLine):
                lines[clock] = replace(line, jump=jump)
                return lines
    behind = [clock for clock, jump in jumps.items() if jump and count > 2 and clock not in ahead]
    for clock in behind:
        with suppress(ContradictionError):
            return [
                jumps[clock] if each == clock else line for each, line in enumerate(_aligned_without(meetings, clock))
            ]
    raise ContradictionError(*contradicting)


def _jump(meetings: Meetings, clock: int) -> ClockJump | None:
    """Return the jump by which a clock leaves the line of the clock that it meets most; None: they hardly meet."""
    seen = meetings.ended != NULL
    met = (seen & seen[:, clock, None]).sum(0)
    met[clock] = 0
    both = np.flatnonzero(seen[:, clock] & seen[:, met.argmax()])
    if len(both) < 2 * _LEAST:
        return None
    both = both[np.argsort(meetings.ended[both, clock], kind="stable")]
    times, others = meetings.ended[both, clock], meetings.ended[both, met.argmax()]
    # By the other clock, which has no hole where this clock jumps: a drift could be taken for part of the jump.
    since, apart = ((values - values[0]).astype(np.float64) for values in (others, times - others))
    first, step, left = _step(since, apart)
    near = np.flatnonzero(np.abs(left) <= _FAR * np.median(np.abs(left)))  # not those that end while it is set
    if len(near) < 2 * _LEAST:
        return None
    first, step, _ = _step(since[near], apart[near])
    before, after = times[near][[first - 1, first]].tolist()
    jump = round(step)
    return ClockJump(jump, min(after, before + max(jump, 0)), (before, after))


def _step(since: Floats, apart: Floats) -> tuple[int, float, Floats]:
    """Return the index of a step in values, its height, and the rest without step and slope, by least squares."""
    since, apart = since - since.mean(), apart - apart.mean()
    apart = apart - since * (since @ apart) / (since @ since)
    count = np.arange(len(apart) - 1, 0, -1)
    rest = count - count**2 / len(apart) - np.cumsum(since)[:-1] ** 2 / (since @ since)
    steps = -np.cumsum(apart)[:-1] / rest
    first = _LEAST + int(np.argmax((steps**2 * rest)[_LEAST - 1 : 1 - _LEAST]))
    level = np.where(np.arange(len(apart)) >= first, steps[first - 1], 0.0)
    level -= level.mean()
    return first, float(steps[first - 1]), apart - level + since * (since @ level) / (since @ since)


def _without(meetings: Meetings, clock: int, jump: ClockJump) -> Meetings:
    """Return meetings with a jump taken out of the times of a clock."""
    sides = [side.copy() for side in (meetings.entered, meetings.left, meetings.ended)]
    for side in sides:
        side[side[:, clock] >= jump.at_ns, clock] -= jump.jump_ns
    return Meetings(*sides)


def _aligned_without(meetings: Meetings, clock: int) -> Sequence[ClockLine | None]:
    """Return the lines of all clocks but one.

    Raises:
        ContradictionError: the other clocks do not agree either.
    """
    sides = [side.copy() for side in (meetings.entered, meetings.left, meetings.ended)]
    for side in sides:
        side[:, clock] = NULL
    is_meeting = (sides[-1] != NULL).sum(1) > 1
    if not is_meeting.any():
        raise ContradictionError(clock)
    return align_clocks(Meetings(*(side[is_meeting] for side in sides)))


def align_clocks(meetings: Meetings) -> tuple[ClockLine | None, ...]:
    """Return the line of each clock against the clock that meets the others most; None for a clock that meets none.

    Raises:
        ContradictionError: no lines agree with the collectives.
    """
    seen = meetings.ended != NULL
    count = seen.shape[1]
    reference = int(seen[seen.sum(1) > 1].sum(0).argmax())
    base = np.where(seen, meetings.ended, 1 << 62).min(0)
    view = _View.of(meetings, base)
    lines, before = _along_paths(view, seen, reference)
    pairs = [(a, b) for a, b in _compared(count, reference, before) if a in lines and (seen[:, a] & seen[:, b]).any()]
    blocks = _BLOCKS if len(pairs) < _MANY_PAIRS else _FEWER_BLOCKS
    bounds = [_bounds(view, lines[a].reverse().then(lines[b]), (a, b), blocks) for a, b in pairs]
    corridors = _Corridors.of(pairs, bounds) if pairs else None
    edges = [float(pick(view.ended[:, reference])) for pick in (np.nanmin, np.nanmax)] if corridors else []
    most = [corridors.tightened(at, lines, count) for at in edges] if corridors else []
    aligned: list[ClockLine | None] = [None] * count
    for clock, line in lines.items():
        within = [(at, -m[clock, reference], m[reference, clock]) for at, m in zip(edges, most, strict=True)]
        aligned[clock] = _aligned(line, within, int(base[reference]), int(base[clock]))
    return tuple(aligned)


def _compared(count: int, reference: int, before: Mapping[int, int]) -> list[tuple[int, int]]:
    """Return the pairs of clocks to compare: all pairs of few clocks, else equally many for each clock.

    Of many clocks, each is compared with the reference, with the clock before it on its path, and with those 1, 2, 4 …
    further: bounds reach from each to each by way of the reference, and a clock that was set contradicts several.
    """
    if count <= _MOST_CLOCKS:
        return list(combinations(range(count), 2))
    chosen = {(clock, (clock + step) % count) for clock in range(count) for step in _FURTHER}
    chosen |= {(reference, clock) for clock in range(count)} | {*before.items()}
    return sorted({(min(pair), max(pair)) for pair in chosen if pair[0] != pair[1]})


@frozen
class _View:
    """Meetings with times since the first meeting of each clock [ns], NaN for `NULL`."""

    entered: Floats
    left: Floats
    ended: Floats

    @classmethod
    def of(cls, meetings: Meetings, base: Ints) -> _View:
        columns = (meetings.entered, meetings.left, meetings.ended)
        return cls(*(np.where(column == NULL, np.nan, column - base) for column in columns))


@frozen
class OffsetLine:
    """Offset of a clock against another over the times of that other clock [ns], from `weight` collectives.

    Args:
        start: offset at time 0 [ns].
        slope: change of the offset per ns.
        spread: median distance of collectives from the line.
    """

    start: float = 0.0
    slope: float = 0.0
    spread: float = 0.0
    weight: int = 0

    def at(self, time: Time) -> Time:
        """Return the offset at a time, or at each of many times."""
        return self.start + self.slope * time

    def reverse(self) -> OffsetLine:
        """Return the offset of the other clock over the times of this clock."""
        return OffsetLine(-self.start / (1 - self.slope), -self.slope / (1 - self.slope), self.spread, self.weight)

    def then(self, further: OffsetLine) -> OffsetLine:
        """Return the offset of a third clock against the first; `further` is its offset against this clock."""
        rest = 1 - further.slope
        spread = math.hypot(self.spread, further.spread)
        weight = min(self.weight or further.weight, further.weight)
        return OffsetLine(further.start + rest * self.start, further.slope + rest * self.slope, spread, weight)


def _likely(view: _View, a: int, b: int) -> OffsetLine:
    """Return the line on which the members of most collectives leave together."""
    both = np.flatnonzero(~np.isnan(view.ended[:, a] + view.ended[:, b]))
    return line_between(view.ended[both, a], view.ended[both, b])


def line_between(first: Floats, second: Floats) -> OffsetLine:
    """Return the offset of a clock against another, a line on which most of these common times lie.

    Args:
        first: times by the other clock [ns]; at least one.
        second: the same times by the clock [ns].
    """
    offset = first - second
    order = np.argsort(first)
    windows = np.array_split(order, max(1, min(_WINDOWS, len(order) // _LEAST)))
    times, offsets = (np.array([np.median(values[window]) for window in windows]) for values in (first, offset))
    # The median of the slopes between all pairs of points (Theil and Sen): outliers hardly change it.
    a, b = np.triu_indices(len(times), 1)
    apart = times[b] - times[a]
    slope = float(np.median((offsets[b] - offsets[a])[apart > 0] / apart[apart > 0])) if (apart > 0).any() else 0.0
    spread = _spread(offset - slope * first)
    deviation = 1.4826 * spread * math.sqrt(math.pi / 2)  # of a median, were the distances normal
    is_noise = abs(slope) * np.std(first) * math.sqrt(len(first)) <= _SIGNIFICANT * deviation
    if is_noise or abs(slope) > MOST_DRIFT:  # a few milliseconds show only how much collectives scatter
        slope = 0.0
    rest = offset - slope * first
    return OffsetLine(float(np.median(rest)), slope, _spread(rest), len(first))


def _spread(values: Floats) -> float:
    return float(np.median(np.abs(values - np.median(values))))


_Bounds = tuple[Floats, Floats, Floats]  # times, lower and upper bounds of an offset


def _bounds(view: _View, likely: OffsetLine, pair: tuple[int, int], count: int) -> _Bounds:
    """Return the tightest bounds of b's offset against a, in order of a's times, without a few that can't be true.

    Dropping a bound only widens the corridor: it stays certain.
    """
    a, b = pair
    time = view.ended[:, a]
    lower = np.nan_to_num(view.entered[:, a] - view.left[:, b], nan=-np.inf)
    upper = np.nan_to_num(view.left[:, a] - view.entered[:, b], nan=np.inf)
    both = np.flatnonzero(~np.isnan(time) & (np.isfinite(lower) | np.isfinite(upper)))
    expected = likely.at(time)
    wrong = both[np.maximum(lower - expected, expected - upper)[both] > 0]
    if len(wrong) <= _MOST_OUTLIERS * len(both):
        both = both[~np.isin(both, wrong)] if len(wrong) else both
    both = both[np.argsort(time[both], kind="stable")]
    blocks = both[:, None]
    if len(both) > count:
        blocks = np.pad(both, (0, -len(both) % count), mode="edge").reshape(count, -1)
    row = np.arange(len(blocks))
    low, high = blocks[row, lower[blocks].argmax(1)], blocks[row, upper[blocks].argmin(1)]
    nothing = np.full(len(blocks), np.inf)
    return (
        np.concatenate([time[low], time[high]]),
        np.concatenate([lower[low], -nothing]),
        np.concatenate([nothing, upper[high]]),
    )


@frozen
class _Corridors:
    """The bounds of the offsets of pairs of clocks, as columns of equal length, one row per pair.

    Args:
        pairs: the clocks; offsets are of the second against the first, times are of the first.
        least, most: slopes of the lines that fit, per ns.
    """

    pairs: Sequence[tuple[int, int]]
    time: Floats
    lower: Floats
    upper: Floats
    least: Floats
    most: Floats

    @classmethod
    def of(cls, pairs: Sequence[tuple[int, int]], bounds: Sequence[_Bounds]) -> _Corridors:
        """Return the corridors.

        Raises:
            ContradictionError: no line fits between the bounds of a pair.
        """
        shape = len(bounds), max(len(time) for time, _, _ in bounds)
        time, lower, upper = (np.full(shape, fill) for fill in (0.0, -np.inf, np.inf))
        for number, (times, least, most) in enumerate(bounds):
            filled = slice(len(times))
            time[number, filled], lower[number, filled], upper[number, filled] = times, least, most
        row = np.arange(len(pairs))

        def closest(slope: Floats) -> tuple[Ints, Ints, Floats]:
            """Return the lowest upper bound, the highest lower bound, and the room between them."""
            shift = slope[:, None] * time
            above, below = upper - shift, lower - shift
            low, high = above.argmin(1), below.argmax(1)
            return low, high, above[row, low] - below[row, high]

        def widens(slope: Floats) -> Flags:
            low, high, _ = closest(slope)
            return np.asarray(time[row, high] > time[row, low])

        def fits(slope: Floats) -> Flags:
            return np.asarray(closest(slope)[2] >= 0)

        edge = np.full(len(pairs), MOST_DRIFT)
        best = _highest(widens, -edge, edge)
        narrow = np.flatnonzero(~fits(best))
        if len(narrow):
            raise ContradictionError(*pairs[narrow[0]])

        return cls(pairs, time, lower, upper, _border(fits, best, -edge), _border(fits, best, edge))

    def around(self, at: Floats) -> tuple[Floats, Floats]:
        """Return the lowest and highest offset of each pair at a time of its first clock [ns]."""
        since, row = self.time - at[:, None], np.arange(len(self.pairs))
        values = []
        for sign, bound in ((-1, -self.lower), (1, self.upper)):

            def rises(slope: Floats, sign: int = sign, bound: Floats = bound) -> Flags:
                tightest = (bound - sign * slope[:, None] * since).argmin(1)
                return np.asarray(sign * since[row, tightest] < 0)

            highest = _highest(rises, self.least, self.most)
            values.append(sign * (bound - sign * highest[:, None] * since).min(1))
        return values[0], values[1]

    def tightened(self, at: float, lines: Mapping[int, OffsetLine], count: int) -> Floats:
        """Return the most by which the offset of each clock (column) exceeds that of each other clock (row) [ns].

        Args:
            at: time of the reference [ns].
            lines: clock -> its offset against the reference.
            count: number of clocks.

        Raises:
            ContradictionError: bounds that agree pair by pair don't agree together.
        """
        first, second = np.array(self.pairs).T
        low, high = self.around(np.array([at - lines[clock].at(at) for clock in first.tolist()]))
        most = np.full((count, count), np.inf)
        np.fill_diagonal(most, 0)
        most[first, second], most[second, first] = high, -low
        for between in range(count):
            np.minimum(most, most[:, between, None] + most[None, between], out=most)
        wrong = np.flatnonzero(most.diagonal() < -1)  # ns: the error of rounding
        if len(wrong):
            raise ContradictionError(int(wrong[0]), int(most[wrong[0]].argmin()))
        return most


def _highest(is_rising: Callable[[Floats], Flags], low: Floats, high: Floats) -> Floats:
    """Return the place where a concave function is highest in each of many ranges."""
    low, high = _narrowed(is_rising, low, high)
    return (low + high) / 2


def _border(fits: Callable[[Floats], Flags], inside: Floats, outside: Floats) -> Floats:
    """Return the last value from `inside` towards `outside` that fits."""
    near, _ = _narrowed(fits, inside, outside)
    return np.where(fits(outside), outside, near)


def _narrowed(holds: Callable[[Floats], Flags], near: Floats, far: Floats) -> tuple[Floats, Floats]:
    """Return the last place from `near` towards `far` where a condition holds, and the first where it does not."""
    for _ in range(_STEPS):
        middle = (near + far) / 2
        does = holds(middle)
        near, far = np.where(does, middle, near), np.where(does, far, middle)
    return near, far


def _along_paths(view: _View, seen: Flags, reference: int) -> tuple[dict[int, OffsetLine], dict[int, int]]:
    """Return clock -> its offset against the reference, along the path of most common collectives (Dijkstra).

    Also return clock -> the clock before it on that path.
    """
    common = seen.astype(np.int64).T @ seen
    lines: dict[int, OffsetLine] = {}
    previous: dict[int, int] = {}
    waiting = [(0.0, reference, reference, OffsetLine())]
    shortest = np.full(len(common), np.inf)
    while waiting:
        length, clock, before, line = heapq.heappop(waiting)
        if clock not in lines:
            lines[clock] = line if clock == before else line.then(_likely(view, before, clock))
            previous[clock] = before
            others = np.flatnonzero(common[clock])
            lengths = length + 1 / common[clock, others]
            no_longer = np.flatnonzero(lengths <= shortest[others])
            shortest[others[no_longer]] = lengths[no_longer]
            for other, further in zip(others[no_longer].tolist(), lengths[no_longer].tolist(), strict=True):
                if other not in lines:
                    heapq.heappush(waiting, (further, other, clock, lines[clock]))
    return lines, previous


def _aligned(line: OffsetLine, bounds: Sequence[tuple[float, float, float]], reference: int, base: int) -> ClockLine:
    """Return the line of a clock over its own times, moved into its bounds: (time, least, most) in order of time.

    The points of a few milliseconds lie on lines as steep as no clock drifts; within the bounds there is an even one.
    """
    points = [(at, min(max(line.at(at), least), most)) for at, least, most in bounds]
    start, slope = line.start, line.slope
    if points and (abs(slope) > MOST_DRIFT or any(value != line.at(at) for at, value in points)):
        (first, low), (last, high) = points[0], points[-1]
        slope = (high - low) / (last - first) if last > first else 0.0
        if abs(slope) > MOST_DRIFT:
            slope = math.copysign(MOST_DRIFT, slope)
            rise = slope * (last - first)
            (_, least, most), (_, later_least, later_most) = bounds[0], bounds[-1]
            low = min(max((low + high - rise) / 2, least, later_least - rise), most, later_most - rise)
        start = low - slope * first
        points = [(at, start + slope * at) for at, _ in points]
    apart = [max(most - value, value - least) for (_, value), (_, least, most) in zip(points, bounds, strict=True)]
    certain = max(apart, default=0.0)
    return ClockLine(
        at_ns=base,
        offset_ns=reference - base + round(start / (1 - slope)),
        drift=float(slope / (1 - slope)),
        certain_ns=math.ceil(certain) if math.isfinite(certain) else None,
        likely_ns=math.ceil(line.spread),
        collectives=line.weight,
    )
