"""Finds the innermost marker around a time on a thread. Pure: it gets regions, and never reads."""

from __future__ import annotations

import numpy as np

from rocpd.frozen import frozen
from rocpd.read.groups import grouped
from rocpd.read.names import Names
from rocpd.summary.regions import RankRegions
from rocpd.trace.markers import is_marker
from rocpd.types import NULL, Ints


@frozen
class Marked:
    """The innermost marker of a thread at any time.

    Args:
        edges: [ns], ascending; the first one lies before all times.
        name: number of the message, from each edge to the next one; `NULL` outside of markers.
    """

    edges: Ints
    name: Ints

    def at(self, times: Ints) -> Ints:
        """Return the number of the message at each of some times [ns], `NULL` outside of markers."""
        names: Ints = self.name[np.searchsorted(self.edges, times, side="right") - 1]
        return names


def marked_threads(regions: RankRegions, names: Names) -> dict[int, Marked]:
    """Return the innermost markers of each thread."""
    codes = [code for code in np.unique(regions.category).tolist() if is_marker(names.texts[code] or "")]
    markers = regions.take(np.flatnonzero(np.isin(regions.category, codes)))
    return {thread: innermost(markers.take(rows)) for (thread,), rows in grouped([markers.thread])}


def innermost(ranges: RankRegions) -> Marked:
    """Return, for the ranges of one thread, which one is open that started last."""
    starts, ends, names = ranges.start.tolist(), ranges.end.tolist(), ranges.name.tolist()
    changes = sorted(
        [(end, 0, row) for row, end in enumerate(ends)] + [(start, 1, row) for row, start in enumerate(starts)]
    )
    edges, inside = [int(np.iinfo(np.int64).min)], [NULL]
    opened: list[int] = []
    closed: set[int] = set()
    for time, starting, row in changes:
        if starting and ends[row] > time:
            opened.append(row)
        elif not starting:
            closed.add(row)
        while opened and opened[-1] in closed:
            opened.pop()
        name = names[opened[-1]] if opened else NULL
        if time == edges[-1]:
            inside[-1] = name
        elif name != inside[-1]:
            edges.append(time)
            inside.append(name)
    return Marked(np.array(edges, np.int64), np.array(inside, np.int64))
