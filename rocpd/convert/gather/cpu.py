"""Events on CPU threads: API calls, marker ranges and marks, samples; and the links from calls to GPU work.

A flow leads from an API call to each dispatch or copy that it launched, by the rule of `rocpd.schema.rules.launch`; a
counter shows the number of operations that are launched and have not started. Links never cross ranks, and a slice of
GPU work has at most one flow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from rocpd.base import NULL, Ints
from rocpd.convert.gather.context import Columns, Context, calls, documents, events, select
from rocpd.convert.gather.lanes import spread
from rocpd.convert.model import Annotation, Counters, Instants, Ragged, Slices, Track, TrackKind
from rocpd.convert.view_reader import json_value
from rocpd.facts.columns import Select, distinct, find_rows, look_up, per_id, statement
from rocpd.facts.regions import has_frames
from rocpd.facts.timeline import waiting
from rocpd.federate.run.rank_reader import RankReader
from rocpd.schema.rules.categories import NOT_DRAWN, is_marker, marker_categories
from rocpd.schema.rules.launch import launches, launching_regions

_ARGUMENTS = Select(
    "SELECT id, event_id, position, name, value FROM rocpd_arg",
    ("event_id", "position"),
    texts=("name", "value"),
    base="rocpd_arg",
)


def regions(context: Context) -> Slices:
    """Return regions on their threads, markers by their message."""
    with_events = context.options.annotate_args or any(map(is_marker, context.strings.values()))
    wanted = ["tid", "start", "end", "name_id", *(["event_id"] if with_events else [])]
    if context.reader.selects("rocpd_region"):
        wanted.append("id")
    rows = context.on_time_line(calls(context.reader, context.read_events("rocpd_region", wanted)), "regions")
    names = context.names(rows["name_id"], context.strings)
    if with_events:
        names = _by_message(context, names, rows["event_id"], f"category_id IN ({marker_categories()})")
    track = spread(context.events.tracks, per_id(rows["tid"], context.thread), rows["start"], rows["end"])
    slices = context.slices(rows | {"track": track, "name": names}, "region", None, ())
    arguments = _arguments(context, rows["event_id"]) if context.options.annotate_args else None
    return replace(slices, stack=launch_stacks(context.reader, rows), arguments=arguments)


SampleTracks: TypeAlias = dict[int, tuple[str, int | None]]
"""Id of a row of rocpd_track -> its name, and the id of its thread or None."""


def read_samples(context: Context) -> tuple[Columns, SampleTracks]:
    """Read the samples of a rank, track, time and event of each, and their tracks."""
    rows = context.read_events("rocpd_sample", ("track_id", "timestamp", "event_id"))
    tracks = context.reader.rows("SELECT id, name_id, tid FROM rocpd_track")
    return rows, {i: (context.strings.get(name) or f"track {i}", tid) for i, name, tid in tracks}


def samples(context: Context, rows: Columns, tracks: SampleTracks, values: frozenset[int]) -> Instants:
    """Return samples as instants: marks on their thread by message, others on their track.

    Args:
        rows, tracks: as from `read_samples`.
        values: ids of events that carry counter values; their samples are counters (see `pmc`) and left out here.
    """
    if values and len(rows["event_id"]):
        rows = select(rows, ~np.isin(rows["event_id"], np.fromiter(values, np.int64)))
    if joined := _joined(context):  # of a sample with a row per frame, one row stays
        frames = np.isin(rows["category_id"], [number for (number,) in context.reader.rows(NOT_DRAWN)])
        rows = select(rows, ~frames | np.isin(rows["event_id"], np.fromiter(joined, np.int64)))
    rows = context.on_time_line(rows | {"start": rows["timestamp"]}, "samples")
    marks = per_id(rows["category_id"], lambda i: is_marker(context.strings.get(i, "")))
    track = np.zeros(len(marks), np.int64)
    for chosen, track_of in ((marks == 1, _mark_track), (marks == 0, sample_track)):
        track[chosen] = per_id(rows["track_id"][chosen], lambda i: track_of(context, tracks, i))  # noqa: B023
    names = context.names(rows["track_id"], {i: name for i, (name, _) in tracks.items()})
    annotations: tuple[Annotation, ...] = ()
    if len(names):
        of_samples = "id IN (SELECT event_id FROM rocpd_sample)"
        names = _by_message(context, names, rows["event_id"], of_samples)
        annotations = _stacks(context, rows["event_id"], of_samples, joined)
    return Instants(track, rows["start"], names, context.categories(rows["category_id"], "sample"), annotations)


def sample_track(context: Context, tracks: SampleTracks, number: int) -> int:
    """Return the track of samples by its id in rocpd_track; `track ?` if it is unknown."""
    name, thread = tracks.get(number, ("track ?", None))
    tid = None if thread is None else context.events.tracks.all[context.thread(thread)].tid
    key = "sample", number if number in tracks else None
    return context.events.tracks.index(key, Track(name, TrackKind.SAMPLES, sampled=tid))


def _mark_track(context: Context, tracks: SampleTracks, number: int) -> int:
    thread = tracks.get(number, ("", None))[1]
    return context.thread(thread) if thread is not None else sample_track(context, tracks, number)


def _by_message(context: Context, names: Ints, events: Ints, where: str) -> Ints:
    """Return names, replaced by the message of the event if it has one; `where` chooses events."""
    code = context.events.names.code
    messages = (
        (event, json_value(text, "message")) for event, text in documents(context.reader, "extdata", where).items()
    )
    codes = look_up({event: code(message) for event, message in messages if message is not None}, events)
    return np.where(codes == NULL, names, codes)


def _joined(context: Context) -> dict[int, str]:
    """Return event -> call stack for samples whose frames are rows."""
    if not has_frames(context.reader):
        return {}
    return dict(context.reader.rows(f"SELECT event, call_stack FROM ({statement('sampled_frames')})"))


def _stacks(context: Context, events: Ints, where: str, joined: dict[int, str]) -> tuple[Annotation, ...]:
    annotations = []
    for column in ("call_stack", "line_info"):
        texts = documents(context.reader, column, where)
        if column == "call_stack":
            texts |= joined
        if texts:
            codes = look_up({event: context.events.strings.code(text) for event, text in texts.items()}, events)
            annotations.append(Annotation(column, np.maximum(codes, 0), text=True, present=codes != NULL))
    return tuple(annotations)


def _arguments(context: Context, events: Ints) -> tuple[Ragged, Ragged]:
    """Return names and values of the arguments of calls, in order of position."""
    piece = context.read(_ARGUMENTS)
    (event, position), texts = piece.numbers, piece.texts
    order = np.lexsort((position, event))
    order = order[(event[order] != NULL) & np.array([text is not None for text in texts[1]], bool)[order]]
    rows, known = find_rows(events, event[order])
    names, values = (
        np.array([names.code(str(column[i])) for i in order.tolist()], np.int64)[known]
        for names, column in zip((context.events.names, context.events.strings), texts, strict=True)
    )
    return Ragged.of(rows[known], names, len(events)), Ragged.of(rows[known], values, len(events))


def launch_stacks(reader: RankReader, regions: Columns) -> Ints:
    """Return the stack ids by which regions launch operations.

    If a selection leaves regions out, the launching region may be another one of the whole trace: then it is `NULL`.

    Args:
        reader: reads the rank.
        regions: `stack_id`, and `id` if there is a selection of regions.
    """
    if not reader.selects("rocpd_region"):
        return regions["stack_id"]
    whole = reader.whole()
    regions_of_all = calls(whole, events(whole, "rocpd_region", ("id", "start", "end")))
    launching = regions_of_all["id"][launches(*(regions_of_all[name] for name in ("stack_id", "start", "end")))]
    return np.where(np.isin(regions["id"], launching), regions["stack_id"], NULL)


def launching_calls(calls: Slices, work: Sequence[Slices]) -> list[Ints]:
    """Return the row of the launching call for each dispatch or copy; below 0 if it is missing.

    Args:
        calls: `stack` as from `launch_stacks`.
        work: dispatches, copies.
    """
    return [launching_regions(calls.stack, calls.start, calls.end, slices.stack) for slices in work]


def connect(rank: int, calls: Slices, work: Sequence[Slices], launching: Sequence[Ints]) -> tuple[Slices, list[Slices]]:
    """Return calls and work with flow ids: one per dispatch or copy with a launching call.

    Args:
        rank: rank number; flow ids are unique across ranks.
        calls, work: the slices to link.
        launching: result of `launching_calls`.
    """
    sources, ids, linked = [], [], []
    last = (rank + 1) << 40
    for slices, call in zip(work, launching, strict=True):
        rows = np.flatnonzero(call >= 0)
        numbers = last + 1 + np.arange(len(rows), dtype=np.int64)
        last += len(rows)
        sources.append(call[rows])
        ids.append(numbers)
        linked.append(replace(slices, flows=Ragged.of(rows, numbers, len(slices))))
    flows = Ragged.of(np.concatenate(sources), np.concatenate(ids), len(calls))
    return replace(calls, flows=flows), linked


def queue_depths(context: Context, calls: Slices, work: Sequence[Slices], launching: Sequence[Ints]) -> Counters:
    """Return for each agent the number of operations with a known call that are launched and have not started."""
    of_tracks = np.array([NULL if each.agent is None else each.agent for each in context.events.tracks.all], np.int64)
    known = [np.flatnonzero(call >= 0) for call in launching]
    agents = np.concatenate([of_tracks[slices.track[rows]] for slices, rows in zip(work, known, strict=True)])
    launched = np.concatenate([calls.end[call[rows]] for call, rows in zip(launching, known, strict=True)])
    started = np.concatenate([slices.start[rows] for slices, rows in zip(work, known, strict=True)])
    parts = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))]
    for agent in distinct(agents).tolist():
        times, depth = waiting(launched[agents == agent], started[agents == agent])
        track = context.agent_track("waiting", agent, TrackKind.WAITING, "operations waiting", unit="")
        parts.append((np.full(len(times), track), times, depth.astype(np.float64)))
    return Counters(*(np.concatenate(column) for column in zip(*parts, strict=True)))
