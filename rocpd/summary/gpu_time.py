"""Owns how agents spend their time: busy as the union of their operations, idle, gaps, and what overlaps what.

A gap runs from the latest end of all earlier operations of the agent to the start of the next one.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from itertools import pairwise

import numpy as np

from rocpd.errors import RocpdError
from rocpd.federate.identify import Rank
from rocpd.summary.intervals import Union, both, length, union
from rocpd.summary.kinds import Classes
from rocpd.summary.ops import Names, Ops, read_ops
from rocpd.summary.options import By
from rocpd.summary.read import NULL
from rocpd.summary.reading import AGENT, DIVISIONS, RANK, Key, Reading, order_of
from rocpd.summary.result import Field, Row, Summary, Table
from rocpd.summary.spread import Ints, Spread

EDGES_US = (10, 20, 50, 100, 1000, 10000, 100000)
"""Upper edges of the gap histogram [us]; a gap on an edge counts below it."""

TABLES = {
    table.name: table
    for table in (
        Table(
            "gpu-time",
            "How long agents worked: one row per rank and agent unless --by says otherwise.",
            (
                Field("operations", "", "kernels and copies", True),
                Field("span_ns", "ns", "first start to last end"),
                Field("busy_ns", "ns", "union of all operations"),
                Field("idle_ns", "ns", "span without operation", True),
                Field("busy_percent", "%", "busy by span"),
                Field("sum_ns", "ns", "sum of durations; above busy_ns when operations overlap", True),
                Field("gaps", "", "times without operation"),
                Field("median_gap_ns", "ns", "median gap", True),
                Field("max_gap_ns", "ns", "longest gap"),
            ),
        ),
        Table(
            "gaps",
            "Gaps by their length, each gap for itself.",
            (
                Field("length", "", "from (not including) to (including)"),
                Field("gaps", "", "how many"),
                Field("total_ns", "ns", "their sum"),
                Field("max_ns", "ns", "the longest"),
                Field("percent", "%", "share of the idle time"),
            ),
        ),
        Table(
            "largest-gaps",
            "The longest gaps and what ran before and after them.",
            (
                RANK,
                AGENT,
                Field("at_ns", "ns", "begin of the gap, from the begin of the time line"),
                Field("gap_ns", "ns", "its length"),
                Field("before", "", "operation that ended last"),
                Field("after", "", "operation that came next"),
            ),
        ),
        Table(
            "overlap",
            "What ran at the same time: compute + exposed communication + exposed copies = busy.",
            (
                Field("busy_ns", "ns", "union of all operations", True),
                Field("compute_ns", "ns", "union of kernels other than communication"),
                Field("communication_ns", "ns", "union of communication kernels"),
                Field("copy_ns", "ns", "union of copies", True),
                Field("hidden_communication_ns", "ns", "communication while something computes", True),
                Field("exposed_communication_ns", "ns", "communication while nothing computes"),
                Field("exposed_copy_ns", "ns", "copies while nothing computes or communicates", True),
                Field("exposed_percent", "%", "exposed communication by busy time"),
            ),
        ),
    )
}


@dataclass
class _Sum:
    """What is added up over agents; `gap` holds each gap."""

    operations: int = 0
    span: int = 0
    busy: int = 0
    total: int = 0
    compute: int = 0
    communication: int = 0
    copy: int = 0
    working: int = 0
    gap: Spread = field(default_factory=Spread)

    def __iadd__(self, other: _Sum) -> _Sum:
        for item in fields(self)[:-1]:
            setattr(self, item.name, getattr(self, item.name) + getattr(other, item.name))
        self.gap.merge(other.gap)
        return self


_Gap = tuple[int, int, int, int, int, int]  # length, -rank, -agent, -begin, before, after: the largest first


def gpu_time(reading: Reading) -> Iterator[Summary]:
    """Give busy and idle time, the gap histogram, the largest gaps, and overlap.

    Raises:
        RocpdError: no operation with sound times.
    """
    names = Names()
    classes = Classes(reading.options.categories, names)
    sums: dict[Key, _Sum] = {}
    largest: list[_Gap] = []
    for rank in reading.ranks():
        for lane, ops in _lanes(reading, read_ops(reading, rank, names)):
            key = _key(reading, rank, lane)
            found, gaps = _one(ops, classes)
            sums.setdefault(key, _Sum())
            sums[key] += found
            agent = int(ops.agent[0])
            own = ((g, -rank.number, -agent, -at, before, after) for g, at, before, after in _top(gaps, reading))
            largest = heapq.nlargest(reading.options.top, [*largest, *own])
    if not sums:
        raise RocpdError("no kernels or copies in the selection")
    if not classes.communicates:
        reading.session.note("no communication kernels found")
    front = DIVISIONS[reading.by or By.AGENT]
    ordered = [(key, sums[key]) for key in sorted(sums, key=order_of)]
    yield _shaped("gpu-time", front, (_busy_row(*item) for item in ordered))
    division = DIVISIONS[reading.by] if reading.by else ()
    yield _shaped("gaps", division, (row for key, gap in _gap_sums(reading, ordered) for row in _histogram(key, gap)))
    yield _shaped("largest-gaps", (), _largest_rows(reading, largest, names))
    yield _shaped("overlap", front, (_overlap_row(*item) for item in ordered))


def _shaped(name: str, front: tuple[Field, ...], rows: Iterator[Row]) -> Summary:
    return Summary(TABLES[name], (*front, *TABLES[name].fields), rows)


def _lanes(reading: Reading, ops: Ops) -> Iterator[tuple[int, Ops]]:
    """Operations that can't run twice at a time as one agent sees it: by agent, by stream when asked."""
    if reading.by is not By.STREAM:
        yield from ops.agents()
        return
    for stream in np.unique(ops.stream).tolist():
        yield stream, ops.take(np.flatnonzero(ops.stream == stream))


def _key(reading: Reading, rank: Rank, lane: int) -> Key:
    if reading.by is None:
        return (rank.number, None if lane == NULL else lane)
    return reading.key(rank, lane, lane)


def _one(ops: Ops, classes: Classes) -> tuple[_Sum, tuple[Ints, Ints, Ints, Ints]]:
    """Add up one agent; give its gaps too: length, begin, name before, name after."""
    parts = {kind: _union(ops, places) for kind, places in classes.split(ops).items()}
    compute, communication, copy = (parts[kind] for kind in ("compute", "communication", "copy"))
    working = both(compute, communication)
    gaps = gaps_of(ops)
    found = _Sum(
        operations=len(ops),
        span=int(ops.end.max() - ops.start.min()),
        busy=length(both(working, copy)),
        total=int(ops.duration.sum()),
        compute=length(compute),
        communication=length(communication),
        copy=length(copy),
        working=length(working),
    )
    found.gap.add(gaps[0])
    return found, gaps


def _union(ops: Ops, places: Ints) -> Union:
    return union(ops.start[places], ops.end[places])


def gaps_of(ops: Ops) -> tuple[Ints, Ints, Ints, Ints]:
    """Give the gaps of one agent or stream: length [ns], begin [ns], name before, name after."""
    order = np.lexsort((ops.end, ops.start))
    start, end, name = ops.start[order], ops.end[order], ops.name[order]
    latest = np.maximum.accumulate(end)
    places = np.flatnonzero(start[1:] > latest[:-1]) + 1
    last = np.maximum.accumulate(np.where(end == latest, np.arange(len(end)), 0))
    return start[places] - latest[places - 1], latest[places - 1], name[last[places - 1]], name[places]


def _top(gaps: tuple[Ints, Ints, Ints, Ints], reading: Reading) -> Iterator[tuple[int, int, int, int]]:
    most = np.argsort(-gaps[0], kind="stable")[: reading.options.top]
    yield from zip(*(column[most].tolist() for column in gaps), strict=True)


def _busy_row(key: Key, s: _Sum) -> Row:
    m = s.gap.moments
    percent = s.busy * 100 / s.span if s.span else None
    idle = s.span - s.busy
    return (*key, s.operations, s.span, s.busy, idle, percent, s.total, m.timed, s.gap.quantile(0.5), m.longest)


def _overlap_row(key: Key, s: _Sum) -> Row:
    exposed = s.working - s.compute
    hidden = s.communication - exposed
    share = exposed * 100 / s.busy if s.busy else None
    return (*key, s.busy, s.compute, s.communication, s.copy, hidden, exposed, s.busy - s.working, share)


def _gap_sums(reading: Reading, ordered: list[tuple[Key, _Sum]]) -> list[tuple[Key, Spread]]:
    if reading.by is not None:
        return [(key, found.gap) for key, found in ordered]
    whole = Spread()
    for _, found in ordered:
        whole.merge(found.gap)
    return [((), whole)]


def _histogram(key: Key, gap: Spread) -> Iterator[Row]:
    values, counts = gap.distribution()
    whole = int((values * counts).sum())
    edges = [edge * 1000 for edge in EDGES_US]
    cuts = [0, *np.searchsorted(values, edges, side="right").tolist(), len(values)]
    for low, high, label in zip(cuts[:-1], cuts[1:], _labels(), strict=True):
        count = int(counts[low:high].sum())
        total = int((values[low:high] * counts[low:high]).sum())
        longest = int(values[high - 1]) if high > low else None
        yield (*key, label, count, total, longest, total * 100 / whole if whole else None)


def _labels() -> list[str]:
    texts = [f"{edge // 1000} ms" if edge >= 1000 else f"{edge} us" for edge in EDGES_US]
    return [f"up to {texts[0]}", *(f"{a} to {b}" for a, b in pairwise(texts)), f"over {texts[-1]}"]


def _largest_rows(reading: Reading, largest: list[_Gap], names: Names) -> Iterator[Row]:
    for gap, rank, agent, at, before, after in sorted(largest, reverse=True):
        begin = -at + reading.offset(-rank)
        known = None if -agent == NULL else -agent
        yield (-rank, known, begin, gap, names.texts[before], names.texts[after])
