"""The excess of each point of a job over the usual time: of its rank, and of ranks that do the same. Pure arithmetic.

Points of different steps compare by their place in the step: the n-th of a name on a rank. The usual time of a rank is
the median over its steps, nothing where fewer than half of them have the place; the usual time of others is the median
of their usual times. So the time of a point is the usual time of others, plus the lasting excess of its rank (a
straggler, a slow host, a slow link), plus its passing excess in this step (a stall, a slow step). In a step with more
to compute on most ranks, as for longer sequences, the lasting excess grows by the same factor. Ranks are compared in
the work that they do equally often in a step, name by name: the stages of a pipeline in the layers that all of them
have. Peers, which meet in collectives alone, have the same work: where some run a kernel more often, it compares from
one collective to the next, and kernels that few of the peers run there count as more work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from rocpd.base import Codes, Flags, Floats, Ints, by_key, frozen
from rocpd.facts.columns import distinct, first_of, grouped, nth_of, numbered, per_id, runs
from rocpd.facts.timeline import COMPUTE
from rocpd.replay.job import JobGraph
from rocpd.replay.points import Edge, Point, narrowed, places_of, small

Column = TypeVar("Column", Ints, Flags)

_ALIKE = 0.03  # share of the computing in a step: most steps differ by no more than that by chance
_OF_SHARE = 0.5  # share of the common growth that a kernel grows by at least to count as alike
_NEARLY_ALL = 0.9  # of the time of kernels
_SHARE = 1 << 20  # one, for shares as whole numbers
_FEWEST = 3  # steps that make a median
_BLOCK = 1 << 16  # points at once
_SHORT = 1 << 28  # ns: sums of a few shorter times fit into four bytes
_TIMES = (0, 2, 3)
"""The columns of units that are times."""
_AT_STEPS = 2  # kind of host work: that up to the begin or end of a step
_KEYS = 5
"""The first column of units that holds numbers."""


@frozen
class StepPlaces:
    """Units: the points of all steps that stand at one place in the step, on one rank or link.

    All columns are equally long. Their last row stands for points without a unit, whose number is -1.

    Args:
        usual: usual time of the points [ns].
        passes: whether there are enough steps to know it.
        reference: usual time of others that do the same [ns].
        lasting: excess of `usual` over `reference` [ns].
        is_compared: whether others do the same.
        place: a number shared by units of ranks that compare; -1 where nothing compares, and for links.
        rank: number of the rank; -1: the unit is one of a link.
        count: number of points.
        first: number of the first point.
        kernel: number of the name of a computing kernel; else -1.
    """

    usual: Ints
    passes: Flags
    reference: Ints
    lasting: Ints
    is_compared: Flags
    place: Ints
    rank: Ints
    count: Ints
    first: Ints
    kernel: Ints

    def like_the_rest(self, longer: Ints, is_known: Flags, whose: Ints) -> Ints:
        """Return the excess of units, with that of kernels that compare with none set to the common share.

        This applies where all kernels of the rank or host that compare take longer by much the same share, for example
        because clocks are low.

        Args:
            longer: excess of units [ns], 0 where it is not known.
            is_known: whether the excess is known.
            whose: number of the rank or host of each unit.
        """
        longer, kernels = longer.copy(), (self.kernel >= 0).nonzero()[0]
        for _, some in grouped([whose[kernels]]):
            rows = kernels[some]
            known, alone = rows[is_known[rows]], rows[~is_known[rows]]
            name = numbered(self.kernel[known])
            count = self.count[known].astype(np.int64)  # both are in few bytes, their product may take more
            more, every = (np.bincount(name, times[known] * count, 1) for times in (longer, self.usual))
            share = more.sum() / max(1.0, every.sum() - more.sum())
            is_most = every.sum() * 2 >= (self.usual[rows].astype(np.int64) * self.count[rows]).sum()
            if len(alone) and share > _ALIKE and is_most and are_alike(more, every):
                longer[alone] = self.usual[alone] * (share / (1 + share))
        return longer


NO_UNIT = (0, False, 0, 0, False, -1, -1, 0, 0, -1)
"""The values of the last row of units."""


@frozen
class Excess:
    """The excess of points over their usual times.

    Args:
        work: time of each point of the job [ns].
        unit: number of the unit of each point; -1: none.
        units: the units.
        shapes: for each link, a number shared by links that compare.
        common: for each point, the index of its share in `shares`; empty where no step has more work than usual.
        shares: work of most ranks in a step, as times that of usual steps; the first, 1, is for points that do not
            compute.
    """

    work: Ints
    unit: Ints
    units: StepPlaces
    shapes: Ints
    common: Codes = field(default_factory=lambda: np.zeros(0, np.int8))
    shares: Floats = field(default_factory=lambda: np.ones(1))

    def with_shares(self, common: Codes, shares: Floats) -> Excess:
        """Return the same with steps of more work, by the share of each; one in which nothing takes time says nothing.

        Times of some kernels may be many times as long in such a step though none is: then they take more bytes.
        """
        units, shares = self.units, np.append(1.0, np.where(shares > 0, shares, 1.0))
        if units.usual.max() * max(shares.max(), 1 / shares.min()) >= _SHORT:
            usual, reference, lasting = (c.astype(np.int64) for c in (units.usual, units.reference, units.lasting))
            units = replace(units, usual=usual, reference=reference, lasting=lasting)
        return replace(self, units=units, common=common, shares=shares)

    def lasting_of(self, rows: Ints | slice) -> Ints:
        """Return the lasting excess of points over the usual time of others that do the same [ns]; it may be negative.

        In a step with more work it is larger by the same factor.
        """
        return self.in_step(self.of_units(self.units.lasting, rows), rows)

    def passing_of(self, rows: Ints | slice) -> Ints:
        """Return the excess of points over the same place in other steps of the rank, or link [ns]."""
        more = self.of_units(self.units.usual, rows)
        np.subtract(self.work[rows], more, out=more, casting="same_kind")
        more[~self.of_units(self.units.passes, rows)] = 0
        return more

    def passing_alone(self, rows: Ints | slice) -> Ints:
        """Return the passing excess without the part that all ranks share in the step, as for longer sequences [ns]."""
        if not len(self.common):
            return self.passing_of(rows)
        more = self.work[rows] - self.in_step(self.of_units(self.units.usual, rows), rows)
        more[~self.of_units(self.units.passes, rows)] = 0
        return more

    def in_step(self, times: Ints, rows: Ints | slice) -> Ints:
        """Return times of some points, scaled from usual steps to the work of their own steps [ns]."""
        return self._scaled(times, np.multiply, rows)

    def as_usual(self, times: Ints, rows: Ints) -> Ints:
        """Return times of some points, scaled from the work of their own steps to usual steps [ns]."""
        return self._scaled(times, np.divide, rows)

    def _scaled(self, times: Ints, by: Callable[[Ints, Floats], Floats], rows: Ints | slice) -> Ints:
        if not len(self.common):
            return times
        common, scaled, is_scaled = self.common[rows], times.copy(), self.shares != 1  # mostly of few steps
        for here in _blocks(len(times)):
            some = here.start + is_scaled[common[here]].nonzero()[0]
            scaled[some] = np.rint(by(times[some], self.shares[common[some]]))
        return scaled

    def of_units(self, column: Column, rows: Ints | slice = slice(None)) -> Column:
        """Return the values of some points from those of units, in blocks: numpy widens each index to eight bytes."""
        unit = self.unit[rows]
        values = np.empty(len(unit), column.dtype)
        for some in _blocks(len(unit)):
            values[some] = column[unit[some]]
        return values

    def longer(self, rows: Ints | slice) -> Ints:
        """Return the excess of some points over others, lasting and passing [ns]."""
        return self.lasting_of(rows) + self.passing_alone(rows)

    def is_compared(self, rows: Ints | slice) -> Flags:
        """Return whether others do the same as some points."""
        return self.of_units(self.units.is_compared, rows)

    def places_of_others(self, ranks: Ints) -> Ints:
        """Return the numbers of the places of units on other than the given ranks."""
        units = self.units
        return np.unique(units.place[(units.place >= 0) & ~np.isin(units.rank, ranks)])

    def beyond_others(self, whose: Ints) -> tuple[Ints, Ints]:
        """Return the excess of units over the usual time of other groups, and the part common to their own group [ns].

        The second is the median of the group's units that compare: a rank that takes longer than all others of its host
        is no property of the host. Both are 0 where nothing compares. Each point counts once in a median.

        Args:
            whose: number of the group of each unit, such as its host.
        """
        beyond, common, known = self._beyond_others(whose)
        return self.units.like_the_rest(beyond, known, whose), self.units.like_the_rest(common, known, whose)

    def _beyond_others(self, whose: Ints) -> tuple[Ints, Ints, Flags]:
        """Return the same without units that compare with nothing, and which units compare."""
        units = self.units
        beyond, common = np.zeros_like(units.usual), np.zeros_like(units.usual)
        some = (units.place >= 0).nonzero()[0]
        place, times = units.place[some], _weights(units.place[some], units.count[some])
        usual = units.reference[some] + units.lasting[some]
        rows: Any = slice(None)  # mostly the units themselves
        first = rows
        if (times > 1).any():  # a unit stands there once for each of its points
            rows, first = np.repeat(np.arange(len(some)), times), np.cumsum(times) - times
        of_others = _medians_of_others(place[rows], usual[rows], whose[some][rows])
        medians, is_known = (column[first] for column in of_others)
        together = narrowed(numbered(place, whose[some]))
        beyond[some] = np.where(is_known, usual - medians, 0)
        common[some] = np.where(is_known, _medians(together[rows], usual[rows])[together] - medians, 0)
        known = np.zeros(len(beyond), bool)
        known[some] = is_known
        return beyond, common, known

    def lasting_without(self, removed: Ints) -> Ints:
        """Return the excess of points over the usual time of others after some times of all points are removed [ns].

        Args:
            removed: time removed from each point, equal within a unit [ns].
        """
        units = self.units
        some = (units.place >= 0).nonzero()[0]
        gone = self.as_usual(removed[units.first[some]], units.first[some])
        usual = units.reference[some] + units.lasting[some] - gone
        others, _ = _medians_of_others(units.place[some], usual, np.arange(len(some)))
        table = units.lasting.copy()
        table[some] = usual - others
        is_one = np.zeros(len(table), bool)
        is_one[some] = True
        lasting: Ints = self.in_step(self.of_units(table), slice(None))
        rows = removed.nonzero()[0]
        lasting[rows] -= np.where(self.of_units(is_one, rows), 0, removed[rows])
        return lasting


def _blocks(count: int) -> Iterator[slice]:
    """Yield the slices of so many rows block by block, so that intermediate values take little memory."""
    return (slice(low, low + _BLOCK) for low in range(0, count, _BLOCK))


def _weights(place: Ints, count: Ints) -> Ints:
    """Return the weight of each unit in medians of points: 1, where all units of a place have equally many points."""
    most = np.zeros(int(place.max(initial=-1)) + 1, np.int64)
    least = most + np.iinfo(np.int64).max
    np.maximum.at(most, place, count)
    np.minimum.at(least, place, count)
    return np.where((most == least)[place], 1, count)


def excess(job: JobGraph, steps: Sequence[int], *, are_pieces: bool = False) -> Excess:
    """Return the excess of points over their usual times.

    Args:
        job: the graph.
        steps: numbers of the steps that count.
        are_pieces: whether the steps are pieces of the trace, which may hold parts of several real steps.
    """
    numbers = np.array(steps, np.int64)
    beyond = _excess(job, numbers, are_pieces=are_pieces)
    units = beyond.units
    lasting = units.like_the_rest(units.lasting, units.is_compared, units.rank)
    beyond = replace(beyond, units=replace(units, lasting=lasting))
    beyond = _with_common_of_places(beyond, job) if are_pieces else _with_common(beyond, job, numbers)
    job.give_back()
    return beyond


def _with_common_of_places(beyond: Excess, job: JobGraph) -> Excess:
    """Return the excess with the common work of pieces of a trace, found place by place."""
    usual = beyond.of_units(beyond.units.usual)
    computes = (job.points.part == COMPUTE) & (job.points.kind == Point.OPERATION) & (usual > 0)
    rows = (computes & beyond.is_compared(slice(None))).nonzero()[0]
    place = numbered(beyond.of_units(beyond.units.place, rows), job.points.step[rows])
    shares = _medians(place, job.points.work[rows].astype(np.int64) * _SHARE // usual[rows]) / _SHARE
    shares[np.abs(shares - 1) <= _ALIKE] = 1
    common = np.zeros(len(job.points), small(len(shares) + 1))
    common[rows] = place + 1
    return beyond.with_shares(common, shares)


def _with_common(beyond: Excess, job: JobGraph, steps: Ints) -> Excess:
    """Return the excess with the common work of steps that most ranks take longer, or shorter, to compute."""
    more, usual = np.zeros((len(steps), len(job.own))), np.ones(len(job.own))
    common = np.zeros(len(job.points), small(len(steps) + 1))
    for column, (first, last) in enumerate(job.own.values()):
        here, points = slice(first, last), job.points.take(slice(first, last))
        at, counts = places_of(points.step, steps)
        counts &= (points.part == COMPUTE) & (points.kind == Point.OPERATION)
        counts &= beyond.of_units(beyond.units.usual, here) > 0  # not the work that only few steps have
        rows = counts.nonzero()[0]
        common[first + rows] = at[rows] + 1
        more[:, column] = np.bincount(at[rows], beyond.passing_of(first + rows), len(steps))
        usual[column] = max(1, beyond.of_units(beyond.units.usual, first + rows).sum() / max(1, len(steps)))
    ordered = np.sort((more / usual)[:, usual > 1], axis=1)
    if ordered.shape[1] < 2:
        return beyond
    low, high = ordered[:, (ordered.shape[1] - 1) // 2], ordered[:, ordered.shape[1] // 2]
    share = np.where(low > _ALIKE, low, np.where(high < -_ALIKE, high, 0.0))
    return beyond.with_shares(common, 1 + share) if share.any() else beyond


def _excess(job: JobGraph, steps: Ints, *, are_pieces: bool) -> Excess:
    """Return the excess as if no step had more work than usual, and kernels that compare with none had no excess."""
    alike: dict[Any, Any] = {}  # equal ones are one object
    kernels = {rank: alike.setdefault(each := _kernels_of(job, rank, steps), each) for rank in job.own}
    peers = frozenset[int]() if are_pieces else frozenset(_peers(job, steps).tolist())
    uneven = _uneven([often for rank, often in kernels.items() if rank in peers])
    unit = np.full(len(job.points), -1, small(len(job.points)))
    every: list[_UnitsOfRank] = []
    roles: dict[frozenset[tuple[int, int]] | None, int] = {}
    of_role, all_moved, seen, count = [], [], set[int](), 0
    for rank, (first, last) in job.own.items():
        units, of_rank = _of_rank(job, rank, steps, uneven if rank in peers and len(uneven) else None)
        unit[first:last] = np.where(of_rank.unit < 0, -1, of_rank.unit + count)
        every.append(units)
        # Host work goes with the order of its calls: only ranks with the same kernels have the same, except for the
        # time between steps.
        of_role.append(roles.setdefault(kernels[rank], len(roles)))
        all_moved.append(of_rank.moved)
        seen |= of_rank.steps
        count += len(units.host)
    sizes, moved = [len(units.host) for units in every], np.concatenate(all_moved)
    role, whose = (np.repeat(narrowed(np.array(numbers, np.int64)), sizes) for numbers in (of_role, list(job.own)))
    units = _UnitsOfRank(*map(np.concatenate, zip(*every, strict=True)))
    del every  # it holds all units a second time
    # Pauses and long calls come by chance: a rank that is slow in all calls would else compare with few others.
    computes = role != roles.get(None, -1)
    often = np.where((units.host > 0) & computes, -1, units.often)
    does = np.where((units.host == 0) | ((units.host == _AT_STEPS) & computes), -1, role)
    same = (units.host, units.name, often, does, units.nth)
    run = _running(units.name, whose, often < -1) if len(uneven) else 0
    kernel = np.where(job.points.part[units.first] == COMPUTE, units.name, -1)
    parts = [_compared(same, units.usual, units.many, len(seen), run), (whose, units.many, units.first, kernel)]
    shapes = _shapes(job, moved, len(steps))
    rows = [(*parts[0], *parts[1])]
    if len(moved):
        unit[moved], of_links = _of_links(job, moved, shapes[job.link[moved]])
        unit[moved] += count
        rows.append(of_links)
    most = max(int(job.points.work.max(initial=0, where=unit >= 0)), *(int(row[0].max(initial=0)) for row in rows))
    kind = np.int32 if most < _SHORT else np.int64
    columns: list[Any] = []
    for at, (*column, none) in enumerate(zip(*rows, NO_UNIT, strict=True)):
        joined = np.concatenate([*column, np.array([none], column[0].dtype)])
        columns.append(joined.astype(kind) if at in _TIMES else narrowed(joined) if at >= _KEYS else joined)
    return Excess(job.points.work, unit, StepPlaces(*columns), shapes)


class _UnitsOfRank(NamedTuple):
    """The units of a rank, or of several: kind of host work or 0, name, times in a step, and place among these times.

    What the second agent of a rank does, and the thread that drives it alone, has names of its own, and so on.

    Then their usual times [ns], their numbers of points, and the number of the first point of each.
    """

    host: Ints
    name: Ints
    often: Ints
    nth: Ints
    usual: Ints
    many: Ints
    first: Ints


class _OfRank(NamedTuple):
    """The points of a rank in steps that count.

    Args:
        unit: for each point, the number of its unit within the rank; -1: none.
        moved: numbers of its transfers, whose units belong to links.
        steps: numbers of the steps in which it has points.
    """

    unit: Ints
    moved: Ints
    steps: frozenset[int]


def _of_rank(job: JobGraph, rank: int, steps: Ints, uneven: Ints | None) -> tuple[_UnitsOfRank, _OfRank]:
    """Return the units of a rank in some steps; `uneven`: names of kernels that compare between collectives."""
    here = slice(*job.own[rank])
    points, link = job.points.take(here), job.link[here]
    counts = np.isin(points.step, steps)
    works = counts & (link < 0) & (points.kind != Point.ARRIVAL)
    rows = works.nonzero()[0]
    host, name, step = (points.part[rows] < 0).astype(np.int64), points.name[rows], points.step[rows]
    host[points.kind[rows] == Point.STEP] = _AT_STEPS
    if agents := job.agents.get(rank):
        lane = points.lane[rows].astype(np.int64)
        agent = per_id(np.where(host > 0, -1 - lane, lane), lambda lane: agents.get(lane, 0))
        name = name + len(job.names) * agent
    key = numbered(host, name)
    often = _often(key, len(steps))
    if uneven is not None:
        segment = _segments(job, rank, rows, step)
        often = np.where((host == 0) & np.isin(points.name[rows], uneven) & (segment >= 0), -2 - segment, often)
        key = numbered(key, often)
    nth = nth_of((key, step))
    unit = numbered(key, nth)
    first = first_of(unit)
    of_all = np.full(len(points), -1)
    of_all[rows] = unit
    of_each = (column[first] for column in (host, name, often, nth))
    columns = (*of_each, _medians(unit, points.work[rows]), np.bincount(unit), rows[first] + here.start)
    units = _UnitsOfRank(*map(narrowed, columns))
    return units, _OfRank(
        of_all,
        (counts & (link >= 0)).nonzero()[0] + here.start,
        frozenset(distinct(step.astype(np.int64)).tolist()),
    )


def _kernels_of(job: JobGraph, rank: int, steps: Ints) -> frozenset[tuple[int, int]] | None:
    """Return the names of the kernels that a rank computes with, and how often each is in a step; None: no kernels."""
    points = job.points.take(slice(*job.own[rank]))
    computes = points.name[np.isin(points.step, steps) & (points.part == COMPUTE)]
    names = numbered(computes)
    first = first_of(names)
    often = zip(computes[first].tolist(), _often(names, len(steps))[first].tolist(), strict=True)
    return frozenset(each for each in often if each[1]) if len(computes) else None


def _peers(job: JobGraph, steps: Ints) -> Ints:
    """Return the ranks that meet others only in collectives: one with more kernels has more of the same work.

    Ranks that send, or may send, are stages of a pipeline, whose kernels differ by design: two that are inferred to
    communicate may be stages that send at one time.
    """
    talks = (job.points.kind == Point.TRANSFER).nonzero()[0]
    talks = talks[np.isin(job.points.step[talks], steps)]
    may_send = (link.sends or (link.is_inferred and len(link.ranks) == 2) for link in job.links)
    rank, sends = job.rank_of(talks), np.array([*may_send, True])
    return np.setdiff1d(rank, rank[sends[job.link[talks]]])


def _uneven(kernels: Sequence[frozenset[tuple[int, int]] | None]) -> Ints:
    """Return the names of kernels that some ranks run more often than others; `kernels`: those of each rank."""
    known = [of_rank for of_rank in kernels if of_rank]
    often = by_key(each for of_rank in known for each in of_rank)
    return np.array([name for name, some in often.items() if some != some[:1] * len(known)], np.int64)


def _segments(job: JobGraph, rank: int, rows: Ints, step: Ints) -> Ints:
    """Return how many collectives of the step come before the launch of each point; -1: unknown."""
    first, last = job.own[rank]
    edges = slice(*job.edges.first[[first, last]].tolist())
    some = edges.start + (job.edges.kind[edges] == Edge.LAUNCH).nonzero()[0]
    launched = np.full(last - first, -1)
    launched[job.edges.target(some) - first] = job.edges.source[some] - first
    comes = np.sort(launched[job.points.kind[first:last] == Point.ARRIVAL])
    begins = per_id(step, lambda number: job.steps.get(rank, {}).get(number, (first, 0))[0] - first)
    after, before = (np.searchsorted(comes, at) for at in (launched[rows], begins))
    return np.where(launched[rows] < 0, -1, np.maximum(after - before, 0))


def _often(group: Ints, steps: int) -> Ints:
    """Return the mean number of points of each group in a step, for so many steps."""
    return np.rint(np.bincount(group) / steps).astype(np.int64)[group]


def _of_links(job: JobGraph, moved: Ints, shape: Ints) -> tuple[Ints, tuple[Any, ...]]:
    """Return the unit of each transfer, and the columns of these units; `shape`: of the link of each transfer."""
    work, step, link = job.points.work[moved], job.points.step[moved], job.link[moved]
    nth = nth_of((shape, link, job.rank_of(moved), step))
    unit = numbered(shape, nth, link)
    first = first_of(unit)
    usual, count = _medians(unit, work).astype(np.int64), np.bincount(unit)
    steps = len(distinct(step.astype(np.int64)))
    *columns, _ = _compared((shape[first], nth[first]), usual, count, steps)
    nothing = np.full(len(first), -1)
    return unit, (*columns, nothing, nothing, count, moved[first], nothing)


def _running(name: Ints, whose: Ints, some: Flags) -> Ints:
    """Return the number of ranks with the name of each unit among the counted units; 0 of the others.

    Args:
        name: name of each unit.
        whose: its rank.
        some: whether it counts.
    """
    run, rows = np.zeros(len(name), np.int64), some.nonzero()[0]
    counted = numbered(name[rows])
    run[rows] = np.bincount(counted[first_of(numbered(counted, whose[rows]))])[counted]
    return run


def _compared(same: tuple[Ints, ...], usual: Ints, count: Ints, steps: int, run: Ints | int = 0) -> tuple[Any, ...]:
    """Return the columns of units, up to `place`.

    Args:
        same: columns that are equal for units which compare.
        usual: median time of the points of each unit [ns].
        count: number of points of each unit.
        steps: number of steps that have any of these points.
        run: number of ranks that run the kernel of a unit, where most of them may run it less often; else 0.
    """
    usual = np.where(count * 2 < steps, 0, usual)  # work of few steps is not usual
    kind = narrowed(numbered(*same))
    others, known = _medians_of_others(kind, usual, np.arange(len(usual), dtype=small(len(usual))))
    few = (usual > 0) & (np.bincount(kind)[kind] * 2 < run)
    others, place, known = np.where(few, 0, others), np.where(known & ~few, kind, -1), known | few
    lasting, reference = np.where(known, usual - others, 0), np.where(known, others, usual)
    return usual, np.full(len(usual), steps >= _FEWEST), reference, lasting, known, place


def _shapes(job: JobGraph, moved: Ints, steps: int) -> Ints:
    """Return for each link a number shared by the links that compare with it.

    Such links join equally many ranks on equally many hosts, use the same kernel, and move data equally often in a
    step. Inferred links compare with none.

    Args:
        job: the graph.
        moved: numbers of the transfers in steps that count.
        steps: number of these steps.
    """
    link = job.link[moved].astype(np.int64)
    of_member = numbered(link, job.rank_of(moved))
    often = np.zeros(len(job.links))
    np.maximum.at(often, link, np.bincount(of_member)[of_member] / max(steps, 1))  # per member: in a ring they vary
    shapes = [
        (
            link.name,
            len(link.ranks),
            len({job.hosts.get(rank) for rank in link.ranks}),
            times,
            number * link.is_inferred,
        )
        for number, (link, times) in enumerate(zip(job.links, np.rint(often).tolist(), strict=True), 1)
    ]
    numbers: dict[tuple[float, ...], int] = {}
    return np.array([numbers.setdefault(shape, len(numbers)) for shape in shapes], np.int64)


def are_alike(more: Ints, every: Ints) -> bool:
    """Whether kernels take longer by much the same share, small ones aside.

    Nearly all of the time is in kernels that do so, and the kernel that grew most did not grow clearly more.

    Args:
        more: how much longer each takes.
        every: how long each takes.
    """
    usual = every - more
    share = more.sum() / max(usual.sum(), 1)
    grew = usual[more > _OF_SHARE * share * usual].sum()
    most, (more_others, others) = more.argmax(), (more.sum() - more.max(), usual.sum() - usual[more.argmax()])
    is_clear = more[most] * others * _OF_SHARE >= more_others * usual[most]
    return bool(grew >= _NEARLY_ALL * usual.sum() and not is_clear)


def _medians(group: Ints, values: Ints) -> Ints:
    """Return the median of the values of each group, the lower of two middle ones."""
    order = np.argsort(group, kind="stable")
    first, count = runs(group[order])
    ordered, medians = values[order], np.empty(len(first), np.int64)
    for size in distinct(count).tolist():  # most groups have one value a step: these are sorted together
        some = (count == size).nonzero()[0]
        middle = (size - 1) // 2
        medians[some] = np.partition(ordered[first[some, None] + np.arange(size)], middle, axis=1)[:, middle]
    return medians


def _medians_of_others(group: Ints, values: Ints, whose: Ints) -> tuple[Ints, Flags]:
    """Return for each value the lower median of the other owners' values in its group, and whether there are any."""
    if len(group) <= _BLOCK:
        return _medians_in_block(group, values, whose)
    medians, is_known = np.zeros_like(values), np.zeros(len(group), bool)
    order = np.argsort(group, kind="stable")
    first, _ = runs(group[order])
    edges = first[np.append(True, first[1:] // _BLOCK != first[:-1] // _BLOCK)]
    for rows in np.split(order, edges[1:]):
        medians[rows], is_known[rows] = _medians_in_block(group[rows], values[rows], whose[rows])
    return medians, is_known


def _medians_in_block(group: Ints, values: Ints, whose: Ints) -> tuple[Ints, Flags]:
    """Return the same for some groups at once: this takes a dozen columns.

    One order serves all: the n-th value of the others lies as many places after the n-th as own values come before it.
    """
    order = np.lexsort((values, group))
    ordered = values[order]
    first, many = runs(group[order])
    start = np.repeat(first, many)
    every = len(order)
    by_owner = np.lexsort((whose[order], group[order]))
    rows = order[by_owner]
    owner, sizes = runs(group[rows], whose[rows])
    places = np.repeat(np.arange(len(owner)), sizes) * every + by_owner - start[by_owner]
    others = np.repeat(many, many)[by_owner[owner]] - sizes
    middle = at = (others - 1) // 2
    while True:
        further = middle + np.searchsorted(places, np.arange(len(owner)) * every + at, side="right") - owner
        if (further == at).all():
            break
        at = further
    medians, is_known = np.zeros_like(values), np.zeros(every, bool)
    medians[rows] = np.repeat(ordered[start[by_owner[owner]] + at], sizes)
    is_known[rows] = np.repeat(others > 0, sizes)
    return medians, is_known
