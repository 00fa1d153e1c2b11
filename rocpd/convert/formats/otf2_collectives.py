"""The collectives of a job as OTF2 has them: communicators, and when each member of one is in a collective.

A member is the location of one stream (or queue) of an agent. What belongs together is the rule of
`facts.communication.collectives`; a collective is written where all members of its group show their kernel, so that the
n-th of a communicator on one location is the n-th on every other, by which readers match them. Never writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import NamedTuple, TypeAlias

import numpy as np

from rocpd.base.frozen import frozen
from rocpd.base.types import Flags, Ints
from rocpd.convert.deliver.placement import Placement
from rocpd.facts.columns import grouped
from rocpd.facts.communication.collectives import Group, listed
from rocpd.facts.communication.matching import Clocks
from rocpd.facts.communication.ranks import Communication, communication
from rocpd.facts.communication.rccl import BARRIER
from rocpd.federate.federation import Federation
from rocpd.federate.select.align import Shift


class Line(NamedTuple):
    """A stream (or queue) of an agent of a rank; ids are those of the rank's file, `NULL` where unknown."""

    rank: int
    agent: int
    number: int


@frozen
class Communicator:
    """Lines whose collectives belong together; `name` is that which the calls give it, else made of the ranks."""

    name: str
    members: tuple[Line, ...]


class Participation(NamedTuple):
    """How a member takes part in a collective.

    Args:
        communicator: the group.
        operation: as MPI names it.
        root: member, None where the operation has none or it is unknown.
        sent, received: [bytes], 0 where unknown.
    """

    communicator: Communicator
    operation: str
    root: int | None
    sent: int
    received: int


@frozen
class LineCollectives:
    """The collectives of one line in order: one ends before the next starts.

    Args:
        start, end: on the common time line [ns].
        kind: number in `kinds`.
        kinds: how the line takes part.
    """

    start: Ints
    end: Ints
    kind: Ints
    kinds: tuple[Participation, ...]

    def __len__(self) -> int:
        return len(self.kind)

    def take(self, which: Flags) -> LineCollectives:
        """Return some of them."""
        return LineCollectives(self.start[which], self.end[which], self.kind[which], self.kinds)


JobCollectives: TypeAlias = Mapping[Line, LineCollectives]


class _Block(NamedTuple):
    """Collectives of a line in which it takes part in the same way: start and end on the common time line [ns]."""

    kind: Participation
    start: Ints
    end: Ints


def collectives(session: Federation, placements: Iterable[Placement], by_queue: bool) -> JobCollectives:
    """Return the collectives of a job; how many kernels belong to no known group is noted.

    Args:
        session: the ranks.
        placements: where they stand on the time line.
        by_queue: lines are queues, not streams.
    """
    members = {id(each.channel): each for _, of_rank in session.map_ranks(communication) for each in of_rank}
    if not members:
        return {}
    channels = [member.channel for member in members.values()]
    groups, _, lost = Clocks.of(session, channels).match(channels)
    if lost and len(session.ranks) > 1:
        every = sum(len(member.codes) for member in members.values())
        session.note(
            f"collectives: {lost.total()} of {every} communication kernels could not be matched with those of others"
        )
    shifts = {placement.rank.number: placement.shift for placement in placements}
    blocks: dict[Line, list[_Block]] = {}
    for group in groups:
        for line, block in _blocks([members[id(channel)] for channel in group], shifts, by_queue):
            blocks.setdefault(line, []).append(block)
    return {line: _in_order(of_line) for line, of_line in blocks.items()}


def within(job: JobCollectives, ranks: set[int]) -> JobCollectives:
    """Return the collectives of communicators all of whose members are among some ranks."""
    if all(line.rank in ranks for line in job):
        return job
    inside = {}
    for line, of_line in job.items():
        whole = (ranks.issuperset(member.rank for member in kind.communicator.members) for kind in of_line.kinds)
        inside[line] = of_line.take(np.fromiter(whole, bool)[of_line.kind])
    return inside


def _blocks(
    members: Sequence[Communication], shifts: Mapping[int, Shift], by_queue: bool
) -> Iterator[tuple[Line, _Block]]:
    """Yield what the members of a group take part in together; each set of their lines is a communicator."""
    group = tuple(member.channel for member in members)
    numbers = reduce(np.intersect1d, (channel.numbers for channel in group))
    at = [np.searchsorted(channel.numbers, numbers) for channel in group]
    keys = [
        column[rows]
        for member, rows in zip(members, at, strict=True)
        for column in (member.queues if by_queue else member.channel.counted.stream, member.codes)
    ]
    for key, together in grouped(keys):
        lines = tuple(Line(channel.rank, channel.agent, line) for channel, line in zip(group, key[::2], strict=True))
        kinds = _kinds(Communicator(_name(group), lines), members, key[1::2])
        for line, kind, channel, rows in zip(lines, kinds, group, at, strict=False):
            kernels, shift = channel.counted.take(rows[together]), shifts[channel.rank]
            yield line, _Block(kind, shift.to_line(kernels.start), shift.to_line(kernels.end))


def _kinds(communicator: Communicator, members: Sequence[Communication], codes: Sequence[int]) -> list[Participation]:
    """Return how each member takes part; nothing if what it does is no collective."""
    transfers = [member.transfers[code] for member, code in zip(members, codes, strict=True)]
    known = [transfer for transfer in transfers if transfer]
    if len(known) < len(members):
        return []
    operation = next((each.operation for each in known if each.operation != BARRIER), BARRIER)
    kinds = []
    for place, transfer in enumerate(known):
        root = transfer.root if transfer.root is not None and transfer.root < len(members) else None
        kinds.append(Participation(communicator, operation, root, *transfer.sizes(len(members), root == place)))
    return kinds


def _name(group: Group) -> str:
    ranks = listed(sorted({channel.rank for channel in group}))
    return group[0].communicator or f"RCCL {ranks} (inferred)"


def _in_order(blocks: Sequence[_Block]) -> LineCollectives:
    """Put the collectives of a line in order; where two overlap, which a stream cannot do, the later starts late."""
    start, end = (np.concatenate([getattr(block, side) for block in blocks]) for side in ("start", "end"))
    kind = np.repeat(np.arange(len(blocks)), [len(block.start) for block in blocks])
    order = np.lexsort((end, start))
    start, end = start[order], np.maximum.accumulate(end[order])
    start[1:] = np.maximum(start[1:], end[:-1])
    return LineCollectives(start, end, kind[order], tuple(block.kind for block in blocks))
