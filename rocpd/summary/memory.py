"""How much memory is held: the peak of each agent and its course over time.

An allocation counts from its start; a free ends the allocation of the same level and address (scratch memory: of the
same agent and queue) in its rank, whatever size and stream the free itself names. REAL, VIRTUAL (reserved addresses)
and SCRATCH memory are kept apart. What ranks, hosts or streams hold is what their allocations hold together at a time,
on the time line of all ranks. In a window memory counts from what was held before it; allocations and frees count by
their start.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

import numpy as np

from rocpd.errors import RocpdError
from rocpd.frozen import frozen
from rocpd.read.columns import number
from rocpd.read.names import as_text
from rocpd.summary.options import By
from rocpd.summary.reading import Key, RankReading, Reading, key_of, order_of
from rocpd.summary.result import Field, Picture, Summary, TableDefinition, by_name
from rocpd.summary.spread import total
from rocpd.summary.sums import merge
from rocpd.trace.memory import ALLOCATING, held_by
from rocpd.trace.times import LAST, VALID_TIMES
from rocpd.types import Ints, Row

_LEVEL = Field("level", "", "REAL, VIRTUAL or SCRATCH")

TABLES = by_name(
    TableDefinition(
        "memory",
        "Memory held by level: one row per rank, agent and level unless --by says otherwise.",
        (
            _LEVEL,
            Field("allocations", "", "allocations", True),
            Field("frees", "", "frees that found their allocation", True),
            Field("peak_bytes", "bytes", "most held at a time"),
            Field("peak_at_ns", "ns", "when the peak was first reached, from the start of the time line"),
            Field("held_bytes", "bytes", "still held at the end, of the window if there is one"),
            Field("unmatched_frees", "", "frees of what was never seen allocated; without agent", True),
            Field("capacity_bytes", "bytes", "memory of the agent; NULL where a row is not of one agent", True),
        ),
    ),
    TableDefinition(
        "memory-curve",
        "Most memory held in each slice of the time from first (in a window its start) to last allocation.",
        (
            _LEVEL,
            Field("at_ns", "ns", "start of the slice, from the start of the time line"),
            Field("peak_bytes", "bytes", "most held in the slice"),
        ),
        chart="rocpd.summary.plots:memory",
        picture=Picture("rocpd.summary.pictures:memory", is_all=True),
    ),
)

_SQL = """
SELECT {lane}, level, type, agent_id, queue_id, address, size, start FROM rocpd_memory_allocate
WHERE {valid} AND start < {end} ORDER BY start, id"""


_CAPACITIES = "SELECT id, memory_size FROM agents WHERE id IS NOT NULL"


@dataclass
class _Events:
    """What happens to the memory of one division and level of a rank, in order: when [ns], bytes more or less."""

    allocations: int = 0
    frees: int = 0
    unmatched: int = 0
    at: list[int] = field(default_factory=list)
    change: list[int] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.allocations or self.frees or self.unmatched or self.at)

    def add(self, at: int, change: int) -> None:
        self.at.append(at)
        self.change.append(change)

    def start_at(self, begin: int) -> None:
        """Make one change, to what is held there, of all up to the start of the window."""
        before = bisect_left(self.at, begin)
        held = sum(self.change[:before])
        self.at[:before], self.change[:before] = ([begin], [held]) if held else ([], [])


@frozen
class _Held:
    """The same as columns, on the time line of all ranks; those of several ranks one after the other."""

    allocations: int
    frees: int
    unmatched: int
    at: Ints
    change: Ints

    def __add__(self, other: _Held) -> _Held:
        counts = (self.allocations + other.allocations, self.frees + other.frees, self.unmatched + other.unmatched)
        return _Held(*counts, np.append(self.at, other.at), np.append(self.change, other.change))

    def course(self) -> tuple[Ints, Ints]:
        """Return the times of changes in order, and the bytes held from then on."""
        order = np.argsort(self.at, kind="stable")
        change = self.change[order]
        # Damaged sizes can add up to more than 64 bits hold.
        return self.at[order], np.cumsum(change if total(np.abs(change)) < 1 << 63 else change.astype(object))


_Level = tuple[Key, str | None]  # division, level


def memory(reading: Reading) -> Iterator[Summary]:
    """Return the peak and the course of memory.

    Raises:
        RocpdError: no allocations.
    """
    levels: dict[_Level, _Held] = {}
    capacities: dict[Key, int | None] = {}
    for rank, (levels_of_rank, capacities_of_rank) in reading.each(_of_rank):
        capacities |= capacities_of_rank
        for level, e in levels_of_rank.items():
            at = reading.shift(rank.number).to_line(np.array(e.at, np.int64))
            merge(levels, {level: _Held(e.allocations, e.frees, e.unmatched, at, np.array(e.change, np.int64))})
    if not levels:
        raise RocpdError("no memory allocations in the selection")
    rows: list[Row] = []
    curve: list[Row] = []
    for key, name in sorted(levels, key=lambda level: order_of((*level[0], level[1]))):
        held = levels[key, name]
        at, now = held.course()
        most = max(0, *now.tolist()) if len(now) else 0
        peak_at = int(at[np.argmax(now)]) if most else None
        last = int(now[-1]) if len(now) else 0
        capacity = capacities.get(key)
        rows.append((*key, name, held.allocations, held.frees, most, peak_at, last, held.unmatched, capacity))
        curve += [(*key, name, *point) for point in _slices(at, now, reading.options.bins)]
    yield reading.summary(TABLES["memory"], rows, By.AGENT)
    yield reading.summary(TABLES["memory-curve"], curve, By.AGENT)


def _of_rank(reading: RankReading) -> tuple[dict[_Level, _Events], dict[Key, int | None]]:
    """Follow the memory of one rank, in a window from what was held before it; return it, and what its agents have."""
    by = reading.options.by or By.AGENT
    part = reading.window.part
    follower = _Follower(-1 if part.start is None else part.start)
    select = _SQL.format(valid=VALID_TIMES, lane="stream_id" if by is By.STREAM else "agent_id", end=part.end or LAST)
    keys: dict[object, Key] = {}
    for rows in reading.unwindowed().reader.stream(select, size=1000):
        for lane, level, kind, *numbers in rows:
            key = keys.get(lane)
            if key is None:
                key = keys[lane] = key_of(by, reading.rank, number(lane))
            follower.follow(key, as_text(level), kind in ALLOCATING, *map(number, numbers))
    agents = reading.reader.rows(_CAPACITIES) if by is By.AGENT else []
    return follower.levels(), {key_of(by, reading.rank, agent): size for agent, size in agents}


@dataclass
class _Follower:
    """Follows the memory of one rank in order of time; `begin` is where the window starts [ns]."""

    begin: int
    events: dict[_Level, _Events] = field(default_factory=dict)
    live: dict[Hashable, tuple[_Events, int]] = field(default_factory=dict)

    def follow(self, key: Key, level: str | None, allocates: bool, *numbers: int) -> None:
        """Follow an allocation or a free; numbers are its agent, queue, address, size and start."""
        agent, queue, address, size, start = numbers
        counts = start >= self.begin
        memory = held_by(level, address, agent, queue)
        held = self.live.pop(memory, None)
        if held:  # freed, or its address was given out again
            held[0].add(start, -held[1])
        if allocates:
            events = self.events.get((key, level))
            if events is None:
                events = self.events[key, level] = _Events()
            events.allocations += counts
            events.add(start, max(0, size))
            self.live[memory] = events, max(0, size)
        elif held:
            held[0].frees += counts
        elif counts:
            self.events.setdefault((key, level), _Events()).unmatched += 1

    def levels(self) -> dict[_Level, _Events]:
        """Return what happened in the window; what was held before it is there from its start."""
        for events in self.events.values():
            events.start_at(self.begin)
        return {level: events for level, events in self.events.items() if events}


def _slices(at: Ints, now: Ints, bins: int) -> Iterator[tuple[int, int]]:
    """Yield start and largest value of up to `bins` equal slices; what a change at its start ends is not in one."""
    if not len(at):
        return
    width = max(1, -(-(int(at[-1] - at[0]) + 1) // bins))
    starts = range(int(at[0]), int(at[-1]) + 1, width)
    edges = [*np.searchsorted(at, np.array(starts)).tolist(), len(at)]
    for start, low, high in zip(starts, edges, edges[1:], strict=False):
        first = low if low < len(at) and at[low] == start else low - 1
        yield start, int(now[first:high].max())
