"""Owns the list of operations as text, in the layouts of RAPTOR's trace and of logduration's log."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np

from rocpd.errors import RocpdError, UsageError
from rocpd.summary.links import link
from rocpd.summary.op_trace import Trace, traces
from rocpd.summary.ops import KERNEL, OperationNames, read_ops
from rocpd.summary.reading import RankReading, Reading
from rocpd.types import NULL, Ints

_RAPTOR_HEAD = "GPU.Seq_Id PreGap_us      Start_ms        End_ms     Dur_us Kernel\n"
_LOG_HEAD = "kernel,dispatch,startNs,endNs\n"


def raptor(reading: Reading) -> Iterator[str]:
    """Yield the operations of each agent as `raptor.py --op-trace` writes them, copies by their direction.

    GPU is the agent id; times count from the start of the time line. Where there are several ranks, a line
    `# rank N, host` precedes each.

    Raises:
        UsageError: they are to be divided.
        RocpdError: there are none.
    """
    _check_whole(reading)
    several = len(reading.session.ranks) > 1
    is_empty = True
    for rank, trace in traces(reading):
        yield f"# rank {rank.number}, {rank.hostname}\n{_RAPTOR_HEAD}" if several else _RAPTOR_HEAD
        yield from _raptor_lines(trace)
        is_empty = False
    if is_empty:
        raise RocpdError("no kernels or copies in the selection")


def _check_whole(reading: Reading) -> None:
    """Refuse a division: these layouts have no columns for it."""
    if reading.by:
        raise UsageError("this format of op-trace can't be divided: it has no columns for that", "leave --by out")


def _raptor_lines(trace: Trace) -> Iterator[str]:
    columns = (trace.agent, trace.number, trace.gap, trace.start, trace.duration, trace.name)
    for agent, number, gap, start, length, name in zip(*(column.tolist() for column in columns), strict=True):
        head = f"{-1 if agent == NULL else agent}.{number:08d} {math.nan if gap == NULL else gap / 1000:9.1f}"
        times = f"{_milliseconds(start):>13} {_milliseconds(start + length):>13} {length / 1000:6.1f}"
        yield f"{head} {times} {trace.names[name] or '':>30}\n"


def _milliseconds(time: int) -> str:
    """Write ns as RAPTOR does.

    >>> _milliseconds(10496683)
    '      10.496683'
    """
    milliseconds, rest = divmod(time, 1_000_000)
    return f"{milliseconds:8d}.{rest:06d}"


def logduration(reading: Reading) -> Iterator[str]:
    """Yield the kernels of each rank in the order in which they ended, as logduration logs them.

    Times are as recorded. The time of dispatch is the start of the call that launched the kernel, or the kernel's own
    start where that call is not known.

    Raises:
        UsageError: they are to be divided.
        RocpdError: there are none.
    """
    log = KernelLog()
    yield from log.new_lines(reading)
    if log.is_empty:
        raise RocpdError("no kernels in the selection")


class KernelLog:
    """A log of kernels that remembers what it has written.

    Attributes:
        is_empty: whether nothing was written yet.
    """

    def __init__(self) -> None:
        self.is_empty = True
        self._last: dict[str, int] = {}  # GUID of a rank -> id of its last dispatch

    def new_lines(self, reading: Reading) -> Iterator[str]:
        """Yield the kernels that are new since the last time, rank by rank, in the order in which they ended.

        Raises:
            UsageError: they are to be divided.
        """
        _check_whole(reading)
        for rank, (last, names, columns) in reading.each(partial(_kernels, after=dict(self._last))):
            if self.is_empty and len(columns[0]):
                yield _LOG_HEAD
                self.is_empty = False
            for name, dispatch, start, end in zip(*(column.tolist() for column in columns), strict=True):
                yield f'"{names[name] or ""}",{dispatch},{start},{end}\n'
            self._last[rank.guid] = last


def _kernels(reading: RankReading, after: Mapping[str, int]) -> tuple[int, list[str | None], tuple[Ints, ...]]:
    """Return the last dispatch of one rank, its names, and name, dispatch, start and end of its new kernels.

    New is what comes after the last dispatch that was seen. A file that has not even that one was made anew.
    """
    names = OperationNames()
    ops = read_ops(reading, names, stacks=True)
    ops = ops.take(np.flatnonzero(ops.kind == KERNEL))
    last, seen = int(ops.row.max(initial=0)), after.get(reading.rank.guid, 0)
    ops = ops.take(np.flatnonzero(ops.row > (seen if last >= seen else 0)))
    links = link(reading.reader, ops)
    dispatch = ops.start.copy()
    dispatch[links.linked] = links.start
    order = np.lexsort((ops.row, ops.start, ops.end))
    return last, names.texts, tuple(column[order] for column in (ops.name, dispatch, ops.start, ops.end))
