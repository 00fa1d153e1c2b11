"""Graphs: the CPU time of their launches, their GPU time, the idle time of GPUs in them, and their kernels.

A launch is a call that launches a graph, with all operations that carry its stack id. Graphs are identified by the
handle of the executable graph, separately in each process: handles of two processes may be equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from rocpd.base import Ints, Row
from rocpd.facts.columns import columns, grouped, statement
from rocpd.facts.graphs import Capture, Sizes, handle, read_captures, read_graph_launches
from rocpd.facts.operations import GRID, GROUP, KERNEL, OperationNames, Ops, read_ops
from rocpd.facts.rank import RankReading
from rocpd.facts.spread import total
from rocpd.facts.timeline import length
from rocpd.federate.run.rank_reader import Fact
from rocpd.federate.select.align import Shift
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

_OF_CAPTURES = ("graph-captures", "captured-kernels")
_Kernel: TypeAlias = "tuple[str | None, str | None]"  # graph, kernel
_Sizes: TypeAlias = "tuple[Sizes | None, Sizes | None]"  # grid, work-group


def graphs(reading: Reading) -> Tables:
    """Return graphs, their launches, their kernels, and how they were captured.

    Raises:
        RocpdError: no call launched or captured a graph.
    """
    shifts = {rank.number: reading.shift(rank.number) for rank in reading.session.ranks}
    yield (answers := reading.each(_read, _GRAPHS, given=shifts))
    rows: dict[str, list[Row]] = {name: [] for name in TABLES}
    without = 0
    for rank, (of_rank, lost) in answers:
        without += lost
        for name, of_name in of_rank.items():
            rows[name] += ((rank.number, *row) for row in of_name)
    if not rows["graph-launches"] and not rows["graph-captures"]:
        hint = f"{without} launches have no operations in the selection" if without else None
        raise nothing("graph was launched", hint)
    if without:
        reading.session.note(f"graphs: {without} launches left out: no operations of theirs are in the selection")
    rows["graph-launches"].sort(key=lambda row: (row[2], row[0]))
    for name, of_table in rows.items():
        if name not in _OF_CAPTURES or rows["graph-captures"]:
            yield Summary.whole(TABLES[name], of_table)


_GRAPHS = Fact("graphs", 1, ())


def _read(reading: RankReading, shift: Shift) -> tuple[dict[str, list[Row]], int]:
    """Return the rows of each table, without the rank, and the number of launches without operations."""
    calls, captures = read_graph_launches(reading), read_captures(reading)
    tables = _capture_rows(captures, shift)
    if not calls.graph:
        return tables, 0
    names = OperationNames()
    ops = read_ops(reading, names, stacks=True)
    graph_of = dict(zip(*_dispatches(reading, "graph_of_dispatch", ("id", "graph")), strict=True))
    launches: list[Row] = []
    graphs: dict[str | None, Sums] = {}
    kernels: dict[_Kernel, Sums] = {}
    sizes, sizes_of = _captured_sizes(captures), _sizes_of_dispatches(reading)
    for (number,), of_call in grouped([calls.of(ops.stack)]):
        if number < 0:
            continue
        work, called, api = ops.take(of_call), int(calls.start[number]), int(calls.end[number] - calls.start[number])
        graph = calls.graph[number] or _handle_of(work, graph_of)
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
    return tables | {"graph-launches": launches}, len(calls.graph) - len(launches)


def _captured_sizes(captures: Iterable[Capture]) -> dict[_Kernel, dict[_Sizes, None]]:
    """Return the launch sizes with which kernels of executable graphs were captured."""
    sizes: dict[_Kernel, dict[_Sizes, None]] = {}
    for capture in captures:
        for kernel, grid, group, _ in capture.launches:
            for executable in capture.executables if grid else ():
                sizes.setdefault((executable, kernel), {})[grid, group] = None
    return sizes


def _sizes_of_dispatches(reading: RankReading) -> Mapping[int, _Sizes]:
    """Return id of a dispatch -> grid and work-group, if these are known."""
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


def _capture_rows(captures: Iterable[Capture], shift: Shift) -> dict[str, list[Row]]:
    """Return the rows of captures, and of the launches in them."""
    rows: dict[str, list[Row]] = {name: [] for name in _OF_CAPTURES}
    for number, capture in enumerate(captures, 1):
        handles = capture.graph, " ".join(capture.executables) or None, capture.stream
        times = int(shift.to_line(capture.begin.start)), capture.end.end - capture.begin.start
        rows["graph-captures"].append((number, *handles, *times, len(capture.launches)))
        for at, (kernel, grid, group, function) in enumerate(capture.launches, 1):
            rows["captured-kernels"].append((number, at, kernel, _sizes_text([grid]), _sizes_text([group]), function))
    return rows


def _sizes_text(sizes: Iterable[Sizes | None]) -> str | None:
    """Return sizes as text, each once.

    >>> _sizes_text([(128, 2, 1), None, (128, 2, 1), (64, 1, 1)])
    '128x2x1 64x1x1'
    """
    return " ".join(dict.fromkeys("x".join(map(str, size)) for size in sizes if size)) or None
