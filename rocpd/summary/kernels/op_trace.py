"""The list of every GPU operation in order, each with the gap before it; also as RAPTOR and logduration write it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rocpd.base import NULL, Floats, Ints, RocpdError, Row, UsageError
from rocpd.base.texts import visible
from rocpd.facts.columns import grouped
from rocpd.facts.operations import KERNEL, OperationNames, Ops, link, read_ops
from rocpd.facts.rank import By, RankReading
from rocpd.facts.spread import Spread
from rocpd.federate.open.identify import Rank
from rocpd.summary.kernels.variability import scores, typical_of
from rocpd.summary.reading import AGENT, RANK, Reading
from rocpd.summary.result import Field, Summary, by_name, table_of

if TYPE_CHECKING:
    import pyarrow as pa


TABLES = by_name(
    table_of(
        "op-trace",
        "Every kernel and copy, by rank and agent (--by stream: by rank and stream) in the order of their starts.",
        RANK,
        AGENT,
        Field("stream", "", "HIP stream id", True),
        Field("number", "", "position on its agent (or stream), from 1"),
        Field("gap_ns", "ns", "from the latest end of all before it, 0 while one still runs, NULL for the first"),
        Field("start_ns", "ns", "start, from the start of the time line"),
        Field("duration_ns", "ns", "end - start"),
        Field("kind", "", "kernel or copy", True),
        Field("name", "", "kernel, or direction of the copy", is_kernel=True),
        Field("z_score", "", "distance from the mean of its name on the rank, in deviations", True),
        Field("median_score", "", "from the median, by 1.4826 times the median of such distances", True),
    )
)

_KINDS = ("kernel", "copy")  # by their numbers
_MINOR_BY_STREAM = ("agent", "kind", "z_score", "median_score")


class Trace(NamedTuple):
    """The operations of one rank, lane by lane (agent, or stream when that divides) in the order of their starts.

    Args:
        names: texts of `name`.
        agent, stream: ids, `NULL` where unknown.
        number: position in the lane, from 1.
        gap: time since the latest end of all before it [ns], 0 while one still runs, `NULL` for the first.
        start: recorded start [ns].
        duration: duration [ns].
        kind: 0 kernel, 1 copy.
        name: number in `names`.
        z_score, median_score: distance of the duration from others of the name; NaN where nothing is far.
    """

    names: list[str | None]
    agent: Ints
    stream: Ints
    number: Ints
    gap: Ints
    start: Ints
    duration: Ints
    kind: Ints
    name: Ints
    z_score: Floats
    median_score: Floats


def op_trace(reading: Reading) -> Iterator[Summary]:
    """List the operations; rows are read anew each time the Summary is iterated, rank by rank.

    Raises:
        RocpdError: there are no operations.
    """
    table = TABLES["op-trace"]
    if reading.by is By.STREAM:  # narrow terminals keep the columns of the division
        table = replace(table, fields=tuple(replace(f, minor=f.name in _MINOR_BY_STREAM) for f in table.fields))
    listed = Summary(table, table.fields, partial(_rows, reading), batches=partial(_batches, reading))
    if not listed.first(1):
        raise RocpdError("no kernels or copies in the selection")
    yield listed


def _rows(reading: Reading) -> Iterator[Row]:
    for rank, trace in traces(reading):
        numbers = ([None if value == NULL else value for value in column.tolist()] for column in trace[1:-4])
        texts = [_KINDS[kind] for kind in trace.kind.tolist()], [trace.names[name] for name in trace.name.tolist()]
        far = ([None if math.isnan(score) else score for score in column.tolist()] for column in trace[-2:])
        yield from zip(repeat(rank.number), *numbers, *texts, *far)


def traces(reading: Reading) -> Iterator[tuple[Rank, Trace]]:
    """Yield the operations of each rank that has some; starts count from the start of the time line."""
    for rank, trace in reading.each(_of_rank):
        if len(trace.start):
            yield rank, trace._replace(start=reading.shift(rank.number).to_line(trace.start))


def _batches(reading: Reading) -> pa.RecordBatchReader:
    import pyarrow as pa

    kinds = {"kind": pa.string(), "name": pa.string(), "z_score": pa.float64(), "median_score": pa.float64()}
    schema = pa.schema({field.name: kinds.get(field.name, pa.int64()) for field in TABLES["op-trace"].fields})

    def read() -> Iterator[pa.RecordBatch]:
        for rank, trace in traces(reading):
            columns = [pa.array(column, mask=column == NULL) for column in trace[1:-4]]
            kind = pa.array(_KINDS).take(pa.array(trace.kind))
            name = pa.array(trace.names, pa.string()).take(pa.array(trace.name))
            ranks = pa.array(np.full(len(kind), rank.number))
            far = [pa.array(column, mask=np.isnan(column)) for column in trace[-2:]]
            yield pa.record_batch([ranks, *columns, kind, name, *far], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, read())


def _of_rank(reading: RankReading) -> Trace:
    """Return the operations of one rank in order."""
    names = OperationNames()
    ops = read_ops(reading, names)
    lanes = [_lane(ran) for _, ran in ops.lanes(reading.options.by)] or [(np.empty(0, np.int64),) * 8]
    agent, stream, number, gap, start, duration, kind, name = map(np.concatenate, zip(*lanes, strict=True))
    return Trace(names.texts, agent, stream, number, gap, start, duration, kind, name, *_scores(name, duration))


def _scores(names: Ints, durations: Ints) -> tuple[Floats, Floats]:
    """Return the distance of each duration from those of its name, by the mean and by the median."""
    by_mean, by_median = np.empty(len(names)), np.empty(len(names))
    for _, rows in grouped([names]):
        ways = typical_of(Spread.of(durations[rows]))
        by_mean[rows], by_median[rows] = (scores(durations[rows], typical) for typical in ways)
    return by_mean, by_median


def _lane(ops: Ops) -> tuple[Ints, ...]:
    ops = ops.take(np.lexsort((ops.row, ops.kind, ops.end, ops.start)))
    numbers = np.arange(1, len(ops) + 1)
    return ops.agent, ops.stream, numbers, ops.gaps_before(), ops.start, ops.duration, ops.kind, ops.name


_RAPTOR_HEAD = "GPU.Seq_Id PreGap_us      Start_ms        End_ms     Dur_us Kernel\n"
_LOG_HEAD = "kernel,dispatch,startNs,endNs\n"


def raptor(reading: Reading) -> Iterator[str]:
    """Yield the operations of each agent as `raptor.py --op-trace` writes them, copies by their direction.

    GPU is the agent id; times count from the start of the time line. With several ranks, a line `# rank N, host`
    precedes each.

    Raises:
        UsageError: a division is asked for.
        RocpdError: there are no operations.
    """
    _check_whole(reading)
    several = len(reading.session.ranks) > 1
    is_empty = True
    for rank, trace in traces(reading):
        yield f"# rank {rank.number}, {visible(rank.hostname or '')}\n{_RAPTOR_HEAD}" if several else _RAPTOR_HEAD
        columns = (trace.agent, trace.number, trace.gap, trace.start, trace.duration, trace.name)
        for agent, number, gap, start, length, name in zip(*(column.tolist() for column in columns), strict=True):
            head = f"{-1 if agent == NULL else agent}.{number:08d} {math.nan if gap == NULL else gap / 1000:9.1f}"
            times = f"{_milliseconds(start):>13} {_milliseconds(start + length):>13} {length / 1000:6.1f}"
            yield f"{head} {times} {visible(trace.names[name] or ''):>30}\n"
        is_empty = False
    if is_empty:
        raise RocpdError("no kernels or copies in the selection")


def _check_whole(reading: Reading) -> None:
    """Refuse a division, for which these layouts have no columns."""
    if reading.by:
        raise UsageError("this format of op-trace can't be divided: it has no columns for that", "leave --by out")


def _milliseconds(time: int) -> str:
    """Return ns in RAPTOR's form of milliseconds.

    >>> _milliseconds(10496683)
    '      10.496683'
    """
    milliseconds, rest = divmod(time, 1_000_000)
    return f"{milliseconds:8d}.{rest:06d}"


def logduration(reading: Reading) -> Iterator[str]:
    """Yield the kernels of each rank in the order in which they ended, as logduration logs them.

    Times are as recorded. The time of dispatch is the start of the call that launched the kernel; if that call is not
    known, the start of the kernel.

    Raises:
        UsageError: a division is asked for.
        RocpdError: there are no kernels.
    """
    log = KernelLog()
    yield from log.new_lines(reading)
    if log.is_empty:
        raise RocpdError("no kernels in the selection")


class KernelLog:
    """A log of kernels that remembers which of them it has written.

    Attributes:
        is_empty: whether nothing was written yet.
    """

    def __init__(self) -> None:
        self.is_empty = True
        self._last: dict[str, int] = {}  # GUID of a rank -> id of its last dispatch

    def new_lines(self, reading: Reading) -> Iterator[str]:
        """Yield the kernels that are new since the last time, rank by rank, in the order in which they ended.

        Raises:
            UsageError: a division is asked for.
        """
        _check_whole(reading)
        for rank, (last, names, columns) in reading.each(partial(_kernels, after=dict(self._last))):
            if self.is_empty and len(columns[0]):
                yield _LOG_HEAD
                self.is_empty = False
            for name, dispatch, start, end in zip(*(column.tolist() for column in columns), strict=True):
                yield f'"{visible(names[name] or "")}",{dispatch},{start},{end}\n'
            self._last[rank.guid] = last


def _kernels(reading: RankReading, after: Mapping[str, int]) -> tuple[int, list[str | None], tuple[Ints, ...]]:
    """Return the last dispatch of one rank, its names, and name, dispatch, start and end of its new kernels.

    New kernels come after the last dispatch that was seen. If a file lacks even that one, it was made anew.
    """
    names = OperationNames()
    ops = read_ops(reading, names, stacks=True)
    ops = ops.take((ops.kind == KERNEL).nonzero()[0])
    last, seen = int(ops.row.max(initial=0)), after.get(reading.rank.guid, 0)
    ops = ops.take((ops.row > (seen if last >= seen else 0)).nonzero()[0])
    links = link(reading.reader, ops)
    dispatch = ops.start.copy()
    dispatch[links.linked] = links.start
    order = np.lexsort((ops.row, ops.start, ops.end))
    return last, names.texts, tuple(column[order] for column in (ops.name, dispatch, ops.start, ops.end))
