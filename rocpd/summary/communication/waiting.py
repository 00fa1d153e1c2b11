"""Who waits for whom in the collectives of groups, and the rows of the tables on this.

Counts collectives that are matched already, and never looks for partners.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, pairwise
from typing import NamedTuple

import numpy as np

from rocpd.base import Flags, Floats, Ints, Row
from rocpd.facts.columns import first_of, numbered, per_id
from rocpd.facts.communication.collectives import Channel, Group, listed
from rocpd.facts.communication.matching import Clocks
from rocpd.facts.communication.members import CLASSES, Arrivals, Collectives, collectives_of, moved_by
from rocpd.facts.rank import By, Key, key_of
from rocpd.federate.open.identify import Rank
from rocpd.summary.communication.slow import SizedCollective
from rocpd.summary.grouping import order_of


class _Blamed(NamedTuple):
    """The waits of a group, `[member, collective]`; pairs are made on demand: of thousands of ranks they fill memory.

    Args:
        number: numbers of the members' keys.
        shared: share that each has in coming last; 0: it waits.
        waited, most: its waiting, of all that count for the key and of one [ns].
    """

    number: Ints
    shared: Floats
    waited: Floats
    most: Ints

    def sums(self) -> tuple[Floats, Floats]:
        """Return the wait that each causes, and its wait for others [ns]."""
        return self.shared @ self.waited.sum(0), self.waited @ self.shared.sum(0)

    def pairs(self) -> Iterator[_Pairs]:
        """Yield the pairs of all waiters with each cause."""
        is_last = self.shared > 0
        late = np.flatnonzero(is_last.any(1))  # few: a matrix of all by all would not fit into memory
        total = self.waited @ self.shared[late].T
        count = (self.most > 0).astype(float) @ is_last[late].astype(float).T
        times = count.astype(np.int64)
        for column, code in enumerate(late.tolist()):
            waiters = np.flatnonzero(count[:, column])
            longest = self.most[waiters][:, is_last[code]].max(1, initial=0)
            cause = np.full(len(waiters), self.number[code])
            yield _Pairs(self.number[waiters], cause, times[waiters, column], total[waiters, column], longest)


class _Pairs(NamedTuple):
    """Numbers of waiters and causes; number of collectives, total and longest wait of each pair [ns]."""

    waiter: Ints
    cause: Ints
    times: Ints
    total: Floats
    most: Ints


_NOBODY = np.zeros(0, np.int64)
_NO_PAIRS = _Pairs(_NOBODY, _NOBODY, _NOBODY, np.zeros(0), _NOBODY)


_Moved = tuple[str | None, int | None, float | None, float | None]
"""Operation, bytes of the whole result, algorithm and bus bandwidth [GB/s]; None where unknown."""


class _Listed(NamedTuple):
    """Collectives of a group; their rows are made only on demand: with a thousand ranks they are large.

    Args:
        group: the group.
        numbers: numbers of the collectives.
        last: place in `keys` of the member that came last; -1: several did.
        keys: keys of the members.
        classes: classes of the collectives by where their time goes.
        sums: all waiting of the members, the longest wait, the shortest and the longest time [ns].
        moved: operation, bytes, algorithm and bus bandwidth [GB/s]; None where unknown.
    """

    group: Group
    numbers: Ints
    last: Ints
    keys: tuple[Key, ...]
    classes: Ints
    sums: tuple[Ints, ...]
    moved: list[_Moved]

    @property
    def among(self) -> str:
        """The ranks of the group."""
        return listed(sorted({member.rank for member in self.group}))

    def rows(self) -> Iterator[Row]:
        """Yield the rows of the table of collectives."""
        ranks, nobody = len({member.rank for member in self.group}), (None,) * len(self.keys[0])
        shown, among = self.group[0].shown, self.among
        columns = (column.tolist() for column in (self.numbers, self.last, self.classes, *self.sums))
        for number, code, kind, *measured, moved in zip(*columns, self.moved, strict=True):
            who = self.keys[code] if code >= 0 else nobody
            yield (shown, number + 1, among, ranks, *who, *measured, CLASSES[kind], *moved)

    def sized(self) -> Iterator[SizedCollective]:
        """Yield the collectives whose size and bus bandwidth are known."""
        shown, among = self.group[0].shown, self.among
        for (_, size, _, rate), time in zip(self.moved, self.sums[2].tolist(), strict=True):
            if size and rate:
                yield SizedCollective(shown, among, size, time, rate)


@dataclass
class Waiting:
    """Who waits for whom in the collectives of all groups, by rank, host, agent or stream.

    Args:
        by: the compared division.
        ranks: the ranks by their numbers.
        clocks: says which times of the ranks compare.
        blames: whether waiters and causes are wanted.
        listed: the collectives of the groups.
        numbers: key -> its number.
        blamed: the waits of each group, kept apart as groups share members.
        took_part: number of collectives of each key.
        last: number of times that each came last; those that came last together share one.
        classes: class of collectives -> their number, number of counted kernels, time of these, and waiting of members
            [ns].
    """

    by: By
    ranks: Mapping[int, Rank]
    clocks: Clocks
    blames: bool = True
    listed: list[_Listed] = field(default_factory=list)
    numbers: dict[Key, int] = field(default_factory=dict)
    blamed: list[_Blamed] = field(default_factory=list)
    took_part: Counter[Key] = field(default_factory=Counter)
    last: dict[Key, float] = field(default_factory=dict)
    classes: dict[str, Ints] = field(default_factory=dict)

    def add(self, group: Group, startup: int = 0) -> None:
        """Add the collectives of a group; the first ones, of start-up, are listed, but nobody is blamed for them."""
        keys: dict[Key, int] = {}
        who = [self._codes(member, keys) for member in group]
        for collectives in collectives_of(group, self.clocks):
            codes = np.array([of_member[collectives.numbers] for of_member in who])
            self._list(group, collectives, codes, list(keys))
            if self.blames:
                judged = collectives.numbers >= startup
                self._blame(collectives.arrivals.take(judged), codes[:, judged], list(keys))

    def _codes(self, member: Channel, keys: dict[Key, int]) -> Ints:
        """Return the number of the key that each kernel of a member counts for."""
        lanes = member.stream if self.by is By.STREAM else np.full(len(member), member.agent)
        rank = self.ranks[member.rank]
        return per_id(lanes, lambda lane: keys.setdefault(key_of(self.by, rank, lane), len(keys)))

    def _list(self, group: Group, collectives: Collectives, codes: Ints, keys: Sequence[Key]) -> None:
        """Add collectives to the table, and their time to its class; `codes`: key numbers of the members."""
        if not len(collectives.numbers):
            return
        waits, times = collectives.arrivals.waits, collectives.arrivals.times
        is_whole = self.clocks.is_whole(group)
        classes = collectives.arrivals.classes(is_whole)
        for code in np.flatnonzero(np.bincount(classes)).tolist():
            counted = collectives.counted & (classes == code)
            added = ((classes == code).sum(), counted.sum(), times[counted].sum(), waits[counted].sum())
            self.classes[CLASSES[code]] = self.classes.get(CLASSES[code], np.zeros(4, np.int64)) + added
        sums = (waits.sum(0), waits.max(0), times.min(0), times.max(0))
        last = _only(collectives.arrivals.shares > 0, codes)
        moved = _moved(group, collectives.numbers, sums[2] if is_whole else 0 * sums[2])
        self.listed.append(_Listed(group, collectives.numbers, last, tuple(keys), classes, sums, moved))

    def _blame(self, when: Arrivals, codes: Ints, keys: Sequence[Key]) -> None:
        """Add the waits of pairs; several members may count for one key."""
        shape, shares = (len(keys), codes.shape[1]), when.shares
        at = (codes * shape[1] + np.arange(shape[1])).reshape(-1)
        waits = np.where(shares > 0, 0, when.waits).reshape(-1)  # the last member waits for nobody: its wait is noise
        sums = (np.bincount(at, values, math.prod(shape)) for values in (None, shares.reshape(-1), waits))
        members, shared, waited = (values.astype(float, copy=False).reshape(shape) for values in sums)
        most = np.zeros(shape, np.int64)
        np.maximum.at(most.reshape(-1), at, waits)
        is_there = members > 0
        for code in np.flatnonzero(is_there.any(1)).tolist():
            self.took_part[keys[code]] += int(is_there[code].sum())
            self.last[keys[code]] = self.last.get(keys[code], 0.0) + float(shared[code].sum())
        number = np.array([self.numbers.setdefault(key, len(self.numbers)) for key in keys], np.int64)
        self.blamed.append(_Blamed(number, shared, waited, most))

    def _pairs(self) -> _Pairs:
        """Return the pairs of all groups, each once, in the order of their first occurrence."""
        of_groups = chain.from_iterable(blamed.pairs() for blamed in self.blamed)
        joined = _Pairs(*map(np.concatenate, zip(_NO_PAIRS, *of_groups, strict=True)))
        if len(self.blamed) == 1:
            return joined
        pair = numbered(joined.waiter, joined.cause)
        first = first_of(pair)
        order = np.argsort(first)
        times, total = np.bincount(pair, joined.times).astype(np.int64), np.bincount(pair, joined.total)
        most = np.zeros(len(first), np.int64)
        np.maximum.at(most, pair, joined.most)
        first = first[order]
        return _Pairs(joined.waiter[first], joined.cause[first], times[order], total[order].astype(float), most[order])

    def collective_rows(self) -> Iterator[Row]:
        """Yield the rows of the table of collectives, the most waiting first."""
        yield from self._collective_rows

    @functools.cached_property
    def _collective_rows(self) -> list[Row]:
        rows = list(chain.from_iterable(some.rows() for some in self.listed))
        at = len(rows[0]) - 9 if rows else 0
        return sorted(rows, key=lambda row: (-row[at], row[0] or "", row[1], row[2]))

    def straggler_rows(self) -> list[Row]:
        """Return key, collectives, times last, its share, wait caused, wait for others; the most caused first."""
        caused, waited = np.zeros(len(self.numbers)), np.zeros(len(self.numbers))
        for blamed in self.blamed:
            by_others, for_others = blamed.sums()
            caused[blamed.number] += by_others
            waited[blamed.number] += for_others
        of_all = [self.numbers[key] for key in self.took_part]
        times = zip(self.took_part.items(), whole(caused[of_all].tolist()), whole(waited[of_all].tolist()), strict=True)
        rows = [
            (*key, count, self.last[key], self.last[key] * 100 / count, by_others, for_others)
            for (key, count), by_others, for_others in times
        ]
        return sorted(rows, key=lambda row: (-row[-2], order_of(row[:-5])))

    def pair_rows(self) -> Iterator[Row]:
        """Yield waiter, cause, number of collectives, total and longest wait; the longest total first."""
        pairs, keys = self._pairs(), list(self.numbers)
        order = np.array(sorted(range(len(keys)), key=lambda number: order_of(keys[number])), np.int64)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        total = np.array(whole(pairs.total.tolist()), np.int64)
        for row in np.lexsort((place[pairs.cause], place[pairs.waiter], -total)).tolist():
            who = (*keys[pairs.waiter[row]], *keys[pairs.cause[row]])
            yield *who, int(pairs.times[row]), int(total[row]), int(pairs.most[row])


def whole(times: Collection[float]) -> list[int]:
    """Return times rounded so that their sum is the rounded whole, however it is divided.

    >>> whole([0.5, 7.0, 0.25, 0.25]), whole([2 + 1 / 3] * 3)
    ([0, 7, 1, 0], [2, 3, 2])
    """
    floors = [int(time) for time in times]
    sums = [0, *map(round, accumulate(time - floor for time, floor in zip(times, floors, strict=True)))]
    return [floor + after - before for floor, (before, after) in zip(floors, pairwise(sums), strict=True)]


def _only(is_last: Flags, codes: Ints) -> Ints:
    """Return the code of the only member that came last in each collective; -1 if several did, or none."""
    lowest = np.where(is_last, codes, np.iinfo(np.int64).max).min(0)
    highest = np.where(is_last, codes, -1).max(0)
    return np.where(lowest == highest, highest, -1)


def _moved(group: Group, numbers: Ints, times: Ints) -> list[_Moved]:
    """Return the data that collectives move.

    Args:
        group: the members.
        numbers: numbers of the collectives.
        times: own time of each [ns]; 0: not known.
    """
    moved: list[_Moved] = []
    for (operation, volume, factor), time in zip(moved_by(group, numbers), times.tolist(), strict=True):
        rate = volume / time if volume and time else None
        moved.append((operation, volume, rate, None if rate is None or factor is None else rate * factor))
    return moved
