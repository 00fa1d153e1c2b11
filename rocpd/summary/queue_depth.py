"""How many operations wait on each agent over time: launched and not started. Pure but for the slices of time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from rocpd.summary.reading import AGENT, RANK, Reading
from rocpd.summary.result import Field, Picture, TableDefinition
from rocpd.trace.queue_depth import waiting
from rocpd.types import NULL, Floats, Ints, Row

TABLE = TableDefinition(
    "queue-depth",
    "How many operations are launched and have not started, for each agent over time.",
    (
        RANK,
        AGENT,
        Field("at_ns", "ns", "start of the slice, from the start of the time line"),
        Field("mean_depth", "", "operations that wait, the mean over the slice"),
        Field("max_depth", "", "most of them at a time"),
        Field("empty_percent", "%", "time in which none waits"),
    ),
    chart="rocpd.summary.plots:queue_depth",
    picture=Picture("rocpd.summary.pictures:queue_depth", is_all=True),
)


class Depths(NamedTuple):
    """The queue of one agent in each slice of time: mean, most, and share of the time without any [%]."""

    mean: Floats
    most: Ints
    empty: Floats


def edges_of(reading: Reading) -> tuple[list[int], dict[int, Ints]]:
    """Return the edges of the slices, from the start of the time line, and by the clock of each rank [ns]."""
    start, end = reading.line()
    bins = max(1, min(reading.options.bins, end - start))
    edges = [start + (end - start) * number // bins for number in range(bins + 1)]
    of_line = np.array(edges, np.int64)
    return edges, {rank.number: reading.shift(rank.number).to_clock(of_line) for rank in reading.session.ranks}


def depths(launched: Ints, started: Ints, edges: Ints) -> Depths:
    """Return the queue of an agent between edges [ns]; arguments as for `waiting`."""
    times, depth = waiting(launched, started)
    at = np.searchsorted(times, edges, side="right") - 1
    before = np.where(at >= 0, depth[np.maximum(at, 0)], 0) if len(times) else np.zeros(len(edges), np.int64)
    inside = (times > edges[0]) & (times < edges[-1])
    every = np.concatenate([edges, times[inside]])
    held = np.concatenate([before, depth[inside]])
    order = np.argsort(every, kind="stable")
    every, held = every[order], held[order]
    length = np.append(np.diff(every), 0)
    of = np.clip(np.searchsorted(edges, every, side="right") - 1, 0, len(edges) - 2)
    count = len(edges) - 1
    width = np.maximum(np.diff(edges), 1)
    most = np.zeros(count, np.int64)
    lasts = length > 0
    np.maximum.at(most, of[lasts], held[lasts])
    return Depths(
        np.bincount(of, held * length, count) / width,
        most,
        np.bincount(of, length * (held == 0), count) * 100 / width,
    )


def rows(edges: list[int], queues: Mapping[tuple[int, int], Depths]) -> Iterator[Row]:
    """Yield the rows of the table by rank and agent."""
    for rank, agent in sorted(queues):
        columns = (column.tolist() for column in queues[rank, agent])
        for at, *values in zip(edges, *columns, strict=False):
            yield (rank, None if agent == NULL else agent, at, *values)
