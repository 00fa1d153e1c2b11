"""Collectives: communication kernels matched across ranks, and who made whom wait.

All ranks end a collective together, so the rank that spends least time in it came last, and what another spends
beyond that it waited. Durations alone are compared: clocks of different machines need not agree.

What is matched. Each agent runs the kernels of a communicator in the same order, so the n-th of a name on one agent is
the n-th on every other, counted over the whole trace, whatever the window. The communicator is known where the calls
name it by a word that all ranks share. An address means something in its own process only, and kernels whose calls were
not traced have none: these go by stream. Their groups are inferred:

1. Agents are of one group when they ran equally many kernels of the name, for communicators of equal size where it is
   known. Of several communicators with equal numbers the i-th that an agent started with is the i-th of the others.
2. On one clock they also have to run at the same time, in nine of ten collectives: a barrier has all of them inside.
   This tells groups apart that do equally much. Ranks on different clocks are one group unless that shows several.
3. A group that is larger than its communicator, or whose members don't all overlap, is not matched at all, nor is an
   agent that is alone: how many kernels that concerns is reported.

Groups in step look like one where the size of their communicators is not known: what is taken for a group is reported.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rocpd.federate.open.identify import Rank
from rocpd.read.groups import grouped
from rocpd.read.ids import per_id
from rocpd.read.names import Names, as_text
from rocpd.summary.communicators import communicators
from rocpd.summary.kernel_categories import Categories, split
from rocpd.summary.ops import Ops, read_ops
from rocpd.summary.options import By
from rocpd.summary.reading import Key, RankReading, key_of, order_of
from rocpd.types import NULL, Ints, Row

_ADDRESS = re.compile(r"0[xX][0-9a-fA-F]+|\(nil\)|\(null\)")
_TOLERANCE_NS = 10_000  # by which clocks of the agents of one machine differ
_ENOUGH = 0.9  # of the collectives; the root of a broadcast may leave before others come
_BLOCK = 1 << 22  # times in memory at once


@dataclass(frozen=True)
class Channel:
    """Communication kernels of one name that one agent ran for one communicator, in order.

    Args:
        name: kernel.
        rank, agent: where they ran; `agent` may be `NULL`.
        communicator: its name in all ranks; None where each rank has its own.
        size: how many ranks the communicator has, None where unknown.
        start, end: of all of them [ns of the rank's clock].
        numbers: which of them count, being in the window and passing the filters.
        durations: of these [ns].
        streams: on which these ran.
    """

    name: str | None
    rank: int
    agent: int
    communicator: str | None
    size: int | None
    start: Ints
    end: Ints
    numbers: Ints
    durations: Ints
    streams: Ints

    def __len__(self) -> int:
        return len(self.start)


def channels_of(reading: RankReading, ops: Ops, names: Names, categories: Categories) -> list[Channel]:
    """Return the communication kernels of a rank; `ops` are the operations that count."""
    counted = split(ops, categories, names)["communication"]
    if not len(counted):
        return []
    every = read_ops(reading.whole(), names) if reading.reader.tables.only else ops
    every = every.take(split(every, categories, names)["communication"])
    every = every.take(np.lexsort((every.row, every.start)))
    named, sizes = communicators(reading.reader.whole(), every.row)
    words = Names()
    codes = np.array([words.code(as_text(named.get(row))) for row in every.row.tolist()], np.int64)
    streams = np.where(codes == words.code(None), every.stream, NULL)
    by_row = counted[np.argsort(ops.row[counted])]
    channels = []
    for (name, agent, code, _), rows in grouped([every.name, every.agent, codes, streams]):
        kernels = every.take(rows)
        at = np.minimum(np.searchsorted(ops.row[by_row], kernels.row), len(by_row) - 1)
        numbers = np.flatnonzero(ops.row[by_row][at] == kernels.row)
        word = words.texts[code]
        channels.append(
            Channel(
                names.texts[name],
                reading.rank.number,
                agent,
                None if word is None or _ADDRESS.fullmatch(word) else word,
                sizes.get(word) if word else None,
                kernels.start,
                kernels.end,
                numbers,
                ops.duration[by_row[at[numbers]]],
                kernels.stream[numbers],
            )
        )
    return channels


Group = tuple[Channel, ...]
"""Channels of one communicator: the n-th kernels of all of them are one collective."""


def match(channels: Iterable[Channel], clocks: Mapping[int, int]) -> tuple[list[Group], int]:
    """Put channels into groups; also return how many kernels that count are in none.

    Args:
        channels: those of all ranks.
        clocks: rank -> number of its clock.
    """
    alike: dict[tuple[object, ...], list[Channel]] = {}
    seen: Counter[tuple[object, ...]] = Counter()
    every = sorted(channels, key=lambda c: (c.rank, c.agent, int(c.start[0])))
    for channel in every:
        kind = (channel.name, len(channel), channel.communicator, channel.size)
        ordinal = seen[channel.rank, channel.agent, kind]
        seen[channel.rank, channel.agent, kind] += 1
        alike.setdefault((kind, ordinal), []).append(channel)
    groups = [group for members in alike.values() for group in _groups(members, clocks)]
    matched = sum(len(member.numbers) for group in groups for member in group)
    return groups, sum(len(channel.numbers) for channel in every) - matched


def _groups(members: Sequence[Channel], clocks: Mapping[int, int]) -> Iterator[Group]:
    """Yield the groups among channels with equally many kernels."""
    size = members[0].size
    by_clock: dict[int, list[Channel]] = {}
    for member in members:
        by_clock.setdefault(clocks.get(member.rank, -1), []).append(member)
    parts = [part for on_clock in by_clock.values() for part in _together(on_clock)]
    is_one_per_clock = len(parts) == len(by_clock) and sum(map(len, parts)) == len(members)
    if is_one_per_clock or members[0].communicator is not None:
        parts = [tuple(members)]
    elif len(by_clock) > 1:  # which group of one machine belongs to which of another, nobody knows
        parts = [part for part in parts if len(part) == size]
    yield from (part for part in parts if len(part) > 1 and (size is None or len(part) <= size))


def _together(members: Sequence[Channel]) -> list[Group]:
    """Split channels of one clock by which run at the same time; without those that do so with some of a part only."""
    start, end = (np.array([getattr(member, side) for member in members]) for side in ("start", "end"))
    if _overlap(start.max(0), end.min(0)):
        return [tuple(members)]
    count = len(members)
    near = np.eye(count, dtype=bool)
    for a in range(count):
        for b in range(a):
            near[a, b] = near[b, a] = _overlap(np.maximum(start[a], start[b]), np.minimum(end[a], end[b]))
    parts = Counter(tuple(np.flatnonzero(row).tolist()) for row in near)
    return [tuple(members[row] for row in part) for part, times in sorted(parts.items()) if times == len(part)]


def _overlap(latest: Ints, earliest: Ints) -> bool:
    return bool((latest - earliest <= _TOLERANCE_NS).mean() >= _ENOUGH)


class _Block(NamedTuple):
    """Some collectives of a group: a row for each member, a column for each collective that two or more took part in.

    Args:
        numbers: which collectives.
        times: how long each member was in it [ns], -1 where it did not count.
        who: code of what the member counts for.
        late: row of the member that came last: the one with the least time; of equal ones the first.
    """

    numbers: Ints
    times: Ints
    who: Ints
    late: Ints


@dataclass
class Waiting:
    """Who waits for whom in the collectives of all groups, by rank, host, agent or stream.

    Args:
        by: what is compared.
        ranks: the ranks by their numbers.
        rows: those of the table of collectives.
        pairs: (who waits, for whom) -> in how many collectives, how long in all and at most [ns].
        took_part: in how many collectives each was.
        last: how often it came last.
    """

    by: By
    ranks: Mapping[int, Rank]
    rows: list[Row] = field(default_factory=list)
    pairs: dict[tuple[Key, Key], tuple[int, int, int]] = field(default_factory=dict)
    took_part: Counter[Key] = field(default_factory=Counter)
    last: Counter[Key] = field(default_factory=Counter)

    def add(self, group: Group) -> None:
        """Add the collectives of a group; when nobody waited, nobody came last."""
        keys: dict[Key, int] = {}
        who = [self._codes(member, keys) for member in group]
        for block in _blocks(group, who):
            self._add(group, block, list(keys))

    def _codes(self, member: Channel, keys: dict[Key, int]) -> Ints:
        """Number what each kernel of a member counts for."""
        lanes = member.streams if self.by is By.STREAM else np.full(len(member.numbers), member.agent)
        rank = self.ranks[member.rank]
        return per_id(lanes, lambda lane: keys.setdefault(key_of(self.by, rank, lane), len(keys)))

    def _add(self, group: Group, block: _Block, keys: Sequence[Key]) -> None:
        there = block.times >= 0
        columns = np.arange(len(block.numbers))
        least, late = block.times[block.late, columns], block.who[block.late, columns]
        waits = np.where(there, block.times - least, 0)
        self._add_pairs(block.who, late, waits, keys)
        for code, count in zip(*np.unique(late[waits.any(0)], return_counts=True), strict=True):
            self.last[keys[code]] += int(count)
        for code, count in zip(*np.unique(_distinct(block.who, there)[0], return_counts=True), strict=True):
            self.took_part[keys[code]] += int(count)
        ranks = np.array([member.rank for member in group])
        by_rank = _distinct(np.broadcast_to(ranks[:, None], there.shape), there)
        present = np.bincount(by_rank[1], minlength=len(columns))
        among = listed(sorted(set(ranks.tolist())))
        sums = (waits.sum(0), waits.max(0), least, block.times.max(0))
        for number, count, code, *values in zip(block.numbers, present, late, *sums, strict=True):
            times = (int(value) for value in values)
            self.rows.append((group[0].name, int(number) + 1, among, int(count), *keys[code], *times))

    def _add_pairs(self, who: Ints, late: Ints, waits: Ints, keys: Sequence[Key]) -> None:
        row, column = np.nonzero(waits)
        times = waits[row, column]
        for (waiter, cause), rows in grouped([who[row, column], late[column]]):
            pair = keys[waiter], keys[cause]
            count, total, most = self.pairs.get(pair, (0, 0, 0))
            count += len(np.unique(column[rows]))
            self.pairs[pair] = count, total + int(times[rows].sum()), max(most, int(times[rows].max()))

    def collective_rows(self) -> list[Row]:
        """Return name, number, ranks of the group, how many took part, who came last, waits, shortest, longest."""
        at = len(self.rows[0]) - 4 if self.rows else 0
        return sorted(self.rows, key=lambda row: (-row[at], row[0] or "", row[1], row[2]))

    def straggler_rows(self) -> list[Row]:
        """Return who, collectives, times last, its share, wait caused, wait for others; who causes most comes first."""
        caused, waited = Counter[Key](), Counter[Key]()
        for (waiter, cause), (_, total, _) in self.pairs.items():
            caused[cause] += total
            waited[waiter] += total
        rows = [
            (*key, count, self.last[key], self.last[key] * 100 / count, caused[key], waited[key])
            for key, count in self.took_part.items()
        ]
        return sorted(rows, key=lambda row: (-row[-2], order_of(row[:-5])))

    def pair_rows(self) -> list[Row]:
        """Return who waits, for whom, in how many collectives, how long in all and at most; the longest comes first."""
        ordered = sorted(self.pairs.items(), key=lambda item: (-item[1][1], order_of(item[0][0]), order_of(item[0][1])))
        return [(*waiter, *late, *pair) for (waiter, late), pair in ordered]


def _blocks(group: Group, who: Sequence[Ints]) -> Iterator[_Block]:
    every = np.unique(np.concatenate([member.numbers for member in group]))
    step = max(1, _BLOCK // len(group))
    for low in range(0, len(every), step):
        numbers = every[low : low + step]
        times, codes = np.full((2, len(group), len(numbers)), -1, np.int64)
        for row, (member, codes_of_member) in enumerate(zip(group, who, strict=True)):
            first, last = np.searchsorted(member.numbers, [numbers[0], numbers[-1] + 1])
            at = np.searchsorted(numbers, member.numbers[first:last])
            times[row, at], codes[row, at] = member.durations[first:last], codes_of_member[first:last]
        enough = np.flatnonzero((times >= 0).sum(0) > 1)
        times, codes = times[:, enough], codes[:, enough]
        late = np.where(times < 0, np.iinfo(np.int64).max, times).argmin(0)
        yield _Block(numbers[enough], times, codes, late)


def _distinct(codes: Ints, there: npt.NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Return each code with each column in which it is there, once."""
    row, column = np.nonzero(there)
    pairs = np.unique(codes[row, column] * there.shape[1] + column)
    return pairs // max(1, there.shape[1]), pairs % max(1, there.shape[1])


def listed(numbers: Sequence[int]) -> str:
    """Write ascending numbers in short.

    >>> listed([0, 1, 2, 5])
    '0-2,5'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)
