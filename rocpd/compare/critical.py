"""Finds the rank that decides how long each unit takes, and adds up what these ranks did.

Critical is the rank that takes longest; of those within 1 % of it, the one that waits least for others. Where ranks are
compared, all that are chosen count instead. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rocpd.compare.facts import RankFacts
from rocpd.compare.launches import COPY_KIND, KernelLaunch
from rocpd.compare.measure import RankMeasure
from rocpd.compare.run_profile import COMPUTE, COPIES, IDLE, TRANSFER, UNMATCHED, WAITING, LaunchUse, RankUse
from rocpd.errors import UsageError
from rocpd.federate.open.identify import Rank
from rocpd.frozen import frozen
from rocpd.summary.idle_causes import CAUSES
from rocpd.types import Flags, Floats, Ints

Waits = Mapping[int, Ints]
"""`id` of a channel -> how long each of its kernels waits for the last member [ns]; only of matched channels."""


class MeasuredRank(NamedTuple):
    """A rank with what it did, and what it was."""

    rank: Rank
    measure: RankMeasure
    facts: RankFacts


_CLOSE = 0.99  # of the longest
_OF_KIND = {"compute": COMPUTE, "communication": TRANSFER, COPY_KIND: COPIES}


@frozen
class _Member:
    """A rank of a run, of the units that all ranks have; times are scaled, see `CountedRanks.scale`.

    Args:
        number, host: which it is.
        measure: what it did.
        rows: which of its units are meant.
        calls, time, exposed, waiting, unmatched: `[unit, launch]`; the last two are parts of `exposed`.
        idle: `[unit, cause]`.
        length: time of each unit.
    """

    number: int
    host: str | None
    measure: RankMeasure
    rows: Ints
    calls: Ints
    time: Ints
    exposed: Ints
    waiting: Ints
    unmatched: Ints
    idle: Ints
    length: Ints

    def of_units(self, chosen: Flags | Ints | slice) -> _Member:
        """Return the same with some units only."""
        names = ("rows", "calls", "time", "exposed", "waiting", "unmatched", "idle", "length")
        return replace(self, **{name: getattr(self, name)[chosen] for name in names})

    def parts(self) -> dict[str, Ints]:
        """Return the time of each unit by part."""
        parts = dict.fromkeys((COMPUTE, TRANSFER, WAITING, UNMATCHED, COPIES), np.zeros(len(self.rows), np.int64))
        for number, launch in enumerate(self.measure.launches):
            for part, time in self.of_launch(number, launch).items():
                parts[part] = parts[part] + time
        return parts | {f"{IDLE}{cause}": self.idle[:, number] for number, cause in enumerate(CAUSES)}

    def of_launch(self, number: int, launch: KernelLaunch) -> dict[str, Ints]:
        """Return the time that a launch adds to each unit, by part."""
        waiting, unmatched = self.waiting[:, number], self.unmatched[:, number]
        own = {_OF_KIND[launch.kind]: self.exposed[:, number] - waiting - unmatched}
        return own if launch.kind != "communication" else {**own, WAITING: waiting, UNMATCHED: unmatched}


@frozen
class CountedRanks:
    """The ranks of a run, and which of them count in each unit.

    Args:
        members: ranks.
        counts: whether a rank counts in a unit, as many in each: `[rank, unit]`.
        scale: by how much sums of those that count are to be divided, for one agent of one of them.
    """

    members: Sequence[_Member]
    counts: Flags
    scale: int

    @property
    def times(self) -> Floats:
        """How long each unit takes [ns]."""
        return self._mean([member.length for member in self.members])

    @property
    def own_times(self) -> Floats:
        """The same without waiting for other ranks, and without communication that may be waiting [ns]."""
        return self._mean([member.length - (member.waiting + member.unmatched).sum(1) for member in self.members])

    def _mean(self, values: Sequence[Ints]) -> Floats:
        mean: Floats = (np.array(values) * self.counts).sum(0) / self.scale
        return mean

    def of_units(self, chosen: Flags | Ints | slice) -> CountedRanks:
        """Return the same with some units only."""
        return CountedRanks([member.of_units(chosen) for member in self.members], self.counts[:, chosen], self.scale)

    def highest(self, values: Callable[[RankMeasure], Ints]) -> Floats:
        """Return the largest value of a rank in each unit, of those that ever count."""
        members = [member for member, counts in zip(self.members, self.counts, strict=True) if counts.any()]
        highest: Floats = np.max([values(member.measure)[member.rows] for member in members], axis=0)
        return highest.astype(np.float64)

    def uses(self) -> Iterator[LaunchUse]:
        """Yield what launches took on the ranks that count."""
        sums: dict[KernelLaunch, list[int]] = {}
        times: dict[KernelLaunch, dict[str, int]] = {}
        medians: dict[KernelLaunch, float] = {}
        for row, member in enumerate(self.members):
            units = np.flatnonzero(self.counts[row])
            for number, launch in enumerate(member.measure.launches if len(units) else ()):
                added, called = sums.setdefault(launch, [0, 0]), int(member.calls[units, number].sum())
                added[0] += called
                added[1] += int(member.time[units, number].sum())
                by_part = times.setdefault(launch, {})
                for part, times_of_part in member.of_launch(number, launch).items():
                    by_part[part] = by_part.get(part, 0) + int(times_of_part[units].sum())
                if called:
                    middle = float(np.nanmedian(member.measure.medians[member.rows[units], number])) * called
                    medians[launch] = medians.get(launch, 0.0) + middle
        for launch, (calls, time) in sums.items():
            if calls or any(times[launch].values()):
                yield LaunchUse(launch, calls, time, times[launch], medians[launch] / calls if calls else None)

    def idle(self) -> dict[str, int]:
        """Return the idle time of the ranks that count, by part."""
        pairs = zip(self.members, self.counts, strict=True)
        sums = np.sum([member.idle[counts].sum(0) for member, counts in pairs], axis=0).tolist()
        return {f"{IDLE}{cause}": time for cause, time in zip(CAUSES, sums, strict=True) if time}

    def ranks(self) -> Iterator[RankUse]:
        """Yield what each rank did on average, those too that do not count."""
        each = self.scale // int(self.counts[:, 0].sum())
        for row, member in enumerate(self.members):
            parts = {part: float(time.mean()) / each for part, time in member.parts().items()}
            own = float(member.length.mean()) / each - parts[WAITING] - parts[UNMATCHED]
            shown = {part: time for part, time in parts.items() if time}
            yield RankUse(member.number, member.host, own, shown, int(self.counts[row].sum()))


def counted_ranks(
    ranks: Sequence[MeasuredRank], numbers: Sequence[int], waits: Waits, *, is_window: bool
) -> CountedRanks:
    """Find the critical ranks of a run.

    Args:
        ranks: with what they did.
        numbers: the units that count, which all ranks have.
        waits: of their channels.
        is_window: idle time is no part of a unit.
    """
    scale = math.lcm(*(each.measure.agents for each in ranks))
    members = [_member(place, each, numbers, waits, scale) for place, each in enumerate(ranks)]
    if is_window:
        members = [replace(member, length=member.exposed.sum(1), idle=0 * member.idle) for member in members]
    lengths = np.array([member.length for member in members])
    waiting = np.array([member.waiting.sum(1) for member in members])
    is_long = lengths >= _CLOSE * lengths.max(0)
    critical = np.where(is_long, waiting, np.iinfo(np.int64).max).argmin(0)
    return CountedRanks(members, np.arange(len(members))[:, None] == critical, scale)


def of_ranks(counted: CountedRanks, chosen: Container[int]) -> CountedRanks:
    """Return the same where the chosen ranks count, in all units.

    Raises:
        UsageError: none of them is there.
    """
    flags = np.array([member.number in chosen for member in counted.members])
    if not flags.any():
        known = ", ".join(str(member.number) for member in counted.members)
        raise UsageError("no such rank with GPU work, or no other", f"ranks with GPU work: {known}")
    counts = np.broadcast_to(flags[:, None], counted.counts.shape)
    each = counted.scale // int(counted.counts[:, 0].sum())
    return CountedRanks(counted.members, counts, each * int(flags.sum()))


def _member(place: int, each: MeasuredRank, numbers: Sequence[int], waits: Waits, scale: int) -> _Member:
    measure = each.measure
    row = {number: at for at, number in enumerate(measure.units.numbers.tolist())}
    rows = np.array([row[number] for number in numbers])
    times = scale // measure.agents
    waiting, unmatched = _waiting(measure, waits)
    length = np.diff(measure.units.edges) * measure.agents
    columns = (measure.calls, measure.time, measure.exposed, waiting, unmatched, measure.idle, length)
    number = place if each.rank.run else each.rank.number
    return _Member(number, each.rank.hostname, measure, rows, *(column[rows] * times for column in columns))


def _waiting(measure: RankMeasure, waits: Waits) -> tuple[Ints, Ints]:
    """Return the exposed time of each unit and launch in which a rank waits, and that of which nothing is known."""
    waiting, unmatched = np.zeros_like(measure.exposed), np.zeros_like(measure.exposed)
    known = measure.exposed_communication
    for number in range(-1, len(measure.channels)):
        rows = np.flatnonzero(known.channel == number)
        at = known.unit[rows], known.launch[rows]
        start, end = known.start[rows], known.end[rows]
        channel = measure.channels[number] if number >= 0 else None
        if channel is None or id(channel) not in waits:
            np.add.at(unmatched, at, end - start)
            continue
        position = known.position[rows]
        until = channel.start[position] + waits[id(channel)][position]
        np.add.at(waiting, at, np.clip(until, start, end) - start)
    return waiting, unmatched
