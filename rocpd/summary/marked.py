"""Finds the innermost marker around a time on a thread. Pure: it gets regions, and never reads."""

from __future__ import annotations

import numpy as np

from rocpd.frozen import frozen
from rocpd.read.groups import grouped
from rocpd.read.names import Names
from rocpd.summary.regions import RankRegions
from rocpd.trace.markers import is_marker
from rocpd.trace.nesting import nest_times
from rocpd.types import NULL, Ints

_NO_TIMES = np.array([], np.int64)


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
    since, rows = nest_times(ranges.start, ranges.end).segments.get(None, (_NO_TIMES, _NO_TIMES))
    edges = np.append(np.iinfo(np.int64).min, since)
    name = np.append(NULL, np.where(rows >= 0, ranges.name[rows], NULL))
    last = np.append(edges[1:] != edges[:-1], True)  # of changes at one time
    edges, name = edges[last], name[last]
    changed = np.append(True, name[1:] != name[:-1])
    return Marked(edges[changed], name[changed])
