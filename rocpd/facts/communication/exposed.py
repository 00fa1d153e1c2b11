"""Divides exposed communication into the time in which ranks wait for others, and the transfer itself.

`rocpd.facts.agent_time` finds the exposed time, in which nothing computes; arrivals of members give the wait of each
kernel from its start. Never decides which kernels belong together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from rocpd.base import Ints
from rocpd.facts.columns import find_rows
from rocpd.facts.communication.collectives import Channel, Group
from rocpd.facts.communication.matching import Clocks
from rocpd.facts.communication.members import arrivals
from rocpd.facts.communication.transfers import Partners


class ExposedPieces(NamedTuple):
    """Stretches in which communication kernels of a rank run and nothing computes.

    Args:
        row: id of the dispatch.
        start, end: [ns of the rank's clock].
    """

    row: Ints
    start: Ints
    end: Ints


class ChannelWaits(NamedTuple):
    """The wait of each kernel of a channel for the last member [ns], and whether all members were read."""

    times: Ints
    is_whole: bool


Waits: TypeAlias = Mapping[int, ChannelWaits]
"""`id` of a channel -> its waits; only of matched channels."""


def waits_of(groups: Iterable[Group], pairs: Iterable[Partners], clocks: Clocks) -> Waits:
    """Return the waits of kernels from their start.

    Args:
        groups: groups of channels of one communicator that run collectives.
        pairs: channels of two ranks that send to each other.
        clocks: the clocks of the ranks, and which of them compare.
    """
    waits: dict[int, ChannelWaits] = {}
    for group in (*groups, *((pair.sender, pair.receiver) for pair in pairs)):
        times, is_whole = arrivals(group, clocks, np.arange(len(group[0]))).waits, clocks.is_whole(group)
        for member, of_member in zip(group, times, strict=True):
            known = waits.get(id(member))  # in a ring: it waits for both neighbours
            longest = of_member if known is None else np.maximum(known.times, of_member)
            waits[id(member)] = ChannelWaits(longest, is_whole)
    return waits


def waited(pieces: ExposedPieces, channels: Sequence[Channel], waits: Waits) -> tuple[Ints, Ints]:
    """Return the wait of a rank in each piece, and the time that may be a wait or not, as it is unknown [ns].

    The rest is transfer. Where members are left out, time that looks like transfer may be a wait for them.
    """
    until, is_whole = pieces.start.copy(), np.zeros(len(pieces.row), bool)
    for channel in channels:
        if id(channel) in waits:
            rows, is_its = find_rows(channel.counted.row, pieces.row)
            number = channel.numbers[rows[is_its]]
            until[is_its] = channel.start[number] + waits[id(channel)].times[number]
            is_whole |= is_its & waits[id(channel)].is_whole
    until = np.clip(until, pieces.start, pieces.end)
    return until - pieces.start, np.where(is_whole, 0, pieces.end - until)
