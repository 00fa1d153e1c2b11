"""Finds the calls that launched operations, by the rule of `rocpd.schema.rules.launch`."""

from __future__ import annotations

import numpy as np

from rocpd.base.frozen import frozen
from rocpd.base.types import Ints
from rocpd.facts.columns import columns
from rocpd.facts.operations import OperationNames, Ops, read_ops
from rocpd.facts.rank import RankReading
from rocpd.facts.statements import statement
from rocpd.federate.run.rank_reader import RankReader
from rocpd.schema.rules.launch import launches, launching_regions
from rocpd.schema.rules.times import valid_times

_COLUMNS = ("id", "stack", "start", "end")
_THREADS = ("stack", "start", "end", "thread")
NO_THREAD = -2
"""The thread of a call that is not known: no region has it."""


@frozen
class Links:
    """For each operation of a rank the call that launched it.

    Args:
        linked: numbers of the operations whose call is known.
        call: ids of their calls.
        start, end: of their calls [ns].
        first: whether the operation is the first one of its call: a graph launch starts many.
    """

    linked: Ints
    call: Ints
    start: Ints
    end: Ints
    first: np.ndarray[tuple[int], np.dtype[np.bool_]]


def link(reader: RankReader, ops: Ops) -> Links:
    """Find the call of each operation in the whole trace; calls whose times are invalid are left out."""
    row, stack, start, end = columns(reader.whole(), "rocpd_region", statement("regions"), _COLUMNS)
    call = launching_regions(stack, start, end, ops.stack)
    linked = np.flatnonzero(call >= 0)
    linked = linked[valid_times(start[call[linked]], end[call[linked]])]
    call = call[linked]
    by_time = np.lexsort((ops.start[linked], call))
    first = np.zeros(len(linked), bool)
    first[by_time[np.flatnonzero(np.diff(call[by_time], prepend=-1))]] = True
    return Links(linked, row[call], start[call], end[call], first)


def launch_calls(reader: RankReader, stacks: Ints) -> tuple[Ints, Ints]:
    """Return thread and start [ns] of the call, in the whole trace, that launched each operation.

    Args:
        reader: reads the rank.
        stacks: stack id of each operation.

    Returns:
        threads, `NO_THREAD` where no call is known, and starts, 0 there.
    """
    stack, start, end, thread = columns(reader.whole(), "rocpd_region", statement("regions"), _THREADS)
    call = launching_regions(stack, start, end, stacks)
    threads, at = np.full(len(stacks), NO_THREAD), np.zeros(len(stacks), np.int64)
    launched = np.flatnonzero(call >= 0)
    threads[launched], at[launched] = thread[call[launched]], start[call[launched]]
    return threads, at


def launching_rows(reader: RankReader) -> Ints:
    """Return the row ids of the regions that launch operations, in the whole trace."""
    row, *call = columns(reader.whole(), "rocpd_region", statement("regions"), _COLUMNS)
    return row[launches(*call)]


def started(reading: RankReading, ops: Ops) -> Ints:
    """Return the start of each operation [ns], also where the edge of a window cut it off."""
    if not reading.reader.cuts:
        return ops.start
    uncut = read_ops(reading.whole(), OperationNames())
    codes = uncut.row * 2 + uncut.kind
    order = np.argsort(codes)
    start: Ints = uncut.start[order][np.searchsorted(codes[order], ops.row * 2 + ops.kind)]
    return start
