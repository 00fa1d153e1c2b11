"""What GPUs do over time: computing, communicating, both, copying or nothing, as one track per rank and per GPU.

The overview that shows while a rank is closed. These slices are calculated from kernels and copies, no events.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rocpd.base.types import Flags, Ints
from rocpd.convert.model import Annotation, RankEvents, Slices, Track, TrackKind
from rocpd.facts.timeline import COMMUNICATION, COMPUTE, COPIES, HIDES_COMMUNICATION, KINDS, PARTS, busy_pieces
from rocpd.schema.rules.kernel_categories import is_communication

CATEGORY = "gpu_time"
"""Category of the slices."""

_SHORTEST_GAP_NS = 10_000
"""Pauses within one kind of work that are shorter are not shown: between kernels one after the other."""
_HIDDEN = len(KINDS)
_NAMES = {**dict(enumerate(PARTS[:_HIDDEN])), _HIDDEN: "hidden communication"}


def gpu_time(events: RankEvents, kernels: Slices, copies: Slices) -> Slices:
    """Return what the GPUs of a rank do together and, where it uses several, each: on new tracks."""
    kinds = [is_communication(text) for text in events.kinds.texts]
    of_kernels = np.where(np.array(kinds, bool)[kernels.kind], COMMUNICATION, COMPUTE)
    track = np.concatenate([kernels.track, copies.track])
    what = np.concatenate([of_kernels, np.full(len(copies), COPIES)])
    start, end = (np.concatenate([getattr(each, side) for each in (kernels, copies)]) for side in ("start", "end"))
    agent = np.array([each.agent if each.agent in events.gpus else -1 for each in events.tracks.all], np.int64)[track]
    gpus = [gpu for gpu in events.gpus if np.any(agent == gpu)]
    rows: list[tuple[int | None, Flags]] = [(None, agent >= 0)] if gpus else []
    rows += [(gpu, agent == gpu) for gpu in gpus if len(gpus) > 1]
    return _slices(events, [(gpu, *_periods(what[of], start[of], end[of])) for gpu, of in rows])


def _periods(what: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Return periods of one state each, in order of time: start, end and state, and how long it really lasts [ns]."""
    pieces, part, hides = busy_pieces(start, end, what)
    state = np.where((part == COMPUTE) & (hides & HIDES_COMMUNICATION > 0), _HIDDEN, part)
    goes_on = (np.diff(state) == 0) & (pieces.start[1:] - pieces.end[:-1] < _SHORTEST_GAP_NS)
    first = np.flatnonzero(np.append(True, ~goes_on)[: len(state)])
    if not len(first):
        return pieces.start, pieces.end, state, state
    ends = pieces.end[np.append(first[1:] - 1, len(state) - 1)]
    return pieces.start[first], ends, state[first], np.add.reduceat(pieces.length, first)


def _slices(events: RankEvents, parts: Sequence[tuple[int | None, Ints, Ints, Ints, Ints]]) -> Slices:
    numbers = {kind: events.names.code(name) for kind, name in _NAMES.items()}
    kinds = {kind: events.kinds.code(name) for kind, name in _NAMES.items()}
    columns: list[list[Ints]] = [[np.zeros(0, np.int64)] * 5]
    for gpu, start, end, what, time in parts:
        shown = events.tracks.index((CATEGORY, gpu), lambda: _track(events, gpu))  # noqa: B023
        columns.append([np.full(len(start), shown), start, end, what, time])
    track, start, end, what, time = (np.concatenate(column) for column in zip(*columns, strict=True))
    name, kind = (_looked_up(known, what) for known in (numbers, kinds))
    annotations = (Annotation("time_ns", time),)
    return Slices.calculated(track, (start, end), name, events.categories.code(CATEGORY), kind, annotations)


def _track(events: RankEvents, gpu: int | None) -> Track:
    name = "GPU time" if gpu is None else f"{events.agents[gpu]} · time"
    return Track(name, TrackKind.GPU_TIME, agent=gpu)


def _looked_up(known: dict[int, int], keys: Ints) -> Ints:
    table = np.zeros(max(known) + 1, np.int64)
    table[list(known)] = list(known.values())
    return table[keys]
