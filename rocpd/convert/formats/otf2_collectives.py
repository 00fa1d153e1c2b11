"""The collectives of a job as OTF2 has them: communicators, and when each member of one is in a collective.

A member is the location of one stream (or queue) of an agent. What belongs together is the rule of
`rocpd.trace.collectives`; a collective is written where all members of its group show their kernel, so that the n-th
of a communicator on one location is the n-th on every other, by which readers match them. Never writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import NamedTuple, TypeAlias

import numpy as np

from rocpd.convert.deliver.placement import Placement
from rocpd.federate.federation import Federation
from rocpd.federate.run.rank_reader import RankReader
from rocpd.frozen import frozen
from rocpd.read.columns import columns
from rocpd.read.communicators import channels, launches
from rocpd.read.groups import grouped
from rocpd.read.ids import find_rows
from rocpd.read.names import Names, as_text
from rocpd.trace.collectives import Channel, CommunicationKernels, Group, listed, match
from rocpd.trace.kernel_categories import is_communication, load
from rocpd.trace.kernel_names import names_of_kernels
from rocpd.trace.rccl import ARGUMENTS, BARRIER, Transfer, transfer_of
from rocpd.trace.times import valid_times
from rocpd.types import Flags, Ints

_DISPATCHED = " WHERE id IN (SELECT kernel_id FROM rocpd_kernel_dispatch)"  # libraries bring thousands of others
_KERNELS = """
SELECT id, start, "end", agent_id, stream_id, queue_id, kernel_id FROM rocpd_kernel_dispatch WHERE kernel_id IN ({})"""
_COLUMNS = ("id", "start", "end", "agent_id", "stream_id", "queue_id", "kernel_id")


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


class _Member(NamedTuple):
    """A channel; of each of its kernels that count the stream or queue, and what it does as a number in `transfers`."""

    channel: Channel
    lines: Ints
    codes: Ints
    transfers: Sequence[Transfer | None]


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
    of_ranks = session.map_ranks(partial(_members, by_queue=by_queue))
    members = {id(member.channel): member for _, of_rank in of_ranks for member in of_rank}
    if not members:
        return {}
    clocks = {rank: number for number, domain in enumerate(session.clock_domains) for rank in domain.ranks}
    groups, lost = match((member.channel for member in members.values()), clocks)
    if lost and len(session.ranks) > 1:
        every = sum(len(member.lines) for member in members.values())
        session.note(f"collectives: {lost} of {every} communication kernels could not be matched with those of others")
    offsets = {placement.rank.number: placement.offset for placement in placements}
    blocks: dict[Line, list[_Block]] = {}
    for group in groups:
        for line, block in _blocks([members[id(channel)] for channel in group], offsets):
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


def _members(reader: RankReader, by_queue: bool) -> list[_Member]:
    """Return the channels of one rank."""
    categories, names = load(None), Names()
    symbols = reader.rows(names_of_kernels() + _DISPATCHED)
    texts = {number: as_text(name) for number, name in symbols if isinstance(number, int)}
    wanted = {number: text for number, text in texts.items() if is_communication(categories.of(text))}
    counted, queues = _kernels(reader, wanted, names)
    if not len(counted):
        return []
    every = _kernels(reader.whole(), wanted, names)[0] if reader.tables.only else counted
    every = every.take(np.lexsort((every.row, every.start)))
    launched = launches(reader.whole(), every.row, ARGUMENTS, unnamed=True)
    result = []
    for channel in channels(reader.rank.number, names, every, counted, launched):
        rows = channel.counted.row
        lines = queues[find_rows(counted.row, rows)[0]] if by_queue else channel.counted.stream
        known: dict[Transfer | None, int] = {}
        transfers = (transfer_of(channel.name, launched.calls.get(row, ())) for row in rows.tolist())
        codes = [known.setdefault(transfer, len(known)) for transfer in transfers]
        result.append(_Member(channel, lines, np.array(codes, np.int64), tuple(known)))
    return result


def _kernels(reader: RankReader, wanted: Mapping[int, str | None], names: Names) -> tuple[CommunicationKernels, Ints]:
    """Return the dispatches of some kernels that have valid times, and their queues."""
    sql = _KERNELS.format(", ".join(map(str, wanted)))
    row, start, end, agent, stream, queue, kernel = columns(reader, "rocpd_kernel_dispatch", sql, _COLUMNS)
    valid = np.flatnonzero(valid_times(start, end))
    kernels = CommunicationKernels(row, names.codes(kernel, wanted.get), agent, stream, start, end)
    return kernels.take(valid), queue[valid]


def _blocks(members: Sequence[_Member], offsets: Mapping[int, int]) -> Iterator[tuple[Line, _Block]]:
    """Yield what the members of a group take part in together; each set of their lines is a communicator."""
    group = tuple(member.channel for member in members)
    numbers = reduce(np.intersect1d, (channel.numbers for channel in group))
    at = [np.searchsorted(channel.numbers, numbers) for channel in group]
    keys = [column[rows] for member, rows in zip(members, at, strict=True) for column in (member.lines, member.codes)]
    for key, together in grouped(keys):
        lines = tuple(Line(channel.rank, channel.agent, line) for channel, line in zip(group, key[::2], strict=True))
        kinds = _kinds(Communicator(_name(group), lines), members, key[1::2])
        for line, kind, channel, rows in zip(lines, kinds, group, at, strict=False):
            kernels, offset = channel.counted.take(rows[together]), offsets.get(channel.rank, 0)
            yield line, _Block(kind, kernels.start + offset, kernels.end + offset)


def _kinds(communicator: Communicator, members: Sequence[_Member], codes: Sequence[int]) -> list[Participation]:
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
