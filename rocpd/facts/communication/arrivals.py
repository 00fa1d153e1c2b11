"""When the members of a collective came, and who was last. Knows neither names nor divisions.

Ranks end a collective together. So on one clock, or one line of time, the start of a kernel says when its rank came,
and between clocks the time from there to the end that all share does: no clock has to agree with another.
"""

from __future__ import annotations

import numpy as np

from rocpd.base import Flags, Floats, Ints, frozen
from rocpd.facts.communication.collectives import Group
from rocpd.facts.communication.matching import CLOCK_NS, Clocks

_JITTER_NS = 15_000  # by which members leave apart, where no two of them share a clock to show it
_MOST_NOISE = 0.1  # of the longest time in the collective: shorter ones end closer together
_MOSTLY = 2 / 3
_BARELY = 1 / 3


@frozen
class Arrivals:
    """Collectives of a group: a row for each member, a column for each collective.

    Args:
        came: when each member came, against the end of the collective [ns]: later ones are larger.
        times: how long each was in it [ns].
        noise: by how much two members may differ in `came` for no reason [ns].
        apart: by how much members whose times compare end apart, at most [ns].
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
        """How long each member waited for the last one [ns]."""
        waits: Ints = self.came.max(0) - self.came
        return waits

    @property
    def shares(self) -> Floats:
        """How much of the waiting each member caused: those that came last within noise share it; none if all did."""
        waits = self.waits
        last = waits <= self.noise
        return np.where(last & ~last.all(0), 1 / last.sum(0), 0.0)

    def classes(self, is_complete: bool) -> Ints:
        """Return a number in `CLASSES` for each collective: what the time of its members went into.

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
thirds or more), both; or it can't be said."""

TRANSFER, SKEW, MIXED, INCONCLUSIVE = range(4)


def arrivals(group: Group, clocks: Clocks, numbers: Ints) -> Arrivals:
    """Return some collectives of a group.

    Args:
        group: channels of one communicator.
        clocks: which times of the ranks compare.
        numbers: which collectives.
    """
    start, end = (
        np.array([clocks.on_line(member.rank, getattr(member, side)[numbers]) for member in group])
        for side in ("start", "end")
    )
    on = np.array([clocks.line(member.rank) for member in group])
    came, apart = np.empty_like(start), np.zeros(len(numbers), np.int64)
    shared: list[Ints] = []
    for clock in np.sort(on)[_is_new(np.sort(on))].tolist():
        rows = np.flatnonzero(on == clock)
        first = end[rows[0]]
        ended = first + np.rint((end[rows] - first).mean(0)).astype(np.int64)
        came[rows] = start[rows] - ended
        if len(rows) > 1:
            shared.append(end[rows].max(0) - end[rows].min(0))
    if shared:
        apart = np.maximum.reduce(shared)
    times = end - start
    noise = clocks.noise([member.rank for member in group]) or _jitter(shared)
    longest = (_MOST_NOISE * times.max(0, initial=0)).astype(np.int64)
    return Arrivals(came, times, np.minimum(noise, longest), apart)


def _is_new(ordered: Ints) -> Flags:
    return np.concatenate([[True], ordered[1:] != ordered[:-1]])


def _jitter(shared: list[Ints]) -> int:
    """Return by how much members leave apart, as those with one clock show it."""
    return round(float(np.median(np.concatenate(shared)))) if shared and len(shared[0]) else _JITTER_NS
