"""Owns how much memory is held: the peak of each agent and its course over time.

An allocation counts from its start; a free ends the allocation of the same level and address in its rank, whatever
size and agent the free itself names. REAL, VIRTUAL (reserved addresses) and SCRATCH memory are kept apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from rocpd.errors import RocpdError
from rocpd.federate.identify import Rank
from rocpd.summary.reading import AGENT, RANK, Reading, order_of
from rocpd.summary.result import Field, Row, Summary, Table

_LEVEL = Field("level", "", "REAL, VIRTUAL or SCRATCH")

TABLES = {
    table.name: table
    for table in (
        Table(
            "memory",
            "Memory held per rank, agent and level.",
            (
                RANK,
                AGENT,
                _LEVEL,
                Field("allocations", "", "allocations", True),
                Field("frees", "", "frees that found their allocation", True),
                Field("peak_bytes", "bytes", "most held at a time"),
                Field("peak_at_ns", "ns", "when the peak was first reached, from the begin of the time line"),
                Field("held_bytes", "bytes", "still held at the end"),
                Field("unmatched_frees", "", "frees of what was never seen allocated; without agent", True),
            ),
        ),
        Table(
            "memory-curve",
            "Most memory held in each slice of the time from first to last allocation.",
            (
                RANK,
                AGENT,
                _LEVEL,
                Field("at_ns", "ns", "begin of the slice, from the begin of the time line"),
                Field("peak_bytes", "bytes", "most held in the slice"),
            ),
        ),
    )
}

_SQL = """
SELECT agent_id, level, type, address, size, start FROM rocpd_memory_allocate
WHERE start > 0 AND "end" >= start ORDER BY start, id"""


@dataclass
class _Held:
    """What one agent holds of one level; `course` lists (time, bytes held from then on)."""

    allocations: int = 0
    frees: int = 0
    unmatched: int = 0
    now: int = 0
    peak: int = 0
    peak_at: int = 0
    course: list[tuple[int, int]] = field(default_factory=list)

    def change(self, at: int, size: int) -> None:
        self.now += size
        self.course.append((at, self.now))
        if self.now > self.peak:
            self.peak, self.peak_at = self.now, at


_Key = tuple[int | None, str | None]


def memory(reading: Reading) -> Iterator[Summary]:
    """Give the peak and the course of memory.

    Raises:
        RocpdError: no allocations.
    """
    rows: list[Row] = []
    curve: list[Row] = []
    for rank in reading.ranks():
        for (agent, level), held in _follow(reading, rank):
            offset = reading.offset(rank.number)
            peak_at = held.peak_at + offset if held.peak else None
            counts = (held.allocations, held.frees, held.peak, peak_at, held.now, held.unmatched)
            rows.append((rank.number, agent, level, *counts))
            points = _slices(held.course, reading.options.bins)
            curve += [(rank.number, agent, level, at + offset, size) for at, size in points]
    if not rows:
        raise RocpdError("no memory allocations in the selection")
    yield Summary(TABLES["memory"], TABLES["memory"].fields, rows)
    yield Summary(TABLES["memory-curve"], TABLES["memory-curve"].fields, curve)


def _follow(reading: Reading, rank: Rank) -> list[tuple[_Key, _Held]]:
    held: dict[_Key, _Held] = {}
    live: dict[tuple[str | None, int | None], tuple[int | None, int]] = {}
    for batch in reading.session.stream_in(rank.number, _SQL):
        for agent, level, kind, address, size, start in batch:
            place = (level, address)
            known = live.pop(place, None)
            if known:  # freed, or its address was given out again
                held[known[0], level].change(start, -known[1])
            if kind in ("ALLOC", "REALLOC"):
                mine = held.setdefault((agent, level), _Held())
                mine.allocations += 1
                live[place] = (agent, size or 0)
                mine.change(start, size or 0)
            elif known:
                held[known[0], level].frees += 1
            else:
                held.setdefault((agent, level), _Held()).unmatched += 1
    return sorted(held.items(), key=lambda item: order_of(item[0]))


def _slices(course: list[tuple[int, int]], bins: int) -> Iterator[tuple[int, int]]:
    """Give begin and largest value of each of up to `bins` equal slices; each change counts to its slice's end."""
    if not course:
        return
    first, last = course[0][0], course[-1][0]
    width = max(1, -(-(last - first + 1) // bins))
    place, before = 0, 0
    for begin in range(first, last + 1, width):
        most = before
        while place < len(course) and course[place][0] < begin + width:
            before = course[place][1]
            most = max(most, before)
            place += 1
        yield begin, most
