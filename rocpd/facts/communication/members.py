"""Collectives with their members: when each rank came, how long it waited, for whom. Of the whole job.

Which kernels are one collective says `collectives`, who was last `arrivals`; here both are read of a job, so that
tables and SQL have the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from rocpd.base import Flags, Ints
from rocpd.facts.communication.arrivals import Arrivals, arrivals
from rocpd.facts.communication.collectives import Channel, CommunicationKernels, Group
from rocpd.facts.communication.communicators import channels, launches
from rocpd.facts.communication.matching import Clocks
from rocpd.facts.communication.rccl import BARRIER, SendRole, Transfer
from rocpd.facts.operations import OperationNames, Ops, read_ops, split
from rocpd.facts.rank import RankReading, RankWindow
from rocpd.facts.units import windows
from rocpd.federate.federation import Federation
from rocpd.federate.run.rank_reader import Fact, RankReader
from rocpd.schema.rules.kernel_categories import Categories, load

_BLOCK = 1 << 22  # times in memory at once


def channels_of(reading: RankReading, ops: Ops, names: OperationNames, categories: Categories) -> list[Channel]:
    """Return the communication kernels of a rank; `ops` are the operations that count.

    One that crosses the end of a window belongs to the next window, so that adjoining windows share no collective.
    """
    counted = _communication(ops, names, categories)
    if not len(counted):
        return []
    every = counted
    if reading.reader.selects("rocpd_kernel_dispatch"):
        every = _communication(read_ops(reading.whole(), names), names, categories)
    every = every.take(np.lexsort((every.row, every.start)))
    if reading.window.base:
        in_window = every.row[every.end <= reading.window.base[1]]
        counted = counted.take(np.flatnonzero(np.isin(counted.row, in_window)))
        if not len(counted):
            return []
    whole = reading.reader.whole()

    def derive() -> list[Channel]:
        return channels(whole, names.full, every, counted, launches(whole, every.row))

    shown = dict(zip(reversed(names.full), reversed(names.texts), strict=True))
    is_whole = whole is reading.reader and categories.is_built_in and not reading.window.base
    known = whole.once(_CHANNELS.of(whole.rank.number), derive) if is_whole else derive()
    return [replace(channel, shown=shown[channel.name]) for channel in known]


OF_CHANNELS = (Channel, CommunicationKernels, SendRole, Transfer)
"""Types that channels consist of."""

_CHANNELS = Fact("channels", 1, OF_CHANNELS)


def _communication(ops: Ops, names: OperationNames, categories: Categories) -> CommunicationKernels:
    kernels = ops.take(split(ops, categories, names)["communication"])
    name = names.first_alike()[kernels.name]
    return CommunicationKernels(kernels.row, name, kernels.agent, kernels.stream, kernels.start, kernels.end)


class Collectives(NamedTuple):
    """Some collectives of a group: a row for each member, a column for each collective that counts.

    A collective counts when the kernel of the member that came last does (of several the first), and then all its
    members do, each with its time in the whole trace: a member that a window leaves out, or cuts, may be the one that
    all others waited for.

    Args:
        numbers: which collectives.
        arrivals: when members came.
        counted: which kernels are in the window and pass the filters.
    """

    numbers: Ints
    arrivals: Arrivals
    counted: Flags

    def take(self, which: Ints | Flags) -> Collectives:
        """Return some of the collectives."""
        return Collectives(self.numbers[which], self.arrivals.take(which), self.counted[:, which])


def collectives_of(group: Group, clocks: Clocks) -> Iterator[Collectives]:
    """Yield the collectives of a group, some at a time."""
    every = np.unique(np.concatenate([member.numbers for member in group]))
    step = max(1, _BLOCK // len(group))
    for low in range(0, len(every), step):
        numbers = every[low : low + step]
        when = arrivals(group, clocks, numbers)
        counts = np.array([np.isin(numbers, member.numbers) for member in group])
        last = (when.waits == 0).argmax(0)
        yield Collectives(numbers, when, counts).take(counts[last, np.arange(len(numbers))])


def moved_by(group: Group, numbers: Ints) -> list[tuple[str | None, int | None, float | None]]:
    """Return the operation of collectives, bytes of the whole result, factor of bus bandwidth; None where unknown."""
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
    """The collectives of a job: channels of one communicator each, and which of their times compare."""

    groups: Sequence[Group]
    clocks: Clocks


def read_collectives(session: Federation) -> JobCollectives:
    """Match the collectives of all ranks; those that count are in the window and pass the filters."""
    work = partial(_channels, seen=windows(session))
    every = [channel for _, of_rank in session.map_ranks(work) for channel in of_rank]
    clocks = Clocks.of(session, every)
    return JobCollectives(clocks.match(every).groups, clocks)


def _channels(reader: RankReader, seen: Mapping[int, RankWindow]) -> list[Channel]:
    reading = RankReading.of(reader, seen)
    names = OperationNames()
    return channels_of(reading, read_ops(reading, names), names, load(None))
