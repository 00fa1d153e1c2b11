"""Owns which API call launched which GPU operation: both carry the same correlation id (`stack_id`) in their rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rocpd.federate.run.rank_reader import RankReader
from rocpd.read.columns import columns
from rocpd.read.names import Names
from rocpd.summary.ops import Ops, read_ops
from rocpd.summary.reading import RankReading
from rocpd.trace.times import valid_times
from rocpd.types import NULL, Ints

_CALLS = """
SELECT R.id AS id, E.stack_id AS stack, R.start, R."end" FROM rocpd_region R JOIN rocpd_event E ON E.id = R.event_id
WHERE E.stack_id > 0"""


@dataclass(frozen=True)
class Links:
    """For each operation of a rank the call that launched it.

    Args:
        linked: places of the operations whose call is known.
        start, end: of their calls [ns].
        first: whether the operation is the first one of its call: a graph launch starts many.
    """

    linked: Ints
    start: Ints
    end: Ints
    first: np.ndarray[tuple[int], np.dtype[np.bool_]]


def link(reader: RankReader, ops: Ops) -> Links:
    """Find the call of each operation in the whole trace; of several calls with one id the outermost counts."""
    stack, start, end, row = columns(reader.whole(), "rocpd_region", _CALLS, ("stack", "start", "end", "id"))
    good = valid_times(start, end)
    order = np.lexsort((row, -end, start, stack))
    order = order[good[order]]
    order = order[_changes(stack[order])]
    stack, start, end = stack[order], start[order], end[order]
    if not len(stack):
        nothing = np.empty(0, np.int64)
        return Links(nothing, nothing, nothing, np.empty(0, bool))
    place = np.minimum(np.searchsorted(stack, ops.stack), len(stack) - 1)
    linked = np.flatnonzero((stack[place] == ops.stack) & (ops.stack != NULL))
    place = place[linked]
    by_time = np.lexsort((ops.start[linked], place))
    first = np.zeros(len(linked), bool)
    first[by_time[_changes(place[by_time])]] = True
    return Links(linked, start[place], end[place], first)


def started(mine: RankReading, ops: Ops) -> Ints:
    """Give when each operation began, also where its begin was cut off at the edge of a window."""
    if not mine.reader.part.values:
        return ops.start
    whole = read_ops(RankReading(mine.reader.whole(), mine.options), Names())
    codes = whole.row * 2 + whole.kind
    order = np.argsort(codes)
    found: Ints = whole.start[order][np.searchsorted(codes[order], ops.row * 2 + ops.kind)]
    return found


def _changes(values: Ints) -> Ints:
    """Give the places where a sorted array has a new value."""
    return np.flatnonzero(np.diff(values, prepend=values[:1] - 1))
