"""The layout of a rank in viewers: nesting of tracks, order of events at the same time, short names.

A rank holds its steps, the threads that launch work, a group per GPU with its streams on top, then all other tracks:
engineers find first on top what they look for first. Tracks without events are left out, and so are groups around a
single track. Of events at the same time, ends come first (inner slices before outer ones), then zero-length slices of
tracks that do not nest, then starts (outer before inner), then zero-length slices and instants within the slices just
started; so slices close in the reverse order of opening. Names of kernels are shortened together over all ranks.
Encodes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from rocpd.base import Flags, Ints, Progress, frozen
from rocpd.convert.deliver import Frame, RankPart, concatenate, open_part
from rocpd.convert.gather.collect import collect_for_viewers
from rocpd.convert.gather.context import Damage
from rocpd.convert.model import RankEvents, Slices, Track, TrackKind
from rocpd.convert.options import ConvertOptions
from rocpd.facts.columns import as_text, distinct
from rocpd.facts.regions import Steps
from rocpd.federate.federation import Federation
from rocpd.federate.run.rank_reader import STATEMENT_BYTES, RankReader
from rocpd.schema.rules.categories import is_marker
from rocpd.schema.rules.kernel_names import shown_name

_Place: TypeAlias = tuple[int, ...]
"""The sort key of a node among its siblings."""
_GroupPath: TypeAlias = tuple[tuple[_Place, str], ...]
"""The groups around a node, from the rank down: place and title of each."""

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
        parent: position of the enclosing group, None: the rank.
        track: index of the track; None: a group without slices of its own.
    """

    title: str
    parent: int | None
    track: int | None


def tree(events: RankEvents) -> list[TreeNode]:
    """Return the groups and tracks of a rank that hold events, each after its enclosing group."""
    tracks = events.tracks.all
    used = used_tracks(events)
    top = _threads_on_top(events)
    inside = {
        i: _groups_of(events, tracks[i], i in top or tracks[i].base in top) for i in np.flatnonzero(used).tolist()
    }
    members = Counter(path for path in inside.values())
    places: dict[_GroupPath, int | None] = {}
    for index, path in inside.items():
        track = tracks[index]
        if track.kind is TrackKind.GPU_TIME:
            places[path] = index
            continue
        place: _Place = (track.kind, track.base, track.lane)
        title = track.title or track.name
        is_subgroup = path == _OTHER_THREADS or (path and path[-1][1] in _SUBGROUPS.values())
        if is_subgroup and members[path] == 1:
            place, path = path[-1][0], path[:-1]
        for depth in range(1, len(path) + 1):
            places.setdefault(path[:depth], None)
        places[(*path, (place, title))] = index
    return _numbered(places)


def _numbered(places: dict[_GroupPath, int | None]) -> list[TreeNode]:
    """Return nodes in order; the empty path is the rank itself, which has no node."""
    paths = sorted(path for path in places if path)
    numbers = {path: number for number, path in enumerate(paths)}
    return [TreeNode(path[-1][1], numbers.get(path[:-1]), places[path]) for path in paths]


def used_tracks(events: RankEvents) -> Flags:
    """Whether each track holds any event."""
    used = np.zeros(len(events.tracks.all), bool)
    columns = [each.track for batches in (events.slices, events.instants, events.counters) for each in batches]
    for track in columns:
        used[distinct(track)] = True
    return used


def _threads_on_top(events: RankEvents) -> frozenset[int]:
    """Return the threads that launch work or set markers; all threads if none does."""
    calls = events.slices[0]
    marks = np.array([is_marker(text) for text in events.categories.texts], bool)
    chosen: Ints = calls.track[marks[calls.category]] if len(marks) else calls.track[:0]
    if calls.flows:
        chosen = np.concatenate([chosen, calls.track[calls.flows.counts > 0]])
    on_top = {events.tracks.all[index].base for index in distinct(chosen).tolist()}
    return frozenset(on_top or range(len(events.tracks.all)))


def _groups_of(events: RankEvents, track: Track, is_on_top: bool) -> _GroupPath:
    """Return the groups around a track."""
    if track.kind is TrackKind.THREAD:
        return () if is_on_top else _OTHER_THREADS
    groups: _GroupPath = ()
    if track.agent is not None:
        groups = (_agent_group(events, track.agent, track.name),)
    if track.kind in _SUBGROUPS:
        groups = (*groups, ((track.kind,), _SUBGROUPS[track.kind]))
    return groups


def _agent_group(events: RankEvents, agent: int, track: str) -> tuple[_Place, str]:
    """Return the group of an agent, whose name begins the name of its track: GPUs come first, unknown agents last."""
    known = list(events.agents)
    position = known.index(agent) if agent in events.agents else len(known)
    return (TrackKind.STREAM, agent not in events.gpus, position), events.agents.get(agent) or track.partition(" · ")[0]


_ENDS, _MARKS_FLAT, _STARTS, _MARKS = (phase << 56 for phase in range(4))


@frozen
class Ties:
    """Order among events at the same time.

    Args:
        lasting: whether a slice has a length.
        start: position of its start; of a zero-length slice: of its start and end together.
        end: position of its end; undefined for zero-length slices.
    """

    lasting: Flags
    start: Ints
    end: Ints


def ties(slices: Slices, nests: Flags) -> Ties:
    """Order the starts and ends of slices; `nests`: for each track, whether slices may lie within each other."""
    count = len(slices)
    position = np.empty(count, np.int64)
    position[np.lexsort((-slices.end, slices.start))] = np.arange(count)
    lasting = slices.end > slices.start
    phase = np.where(lasting, _STARTS, np.where(nests[slices.track], _MARKS, _MARKS_FLAT))
    return Ties(lasting, phase + position, _ENDS + count - position)


def instant_ties(count: int) -> Ints:
    """Order instants: in row order, after all starts at their time."""
    return _MARKS + np.arange(count, dtype=np.int64)


def nesting(tracks: list[Track]) -> Flags:
    """Whether slices of each track may lie within each other."""
    return np.array([track.nests for track in tracks], bool)


_COPY_TITLES = {
    f"MEMORY_COPY_{source}_TO_{to}": f"{source[0]}2{to[0]}"
    for source in ("HOST", "DEVICE")
    for to in ("HOST", "DEVICE")
}
_DISPATCHED = """SELECT id, display_name, kernel_name FROM rocpd_info_kernel_symbol
WHERE id IN (SELECT kernel_id FROM rocpd_kernel_dispatch)"""


def titles_of_job(session: Federation) -> dict[str, str]:
    """Return full name -> title for copies and for kernels that ran on any rank, where the title differs."""
    from rocpd.facts.short_names import short_names  # OTF2 has no titles

    names = {name for _, of_rank in session.map_ranks(_kernel_names, brief_bytes=STATEMENT_BYTES) for name in of_rank}
    return _COPY_TITLES | {name: short for name, short in short_names(sorted(names)).items() if short != name}


def _kernel_names(reader: RankReader) -> list[str]:
    return [shown_name(number, *map(as_text, names)) for number, *names in reader.rows(_DISPATCHED)]


Encode: TypeAlias = Callable[[RankEvents, RankPart], Iterator[bytes | memoryview]]
"""Encodes one rank; a module-level function."""


def write_for_viewers(
    encode: Encode,
    session: Federation,
    frame: Frame,
    options: ConvertOptions,
    progress: Progress | None,
    job: Callable[[list[Steps]], bytes] = lambda _: b"",
) -> tuple[Path, ...]:
    """Write all ranks for viewers; `job` makes the bytes after the ranks of an output from the steps of each rank."""
    work = partial(_write_rank, encode, titles_of_job(session))
    paths, answers = concatenate(
        work, session, frame, options, progress, lambda some: job([steps for steps, _ in some])
    )
    Damage.report((damage for _, damage in answers), session.note)
    return paths


def _write_rank(encode: Encode, titles: Mapping[str, str], part: RankPart, reader: RankReader) -> tuple[Steps, Damage]:
    damage = Damage()
    events, steps = collect_for_viewers(reader, part.placement, part.options, damage, titles)
    with open_part(part) as file:
        for data in encode(events, part):
            file.write(data)
    return steps, damage
