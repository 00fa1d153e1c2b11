"""The steps of a rank as a track. Which they are, and when, says `rocpd.facts.steps`."""

from __future__ import annotations

import numpy as np

from rocpd.base.types import NULL
from rocpd.convert.gather.context import Context
from rocpd.convert.gather.lanes import spread
from rocpd.convert.model import RankEvents, Slices, Track, TrackKind
from rocpd.facts.steps import Steps, step_spans
from rocpd.schema.rules.steps import STEP_MARKER, is_step

CATEGORY = "step"
"""Category of the slices."""


def read_steps(context: Context) -> Steps:
    """Return the steps that lie, in part at least, in the window, on the common time line; cut where events are cut."""
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
    track = events.tracks.index(CATEGORY, lambda: Track("steps", TrackKind.STEPS)) if steps else NULL
    start, end = np.array(list(steps.values()), np.int64).reshape(-1, 2).T
    name = np.array([events.names.code(f"step {number}") for number in steps], np.int64)
    tracks = spread(events.tracks, np.full(len(steps), track), start, end)
    return Slices.calculated(tracks, (start, end), name, events.categories.code(CATEGORY))
