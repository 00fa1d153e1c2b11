"""The times of a job by step and rank, in the recording or in a replay: lengths, waits, and who waits unseen."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from rocpd.base import Flags, Floats, Ints
from rocpd.facts.timeline import COMPUTE, COPIES
from rocpd.replay.job import JobGraph
from rocpd.replay.points import Edge, Point, places_of

_AT_ONCE = 1 << 16  # points


class StepTimes:
    """Measures the steps of a job.

    Args:
        job: the graph.
        steps: numbers of the steps that count, in order.

    Attributes:
        ranks: the ranks, in order; `column`: the place of each.
        at: the place of each point's step; `counts`: whether it is one of the steps.
        what: the kind of work of each point: computing, that of the host, copies, and communication, as in `PARTS`.
    """

    def __init__(self, job: JobGraph, steps: Sequence[int]) -> None:
        self.job, self.steps = job, np.array(steps, np.int64)
        self.ranks = sorted(job.steps)
        self.column = {rank: number for number, rank in enumerate(self.ranks)}
        self.at, self.counts = places_of(job.points.step, self.steps)
        points = job.points
        self.what = np.full(len(points), 3, np.int8)  # communication
        self.what[points.part == COPIES] = 2
        self.what[(points.part < 0) & (points.kind != Point.MEETING)] = 1  # the host
        self.what[(points.part == COMPUTE) & (points.kind != Point.ARRIVAL)] = 0

    def of_ranks(self, ranks: Iterable[int]) -> Iterator[tuple[int, slice]]:
        """Yield the column of each rank with the slice of its points."""
        for rank in ranks:
            yield self.column[rank], slice(*self.job.own.get(rank, (0, 0)))

    def by_step(self, values: Callable[[Ints], Ints], some: Callable[[slice], Flags]) -> Floats:
        """Return the sum of a value over the points of each rank (column) in each step (row).

        Args:
            values: returns the values of some points.
            some: returns which points of a slice count.
        """
        sums = np.zeros((len(self.ranks), len(self.steps)))
        edges = np.array([0, *(end for _, end in self.job.own.values())])
        rank = np.array([self.column.get(rank, 0) for rank in self.job.own]) * len(self.steps)
        for low in range(0, len(self.counts), _AT_ONCE):
            here = slice(low, low + _AT_ONCE)
            rows = (some(here) & self.counts[here] & (self.what[here] < 3)).nonzero()[0]
            first = np.repeat(rank, np.diff(edges.clip(low, here.stop)))[rows]
            rows += low
            sums += np.bincount(first + self.at[rows], values(rows), sums.size).reshape(sums.shape)
        return np.ascontiguousarray(sums.T)

    def by_link(self, values: Ints, rows: Ints) -> Floats:
        """Return the sum of a value over some transfers of each link (column) in each step (row)."""
        sums = np.zeros((len(self.steps), len(self.job.links)))
        np.add.at(sums, (self.at[rows], self.job.link[rows]), values)
        return sums

    def spent(self, times: Ints) -> int:
        """Return the time from the begin to the end of all steps that count, given times of points [ns]."""
        if self._begin is None:
            return 0
        least = np.iinfo(times.dtype).min
        last = max(times[here].max(where=self.counts[here], initial=least) for here in self._ending)
        return int(last) - self.begin(times)

    @functools.cached_property
    def _unmet(self) -> tuple[int, ...]:
        """The ranks that communicate but never with a known partner, although others have known partners."""
        talks = (self.counts & (self.job.points.kind == Point.TRANSFER)).nonzero()[0]
        talks, met = (np.unique(self.job.rank_of(rows)) for rows in (talks, talks[self.job.link[talks] >= 0]))
        return tuple(np.setdiff1d(talks, met).tolist()) if len(met) else ()

    @functools.cached_property
    def _ending(self) -> list[slice]:
        """The points of each rank, except the unmet ranks, which would end as recorded whatever the others do."""
        return [slice(*ends) for rank, ends in self.job.own.items() if rank not in self._unmet]

    def begin(self, times: Ints) -> int:
        """Return the begin of the steps that count [ns]: it moves only as far as all ranks move.

        A single rank that begins earlier makes no job longer.
        """
        first = [of_rank[self.steps[0]][0] for of_rank in self.job.steps.values() if self.steps[0] in of_rank]
        moved = times[first] - self.job.points.time[first]
        return int((self._begin or 0) + np.clip(0, moved.min(), moved.max()))

    @functools.cached_property
    def _begin(self) -> int | None:
        """The recorded begin of the steps that count [ns]; None: they hold no points."""
        time = self.job.points.time
        return int(time.min(where=self.counts, initial=np.iinfo(time.dtype).max)) if self.counts.any() else None

    @functools.cached_property
    def _meets(self) -> tuple[Ints, Ints]:
        """The arrivals at collectives in steps that count, and the starts of these collectives: numbers of points."""
        edges, points = self.job.edges, self.job.points
        rows = (edges.kind == Edge.COLLECTIVE).nonzero()[0]
        target = edges.target(rows)
        meets = (points.kind[target] == Point.MEETING) & self.counts[target]
        return edges.source[rows[meets]], target[meets]

    def _waiting(self, times: Ints) -> int:
        """Return how long members wait for the last member, over all collectives in steps that count [ns]."""
        came, meet = self._meets
        return int((times[meet] - times[came]).sum())

    def lengths(self, times: Ints) -> Floats:
        """Return the length of each step, the mean over the ranks [ns]."""
        spans = [
            [times[each[step][1]] - times[each[step][0]] for each in self.job.steps.values() if step in each]
            for step in self.steps.tolist()
        ]
        return np.array([np.mean(each) if each else 0.0 for each in spans])

    @functools.cached_property
    def sees_hosts(self) -> bool:
        """Whether the calls that launch work are recorded of all ranks."""
        return self.job.launching.issuperset(self.ranks)
