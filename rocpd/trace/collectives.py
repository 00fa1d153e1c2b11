"""Owns which communication kernels of different ranks are one collective.

Each agent runs the kernels of a communicator in the same order, so the n-th of a name on one agent is the n-th on every
other, counted over the whole trace, whatever the window. The communicator is known where the calls name it by a word
that all ranks share. An address means something in its own process only, and kernels whose calls were not traced have
none: these go by stream. Their groups are inferred:

1. Agents are of one group when they ran equally many kernels of the name, for communicators of equal size where it is
   known. Of several communicators with equal numbers the i-th that an agent started with is the i-th of the others.
2. On one clock they also have to run at the same time, in nine of ten collectives: a barrier has all of them inside.
   This tells groups apart that do equally much. Ranks on different clocks are one group unless that shows several.
3. A group that is larger than its communicator, or whose members don't all overlap, is not matched at all, nor is an
   agent that is alone: how many kernels that concerns is returned.

Groups in step look like one where the size of their communicators is not known.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from rocpd.frozen import frozen
from rocpd.types import Ints

_ADDRESS = re.compile(r"0[xX][0-9a-fA-F]+|\(nil\)|\(null\)")
_TOLERANCE_NS = 10_000  # by which clocks of the agents of one machine differ
_ENOUGH = 0.9  # of the collectives; the root of a broadcast may leave before others come


@frozen
class CommunicationKernels:
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

    def __len__(self) -> int:
        return len(self.row)

    @property
    def duration(self) -> Ints:
        """Length of each kernel [ns]."""
        return self.end - self.start

    def take(self, which: Ints) -> CommunicationKernels:
        """Return the kernels of these numbers, in this order."""
        columns = (self.row, self.name, self.agent, self.stream, self.start, self.end)
        return CommunicationKernels(*(column[which] for column in columns))


@frozen
class Channel:
    """Communication kernels of one name that one agent ran for one communicator, in order.

    Args:
        name: kernel.
        rank, agent: where they ran; `agent` may be `NULL`.
        communicator: its name in all ranks; None where each rank has its own.
        size: how many ranks the communicator has, None where unknown.
        start, end: of all of them [ns of the rank's clock].
        numbers: which of them count, being in the window and passing the filters.
        counted: these, with their times as the window cuts them.
    """

    name: str | None
    rank: int
    agent: int
    communicator: str | None
    size: int | None
    start: Ints
    end: Ints
    numbers: Ints
    counted: CommunicationKernels

    def __len__(self) -> int:
        return len(self.start)


Group = tuple[Channel, ...]
"""Channels of one communicator: the n-th kernels of all of them are one collective."""


def is_shared(communicator: str) -> bool:
    """Whether a word names the communicator in all ranks; an address is one of the rank's own process.

    >>> is_shared("tensor parallel"), is_shared("0x7f2a40000000"), is_shared("(nil)")
    (True, False, False)
    """
    return not _ADDRESS.fullmatch(communicator)


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
