"""Graphs: what launches cost on the CPU and take on the GPU, how long GPUs are idle in them, which kernels they have.

A launch is a call that launches a graph, with all operations that carry its stack id. Graphs are told apart by the
handle of the executable graph, in each process by itself: handles of two processes may be equal.

Captures of graphs: which calls recorded a graph, and which launches it recorded instead of making them.

A capture lies between the begin and the end on one stream. It holds the launches of kernels meanwhile, on that stream
or, forked to another one, on the thread that captures; what has an operation of its own was not captured. Handles are
those of one process, and may be used again: an executable belongs to the last capture of its graph before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from rocpd.base.types import Ints, Row
from rocpd.facts.columns import as_text, columns, grouped, statement
from rocpd.facts.host_calls import launches_graph, launches_kernel
from rocpd.facts.operations import GRID, GROUP, KERNEL, OperationNames, Ops, read_ops
from rocpd.facts.rank import RankReading
from rocpd.facts.spread import total
from rocpd.facts.timeline import length
from rocpd.federate.select.align import Shift
from rocpd.schema.rules.launch import launching_regions
from rocpd.summary.grouping import Sums, merge, most_first, nothing, percent
from rocpd.summary.reading import RANK, Reading, Tables
from rocpd.summary.result import Field, Summary, by_name, table_of

_OF_GRAPH = (RANK, Field("graph", "", "handle of the executable graph, NULL where not recorded"))
_SPAN = (
    Field("wall_ns", "ns", "from the start of the first operation to the end of the last"),
    Field("busy_ns", "ns", "of this with an operation at work"),
    Field("idle_ns", "ns", "of this without"),
)

TABLES = by_name(
    table_of(
        "graphs",
        "Graphs by the time that their launches take on the GPU.",
        *_OF_GRAPH,
        Field("launches", "", "calls that launched it"),
        Field("operations", "", "operations of a launch, the mean", True),
        Field("api_ns", "ns", "time of the calls"),
        Field("gpu_ns", "ns", "time of all operations"),
        *_SPAN,
        Field("mean_wall_ns", "ns", "wall_ns by launches", True),
        Field("busy_percent", "%", "busy_ns by wall_ns"),
    ),
    table_of(
        "graph-launches",
        "Each launch of a graph, in order of time.",
        *_OF_GRAPH,
        Field("at_ns", "ns", "start of the call, from the start of the time line"),
        Field("api_ns", "ns", "time of the call"),
        Field("delay_ns", "ns", "from the start of the call to that of the first operation"),
        Field("operations", "", "kernels and copies", True),
        Field("gpu_ns", "ns", "their time"),
        *_SPAN,
    ),
    table_of(
        "graph-kernels",
        "What the operations of each graph are; those with most time first.",
        *_OF_GRAPH,
        Field("kernel", "", "kernel, or direction of a copy", is_kernel=True),
        Field("calls", "", "times that it ran"),
        Field("per_launch", "", "calls by launches of the graph", True),
        Field("total_ns", "ns", "sum of durations"),
        Field("mean_ns", "ns", "mean duration", True),
        Field("percent", "%", "share of the time of all operations of the graph", is_share=True),
        Field("grid", "", "work-items, x by y by z, of its launches or their capture; NULL where not recorded"),
        Field("workgroup", "", "work-items of a work-group"),
    ),
    table_of(
        "graph-captures",
        "Each capture of a graph, in order of time.",
        RANK,
        Field("capture", "", "number in the rank, from 1"),
        Field("graph", "", "handle of the graph, NULL where not recorded"),
        Field("executables", "", "handles of the executable graphs that were made of it"),
        Field("stream", "", "handle of the stream"),
        Field("at_ns", "ns", "start of the call that begins it, from the start of the time line"),
        Field("duration_ns", "ns", "until the return of the call that ends it"),
        Field("kernels", "", "launches of kernels that it holds"),
    ),
    table_of(
        "captured-kernels",
        "The kernels of each capture, in order.",
        RANK,
        Field("capture", "", "number in the rank, from 1"),
        Field("number", "", "which launch of the capture, from 1"),
        Field("kernel", "", "kernel, NULL where the launch does not name it", is_kernel=True),
        Field("grid", "", "work-items, x by y by z; NULL where not recorded"),
        Field("workgroup", "", "work-items of a work-group"),
        Field("function", "", "that launched it"),
    ),
)

_STREAMS, _GRAPHS = ("stream", "hStream"), ("graph", "pGraph", "phGraph", "hGraph")
_EXECUTABLES = ("graphExec", "pGraphExec", "phGraphExec", "hGraphExec")
_KERNELS, _GRIDS, _GROUPS = ("kernel",), ("grid", "numBlocks", "gridDim"), ("workgroup", "dimBlocks", "blockDim")
_WORK_ITEMS = ("Ext", "Hcc")  # functions that count grids in work-items, not in blocks
_NUMBER = re.compile(r"\d+")
_ARGUMENTS = f"{statement('call_arguments')} WHERE R.id IN (SELECT value FROM json_each(?))"  # noqa: S608
_COLUMNS = ("id", "name", "start", "end", "thread", "stack")
_OF_CAPTURES = ("graph-captures", "captured-kernels")
Sizes = tuple[int, ...]
"""Three sizes, x, y and z."""


_Captured: TypeAlias = "tuple[str | None, Sizes | None, Sizes | None, str]"
"""A launch that a graph recorded: kernel, grid and work-group in work-items, None: not recorded; function."""


class _Call(NamedTuple):
    function: str
    start: int
    end: int
    thread: object
    arguments: dict[str, str]

    def of(self, names: Sequence[str]) -> str | None:
        """Return the first argument with one of these names."""
        return next((handle(self.arguments[name]) for name in names if name in self.arguments), None)


class _Capture(NamedTuple):
    """A capture: the calls that begin and end it, the launches that it holds, handles of what was made of it."""

    begin: _Call
    end: _Call
    launches: Sequence[_Captured]
    executables: list[str]


def _read_captures(reading: RankReading, launched: Ints) -> list[_Capture]:
    """Read the captures of a rank, of the whole trace.

    Args:
        reading: reads the rank.
        launched: stack ids of all operations of the rank: their calls were not captured.
    """
    every = _calls(reading.reader.whole().rows(statement("capture_calls")))
    calls = [call for call in every.values() if 1 <= call.start <= call.end]
    pairs = sorted(_pairs(call for call in calls if "Capture" in call.function), key=lambda pair: pair[1].end)
    captures = [_Capture(*pair, [*_launches(reading, *pair, launched)], []) for pair in pairs]
    for call in calls:
        graph, executable = call.of(_GRAPHS), call.of(_EXECUTABLES)
        of_graph = [each for each in captures if each.end.of(_GRAPHS) == graph and each.end.end <= call.start]
        if "Instantiate" in call.function and graph and executable and of_graph:
            of_graph[-1].executables.append(executable)
    return captures


def handle(text: str | None) -> str | None:
    """Return a handle in one form, whichever the source has.

    >>> handle("0x24922d90"), handle("613559696"), handle(None)
    ('0x24922d90', '0x24922d90', None)
    """
    try:
        return f"{int(text, 0):#x}" if text else None
    except ValueError:
        return text


def _calls(rows: Iterable[Row]) -> dict[int, _Call]:
    """Return calls by id, of rows of an argument each: id, function, start, end, thread, name, value.

    Those without times are left out.
    """
    calls: dict[int, _Call] = {}
    for row, function, start, end, thread, name, value in rows:
        if isinstance(start, int) and isinstance(end, int):
            call = calls.setdefault(row, _Call(as_text(function) or "", start, end, thread, {}))
            if isinstance(name, str):
                call.arguments[name] = as_text(value) or ""
    return calls


def _pairs(calls: Iterable[_Call]) -> Iterator[tuple[_Call, _Call]]:
    """Yield the begin and the end of each capture: on one stream, else on one thread."""
    begun: dict[object, _Call] = {}
    for call in calls:
        where = call.of(_STREAMS) or call.thread
        if "Begin" in call.function:
            begun[where] = call
        elif where in begun:
            yield begun.pop(where), call


def _launches(reading: RankReading, begin: _Call, end: _Call, launched: Ints) -> Iterator[_Captured]:
    """Yield the launches between two calls of a capture, in their order."""
    reader, stream = reading.reader.whole(), begin.of(_STREAMS)
    row, _, start, until, thread, stack = columns(reader, "rocpd_region", statement("regions"), _COLUMNS)
    inside = np.flatnonzero((start >= begin.start) & (until <= end.end) & ~np.isin(stack, launched))
    inside = inside[np.lexsort((row[inside], start[inside]))]
    threads = dict(zip(row[inside].tolist(), thread[inside].tolist(), strict=True))
    arguments = reader.rows(_ARGUMENTS, (json.dumps(list(threads)),))
    calls = _calls((region, function, 0, 0, threads[region], *argument) for region, function, *argument in arguments)
    for call in (calls[region] for region in threads if region in calls):
        is_captured = call.thread == begin.thread or (stream and call.of(_STREAMS) == stream)
        if is_captured and launches_kernel(call.function):
            yield _launch(call)


def _launch(call: _Call) -> _Captured:
    grid, group = _sizes(call, _GRIDS), _sizes(call, _GROUPS)
    if grid and group and not any(word in call.function for word in _WORK_ITEMS):
        grid = tuple(blocks * items for blocks, items in zip(grid, group, strict=True))
    kernel = next((call.arguments[name] for name in _KERNELS if name in call.arguments), None)
    return kernel or None, grid, group, call.function


def _sizes(call: _Call, names: Sequence[str]) -> Sizes | None:
    text = next((call.arguments[name] for name in names if name in call.arguments), "")
    numbers = tuple(map(int, _NUMBER.findall(text)))
    return numbers if len(numbers) == 3 else None


_Kernel: TypeAlias = "tuple[str | None, str | None]"  # graph, kernel
_Sizes: TypeAlias = "tuple[Sizes | None, Sizes | None]"  # grid, work-group


def graphs(reading: Reading) -> Tables:
    """Return graphs, their launches, their kernels, and how they were captured.

    Raises:
        RocpdError: no call launched or captured a graph.
    """
    shifts = {rank.number: reading.shift(rank.number) for rank in reading.session.ranks}
    yield (answers := reading.each(partial(_of_rank, shifts=shifts)))
    rows: dict[str, list[Row]] = {name: [] for name in TABLES}
    without = 0
    for rank, (of_rank, lost) in answers:
        without += lost
        for name, some in of_rank.items():
            rows[name] += ((rank.number, *row) for row in some)
    if not rows["graph-launches"] and not rows["graph-captures"]:
        hint = f"{without} launches have no operations in the selection" if without else None
        raise nothing("graph was launched", hint)
    if without:
        reading.session.note(f"graphs: {without} launches left out: no operations of theirs are in the selection")
    rows["graph-launches"].sort(key=lambda row: (row[2], row[0]))
    for name, every in rows.items():
        if name not in _OF_CAPTURES or rows["graph-captures"]:
            yield Summary.whole(TABLES[name], every)


def _of_rank(reading: RankReading, shifts: Mapping[int, Shift]) -> tuple[dict[str, list[Row]], int]:
    """Return the rows of each table, without the rank, and how many launches have no operations."""
    shift = shifts[reading.rank.number]
    rows = reading.reader.whole().rows(statement("graph_calls"))
    every = [row for row in rows if launches_graph(as_text(row[1])) and isinstance(row[4], int)]
    calls = [row for row in every if all(isinstance(time, int) for time in row[2:4]) and 1 <= row[2] <= row[3]]
    reading.left_out["launches of graphs"] += len(every) - len(calls)
    captures = _read_captures(reading, read_ops(reading.whole(), OperationNames(), stacks=True).stack)
    tables = _capture_rows(captures, shift)
    if not calls:
        return tables, 0
    start, end, stack = (np.array(column, np.int64) for column in list(zip(*calls, strict=True))[2:5])
    names = OperationNames()
    ops = read_ops(reading, names, stacks=True)
    graph_of = dict(zip(*_dispatches(reading, "graph_of_dispatch", ("id", "graph")), strict=True))
    launches: list[Row] = []
    graphs: dict[str | None, Sums] = {}
    kernels: dict[_Kernel, Sums] = {}
    sizes, sizes_of = _captured_sizes(captures), _sizes_of_dispatches(reading)
    for (number,), of_call in grouped([launching_regions(stack, start, end, ops.stack)]):
        if number < 0:
            continue
        work, called, api = ops.take(of_call), int(start[number]), int(end[number] - start[number])
        graph = handle(as_text(calls[number][5])) or _handle_of(work, graph_of)
        first, last, busy = int(work.start.min()), int(work.end.max()), length(work.union())
        ran = len(work), total(work.duration), last - first, busy
        launches.append((graph, int(shift.to_line(called)), api, first - called, *ran, last - first - busy))
        merge(graphs, {graph: Sums((1, api, *ran))})
        for (name,), of_name in grouped([work.name]):
            kernel = graph, names.texts[name]
            merge(kernels, {kernel: Sums((len(of_name), total(work.duration[of_name])))})
            for row in work.row[of_name][work.kind[of_name] == KERNEL].tolist():
                if row in sizes_of:
                    sizes.setdefault(kernel, {})[sizes_of[row]] = None
    tables |= {"graphs": [*_graph_rows(graphs)], "graph-kernels": [*_kernel_rows(kernels, sizes, graphs)]}
    return tables | {"graph-launches": launches}, len(calls) - len(launches)


def _captured_sizes(captures: Iterable[_Capture]) -> dict[_Kernel, dict[_Sizes, None]]:
    """Return what kernels of executable graphs were captured with."""
    sizes: dict[_Kernel, dict[_Sizes, None]] = {}
    for capture in captures:
        for kernel, grid, group, _ in capture.launches:
            for executable in capture.executables if grid else ():
                sizes.setdefault((executable, kernel), {})[grid, group] = None
    return sizes


def _sizes_of_dispatches(reading: RankReading) -> Mapping[int, _Sizes]:
    """Return id of a dispatch -> grid and work-group, where these are known."""
    shapes = zip(*_dispatches(reading, "kernels", ("id", *GRID, *GROUP)), strict=True)
    return {row: ((*sizes[:3],), (*sizes[3:],)) for row, *sizes in shapes if sizes[0] > 0 and sizes[3] > 0}


def _dispatches(reading: RankReading, select: str, names: Sequence[str]) -> Iterator[list[int]]:
    read = columns(reading.reader, "rocpd_kernel_dispatch", statement(select), names)
    return (column.tolist() for column in read)


def _handle_of(work: Ops, known: Mapping[int, int]) -> str | None:
    rows: Ints = work.row[work.kind == KERNEL]
    return next((handle(str(known[row])) for row in rows.tolist() if row in known), None)


def _graph_rows(graphs: Mapping[str | None, Sums]) -> Iterator[Row]:
    for graph, (count, api, operations, gpu, wall, busy) in most_first(graphs, lambda sums: sums[4]):
        times = (api, gpu, wall, busy, wall - busy, wall / count)
        yield graph, count, operations / count, *times, percent(busy, wall)


def _kernel_rows(
    kernels: Mapping[_Kernel, Sums], sizes: Mapping[_Kernel, Iterable[_Sizes]], graphs: Mapping[str | None, Sums]
) -> Iterator[Row]:
    for kernel in sorted(kernels, key=lambda kernel: (kernel[0] or "", -kernels[kernel][1], kernel[1] or "")):
        (calls, time), (count, _, _, gpu, *_) = kernels[kernel], graphs[kernel[0]]
        shapes = [_sizes_text(size[at] for size in sizes.get(kernel, ())) for at in range(2)]
        yield *kernel, calls, calls / count, time, time / calls, percent(time, gpu), *shapes


def _capture_rows(captures: Iterable[_Capture], shift: Shift) -> dict[str, list[Row]]:
    """Return the rows of captures, and of the launches that they hold."""
    rows: dict[str, list[Row]] = {name: [] for name in _OF_CAPTURES}
    for number, (begin, end, launches, executables) in enumerate(captures, 1):
        handles = end.of(_GRAPHS), " ".join(executables) or None, begin.of(_STREAMS)
        times = int(shift.to_line(begin.start)), end.end - begin.start
        rows["graph-captures"].append((number, *handles, *times, len(launches)))
        for at, (kernel, grid, group, function) in enumerate(launches, 1):
            rows["captured-kernels"].append((number, at, kernel, _sizes_text([grid]), _sizes_text([group]), function))
    return rows


def _sizes_text(sizes: Iterable[Sizes | None]) -> str | None:
    """Return sizes as text, each once.

    >>> _sizes_text([(128, 2, 1), None, (128, 2, 1), (64, 1, 1)])
    '128x2x1 64x1x1'
    """
    return " ".join(dict.fromkeys("x".join(map(str, size)) for size in sizes if size)) or None
