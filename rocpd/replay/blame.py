"""The causes whose removal saves a job the most time, found by replay, and whether each lasts.

The time lost is the recorded time minus that of a replay in which everything takes as long as usual. A cause is a rank,
a host, a link, or a step on a rank; its cost is the time that the replay without its excess saves, with the waits of
others for it. The cost is a fact of the recording; whether the cause lasts is a matter of chance, stated separately.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from rocpd.base import Flags, Floats, Ints, by_key
from rocpd.facts.columns import numbered, per_id
from rocpd.facts.communication.collectives import listed
from rocpd.facts.timeline import owned
from rocpd.facts.units import LEAST_STEPS, slow_beyond
from rocpd.replay import trend
from rocpd.replay.causes import (
    OF_COMPUTE,
    OF_HOST,
    PARTS,
    STALLS,
    Blame,
    Candidate,
    Cause,
    CauseKind,
    are_ranks,
    together,
)
from rocpd.replay.chance import LEAST_TO_TELL, LIKELY, MODEL, chance_among, chance_of, uncertainty
from rocpd.replay.denied import Denied, denied, hides_hosts
from rocpd.replay.excess import Excess, are_alike
from rocpd.replay.job import WELL_MATCHED, JobGraph
from rocpd.replay.points import add_to, narrowed, no_times
from rocpd.replay.steps import StepTimes
from rocpd.replay.unmatched import at_most, may_wait

_LEAST = 0.01  # share of a step that a cause costs at least
_TRIED = 6  # ranks, hosts or links that are replayed without: those with the largest excess
_TOGETHER = 24  # ranks that may hide each other
_MOST_CAUSES = 10
_MOST_STEPS = 8
_SHOWN = 0.1  # share of the time a step lost: if no part grew by that much, no cause of the step is given
_MAIN = 0.5  # share of the time a step lost that one rank explains
_FEWEST_LINKS = 3  # links that compare, so that their median says what is usual
_HALF = 0.5  # share of the suspect's excess: ranks with at least that much take about as much longer
_ALL_OF = 0.5  # share of the median excess of a host's ranks that each of them has at least


class _Known:
    """Results that hold until further times are removed: the excess by number in `what`, and the late hosts."""

    def __init__(self) -> None:
        self.excess: dict[int, Floats] = {}
        self.hosts: list[Candidate] | None = None


class Blaming(StepTimes):
    """Tries causes one by one.

    Args:
        job: the graph.
        steps: numbers of the steps that count, in order.
        beyond: the excess of each point over its usual time.
    """

    def __init__(self, job: JobGraph, steps: Sequence[int], beyond: Excess) -> None:
        super().__init__(job, steps)
        self.beyond, recorded = beyond, job.points.time
        self.now: int | None = self.spent(recorded)  # a replay without a change is the recording
        self.step_ns = self.now / max(1, len(steps))
        self.waited = self.waits = self._waiting(recorded)  # in the recording, and in the replay that gave `now`
        self.removed = self.nothing()
        self._known = _Known()
        self.hosts: list[Cause] = []  # hosts whose excess is removed
        self.alone = self._alone()
        self.stalls = trend.stalls(self.alone, self.step_ns, is_one_kind=True)
        self.drifts = trend.drifts(self._longer, self.step_ns)
        self.stalled = self._stalled()
        self.own: Ints | None = None  # excess of each point besides that of removed hosts; None: as recorded
        self.hosts_of_ranks = self._hosts_of_ranks()  # before any time is removed

    def blame(self) -> Blame:
        """Return the causes, and the other results of the replays."""
        causes, recorded = list[Cause](), self._known
        self.own = self.own_beside(self._late)
        for _ in range(_MOST_CAUSES):
            self.job.give_back()
            cause = self._worst()
            if cause is None or cause.cost < _LEAST * self.step_ns:
                break
            causes.append(replace(cause, behind=tuple(range(len(causes)))))
            self._remove(cause)
        causes = together(causes + self._hidden_by_each_other(len(causes)))
        usual = self.spent(self.job.replay_less(self._beyond_usual, self.removed.dtype))
        self.removed, self.hosts, self.own, self._known = self.nothing(), [], None, recorded
        causes = list(map(self._with_cost_alone, causes))
        causes = [replace(each, most=self._most(each, causes)) for each in causes]
        every, known, more = self._computing
        self.job.give_back()
        return Blame(
            tuple(self.steps.tolist()),
            self.step_ns,
            self.step_ns - usual / len(self.steps),
            tuple(causes),
            self._slow_steps(),
            self._longest(),
            dict(zip(self.ranks, (known / np.maximum(every, 1)).tolist(), strict=True)),
            dict(zip(self.ranks, (1 + more / np.maximum(known - more, 1)).tolist(), strict=True)),
            self.job.matched,
            *self._suspects(causes),
            self._unmet,
            self._denied(causes),
            bool((np.bincount(self.beyond.shapes) > 1).any()),
            sum(link.is_inferred for link in self.job.links),
            hides_hosts(self.job, self._meets, self.job.unmatched_in(self.counts), self.step_ns * len(self.steps)),
        )

    def _remove(self, cause: Cause) -> None:
        """Add the excess of the points of a cause to the removed times."""
        add_to(self.removed, self._less(cause))
        self._known = _Known()
        if cause.kind is CauseKind.HOST:
            self.hosts.append(cause)
            self.own = self.own_beside([*self._late, *self.hosts])

    def _hidden_by_each_other(self, before: int) -> list[Cause]:
        """Return causes that hide each other, as a step takes as long without any one of them; remove them all.

        Args:
            before: number of causes that are removed already.
        """
        least = _LEAST * self.step_ns
        some: list[Cause] = []
        for each in sorted(self._candidates(_TOGETHER), key=lambda each: -each.most):
            others = {rank for other in some if other.kind is not CauseKind.LINK for rank in other.ranks}
            is_other = each.kind is CauseKind.LINK or others.isdisjoint(each.ranks)
            if is_other and each.most // len(self.steps) >= least:
                cause = self._cause(each)
                # Ranks that compute longer now and then may have more to do in these steps, such as a hot expert.
                if cause.is_clear and (cause.stalled <= STALLS or cause.mainly == OF_HOST):
                    some.append(cause)
        while len(some) > 1:
            kept = [each for each, cost in zip(some, self._costs_last(some), strict=True) if cost >= least]
            if len(kept) == len(some):
                return self._behind_each_other(together(some), before)
            some = kept
        return []

    def _costs_last(self, some: Sequence[Cause]) -> list[int]:
        """Return the cost of each of some causes per step once the others, and all removed ones, are gone [ns]."""
        less = list(map(self._less, some))
        tried = [less, *([*less[:number], *less[number + 1 :]] for number in range(len(less)))]
        of_all, *without = (self.spent(self.job.replay_without(self.removed, *each)) for each in tried)
        return [(time - of_all) // len(self.steps) for time in without]

    def _behind_each_other(self, some: Sequence[Cause], before: int) -> list[Cause]:
        """Return causes with their costs, and remove them; `before` as in `_hidden_by_each_other`."""
        costs = zip(some, self._costs_last(some), strict=True)
        causes = sorted((replace(cause, cost=cost) for cause, cost in costs), key=lambda cause: -cause.cost)
        for cause in causes:
            self._remove(cause)
        every = {*range(before + len(some))}
        return [replace(cause, behind=tuple(sorted(every - {before + at}))) for at, cause in enumerate(causes)]

    def _beyond_usual(self) -> Iterator[tuple[slice, Ints]]:
        """Yield the points of each rank with their excess over the usual time, removed times as they are [ns]."""
        for _, here in self.of_ranks(self.ranks):
            removed, passing = self.removed[here], self.beyond.passing_of(here)
            passing[self.stalled[here] & (removed != 0)] = 0
            yield here, np.where(removed != 0, removed, self._own_of(here) - self._stalling_of(here)) + passing

    def _with_cost_alone(self, cause: Cause) -> Cause:
        """Return a cause with the time per step that the replay without it alone saves, its stalls or not [ns]."""
        if cause.waiting and not (cause.behind or cause.stalls or self._late):
            return replace(cause, alone=cause.cost)
        times = self.job.replay_without(self._excess_alone(cause))
        waiting = (self.waited - self._waiting(times)) / self.waited if self.waited else 0.0
        return replace(cause, alone=self._regained(times), waiting=max(cause.waiting, waiting))

    def _excess_alone(self, cause: Cause | Candidate) -> Ints:
        """Return the excess of the points of a cause with no other cause removed [ns]."""
        is_rank = cause.kind is CauseKind.RANK
        return self.lasting_of(cause, self.own_beside(self.late_beside(cause.ranks) if is_rank else []))

    def _most(self, cause: Cause, causes: Sequence[Cause]) -> int:
        """Return how much a cause may cost by waits that are not known, for partners or of hosts [ns]; 0: no more.

        As the bounds of a replay without it, it covers that its excess is an estimate, and the error of the model.
        """
        is_known = self.sees_hosts and self.job.matched >= WELL_MATCHED
        if is_known and not len(self.job.unmatched):
            return 0
        less = self._excess_alone(cause)
        if not (most := self._may_regain(less) if is_known else self.at_most(less)):
            return 0
        off = self.uncertainty(less, causes, is_link=cause.kind is CauseKind.LINK)
        return round(most * (1 + off) + MODEL * cause.alone)

    def uncertainty(self, less: Ints, causes: Sequence[Cause], *, is_link: bool) -> float:
        """Return the share by which the excess of some points may be too large or too small; as `chance.uncertainty`.

        Ranks blamed for something else do not count for how far others lie apart, unless hardly any other is left.

        Args:
            less: the excess of each point [ns].
            causes: those that are blamed.
            is_link: whether it is of transfers.
        """
        some = self.counts & (less != 0)
        if (taken := float(less[some].sum()) / max(1, len(self.steps))) <= 0:
            return 0.0
        blamed = [cause for cause in causes if (cause.kind is CauseKind.LINK) == is_link]
        if is_link:
            columns = np.bincount(self.job.link[some.nonzero()[0]], minlength=len(self.job.links)).nonzero()[0]
            series, of_all = self.by_link(self.beyond.longer(self.moved), self.moved), np.arange(len(self.job.links))
            here, slow = np.isin(of_all, columns), np.isin(of_all, [int(cause.name) for cause in blamed])
            usual = ~here & np.isin(self.beyond.shapes, self.beyond.shapes[columns])
        else:
            series = self.by_step_for(int(np.argmax([less[some & (self.what == each)].sum() for each in range(3)])))
            here = np.isin(self.ranks, np.unique(self.job.rank[some]))
            usual, slow = ~here, np.isin(self.ranks, [rank for cause in blamed for rank in cause.ranks])
        innocent = usual & ~slow
        return uncertainty(series, here, innocent if innocent.sum() > 1 else usual, taken)

    def _may_regain(self, less: Ints) -> int:
        """Return how much shorter a step may be if points lose `less`, and communication that is unmatched too [ns]."""
        waits = may_wait(self.job, self.counts, self.at, less)
        return min(self.at_most(less), self._regained(self.job.replay_without(less, *waits))) if waits else 0

    def at_most(self, less: Ints) -> int:
        """Return the most by which a step may get shorter once points lose `less` [ns].

        Without calls by which hosts wait for GPUs, each host seems to work while it waits: that work does not count.
        """
        counts = self.counts if self.sees_hosts else self.counts & (self.job.points.part >= 0)
        return round(at_most(self.job, counts, less)) // max(1, len(self.steps))

    def _regained(self, times: Ints) -> int:
        """Return how much shorter a step is with given times of points than as recorded [ns]."""
        return (self.spent(self.job.points.time) - self.spent(times)) // len(self.steps)

    def _denied(self, causes: Sequence[Cause]) -> Denied | None:
        """Return the rank that ought to be a cause but is not; None: there is no such rank."""
        _, known, more = self._computing
        shares = zip(self.ranks, more.tolist(), (more / np.maximum(known - more, 1)).tolist(), strict=True)
        blamed = {rank for cause in causes for rank in cause.ranks}
        longer = {rank: both for rank, *both in shares if rank not in blamed}

        def regains(rank: int) -> tuple[float, float]:
            less = self._excess_alone(Candidate(CauseKind.RANK, (rank,), ""))
            return self._regained(self.job.replay_without(less)) / self.step_ns, self._may_regain(less) / self.step_ns

        return denied(self.job, self._meets, longer, self.step_ns, regains)

    def late_beside(self, ranks: Sequence[int]) -> list[Candidate]:
        """Return the hosts that are late as a whole, except those of the given ranks.

        If most ranks run on such a host, being late is usual: compared with them, a rank would look early.
        """
        return [host for host in self._late if not set(ranks) & set(host.ranks)]

    @functools.cached_property
    def _late(self) -> list[Candidate]:
        """The hosts that are lastingly late as a whole, with nothing removed."""
        return [host for host in self._of_hosts() if host.name in self._lasting_hosts]

    def _suspects(self, causes: Sequence[Cause]) -> tuple[Cause | None, tuple[int, ...]]:
        """Return the rank or host with the largest lasting excess, and the numbers of all ranks with about as much."""
        every = map(self._cause, (*self._of_hosts(), *self._of_ranks()))
        lasting = [cause for cause in every if cause.chance is not None and cause.chance <= LIKELY]
        worst = max(lasting, key=lambda each: each.takes[each.mainly], default=None)
        if worst is None:
            return None, ()
        least = _HALF * worst.takes[worst.mainly]
        together = {rank for each in lasting if each.takes[worst.mainly] >= least for rank in each.ranks}
        return replace(worst, most=self._most(worst, causes)), tuple(sorted(together))

    def _longest(self) -> dict[int, tuple[int, ...]]:
        """Return number of a step -> the ranks, up to half of all, whose own work takes clearly longest in it."""
        if len(self.ranks) < 2 or len(self.steps) < LEAST_STEPS:
            return {}
        longest = trend.longest(self._longer, _LEAST * self.step_ns)
        return {int(self.steps[at]): tuple(self.ranks[column] for column in some) for at, some in longest.items()}

    @functools.cached_property
    def _longer(self) -> Floats:
        """The time that each rank (column) takes longer than others usually do in each step (row) [ns]."""
        return self.by_step_for(0) + self.by_step_for(1) + self.by_step_for(2)

    def _longer_now(self) -> Floats:
        """Return `_longer` without the excess of hosts that are removed [ns]."""
        if not self.hosts:
            return self._longer
        hosts = self.lasting_of_hosts(self.hosts)

        def left(rows: Ints) -> Ints:
            return self._own_of(rows) - hosts[rows] - self._stalling_of(rows) + self.beyond.passing_alone(rows)

        return self.by_step(left, self.beyond.is_compared)

    def _own_of(self, rows: slice | Ints) -> Ints:
        """Return the excess of some points over the usual time of others, without that of removed hosts [ns].

        As recorded, it is calculated at each call: for many ranks a column of it takes too much memory.
        """
        if self.own is not None:
            return self.own[rows]
        longer = self.beyond.lasting_of(rows)
        return np.add(longer, self._stalling_of(rows), out=longer)

    def in_usual_steps(self, less: Ints, rows: Ints) -> Ints:
        """Return the lasting part of the excess `less` of some points, scaled to usual steps [ns]."""
        lasting = less[rows] - np.where(less[rows] != 0, self._stalling_of(rows), 0)
        return self.beyond.as_usual(lasting, rows)

    def _stalling_of(self, rows: slice | Ints) -> Ints:
        """Return the extra time of some points in the steps in which their rank stalls [ns]; 0 in other steps."""
        stalling = np.zeros(len(self.stalled[rows]), self.beyond.units.usual.dtype)
        some = self.stalled[rows].nonzero()[0]
        stalling[some] = self.beyond.passing_alone(some + (rows.start or 0) if isinstance(rows, slice) else rows[some])
        return stalling

    def nothing(self) -> Ints:
        """Return a column of zeros, one for each point."""
        return no_times(len(self.job.points), self.beyond.units.usual.dtype)

    def by_step_for(self, what: int) -> Floats:
        """Return the excess of ranks (columns) in steps (rows) for one number in `what`, without removed times [ns]."""
        known = self._known.excess
        if what not in known:
            some = partial(self._compares, what)
            longer = self.by_step(self.beyond.longer, some)
            is_as_recorded = not self.removed.any()
            known[what] = longer if is_as_recorded else trend.left(longer, self.by_step(self.removed.__getitem__, some))
        return known[what]

    def _compares(self, what: int, rows: slice) -> Flags:
        """Whether points do one kind of work (its number in `what`), and compare with others."""
        some: Flags = self.beyond.is_compared(rows) & (self.what[rows] == what)
        return some

    def _alone(self) -> Floats:
        """Return how much longer each rank (column) takes in a step (row) than in others, and than other ranks [ns]."""
        # Without its calls, a host that waits for other ranks seems to work.
        works, seen = self.what != 1, self.job.launching if len(self.ranks) > 1 else self.ranks
        for rank in seen:
            works[slice(*self.job.own[rank])] = True
        more = self.by_step(self.beyond.passing_alone, lambda rows: works[rows] & (self.beyond.passing_of(rows) != 0))
        _, known, longer = self._computing
        return trend.alone(more, 1 + longer / np.maximum(known - longer, 1))

    def _stalled(self) -> Flags:
        """Return which points lie in a stall of their rank, or belong to a rank that drifts, whose steps all differ."""
        stalled = np.zeros(len(self.counts), bool)
        for column, here in self.of_ranks(self.ranks):
            inside = (self.counts[here] & (self.what[here] < 3)).nonzero()[0]
            stalled[here][inside] = self.stalls[self.at[here][inside], column] | self.drifts[column]
        return stalled

    def _worst(self) -> Cause | None:
        """Return the cause that costs most once the earlier ones are removed; of equal ones the first candidate.

        No path through the graph gets shorter by more than the removed time. So a candidate whose excess is below the
        cost of the worst one, or below the least cost of a cause, needs no replay.
        """
        least = _LEAST * self.step_ns
        some = [each for each in self._candidates() if each.most // len(self.steps) >= least]
        can_tell = len(self.steps) >= LEAST_TO_TELL
        clear = [each for each in some if not can_tell or self._cause(each).matters]
        candidates = [*clear, *(each for each in some if each not in clear and self._stalls_of(each).sum() >= least)]
        if not candidates:
            return None
        if self.now is None:
            times = self.job.replay_without(self.removed)
            self.now, self.waits = self.spent(times), self._waiting(times)
            del times  # a large column
        now, worst, cost, waits = self.now, 0, -1, self.waits
        for number in sorted(range(len(candidates)), key=lambda number: -candidates[number].most):
            if candidates[number].most < cost:
                break
            less = self._less if number < len(clear) else self._stalls_less
            times = self.job.replay_without(self.removed, less(candidates[number]))
            costs = now - self.spent(times)
            if (costs, -number) > (cost, -worst):
                worst, cost = number, costs
                waits = self._waiting(times)
            del times
        waiting = (self.waits - waits) / self.waited if self.waited else 0.0
        self.now, self.waits = None if self.removed.any() else now - cost, waits
        cause = self._as_it_costs(candidates[worst], now, cost)
        return replace(cause, cost=cost // len(self.steps), waiting=waiting)

    def _stalls_less(self, candidate: Candidate) -> Ints:
        """Return the stalls of a candidate at each point [ns]: its other time may cost nothing, as of a late host."""
        return np.where(self._less(candidate) != 0, self._stalling_of(slice(None)), 0)

    def _stalls_of(self, candidate: Candidate) -> Floats:
        """Return the extra time of a rank in each step in which it stalls, per step of all [ns]; of others nothing."""
        if candidate.kind is not CauseKind.RANK:
            return np.zeros(0)
        column = self.column[candidate.ranks[0]]
        stalling: Floats = self.alone[self.stalls[:, column], column] / len(self.steps)
        return stalling

    def _as_it_costs(self, candidate: Candidate, now: int, cost: int) -> Cause:
        """Return a cause by the parts of its excess that cost time: parts that nobody waits for are left out.

        Args:
            candidate: the candidate with all parts: compute, copies, and calls by name, in stalls and outside of them.
            now: time of all steps with it [ns].
            cost: how much of `now` it costs [ns].
        """
        less, least = self._less(candidate), _LEAST * self.step_ns * len(self.steps)
        rows = less.nonzero()[0]
        name = np.where(self.what[rows] == 1, self.job.points.name[rows], -2 - self.what[rows])
        stalling = self._stalling_of(rows)
        takes = np.append(less[rows] - stalling, stalling)
        part = numbered(np.tile(name, 2), np.arange(len(takes)) // max(1, len(rows)))
        sums = np.bincount(part, takes)
        large = [each for each in np.argsort(-sums).tolist() if sums[each] >= least]
        for each in large[: len(large) if len(large) > 1 else 0]:
            rest = less.copy()
            rest[rows] -= np.where(part == each, takes, 0).reshape(2, -1).sum(0)
            if cost - (now - self.spent(self.job.replay_without(self.removed, rest))) < min(least, _MAIN * cost):
                less = rest
        return self._cause(candidate, less)

    def _candidates(self, ranks: int = _TRIED) -> Iterator[Candidate]:
        """Yield the candidates besides removed causes; of ranks, at most so many, those with the largest excess."""
        yield from self._of_ranks(ranks)
        yield from self._of_hosts()
        left = self._left(self._transfers_longer(self.moved), self.moved)
        less, most = (self.by_link(each, self.moved).sum(0) for each in (left, np.maximum(left, 0)))
        for link in self._those(less):
            yield Candidate(CauseKind.LINK, self.job.links[link].ranks, str(link), round(most[link]))

    def _of_ranks(self, most_ranks: int = _TRIED) -> Iterator[Candidate]:
        """Yield the ranks with the largest excess."""
        sums = []
        for _, here in self.of_ranks(self.ranks):
            left = self._left(self._own_of(here), here)[self.counts[here] & (self.what[here] < 3)]
            sums.append((int(left.sum()), int(np.maximum(left, 0).sum())))
        less, most = np.array(sums).reshape(-1, 2).T
        for column in self._those(less, most_ranks):
            yield Candidate(CauseKind.RANK, (self.ranks[column],), "", round(most[column]))

    def _left(self, beyond: Ints, rows: slice | Ints) -> Ints:
        """Return the excess of some points that is not removed yet, so of ranks of a removed host that beyond its."""
        left = beyond - self.removed[rows]
        left[beyond == 0] = 0
        return left

    def own_beside(self, hosts: Sequence[Cause | Candidate]) -> Ints | None:
        """Return the excess of points of ranks as if some hosts took no longer than others [ns]; None without hosts.

        Args:
            hosts: the hosts; the result includes the excess that they cause.
        """
        if not hosts:
            return None
        of_hosts = self.lasting_of_hosts(hosts)
        longer = self.beyond.lasting_without(of_hosts)
        add_to(longer, of_hosts)
        return np.add(longer, self._stalling_of(slice(None)), out=longer)

    def _hosts_of_ranks(self) -> list[str]:
        """Return the name of the host of each rank, empty where unknown; for a slower part of the ranks, their numbers.

        A slower part may be one socket. Whole hosts keep their names unless they have more than half of the ranks:
        among them it would be usual to be slow.
        """
        names = [self.job.hosts.get(rank) or "" for rank in self.ranks]
        parts = (trend.slower_part(self.by_step_for(what), _LEAST * self.step_ns) for what in (0, 1))
        apart = next((part for part in parts if part), [])
        inside = {names[column] for column in apart}
        are_hosts = not inside & {"", *(name for column, name in enumerate(names) if column not in apart)}
        if are_hosts and len(apart) * 2 <= len(names):
            return names
        together = listed([self.ranks[column] for column in apart])
        return [together if column in apart else name for column, name in enumerate(names)]

    @functools.cached_property
    def _of_host(self) -> tuple[Ints, Ints]:
        """The excess of units over the usual time on other hosts, and the part of it common to their own host [ns]."""
        numbers = dict(zip(self.ranks, np.unique(self.hosts_of_ranks, return_inverse=True)[1].tolist(), strict=True))
        return self.beyond.beyond_others(narrowed(per_id(self.beyond.units.rank, lambda rank: numbers.get(rank, -1))))

    def _those(self, sums: Floats | Ints, count: int = _TRIED) -> list[int]:
        """Return the columns with the largest sums, where these are large enough to be worth a replay."""
        least = _LEAST / 2 * self.step_ns * len(self.steps)
        return [column for column in np.argsort(-sums)[:count].tolist() if sums[column] > least]

    @functools.cached_property
    def moved(self) -> Ints:
        """The numbers of the transfers that count."""
        rows = self.job.link.rows[:-1]
        return rows[self.counts[rows]]

    def _of_hosts(self) -> list[Candidate]:
        """Return hosts of several ranks, all of which take longer than ranks of other hosts, or stall together."""
        if self._known.hosts is None:
            self._known.hosts = list(self._late_hosts())
        return self._known.hosts

    def _late_hosts(self) -> Iterator[Candidate]:
        if not self._several:
            return
        most = self._of_several(np.maximum(self._of_host[1], 0), self.removed == 0)
        for name, columns in self._several.items():
            host = Candidate(CauseKind.HOST, tuple(self.ranks[column] for column in columns), name)
            each = self.of_ranks(host.ranks)
            stalls = [int(self._stalling_with(host, here)[self.removed[here] == 0].sum()) for _, here in each]
            if name in self._lasting_hosts or min(stalls) >= _LEAST / 2 * self.step_ns * len(self.steps):
                yield host._replace(most=round(most[columns].sum() * len(self.steps)) + sum(stalls))

    @functools.cached_property
    def _lasting_hosts(self) -> frozenset[str]:
        """Hosts all of whose ranks usually take longer than the ranks of other hosts."""
        every = self._of_several(self._of_host[0], self.counts)
        more = {name: every[columns] for name, columns in self._several.items()}
        least = {name: max(_ALL_OF * float(np.median(each)), _LEAST / 2 * self.step_ns) for name, each in more.items()}
        return frozenset(name for name, each in more.items() if each.min() >= least[name])

    @functools.cached_property
    def _several(self) -> dict[str, list[int]]:
        """Name of each host of several ranks -> their columns."""
        columns = by_key((name, column) for column, name in enumerate(self.hosts_of_ranks))
        return {name: those for name, those in sorted(columns.items()) if 1 < len(those) < len(self.ranks) - 1}

    def _of_several(self, units: Ints, some: Flags) -> Floats:
        """Return the sum of a value of units over some points of each rank, as a mean per step."""
        sums: Floats = self.by_step(partial(self.beyond.of_units, units), some.__getitem__).sum(0)
        return sums / len(self.steps)

    def _less(self, candidate: Cause | Candidate) -> Ints:
        """Return the excess of the points of a candidate that is not removed yet [ns]."""
        less = self.lasting_of(candidate)
        rows = less.nonzero()[0]
        is_host = candidate.kind is CauseKind.HOST
        less[rows] = np.where(self.removed[rows] != 0, 0, less[rows]) if is_host else self._left(less[rows], rows)
        return less

    def lasting_of(self, cause: Cause | Candidate, of_all: Ints | None = None) -> Ints:
        """Return the excess of the points of a cause over the usual time of others [ns].

        Args:
            cause: the cause.
            of_all: excess of all points of ranks [ns]; None: as recorded, without hosts that are removed.
        """
        less = self.nothing()
        if cause.kind is CauseKind.LINK:
            rows = self.moved[self.job.link[self.moved] == int(cause.name)]
            less[rows] = self._transfers_longer(rows)
            return less
        if cause.kind is CauseKind.HOST:
            less = self.lasting_of_hosts([cause])
        for _, here in self.of_ranks(cause.ranks):
            if cause.kind is CauseKind.HOST:
                less[here] += self._passing_in(cause, here)
                continue
            longer = self._own_of(here) if of_all is None else of_all[here]
            less[here] = np.where(self.counts[here] & (self.what[here] < 3), longer, 0)
        return less

    def _passing_in(self, cause: Cause | Candidate, here: slice) -> Ints:
        """Return the extra time of points of a rank in stalls of all ranks of a cause; in all steps if these drift."""
        return self._stalling_of(here) if self._all_drift(cause) else self._stalling_with(cause, here)

    def _all_drift(self, cause: Cause | Candidate) -> bool:
        return all(self.drifts[self.column[rank]] for rank in cause.ranks)

    def _transfers_longer(self, rows: Ints) -> Ints:
        """Return the excess of some transfers over the usual time of their kind, with stalls of their link [ns]."""
        longer = self.beyond.lasting_of(rows)
        is_stalled = self._stalls_of_links[self.at[rows], self.job.link[rows]]
        longer[is_stalled] += self.beyond.passing_of(rows[is_stalled])
        return longer

    @functools.cached_property
    def _stalls_of_links(self) -> Flags:
        """The steps (rows) in which links (columns) take far longer than in others, and than links that compare.

        Where few links compare, no one can say which of them is usual.
        """
        beyond, links = self.beyond, self.job.links
        more = self.by_link(beyond.passing_of(self.moved), self.moved) / [len(link.ranks) for link in links]
        alone = np.zeros(more.shape)
        for alike in (np.flatnonzero(beyond.shapes == shape) for shape in np.unique(beyond.shapes)):
            if len(alike) >= _FEWEST_LINKS:
                alone[:, alike] = more[:, alike] - np.maximum(np.median(more[:, alike], axis=1), 0)[:, None]
        return trend.stalls(alone, self.step_ns, is_one_kind=False)

    def lasting_of_hosts(self, hosts: Iterable[Cause | Candidate]) -> Ints:
        """Return the usual excess of points that their hosts cause, the same for all points of a place [ns]."""
        less = self.nothing()
        for host in hosts:
            excess = self._of_host[0 if are_ranks(host) else 1]  # of ranks that are no host, what each takes
            for _, here in self.of_ranks(host.ranks):
                longer = self.beyond.in_step(excess[self.beyond.unit[here]], here)
                less[here] = np.where(self.counts[here] & (self.what[here] < 3), longer, 0)
        return less

    def _stalling_with(self, cause: Cause | Candidate, here: slice) -> Ints:
        """Return the extra time of points of a rank in the steps in which all ranks of a cause stall [ns]."""
        together = np.append(self.stalls[:, [self.column[rank] for rank in cause.ranks]].all(1), False)
        return np.where(together[self.at[here]], self._stalling_of(here), 0)

    def _cause(self, candidate: Candidate, less: Ints | None = None) -> Cause:
        """Return a candidate as a cause: its excess by part, and whether it lasts; its cost is not known yet.

        Args:
            candidate: the candidate.
            less: the excess of its points that counts [ns]; None: all.
        """
        kind, ranks, name, _ = candidate
        less = self._less(candidate) if less is None else less
        takes = self._takes(less, len(ranks), len(self.steps))
        cause = Cause(kind, ranks, name, 0, takes, self._largest(less, len(self.steps)), 0.0)
        if kind is CauseKind.LINK:
            return self._of_link(replace(cause, chance=self._chance_of_link(int(name))), less)
        if not self.job.launching.issuperset(ranks) and (cause := cause.by_gpu).mainly == OF_HOST:
            return replace(cause, chance=1.0)
        series = self.by_step_for(PARTS.index(cause.mainly))
        cause = replace(cause, chance=self._chance(cause, series))
        rows = np.concatenate([here.start + np.flatnonzero(self.counts[here]) for _, here in self.of_ranks(ranks)])
        if cause.mainly == OF_COMPUTE and self._are_alike(less[rows], rows):
            cause = replace(cause, largest=("", cause.largest[1]))
        columns = [self.column[rank] for rank in ranks]
        stalls = tuple(self.steps[self.stalls[:, columns].all(1)].tolist())
        onset = trend.onset(series, columns, self.step_ns)
        longest = int(np.isin(self._longer_now().argmax(1), columns)[onset or 0 :].sum())
        since = None if onset is None else int(self.steps[onset])
        more = self._computes_longer(candidate)
        longer = float(more / max(self._computing[1][columns].sum() - more, 1))
        stalling = (np.minimum(self._stalling_with(candidate, here), less[here]) for _, here in self.of_ranks(ranks))
        stalled = sum(int(each.sum()) for each in stalling) / max(1.0, float(less.sum())) if len(stalls) else 0.0
        cause = replace(cause, stalls=stalls, stalled=stalled, longest=longest, longer=longer, since=since)
        if cause.mainly == OF_COMPUTE and onset is not None:  # what is usual in all steps is less than from then on
            (longer,) = self._longer_in(cause, slice(onset, None))
            cause = replace(cause, longer=longer)
        elif cause.mainly == OF_COMPUTE and self._all_drift(cause):
            cause = replace(cause, grows=self._longer_in(cause, *trend.quarters(len(self.steps))))
        return replace(cause, in_stalls=self._in_stalls(cause)) if len(stalls) else cause

    def _longer_in(self, cause: Cause, *parts: slice) -> tuple[float, ...]:
        """Return the share by which a cause computes longer in each of some parts of the steps."""
        here = np.isin(self.ranks, cause.ranks)
        passing = self.by_step(self.beyond.passing_alone, partial(self._compares, 0))
        more = passing[:, here].sum(1) - here.sum() * np.median(passing[:, ~here], axis=1)
        usual = max(float((self._computing[1] - self._computing[2])[here].sum()), 1)
        return tuple(max(0.0, cause.longer + float(more[part].mean() / usual)) for part in parts)

    def _of_link(self, cause: Cause, less: Ints) -> Cause:
        """Return a slow link with the steps in which it takes far longer than in others.

        Args:
            cause: the link as a cause.
            less: the excess of its transfers [ns].
        """
        stalls = self._stalls_of_links[:, int(cause.name)]
        if not stalls.any():
            return cause
        rows = np.flatnonzero(less)
        in_stalls = int(self.beyond.passing_of(rows)[stalls[self.at[rows]]].sum())
        each = round(in_stalls / len(cause.ranks) / int(stalls.sum()))
        stalled = in_stalls / max(1.0, float(less.sum()))
        return replace(cause, stalls=tuple(self.steps[stalls].tolist()), stalled=stalled, in_stalls=each)

    def _in_stalls(self, cause: Cause) -> int:
        """Return how much longer a stalling step takes for the cause's main part, the mean of steps and ranks [ns]."""
        columns, kind = [self.column[rank] for rank in cause.ranks], PARTS.index(cause.mainly)
        stalls, sums = self.stalls[:, columns].all(1), []
        for _, here in self.of_ranks(cause.ranks):
            if cause.mainly == OF_COMPUTE:
                busy = self._computing_at_all(here)
                sums.append(float(busy[stalls].mean() - np.median(busy[~stalls])) if not stalls.all() else 0.0)
            else:
                sums.append(float(self._stalling_with(cause, here)[self.what[here] == kind].sum()) / len(cause.stalls))
        return round(sum(sums) / len(sums))

    def _computing_at_all(self, here: slice) -> Floats:
        """Return the time that a rank computes in each step [ns]; time with several kernels at once counts once."""
        rows = here.start + (self.counts[here] & (self.what[here] == 0)).nonzero()[0]
        end = self.job.points.time[rows]
        parts = owned(end - self.job.points.work[rows], end)
        return np.bincount(self.at[rows[parts.of]], parts.length, len(self.steps)).astype(np.float64)

    def _computes_longer(self, candidate: Candidate) -> float:
        """Return how much longer than others the ranks of a candidate usually compute in a step [ns]."""
        lasting, longer = self.lasting_of(candidate), 0
        for _, here in self.of_ranks(candidate.ranks):
            some = self.counts[here] & self._compares(0, here)
            longer += int((lasting[here] - self._passing_in(candidate, here))[some].sum())
        return longer / len(self.steps)

    def _takes(self, less: Ints, ranks: int, steps: int) -> dict[str, int]:
        """Return part -> the excess of a rank per step [ns]."""
        rows = less.nonzero()[0]
        sums = np.bincount(self.what[rows], less[rows], 4) / steps / max(1, ranks)
        return {what: round(time) for what, time in zip(PARTS, sums, strict=True)}

    def _largest(self, less: Ints, steps: int) -> tuple[str, int]:
        """Return the name with the largest part of the excess `less`, and that part per step [ns]."""
        names = self.job.points.name
        rows = ((less != 0) & (names >= 0)).nonzero()[0]
        sums = np.bincount(names[rows], less[rows])
        return (self.job.names[int(sums.argmax())], round(float(sums.max()) / steps)) if len(sums) else ("", 0)

    def _are_alike(self, longer: Ints, points: Ints) -> bool:
        """Whether kernels among some points take longer by much the same share; `longer`: their excess [ns]."""
        computes = (self.what[points] == 0) & (self.job.points.name[points] >= 0)
        names, work = (column[points[computes]] for column in (self.job.points.name, self.job.points.work))
        return are_alike(*(np.bincount(names, times, 1) for times in (longer[computes], work)))

    def _chance_of_link(self, link: int) -> float:
        """Return the probability that a link is as slow by chance."""
        alike = (self.beyond.shapes == self.beyond.shapes[link]).nonzero()[0].tolist()  # itself among them
        rows = self.moved[self.beyond.is_compared(self.moved)]
        series = self.by_link(self.beyond.longer(rows), rows)
        series = np.where(self._stalls_of_links, np.median(series, axis=0), series)
        return chance_of(series[:, alike], alike.index(link))

    def _chance(self, cause: Cause, series: Floats) -> float:
        """Return the probability that ranks take as long by chance; `series`: excess by step and rank (column) [ns]."""
        series = series - np.median(series, axis=1)[:, None]  # a step long on all ranks is no rank's doing
        usual = np.median(series, axis=0)
        series = np.where(self.stalls, usual, series)  # a stall is no lasting property of a rank
        if cause.kind is CauseKind.RANK:
            column = self.column[cause.ranks[0]]
            chance = chance_among(series, column, self.hosts_of_ranks, self._lasting_hosts)
            # The steps of a rank that drifts resemble their neighbours because it grows, not by chance.
            is_clear = self.drifts[column] and trend.stands_out(self._longer)[column]
            return min(chance, LIKELY) if is_clear else chance
        here = np.isin(self.ranks, cause.ranks)
        return chance_of(np.column_stack([series[:, here].mean(1), series[:, ~here]]), 0)

    @functools.cached_property
    def _computing(self) -> tuple[Floats, Floats, Floats]:
        """The time of computing of each rank in a step, the usual comparable part, and the excess over others [ns]."""
        beyond, work, compares = self.beyond, self.job.points.work.__getitem__, partial(self._compares, 0)
        of_all = (work, lambda here: self.what[here] == 0)
        asked = of_all, (work, compares), (beyond.lasting_of, compares), (beyond.passing_alone, compares)
        every, known, lasting, passing = (self.by_step(*each).sum(0) / len(self.steps) for each in asked)
        return every, known - passing, lasting

    def _slow_steps(self) -> dict[int, Cause]:
        """Return number of a slow step -> its cause: one rank, the ranks of a host, or a few ranks.

        A step in which no part grew enough to explain it has no cause.
        """
        lengths = self.lengths(self.job.points.time)
        bound = slow_beyond(lengths.tolist())
        slow = [int(at) for at in np.argsort(-lengths, kind="stable")[:_MOST_STEPS] if lengths[at] > bound]
        if not slow:
            return {}
        typical = float(np.median(lengths))
        whose = {at: self._whose(at, _MAIN * (lengths[at] - typical)) for at in slow}
        picked = self.nothing()
        for column, of_rank in self.of_ranks(self.ranks):
            is_slow = np.isin(self.at[of_rank], [at for at in slow if column in whose[at]])
            rows = of_rank.start + (is_slow & self.counts[of_rank] & (self.what[of_rank] < 3)).nonzero()[0]
            picked[rows] = self.beyond.passing_of(rows)
        without = self.lengths(self.job.replay_without(picked, *may_wait(self.job, self.counts, self.at, picked)))
        is_coupled = bool(self.job.links) and len(self.ranks) > 1
        causes = {}
        for at in slow:
            lost = _MAIN * (lengths[at] - typical)
            regained = lengths[at] - without[at]
            is_some = self.alone[at, whose[at]].min() >= lost and (regained * 2 >= lost or not is_coupled)
            here, rows = self.nothing(), ((self.at == at) & self.counts).nonzero()[0]
            here[rows] = picked[rows] if is_some else self.beyond.passing_of(rows)
            step, ranks = int(self.steps[at]), tuple(self.ranks[each] for each in whose[at] if is_some)
            cost = round(float(lengths[at] - min(without[at], typical)))
            takes, largest = self._takes(here, len(ranks) or len(self.ranks), 1), self._largest(here, 1)
            largest = (largest[0], largest[1] // (len(ranks) or len(self.ranks)))
            if max(takes.values()) < _SHOWN * (lengths[at] - typical):
                continue  # it waits because another step took longer
            cause = Cause(CauseKind.STEP, ranks, f"step {step}", cost, takes, largest, 0.0, stalls=(step,))
            mine = rows[np.isin(self.job.rank_of(rows), ranks)] if is_some else rows
            is_alike = cause.mainly == OF_COMPUTE and self._are_alike(here[mine], mine)
            causes[step] = replace(cause, largest=("", largest[1])) if is_alike else cause
        return causes

    def _whose(self, at: int, least: float) -> list[int]:
        """Return the columns of the one rank that may make a step slow, or of the ranks that stall in it together.

        Ranks that stall together are all of a host, or up to half of all, each with `least` more time [ns].
        """
        worst = int(self.alone[at].argmax())
        together = self._several.get(self.hosts_of_ranks[worst], [])
        if together and self.stalls[at, together].all():
            return together
        few = (self.stalls[at] & (self.alone[at] >= least)).nonzero()[0].tolist()
        return few if 1 < len(few) <= len(self.ranks) // 2 else [worst]
