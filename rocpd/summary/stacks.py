"""Functions and lines of call stacks: the time in which a thread was there, and what the GPU did meanwhile.

Stacks of calls, samples and traced functions are kinds of their own. What is recursive counts its time once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from rocpd.errors import RocpdError
from rocpd.frozen import frozen
from rocpd.summary.reading import Key, Reading, order_of
from rocpd.summary.recorded_stacks import FUNCTIONS, SAMPLES, Path, StackTime, read_stacks_of
from rocpd.summary.result import Field, Summary, TableDefinition, by_name
from rocpd.summary.sums import Total, merge
from rocpd.trace.frames import StackFrame, frame_of
from rocpd.types import Row

_TIMES = (
    Field("count", "", "calls or samples that have it in their stack; of traced functions their calls", True),
    Field("total_ns", "ns", "time with it anywhere in the stack"),
    Field("self_ns", "ns", "time with it innermost"),
    Field("percent", "%", "self_ns by the time of all stacks of the kind", True, is_share=True),
    Field("idle_ns", "ns", "of total_ns while no GPU of the rank works, between its first and last operation"),
    Field("idle_self_ns", "ns", "of self_ns", True),
    Field("gpu_ns", "ns", "operations launched with it in the stack; NULL for samples", True),
    Field("gpu_self_ns", "ns", "launched with it innermost", True),
)
_KIND = Field("kind", "", "what was recorded: calls of APIs with their stacks, samples, or functions one by one")
_FUNCTION = Field("function", "", "function")
_FILE = Field("file", "", "its file, NULL where not recorded")

TABLES = by_name(
    TableDefinition(
        "stacks",
        "Functions of call stacks; those with most time of their own first.",
        (_KIND, _FUNCTION, _FILE, *_TIMES),
    ),
    TableDefinition(
        "stack-lines",
        "Lines of functions in call stacks; those with most time of their own first.",
        (_KIND, _FUNCTION, _FILE, Field("line", "", "of samples and calls the one it is at, else its first"), *_TIMES),
    ),
)

Stacks: TypeAlias = dict[tuple[Key, str], dict[Path, StackTime]]
"""Division and kind -> time by path."""


@frozen
class _FrameTime(Total):
    """Time of a function or line [ns]."""

    count: int = 0
    total: int = 0
    own: int = 0
    idle: int = 0
    own_idle: int = 0
    gpu: int = 0
    own_gpu: int = 0


def stacks(reading: Reading) -> Iterator[Summary]:
    """Return functions and lines.

    Raises:
        RocpdError: no call stacks were recorded.
    """
    times, has_operations = all_stacks(reading)
    for table, place_of in (("stacks", _function), ("stack-lines", _line)):
        rows: list[Row] = []
        for key, kind in sorted(times, key=lambda pair: (order_of(pair[0]), pair[1])):
            rows += _rows((*key, kind), _by_frame(kind, times[key, kind], place_of), kind, has_operations)
        yield reading.summary(TABLES[table], rows)


def all_stacks(reading: Reading) -> tuple[Stacks, bool]:
    """Return the stacks of all ranks, and whether there are GPU operations.

    Raises:
        RocpdError: no call stacks were recorded.
    """
    times: Stacks = {}
    has_operations = False
    for _, rank in reading.each(read_stacks_of):
        has_operations |= rank.has_operations
        for (key, kind, path), time in rank.times.items():
            merge(times.setdefault((key, kind), {}), {path: time})
    if not times:
        raise RocpdError(
            "no call stacks in the selection",
            "`rocpd record --python-stacks 100` records those of Python, PyTorch does with `with_stack=True`, RPD with "
            "RPDT_STACKFRAMES=1, nsys with --cudabacktrace",
        )
    return times, has_operations


def _function(frame: StackFrame) -> Row:
    return frame.function, frame.file


def _line(frame: StackFrame) -> Row:
    return frame


def _by_frame(
    kind: str, times: Mapping[Path, StackTime], place_of: Callable[[StackFrame], Row]
) -> dict[Row, _FrameTime]:
    """Return function or line -> its time; `place_of` says which of them a frame is."""
    sums: dict[Row, _FrameTime] = {}
    for path, time in times.items():
        places = [place_of(frame_of(text)) for text in path]
        innermost = places[-1]
        for place in dict.fromkeys(places):
            count = time.count if place == innermost or kind != FUNCTIONS else 0
            merge(sums, {place: _FrameTime(count, time.time, 0, time.idle, 0, time.gpu)})
        merge(sums, {innermost: _FrameTime(own=time.time, own_idle=time.idle, own_gpu=time.gpu)})
    return sums


def _rows(front: Row, sums: Mapping[Row, _FrameTime], kind: str, has_operations: bool) -> Iterator[Row]:
    whole = sum(each.own for each in sums.values())
    in_order = sorted(sums.items(), key=lambda item: (-item[1].own, -item[1].total, order_of(item[0])))
    for place, each in in_order:
        share = each.own * 100 / whole if whole else None
        idle = (each.idle, each.own_idle) if has_operations else (None, None)
        gpu = (each.gpu, each.own_gpu) if has_operations and kind != SAMPLES else (None, None)
        yield (*front, *place, each.count, each.total, each.own, share, *idle, *gpu)
