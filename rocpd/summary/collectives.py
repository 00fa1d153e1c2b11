"""Owns collectives: communication kernels matched across ranks, and who made whom wait.

The n-th kernel of a name on one rank is the n-th of that name on every other. All ranks end a collective together,
so the rank that spends least time in it came last, and what another spends beyond that it waited. Durations alone
are compared: clocks of different machines need not agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from rocpd.summary.ops import Names, Ops
from rocpd.summary.result import Row
from rocpd.summary.spread import Ints


@dataclass(frozen=True)
class Instance:
    """One collective: its name and number within the name (from 0), ranks, durations [ns] in the same order."""

    name: str | None
    number: int
    ranks: tuple[int, ...]
    durations: tuple[int, ...]

    @property
    def straggler(self) -> int:
        """The rank that came last: the one with the least time; of equals the lowest."""
        return self.ranks[int(np.argmin(self.durations))]

    @property
    def waits(self) -> tuple[int, ...]:
        """How long each rank waited [ns]."""
        least = min(self.durations)
        return tuple(duration - least for duration in self.durations)


@dataclass
class Collectives:
    """Communication kernels of all ranks, collected rank by rank."""

    found: dict[int, dict[int, Ints]] = field(default_factory=dict)

    def add(self, rank: int, ops: Ops, places: Ints) -> None:
        """Add the communication kernels of a rank: those at `places`, in the order in which they began."""
        order = places[np.lexsort((ops.row[places], ops.start[places]))]
        for name in np.unique(ops.name[order]).tolist():
            mine = order[ops.name[order] == name]
            self.found.setdefault(name, {})[rank] = ops.end[mine] - ops.start[mine]

    def instances(self, names: Names) -> Iterator[Instance]:
        """Give every collective that two ranks or more took part in, by name and number."""
        for code in sorted(self.found, key=lambda code: names.texts[code] or ""):
            ranks = self.found[code]
            for number in range(max(map(len, ranks.values()))):
                there = {rank: int(own[number]) for rank, own in sorted(ranks.items()) if number < len(own)}
                if len(there) > 1:
                    yield Instance(names.texts[code], number, tuple(there), tuple(there.values()))

    def uneven(self) -> int:
        """Say how many names occur more often on some ranks than on others."""
        return sum(len({len(own) for own in ranks.values()}) > 1 for ranks in self.found.values())


@dataclass
class Waiting:
    """Who waits for whom, added up over collectives."""

    pairs: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    last: dict[int, int] = field(default_factory=dict)
    caused: dict[int, int] = field(default_factory=dict)
    own: dict[int, int] = field(default_factory=dict)
    count: dict[int, int] = field(default_factory=dict)

    def add(self, instance: Instance) -> None:
        """Add one collective; when nobody waited, nobody came last."""
        waits = instance.waits
        late = instance.straggler
        for rank, wait in zip(instance.ranks, waits, strict=True):
            self.count[rank] = self.count.get(rank, 0) + 1
            self.own[rank] = self.own.get(rank, 0) + wait
            if wait:
                pair = self.pairs.setdefault((rank, late), [0, 0, 0])
                pair[0] += 1
                pair[1] += wait
                pair[2] = max(pair[2], wait)
        if any(waits):
            self.last[late] = self.last.get(late, 0) + 1
            self.caused[late] = self.caused.get(late, 0) + sum(waits)

    def straggler_rows(self) -> list[Row]:
        """Rank, collectives, times last, its share, wait caused, own wait; who causes most comes first."""
        rows = [
            (
                rank,
                count,
                self.last.get(rank, 0),
                self.last.get(rank, 0) * 100 / count,
                self.caused.get(rank, 0),
                self.own[rank],
            )
            for rank, count in self.count.items()
        ]
        return sorted(rows, key=lambda row: (-row[4], row[0]))

    def pair_rows(self) -> list[Row]:
        """Who waits, for whom, in how many collectives, how long in all and at most; the longest comes first."""
        rows: list[Row] = [(waiter, late, *pair) for (waiter, late), pair in self.pairs.items()]
        return sorted(rows, key=lambda row: (-row[3], row[0], row[1]))


def instance_rows(instances: Iterable[Instance]) -> list[Row]:
    """Rows of the table of collectives; the one that cost most waiting comes first."""
    rows = [
        (
            i.name,
            i.number + 1,
            len(i.ranks),
            i.straggler,
            sum(i.waits),
            max(i.waits),
            min(i.durations),
            max(i.durations),
        )
        for i in instances
    ]
    return sorted(rows, key=lambda row: (-row[4], row[0] or "", row[1]))
