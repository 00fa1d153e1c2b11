"""The excess of each point of a job over what is usual: for its rank, and for ranks that do the same. Pure arithmetic.

Points of different steps compare by their place in the step: the n-th of a name on a rank. What is usual for a rank is
the median of its steps, nothing where fewer than half of them have the place; what is usual for others, the median of
what is usual for each of them. So what a point takes is what others usually take, plus what its rank usually takes more
(a straggler, a slow host, a slow link), plus what it took more in this step (a stall, a slow step). Ranks are compared
in what they do equally often in a step, name by name: the stages of a pipeline in the layers that all of them have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rocpd.base import Flags, Ints, frozen
from rocpd.facts.columns import distinct, first_of, numbered, runs
from rocpd.facts.timeline import COMPUTE
from rocpd.replay.job import JobGraph
from rocpd.replay.points import Point, Points

_FEWEST = 3  # steps that make a median


@frozen
class Excess:
    """The excess of points over what is usual; all columns are those of the points of the job.

    Args:
        lasting: more than others that do the same usually take [ns]; negative: less.
        passing: more than the same place of other steps of the rank, or link [ns].
        is_compared: whether others do the same.
        reference: what others that do the same usually take [ns].
        shapes: of each link a number that links which compare share.
        place: of each point a number that those which compare share, whatever their rank; -1 where nothing compares.
    """

    lasting: Ints
    passing: Ints
    is_compared: Flags
    reference: Ints
    shapes: Ints
    place: Ints

    def beyond_others(self, whose: Ints) -> tuple[Ints, Ints]:
        """Return what points take longer than is usual for those of others, and what all of `whose` they are do [ns].

        The second is the median of those that compare: a rank that takes longer than all others of its host is no
        property of the host. Both are 0 where nothing compares.

        Args:
            whose: each point is, such as the number of its host.
        """
        own, common = np.zeros(len(whose), np.int64), np.zeros(len(whose), np.int64)
        rows = np.flatnonzero(self.place >= 0)
        place, usual = self.place[rows], self.reference[rows] + self.lasting[rows]
        medians, others = _medians_of_others(place, usual, whose[rows])
        own[rows] = np.where(others > 0, usual - medians, 0)
        together = numbered(place, whose[rows])
        common[rows] = np.where(others > 0, _medians(together, usual)[together] - medians, 0)
        return own, common

    def lasting_without(self, removed: Ints, whose: Ints) -> Ints:
        """Return what points take longer than others usually do, had some of all taken less [ns].

        Args:
            removed: what points take less [ns].
            whose: the rank of each point.
        """
        rows = np.flatnonzero(self.place >= 0)
        place = self.place[rows]
        own = numbered(place, whose[rows])
        first = first_of(own)
        usual = (self.reference + self.lasting - removed)[rows[first]]
        others, _ = _medians_of_others(place[first], usual, np.arange(len(first)))
        lasting = self.lasting - removed
        lasting[rows] = (usual - others)[own]
        return lasting


def excess(job: JobGraph, steps: Sequence[int]) -> Excess:
    """Return what points take beyond what is usual.

    Args:
        job: the graph.
        steps: numbers of the steps that count.
    """
    points = job.points
    counts = np.isin(points.step, np.array(steps, np.int64))
    nothing = np.zeros(len(points), np.int64)
    into = _Columns(nothing, nothing.copy(), nothing.copy(), nothing - 1)
    works = np.isin(points.kind, (Point.HOST, Point.STEP, Point.OPERATION, Point.TRANSFER))
    own = np.flatnonzero(counts & works & (job.link < 0))
    host = (points.part[own] < 0).astype(np.int64)
    often = _often((points.rank[own], host, points.name[own]), len(steps))
    # What the host does goes with the order of its calls: only ranks with the same kernels have the same.
    role = np.where(host > 0, _roles(job, counts, len(steps))[points.rank[own]], -1)
    _compare(points, own, (host, points.name[own], often, role), points.rank[own], into)
    moved = np.flatnonzero(counts & (job.link >= 0))
    shapes = _shapes(job, counts, len(steps))
    _compare(points, moved, (shapes[job.link[moved]],), job.link[moved], into)
    place = np.where(job.link < 0, into.place, -1)
    return Excess(into.lasting, into.passing, into.place >= 0, into.reference, shapes, place)


class _Columns(NamedTuple):
    """The columns that are filled in, of all points."""

    lasting: Ints
    passing: Ints
    reference: Ints
    place: Ints


def _roles(job: JobGraph, counts: Flags, steps: int) -> Ints:
    """Return of each rank a number that those which run the same kernels equally often share.

    Args:
        job: the graph.
        counts: which points are in steps that count.
        steps: how many of these there are.
    """
    points = job.points
    rows = np.flatnonzero(counts & (points.part == COMPUTE))
    often = _often((points.rank[rows], points.name[rows]), steps)
    one = first_of(numbered(points.rank[rows], points.name[rows]))
    rows, often = rows[one], often[one]
    does: dict[int, set[tuple[int, int]]] = {}
    for rank, name, times in zip(points.rank[rows].tolist(), points.name[rows].tolist(), often.tolist(), strict=True):
        does.setdefault(rank, set()).add((name, times))
    numbers: dict[frozenset[tuple[int, int]], int] = {}
    roles = np.full(int(points.rank.max(initial=-1)) + 1, -1)
    for rank, every in sorted(does.items()):
        roles[rank] = numbers.setdefault(frozenset(each for each in every if each[1]), len(numbers))
    return roles


def _often(keys: tuple[Ints, ...], steps: int) -> Ints:
    """Return how often a step has each combination of keys, of so many steps."""
    group = numbered(*keys)
    return np.rint(np.bincount(group) / steps).astype(np.int64)[group]


def _shapes(job: JobGraph, counts: Flags, steps: int) -> Ints:
    """Return of each link a number that those share which compare.

    They are between equally many ranks, on as many hosts, by one kernel, and move equally often in a step. Those that
    are inferred compare with none.

    Args:
        job: the graph.
        counts: which points are in steps that count.
        steps: how many of these there are.
    """
    often = np.bincount(job.link[counts & (job.link >= 0)], minlength=len(job.links)) / max(steps, 1)
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


def _compare(points: Points, rows: Ints, same: tuple[Ints, ...], whose: Ints, into: _Columns) -> None:
    """Fill what rows take beyond what is usual for `whose` they are, and for others of the `same` kind."""
    if not len(rows):
        return
    work = points.work[rows]
    place = nth_of((*same, whose, points.rank[rows]), points.step[rows])
    own = numbered(*same, place, whose)
    steps = len(distinct(points.step[rows]))
    usual = np.where(np.bincount(own) * 2 < steps, 0, _medians(own, work))  # what few steps have is not usual
    into.passing[rows] = work - usual[own] if steps >= _FEWEST else 0
    first = first_of(own)
    kind = numbered(*(column[first] for column in (*same, place)))
    others, count = _medians_of_others(kind, usual, np.arange(len(usual)))
    known = count >= 1
    into.lasting[rows] = np.where(known, usual - others, 0)[own]
    into.reference[rows] = np.where(known, others, usual)[own]
    into.place[rows] = np.where(known, kind, -1)[own]


def nth_of(keys: Sequence[Ints], step: Ints) -> Ints:
    """Return which of its keys each row is in its step, from 0; rows are in order of time."""
    group = numbered(*keys, step)
    order = np.argsort(group, kind="stable")
    first = np.append(True, group[order][1:] != group[order][:-1])[: len(order)]
    row = np.arange(len(order))
    nth = np.empty(len(order), np.int64)
    nth[order] = row - np.maximum.accumulate(np.where(first, row, 0))
    return nth


def _medians(group: Ints, values: Ints) -> Ints:
    """Return the median of the values of each group, the lower one of two."""
    order = np.argsort(group, kind="stable")
    first, count = runs(group[order])
    ordered, medians = values[order], np.empty(len(first), np.int64)
    for size in distinct(count).tolist():  # most groups have one value a step: these are sorted together
        some = np.flatnonzero(count == size)
        middle = (size - 1) // 2
        medians[some] = np.partition(ordered[first[some, None] + np.arange(size)], middle, axis=1)[:, middle]
    return medians


def _medians_of_others(group: Ints, values: Ints, whose: Ints) -> tuple[Ints, Ints]:
    """Return for each value the median of those of others in its group, the lower of two, and how many these are.

    One order serves all: the n-th value of others stands as many places after the n-th as own ones come up to it.
    """
    order = np.lexsort((values, group))
    ordered = values[order]
    first, many = runs(group[order])
    start = np.repeat(first, many)
    every = len(order)
    by_owner = np.lexsort((whose[order], group[order]))
    rows = order[by_owner]
    owner, own = runs(group[rows], whose[rows])
    places = np.repeat(np.arange(len(owner)), own) * every + by_owner - start[by_owner]
    others = np.repeat(many, many)[by_owner[owner]] - own
    middle = at = (others - 1) // 2
    while True:
        further = middle + np.searchsorted(places, np.arange(len(owner)) * every + at, side="right") - owner
        if (further == at).all():
            break
        at = further
    medians, count = np.zeros(every, np.int64), np.zeros(every, np.int64)
    medians[rows] = np.repeat(ordered[start[by_owner[owner]] + at], own)
    count[rows] = np.repeat(others, own)
    return medians, count
