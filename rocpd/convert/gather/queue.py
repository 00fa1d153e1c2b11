"""The queue of each agent: a counter of operations that are launched and have not started."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from rocpd.base.types import NULL, Ints
from rocpd.convert.gather.context import Context
from rocpd.convert.model import Counters, Slices, Track, TrackKind
from rocpd.facts.columns import distinct, per_id
from rocpd.facts.timeline import waiting
from rocpd.schema.rules.launch import launching_regions


def depths(context: Context, calls: Slices, work: Sequence[Slices]) -> Counters:
    """Return how many operations wait on each agent; those whose call is unknown are not counted."""
    tracks = context.events.tracks.all
    agents, launched, started = [], [], []
    for slices in work:
        call = launching_regions(calls.stack, calls.start, calls.end, slices.stack)
        known = np.flatnonzero(call >= 0)
        agents.append(per_id(slices.track[known], lambda track: _agent(tracks[track])))
        launched.append(calls.end[call[known]])
        started.append(slices.start[known])
    columns = [np.concatenate(parts) for parts in (agents, launched, started)]
    parts = [_of_agent(context, agent, *columns) for agent in distinct(columns[0]).tolist()]
    track, time, value = (np.concatenate(column) for column in zip(*parts, strict=True)) if parts else np.zeros((3, 0))
    return Counters(track.astype(np.int64), time.astype(np.int64), value.astype(np.float64))


def _agent(track: Track) -> int:
    return NULL if track.agent is None else track.agent


def _of_agent(context: Context, agent: int, agents: Ints, launched: Ints, started: Ints) -> tuple[Ints, Ints, Ints]:
    rows = np.flatnonzero(agents == agent)
    times, depth = waiting(launched[rows], started[rows])
    make = partial(context.agent_track, agent, TrackKind.WAITING, "operations waiting", unit="")
    track = context.events.tracks.index(("waiting", agent), make)
    return np.full(len(times), track), times, depth
