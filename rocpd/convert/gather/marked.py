"""Where the work of markers runs: for each range and GPU, from the first start to the last end of what it launched.

A range launched what its own thread launched during it. Never reads: calls, work and flows say it all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from rocpd.base.frozen import frozen
from rocpd.base.types import Ints
from rocpd.convert.gather.lanes import spread
from rocpd.convert.model import RankEvents, Slices, Track, TrackKind
from rocpd.facts.columns import distinct
from rocpd.schema.rules.categories import is_marker

CATEGORY = "gpu_marker"
"""Category of the slices."""


@frozen
class _Launched:
    """Operations of one GPU with a known call, in order of thread and time of the call."""

    thread: Ints
    called: Ints
    start: Ints
    end: Ints


def marker_rows(events: RankEvents, calls: Slices) -> Ints:
    """Return the rows of marker ranges among calls."""
    marks = np.array([is_marker(text) for text in events.categories.texts], bool)
    return np.flatnonzero(marks[calls.category] & (calls.end > calls.start)) if len(marks) else np.zeros(0, np.int64)


def marked(events: RankEvents, calls: Slices, work: Sequence[Slices]) -> Slices:
    """Return where the work of each marker range ran, on a new track per GPU.

    Args:
        events: the rank.
        calls, work: with flows.
    """
    rows = marker_rows(events, calls)
    base = np.array([track.base for track in events.tracks.all], np.int64)
    threads = base[calls.track]
    parts = [[np.zeros(0, np.int64)] * 4]
    for agent, launched in _by_agent(events, calls, threads, work) if len(rows) else ():
        marker, start, end = _extents(launched, threads[rows], calls.start[rows], calls.end[rows])
        title = f"{events.agents.get(agent, 'agent ?')} · markers"
        make = partial(Track, title, TrackKind.MARKED, "markers", nests=True, agent=agent)
        shown = np.full(len(marker), events.tracks.index((CATEGORY, agent), make))
        parts.append([shown, start, end, calls.name[rows[marker]]])
    track, start, end, name = (np.concatenate(column) for column in zip(*parts, strict=True))
    tracks = spread(events.tracks, track, start, end)
    return Slices.calculated(tracks, (start, end), name, events.categories.code(CATEGORY))


def _by_agent(
    events: RankEvents, calls: Slices, threads: Ints, work: Sequence[Slices]
) -> Iterator[tuple[int, _Launched]]:
    """Yield each GPU that ran something whose call is known, and what that was."""
    if calls.flows is None:
        return
    call_of = np.repeat(np.arange(len(calls)), calls.flows.counts)
    order = np.argsort(calls.flows.values)
    flows, call_of = calls.flows.values[order], call_of[order]
    columns = []
    for slices in work:
        if slices.flows is not None:
            row = np.repeat(np.arange(len(slices)), slices.flows.counts)
            call = call_of[np.searchsorted(flows, slices.flows.values)]
            columns.append((slices.track[row], threads[call], calls.start[call], slices.start[row], slices.end[row]))
    track, *others = (np.concatenate(column) for column in zip(*columns, strict=True))
    agent = np.array([-1 if each.agent is None else each.agent for each in events.tracks.all], np.int64)[track]
    thread, called, _, _ = others
    order = np.lexsort((called, thread))
    for gpu in events.gpus:
        rows = order[agent[order] == gpu]
        if len(rows):
            yield gpu, _Launched(*(column[rows] for column in others))


def _extents(launched: _Launched, threads: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the markers that launched anything, by position, and from when to when it ran."""
    first, last = np.zeros(len(threads), np.int64), np.zeros(len(threads), np.int64)
    for thread in distinct(threads).tolist():
        rows = np.flatnonzero(threads == thread)
        low, high = np.searchsorted(launched.thread, [thread, thread + 1])
        called = launched.called[low:high]
        first[rows] = low + np.searchsorted(called, start[rows])
        last[rows] = low + np.searchsorted(called, end[rows])
    found = np.flatnonzero(last > first)
    bounds = np.stack([first[found], last[found]], 1).ravel()
    starts, ends = np.append(launched.start, 0), np.append(launched.end, 0)
    return found, np.minimum.reduceat(starts, bounds)[::2], np.maximum.reduceat(ends, bounds)[::2]
