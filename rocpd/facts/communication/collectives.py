"""Matches the communication kernels of different ranks that are one collective.

Each agent runs the kernels of a communicator in the same order, so the n-th kernel of a name on one agent is the n-th
on every other, counted over the whole trace, regardless of the window. The communicator is known where the calls name
it by a word that all ranks share. An address is meaningful in its own process only, and kernels whose calls were not
traced have no communicator: these are divided by stream, and their groups are inferred:

1. Candidates are agents that ran equally many kernels of the name, for communicators of equal size, if it is known.
   Among several communicators with equal numbers, the i-th that an agent started with is the i-th of the others.
2. On one clock, members run at the same time, in nine of ten collectives: a barrier has all of them inside. They also
   end together, while groups with equal work end apart, by as much as one of them was late. Groups that end as close to
   each other as members of one group are separated by the member that each one waits for (`divisions`).
3. Groups on different clocks are parts of one group when their ends differ by a line, as on clocks that run evenly, and
   by little else. A part with as many members as the communicator has ranks is whole. The ends of few collectives
   always lie near a line: then clocks with one group each are taken for parts of one group.
4. Unclear kernels are not matched: a group larger than its communicator, members that don't all overlap, two groups
   that fit equally well, an agent that is alone. The number of these kernels is returned.

Several groups of unknown size are taken for one where neither ends nor arrivals show that they are several.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from rocpd.base import Flags, Floats, Ints, by_key, frozen
from rocpd.facts.columns import EqualColumns
from rocpd.facts.communication.clusters import connected, is_clear, separated
from rocpd.facts.communication.divisions import divide
from rocpd.facts.communication.rccl import SendRole, Transfer
from rocpd.federate.select.clocks import line_between

_ADDRESS = re.compile(r"0[xX][0-9a-fA-F]+|\(nil\)|\(null\)")
_TOLERANCE_NS = 10_000  # by which clocks of the agents of one machine differ
_ENOUGH = 0.9  # of the collectives; the root of a broadcast may leave before others come
_FARTHER = 2.0  # times as far apart as others end: not together
_JITTER_NS = 15_000  # by which the ends of a collective differ on average, at most
_MOST_APART = 0.5  # of the time in a collective: kernels that end further apart are not one
_LEAST_TO_JOIN = 5  # collectives
_MANY, _SAMPLE = 64, 64  # with more channels, so many evenly spaced collectives are compared at first
_UNCLEAR = 1.25  # times farther or nearer than `_FARTHER`: then all collectives are compared
_MOST_AT_ONCE = 2048  # channels that are compared each with each: time and memory grow with the square


@frozen
class CommunicationKernels(EqualColumns):
    """Communication kernels of one rank, as columns.

    Args:
        row: id of the dispatch.
        name: number of the kernel's name.
        agent, stream: ids, `NULL` where unknown.
        start, end: [ns of the rank's clock].
    """

    row: Ints
    name: Ints
    agent: Ints
    stream: Ints
    start: Ints
    end: Ints


@frozen
class Channel:
    """Communication kernels of one name that one agent ran for one communicator, in order.

    Args:
        name: name of the kernel.
        rank, agent: where the kernels ran; `agent` may be `NULL`.
        communicator: name of the communicator in all ranks; None if it has a different one in each rank.
        size: number of ranks of the communicator, None where unknown.
        start, end, stream: of all kernels, regardless of window and filters [ns of the rank's clock].
        numbers: numbers of the kernels that count: they are in the window and pass the filters.
        counted: the kernels that count, with their times as the window cuts them.
        role: role of kernels that send or receive; None for collectives.
        own: number of the rank in the communicator, None where unknown.
        moves: transfer of each kernel, as a number in `transfers`; empty where no calls were recorded.
        transfers: the different transfers, None for unknown.
        shown: name of the kernel, as people see it.
        order: number of each kernel among all launches of the process, then the number of the last launch; empty where
            calls say what the kernels do.
        rows: ids of the dispatches of all kernels.
    """

    name: str | None
    rank: int
    agent: int
    communicator: str | None
    size: int | None
    start: Ints
    end: Ints
    stream: Ints
    numbers: Ints
    counted: CommunicationKernels
    role: SendRole | None = None
    own: int | None = None
    moves: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    transfers: tuple[Transfer | None, ...] = ()
    shown: str | None = None
    order: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    rows: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self.start)

    @property
    def is_recorded(self) -> bool:
        """Whether calls identify the kernels; else a kernel that sends looks like one of a collective."""
        return self.communicator is not None or self.size is not None or len(self.moves) > 0

    def without(self, lost: Ints) -> Channel:
        """Return the channel without the kernels of these numbers."""
        kept = np.delete(np.arange(len(self)), lost)
        counts = np.isin(self.numbers, kept)
        columns = {name: getattr(self, name) for name in ("start", "end", "stream", "moves", "order", "rows")}
        return replace(
            self,
            **{name: column[kept] if len(column) else column for name, column in columns.items()},
            numbers=np.searchsorted(kept, self.numbers[counts]),
            counted=self.counted.take(counts.nonzero()[0]),
        )


Group = tuple[Channel, ...]
"""Channels of one communicator: the n-th kernels of all channels are one collective."""


def is_shared(communicator: str) -> bool:
    """Whether a word names the communicator in all ranks; an address belongs to the rank's own process.

    >>> is_shared("tensor parallel"), is_shared("0x7f2a40000000"), is_shared("(nil)")
    (True, False, False)
    """
    return not _ADDRESS.fullmatch(communicator)


def match(
    channels: Iterable[Channel], clocks: Mapping[int, int], nodes: Mapping[int, int] | None = None
) -> tuple[list[Group], Counter[str]]:
    """Return groups of channels of collectives, and reason -> number of counted kernels that are in no group.

    Args:
        channels: channels of all ranks; those that send or receive are left out (`communication.transfers`).
        clocks: rank -> number of its clock, or of the line of time that it is laid on.
        nodes: rank -> number of its clock before it was laid on a line; None: as in `clocks`.
    """
    alike: dict[tuple[object, ...], list[Channel]] = {}
    seen: Counter[tuple[object, ...]] = Counter()
    collectives = sorted((c for c in channels if c.role is None), key=lambda c: (c.rank, c.agent, int(c.start[0])))
    for channel in collectives:
        kind: tuple[object, ...] = (channel.name, len(channel), channel.communicator, channel.size)
        ordinal = seen[channel.rank, channel.agent, kind]
        seen[channel.rank, channel.agent, kind] += 1
        alike.setdefault((kind, ordinal), []).append(channel)
    groups: list[Group] = []
    lost: Counter[str] = Counter()
    nodes = nodes or clocks
    by_kind = {kind: list(_groups(members, clocks, nodes)) for kind, members in alike.items()}
    both = _readings(by_kind, nodes)
    for key, members in alike.items():
        of_name = by_kind[key]
        if key in both:
            lost[BOTH] += sum(len(member.numbers) for member in members)
            continue
        groups += of_name
        matched = sum(len(member.numbers) for group in of_name for member in group)
        lost[ALONE if len(members) == 1 else UNCLEAR] += sum(len(member.numbers) for member in members) - matched
    return _with_unknown(groups, clocks), +lost


def _with_unknown(groups: Sequence[Group], clocks: Mapping[int, int]) -> list[Group]:
    """Return groups, of which those that lack members have the one other that may be these.

    The calls of some ranks may not say which communicator it is, as those of another version: among themselves, these
    ranks look like a group.
    """
    lacking = [group for group in groups if len(group) < (group[0].size or 0)]
    of_unknown = (group for group in groups if group[0].size is None and group[0].communicator is None)
    unknown = by_key(((group[0].name, len(group[0])), group) for group in of_unknown)
    alike = ((a, b) for a in lacking for b in unknown.get((a[0].name, len(a[0])), ()))
    fits = [(a, b) for a, b in alike if _may_be_whole(a, b, clocks)]
    joined = {id(a): (*a, *b) for a, b in fits if sum(a is one or b is other for one, other in fits) == 1}
    gone = {id(b) for a, b in fits if id(a) in joined}
    return [joined.get(id(group), group) for group in groups if id(group) not in gone]


def _may_be_whole(group: Group, other: Group, clocks: Mapping[int, int]) -> bool:
    """Whether another group, of as many kernels, may be members that a group lacks: all run at the same time."""
    are_others = {member.rank for member in group}.isdisjoint(member.rank for member in other)
    is_room = len(group) + len(other) <= (group[0].size or 0)
    return are_others and is_room and run_together((*group, *other), clocks)


ALONE = "no other rank runs as many"
UNCLEAR = "which ranks end them together is not clear"
BOTH = "groups in nodes and groups across nodes fit equally well"


def _readings(
    by_kind: Mapping[tuple[object, ...], Sequence[Group]], clocks: Mapping[int, int]
) -> set[tuple[object, ...]]:
    """Return the kinds of channels whose groups may lie across clocks as well as on each clock.

    Data parallel ranks, one per clock, arrive and leave together with the tensor parallel groups on their clocks: where
    sizes are unknown, both look like groups of one clock. Two communicators of the same ranks on several clocks are
    taken for such a case.
    """
    alike: dict[object, list[tuple[object, ...]]] = {}
    for kind, groups in by_kind.items():
        sets = frozenset(frozenset(member.rank for member in group) for group in groups)
        on_one = all(len({clocks.get(rank, -1) for rank in ranks}) == 1 for ranks in sets)
        size, communicator = groups[0][0].size if groups else None, groups[0][0].communicator if groups else ""
        if len(sets) > 1 and on_one and size is None and communicator is None:
            on = {clocks.get(min(ranks), -1) for ranks in sets}
            if len(on) > 1:
                alike.setdefault((kind[0], sets), []).append(kind)
    return {kind for kinds in alike.values() if len(kinds) > 1 for kind in kinds}


def _groups(members: Sequence[Channel], clocks: Mapping[int, int], nodes: Mapping[int, int]) -> Iterator[Group]:
    """Yield the groups among channels with equally many kernels; arguments as for `match`."""
    size = members[0].size
    if members[0].communicator is not None:
        parts = [tuple(members)]
    elif in_rank_order := _in_rank_order(members, clocks):
        parts = in_rank_order
    else:
        lines = clocks if len(members) <= _MOST_AT_ONCE else nodes
        by_clock = by_key((lines.get(member.rank, -1), member) for member in members)
        parts = _joined([_together(on_clock, size) for on_clock in by_clock.values()], size)
    yield from (part for part in parts if len(part) > 1 and (size is None or len(part) <= size) and _may_be_one(part))


def _may_be_one(group: Group) -> bool:
    """Whether no two members of a group have the same number in their communicator."""
    numbers = [member.own for member in group if member.own is not None]
    return len(set(numbers)) == len(numbers)


def _in_rank_order(members: Sequence[Channel], clocks: Mapping[int, int]) -> list[Group]:
    """Return the groups of a mesh of ranks; nothing where members on one clock do not run at the same time.

    They would, as a barrier has all members inside.
    """
    groups = mesh_of(members) or _most_of_one(members)
    return groups if all(run_together(group, clocks) for group in groups) else []


def mesh_of(members: Sequence[Channel]) -> list[Group]:
    """Return the groups of a mesh of ranks, in rank order, where calls number each rank in its communicator.

    Two ranks with one number are in different communicators; the i-th ranks of all numbers are in one communicator.
    Nothing where the numbers are no mesh.
    """
    by_number = by_key((member.own, member) for member in members)
    if set(by_number) != set(range(members[0].size or 0)) or len({len(each) for each in by_number.values()}) > 1:
        return []
    return list(zip(*(by_number[number] for number in sorted(by_number, key=lambda n: n or 0)), strict=True))


def _most_of_one(members: Sequence[Channel]) -> list[Group]:
    """Return the only group of a large communicator of which some ranks were not read: most numbers are there, once."""
    numbers, size = {member.own for member in members} - {None}, members[0].size or 0
    is_most = max(_MANY, size // 2) < len(members) < size
    return [tuple(members)] if is_most and len(numbers) == len(members) else []


def run_together(group: Group, clocks: Mapping[int, int]) -> bool:
    """Whether the members of a group that share a clock run at the same time."""
    on = [clocks.get(member.rank, -1 - member.rank) for member in group]
    for clock in set(on):
        here = [member for member, each in zip(group, on, strict=True) if each == clock]
        latest = np.maximum.reduce([member.start for member in here])
        earliest = np.minimum.reduce([member.end for member in here])
        if not _overlap(latest[None], earliest[None])[0]:
            return False
    return True


def _together(members: Sequence[Channel], size: int | None) -> list[Group]:
    """Return groups of channels on one clock that run at the same time and end together.

    Channels that do so with only some members of a group are in no group.
    """
    start, end = (np.array([getattr(member, side) for member in members]) for side in ("start", "end"))
    count, times = start.shape
    apart, overlaps = np.zeros((count, count)), np.eye(count, dtype=bool)
    sample = slice(None, None, 1 if count <= _MANY else max(1, times // _SAMPLE))
    for a in range(1, count):
        apart[a, :a] = apart[:a, a] = _distances(end[:a, sample] - end[a, sample])
        latest, earliest = np.maximum(start[:a, sample], start[a, sample]), np.minimum(end[:a, sample], end[a, sample])
        overlaps[a, :a] = overlaps[:a, a] = _overlap(latest, earliest)
    if sample.step > 1:
        unclear = overlaps & _near(apart, _FARTHER * _UNCLEAR) & ~_near(apart, _FARTHER / _UNCLEAR)
        for a, row in enumerate(unclear):
            others = row[:a].nonzero()[0]
            apart[a, others] = apart[others, a] = _distances(end[others] - end[a])
    longest = np.maximum(_MOST_APART * (end - start).mean(1), _FARTHER * _JITTER_NS)
    apart[~overlaps | (apart > np.minimum(longest[:, None], longest))] = np.inf
    return [tuple(members[row] for row in part) for part in _parts(apart, start, end, size)]


def _parts(apart: Floats, start: Ints, end: Ints, size: int | None) -> Iterator[Ints]:
    """Yield rows of channels that are near each other and no others; connected channels are divided, if possible.

    Args:
        apart: distance between the ends of channels [ns], infinity for two that are not together.
        start, end: of the kernels (columns) of each channel (row) [ns].
        size: number of ranks of the communicators, None where unknown.
    """
    near = np.isfinite(apart) & _near(apart, _FARTHER)
    for rows in connected(near):
        divided = divide(start[rows], end[rows], size) if len(rows) > (size or 1) else []
        if len(divided) > 1:
            yield from (rows[part] for part in divided)
        elif len(rows) <= (size or len(rows)) and near[np.ix_(rows, rows)].all():
            yield rows
        else:
            yield from (rows[part] for part in separated(apart[np.ix_(rows, rows)], start.shape[1], size))


def _near(apart: Floats, farther: float) -> Flags:
    """Whether two channels end at most `farther` times as far apart as from their nearest ones."""
    alone = np.where(np.eye(len(apart), dtype=bool), np.inf, apart).min(1, initial=np.inf)
    near: Flags = apart <= np.maximum(farther * np.maximum(alone[:, None], alone), _TOLERANCE_NS)
    return near


def _joined(by_clock: Sequence[Sequence[Group]], size: int | None) -> list[Group]:
    """Join parts of different clocks that end together, by clocks that run evenly."""
    parts = [part for on_clock in by_clock for part in on_clock]
    if len(by_clock) == 1 or not parts:
        return parts
    if {len(part) for part in parts} == {size}:
        return parts
    if len(parts[0][0]) < _LEAST_TO_JOIN:  # any few numbers lie near a line
        is_one_per_clock = all(len(on_clock) == 1 for on_clock in by_clock)
        whole = [tuple(channel for part in parts for channel in part)]
        return whole if is_one_per_clock else [part for part in parts if len(part) == size]
    groups: list[list[Group]] = []
    for on_clock in by_clock:
        fitting = _fitting(on_clock, groups, size)
        for number, part in enumerate(on_clock):
            if number in fitting:
                groups[fitting[number]].append(part)
            else:
                groups.append([part])
    return [tuple(channel for part in group for channel in part) for group in groups]


def _fitting(parts: Sequence[Group], groups: Sequence[Sequence[Group]], size: int | None) -> dict[int, int]:
    """Return part -> its group on other clocks, for the parts of one clock; without parts if it isn't clear."""
    if not groups:
        return {}
    distance = np.full((len(parts), len(groups)), np.inf)
    for a, part in enumerate(parts):
        for b, group in enumerate(groups):
            if size is None or len(part) + sum(map(len, group)) <= size:
                distance[a, b] = _distance_of(group[0], part)
    fitting = {}
    for a, row in enumerate(distance):
        b = int(row.argmin())
        others = np.concatenate([np.delete(row, b), np.delete(distance[:, b], a)])
        if np.isfinite(row[b]) and is_clear(row[b], others.min(initial=np.inf), len(parts[a][0])):
            fitting[a] = b
    return fitting


def _distance_of(first: Group, second: Group) -> float:
    """Return the distance between the ends of two parts on different clocks [ns]; infinity if they are no group."""
    start, end = (
        [np.mean([getattr(member, side) for member in part], axis=0) for part in (first, second)]
        for side in ("start", "end")
    )
    base = [times[0] for times in end]
    expected = line_between(end[0] - base[0], end[1] - base[1]).at(end[0] - base[0])
    ends, starts = (_distance((times[0] - base[0]) - (times[1] - base[1]) - expected) for times in (end, start))
    within = max(_distance(member.end - part[0].end) for part in (first, second) for member in part)
    agree = ends <= max(_FARTHER * within, _JITTER_NS) or _FARTHER * ends <= starts
    return ends if agree else math.inf


def end_apart(first: Channel, second: Channel, *, is_one_clock: bool) -> float:
    """Return the distance between the ends of two channels [ns]; infinity if it is too large or they don't overlap."""
    if not is_one_clock:
        return _distance_of((first,), (second,)) if len(first) >= _LEAST_TO_JOIN else math.inf
    latest, earliest = np.maximum(first.start, second.start), np.minimum(first.end, second.end)
    apart = _distance(first.end - second.end)
    length = min(float((channel.end - channel.start).mean()) for channel in (first, second))
    is_together = bool(_overlap(latest[None], earliest[None])[0])
    return apart if is_together and apart <= max(_MOST_APART * length, _FARTHER * _JITTER_NS) else math.inf


def _distance(apart: Ints | Floats) -> float:
    """Return the mean distance without the largest tenth."""
    return float(_distances(apart[None])[0])


def _distances(apart: Ints | Floats) -> Floats:
    """Return the mean distance of each row without the largest tenth."""
    kept = max(1, math.ceil(_ENOUGH * apart.shape[1]))
    distances = np.abs(apart)
    if kept < apart.shape[1]:
        distances = np.partition(distances, kept - 1, axis=1)[:, :kept]
    mean: Floats = distances.mean(1)
    return mean


def _overlap(latest: Ints, earliest: Ints) -> Flags:
    """Whether the kernels of each row mostly run at the same time."""
    overlap: Flags = (latest - earliest <= _TOLERANCE_NS).mean(1) >= _ENOUGH
    return overlap


def listed(numbers: Sequence[int], most: int | None = None) -> str:
    """Return ascending numbers as a short text; `most`: number of ranges to write at most, for people.

    >>> listed([0, 1, 2, 5]), listed([0, 2, 4, 6], most=2)
    ('0-2,5', '0,2 …')
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    words = [str(low) if low == high else f"{low}-{high}" for low, high in runs]
    return ",".join(words[:most]) + (" …" if words[most or len(words) :] else "")
