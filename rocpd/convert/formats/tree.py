"""Owns how the tracks of a rank lie in each other where a viewer has groups: what an engineer looks for first, on top.

A rank holds its steps, the threads that launch work, a group per GPU with its streams on top, then what else there is.
Tracks without events are left out, and so is a group of one track. Never encodes anything.
"""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

import numpy as np

from rocpd.base.frozen import frozen
from rocpd.base.types import Flags, Ints
from rocpd.convert.model import RankEvents, Track, TrackKind
from rocpd.facts.columns import distinct
from rocpd.schema.rules.categories import is_marker

_Place: TypeAlias = tuple[int, ...]
"""Where something stands among its siblings."""
_GroupPath: TypeAlias = tuple[tuple[_Place, str], ...]
"""The groups that something lies in, from the rank down: place and title of each."""

_SUBGROUPS = {
    TrackKind.COPIES: "copies",
    TrackKind.MEMORY: "memory",
    TrackKind.COUNTER: "counters",
    TrackKind.SAMPLES: "samples",
}
_OTHER_THREADS: _GroupPath = (((len(TrackKind) + 1,), "other threads"),)


@frozen
class TreeNode:
    """A group, or a track.

    Args:
        title: for people.
        parent: position of the group that it lies in, None: the rank.
        track: index of the track; None: a group without slices of its own.
    """

    title: str
    parent: int | None
    track: int | None


def tree(events: RankEvents) -> list[TreeNode]:
    """Return the groups and tracks of a rank that hold events, each after the group that it lies in."""
    tracks = events.tracks.all
    used = used_tracks(events)
    top = _threads_on_top(events)
    inside = {i: _groups(events, tracks[i], i in top or tracks[i].base in top) for i in np.flatnonzero(used).tolist()}
    members = Counter(path for path in inside.values())
    places: dict[_GroupPath, int | None] = {}
    for index, path in inside.items():
        track = tracks[index]
        if track.kind is TrackKind.GPU_TIME:
            places[path] = index
            continue
        place: _Place = (track.kind, track.base, track.lane)
        title = track.title or track.name
        if path and members[path] == 1 and _is_subgroup(path):
            place, path = path[-1][0], path[:-1]
        for depth in range(1, len(path) + 1):
            places.setdefault(path[:depth], None)
        places[(*path, (place, title))] = index
    return _numbered(places)


def _numbered(places: dict[_GroupPath, int | None]) -> list[TreeNode]:
    """Return nodes in order; the path of no length is the rank itself, and none."""
    paths = sorted(path for path in places if path)
    numbers = {path: number for number, path in enumerate(paths)}
    return [TreeNode(path[-1][1], numbers.get(path[:-1]), places[path]) for path in paths]


def used_tracks(events: RankEvents) -> Flags:
    """Return which tracks hold anything."""
    used = np.zeros(len(events.tracks.all), bool)
    columns = [each.track for batches in (events.slices, events.instants, events.counters) for each in batches]
    for track in columns:
        used[distinct(track)] = True
    return used


def _threads_on_top(events: RankEvents) -> frozenset[int]:
    """Return the threads that launch work or set markers, all where none does."""
    calls = events.slices[0]
    marks = np.array([is_marker(text) for text in events.categories.texts], bool)
    chosen: Ints = calls.track[marks[calls.category]] if len(marks) else calls.track[:0]
    if calls.flows:
        chosen = np.concatenate([chosen, calls.track[calls.flows.counts > 0]])
    on_top = {events.tracks.all[index].base for index in distinct(chosen).tolist()}
    return frozenset(on_top or range(len(events.tracks.all)))


def _groups(events: RankEvents, track: Track, is_on_top: bool) -> _GroupPath:
    """Return the groups in which a track lies."""
    if track.kind is TrackKind.THREAD:
        return () if is_on_top else _OTHER_THREADS
    groups: _GroupPath = ()
    if track.agent is not None:
        groups = (_agent_group(events, track.agent, track.name),)
    if track.kind in _SUBGROUPS:
        groups = (*groups, ((track.kind,), _SUBGROUPS[track.kind]))
    return groups


def _agent_group(events: RankEvents, agent: int, track: str) -> tuple[_Place, str]:
    """Return the group of an agent, which the name of its track starts with: GPUs come first, unknown agents last."""
    known = list(events.agents)
    position = known.index(agent) if agent in events.agents else len(known)
    return (TrackKind.STREAM, agent not in events.gpus, position), events.agents.get(agent) or track.partition(" · ")[0]


def _is_subgroup(path: _GroupPath) -> bool:
    return path == _OTHER_THREADS or path[-1][1] in _SUBGROUPS.values()
