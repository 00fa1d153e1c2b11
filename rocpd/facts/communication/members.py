"""Collectives of a job with their members: the arrival of each rank, its wait, and the rank that it waited for.

`collectives` decides which kernels are one collective; this module reads them of a job, the same for tables and SQL.
Ranks end a collective together. So on one clock, or one line of time, a rank arrives at the start of its kernel;
between clocks, arrivals compare by the time from that start to the common end: no clock has to agree with another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from rocpd.base import Flags, Floats, Ints, frozen
from rocpd.facts.columns import distinct
from rocpd.facts.communication.collectives import Channel, CommunicationKernels, Group
from rocpd.facts.communication.communicators import channels, launches
from rocpd.facts.communication.matching import CLOCK_NS, Clocks
from rocpd.facts.communication.rccl import BARRIER, SendRole, Transfer
from rocpd.facts.operations import OperationNames, Ops, read_ops, split
from rocpd.facts.rank import RankReading, RankWindow
from rocpd.facts.units import windows
from rocpd.federate.federation import Federation
from rocpd.federate.run.rank_reader import Fact, RankReader
from rocpd.schema.rules.kernel_categories import Categories, load

_JITTER_NS = 15_000  # between the ends of members, where no two of them share a clock to measure it
_MOST_NOISE = 0.1  # of the longest time in the collective: shorter collectives end closer together
_MOSTLY = 2 / 3
_BARELY = 1 / 3
_BLOCK = 1 << 22  # times in memory at once


@frozen
class Arrivals:
    """Collectives of a group: a row for each member, a column for each collective.

    Args:
        came: arrival of each member, against the end of the collective [ns]: later arrivals are larger.
        times: time that each member was in it, by its own clock [ns].
        noise: error of a difference between two members in `came` [ns].
        apart: largest distance between the ends of members whose times compare [ns].
    """

    came: Ints
    times: Ints
    noise: Ints
    apart: Ints

    def take(self, which: Ints | Flags) -> Arrivals:
        """Return some of the collectives."""
        return Arrivals(self.came[:, which], self.times[:, which], self.noise[which], self.apart[which])

    @property
    def waits(self) -> Ints:
        """Wait of each member for the last one [ns]."""
        waits: Ints = self.came.max(0) - self.came
        return waits

    @property
    def shares(self) -> Floats:
        """Share of the waiting that each member caused: members that came last within noise share it; 0 if all did."""
        last = self.waits <= self.noise
        return np.where(last & ~last.all(0), 1 / last.sum(0), 0.0)

    def classes(self, is_complete: bool) -> Ints:
        """Return a number in `CLASSES` for each collective: the main use of its members' time.

        Args:
            is_complete: whether all members are known.
        """
        longest = np.maximum(self.times.max(0), 1)
        share = self.waits.sum(0) / np.maximum(self.times.sum(0), 1)
        is_unclear = (self.noise > _BARELY * longest) | ((self.apart > _BARELY * longest) & (self.apart > CLOCK_NS))
        classes = np.select([share >= _MOSTLY, share > _BARELY], [SKEW, MIXED], TRANSFER)
        return np.where(is_unclear | (not is_complete), INCONCLUSIVE, classes)


CLASSES = ("transfer", "arrival skew", "mixed", "inconclusive")
"""Classes of the time of a collective: the operation itself (two thirds or more), waiting for the last member (two
thirds or more), both; or unclear."""

TRANSFER, SKEW, MIXED, INCONCLUSIVE = range(4)


def arrivals(group: Group, clocks: Clocks, numbers: Ints) -> Arrivals:
    """Return some collectives of a group.

    Args:
        group: channels of one communicator.
        clocks: the clocks of the ranks, and which of them compare.
        numbers: numbers of the collectives.
    """
    start, end = (
        np.array([clocks.on_line(member.rank, getattr(member, side)[numbers]) for member in group])
        for side in ("start", "end")
    )
    on = np.array([clocks.line(member.rank) for member in group])
    came, apart = np.empty_like(start), np.zeros(len(numbers), np.int64)
    shared: list[Ints] = []
    for clock in distinct(on).tolist():
        rows = (on == clock).nonzero()[0]
        first = end[rows[0]]
        ended = first + np.rint((end[rows] - first).mean(0)).astype(np.int64)
        came[rows] = start[rows] - ended
        if len(rows) > 1:
            shared.append(end[rows].max(0) - end[rows].min(0))
    if shared:
        apart = np.maximum.reduce(shared)
    times = np.array([member.end[numbers] - member.start[numbers] for member in group])
    noise = clocks.noise([member.rank for member in group]) or _jitter(shared)
    longest = (_MOST_NOISE * times.max(0, initial=0)).astype(np.int64)
    return Arrivals(came, times, np.minimum(noise, longest), apart)


def _jitter(shared: list[Ints]) -> int:
    """Return the distance between the ends of members, as measured on members with one clock [ns]."""
    return round(float(np.median(np.concatenate(shared)))) if shared and len(shared[0]) else _JITTER_NS


def channels_of(reading: RankReading, ops: Ops, names: OperationNames, categories: Categories) -> list[Channel]:
    """Return the channels of a rank; `ops` are the operations that count.

    A kernel that crosses the end of a window belongs to the next window, so that adjoining windows share no collective.
    """
    counted = _communication(ops, names, categories)
    if not len(counted):
        return []
    recorded = counted
    if reading.reader.selects("rocpd_kernel_dispatch"):
        recorded = _communication(read_ops(reading.whole(), names), names, categories)
    recorded = recorded.take(np.lexsort((recorded.row, recorded.start)))
    if reading.window.base:
        in_window = recorded.row[recorded.end <= reading.window.base[1]]
        counted = counted.take(np.isin(counted.row, in_window).nonzero()[0])
        if not len(counted):
            return []
    whole = reading.reader.whole()

    def derive() -> list[Channel]:
        return channels(whole, names.full, recorded, counted, launches(whole, recorded.row))

    shown = dict(zip(reversed(names.full), reversed(names.texts), strict=True))
    is_whole = whole is reading.reader and categories.is_built_in and not reading.window.base
    known = whole.once(_CHANNELS.of(whole.rank.number), derive) if is_whole else derive()
    return [replace(channel, shown=shown[channel.name]) for channel in known]


OF_CHANNELS = (Channel, CommunicationKernels, SendRole, Transfer)
"""Types of the parts of channels."""

_CHANNELS = Fact("channels", 2, OF_CHANNELS)


def _communication(ops: Ops, names: OperationNames, categories: Categories) -> CommunicationKernels:
    kernels = ops.take(split(ops, categories, names)["communication"])
    name = names.first_alike()[kernels.name]
    return CommunicationKernels(kernels.row, name, kernels.agent, kernels.stream, kernels.start, kernels.end)


class Collectives(NamedTuple):
    """Some collectives of a group: a row for each member, a column for each collective that counts.

    A collective counts if the kernel of the member that came last counts (the first of several), and then with all its
    members, each with its time in the whole trace: all others may have waited for a member that a window leaves out or
    cuts.

    Args:
        numbers: numbers of the collectives.
        arrivals: arrivals of the members.
        counted: whether each kernel is in the window and passes the filters.
    """

    numbers: Ints
    arrivals: Arrivals
    counted: Flags

    def take(self, which: Ints | Flags) -> Collectives:
        """Return some of the collectives."""
        return Collectives(self.numbers[which], self.arrivals.take(which), self.counted[:, which])


def collectives_of(group: Group, clocks: Clocks) -> Iterator[Collectives]:
    """Yield the collectives of a group, some at a time."""
    all_numbers = np.unique(np.concatenate([member.numbers for member in group]))
    step = max(1, _BLOCK // len(group))
    for low in range(0, len(all_numbers), step):
        numbers = all_numbers[low : low + step]
        when = arrivals(group, clocks, numbers)
        counts = np.array([np.isin(numbers, member.numbers) for member in group])
        last = (when.waits == 0).argmax(0)
        yield Collectives(numbers, when, counts).take(counts[last, np.arange(len(numbers))])


def moved_by(group: Group, numbers: Ints) -> list[tuple[str | None, int | None, float | None]]:
    """Return operation, bytes of the whole result and factor of bus bandwidth of collectives; None where unknown."""
    member = next((member for member in group if len(member.moves)), None)
    if member is None:
        return [(None, None, None)] * len(numbers)
    ranks = group[0].size or len(group)
    known = [
        (None if each.operation == BARRIER else each.shown, each.volume(ranks) or None, each.bus_factor(ranks))
        if each
        else (None, None, None)
        for each in member.transfers
    ]
    return [known[code] for code in member.moves[numbers].tolist()]


class JobCollectives(NamedTuple):
    """The collectives of a job: groups of channels of one communicator, and the clocks by which their times compare."""

    groups: Sequence[Group]
    clocks: Clocks


def read_collectives(session: Federation) -> JobCollectives:
    """Match the collectives of all ranks; kernels count that are in the window and pass the filters."""
    work = partial(_channels, seen=windows(session))
    of_ranks = [channel for _, of_rank in session.map_ranks(work) for channel in of_rank]
    clocks = Clocks.of(session, of_ranks)
    return JobCollectives(clocks.match(of_ranks).groups, clocks)


def _channels(reader: RankReader, seen: Mapping[int, RankWindow]) -> list[Channel]:
    reading = RankReading.of(reader, seen)
    names = OperationNames()
    return channels_of(reading, read_ops(reading, names), names, load(None))
