"""Orders starts and ends that happen at one time, so that slices close as they were opened.

At one time, ends come first (inner slices before outer ones), then zero-length slices of tracks that do not nest, then
starts (outer before inner), then zero-length slices and instants within what has just started.
"""

from __future__ import annotations

import numpy as np

from rocpd.base.frozen import frozen
from rocpd.base.types import Flags, Ints
from rocpd.convert.model import Slices, Track

_ENDS, _MARKS_FLAT, _STARTS, _MARKS = (phase << 56 for phase in range(4))


@frozen
class Ties:
    """Ranks among equal times.

    Args:
        lasting: whether a slice has a length.
        start: rank of its start; of a zero-length slice: of its start and end together.
        end: rank of its end; means nothing for zero-length slices.
    """

    lasting: Flags
    start: Ints
    end: Ints


def ties(slices: Slices, nests: Flags) -> Ties:
    """Rank the starts and ends of slices; `nests`: whether slices may lie within each other, for each track."""
    count = len(slices)
    position = np.empty(count, np.int64)
    position[np.lexsort((-slices.end, slices.start))] = np.arange(count)
    lasting = slices.end > slices.start
    phase = np.where(lasting, _STARTS, np.where(nests[slices.track], _MARKS, _MARKS_FLAT))
    return Ties(lasting, phase + position, _ENDS + count - position)


def instant_ties(count: int) -> Ints:
    """Rank instants: in row order, after all that starts at their time."""
    return _MARKS + np.arange(count, dtype=np.int64)


def nesting(tracks: list[Track]) -> Flags:
    """Whether slices of each track may lie within each other."""
    return np.array([track.nests for track in tracks], bool)
