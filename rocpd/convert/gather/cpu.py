"""Events on CPU threads: API calls, marker ranges and marks, samples; and the links from calls to GPU work.

A flow leads from an API call to each dispatch or copy that it launched, by the rule of `rocpd.schema.rules.launch`; a
counter shows the number of operations that are launched and have not started. Links never cross ranks, and a slice of
GPU work has at most one flow.

Tracks that viewers show beside events follow from them: work of GPUs, markers on GPUs, steps. The work of GPUs over
time (computing, communicating, both, copying or none) is the overview of a collapsed rank. The work of a marker range
is all work that its own thread launched during it. `rocpd.facts.regions` decides which steps there are, and when.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from rocpd.base import NULL, Flags, Ints, frozen
from rocpd.convert.gather.context import Columns, Context, calls, documents, events, select
from rocpd.convert.gather.lanes import spread
from rocpd.convert.model import Annotation, Counters, Instants, Ragged, RankEvents, Slices, Track, TrackKind
from rocpd.convert.view_reader import json_value
from rocpd.facts.columns import Select, distinct, find_rows, look_up, per_id, statement
from rocpd.facts.regions import Steps, has_frames, step_spans
from rocpd.facts.timeline import COMMUNICATION, COMPUTE, COPIES, HIDES_COMMUNICATION, KINDS, PARTS, busy_pieces, waiting
from rocpd.federate.run.rank_reader import RankReader
from rocpd.schema.rules.categories import NOT_DRAWN, is_marker, marker_categories
from rocpd.schema.rules.kernel_categories import is_communication
from rocpd.schema.rules.launch import launches, launching_regions
from rocpd.schema.rules.steps import STEP_MARKER, is_step

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
    return replace(calls, flows=Ragged.of(np.concatenate(sources), np.concatenate(ids), len(calls))), linked


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


GPU_TIME, MARKED, STEP = "gpu_time", "gpu_marker", "step"
"""Categories of the slices."""

_SHORTEST_GAP_NS = 10_000
"""Shorter pauses within one kind of work are not shown, such as those between consecutive kernels [ns]."""
_HIDDEN = len(KINDS)
_NAMES = {**dict(enumerate(PARTS[:_HIDDEN])), _HIDDEN: "hidden communication"}


def gpu_time(events: RankEvents, kernels: Slices, copies: Slices) -> Slices:
    """Return the work of the GPUs of a rank together and, if it uses several, of each GPU: on new tracks."""
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
    """Return periods of one state each, in order of time: start, end, state, and the busy time within [ns]."""
    pieces, part, hides = busy_pieces(start, end, what)
    state = np.where((part == COMPUTE) & (hides & HIDES_COMMUNICATION > 0), _HIDDEN, part)
    goes_on = (np.diff(state) == 0) & (pieces.start[1:] - pieces.end[:-1] < _SHORTEST_GAP_NS)
    first = np.flatnonzero(np.append(True, ~goes_on)[: len(state)])
    if not len(first):
        return pieces.start, pieces.end, state, state
    ends = pieces.end[np.append(first[1:] - 1, len(state) - 1)]
    return pieces.start[first], ends, state[first], np.add.reduceat(pieces.length, first)


def _slices(events: RankEvents, parts: Sequence[tuple[int | None, Ints, Ints, Ints, Ints]]) -> Slices:
    columns: list[list[Ints]] = [[np.zeros(0, np.int64)] * 5]
    for gpu, start, end, what, time in parts:
        name = "GPU time" if gpu is None else f"{events.agents[gpu]} · time"
        shown = events.tracks.index((GPU_TIME, gpu), Track(name, TrackKind.GPU_TIME, agent=gpu))
        columns.append([np.full(len(start), shown), start, end, what, time])
    track, start, end, what, time = (np.concatenate(column) for column in zip(*columns, strict=True))
    numbers, kinds = (np.array([texts.code(_NAMES[n]) for n in _NAMES]) for texts in (events.names, events.kinds))
    category, annotations = events.categories.code(GPU_TIME), (Annotation("time_ns", time),)
    return Slices.calculated(track, (start, end), numbers[what], category, kinds[what], annotations)


@frozen
class _Launched:
    """Operations of one GPU with a known call, in order of thread and time of the call."""

    thread: Ints
    called: Ints
    start: Ints
    end: Ints


def marked(events: RankEvents, calls: Slices, work: Sequence[Slices], launching: Sequence[Ints]) -> Slices:
    """Return the extent of the work of each marker range, from first start to last end, on a new track per GPU.

    Args:
        events: the rank.
        calls, work: calls, and the work that they launch.
        launching: row of the launching call for each work, as from `launching_calls`.
    """
    marks = np.array([is_marker(text) for text in events.categories.texts], bool)
    rows = np.flatnonzero(marks[calls.category] & (calls.end > calls.start)) if len(marks) else np.zeros(0, np.int64)
    threads = np.array([track.base for track in events.tracks.all], np.int64)[calls.track]
    parts = [[np.zeros(0, np.int64)] * 4]
    for agent, launched in _by_agent(events, calls, threads, zip(work, launching, strict=True)) if len(rows) else ():
        marker, start, end = _extents(launched, threads[rows], calls.start[rows], calls.end[rows])
        title = f"{events.agents.get(agent, 'agent ?')} · markers"
        marked_on = Track(title, TrackKind.MARKED, "markers", nests=True, agent=agent)
        shown = np.full(len(marker), events.tracks.index((MARKED, agent), marked_on))
        parts.append([shown, start, end, calls.name[rows[marker]]])
    track, start, end, name = (np.concatenate(column) for column in zip(*parts, strict=True))
    tracks = spread(events.tracks, track, start, end)
    return Slices.calculated(tracks, (start, end), name, events.categories.code(MARKED))


def _by_agent(
    events: RankEvents, calls: Slices, threads: Ints, work: Iterable[tuple[Slices, Ints]]
) -> Iterator[tuple[int, _Launched]]:
    """Yield each GPU that ran work with a known call, and this work."""
    columns = []
    for slices, calls_of in work:
        row = np.flatnonzero(calls_of >= 0)
        call = calls_of[row]
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
    """Return the positions of markers that launched work, and the first start and last end of this work."""
    first, last = np.zeros(len(threads), np.int64), np.zeros(len(threads), np.int64)
    for thread in distinct(threads).tolist():
        rows = np.flatnonzero(threads == thread)
        low, high = np.searchsorted(launched.thread, [thread, thread + 1])
        called = launched.called[low:high]
        first[rows] = low + np.searchsorted(called, start[rows])
        last[rows] = low + np.searchsorted(called, end[rows])
    launching = np.flatnonzero(last > first)
    bounds = np.stack([first[launching], last[launching]], 1).ravel()
    starts, ends = np.append(launched.start, 0), np.append(launched.end, 0)
    return launching, np.minimum.reduceat(starts, bounds)[::2], np.maximum.reduceat(ends, bounds)[::2]


def read_steps(context: Context) -> Steps:
    """Return the steps that overlap the window, on the common time line; cut where events are cut."""
    window, to_line = context.placement.window, context.placement.shift.to_line
    spans = step_spans(context.reader, is_step(STEP_MARKER))
    steps = {number: (to_line(start), to_line(end)) for number, (start, end) in spans.items()}
    if window is None:
        return steps
    low = NULL if window.start is None else window.start
    high = np.iinfo(np.int64).max if window.end is None else window.end
    inside = {number: (start, end) for number, (start, end) in steps.items() if end > low and start < high}
    if not context.reader.cuts:
        return inside
    return {number: (max(start, low), min(end, high)) for number, (start, end) in inside.items()}


def step_slices(events: RankEvents, steps: Steps) -> Slices:
    """Return steps as slices on a new track."""
    track = events.tracks.index(STEP, Track("steps", TrackKind.STEPS)) if steps else NULL
    start, end = np.array(list(steps.values()), np.int64).reshape(-1, 2).T
    name = np.array([events.names.code(f"step {number}") for number in steps], np.int64)
    tracks = spread(events.tracks, np.full(len(steps), track), start, end)
    return Slices.calculated(tracks, (start, end), name, events.categories.code(STEP))
