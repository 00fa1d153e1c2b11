"""Matches the communication kernels of a job, on one line of time where collectives give the offsets between clocks.

On one line, kernels of one collective end together; on several clocks, groups of different machines may look like one.

A recorder loses single rows, and the n-th kernel of a channel belongs to the n-th kernels of other channels, so that
one lost kernel would separate all later ones. Channels that lack a few kernels are joined by their times to the
channels that they communicate with: these have no partner at the lost ones, which are left out there as well. A channel
whose size was lost joins the channels that it runs with.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import NamedTuple

import numpy as np

from rocpd.base import Ints, by_key, frozen
from rocpd.facts.communication.clusters import is_clear
from rocpd.facts.communication.collectives import ALONE, Channel, Group, end_apart, match, mesh_of
from rocpd.facts.communication.program_order import EITHER, is_known, sends
from rocpd.facts.communication.transfers import NO_PARTNER, Partners, match_transfers, may_meet, ways
from rocpd.federate.federation import Federation
from rocpd.federate.select.align import UNSHIFTED, Shift

LACKING = "a rank lacks its part"

_MOST = 3  # kernels that a channel may lack
_SHARE = 10  # one of so many kernels
_ALONE = 16  # channels of a kind: if more are alone, lost kernels are not the reason
CLOCK_NS = 1_000
"""Difference between clocks of the GPUs of a machine [ns]."""

_ON_ONE_LINE = ("reference", "collectives")


@frozen
class _Fit:
    """A group, or another channel, that a channel may join.

    Args:
        number: number of the group; -1: another channel that is alone.
        members: the channels of the group.
        lacks: numbers of their kernels that the channel lacks.
        apart: distance between the ends of the other kernels [ns].
    """

    number: int
    members: Group
    lacks: Ints
    apart: float


def evened(channels: Sequence[Channel], recorded: dict[int, Channel]) -> tuple[list[Channel], int]:
    """Return channels with equally many kernels for one communicator, and the number of counted kernels cut for that.

    Goes by the numbers of ranks in their communicators, as `mesh_of`.

    Args:
        channels: channels of all ranks.
        recorded: `id` of a channel -> the same channel with times as recorded; new channels are added.
    """
    in_order = sorted(channels, key=lambda each: (each.rank, each.agent))
    cut: dict[int, Channel] = {}
    for short, others in (*_short_in_groups(in_order), *_short_in_pairs(in_order)):
        if 0 < len(others[0]) - len(short) <= _may_lack(len(short)):
            lacks = _lacks(short.end, others[0].end)
            cut |= {id(member): _without(member, lacks, recorded) for member in others}
    even = [cut.get(id(channel), channel) for channel in channels]
    return even, sum(len(each.numbers) for each in channels) - sum(len(each.numbers) for each in even)


def _short_in_groups(channels: Iterable[Channel]) -> Iterator[tuple[Channel, Group]]:
    """Yield the channel of a group that is shorter than most, if there is exactly one, with the others."""
    unnamed = (each for each in channels if each.role is None and each.own is not None and each.communicator is None)
    for alike in by_key(((each.name, each.size), each) for each in unnamed).values():
        (most, count), *others = Counter(map(len, alike)).most_common()
        if not others or len({(each.rank, each.agent) for each in alike}) < len(alike) or count * 2 < len(alike):
            continue
        for group in mesh_of(alike):
            short = [member for member in group if len(member) != most]
            if len(short) == 1:
                yield short[0], tuple(member for member in group if member is not short[0])


def _short_in_pairs(channels: Iterable[Channel]) -> Iterator[tuple[Channel, Group]]:
    """Yield the shorter channel of a pair that sends and receives, with the other, where most pairs are even.

    The i-th rank with a number that sends to another number is the partner of the i-th rank that receives there.
    """
    kinds = by_key(((channel.name, channel.communicator, channel.size), channel) for channel in channels)
    for senders, receivers in (both for alike in kinds.values() for both in ways(alike).values()):
        if len(senders) == len(receivers):
            uneven = [pair for pair in zip(senders, receivers, strict=True) if len(pair[0]) != len(pair[1])]
            for pair in uneven if len(uneven) * 2 <= len(senders) else ():
                short, other = sorted(pair, key=len)
                yield short, (other,)


def _may_lack(count: int) -> int:
    return min(_MOST, count // _SHARE)


def _without(member: Channel, lacks: Ints, recorded: dict[int, Channel]) -> Channel:
    """Return a channel without kernels that another lacks, and add it to `recorded`."""
    if not len(lacks):
        return member
    kept = member.without(lacks)
    recorded[id(kept)] = recorded[id(member)].without(lacks)
    return kept


@frozen
class Rejoining:
    """Joins channels that are alone to groups and pairs.

    Args:
        groups, pairs: the matched channels; changed in place.
        lost: reason -> number of counted kernels that are in neither; changed in place.
        lines: rank -> number of its line of time.
        recorded: `id` of a channel -> the same channel with times as recorded; new channels are added.
    """

    groups: list[Group]
    pairs: list[Partners]
    lost: Counter[str]
    lines: Mapping[int, int]
    recorded: dict[int, Channel]

    def join(self, channels: Iterable[Channel]) -> None:
        """Join the channels that are in no group or pair, the shortest first."""
        inside = {id(member) for group in self.groups for member in group}
        inside |= {id(member) for pair in self.pairs for member in pair[:2]}
        outside = (each for each in channels if id(each) not in inside)
        for alone in by_key(((each.name, each.communicator, each.role is None), each) for each in outside).values():
            if len(alone) <= _ALONE:
                for channel in sorted(alone, key=len):
                    self._join(channel, alone)

    def _join(self, channel: Channel, alone: list[Channel]) -> None:
        """Join one of the channels that are alone to the group, or other one of them, that it clearly runs with."""
        if all(other is not channel for other in alone):
            return
        groups = [] if channel.role else self.groups
        joinable = [*enumerate(groups), *((-1, (other,)) for other in alone)]
        fits = [fit for number, members in joinable for fit in self._fits(channel, number, members)]
        fits.sort(key=lambda fit: fit.apart)
        if not fits or (len(fits) > 1 and not is_clear(fits[0].apart, fits[1].apart, len(channel))):
            return
        members, lacks, number = fits[0].members, fits[0].lacks, fits[0].number
        kept = tuple(_without(member, lacks, self.recorded) for member in members)
        self.lost[LACKING] += sum(len(old.numbers) - len(new.numbers) for old, new in zip(members, kept, strict=True))
        if number >= 0:
            self.groups[number] = (*kept, channel)
        elif channel.role:
            ends = sorted((channel, *kept), key=lambda each: each.role is None or each.role.direction != "send")
            self.pairs.append(Partners(ends[0], ends[1], channel.role.direction in ("send", "receive")))
        else:
            self.groups.append((*kept, channel))
        joined = (channel,) if number >= 0 else (channel, *members)
        alone[:] = [other for other in alone if all(other is not each for each in joined)]
        self.lost[NO_PARTNER if channel.role else ALONE] -= sum(len(each.numbers) for each in joined)

    def _fits(self, channel: Channel, number: int, members: Group) -> Iterator[_Fit]:
        """Yield the fit of a channel to channels that it may run with; nothing if it may not."""
        first, lacking = members[0], len(members[0]) - len(channel)
        size = first.size or channel.size
        if not 0 <= lacking <= _may_lack(len(channel)) or (size and len(members) >= size):
            return
        if (first.name, first.communicator) != (channel.name, channel.communicator):
            return
        if first.size == channel.size and not lacking:
            return  # nothing was lost: other channels fit as well, or none does
        if None not in (first.size, channel.size) and first.size != channel.size:
            return
        if len({self.lines.get(each.rank, -1 - each.rank) for each in (channel, *members)}) > 1:
            return
        if any(channel.rank == member.rank for member in members) or not _may_communicate(channel, first):
            return
        lacks = _lacks(channel.end, first.end)
        apart = end_apart(channel, first.without(lacks), is_one_clock=True)
        if np.isfinite(apart):
            yield _Fit(number, members, lacks, apart)


def _are_on_all(name: str | None, count: int, by_rank: Iterable[Sequence[Channel]]) -> bool:
    """Whether all ranks that run kernels of a name have a channel with so many of them.

    All do for collectives, as they run one program. In a pipeline, the first and the last stage send and receive half
    as often as others; and the ranks of one stage do so in step, which looks like collectives among them.
    """
    named = ([len(each) for each in of_rank if each.name == name] for of_rank in by_rank)
    return all(any(abs(each - count) <= _may_lack(count) for each in some) for some in named if some)


def _may_communicate(channel: Channel, other: Channel) -> bool:
    """Whether both run collectives, or one may send data that the other receives."""
    if channel.role is None or other.role is None:
        return channel.role is other.role
    ways = {channel.role.direction, other.role.direction}
    return may_meet(channel, other) and (ways == {"send", "receive"} or (len(ways) == 1 and "both" in ways))


def _lacks(few: Ints, many: Ints) -> Ints:
    """Return the indices of those of many times that lack a partner among few, so that the others are least apart.

    >>> _lacks(np.array([10, 30, 40]), np.array([11, 20, 31, 41, 50])).tolist()
    [1, 4]
    """
    count = len(few)
    apart = [np.abs(few - many[shift : shift + count]) for shift in range(len(many) - count + 1)]
    sums = np.concatenate([[0], np.cumsum(apart[0])])
    begins: list[Ints] = []
    for later in apart[1:]:
        until = np.concatenate([[0], np.cumsum(later)])
        least = np.minimum.accumulate(sums - until)
        is_new = np.concatenate([[True], np.diff(least) < 0])
        begins.append(np.maximum.accumulate(np.where(is_new, np.arange(count + 1), 0)))
        sums = until + least
    lacks, at = [], count
    for shift, begin in reversed(list(enumerate(begins))):
        at = int(begin[at])
        lacks.append(at + shift)
    return np.array(lacks[::-1], np.int64)


class MatchedChannels(NamedTuple):
    """The communication of a job, matched.

    Args:
        groups: groups of channels of one communicator, which run collectives.
        pairs: channels that send to each other.
        lost: reason -> number of counted kernels that are in neither.
    """

    groups: Sequence[Group]
    pairs: Sequence[Partners]
    lost: Counter[str]


@frozen
class Clocks:
    """The clocks of ranks; times compare on one clock, or on all clocks that collectives lay on one line.

    Args:
        numbers: rank -> number of its clock.
        shifts: rank -> shift of its times so that all compare; empty where only times of one clock compare.
        likely_ns: likely error between times of two clocks on one line [ns].
        lacks_ranks: whether filters leave out ranks, which others may have met.
        are_contradicted: whether collectives between clocks contradict each other.
    """

    numbers: Mapping[int, int]
    shifts: Mapping[int, Shift] = field(default_factory=dict)
    likely_ns: int = 0
    lacks_ranks: bool = False
    are_contradicted: bool = False

    @classmethod
    def of(cls, session: Federation, channels: Sequence[Channel]) -> Clocks:
        """Return the clocks of a job, by which these communication kernels are compared."""
        numbers = {rank: number for number, domain in enumerate(session.clock_domains) for rank in domain.ranks}
        lacks_ranks = session.job.left_out > 0
        if len({numbers.get(channel.rank) for channel in channels}) < 2:
            return cls(numbers, lacks_ranks=lacks_ranks)
        alignment = session.job.alignment
        known = [clock for clock in alignment.clocks if clock.method in _ON_ONE_LINE]
        shifts = {rank: clock.shift for clock in known for rank in clock.ranks}
        if any(channel.rank not in shifts for channel in channels):
            return cls(numbers, lacks_ranks=lacks_ranks, are_contradicted=bool(alignment.contradicted))
        return cls(numbers, shifts, max(clock.likely_ns or 0 for clock in known), lacks_ranks)

    def is_whole(self, group: Group) -> bool:
        """Whether all members of a group were read; if not, apparent transfer may be a wait for the others."""
        size = group[0].size
        may_lack = self.lacks_ranks or (self.are_contradicted and group[0].communicator is None)
        return bool(group[0].role) or (not may_lack if size is None else size <= len(group))

    def line(self, rank: int) -> int:
        """Return the number of the line of a rank; times of ranks with the same number compare."""
        return 0 if rank in self.shifts else self.numbers.get(rank, -1 - rank)

    def shift(self, rank: int) -> Shift:
        """Return the shift of the times of a rank that makes them compare."""
        return self.shifts.get(rank, UNSHIFTED)

    def on_line(self, rank: int, times: Ints) -> Ints:
        """Return times of a rank as they compare [ns]."""
        return self.shift(rank).to_line(times)

    def noise(self, ranks: Collection[int]) -> int | None:
        """Return the error between times of ranks [ns]; None where they don't compare."""
        if len({self.line(rank) for rank in ranks}) > 1:
            return None
        return CLOCK_NS if len({self.numbers.get(rank) for rank in ranks}) == 1 else max(CLOCK_NS, self.likely_ns)

    def match(self, channels: Sequence[Channel]) -> MatchedChannels:
        """Put channels into groups, and those that send and receive into pairs."""
        recorded, moved, lines = self._moved(channels)
        moved, cut = evened(moved, recorded)
        of_groups, lost = match(moved, lines, self.numbers)
        lost[LACKING] += cut
        of_pairs, lost_transfers = match_transfers(moved, lines)
        lost += lost_transfers
        Rejoining(of_groups, of_pairs, lost, lines, recorded).join(moved)
        groups: list[Group] = []
        by_rank = by_key((channel.rank, channel) for channel in moved if channel.role is None)
        are_on_all = functools.cache(functools.partial(_are_on_all, by_rank=by_rank.values()))  # many groups ask alike
        pairs = [Partners(recorded[id(sender)], recorded[id(receiver)], known) for sender, receiver, known in of_pairs]
        for group in of_groups:
            members, is_sending = tuple(recorded[id(channel)] for channel in group), sends(group)
            if is_sending and len(members) == 2:
                pairs.append(Partners(*members, is_directed=False))
            elif is_sending is False and (is_known(group) or are_on_all(group[0].name, len(group[0]))):
                groups.append(members)
            else:
                lost[EITHER] += sum(len(member.numbers) for member in members)
        return MatchedChannels(groups, pairs, +lost)

    def _moved(self, channels: Sequence[Channel]) -> tuple[dict[int, Channel], list[Channel], dict[int, int]]:
        """Return `id` -> channel as recorded, the channels with times that compare, and rank -> its line."""
        moved = [
            replace(each, start=self.on_line(each.rank, each.start), end=self.on_line(each.rank, each.end))
            for each in channels
        ]
        recorded = {id(each): channel for each, channel in zip(moved, channels, strict=True)}
        return recorded, moved, {channel.rank: self.line(channel.rank) for channel in channels}
