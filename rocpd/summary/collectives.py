"""Collectives: communication kernels matched across ranks, and who made whom wait.

When each came says `arrivals`; those that came last within noise share what others waited. What is matched, and which
groups are inferred, says `rocpd.trace.collectives`; what is taken for a group is reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from rocpd.federate.open.identify import Rank
from rocpd.read.communicators import channels, launches
from rocpd.read.ids import per_id
from rocpd.read.matching import Clocks
from rocpd.summary.arrivals import CLASSES, Arrivals, arrivals
from rocpd.summary.ops import OperationNames, Ops, read_ops, split
from rocpd.summary.options import By
from rocpd.summary.reading import Key, RankReading, key_of, order_of
from rocpd.trace.collectives import Channel, CommunicationKernels, Group, listed
from rocpd.trace.kernel_categories import Categories
from rocpd.types import Flags, Floats, Ints, Row

_BLOCK = 1 << 22  # times in memory at once


def channels_of(reading: RankReading, ops: Ops, names: OperationNames, categories: Categories) -> list[Channel]:
    """Return the communication kernels of a rank; `ops` are the operations that count.

    One that crosses the end of a window belongs to the next window, so that adjoining windows share no collective.
    """
    counted = _communication(ops, names, categories)
    if not len(counted):
        return []
    every = counted
    if reading.reader.selects("rocpd_kernel_dispatch"):
        every = _communication(read_ops(reading.whole(), names), names, categories)
    every = every.take(np.lexsort((every.row, every.start)))
    if reading.window.base:
        in_window = every.row[every.end <= reading.window.base[1]]
        counted = counted.take(np.flatnonzero(np.isin(counted.row, in_window)))
        if not len(counted):
            return []
    launched = launches(reading.reader.whole(), every.row)
    shown = dict(zip(reversed(names.full), reversed(names.texts), strict=True))
    known = channels(reading.reader.whole(), names.full, every, counted, launched)
    return [replace(channel, shown=shown[channel.name]) for channel in known]


def _communication(ops: Ops, names: OperationNames, categories: Categories) -> CommunicationKernels:
    kernels = ops.take(split(ops, categories, names)["communication"])
    name = names.first_alike()[kernels.name]
    return CommunicationKernels(kernels.row, name, kernels.agent, kernels.stream, kernels.start, kernels.end)


class _Block(NamedTuple):
    """Some collectives of a group: a row for each member, a column for each collective that counts.

    A collective counts when the kernel of the member that came last does (of several the first), and then all its
    members do, each with its time in the whole trace: a member that a window leaves out, or cuts, may be the one that
    all others waited for.

    Args:
        numbers: which collectives.
        arrivals: when members came.
        who: code of what the member counts for.
        shares: how much of the waiting each member caused.
        counted: which kernels are in the window and pass the filters.
    """

    numbers: Ints
    arrivals: Arrivals
    who: Ints
    shares: Floats
    counted: Flags

    def take(self, which: Ints | Flags) -> _Block:
        """Return some of the collectives."""
        return _Block(
            self.numbers[which],
            self.arrivals.take(which),
            self.who[:, which],
            self.shares[:, which],
            self.counted[:, which],
        )


@dataclass
class Waiting:
    """Who waits for whom in the collectives of all groups, by rank, host, agent or stream.

    Args:
        by: what is compared.
        ranks: the ranks by their numbers.
        clocks: which times of the ranks compare.
        rows: those of the table of collectives.
        pairs: (who waits, for whom) -> in how many collectives, how long in all and at most [ns].
        took_part: in how many collectives each was.
        last: how often it came last; those that came last together share one.
        classes: class of collectives -> how many, how many kernels that count, the time of these, and what members
            waited [ns].
    """

    by: By
    ranks: Mapping[int, Rank]
    clocks: Clocks
    rows: list[Row] = field(default_factory=list)
    pairs: dict[tuple[Key, Key], tuple[int, float, int]] = field(default_factory=dict)
    took_part: Counter[Key] = field(default_factory=Counter)
    last: dict[Key, float] = field(default_factory=dict)
    classes: dict[str, Ints] = field(default_factory=dict)

    def add(self, group: Group, startup: int = 0) -> None:
        """Add the collectives of a group; the first ones of its start-up are listed, but nobody is blamed for them."""
        keys: dict[Key, int] = {}
        who = [self._codes(member, keys) for member in group]
        for block in _blocks(group, who, self.clocks):
            self._list(group, block, list(keys))
            judged = block.take(block.numbers >= startup)
            for codes, alike in _alike(judged.who):
                self._blame(codes, judged.take(alike), list(keys))

    def _codes(self, member: Channel, keys: dict[Key, int]) -> Ints:
        """Number what each kernel of a member counts for."""
        lanes = member.stream if self.by is By.STREAM else np.full(len(member), member.agent)
        rank = self.ranks[member.rank]
        return per_id(lanes, lambda lane: keys.setdefault(key_of(self.by, rank, lane), len(keys)))

    def _list(self, group: Group, block: _Block, keys: Sequence[Key]) -> None:
        """Add rows of the table of collectives, and what their time went into."""
        waits, times = block.arrivals.waits, block.arrivals.times
        ranks = sorted({member.rank for member in group})
        classes = block.arrivals.classes(len(group) >= (group[0].size or 0))
        for code in np.flatnonzero(np.bincount(classes)).tolist():
            counted = block.counted & (classes == code)
            added = ((classes == code).sum(), counted.sum(), times[counted].sum(), waits[counted].sum())
            self.classes[CLASSES[code]] = self.classes.get(CLASSES[code], np.zeros(4, np.int64)) + added
        sums = (waits.sum(0), waits.max(0), times.min(0), times.max(0))
        among, nobody = listed(ranks), (None,) * len(keys[0])
        moved = _moved(group, block.numbers, times.min(0))
        for number, code, kind, bandwidth, *values in zip(
            block.numbers, _only(block), classes, moved, *sums, strict=True
        ):
            who, measured = keys[code] if code >= 0 else nobody, (int(value) for value in values)
            front = (group[0].shown, int(number) + 1, among, len(ranks), *who)
            self.rows.append((*front, *measured, CLASSES[kind], *bandwidth))

    def _blame(self, codes: Ints, block: _Block, keys: Sequence[Key]) -> None:
        """Add who waits for whom, where each member counts for the same in all collectives."""
        order = np.argsort(codes, kind="stable")
        is_new = np.concatenate([[True], np.diff(codes[order]) > 0])
        first, ordered = np.flatnonzero(is_new), [keys[code] for code in codes[order][is_new].tolist()]
        shares = block.shares[order]
        waits = np.where(shares > 0, 0, block.arrivals.waits[order])  # who came last waits for nobody: that is noise
        shared, is_last = np.add.reduceat(shares, first), np.maximum.reduceat(shares > 0, first)
        for key, times_last in zip(ordered, shared.sum(1).tolist(), strict=True):
            self.took_part[key] += len(block.numbers)
            self.last[key] = self.last.get(key, 0.0) + times_last
        waited = np.add.reduceat(waits, first).astype(float)
        total = waited @ shared.T
        count = np.maximum.reduceat(waits > 0, first).astype(float) @ is_last.astype(float).T
        most = np.maximum.reduceat(waits, first)
        for late in np.flatnonzero(is_last.any(1)).tolist():
            longest = most[:, is_last[late]].max(1)
            for waiter in np.flatnonzero(count[:, late]).tolist():
                pair = ordered[waiter], ordered[late]
                before = self.pairs.get(pair, (0, 0.0, 0))
                self.pairs[pair] = (
                    before[0] + int(count[waiter, late]),
                    before[1] + float(total[waiter, late]),
                    max(before[2], int(longest[waiter])),
                )

    def collective_rows(self) -> list[Row]:
        """Return the rows of the table of collectives; those with most waiting come first."""
        at = len(self.rows[0]) - 8 if self.rows else 0
        return sorted(self.rows, key=lambda row: (-row[at], row[0] or "", row[1], row[2]))

    def straggler_rows(self) -> list[Row]:
        """Return who, collectives, times last, its share, wait caused, wait for others; who causes most comes first."""
        caused, waited = dict.fromkeys(self.took_part, 0.0), dict.fromkeys(self.took_part, 0.0)
        for (waiter, cause), (_, total, _) in self.pairs.items():
            caused[cause] += total
            waited[waiter] += total
        times = zip(self.took_part.items(), whole(caused.values()), whole(waited.values()), strict=True)
        rows = [
            (*key, count, self.last[key], self.last[key] * 100 / count, by_others, for_others)
            for (key, count), by_others, for_others in times
        ]
        return sorted(rows, key=lambda row: (-row[-2], order_of(row[:-5])))

    def pair_rows(self) -> list[Row]:
        """Return who waits, for whom, in how many collectives, how long in all and at most; the longest comes first."""
        totals = whole([total for _, total, _ in self.pairs.values()])
        rows = [
            (*pair, count, total, most)
            for (pair, (count, _, most)), total in zip(self.pairs.items(), totals, strict=True)
        ]
        ordered = sorted(rows, key=lambda row: (-row[3], order_of(row[0]), order_of(row[1])))
        return [(*waiter, *late, *pair) for waiter, late, *pair in ordered]


def whole(times: Collection[float]) -> list[int]:
    """Round shares of times so that they add up to the whole, however that is divided.

    >>> whole([0.5, 7.0, 0.25, 0.25]), whole([2 + 1 / 3] * 3)
    ([0, 7, 1, 0], [2, 3, 2])
    """
    floors = [int(time) for time in times]
    sums = [0, *map(round, accumulate(time - floor for time, floor in zip(times, floors, strict=True)))]
    return [floor + after - before for floor, (before, after) in zip(floors, pairwise(sums), strict=True)]


def _blocks(group: Group, who: Sequence[Ints], clocks: Clocks) -> Iterator[_Block]:
    every = np.unique(np.concatenate([member.numbers for member in group]))
    step = max(1, _BLOCK // len(group))
    for low in range(0, len(every), step):
        numbers = every[low : low + step]
        when = arrivals(group, clocks, numbers)
        counts = np.array([np.isin(numbers, member.numbers) for member in group])
        shares, is_latest = when.shares, when.waits == 0
        codes = np.array([codes_of_member[numbers] for codes_of_member in who])
        yield _Block(numbers, when, codes, shares, counts).take(counts[is_latest.argmax(0), np.arange(len(numbers))])


def _alike(who: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield codes of the members, and the collectives in which they have these."""
    if not who.shape[1]:
        return
    if (who == who[:, :1]).all():
        yield who[:, 0], np.arange(who.shape[1])
        return
    patterns, inverse = np.unique(who, axis=1, return_inverse=True)
    for number in range(patterns.shape[1]):
        yield patterns[:, number], np.flatnonzero(inverse.reshape(-1) == number)


def _only(block: _Block) -> Ints:
    """Return the code of the one that came last in each collective, -1 where several did or nobody."""
    is_last = block.shares > 0
    lowest = np.where(is_last, block.who, np.iinfo(np.int64).max).min(0)
    highest = np.where(is_last, block.who, -1).max(0)
    return np.where(lowest == highest, highest, -1)


def _moved(group: Group, numbers: Ints, times: Ints) -> list[tuple[int | None, float | None, float | None]]:
    """Return the bytes of collectives, and their algorithm and bus bandwidth [GB/s]; None where unknown.

    Args:
        group: who takes part.
        numbers: which collectives.
        times: how long each took by itself [ns].
    """
    member = next((member for member in group if len(member.moves)), None)
    ranks = group[0].size or len(group)
    known: list[tuple[int, float | None] | None] = []
    for transfer in member.transfers if member else ():
        volume = transfer.volume(ranks) if transfer else 0
        known.append((volume, transfer.bus_factor(ranks)) if transfer and volume else None)
    moved: list[tuple[int | None, float | None, float | None]] = []
    for code, time in zip(
        member.moves[numbers].tolist() if member else [0] * len(numbers), times.tolist(), strict=True
    ):
        of_kind = known[code] if known else None
        if of_kind is None or not time:
            moved.append((of_kind[0] if of_kind else None, None, None))
            continue
        (volume, factor), rate = of_kind, of_kind[0] / time
        moved.append((volume, rate, None if factor is None else rate * factor))
    return moved
