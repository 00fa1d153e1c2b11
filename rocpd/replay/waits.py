"""Waits for operations, as edges that a changed job loses, or has in their place. Never replays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rocpd.base import Flags, Ints
from rocpd.facts.columns import grouped, numbered
from rocpd.facts.timeline import COMMUNICATION, COPIES
from rocpd.replay.job import JobGraph
from rocpd.replay.points import NO_EDGES, Edge, Edges, OrderedEdges, Point, left_unexplained, narrowed

_AT_ONCE = 2_000  # delay after a wait up to which it is taken to bind [ns]
_SEEN = 5  # times that an inferred wait must have been seen to bind, to be beyond doubt
_FROM_DEVICE = "DEVICE_TO_"  # in the names of copies whose data are computed


def without_doubtful(job: JobGraph) -> JobGraph:
    """Return a job without inferred waits that were hardly ever seen to bind; its replay is still the recording."""
    points, edges = job.points, job.edges
    inferred = np.isin(edges.kind, (Edge.BETWEEN_STREAMS, Edge.BETWEEN_THREADS)).nonzero()[0]
    if not len(inferred):
        return job
    source, target = edges.source[inferred], edges.target(inferred)
    begins = points.time[target] - points.work[target]
    binds = begins - points.time[source] - edges.lag[inferred] <= _AT_ONCE
    kind = numbered(
        edges.kind[inferred].astype(np.int64), points.name[target], points.lane[target], points.lane[source]
    )
    seen = np.bincount(kind, binds)[kind]
    if (seen >= _SEEN).all():
        return job
    left = edges.also(NO_EDGES, inferred[seen < _SEEN])
    lag = left_unexplained(points, left.every(), slice(0, len(points)))
    return replace(job, points=replace(points, lag=narrowed(lag)), edges=left)


def without_waits(job: JobGraph, calls: Flags, *, is_computing: bool, is_copying: bool) -> OrderedEdges:
    """Return the edges of a job in which some calls no longer wait for operations.

    What such a call waited for, what comes after it on other streams may need; communication does, for it moves what
    was computed before.

    Args:
        job: the graph.
        calls: whether each point is one of the calls.
        is_computing: whether computing needs it, too.
        is_copying: whether copies from the device do.
    """
    waits, target = synchronised(job.edges)
    gone = calls[target]
    points = job.points
    from_device = np.array([_FROM_DEVICE in name for name in (*job.names, "")])[points.name]
    needs = np.where(points.part == COPIES, from_device & is_copying, (points.part == COMMUNICATION) | is_computing)
    needs &= np.isin(points.kind, (Point.OPERATION, Point.ARRIVAL))
    ordered = _ordered_by(job, target[gone], job.edges.source[waits[gone]], needs)
    return job.edges.also(ordered, waits[gone])


def _ordered_by(job: JobGraph, calls: Ints, waited: Ints, needs: Flags) -> Edges:
    """Return edges from what calls waited for to the first operation after them of each other stream that needs it.

    Args:
        job: the graph.
        calls: the points at which the calls return.
        waited: operations that they are seen to wait for. On these streams they wait for the last one before them.
        needs: whether each point is an operation that needs what they waited for.
    """
    points = job.points
    of_calls, of_waited = job.rank_of(calls), job.rank_of(waited)
    parts = [NO_EDGES]
    for rank in np.unique(of_calls).tolist():
        own = slice(*job.own[rank])
        ends, starts = (own.start + rows.nonzero()[0] for rows in ((points.part >= 0)[own], needs[own]))
        returns = np.unique(points.time[calls[of_calls == rank]])
        for lane in np.unique(points.lane[waited[of_waited == rank]]).tolist():
            before = ends[(points.lane[ends] == lane) & (points.kind[ends] != Point.ARRIVAL)]
            last = np.searchsorted(points.time[before], returns, side="right") - 1
            for (other,), of_lane in grouped([points.lane[starts]]):
                after = starts[of_lane]
                begins = points.time[after] - points.work[after]
                first = np.searchsorted(begins, returns)
                some = (last >= 0) & (first < len(after)) & (other != lane)
                parts.append(Edges.of(Edge.BETWEEN_STREAMS, before[last[some]], after[first[some]]))
    return Edges.joined(parts)


def to_the_next(job: JobGraph, ends: Ints) -> Edges:
    """Return edges from points to the first later operation of each other stream of their rank."""
    points = job.points
    begins = points.time - points.work
    starts = (np.isin(points.kind, (Point.OPERATION, Point.ARRIVAL)) & (points.part != COPIES)).nonzero()[0]
    parts = [NO_EDGES]
    for (rank, _), of_lane in grouped([job.rank[starts], points.lane[starts]]):
        rows = starts[of_lane]
        source = ends[job.rank[ends] == rank]
        at = np.searchsorted(begins[rows], points.time[source])
        source, target = source[at < len(rows)], rows[at[at < len(rows)]]
        parts.append(Edges.of(Edge.BETWEEN_STREAMS, source, target))
    every = Edges.joined(parts)
    return every.take(every.source < every.target)


def same_stream(job: JobGraph, freed: Edges, moved: Flags) -> Edges:
    """Return edges that keep freed operations behind the operation before the transfer on the same stream."""
    points = job.points
    same = freed.kind == Edge.STREAM
    target = freed.target[same]
    operations = ((points.kind == Point.OPERATION) & ~moved).nonzero()[0]
    order = operations[np.lexsort((operations, points.lane[operations], job.rank[operations]))]
    place = np.full(len(points), -1)
    place[order] = np.arange(len(order))
    at = place[target]
    target, at = target[at > 0], at[at > 0]
    source = order[at - 1]
    kept = (job.rank[source] == job.rank[target]) & (points.lane[source] == points.lane[target])
    source, target = source[kept], target[kept]
    lag = np.minimum(points.time[target] - points.work[target] - points.time[source], _AT_ONCE)
    return Edges.of(Edge.STREAM, source, target, np.maximum(lag, 0))


def synchronised(edges: OrderedEdges) -> tuple[Ints, Ints]:
    """Return the numbers of the edges from operations to calls that wait for them, and the points of these calls."""
    rows = (edges.kind == Edge.SYNCHRONISED).nonzero()[0]
    return rows, edges.target(rows)


def freed(before: OrderedEdges, after: OrderedEdges, is_host: Flags) -> Flags:
    """Return the points of the host that waited for operations and no longer do: the rest of the wait goes, too."""
    waited, waits = np.zeros(len(is_host), bool), np.zeros(len(is_host), bool)
    waited[synchronised(before)[1]] = True
    waits[synchronised(after)[1]] = True
    return is_host & waited & ~waits
