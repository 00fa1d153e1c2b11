"""Why an agent is idle: what the thread that launches its next operation does meanwhile.

Pure arithmetic over columns of one rank; every gap is divided into pieces that add up to it exactly:

- until the launching call of the next operation returns, what that thread does: inside a call of HIP, HSA or RCCL (the
  outermost one) what the call does; outside, up to `PAUSE` between calls is launching too (an interpreter makes the
  next one), more is work of the host, named by the innermost marker around it;
- from then on the operation is launched and not started: it waits for another one, or to be dispatched.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rocpd.frozen import frozen
from rocpd.read.groups import grouped
from rocpd.read.names import Names
from rocpd.summary.intervals import divide
from rocpd.summary.marked import innermost
from rocpd.summary.ops import Ops
from rocpd.summary.regions import RankRegions
from rocpd.trace.host_calls import HostCall, host_call
from rocpd.trace.launch import launching_regions
from rocpd.types import NULL, Flags, Ints

PAUSE = 100_000
"""Time between two calls of a thread that still counts as launching [ns]."""

START, DRAINED, QUEUED, HOST, UNKNOWN = "start-up", "drained", "launched, not started", "host work", "unknown"

CAUSES = (
    START,
    HostCall.LAUNCH.value,
    HostCall.SYNCHRONISE.value,
    HostCall.ALLOCATE.value,
    HostCall.COPY.value,
    HostCall.MODULE.value,
    HostCall.COMMUNICATION.value,
    HostCall.OTHER.value,
    HOST,
    QUEUED,
    DRAINED,
    UNKNOWN,
)
"""What idle time is divided into."""


class Idle(NamedTuple):
    """Pieces of the idle time of one agent, in order of time.

    Args:
        start, end: [ns].
        cause: number in `CAUSES`.
        what: number in `Names`: the call, or the marker of the host's work; NULL where neither says anything.
    """

    start: Ints
    end: Ints
    cause: Ints
    what: Ints

    def within(self, start: int, end: int) -> Idle:
        """Return the part between two times [ns]."""
        low, high = np.maximum(self.start, start), np.minimum(self.end, end)
        some = high > low
        return Idle(low[some], high[some], self.cause[some], self.what[some])

    def gaps(self) -> Ints:
        """Return how long the gap is that begins with each piece [ns]; 0 where it began before.

        Work of the host is for itself: it ends the gap, and another one begins after it.

        >>> column = np.array([0, 0, 0])
        >>> Idle(np.array([0, 5, 20]), np.array([5, 9, 30]), column, column).gaps().tolist()
        [9, 0, 10]
        """
        if not len(self.start):
            return self.start
        works = self.cause == _code(HOST)
        is_first = np.append(True, (self.start[1:] != self.end[:-1]) | works[1:] | works[:-1])
        first = np.flatnonzero(is_first)
        length = np.zeros(len(self.start), np.int64)
        length[first] = self.end[np.append(first[1:] - 1, len(self.start) - 1)] - self.start[first]
        return length


@frozen
class Activity:
    """What a thread does at any time: from each edge to the next one thing.

    Args:
        edges: [ns], ascending; the first one lies before all times.
        cause: number in `CAUSES`.
        what: as in `Idle`.
    """

    edges: Ints
    cause: Ints
    what: Ints

    def pieces(self, start: Ints, end: Ints) -> tuple[Ints, Idle]:
        """Divide intervals, none of them empty; return which interval each piece is of, and the pieces."""
        of, at, start, end = divide(self.edges, start, end)
        return of, Idle(start, end, self.cause[at], self.what[at])


def activities(regions: RankRegions, names: Names) -> dict[int, Activity]:
    """Return what each thread does; regions come outer ones first."""
    calls = np.array([-1, *(_code(kind) for kind in HostCall)])
    kinds = {kind: number for number, kind in enumerate((None, *HostCall))}
    kind = np.zeros(len(regions.name), np.int64)
    for (name, category), rows in grouped([regions.name, regions.category]):
        kind[rows] = kinds[host_call(names.texts[name], names.texts[category])]
    return {thread: _activity(regions.take(rows), calls[kind[rows]]) for (thread,), rows in grouped([regions.thread])}


def _code(cause: str) -> int:
    return CAUSES.index(cause)


def _activity(regions: RankRegions, cause: Ints) -> Activity:
    """Return what one thread does; `cause` of its regions is -1 where they are no calls."""
    calls = _outermost(regions.take(np.flatnonzero(cause >= 0)), cause[cause >= 0])
    markers = regions.take(np.flatnonzero(cause < 0))
    around = innermost(markers)
    low = np.iinfo(np.int64).min
    # Between calls: short stretches are launching, longer ones work of the host in the marker that is innermost there.
    starts, ends = np.append(low, calls.end), np.append(calls.start, np.iinfo(np.int64).max)
    is_long = (starts == low) | (ends == np.iinfo(np.int64).max) | (ends - np.maximum(starts, 0) > PAUSE)
    some = ends > starts
    between = Activity(around.edges, np.full(len(around.edges), _code(HOST)), around.name)
    _, host = between.pieces(starts[some & is_long], ends[some & is_long])
    short = some & ~is_long
    nothing = np.full(int(short.sum()), NULL)
    launching = Idle(starts[short], ends[short], np.full(len(nothing), _code(HostCall.LAUNCH)), nothing)
    parts = [np.concatenate(column) for column in zip(calls, host, launching, strict=True)]
    order = np.argsort(parts[0], kind="stable")
    return Activity(*(column[order] for column in (parts[0], parts[2], parts[3])))


def _outermost(calls: RankRegions, cause: Ints) -> Idle:
    """Return the calls that lie in no other, cut where a damaged file lets them overlap."""
    until = np.maximum.accumulate(calls.end) if len(calls.end) else calls.end
    before = np.append(np.iinfo(np.int64).min, until[:-1])[: len(until)]
    start = np.maximum(calls.start, before)
    some = calls.end > start
    return Idle(start[some], calls.end[some], cause[some], calls.name[some])


def idle_pieces(ops: Ops, regions: RankRegions, threads: dict[int, Activity], span: tuple[int, int]) -> Idle:
    """Return why one agent is idle between two times [ns].

    Args:
        ops: all operations of the agent, with stack ids.
        regions: all regions of the rank.
        threads: what its threads do.
        span: before its first operation the agent starts up, after its last it is drained.
    """
    gaps = ops.gaps()
    parts = [_gap_pieces(gaps.start, gaps.start + gaps.length, ops.take(gaps.after), regions, threads)]
    first, last = int(ops.start.min()), int(ops.end.max())
    for start, end, cause in ((span[0], first, START), (last, span[1], DRAINED)):
        if end > start:
            parts.append(Idle(*(np.array([value]) for value in (start, end, _code(cause), NULL))))
    pieces = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.lexsort((pieces[1], pieces[0]))
    return Idle(*(column[order] for column in pieces))


def _gap_pieces(start: Ints, end: Ints, after: Ops, regions: RankRegions, threads: dict[int, Activity]) -> Idle:
    call = launching_regions(regions.stack, regions.start, regions.end, after.stack)
    known = call >= 0
    returned = np.where(known, np.clip(regions.end[call], start, end) if len(regions.end) else end, end)
    thread = np.where(known, regions.thread[call] if len(regions.end) else NULL, NULL)
    parts = [_all(start, end, UNKNOWN, ~known), _all(returned, end, QUEUED, known)]
    for (number,), rows in grouped([thread]):
        rows = rows[known[rows] & (returned[rows] > start[rows])]
        if len(rows):
            parts.append(threads[number].pieces(start[rows], returned[rows])[1])
    return Idle(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _all(start: Ints, end: Ints, cause: str, rows: Flags) -> Idle:
    some = rows & (end > start)
    count = int(some.sum())
    return Idle(start[some], end[some], np.full(count, _code(cause)), np.full(count, NULL))
