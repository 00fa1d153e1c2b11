"""Flows: from an API call to each dispatch or copy that it launched, by the rule of `rocpd.schema.rules.launch`.

And between the two, how many operations wait.

Never links across ranks, and never gives a slice of GPU work more than one flow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rocpd.base import NULL, Ints
from rocpd.convert.gather.context import Columns, Context, calls, events
from rocpd.convert.model import Counters, Ragged, Slices, TrackKind
from rocpd.facts.columns import distinct
from rocpd.facts.timeline import waiting
from rocpd.federate.run.rank_reader import RankReader
from rocpd.schema.rules.launch import launches, launching_regions


def launch_stacks(reader: RankReader, regions: Columns) -> Ints:
    """Return the stack ids by which regions launch operations.

    Where a selection leaves regions out, another one of the whole trace may be the launching one: then it is `NULL`.

    Args:
        reader: reads the rank.
        regions: `stack_id`, and `id` where a selection is made among regions.
    """
    if not reader.selects("rocpd_region"):
        return regions["stack_id"]
    whole = reader.whole()
    regions_of_all = calls(whole, events(whole, "rocpd_region", ("id", "start", "end")))
    launching = regions_of_all["id"][launches(*(regions_of_all[name] for name in ("stack_id", "start", "end")))]
    return np.where(np.isin(regions["id"], launching), regions["stack_id"], NULL)


def launching_calls(calls: Slices, work: Sequence[Slices]) -> list[Ints]:
    """Return for each dispatch or copy the row of the call that launched it, below 0 where that is not there.

    Args:
        calls: `stack` as from `launch_stacks`.
        work: dispatches, copies.
    """
    return [launching_regions(calls.stack, calls.start, calls.end, slices.stack) for slices in work]


def connect(rank: int, calls: Slices, work: Sequence[Slices], launching: Sequence[Ints]) -> tuple[Slices, list[Slices]]:
    """Return calls and work with flow ids: one per dispatch or copy whose launching call is there.

    Args:
        rank: rank number; flow ids are unique across ranks.
        calls, work: what is linked.
        launching: as from `launching_calls`.
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
    """Return for each agent how many operations are launched and have not started, of those whose call is known."""
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
