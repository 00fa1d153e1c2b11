"""The steps of a rank as a track, and how those of all ranks make up the steps of the job."""

from __future__ import annotations

import numpy as np

from rocpd.base.types import NULL
from rocpd.convert.gather.context import Context
from rocpd.convert.gather.lanes import spread
from rocpd.convert.gather.marked import marker_rows
from rocpd.convert.model import RankEvents, Slices, Track, TrackKind
from rocpd.facts.columns import distinct
from rocpd.federate.select.landmarks import steps_of_rank
from rocpd.schema.rules.steps import STEP_MARKER, MarkerRange, is_step, step_times

CATEGORY = "step"
"""Category of the slices."""

StepTimes = dict[int, tuple[int, int]]
"""Number of a step -> its start and end on the common time line [ns]."""


def read_steps(context: Context, calls: Slices) -> StepTimes:
    """Return the steps of a rank that lie, in part at least, in the window; one that cuts events cuts steps too."""
    if not context.reader.selects("rocpd_region"):
        return _steps(context.events, calls)
    # What the selection leaves out counts in the numbering.
    window, to_line = context.placement.window, context.placement.shift.to_line
    steps = {
        number: (to_line(start), to_line(end))
        for number, (start, end) in steps_of_rank(is_step(STEP_MARKER), context.reader).items()
    }
    if window is None:
        return steps
    low = NULL if window.start is None else window.start
    high = np.iinfo(np.int64).max if window.end is None else window.end
    inside = {number: (start, end) for number, (start, end) in steps.items() if end > low and start < high}
    if not context.reader.cuts:
        return inside
    return {number: (max(start, low), min(end, high)) for number, (start, end) in inside.items()}


def _steps(events: RankEvents, calls: Slices) -> StepTimes:
    pattern = is_step(STEP_MARKER)
    rows = marker_rows(events, calls)
    known = {name: bool(pattern.search(events.names.texts[name])) for name in distinct(calls.name[rows]).tolist()}
    rows = rows[[known[name] for name in calls.name[rows].tolist()]] if known else rows
    columns = (calls.name, calls.start, calls.end, calls.track)
    ranges = (
        MarkerRange(events.names.texts[name], start, end, events.tracks.all[track].base)
        for name, start, end, track in zip(*(column[rows].tolist() for column in columns), strict=True)
    )
    return step_times(list(ranges), pattern)


def step_slices(events: RankEvents, steps: StepTimes) -> Slices:
    """Return steps as slices on a new track."""
    track = events.tracks.index(CATEGORY, lambda: Track("steps", TrackKind.STEPS)) if steps else NULL
    start, end = np.array(list(steps.values()), np.int64).reshape(-1, 2).T
    name = np.array([events.names.code(f"step {number}") for number in steps], np.int64)
    tracks = spread(events.tracks, np.full(len(steps), track), start, end)
    return Slices.calculated(tracks, (start, end), name, events.categories.code(CATEGORY))
