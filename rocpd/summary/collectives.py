"""Collectives: communication kernels matched across ranks, and who made whom wait.

All ranks end a collective together, so the rank that spends least time in it came last, and what another spends
beyond that it waited. Durations alone are compared: clocks of different machines need not agree. What is matched, and
which groups are inferred, says `rocpd.trace.collectives`; what is taken for a group is reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rocpd.federate.open.identify import Rank
from rocpd.read.communicators import channels, launches
from rocpd.read.groups import grouped
from rocpd.read.ids import per_id
from rocpd.read.names import Names
from rocpd.summary.ops import Ops, read_ops, split
from rocpd.summary.options import By
from rocpd.summary.reading import Key, RankReading, key_of, order_of
from rocpd.trace.collectives import Channel, CommunicationKernels, Group, listed
from rocpd.trace.kernel_categories import Categories
from rocpd.types import Ints, Row

_BLOCK = 1 << 22  # times in memory at once


def channels_of(reading: RankReading, ops: Ops, names: Names, categories: Categories) -> list[Channel]:
    """Return the communication kernels of a rank; `ops` are the operations that count."""
    counted = _communication(ops, names, categories)
    if not len(counted):
        return []
    every = counted
    if reading.reader.tables.only:
        every = _communication(read_ops(reading.whole(), names), names, categories)
    every = every.take(np.lexsort((every.row, every.start)))
    launched = launches(reading.reader.whole(), every.row)
    return channels(reading.rank.number, names, every, counted, launched)


def _communication(ops: Ops, names: Names, categories: Categories) -> CommunicationKernels:
    kernels = ops.take(split(ops, categories, names)["communication"])
    return CommunicationKernels(kernels.row, kernels.name, kernels.agent, kernels.stream, kernels.start, kernels.end)


class _Block(NamedTuple):
    """Some collectives of a group: a row for each member, a column for each collective that counts.

    A collective counts when the kernel of the member that came last does, and then all its members do, each with its
    time in the whole trace: a member that a window leaves out, or cuts, may be the one that all others waited for.

    Args:
        numbers: which collectives.
        times: how long each member was in it [ns].
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
        lanes = member.stream if self.by is By.STREAM else np.full(len(member), member.agent)
        rank = self.ranks[member.rank]
        return per_id(lanes, lambda lane: keys.setdefault(key_of(self.by, rank, lane), len(keys)))

    def _add(self, group: Group, block: _Block, keys: Sequence[Key]) -> None:
        there = np.ones(block.times.shape, bool)
        columns = np.arange(len(block.numbers))
        least, late = block.times[block.late, columns], block.who[block.late, columns]
        waits = block.times - least
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
        times = np.array([(member.end - member.start)[numbers] for member in group])
        late = times.argmin(0)
        counts = np.array([np.isin(numbers, member.numbers) for member in group])[late, np.arange(len(numbers))]
        codes = np.array([codes_of_member[numbers] for codes_of_member in who])
        yield _Block(numbers[counts], times[:, counts], codes[:, counts], late[counts])


def _distinct(codes: Ints, there: npt.NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Return each code with each column in which it is there, once."""
    row, column = np.nonzero(there)
    pairs = np.unique(codes[row, column] * there.shape[1] + column)
    return pairs // max(1, there.shape[1]), pairs % max(1, there.shape[1])
