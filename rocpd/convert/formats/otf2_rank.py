"""Turns one rank into OTF2's terms: locations with sequences of enter and leave, metrics, and their regions; and the
collectives of a job: communicators, and the times at which each member is in a collective.

A rank consists of numpy columns, so that a worker process can make it and send it. A member of a collective is the
location of one stream (or queue) of an agent. `facts.communication.collectives` matches collectives; they are written
if all members of its group show their kernel, so that the n-th of a communicator on one location is the n-th on
every other, by which readers match them. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from rocpd.base import Flags, Floats, Ints, by_key, frozen
from rocpd.convert.deliver import Placement, RankPart
from rocpd.convert.formats.layout import instant_ties, nesting, ties
from rocpd.convert.gather.collect import collect
from rocpd.convert.gather.context import Damage
from rocpd.convert.model import Counters, RankEvents
from rocpd.facts.columns import distinct, grouped, per_id
from rocpd.facts.communication.collectives import Group, listed
from rocpd.facts.communication.communicators import Communication, communication
from rocpd.facts.communication.matching import Clocks
from rocpd.facts.communication.rccl import BARRIER
from rocpd.federate.federation import Federation
from rocpd.federate.open.identify import Rank
from rocpd.federate.run.rank_reader import RankReader
from rocpd.federate.select.align import Shift, Span
from rocpd.schema.rules.categories import domain_of, trace_category

if TYPE_CHECKING:
    import numpy.typing as npt


class Line(NamedTuple):
    """A stream (or queue) of an agent of a rank; ids are those of the rank's file, `NULL` where unknown."""

    rank: int
    agent: int
    number: int


@frozen
class Communicator:
    """Lines whose collectives belong together; `name` comes from the calls, else it is made of the ranks."""

    name: str
    members: tuple[Line, ...]


class Participation(NamedTuple):
    """The part of a member in a collective.

    Args:
        communicator: the group.
        operation: its name in MPI.
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
        kinds: different parts of the line in collectives.
    """

    start: Ints
    end: Ints
    kind: Ints
    kinds: tuple[Participation, ...]

    def __len__(self) -> int:
        return len(self.kind)

    def take(self, which: Flags) -> LineCollectives:
        """Return the collectives that the flags choose."""
        return LineCollectives(self.start[which], self.end[which], self.kind[which], self.kinds)


JobCollectives: TypeAlias = Mapping[Line, LineCollectives]


_Block: TypeAlias = tuple[Participation, Ints, Ints]
"""Collectives in which a line has the same part: this part, starts and ends on the common time line [ns]."""


def collectives(session: Federation, placements: Iterable[Placement], by_queue: bool) -> JobCollectives:
    """Return the collectives of a job; notes the number of kernels that belong to no known group.

    Args:
        session: the ranks.
        placements: their places on the time line.
        by_queue: whether lines are queues, not streams.
    """
    members = {id(each.channel): each for _, of_rank in session.map_ranks(communication) for each in of_rank}
    if not members:
        return {}
    channels = [member.channel for member in members.values()]
    groups, _, lost = Clocks.of(session, channels).match(channels)
    if lost and len(session.ranks) > 1:
        kernels = sum(len(member.codes) for member in members.values())
        session.note(
            f"collectives: {lost.total()} of {kernels} communication kernels could not be matched with those of others"
        )
    shifts = {placement.rank.number: placement.shift for placement in placements}
    of_groups = ([members[id(channel)] for channel in group] for group in groups)
    blocks = by_key(pair for of_group in of_groups for pair in _blocks(of_group, shifts, by_queue))
    return {line: _line_in_order(of_line) for line, of_line in blocks.items()}


def within(job: JobCollectives, ranks: set[int]) -> JobCollectives:
    """Return the collectives of communicators with all members among `ranks`."""
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
    """Yield the common collectives of the members of a group; each set of their lines is a communicator."""
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
        kinds = _kinds(Communicator(_communicator_name(group), lines), members, key[1::2])
        for line, kind, channel, rows in zip(lines, kinds, group, at, strict=False):
            kernels, shift = channel.counted.take(rows[together]), shifts[channel.rank]
            yield line, (kind, shift.to_line(kernels.start), shift.to_line(kernels.end))


def _kinds(communicator: Communicator, members: Sequence[Communication], codes: Sequence[int]) -> list[Participation]:
    """Return the part of each member; empty if their work is not a collective."""
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


def _communicator_name(group: Group) -> str:
    ranks = listed(sorted({channel.rank for channel in group}))
    return group[0].communicator or f"RCCL {ranks} (inferred)"


def _line_in_order(blocks: Sequence[_Block]) -> LineCollectives:
    """Put the collectives of a line in order; of two that overlap, which a stream cannot run, the later starts late."""
    kinds, starts, ends = zip(*blocks, strict=True)
    start, end = np.concatenate(starts), np.concatenate(ends)
    kind = np.repeat(np.arange(len(blocks)), list(map(len, starts)))
    order = np.lexsort((end, start))
    start, end = start[order], np.maximum.accumulate(end[order])
    start[1:] = np.maximum(start[1:], end[:-1])
    return LineCollectives(start, end, kind[order], kinds)


LEAVE, ENTER, BOTH = 0, 1, 2
"""Events of a region; BOTH stands for a region without length."""

_PARADIGMS = {
    "HIP": "HIP", "HSA": "HIP", "RCCL": "HIP", "KERNELS": "HIP", "KERNEL": "HIP", "MEMORY_COPIES": "HIP",
    "MEMORY_ALLOCATIONS": "HIP", "SCRATCH_MEMORY": "HIP", "MEMORY": "HIP", "SCRATCH": "HIP", "ROCSHMEM": "SHMEM",
    "OMPT": "OPENMP", "MPI": "MPI", "PTHREAD": "PTHREAD", "KOKKOS": "KOKKOS", "MARKERS": "USER", "USER": "USER",
    "HOST": "USER", "TIMER": "SAMPLING", "SAMPLING": "SAMPLING",
}  # fmt: skip
"""Domain of a category -> OTF2's paradigm."""
_ROLES = {"ALLOC": "ALLOCATE", "FREE": "DEALLOCATE", "REALLOC": "REALLOCATE", "RECLAIM": "DEALLOCATE"}


@frozen
class ClockOffset:
    """The offset between the clock of a rank and the common time line.

    Args:
        span: first and last time of the rank.
        shift: the offset.
        deviation: standard deviation of the offset [ns].
    """

    span: Span
    shift: Shift
    deviation: float

    def records(self) -> list[tuple[int, int, float]]:
        """Return time, offset and deviation at both ends of the span, and at a jump; readers interpolate."""
        jump = {self.shift.since - 1, self.shift.since} if self.shift.jump else set()
        times = sorted(
            {self.span.start, self.span.end} | {time for time in jump if self.span.start < time < self.span.end}
        )
        return [(time, self.shift.to_line(time) - time, self.deviation) for time in times]


@frozen
class Region:
    """A region that is entered and left: `role` and `paradigm` as OTF2 names them, `category` as AMD's traces do."""

    name: str
    role: str
    paradigm: str
    category: str


@frozen
class Location:
    """A location: its name, whether it is a CPU thread, and its events in order of time.

    `agent` is the id of its GPU, None for the process; `line` names the stream or queue of its dispatches, None
    without one.
    """

    name: str
    is_thread: bool
    agent: int | None
    time: Ints
    what: npt.NDArray[np.int8]
    region: npt.NDArray[np.int32]
    line: Line | None = None

    @property
    def events(self) -> int:
        """The number of OTF2 events."""
        return len(self.what) + int(np.count_nonzero(self.what == BOTH))


@frozen
class Metric:
    """A metric: values in order of time; `agent` as for locations."""

    name: str
    unit: str
    agent: int | None
    time: Ints
    value: Floats


@frozen
class Accelerator:
    """A GPU: its name among the agents, and its model, such as `AMD Instinct MI300X`."""

    name: str
    model: str


@dataclass
class RankTrace:
    """One rank."""

    rank: Rank
    accelerators: dict[int, Accelerator] = field(default_factory=dict)
    regions: list[Region] = field(default_factory=list)
    locations: list[Location] = field(default_factory=list)
    metrics: list[Metric] = field(default_factory=list)
    damage: Damage = field(default_factory=Damage)


def trace(part: RankPart, reader: RankReader) -> RankTrace:
    """Return one rank, its times on the common time line."""
    rank = RankTrace(reader.rank)
    events = collect(reader, part.placement, part.options, rank.damage)
    rank.accelerators = _accelerators(reader, events.agents)
    track, time, tie, what, region = (np.concatenate(column) for column in zip(*_columns(events, rank), strict=True))
    order = np.lexsort((tie, time, track))
    bounds = np.searchsorted(track[order], np.arange(len(events.tracks.all) + 1))
    for index, each in enumerate(events.tracks.all):
        rows = order[bounds[index] : bounds[index + 1]]
        if each.unit is None and (len(rows) or each.tid is not None):
            is_thread = each.tid is not None or each.nests
            gpu = each.agent if each.agent in rank.accelerators else None
            line = None if each.line is None or each.agent is None else Line(rank.rank.number, each.agent, each.line)
            rank.locations.append(Location(each.name, is_thread, gpu, time[rows], what[rows], region[rows], line))
    rank.metrics = [metric for counters in events.counters for metric in _metrics(events, counters, rank.accelerators)]
    return rank


def _accelerators(reader: RankReader, names: Mapping[int, str]) -> dict[int, Accelerator]:
    """Return the GPUs by their ids."""
    sql = "SELECT id, vendor_name, COALESCE(NULLIF(product_name, ''), name) FROM rocpd_info_agent WHERE type = 'GPU'"
    gpus = {}
    for number, vendor, product in reader.rows(sql):
        words = dict.fromkeys((str(vendor or "AMD"), *str(product or "GPU").split()))
        gpus[number] = Accelerator(names.get(number, f"GPU {number}"), " ".join(words))
    return gpus


def _columns(events: RankEvents, rank: RankTrace) -> list[tuple[np.ndarray, ...]]:
    """Return track, time, tie, kind of event and region of all events, as columns per kind of row."""
    nests = nesting(events.tracks.all)
    regions: dict[Region, int] = {}
    names, categories = events.names.texts, events.categories.texts

    def numbered(kind: str, name: Ints, category: Ints) -> np.ndarray:
        width = len(categories) or 1

        def number(key: int) -> int:
            return regions.setdefault(_region(kind, names[key // width], categories[key % width]), len(regions))

        return per_id(name * width + category, number).astype(np.int32)

    columns: list[tuple[np.ndarray, ...]] = []
    kinds = ("call", "kernel", "copy", "graph", "memory")
    for kind, slices in zip(kinds, events.slices, strict=True):
        region = numbered(kind, slices.name, slices.category)
        at = ties(slices, nests)
        what = np.where(at.lasting, ENTER, BOTH).astype(np.int8)
        columns.append((slices.track, slices.start, at.start, what, region))
        rows = np.flatnonzero(at.lasting)
        leave = np.full(len(rows), LEAVE, np.int8)
        columns.append((slices.track[rows], slices.end[rows], at.end[rows], leave, region[rows]))
    for instants in events.instants:
        region = numbered("instant", instants.name, instants.category)
        both = np.full(len(instants), BOTH, np.int8)
        columns.append((instants.track, instants.time, instant_ties(len(instants)), both, region))
    rank.regions = list(regions)
    return columns


def _region(kind: str, name: str, category: str) -> Region:
    paradigm = _PARADIGMS.get(domain_of(category), "UNKNOWN")
    shown = trace_category(category)
    if kind == "kernel":
        return Region(name, "KERNEL", "HIP", shown)
    if kind == "copy":
        return Region(name, "DATA_TRANSFER", "HIP", shown)
    if kind == "memory":
        return Region(name, _ROLES.get(name.split()[0], "UNKNOWN"), "HIP", shown)
    if kind == "instant":
        return Region(name, "ARTIFICIAL" if paradigm == "SAMPLING" else "FUNCTION", paradigm, shown)
    return Region(name, "CODE" if paradigm == "USER" else "FUNCTION", paradigm, shown)


def _metrics(events: RankEvents, counters: Counters, gpus: Container[int]) -> list[Metric]:
    metrics = []
    for index in distinct(counters.track).tolist():
        rows = counters.track == index
        track = events.tracks.all[index]
        gpu = track.agent if track.agent in gpus else None
        metrics.append(Metric(track.name, track.unit or "", gpu, counters.time[rows], counters.value[rows]))
    return metrics
