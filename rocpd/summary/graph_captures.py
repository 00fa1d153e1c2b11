"""Captures of graphs: which calls recorded a graph, and which launches it recorded instead of making them.

A capture lies between the begin and the end on one stream. It holds the launches of kernels meanwhile, on that stream
or, forked to another one, on the thread that captures; what has an operation of its own was not captured. Handles are
those of one process, and may be used again: an executable belongs to the last capture of its graph before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rocpd.read.columns import columns
from rocpd.read.names import as_text
from rocpd.summary.reading import RankReading
from rocpd.summary.statements import statement
from rocpd.trace.host_calls import launches_kernel
from rocpd.types import Ints

_STREAMS, _GRAPHS = ("stream", "hStream"), ("graph", "pGraph", "phGraph", "hGraph")
_EXECUTABLES = ("graphExec", "pGraphExec", "phGraphExec", "hGraphExec")
_KERNELS, _GRIDS, _GROUPS = ("kernel",), ("grid", "numBlocks", "gridDim"), ("workgroup", "dimBlocks", "blockDim")
_WORK_ITEMS = ("Ext", "Hcc")  # functions that count grids in work-items, not in blocks
_NUMBER = re.compile(r"\d+")
_ARGUMENTS = f"{statement('call_arguments')} WHERE R.id IN (SELECT value FROM json_each(?))"  # noqa: S608
_COLUMNS = ("id", "name", "start", "end", "thread", "stack")

Sizes = tuple[int, ...]
"""Three sizes, x, y and z."""


class CapturedLaunch(NamedTuple):
    """A launch that a graph recorded: function, kernel, grid and work-group in work-items; None: not recorded."""

    function: str
    kernel: str | None
    grid: Sizes | None
    group: Sizes | None


class Capture(NamedTuple):
    """A capture of a graph.

    Args:
        graph: its handle, None where it was not recorded.
        executables: handles of what was made of it.
        stream: that it was captured on.
        start, end: from the call that begins it to the return of the one that ends it [ns].
        launches: what it holds.
    """

    graph: str | None
    executables: tuple[str, ...]
    stream: str | None
    start: int
    end: int
    launches: tuple[CapturedLaunch, ...]


class _Call(NamedTuple):
    function: str
    start: int
    end: int
    thread: object
    arguments: Mapping[str, str]

    def of(self, names: Sequence[str]) -> str | None:
        """Return the first argument with one of these names."""
        return next((handle(self.arguments[name]) for name in names if name in self.arguments), None)


def read_captures(reading: RankReading, launched: Ints) -> list[Capture]:
    """Read the captures of a rank, of the whole trace.

    Args:
        reading: reads the rank.
        launched: stack ids of all operations of the rank: their calls were not captured.
    """
    calls = list(_calls(reading))
    pairs = sorted(_pairs(call for call in calls if "Capture" in call.function), key=lambda pair: pair[1].end)
    captures = []
    for begin, end in pairs:
        launches = tuple(_launches(reading, begin, end, launched))
        captures.append(Capture(end.of(_GRAPHS), (), begin.of(_STREAMS), begin.start, end.end, launches))
    for call in calls:
        graph, executable = call.of(_GRAPHS), call.of(_EXECUTABLES)
        of_graph = [at for at, each in enumerate(captures) if each.graph == graph and each.end <= call.start]
        if "Instantiate" in call.function and graph and executable and of_graph:
            last = captures[of_graph[-1]]
            captures[of_graph[-1]] = last._replace(executables=(*last.executables, executable))
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


def _calls(reading: RankReading) -> Iterator[_Call]:
    calls: dict[int, _Call] = {}
    for row, function, start, end, thread, name, value in reading.reader.whole().rows(statement("capture_calls")):
        if not (isinstance(start, int) and isinstance(end, int) and 1 <= start <= end):
            continue
        call = calls.setdefault(row, _Call(as_text(function) or "", start, end, thread, {}))
        if isinstance(name, str) and isinstance(call.arguments, dict):
            call.arguments[name] = as_text(value) or ""
    yield from calls.values()


def _pairs(calls: Iterator[_Call]) -> Iterator[tuple[_Call, _Call]]:
    """Yield the begin and the end of each capture: on one stream, else on one thread."""
    begun: dict[object, _Call] = {}
    for call in calls:
        where = call.of(_STREAMS) or call.thread
        if "Begin" in call.function:
            begun[where] = call
        elif where in begun:
            yield begun.pop(where), call


def _launches(reading: RankReading, begin: _Call, end: _Call, launched: Ints) -> Iterator[CapturedLaunch]:
    """Yield the launches between two calls of a capture, in their order."""
    reader, stream = reading.reader.whole(), begin.of(_STREAMS)
    row, _, start, until, thread, stack = columns(reader, "rocpd_region", statement("regions"), _COLUMNS)
    inside = np.flatnonzero((start >= begin.start) & (until <= end.end) & ~np.isin(stack, launched))
    inside = inside[np.lexsort((row[inside], start[inside]))]
    threads = dict(zip(row[inside].tolist(), thread[inside].tolist(), strict=True))
    texts: dict[int, _Call] = {}
    for region, function, name, value in reader.rows(_ARGUMENTS, (json.dumps(list(threads)),)):
        call = texts.setdefault(region, _Call(as_text(function) or "", 0, 0, threads[region], {}))
        if isinstance(name, str) and isinstance(call.arguments, dict):
            call.arguments[name] = as_text(value) or ""
    for call in (texts[region] for region in threads if region in texts):
        is_captured = call.thread == begin.thread or (stream and call.of(_STREAMS) == stream)
        if is_captured and launches_kernel(call.function):
            yield _launch(call)


def _launch(call: _Call) -> CapturedLaunch:
    grid, group = _sizes(call, _GRIDS), _sizes(call, _GROUPS)
    if grid and group and not any(word in call.function for word in _WORK_ITEMS):
        grid = tuple(blocks * items for blocks, items in zip(grid, group, strict=True))
    kernel = next((call.arguments[name] for name in _KERNELS if name in call.arguments), None)
    return CapturedLaunch(call.function, kernel or None, grid, group)


def _sizes(call: _Call, names: Sequence[str]) -> Sizes | None:
    text = next((call.arguments[name] for name in names if name in call.arguments), "")
    numbers = tuple(map(int, _NUMBER.findall(text)))
    return numbers if len(numbers) == 3 else None
