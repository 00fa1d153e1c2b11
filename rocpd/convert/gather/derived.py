"""Tracks that viewers show beside events, calculated from them: work of GPUs, markers on GPUs, steps.

The work of GPUs over time (computing, communicating, both, copying or none) is the overview of a collapsed rank. The
work of a marker range is all work that its own thread launched during it. `rocpd.facts.regions` decides which steps
there are, and when. Only steps need reading: the other tracks follow from calls, work and flows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from rocpd.base import NULL, Flags, Ints, frozen
from rocpd.convert.gather.context import Context
from rocpd.convert.gather.lanes import spread
from rocpd.convert.model import Annotation, RankEvents, Slices, Track, TrackKind
from rocpd.facts.columns import distinct
from rocpd.facts.regions import Steps, step_spans
from rocpd.facts.timeline import COMMUNICATION, COMPUTE, COPIES, HIDES_COMMUNICATION, KINDS, PARTS, busy_pieces
from rocpd.schema.rules.categories import is_marker
from rocpd.schema.rules.kernel_categories import is_communication
from rocpd.schema.rules.steps import STEP_MARKER, is_step

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
    base = np.array([track.base for track in events.tracks.all], np.int64)
    threads = base[calls.track]
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
