"""Matches the communication kernels of a job, by one line of time where its collectives say how far clocks are apart.

By one line it shows which ranks end together; by several clocks, groups of different machines may look like one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from typing import NamedTuple

from rocpd.base import Ints, frozen
from rocpd.facts.communication.collectives import Channel, Group, match
from rocpd.facts.communication.lost_kernels import LACKING, Rejoining, evened
from rocpd.facts.communication.program_order import EITHER, sends
from rocpd.facts.communication.transfers import Partners, match_transfers
from rocpd.federate.federation import Federation
from rocpd.federate.select.align import UNSHIFTED, Shift

CLOCK_NS = 1_000
"""By which clocks of the GPUs of a machine differ [ns]."""

_ON_ONE_LINE = ("reference", "collectives")


class MatchedChannels(NamedTuple):
    """The communication of a job, matched.

    Args:
        groups: channels of one communicator each, which run collectives.
        pairs: channels that send to each other.
        lost: why how many kernels that count are in neither.
    """

    groups: Sequence[Group]
    pairs: Sequence[Partners]
    lost: Counter[str]


@frozen
class Clocks:
    """Which times of different ranks compare: those of one clock, or of all clocks that collectives lay on one line.

    Args:
        numbers: rank -> number of its clock.
        shifts: rank -> what is added to its times so that all compare; nothing where only those of one clock do.
        likely_ns: how far times of two clocks on one line are likely to be apart for no reason.
    """

    numbers: Mapping[int, int]
    shifts: Mapping[int, Shift] = field(default_factory=dict)
    likely_ns: int = 0

    @classmethod
    def of(cls, session: Federation, channels: Sequence[Channel]) -> Clocks:
        """Return the clocks of a job in which these communication kernels are to be compared."""
        numbers = {rank: number for number, domain in enumerate(session.clock_domains) for rank in domain.ranks}
        if len({numbers.get(channel.rank) for channel in channels}) < 2:
            return cls(numbers)
        known = [clock for clock in session.job.alignment.clocks if clock.method in _ON_ONE_LINE]
        shifts = {rank: clock.shift for clock in known for rank in clock.ranks}
        if any(channel.rank not in shifts for channel in channels):
            return cls(numbers)
        return cls(numbers, shifts, max(clock.likely_ns or 0 for clock in known))

    def line(self, rank: int) -> int:
        """Return the number of the line on which a rank's times compare with those of others of this number."""
        return 0 if rank in self.shifts else self.numbers.get(rank, -1 - rank)

    def on_line(self, rank: int, times: Ints) -> Ints:
        """Return times of a rank as they compare [ns]."""
        return self.shifts.get(rank, UNSHIFTED).to_line(times)

    def noise(self, ranks: Collection[int]) -> int | None:
        """Return how far apart times of ranks may be for no reason [ns]; None where they don't compare."""
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
        pairs = [Partners(recorded[id(one)], recorded[id(other)], known) for one, other, known in of_pairs]
        for group in of_groups:
            members, is_sending = tuple(recorded[id(channel)] for channel in group), sends(group)
            if is_sending and len(members) == 2:
                pairs.append(Partners(*members, is_directed=False))
            elif is_sending is False:
                groups.append(members)
            else:
                lost[EITHER] += sum(len(member.numbers) for member in members)
        return MatchedChannels(groups, pairs, +lost)

    def _moved(self, channels: Sequence[Channel]) -> tuple[dict[int, Channel], list[Channel], dict[int, int]]:
        """Return channels with times that compare: `id` -> what was recorded, they themselves, rank -> its line."""
        moved = [
            replace(each, start=self.on_line(each.rank, each.start), end=self.on_line(each.rank, each.end))
            for each in channels
        ]
        recorded = {id(each): channel for each, channel in zip(moved, channels, strict=True)}
        return recorded, moved, {channel.rank: self.line(channel.rank) for channel in channels}
