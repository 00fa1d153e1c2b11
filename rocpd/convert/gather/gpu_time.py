"""What GPUs do over time: computing, communicating, both, copying or nothing, as one track per rank and per GPU.

The overview that shows while a rank is closed. These slices are calculated from kernels and copies, no events.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rocpd.convert.model import RankEvents, Slices, Track, TrackKind
from rocpd.trace.kernel_categories import is_communication
from rocpd.types import Flags, Ints

CATEGORY = "gpu_time"
"""Category of the slices."""

_SHORTEST_GAP_NS = 10_000
"""Pauses within one kind of work that are shorter are not shown: between kernels one after the other."""
_COMPUTE, _COMMUNICATION, _COPY = 1, 2, 4
_NAMES = {
    _COMPUTE: "compute",
    _COMMUNICATION: "exposed communication",
    _COMPUTE | _COMMUNICATION: "hidden communication",
    _COPY: "exposed copies",
}


def gpu_time(events: RankEvents, kernels: Slices, copies: Slices) -> Slices:
    """Return what the GPUs of a rank do together and, where it uses several, each: on new tracks."""
    kinds = [is_communication(text) for text in events.kinds.texts]
    of_kernels = np.where(np.array(kinds, bool)[kernels.kind], _COMMUNICATION, _COMPUTE)
    track = np.concatenate([kernels.track, copies.track])
    what = np.concatenate([of_kernels, np.full(len(copies), _COPY)])
    start, end = (np.concatenate([getattr(each, side) for each in (kernels, copies)]) for side in ("start", "end"))
    agent = np.array([each.agent if each.agent in events.gpus else -1 for each in events.tracks.all], np.int64)[track]
    gpus = [gpu for gpu in events.gpus if np.any(agent == gpu)]
    rows: list[tuple[int | None, Flags]] = [(None, agent >= 0)] if gpus else []
    rows += [(gpu, agent == gpu) for gpu in gpus if len(gpus) > 1]
    return _slices(events, [(gpu, *_periods(what[of], start[of], end[of])) for gpu, of in rows])


def _periods(what: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints, Ints]:
    """Return periods of one kind each, in order of time: start, end and kind."""
    times, change = np.concatenate([start, end]), np.repeat(np.array([1, -1]), len(start))
    order = np.argsort(times, kind="stable")
    times, change, what = times[order], change[order], np.concatenate([what, what])[order]
    runs = {kind: np.cumsum(np.where(what == kind, change, 0)) > 0 for kind in (_COMPUTE, _COMMUNICATION, _COPY)}
    state = _COMPUTE * runs[_COMPUTE] + _COMMUNICATION * runs[_COMMUNICATION]
    state = np.where(state == 0, _COPY * runs[_COPY], state)
    last = np.append(np.diff(times) > 0, True)[: len(times)]
    times, state = times[last], state[last]
    until = np.append(times[1:], times[-1:])
    is_shown = (state > 0) | (until - times >= _SHORTEST_GAP_NS)
    times, state, until = times[is_shown], state[is_shown], until[is_shown]
    changes = np.append(True, np.diff(state) != 0)[: len(state)]
    first = np.flatnonzero(changes)
    ends = until[np.append(first[1:] - 1, len(state) - 1)] if len(first) else until[:0]
    works: Flags = state[first] > 0
    return times[first][works], ends[works], state[first][works]


def _slices(events: RankEvents, parts: Sequence[tuple[int | None, Ints, Ints, Ints]]) -> Slices:
    numbers = {kind: events.names.code(name) for kind, name in _NAMES.items()}
    kinds = {kind: events.kinds.code(name) for kind, name in _NAMES.items()}
    columns: list[list[Ints]] = [[np.zeros(0, np.int64)] * 4]
    for gpu, start, end, what in parts:
        shown = events.tracks.index((CATEGORY, gpu), lambda: _track(events, gpu))  # noqa: B023
        columns.append([np.full(len(start), shown), start, end, what])
    track, start, end, what = (np.concatenate(column) for column in zip(*columns, strict=True))
    name, kind = (_looked_up(known, what) for known in (numbers, kinds))
    return Slices.calculated(track, (start, end), name, events.categories.code(CATEGORY), kind)


def _track(events: RankEvents, gpu: int | None) -> Track:
    name = "GPU time" if gpu is None else f"{events.agents[gpu]} · time"
    return Track(name, TrackKind.GPU_TIME, agent=gpu)


def _looked_up(known: dict[int, int], keys: Ints) -> Ints:
    table = np.zeros(max(known) + 1, np.int64)
    table[list(known)] = list(known.values())
    return table[keys]
