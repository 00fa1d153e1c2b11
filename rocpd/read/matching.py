"""Matches the communication kernels of a job, by one clock where its collectives say how far clocks are apart.

By one clock it shows which ranks end together; by several, groups of different machines may look like one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from rocpd.federate.federation import Federation
from rocpd.trace.collectives import Channel, Group, match

_ON_ONE_LINE = ("reference", "collectives")


def match_channels(session: Federation, channels: Sequence[Channel]) -> tuple[list[Group], Counter[str]]:
    """Put the channels of a job into groups; as `rocpd.trace.collectives.match`."""
    clocks = {rank: number for number, domain in enumerate(session.clock_domains) for rank in domain.ranks}
    if len({clocks.get(channel.rank) for channel in channels}) < 2:
        return match(channels, clocks)
    shifts = {
        rank: clock.shift
        for clock in session.job.alignment.clocks
        if clock.method in _ON_ONE_LINE
        for rank in clock.ranks
    }
    if any(channel.rank not in shifts for channel in channels):
        return match(channels, clocks)
    on_line = [
        replace(channel, **{side: shifts[channel.rank].to_line(getattr(channel, side)) for side in ("start", "end")})
        for channel in channels
    ]
    recorded = {id(moved): channel for moved, channel in zip(on_line, channels, strict=True)}
    groups, lost = match(on_line, dict.fromkeys(shifts, 0))
    return [tuple(recorded[id(moved)] for moved in group) for group in groups], lost
