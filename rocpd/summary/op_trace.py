"""Owns the list of every GPU operation in order, each with the gap before it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rocpd.errors import RocpdError
from rocpd.summary.ops import KERNEL, Names, Ops, read_ops
from rocpd.summary.options import By
from rocpd.summary.read import NULL
from rocpd.summary.reading import AGENT, RANK, Reading
from rocpd.summary.result import Field, Row, Summary, Table

TABLES = {
    "op-trace": Table(
        "op-trace",
        "Every kernel and copy, by rank and agent (--by stream: by rank and stream) in the order of their starts.",
        (
            RANK,
            AGENT,
            Field("stream", "", "HIP stream id", True),
            Field("number", "", "place on its agent (or stream), from 1"),
            Field("gap_ns", "ns", "from the latest end of all before it, 0 while one still runs, NULL for the first"),
            Field("start_ns", "ns", "start, from the begin of the time line"),
            Field("duration_ns", "ns", "end - start"),
            Field("kind", "", "kernel or copy", True),
            Field("name", "", "kernel, or direction of the copy"),
        ),
    )
}

_ANY = "SELECT 1 FROM rocpd_kernel_dispatch UNION ALL SELECT 1 FROM rocpd_memory_copy LIMIT 1"


def op_trace(reading: Reading) -> Iterator[Summary]:
    """List the operations; rows are read anew whenever the Summary is iterated, rank by rank.

    Raises:
        RocpdError: there are none.
    """
    if not any(reading.session.rows_in(rank.number, _ANY) for rank in reading.session.ranks):
        raise RocpdError("no kernels or copies in the selection")
    yield Summary(TABLES["op-trace"], TABLES["op-trace"].fields, lambda: _rows(reading))


def _rows(reading: Reading) -> Iterator[Row]:
    for rank in reading.ranks():
        names = Names()
        ops = read_ops(reading, rank, names)
        offset = reading.offset(rank.number) if len(ops) else 0
        lane = ops.stream if reading.by is By.STREAM else ops.agent
        for place in np.unique(lane).tolist():
            yield from _lane_rows(rank.number, ops.take(np.flatnonzero(lane == place)), names, offset)


def _lane_rows(rank: int, ops: Ops, names: Names, offset: int) -> Iterator[Row]:
    order = np.lexsort((ops.row, ops.kind, ops.end, ops.start))
    ops = ops.take(order)
    latest = np.maximum.accumulate(ops.end)
    gaps = [None, *np.maximum(ops.start[1:] - latest[:-1], 0).tolist()]
    columns = (ops.agent, ops.stream, ops.start + offset, ops.duration, ops.kind, ops.name)
    lists = (column.tolist() for column in columns)
    for number, (gap, agent, stream, start, length, kind, name) in enumerate(zip(gaps, *lists, strict=True), 1):
        known = (None if agent == NULL else agent, None if stream == NULL else stream)
        what = "kernel" if kind == KERNEL else "copy"
        yield (rank, *known, number, gap, start, length, what, names.texts[name])
