"""Says whether a rank holds the others up, or that none does. Pure: it reads nothing.

Like is compared with like: ranks that run the same kernels equally often. Two witnesses are heard, step by step: who
computed longest, and who came last to the collectives that such ranks have with each other. By chance each of `n`
peers is first in one of `n` steps. A rank for which that is more often the case than chance explains (binomial
distribution, with as many trials as there are steps and ranks) and which costs more than a hundredth of a step is a
straggler; one that computes longer, but for which nobody waits, is none. Two that are first in turn are stragglers if
together they are first more often than chance explains.

Cuts a job into steps, or pieces like them, in which ranks are compared: each on its own clock.

A step is the unit of chance. What slows a rank in a step makes it late in each collective of the step, so collectives
of one step say the same thing once.

What speaks for and against a rank, step by step: how long it computed, how late it came. Pure: it reads nothing.

Ranks that run the same kernels equally often are peers. By chance each of `n` peers is first in one of `n` steps.

Says which rank was slow in a step, where one was. Knows no markers: a step is a row.

In a synchronous job all ranks end a step together, so how long a step takes says nothing about a rank. What it computed
does, against ranks that do the same, and how late it came to their collectives.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from rocpd.base.frozen import frozen
from rocpd.base.types import Flags, Floats, Ints
from rocpd.facts.columns import grouped
from rocpd.facts.communication.arrivals import arrivals
from rocpd.facts.communication.collectives import Channel, Group, listed
from rocpd.facts.communication.matching import Clocks
from rocpd.facts.operations import OperationNames, Ops
from rocpd.facts.regions import RankSteps
from rocpd.facts.timeline import covered
from rocpd.federate.select.selection import Part
from rocpd.schema.rules.steps import folded
from rocpd.summary.findings import Confidence, Finding, Verdict

_FEWEST = 4  # collectives to cut by


@frozen
class RankWork:
    """What a rank computed.

    Args:
        kernels: name of a kernel -> how often it ran; communication is left out.
        steps: text and number of a step marker, where all of the step counts -> how long its GPUs run kernels that
            start in it [ns].
        before: for each channel of the rank, how long kernels before each of its kernels run [ns].
        busy: text and number of a step marker -> how long its GPUs do anything before its start, and before its end.
        is_cut: whether a window leaves out a part of the trace.
    """

    kernels: Mapping[str | None, int]
    steps: Mapping[tuple[str, int], int]
    before: Sequence[Ints]
    busy: Mapping[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    is_cut: bool = False

    def without(self, steps: Collection[tuple[str, int]]) -> RankWork:
        """Return the same without some steps."""
        return replace(self, steps={step: time for step, time in self.steps.items() if step not in steps})


def work_of(
    ops: Ops, compute: Ints, names: OperationNames, steps: RankSteps, channels: Iterable[Channel], part: Part
) -> RankWork:
    """Return what a rank computed.

    Args:
        ops: its operations.
        compute: the numbers of its kernels among these.
        names: names of operations.
        steps: its markers.
        channels: its communication.
        part: the part of its time that counts.
    """
    low = -math.inf if part.start is None else part.start
    high = math.inf if part.end is None else part.end
    complete = {key: span for key, span in steps.steps.items() if low <= span[0] and sum(span) <= high}
    added = np.zeros(len(ops), np.int64)
    for (_,), rows in grouped([ops.agent[compute]]):
        added[compute[rows]] = ops.take(compute[rows]).added()
    order = compute[np.argsort(ops.start[compute], kind="stable")]
    starts = ops.start[order]
    summed = np.concatenate([[0], np.cumsum(added[order])])
    edges = np.array([(start, start + length) for start, length in complete.values()], np.int64).reshape(-1, 2)
    inside = np.diff(summed[np.searchsorted(starts, edges)], axis=1)[:, 0]
    counts = np.bincount(names.first_alike()[ops.name[compute]], minlength=len(names.full))
    return RankWork(
        {names.full[name]: int(counts[name]) for name in np.flatnonzero(counts).tolist()},
        dict(zip(complete, inside.tolist(), strict=True)),
        tuple(summed[np.searchsorted(starts, channel.start)] for channel in channels),
        dict(zip(complete, zip(*covered(ops.union(), edges.T).tolist(), strict=True), strict=True)),
        part != Part(None, None),
    )


@frozen
class Periods:
    """Steps, or pieces like them, that all ranks went through; rows are periods, columns ranks.

    Args:
        ranks: their numbers.
        start, end: of each [ns of the clock of the rank]; they do not overlap.
        compute: how long kernels of it run, without communication [ns].
        idle: how long a rank does nothing from the end of the one before to its end [ns]; None where that is unknown.
        unit: what one is called.
        markers: text and number of the marker of each, where there are markers.
    """

    ranks: tuple[int, ...]
    start: Ints
    end: Ints
    compute: Ints
    idle: Ints | None = None
    unit: str = "steps"
    markers: tuple[tuple[str, int], ...] = ()

    def __len__(self) -> int:
        return len(self.start)

    @property
    def length(self) -> Floats:
        """How long each one takes, the mean of the ranks [ns]."""
        length: Floats = (self.end - self.start).mean(1)
        return length

    def find(self, rank: int, times: Ints) -> Ints:
        """Return in which period of a rank times of its clock are, -1 for none."""
        column = self.ranks.index(rank)
        at = np.searchsorted(self.start[:, column], times, side="right") - 1
        inside: Ints = np.where(times < self.end[:, column][np.maximum(at, 0)], at, -1)
        return inside


def periods(
    steps: Mapping[int, RankSteps], works: Mapping[int, RankWork], groups: Sequence[Group], before: Mapping[int, Ints]
) -> Periods | None:
    """Return the periods of the ranks that compute: steps by their markers, else pieces between collectives.

    Args:
        steps: rank -> its markers.
        works: rank -> what it computed.
        groups: channels of one communicator each.
        before: `id` of a channel -> `RankWork.before` of it.
    """
    computing = [rank for rank in sorted(works) if works[rank].kernels]
    if not computing:
        return None
    return _by_markers(computing, steps, works) or _by_collectives(computing, groups, before)


def _by_markers(ranks: Sequence[int], steps: Mapping[int, RankSteps], works: Mapping[int, RankWork]) -> Periods | None:
    """Return the steps that all ranks have: those with most markers of the kinds that cover much of the time."""
    first = steps[ranks[0]].steps
    common = set(first).intersection(*(works[rank].steps for rank in ranks))
    kinds: dict[str, list[tuple[str, int]]] = {}
    for key in sorted(common, key=lambda key: first[key]):
        kinds.setdefault(folded(key[0]), []).append(key)
    if not kinds:
        return None
    covered = {kind: sum(first[key][1] for key in keys) for kind, keys in kinds.items()}
    most = max(covered.values())
    keys = max((keys for kind, keys in kinds.items() if covered[kind] * 2 >= most), key=len)
    spans = np.array([[steps[rank].steps[key] for rank in ranks] for key in keys])
    start, end = spans[..., 0], spans.sum(-1)
    if (start[1:] < end[:-1]).any():
        return None
    compute = np.array([[works[rank].steps[key] for rank in ranks] for key in keys])
    busy = np.array([[works[rank].busy[key] for rank in ranks] for key in keys])
    idle = (_since(start, end) - _since(busy[..., 0], busy[..., 1])).clip(0)
    return Periods(tuple(ranks), start, end, compute, idle, markers=tuple(keys))


def _since(start: Ints, end: Ints) -> Ints:
    """Return how far each end is from the one before, the first from its start."""
    since: Ints = np.diff(np.concatenate([start[:1], end]), axis=0)
    return since


def _by_collectives(ranks: Sequence[int], groups: Sequence[Group], before: Mapping[int, Ints]) -> Periods | None:
    """Return pieces between collectives of all ranks, the rarest ones; as many as collectives in a piece."""
    whole = [group for group in groups if {member.rank for member in group}.issuperset(ranks)]
    enough = [group for group in whole if len(group[0]) >= _FEWEST]
    if not enough:
        return None
    group = min(enough, key=lambda group: len(group[0]))
    count = len(group[0])
    edges = np.append(np.arange(0, count - 1, math.ceil(math.sqrt(count))), count - 1)
    member = {member.rank: member for member in reversed(group)}
    times = np.array([member[rank].end[edges] for rank in ranks]).T
    compute = np.diff(np.array([before[id(member[rank])][edges] for rank in ranks]).T, axis=0)
    return Periods(tuple(ranks), times[:-1], times[1:], compute, unit="pieces of the trace")


_MANY = 32  # ranks, whose median hardly depends on one of them
_CUT = 1.25  # steps by whose kernels ranks that a window cuts may differ
_BLOCK = 1 << 21  # collectives times members in memory at once


@frozen
class Lateness:
    """How late ranks came to collectives with their peers, by period (row) and rank (column).

    Args:
        late: the sum of how much later than the mean of the members it came [ns].
        caused: how long others waited for it [ns].
        is_known: which ranks took part in any.
    """

    late: Floats
    caused: Floats
    is_known: Flags


@frozen
class Witness:
    """In how many periods each rank was the first of its peers in something; ties are shared.

    Args:
        first: in how many periods.
        expected: in how many by chance.
        chance: how likely that many are by chance alone, had one rank been looked at.
        excess: by how much it exceeds the median of its peers, the mean of all periods [ns].
    """

    first: Floats
    expected: Floats
    chance: Floats
    excess: Floats


def peers_of(works: Mapping[int, RankWork], periods: Periods) -> list[Ints]:
    """Return the columns of ranks that run the same kernels equally often in a step; one alone has no peer.

    A window cuts ranks at different kernels: there, what differs by no more than the kernels of a step is alike.
    """
    alike: list[tuple[RankWork, list[int]]] = []
    for column, rank in enumerate(periods.ranks):
        work = works[rank]
        columns = next((columns for first, columns in alike if _is_alike(first, work, len(periods))), None)
        if columns is None:
            alike.append((work, columns := []))
        columns.append(column)
    return [np.array(columns, np.int64) for _, columns in alike]


def _is_alike(work: RankWork, other: RankWork, steps: int) -> bool:
    counts = [(work.kernels.get(name, 0), other.kernels.get(name, 0)) for name in {*work.kernels, *other.kernels}]
    if work.is_cut or other.is_cut:
        return all(abs(a - b) * steps <= _CUT * max(a, b) for a, b in counts)
    return all(round(a / steps) == round(b / steps) for a, b in counts)


def lateness(
    groups: Sequence[Group], periods: Periods, peers: Sequence[Ints], clocks: Clocks, *, has_stages: bool
) -> Lateness:
    """Return how late ranks came to the collectives of groups of peers.

    Args:
        groups: channels of one communicator each.
        periods: the steps.
        peers: columns of ranks that do the same.
        clocks: which times of the ranks compare.
        has_stages: ranks pass work on to each other: in a group of all ranks the first stage comes last by nature.
    """
    shape = len(periods), len(periods.ranks)
    late, caused, is_known = np.zeros(shape), np.zeros(shape), np.zeros(shape[1], bool)
    kind = {periods.ranks[column]: number for number, columns in enumerate(peers) for column in columns.tolist()}
    for group in groups:
        ranks = [member.rank for member in group]
        if len({kind.get(rank, -1 - rank) for rank in ranks}) > 1 or (has_stages and set(ranks) == set(kind)):
            continue
        columns = np.array([periods.ranks.index(rank) for rank in ranks])
        is_known[columns] = True
        for numbers, at in _inside(group, periods):
            when = arrivals(group, clocks, numbers)
            later, waited = when.came - when.came.mean(0), when.shares * when.waits.sum(0)
            for row, column in enumerate(columns.tolist()):
                late[:, column] += np.bincount(at, later[row], shape[0])
                caused[:, column] += np.bincount(at, waited[row], shape[0])
    return Lateness(late, caused, is_known)


def _inside(group: Group, periods: Periods) -> Iterator[tuple[Ints, Ints]]:
    """Yield numbers of the collectives of a group that are in a period, and in which."""
    step = max(1, _BLOCK // len(group))
    at = periods.find(group[0].rank, group[0].start)
    numbers = np.flatnonzero(at >= 0)
    for low in range(0, len(numbers), step):
        yield numbers[low : low + step], at[numbers[low : low + step]]


def witness(values: Floats, peers: Sequence[Ints], is_known: Flags) -> Witness:
    """Return who was the first of its peers how often.

    Args:
        values: by period and rank: the larger, the worse.
        peers: columns of ranks that are compared.
        is_known: columns that are.
    """
    count, width = values.shape
    first, expected, chance = np.zeros(width), np.zeros(width), np.ones(width)
    excess = np.zeros(width)
    for every in peers:
        columns = every[is_known[every]]
        if len(columns) < 2:
            continue
        among = values[:, columns]
        is_first = among == among.max(1, keepdims=True)
        first[columns] = (is_first / is_first.sum(1, keepdims=True)).sum(0)
        expected[columns] = count / len(columns)
        usual = np.median(among, axis=1)
        for place, column in enumerate(columns.tolist()):
            chance[column] = at_least(math.floor(first[column] + 1e-9), count, 1 / len(columns))
            others = np.median(np.delete(among, place, axis=1), axis=1) if len(columns) <= _MANY else usual
            excess[column] = (among[:, place] - others).mean()
    return Witness(first, expected, chance, excess)


def at_least(times: int, trials: int, chance: float) -> float:
    """Return how likely something is to happen so many times or more.

    >>> at_least(0, 4, 0.5), at_least(4, 4, 0.5), at_least(3, 4, 0.5)
    (1.0, 0.0625, 0.3125)
    """
    if times <= 0:
        return 1.0
    total = 0.0
    for k in range(times, trials + 1):
        ways = math.lgamma(trials + 1) - math.lgamma(k + 1) - math.lgamma(trials - k + 1)
        term = math.exp(ways + k * math.log(chance) + (trials - k) * math.log1p(-chance))
        total += term
        if k > trials * chance and term <= total * 1e-15:
            break
    return min(1.0, round(total, 15))


_OUTSTANDING = 4.0  # deviations above the peers
_AHEAD = 1.0  # deviations above the next rank: otherwise both are
_LEAST_COMPUTE = 0.003  # deviation of times of computing, at least
_LEAST_LATE_NS = 20_000  # deviation of how late ranks come, at least: collectives end so far apart
_NORMAL = 1.4826  # deviation by median distance


def slowest(compute: Floats, late: Floats, is_late_known: Flags, peers: Sequence[Ints]) -> list[int | None]:
    """Return the column of the rank that was slow in each step, None where all were alike or several were slow.

    Args:
        compute: how long each rank (column) computed in each step (row).
        late: how late it came to collectives [ns].
        is_late_known: columns of which that is known.
        peers: columns of ranks that do the same.
    """
    everyone = np.ones(compute.shape[1], bool)
    by_compute = _outstanding(compute, everyone, peers, _LEAST_COMPUTE, is_relative=True)
    by_arrival = _outstanding(late, is_late_known, peers, _LEAST_LATE_NS, is_relative=False)
    return [first if first is not None else second for first, second in zip(by_compute, by_arrival, strict=True)]


def _outstanding(
    values: Floats, is_known: Flags, peers: Sequence[Ints], least: float, *, is_relative: bool
) -> list[int | None]:
    """Return the column that is far above its peers, and above any other, in each row."""
    deviations = np.full(values.shape, -np.inf)
    for every in peers:
        columns = every[is_known[every]]
        if len(columns) > 1:
            usual = np.median(values[:, columns], axis=1, keepdims=True)
            apart = values[:, columns] - usual
            apart = apart / np.maximum(usual, 1) if is_relative else apart
            deviations[:, columns] = apart / max(least, _NORMAL * float(np.median(np.abs(apart))))
    first = deviations.argmax(1)
    rows = np.arange(len(values))
    most = deviations[rows, first]
    deviations[rows, first] = -np.inf
    stands_out = (most >= _OUTSTANDING) & (most >= deviations.max(1, initial=-np.inf) + _AHEAD)
    return [column if stands else None for column, stands in zip(first.tolist(), stands_out.tolist(), strict=True)]


RULE = "comm.straggler"
_CHANCE = 0.02  # that a job without straggler is said to have one
_LEAST_CHANCE = 1e-6  # at which it is sure that a rank which computes no longer comes last
_LEAST_COST = 0.01  # of a step, that a rank computes longer or that each of the others waits for it
_LEAST_WAIT = 0.002  # of a step, that each of the others waits for one that computes longer
_HIDES = 2.0  # times as much waiting for a rank that comes late as for those that compute longer
_DRAWS = 500


@frozen
class Judgement:
    """What is concluded of the ranks of a job.

    Args:
        findings: the verdict; the first is the most important.
        culprits: ranks that hold others up, the worst first.
        last: rank -> in how many of the steps it came last.
        compute: rank -> its time of computing by the median of its peers.
        slowest: text and number of a step marker -> the rank that was slow in that step, where one was.
        usual: a peer of the worst rank whose time is usual; None without culprits.
    """

    findings: tuple[Finding, ...]
    culprits: tuple[int, ...] = ()
    last: Mapping[int, float] = field(default_factory=dict)
    compute: Mapping[int, float] = field(default_factory=dict)
    slowest: Mapping[tuple[str, int], int] = field(default_factory=dict)
    usual: int | None = None


def judge(
    groups: Sequence[Group],
    periods: Periods | None,
    works: Mapping[int, RankWork],
    clocks: Clocks,
    hosts: Mapping[int, str | None],
    *,
    has_stages: bool,
) -> Judgement:
    """Return the verdict on the ranks of a job.

    Args:
        groups: channels of one communicator each, those of collectives.
        periods: the steps; None where nothing shows them.
        works: rank -> what it computed.
        clocks: which times of the ranks compare.
        hosts: rank -> name of its host.
        has_stages: as `lateness`.
    """
    if not groups:
        return unknown("stragglers: not recorded: no collectives")
    if periods is None or not len(periods):
        return unknown("stragglers: not known: neither step markers nor enough collectives of all ranks")
    peers = peers_of(works, periods)
    if max(map(len, peers)) < 2:
        return unknown("stragglers: not known: no two ranks do the same work")
    has_stages = has_stages or len(peers) > 1
    late = lateness(groups, periods, peers, clocks, has_stages=has_stages)
    is_of_all = has_stages and not late.is_known.any()
    if is_of_all:  # where stages may hold each other up, those of all ranks acquit, and accuse nobody
        late = lateness(groups, periods, peers, clocks, has_stages=False)
    return _Case(periods, peers, late, has_stages, is_of_all).judgement(hosts)


def unknown(text: str) -> Judgement:
    """Return the verdict that nobody can know, with the reason."""
    return Judgement((Finding(text, RULE, Verdict.UNKNOWN, Confidence.CERTAIN),))


class _Case:
    """What is known when the verdict is to be found; columns are ranks.

    Attributes:
        by_compute, by_arrival, by_idle: who computed longest, came last, did nothing longest in how many periods.
        slow: the rank that was slow in each period.
        compared: ranks that have peers.
        trials: how often chance may strike: four questions for each of them.
        step: how long a step takes [ns].
        computes, waited_for: which part of a step each rank computes longer, and others wait for it.
        idle_cost: which part of a step each rank does nothing for longer than its peers; 0 where that says nothing: in
            a pipeline it tells who is late by itself, as a rank that others hold up waits for them in communication.
        is_longest: which ranks compute longest more often than chance explains.
        idles: which ranks do nothing for longer than their peers, by more than chance.
        stands_out: which ranks were slow in more of the steps in which one was than chance explains.
    """

    def __init__(
        self, periods: Periods, peers: Sequence[Ints], late: Lateness, has_stages: bool, is_of_all: bool
    ) -> None:
        self.periods, self.peers, self.late = periods, peers, late
        self.has_stages, self.is_of_all = has_stages, is_of_all
        count, everyone = len(periods.ranks), np.ones(len(periods.ranks), bool)
        compute = periods.compute.astype(float)
        idle = np.zeros_like(compute) if periods.idle is None else periods.idle.astype(float)
        self.by_compute, self.by_idle = (witness(values, peers, everyone) for values in (compute, idle))
        self.by_arrival = witness(late.late, peers, late.is_known)
        self.slow = slowest(compute, late.late, late.is_known, peers)
        self.compared = [column for columns in peers if len(columns) > 1 for column in columns.tolist()]
        self.trials = 4 * len(self.compared)
        self.step = max(1.0, float(np.median(periods.length)))
        self.computes = self.by_compute.excess / self.step
        self.waited_for = late.caused.mean(0) / max(1, count - 1) / self.step
        self.idle_cost = self.by_idle.excess / self.step * has_stages
        self.is_longest = self._is_above_chance(self.by_compute)
        self.idles = self._is_above_chance(self.by_idle) & (self.idle_cost >= _LEAST_COST)
        named = np.array([column for column in self.slow if column is not None], np.int64)
        by_chance = 1 / len(self.compared)
        chance = [at_least(int(times), len(named), by_chance) for times in np.bincount(named, minlength=count)]
        self.stands_out: Flags = np.array(chance) * self.trials <= _CHANCE

    def judgement(self, hosts: Mapping[int, str | None]) -> Judgement:
        """Return the verdict, with what it rests on; `hosts`: rank -> name of its host."""
        ranks = self.periods.ranks
        culprits, finding = self._guilty_host(hosts) or self._guilty_ranks()
        compute = {ranks[column]: 1 + self._longer(column) for column in self.compared}
        last = {ranks[column]: float(self.by_arrival.first[column]) for column in np.flatnonzero(self.late.is_known)}
        usual = self._usual(culprits) if finding.rank is not None else None
        marked = zip(self.periods.markers, self.slow, strict=False)
        slowest = {marker: ranks[column] for marker, column in marked if column is not None}
        return Judgement((finding,), culprits, last, compute, slowest, usual)

    def _usual(self, culprits: Sequence[int]) -> int | None:
        """Return a peer of the worst rank that is to blame for nothing and computes as long as most."""
        ranks = self.periods.ranks
        (peers,) = (columns for columns in self.peers if ranks.index(culprits[0]) in columns)
        innocent = [column for column in peers.tolist() if ranks[column] not in culprits]
        by_time = sorted(innocent, key=lambda column: float(self.periods.compute[:, column].sum()))
        return ranks[by_time[len(by_time) // 2]] if by_time else None

    def _longer(self, column: int) -> float:
        """Return by which part a rank computes longer than its peers."""
        mean = float(self.periods.compute[:, column].mean())
        usual = mean - float(self.by_compute.excess[column])
        return mean / usual - 1 if usual > 0 else 0.0

    def _is_above_chance(self, witness: Witness) -> Flags:
        above: Flags = witness.chance * self.trials <= _CHANCE
        return above

    def _guilty_ranks(self) -> tuple[tuple[int, ...], Finding]:
        """Return the ranks that hold others up, the worst first, and the verdict."""
        columns, in_turn = self._guilty(), ""
        if not columns:
            columns, in_turn = self._alternating()
        if not columns:
            return (), self._innocent()
        culprits = tuple(self.periods.ranks[column] for column in columns)
        confidence = Confidence.LIKELY if in_turn else self._confidence(columns[0])
        confidence = confidence if self.periods.unit == "steps" else Confidence.HINT
        perhaps = "perhaps " if confidence is Confidence.HINT else ""
        what = "a straggler"
        if len(columns) > 1:
            what = f"stragglers, {'in turn ' if in_turn else ''}with {_named(culprits[1:])}{in_turn}"
        text, evidence = f"{self._sentence(columns[0])}: {perhaps}{what}", self._evidence(columns[0])
        return culprits, Finding(text, RULE, Verdict.PROBLEM, confidence, culprits[0], evidence=evidence)

    def _guilty(self) -> list[int]:
        """Return the columns of ranks each of which holds others up, the worst first.

        These compute longer, or just come late: who comes late may hide from others that some compute longer.
        """
        waited_for = self.waited_for
        comes_late = ~self.late.is_known | ((self.late.late.mean(0) > 0) & (waited_for >= _LEAST_WAIT))
        slow = (self.is_longest | self.stands_out) & (self.computes >= _LEAST_COST)
        slow, cost = (slow | self.idles) & comes_late, np.maximum(self.computes, self.idle_cost)
        tardy = self._is_above_chance(self.by_arrival) & (waited_for >= _LEAST_COST) & (not self.has_stages)
        by_slow = np.where(self.late.is_known, waited_for, np.inf)[slow].max(initial=0)
        is_hidden = waited_for[tardy].max(initial=0) > _HIDES * by_slow
        guilty, cost = (tardy, waited_for) if is_hidden else (slow, cost)
        return sorted(np.flatnonzero(guilty).tolist(), key=lambda column: -cost[column])

    def _alternating(self) -> tuple[list[int], str]:
        """Return the columns of two ranks that hold others up in turn, the worst first, and how often one did."""
        count, first = len(self.periods), self.by_compute.first
        costs = (self.computes >= _LEAST_COST) & (~self.late.is_known | (self.waited_for >= _LEAST_COST))
        for columns in (columns for columns in self.peers if len(columns) > 3):
            pair = sorted(columns.tolist(), key=lambda column: (-first[column], column))[:2]
            times = float(first[pair].sum())
            chance = at_least(math.floor(times + 1e-9), count, 2 / len(columns))
            if costs[pair].all() and chance * math.comb(len(columns), 2) <= _CHANCE:
                expected = _counted(2 * count / len(columns))
                in_turn = f" (longest in {_counted(times)} of {count}, {expected} expected)"
                return sorted(pair, key=lambda column: -self.computes[column]), in_turn
        return [], ""

    def _confidence(self, column: int) -> Confidence:
        """Return how sure it is: coming last alone, with nothing that explains it, must be far beyond chance."""
        is_slow = self.is_longest | (self.idles & self.late.is_known)
        is_last = self.by_arrival.chance[column] * self.trials <= _LEAST_CHANCE
        return Confidence.LIKELY if is_slow[column] or is_last else Confidence.HINT

    def _sentence(self, column: int) -> str:
        count, unit = len(self.periods), self.periods.unit
        rank, parts = self.periods.ranks[column], []
        witness, did = (
            (self.by_arrival, "was last") if self.late.is_known[column] else (self.by_compute, "took longest")
        )
        times, expected = witness.first[column], witness.expected[column]
        is_above = self.idles | self.is_longest | self._is_above_chance(self.by_arrival)
        if self.stands_out[column] and not is_above[column]:
            slow = sum(each is not None for each in self.slow)
            parts.append(f"stands out in {self.slow.count(column)} of {slow} {unit} in which a rank does")
        parts.append(f"{did} in {_counted(times)} of {count} {unit} ({_counted(expected)} expected)")
        longer = self._longer(column)
        parts.append(f"computes {longer * 100:.2g} % longer" if longer >= _LEAST_COST else "computes no longer")
        if self.idles[column]:
            idled, usually = self.by_idle.first[column], self.by_idle.expected[column]
            parts.append(f"idles longest in {_counted(idled)} ({_counted(usually)} expected)")
        share = self._share(column)
        if share:
            parts.append(f"causes {share[0]:.0f} % ({share[1]:.0f}-{share[2]:.0f}) of the waiting")
        return f"rank {rank} {', '.join(parts)}"

    def _share(self, column: int) -> tuple[float, float, float] | None:
        """Return the share of the waiting that a rank causes, and between which shares it is in 95 of 100 cases [%]."""
        caused = self.late.caused
        if not self.late.is_known[column] or not caused.sum():
            return None
        count = len(caused)
        draws = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), size=_DRAWS)
        drawn = draws @ caused
        shares = drawn[:, column] / np.maximum(drawn.sum(1), 1) * 100
        low, high = np.percentile(shares, [2.5, 97.5]).tolist()
        return float(caused[:, column].sum() / caused.sum() * 100), low, high

    def _evidence(self, column: int) -> dict[str, object]:
        names = ("wait_percent", "wait_low_percent", "wait_high_percent")
        return {
            "steps": len(self.periods),
            "times_last": float(self.by_arrival.first[column]),
            "times_longest": float(self.by_compute.first[column]),
            "expected": float(self.by_compute.expected[column]),
            "chance": float(min(self.by_arrival.chance[column], self.by_compute.chance[column])),
            "compute_longer_percent": self._longer(column) * 100,
            **dict(zip(names, self._share(column) or (), strict=False)),
        }

    def _innocent(self) -> Finding:
        """Return the verdict when no rank is to blame."""
        count, unit = len(self.periods), self.periods.unit
        wanted = self._wanted(max(map(len, self.peers)))
        if count < wanted:
            text = f"stragglers: not known: {count} of the {wanted} {unit} that it takes to tell one from chance"
            return Finding(text, RULE, Verdict.UNKNOWN, Confidence.CERTAIN)
        if reasons := self._not_judged():
            text = f"stragglers: not known: {'; '.join(reasons)}; else nothing above chance in {count} {unit}"
            return Finding(text, RULE, Verdict.UNKNOWN, Confidence.CERTAIN, evidence={"steps": count})
        apart = f" but that {self._apart()}" if self._apart() else ""
        text = f"no straggler: nothing above chance in {count} {unit}{apart}"
        return Finding(text, RULE, Verdict.NONE, Confidence.LIKELY, evidence={"steps": count})

    def _not_judged(self) -> list[str]:
        """Return why which ranks could not be judged."""
        alone = [int(columns[0]) for columns in self.peers if len(columns) == 1]
        unseen = [column for column in np.flatnonzero(~self.late.is_known).tolist() if column not in alone]
        why = (
            (alone, "does work that no other rank does", "do work that no other rank does"),
            (unseen, "is in no collective of its like", "are in no collectives of their like"),
        )
        reasons = [
            f"{_named([self.periods.ranks[column] for column in columns])} {singular if len(columns) == 1 else plural}"
            for columns, singular, plural in why
            if columns
        ]
        reasons += self._too_few()
        return [*reasons, self._apart()] if self.is_of_all and self._apart() else reasons

    def _too_few(self) -> Iterator[str]:
        """Yield which ranks were slow throughout, though that is no proof among so few alike."""
        count = len(self.periods)
        for columns in self.peers:
            wanted = self._wanted(len(columns))
            if len(columns) > 1 and count < wanted:
                is_slow = (self.by_compute.first[columns] == count) & (self.computes[columns] >= _LEAST_COST)
                for rank in (self.periods.ranks[column] for column in columns[is_slow].tolist()):
                    took = f"rank {rank} took longest in all of {count} {self.periods.unit}"
                    yield f"{took}, too few to tell one of {len(columns)} from chance ({wanted} are enough)"

    def _wanted(self, size: int) -> int:
        """Return how many periods it takes to tell one of so many peers from chance."""
        return math.ceil(math.log(self.trials / _CHANCE) / math.log(max(2, size)))

    def _apart(self) -> str:
        """Return what is to be said of a rank that comes last but is no slower, where others may hold it up."""
        column = int(self.by_arrival.chance.argmin())
        if not self.has_stages or not self._is_above_chance(self.by_arrival)[column]:
            return ""
        times = f"{_counted(self.by_arrival.first[column])} of {len(self.periods)}"
        return f"rank {self.periods.ranks[column]} came last in {times}, which other stages may cause"

    def _guilty_host(self, hosts: Mapping[int, str | None]) -> tuple[tuple[int, ...], Finding] | None:
        """Return the ranks of a host all of which compute longer than those of other hosts, and the verdict."""
        for every in self.peers:
            names = np.array([hosts.get(self.periods.ranks[column]) or "" for column in every.tolist()])
            for host in dict.fromkeys(names.tolist()):
                here = every[names == host]
                if 1 < len(here) < len(every) - 1 and (longer := self._longer_here(here, every[names != host])):
                    ranks = tuple(self.periods.ranks[column] for column in here.tolist())
                    text = (
                        f"{host} ({_named(ranks)}) has the rank that computes longest in "
                        f"{_counted(self.by_compute.first[here].sum())} of {len(self.periods)} {self.periods.unit} "
                        f"({_counted(self.by_compute.expected[here].sum())} expected), all of its ranks compute "
                        f"{longer * 100:.2g} % longer or more: a slow host"
                    )
                    return ranks, Finding(text, RULE, evidence={"hostname": host, "steps": len(self.periods)})
        return None

    def _longer_here(self, here: Ints, elsewhere: Ints) -> float:
        """Return by which part all ranks of a host compute longer than others at least; 0 when chance explains it."""
        compute = self.periods.compute
        usual = np.median(compute[:, elsewhere], axis=1, keepdims=True)
        more = (compute[:, here] - usual).mean(0)
        times = math.floor(self.by_compute.first[here].sum() + 1e-9)
        size = len(here) + len(elsewhere)
        chance = at_least(times, len(self.periods), len(here) / size) * 2 * size
        is_slow = more.min() >= max(more.max() / 2, _LEAST_COST * self.step) and chance <= _CHANCE
        return float(more.min() / usual.mean()) if is_slow else 0.0


def _named(ranks: Sequence[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {listed(sorted(ranks))}"


def _counted(times: float) -> str:
    """Write how often something happened, which shares may make a fraction.

    >>> _counted(1180.0), _counted(3.75), _counted(0.5)
    ('1180', '3.75', '0.5')
    """
    return f"{times:.0f}" if times >= 100 else f"{times:.3g}"
