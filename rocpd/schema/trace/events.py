"""The events of a process as columns: an object of a class is a batch of rows of one table, each with its event.

Fields are named like the columns of the table; `name`, `region_name` and `category` are texts whose ids the table
holds. A field of None leaves its column to the table. Sets the fields of events that follow from the kind of row
(category, parent), because readers link rows by them. Writes nothing.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from rocpd.base import UsageError, frozen
from rocpd.schema.trace.columns import is_single, plain

if TYPE_CHECKING:
    from rocpd.schema.trace.columns import FloatColumn, IntColumn, TextColumn

MARKER_RANGE, MARK = "MARKER_CORE_RANGE_API", "MARKER_CORE_API"
"""Categories of roctx ranges and of marks."""


def message_json(text: str, **facts: object) -> str:
    """Return the extdata of a marker's event: readers find its text under `message`.

    >>> message_json("step 1", unfinished=True)
    '{"message": "step 1", "unfinished": true}'
    """
    return json.dumps({"message": text, **facts}, ensure_ascii=False)


@frozen
class Events:
    """Columns that regions, GPU work and samples have in common.

    Args:
        category: domain, such as HIP_RUNTIME_API; None: the category that follows from the kind of rows.
        stack_id: id of the call; GPU work has the id of its launching call. 0: no call.
        parent_stack_id: id of the enclosing call, 0 for none; None: 0, and for GPU work its own stack id.
        correlation_id: id that the user set, 0 for none.
        message: text of a marker; instead of extdata.
        extdata: JSON; a marker with more than its text needs `message_json`.
        call_stack: JSON of the stack of functions.
        line_info: JSON of the source line.

    Raises:
        UsageError: both message and extdata are given.
    """

    TABLE: ClassVar[str] = "rocpd_event"

    category: TextColumn = None
    stack_id: IntColumn = 0
    parent_stack_id: IntColumn = None
    correlation_id: IntColumn = 0
    message: TextColumn = None
    extdata: TextColumn = None
    call_stack: TextColumn = None
    line_info: TextColumn = None

    def __post_init__(self) -> None:
        if self.message is not None and self.extdata is not None:
            raise UsageError("events with both message and extdata", "message_json makes one of the two")


@frozen(kw_only=True)
class Batch:
    """Rows with an event each.

    Args:
        id: ids of the rows; None: the next free ids.
        event: the events, or the ids of events that were written before; None: no events.
        extdata: JSON of the rows themselves.
    """

    TABLE: ClassVar[str]
    CATEGORY: ClassVar[str | None] = None
    IS_LAUNCHED: ClassVar[bool] = False
    """Whether a call launched the work, which then has the call's stack id as its own and as its parent's."""

    id: IntColumn = None
    event: Events | IntColumn = Events()
    extdata: TextColumn = None

    def events(self) -> Events | None:
        """Return the events to write, with the fields that follow from the kind of rows; None: no events to write."""
        if not isinstance(self.event, Events):
            return None
        category, parent = self.event.category, self.event.parent_stack_id
        return replace(
            self.event,
            category=self._category() if category is None else category,
            parent_stack_id=parent if parent is not None else self.event.stack_id if self.IS_LAUNCHED else 0,
        )

    def _category(self) -> TextColumn:
        return self.CATEGORY


@frozen(kw_only=True)
class _Timed(Batch):
    start: IntColumn  # [ns] of the node's clock
    end: IntColumn
    tid: IntColumn = None


@frozen(kw_only=True)
class Regions(_Timed):
    """Calls and ranges on CPU threads; a marker's `name` is its roctx function, its text the message of its event."""

    TABLE = "rocpd_region"

    name: TextColumn = None


@frozen(kw_only=True)
class KernelDispatches(_Timed):
    """Kernels that ran; sizes in work-items and bytes. `region_name` is the text of the enclosing marker.

    `dispatch_id` None: the ids of the rows.
    """

    TABLE = "rocpd_kernel_dispatch"
    CATEGORY = "KERNEL_DISPATCH"
    IS_LAUNCHED = True

    agent_id: IntColumn = None
    kernel_id: IntColumn = None
    dispatch_id: IntColumn = None
    queue_id: IntColumn = 0
    stream_id: IntColumn = 0
    private_segment_size: IntColumn = None
    group_segment_size: IntColumn = None
    workgroup_size_x: IntColumn = 0
    workgroup_size_y: IntColumn = 0
    workgroup_size_z: IntColumn = 0
    grid_size_x: IntColumn = 0
    grid_size_y: IntColumn = 0
    grid_size_z: IntColumn = 0
    region_name: TextColumn = ""
    graph_exec_id: IntColumn = None
    graph_node_id: IntColumn = None


@frozen(kw_only=True)
class MemoryCopies(_Timed):
    """Copies between agents; `name` is the direction, such as MEMORY_COPY_HOST_TO_DEVICE, `size` in bytes."""

    TABLE = "rocpd_memory_copy"
    CATEGORY = "MEMORY_COPY"
    IS_LAUNCHED = True

    name: TextColumn = None
    dst_agent_id: IntColumn = None
    dst_address: IntColumn = None
    src_agent_id: IntColumn = None
    src_address: IntColumn = None
    size: IntColumn = 0
    queue_id: IntColumn = None
    stream_id: IntColumn = None
    region_name: TextColumn = ""
    graph_exec_id: IntColumn = None
    graph_node_id: IntColumn = None


@frozen(kw_only=True)
class MemoryAllocations(_Timed):
    """Allocations (`type` ALLOC, FREE, REALLOC, RECLAIM) of memory (`level` REAL, VIRTUAL, SCRATCH); bytes.

    They are calls: their `parent_stack_id` is the stack id of the enclosing call.
    """

    TABLE = "rocpd_memory_allocate"

    agent_id: IntColumn = None
    type: TextColumn = "ALLOC"
    level: TextColumn = "REAL"
    address: IntColumn = None
    size: IntColumn = 0
    queue_id: IntColumn = None
    stream_id: IntColumn = None

    def _category(self) -> TextColumn:
        levels = plain(self.level)
        return _memory_category(levels) if is_single(levels) else [_memory_category(level) for level in levels]


def _memory_category(level: object) -> str:
    return "SCRATCH_MEMORY" if level == "SCRATCH" else "MEMORY_ALLOCATION"


@frozen(kw_only=True)
class GraphLaunches(_Timed):
    """Launches of executable graphs, from their first kernel to their last (schema 3.0.2)."""

    TABLE = "rocpd_graph_launch"
    CATEGORY = "GRAPH_LAUNCH"
    IS_LAUNCHED = True

    agent_id: IntColumn = None
    queue_id: IntColumn = None
    graph_exec_id: IntColumn = None
    kernel_dispatch_count: IntColumn = None


@frozen(kw_only=True)
class Samples(Batch):
    """Points on tracks; their values are `CounterValues` of their events."""

    TABLE = "rocpd_sample"

    track_id: IntColumn = None
    timestamp: IntColumn = None


@frozen(kw_only=True)
class Arguments:
    """Arguments of events, by position from 0."""

    TABLE: ClassVar[str] = "rocpd_arg"

    event_id: IntColumn
    position: IntColumn
    type: TextColumn = ""
    name: TextColumn = ""
    value: TextColumn = None
    extdata: TextColumn = None


@frozen(kw_only=True)
class CounterValues:
    """Values of counters, measured for dispatches or sampled; `event_id` None: the event is unknown."""

    TABLE: ClassVar[str] = "rocpd_pmc_event"

    event_id: IntColumn
    pmc_id: IntColumn
    value: FloatColumn
    extdata: TextColumn = None
    sample_id: IntColumn = None
    xcc: IntColumn = None
    shader_engine: IntColumn = None
    instance: IntColumn = None


def marker_ranges(
    text: TextColumn,
    start: IntColumn,
    end: IntColumn,
    tid: IntColumn,
    name: TextColumn = "roctxThreadRangeA",
    event: Events = Events(),
) -> Regions:
    """Return ranges that a user marked with `text`, as regions of the roctx function `name`; times in ns."""
    category = MARKER_RANGE if event.category is None else event.category
    return Regions(start=start, end=end, tid=tid, name=name, event=replace(event, category=category, message=text))


def marks(text: TextColumn, time: IntColumn, track_id: IntColumn, event: Events = Events()) -> Samples:
    """Return points in time that a user marked with `text`, as rocprofv3 writes them: samples; times in ns.

    Their track is the thread's: `trace.register(TrackInfo(tid=tid, name=MARKER_RANGE))`.
    """
    category = MARKER_RANGE if event.category is None else event.category
    return Samples(track_id=track_id, timestamp=time, event=replace(event, category=category, message=text))
