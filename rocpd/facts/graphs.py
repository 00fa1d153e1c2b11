"""Graphs of one rank: the calls that launch them, and the launches recorded when they were captured.

A capture lies between its begin and its end on one stream. It holds the kernel launches in between on that stream or,
forked to another stream, on the thread that captures; calls with an operation of their own were not captured. Handles
belong to one process, and may be used again: an executable belongs to the last capture of its graph before it.

All of it is of the whole trace, regardless of the selection, which chooses among operations, and so among launches.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from rocpd.base import Ints, Row
from rocpd.facts.columns import as_text, columns, statement
from rocpd.facts.operations import OperationNames, read_ops
from rocpd.facts.rank import RankReading
from rocpd.facts.regions import launches_graph, launches_kernel
from rocpd.schema.rules.launch import launching_regions

_STREAMS, _GRAPHS = ("stream", "hStream"), ("graph", "pGraph", "phGraph", "hGraph")
_EXECUTABLES = ("graphExec", "pGraphExec", "phGraphExec", "hGraphExec")
_KERNELS, _GRIDS, _GROUPS = ("kernel",), ("grid", "numBlocks", "gridDim"), ("workgroup", "dimBlocks", "blockDim")
_WORK_ITEMS = ("Ext", "Hcc")  # functions that count grids in work-items, not in blocks
_NUMBER = re.compile(r"\d+")
_ARGUMENTS = f"{statement('call_arguments')} WHERE R.id IN (SELECT value FROM json_each(?))"
_COLUMNS = ("id", "name", "start", "end", "thread", "stack")
Sizes = tuple[int, ...]
"""Three sizes, x, y and z."""


class GraphLaunchCalls(NamedTuple):
    """The calls of a rank that launch graphs; all columns are equally long.

    Args:
        start, end: [ns].
        stack: stack id, by which operations belong to a launch.
        graph: handle of the executable graph, None where the call does not say.
    """

    start: Ints
    end: Ints
    stack: Ints
    graph: Sequence[str | None]

    def of(self, stack: Ints) -> Ints:
        """Return the call that launched each operation, as a row, given stack ids of operations; -1 for none."""
        return launching_regions(self.stack, self.start, self.end, stack)


class Captured(NamedTuple):
    """A launch that a graph recorded: kernel, grid and work-group [work-items] (None: not recorded), and function."""

    kernel: str | None
    grid: Sizes | None
    group: Sizes | None
    function: str


class GraphCall(NamedTuple):
    """A call with its arguments; times [ns]."""

    function: str
    start: int
    end: int
    thread: object
    arguments: dict[str, str]

    def of(self, names: Sequence[str]) -> str | None:
        """Return the first argument with one of these names."""
        return next((handle(self.arguments[name]) for name in names if name in self.arguments), None)


class Capture(NamedTuple):
    """A capture: the calls that begin and end it, its launches, and the handles of executables made of its graph."""

    begin: GraphCall
    end: GraphCall
    launches: Sequence[Captured]
    executables: list[str]

    @property
    def graph(self) -> str | None:
        """Handle of the graph."""
        return self.end.of(_GRAPHS)

    @property
    def stream(self) -> str | None:
        """Handle of the stream."""
        return self.begin.of(_STREAMS)


def read_graph_launches(reading: RankReading) -> GraphLaunchCalls:
    """Read the calls that launch graphs; calls with invalid times are left out and counted."""
    rows = reading.whole().reader.rows(statement("graph_calls"))
    launches = [row for row in rows if launches_graph(as_text(row[1])) and isinstance(row[4], int)]
    calls = [row for row in launches if all(isinstance(time, int) for time in row[2:4]) and 1 <= row[2] <= row[3]]
    reading.left_out["launches of graphs"] += len(launches) - len(calls)
    start, end, stack = np.array([row[2:5] for row in calls], np.int64).reshape(-1, 3).T
    return GraphLaunchCalls(start, end, stack, [handle(as_text(row[5])) for row in calls])


def read_captures(reading: RankReading) -> list[Capture]:
    """Read the captures of a rank; calls with an operation of their own were not captured."""
    whole = reading.whole()
    launched = read_ops(whole, OperationNames(), stacks=True).stack
    recorded = _calls(whole.reader.rows(statement("capture_calls")))
    calls = [call for call in recorded.values() if 1 <= call.start <= call.end]
    pairs = sorted(_pairs(call for call in calls if "Capture" in call.function), key=lambda pair: pair[1].end)
    captures = [Capture(*pair, [*_launches(whole, *pair, launched)], []) for pair in pairs]
    for call in calls:
        graph, executable = call.of(_GRAPHS), call.of(_EXECUTABLES)
        of_graph = [each for each in captures if each.graph == graph and each.end.end <= call.start]
        if "Instantiate" in call.function and graph and executable and of_graph:
            of_graph[-1].executables.append(executable)
    return captures


def handle(text: str | None) -> str | None:
    """Return a handle in one form, as sources write it in decimal or hexadecimal.

    >>> handle("0x24922d90"), handle("613559696"), handle(None)
    ('0x24922d90', '0x24922d90', None)
    """
    try:
        return f"{int(text, 0):#x}" if text else None
    except ValueError:
        return text


def _calls(rows: Iterable[Row]) -> dict[int, GraphCall]:
    """Return calls by id, of rows with an argument each: id, function, start, end, thread, name, value.

    Calls without times are left out.
    """
    calls: dict[int, GraphCall] = {}
    for row, function, start, end, thread, name, value in rows:
        if isinstance(start, int) and isinstance(end, int):
            call = calls.setdefault(row, GraphCall(as_text(function) or "", start, end, thread, {}))
            if isinstance(name, str):
                call.arguments[name] = as_text(value) or ""
    return calls


def _pairs(calls: Iterable[GraphCall]) -> Iterator[tuple[GraphCall, GraphCall]]:
    """Yield the begin and the end of each capture: on one stream, else on one thread."""
    begun: dict[object, GraphCall] = {}
    for call in calls:
        where = call.of(_STREAMS) or call.thread
        if "Begin" in call.function:
            begun[where] = call
        elif where in begun:
            yield begun.pop(where), call


def _launches(whole: RankReading, begin: GraphCall, end: GraphCall, launched: Ints) -> Iterator[Captured]:
    """Yield the launches between two calls of a capture, in their order."""
    reader, stream = whole.reader, begin.of(_STREAMS)
    row, _, start, until, thread, stack = columns(reader, "rocpd_region", statement("regions"), _COLUMNS)
    inside = ((start >= begin.start) & (until <= end.end) & ~np.isin(stack, launched)).nonzero()[0]
    inside = inside[np.lexsort((row[inside], start[inside]))]
    threads = dict(zip(row[inside].tolist(), thread[inside].tolist(), strict=True))
    arguments = reader.rows(_ARGUMENTS, (json.dumps(list(threads)),))
    calls = _calls((region, function, 0, 0, threads[region], *argument) for region, function, *argument in arguments)
    for call in (calls[region] for region in threads if region in calls):
        is_captured = call.thread == begin.thread or (stream and call.of(_STREAMS) == stream)
        if is_captured and launches_kernel(call.function):
            yield _launch(call)


def _launch(call: GraphCall) -> Captured:
    grid, group = _sizes(call, _GRIDS), _sizes(call, _GROUPS)
    if grid and group and not any(word in call.function for word in _WORK_ITEMS):
        grid = tuple(blocks * items for blocks, items in zip(grid, group, strict=True))
    kernel = next((call.arguments[name] for name in _KERNELS if name in call.arguments), None)
    return Captured(kernel or None, grid, group, call.function)


def _sizes(call: GraphCall, names: Sequence[str]) -> Sizes | None:
    text = next((call.arguments[name] for name in names if name in call.arguments), "")
    numbers = tuple(map(int, _NUMBER.findall(text)))
    return numbers if len(numbers) == 3 else None
