"""Traces of PyTorch's profiler (Kineto), on ROCm and CUDA: one process, as JSON, mostly compressed.

The file is read twice, in pieces: what rows need to know stands anywhere in it (`KinetoSurvey`), such as the clock, the
names of threads, the size of a copy, the arguments of a collective; rows are written in the second reading
(`KinetoRows`). What is known of it grows with the number of threads, copies, collectives and forward-backward links,
not with that of events.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

import msgspec

from rocpd.base import by_key, frozen
from rocpd.importers import words
from rocpd.importers.files import TraceSource, TraceTarget
from rocpd.importers.json_stream import JsonEvents
from rocpd.importers.torch_collectives import ANNOTATION, OPERATOR, Range, arguments_of_collectives
from rocpd.schema.rules.categories import GPU_ANNOTATION, GPU_WAIT, PYTHON_FUNCTION, TORCH_OPERATOR, TRACER
from rocpd.schema.trace.events import (
    MARK,
    MARKER_RANGE,
    Events,
    KernelDispatches,
    MemoryAllocations,
    MemoryCopies,
    Regions,
)
from rocpd.schema.trace.infos import AgentInfo, KernelInfo, NodeInfo, ProcessInfo, StreamInfo
from rocpd.schema.trace.writer import TraceWriter

_ENCODED = msgspec.json.Encoder().encode


class Event(msgspec.Struct, gc=False):
    """The fields of an event that are read; parsed, it takes two thirds of the time of a dict."""

    ph: Any = None
    cat: Any = ""
    name: Any = None
    pid: Any = None
    tid: Any = None
    ts: Any = None
    dur: Any = None
    id: Any = None
    args: Any = None


OPERATORS, PYTHON, ANNOTATIONS = "cpu_op", "python_function", "user_annotation"
KERNELS, COPIES, SETS, GPU_ANNOTATIONS = "kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation"
CALLS = ("cuda_runtime", "cuda_driver", "privateuse1_runtime", "privateuse1_driver")
_OPERATIONS = frozenset({KERNELS, COPIES, SETS})
ON_GPU = _OPERATIONS | frozenset({GPU_ANNOTATIONS, "cuda_sync", "gpu_mem"})

_FORMER = {
    "operator": OPERATORS, "runtime": "cuda_runtime", "memcpy": COPIES, "memset": SETS, "python": PYTHON,
    "annotation": ANNOTATIONS,
}  # fmt: skip


_POINT, _OF_PROFILER = "(point)", "trace"
"""Kinds of events that do not last, and of what the profiler says of itself."""


class _Kinds(dict[Any, str]):
    """Category of a range -> its present name, in small letters: PyTorch 1.8 called operators `Operator`."""

    def __missing__(self, category: Any) -> str:
        name = str(category).lower()
        kind = self[category] = _FORMER.get(name, name)
        return kind

    def of(self, events: Sequence[Event]) -> list[str]:
        """Return the kind of each event."""
        try:
            return [self[event.cat] if event.ph == "X" else _POINT for event in events]
        except TypeError:  # a list or an object as a category
            return [self[str(event.cat)] if event.ph == "X" else _POINT for event in events]


def _is_collective(name: str, category: str) -> bool:
    return name == OPERATOR or (category == ANNOTATIONS and name.startswith(ANNOTATION))


class KinetoSurvey:
    """The facts of a trace on its process.

    Attributes:
        threads: thread as events name it -> its name.
        processes: process as events name it -> its name.
        copied: correlation id -> bytes, of calls that copy.
        links: thread and time of an operator -> ids of the links to its forward or backward operator.
        facts: the other keys of the file.
        span: first start and last end of what ran on the CPU, as the file has them.
        devices: numbers of GPUs as operations have them, and as PyTorch's allocator does.
    """

    def __init__(self) -> None:
        self.threads: dict[Any, str] = {}
        self.processes: dict[Any, str] = {}
        self.copied: dict[int, int] = {}
        self.links: dict[tuple[Any, float], list[int]] = {}
        self.facts: dict[str, Any] = {}
        self.span: tuple[float, float] | None = None
        self.devices: tuple[set[int], set[int]] = (set(), set())
        self._kinds = _Kinds()
        self._collectives: list[Range] = []
        self._pids: Counter[Any] = Counter()

    def add(self, events: Sequence[Event]) -> None:
        """Look at events."""
        for kind, of_kind in by_key(zip(self._kinds.of(events), events, strict=True)).items():
            if kind == _POINT:
                self._add_points(of_kind)
            elif kind in _OPERATIONS:
                self._add_devices(of_kind, 0, "device")
            elif kind not in ON_GPU and kind != _OF_PROFILER and (timed := _timed(of_kind)):
                self._add_ranges(kind, timed)

    def _add_points(self, events: Iterable[Event]) -> None:
        """Look at events that do not last."""
        for event in events:
            phase = event.ph
            if phase == "M":
                self._add_name(event)
            elif phase == "i" and event.name == "[memory]":
                self._add_devices([event], 1, "Device Id")
            elif phase in ("s", "f") and event.cat == "fwdbwd" and isinstance(event.id, int):
                self.links.setdefault((event.tid, event.ts), []).append(event.id)

    @property
    def pid(self) -> int:
        """Id of the process: that of most calls and operators."""
        known = [pid for pid, _ in self._pids.most_common() if isinstance(pid, int)]
        return known[0] if known else 0

    @property
    def base(self) -> int:
        """The time that is added to others [ns]: then they count from 1970."""
        base = self.facts.get("baseTimeNanoseconds", 0)
        return base if isinstance(base, int) and base > 0 else 0

    def collectives(self) -> dict[tuple[object, float, str], dict[str, str]]:
        """Return the arguments of collectives by the ranges that carry them out."""
        return arguments_of_collectives(self._collectives)

    def _add_ranges(self, category: str, events: Sequence[Event]) -> None:
        """Look at ranges of the CPU, all with a time."""
        pids = [event.pid for event in events]
        self._pids.update(dict.fromkeys(pids, 0) if category == PYTHON else pids)
        first, last = self.span or (math.inf, -math.inf)
        starts = [event.ts for event in events]
        ends = [start + (event.dur or 0) for start, event in zip(starts, events, strict=True)]
        self.span = min(first, *starts), max(last, *ends)
        if category in CALLS:
            for event in events:
                arguments = event.args
                if isinstance(arguments, dict) and ("bytes" in arguments or "size" in arguments):
                    self._add_copy(arguments)
        elif category != PYTHON:
            names = {name for event in events if type(name := event.name) is str}
            names = {name for name in names if _is_collective(name, category)}
            for event, end in zip(events, ends, strict=True) if names else ():
                name, arguments = event.name, event.args
                if type(name) is str and name in names and isinstance(arguments, dict):
                    self._collectives.append(Range(event.tid, event.ts, end, name, arguments))

    def _add_devices(self, events: Iterable[Event], whose: int, key: str) -> None:
        devices = {its.get(key) for event in events if isinstance(its := event.args, dict)}
        self.devices[whose].update(each for each in devices if isinstance(each, int) and each >= 0)

    def _add_copy(self, arguments: Mapping[str, Any]) -> None:
        size = str(arguments.get("bytes", arguments.get("size")))
        correlation = arguments.get("correlation")
        if size.isdigit() and isinstance(correlation, int):
            self.copied[correlation] = int(size)

    def _add_name(self, event: Event) -> None:
        arguments = event.args
        name = arguments.get("name") if isinstance(arguments, dict) else None
        if not isinstance(name, str):
            return
        if event.name == "thread_name":
            self.threads[event.pid, event.tid] = name
        elif event.name == "process_name":
            self.processes[event.pid] = name


def _timed(events: Sequence[Event]) -> Sequence[Event]:
    """Return the events with a time."""
    if {type(event.ts) for event in events} <= {int, float}:
        return events
    return [event for event in events if isinstance(event.ts, (int, float))]


_SHOWN = {
    OPERATORS: TORCH_OPERATOR, ANNOTATIONS: MARKER_RANGE, PYTHON: PYTHON_FUNCTION, GPU_ANNOTATIONS: GPU_ANNOTATION,
    MARK: MARK, "overhead": TRACER, "cuda_sync": GPU_WAIT,
}  # fmt: skip
"""Kind of a region -> its category, where that does not follow from its name."""
_NO_REGIONS = frozenset({_OF_PROFILER, _POINT})
_GPU_TYPES = frozenset({1, 6})  # of c10::DeviceType: CUDA, HIP
_IN_COLUMNS = frozenset({
    "External id", "external id", "correlation", "device", "stream", "grid", "block", "shared memory",
    "registers per thread", "bytes", "graph id", "graph node id", "Ev Idx", "Record function id", "finished", "cbid",
    "cid", "Call stack", "memory bandwidth (GB/s)",
})  # fmt: skip
"""Arguments that rows hold elsewhere, that follow from others, or that number records of the profiler."""
_OF_CALLS = frozenset({"bytes", "stream", "grid", "block", "shared memory"})
"""Those of them that calls hold nowhere else."""
_NO_SIZES = (0, 0, 0)
_UNKNOWN_SIZES = (0,) * len(words.SIZES)
_MOST = (1 << 63) - 1  # of SQLite's integers
_ADDRESS = re.compile(r" at 0x[0-9a-f]+(?=>)")  # in names of functions: another one in each process


_Item = TypeVar("_Item")
_Made = TypeVar("_Made")
_ODD = (KeyError, TypeError, ValueError, OverflowError)
"""Errors that events without a time or a name cause, and values of types that PyTorch's have not."""

_NOT_READ = "events without a time or a name, or with values of another type than these have"

_Columns: TypeAlias = dict[str, list[Any]]
_Recorded: TypeAlias = Sequence[words.Argument]
_Placed: TypeAlias = tuple[Event, str]
"""An event and its kind."""


def _append(waiting: _Columns, columns: _Columns) -> None:
    """Add rows to those of the same batch."""
    for name, column in columns.items():
        waiting.setdefault(name, []).extend(column)


@frozen
class _Regions:
    """Ranges and marks of one piece of the file, in order: what is found out about each, kind by kind."""

    events: Sequence[Event]
    names: list[str]
    arguments: Sequence[dict[str, Any]]
    lines: list[Any]
    categories: list[str]
    calls: list[Any]
    extdata: list[str]
    stacks: list[str]
    recorded: list[_Recorded]


class KinetoRows:
    """Writes the events of one process.

    Args:
        trace: the file.
        survey: what the first reading says.
        lose: called with what has no place in the file.
    """

    def __init__(self, trace: TraceWriter, survey: KinetoSurvey, lose: Callable[[str], None]) -> None:
        self._trace, self._survey, self._lose = trace, survey, lose
        self._base = survey.base
        self._collectives = survey.collectives()
        self._in_collectives = {name for _, _, name in self._collectives}
        self._threads = words.ThreadIds(
            trace, {tid: name for (pid, tid), name in survey.threads.items() if pid == survey.pid}
        )
        self._counters = words.CounterTracks(trace)
        self._symbols = words.Registered(trace, lambda key: KernelInfo(display_name=key[0], arch_vgpr_count=key[1]))
        self._agents = words.Registered(trace, words.gpu)
        self._streams = words.Registered(trace, StreamInfo)
        self._done: set[int] = set()  # hashes of operations
        self._kinds = _Kinds()
        self._regions: _Columns = {}
        self._kernels: _Columns = {}
        self._copies: _Columns = {}
        self._allocations: list[dict[str, Any]] = []
        # GPU as PyTorch's allocator counts -> as operations do: roctracer counts the CPUs of the node too.
        is_one = [len(devices) for devices in survey.devices] == [1, 1]
        self._memory_is_on = dict(zip(*reversed(survey.devices), strict=True)) if is_one else {}
        trace.register(words.HOST)
        described = _devices(survey.facts)
        for device in described:
            self._agents[device["id"]] = trace.register(_agent(device["id"], device))
        if len({_json({**device, "id": 0}) for device in described}) == 1:  # then those not listed are like them
            for number in sorted(survey.devices[0] - set(self._agents)):
                self._agents[number] = trace.register(_agent(number, described[0]))

    def add(self, events: Sequence[Event]) -> None:
        """Add events to the batch."""
        kinds = self._kinds.of(events)
        if _POINT in kinds:
            for at, kind in enumerate(kinds):
                if kind is _POINT and self._add_point(events[at]):
                    kinds[at] = MARK
        regions: list[_Placed] = []
        operations: list[_Placed] = []
        for placed in zip(events, kinds, strict=True):
            if placed[1] in _OPERATIONS:
                operations.append(placed)
            elif placed[1] not in _NO_REGIONS:
                regions.append(placed)
        for columns in self._made(self._region_columns, regions):
            _append(self._regions, columns)
        operations = self._new(operations)
        for columns in self._made(self._kernel_columns, [event for event, kind in operations if kind == KERNELS]):
            _append(self._kernels, columns)
        for columns in self._made(self._copy_columns, [place for place in operations if place[1] != KERNELS]):
            _append(self._copies, columns)

    def write(self) -> None:
        """Write the batch."""
        regions, kernels, copies = self._regions, self._kernels, self._copies
        self._regions, self._kernels, self._copies = {}, {}, {}
        if regions:
            recorded = regions.pop("recorded")
            written = self._trace.write(Regions(**_with_events(regions)))
            words.write_arguments(self._trace, written.events, recorded)
        if kernels:
            if any(map(_UNKNOWN_SIZES.__ne__, sizes := kernels.pop("sizes"))):
                kernels |= zip(words.SIZES, map(list, zip(*sizes, strict=True)), strict=True)
            self._trace.write(KernelDispatches(**_with_events(kernels)))
        if copies:
            self._trace.write(MemoryCopies(**_with_events(copies)))
        if self._allocations:
            words.write_rows(self._trace, MemoryAllocations, self._allocations)
            self._allocations.clear()
        self._counters.write()

    def _add_point(self, event: Event) -> bool:
        """Add an event that does not last; return whether it is a mark, which lies with the regions."""
        phase = event.ph
        try:
            if phase == "i" and event.name == "[memory]":
                self._add_memory(event, event.args or {})
            elif phase == "i":
                return bool(event.cat)
            elif phase == "C":
                self._add_counters(event)
            elif phase not in ("M", "s", "t", "f"):
                self._lose(f"events of the phase {phase!r}, which PyTorch does not write")
        except _ODD:
            self._lose(_NOT_READ)
        return False

    def _made(self, make: Callable[[Sequence[_Item]], _Made], items: Sequence[_Item]) -> list[_Made]:
        """Return what a function makes of items, in parts without those at which it fails."""
        try:
            return [make(items)] if items else []
        except _ODD:
            if len(items) == 1:
                self._lose(_NOT_READ)
                return []
        half = len(items) // 2
        return self._made(make, items[:half]) + self._made(make, items[half:])

    def _new(self, operations: Sequence[_Placed]) -> list[_Placed]:
        """Return the operations that the file had not before: one of a launch starts once on a stream."""
        new = []
        for operation, hashed in itertools.chain.from_iterable(self._made(_hashed, operations)):
            if hashed in self._done:
                self._lose("operations of GPUs that the file has twice")
            else:
                self._done.add(hashed)
                new.append(operation)
        return new

    def _add_counters(self, event: Event) -> None:
        for series, value in (event.args or {}).items():
            if event.name is None:
                raise TypeError("name")
            name = event.name if series in ("value", "") else f"{event.name} {series}"
            self._counters.add(str(name), None, "", self._time(event.ts), float(value))

    def _time(self, microseconds: float) -> int:
        """Return a time of the file in ns from 1970, or whatever its clock counts from."""
        return self._base + round(microseconds * 1000)

    def _timed(self, events: Sequence[Event], names: Sequence[Any]) -> _Columns:
        """Return when events start and end.

        Raises:
            TypeError: one has a name that is no text, or no time.
            OverflowError: a time does not fit into 64 bits.
        """
        if set(map(type, names)) != {str}:
            raise TypeError("name")
        base = self._base
        start = [base + round(event.ts * 1000) for event in events]
        lasting = [round((event.dur or 0) * 1000) for event in events]
        end = [time + (ns if ns > 0 else 0) for time, ns in zip(start, lasting, strict=True)]
        if max(end) > _MOST or min(start) < -_MOST:
            raise OverflowError("a time of more than 64 bits")
        return {"start": start, "end": end}

    def _region_columns(self, placed: Sequence[_Placed]) -> _Columns:
        """Return the columns of ranges and marks, and the arguments of each."""
        events, kinds = zip(*placed, strict=True)
        names = [event.name for event in events]
        times = self._timed(events, names)
        arguments = [event.args or {} for event in events]
        lines = [event.tid for event in events]
        count = len(events)
        regions = _Regions(
            events, names, arguments, lines, [_SHOWN.get(kind) or kind.upper() for kind in kinds],
            [0] * count, ["{}"] * count, ["{}"] * count, [()] * count,
        )  # fmt: skip
        for kind, places in by_key(zip(kinds, range(count), strict=True)).items():
            _DESCRIBED.get(kind, KinetoRows._describe_others)(self, regions, places)
        return times | {
            "tid": [self._threads[line] for line in lines],
            "name": names,
            "category": regions.categories,
            "stack_id": regions.calls,
            "correlation_id": _externals(arguments),
            "extdata": regions.extdata,
            "call_stack": regions.stacks,
            "recorded": regions.recorded,
        }

    def _describe_operators(self, regions: _Regions, places: Sequence[int]) -> None:
        links = self._survey.links
        for at in places:
            tid, its = regions.events[at].tid, regions.arguments[at]
            recorded = _recorded(its) if its else ()
            if links and (linked := links.get((tid, regions.events[at].ts))):
                recorded = [*recorded, *(("int", "fwdbwd", str(link)) for link in linked)]
            if regions.names[at] in self._in_collectives:
                recorded = [*recorded, *self._of_collective(regions.events[at])]
            regions.recorded[at] = recorded
            if its and isinstance(stack := its.get("Call stack"), str) and stack:
                regions.stacks[at] = _json([frame for frame in stack.split(";") if frame])

    def _describe_annotations(self, regions: _Regions, places: Sequence[int]) -> None:
        self._describe_marks(regions, places)
        for at in places:
            if regions.names[at] in self._in_collectives:
                regions.recorded[at] = [*regions.recorded[at], *self._of_collective(regions.events[at])]

    def _of_collective(self, event: Event) -> list[words.Argument]:
        facts = self._collectives.get((event.tid, event.ts, event.name), {})
        return [("", name, value) for name, value in facts.items()]

    def _describe_calls(self, regions: _Regions, places: Sequence[int]) -> None:
        for at in places:
            its = regions.arguments[at]
            regions.categories[at] = words.api_category(regions.names[at])
            regions.calls[at] = its.get("correlation", 0)
            if left := _left_of_call(tuple(its)):
                regions.recorded[at] = [("", name, _text(its[name])) for name in left]

    def _describe_python(self, regions: _Regions, places: Sequence[int]) -> None:
        for at in places:
            its = regions.arguments[at]
            regions.extdata[at] = _json({name: its[name] for name in _left(tuple(its)) if its[name] is not None})
            if " at 0x" in (name := regions.names[at]):
                regions.names[at] = _ADDRESS.sub("", name)

    def _describe_others(self, regions: _Regions, places: Sequence[int]) -> None:
        """Describe ranges of kinds that have no method of their own."""
        for at in places:
            event, its = regions.events[at], regions.arguments[at]
            device, stream = its.get("device"), its.get("stream")
            if isinstance(device, int) and isinstance(stream, int):
                regions.lines[at] = device, stream, self._kinds[str(event.cat)]
            regions.recorded[at] = _recorded(its)

    def _describe_on_gpu(self, regions: _Regions, places: Sequence[int]) -> None:
        for at in places:
            regions.lines[at] = regions.events[at].pid, regions.lines[at], "annotations"

    def _describe_marks(self, regions: _Regions, places: Sequence[int]) -> None:
        for at in places:
            regions.extdata[at] = _json({"message": regions.names[at]})
            regions.recorded[at] = _recorded(regions.arguments[at])

    def _kernel_columns(self, events: Sequence[Event]) -> _Columns:
        arguments = [event.args or {} for event in events]
        registers = [its.get("registers per thread") for its in arguments]
        return self._on_gpu(events) | {
            "kernel_id": [self._symbols[event.name, count] for event, count in zip(events, registers, strict=True)],
            "group_segment_size": [its.get("shared memory") for its in arguments],
            "graph_exec_id": [its.get("graph id") for its in arguments],
            "graph_node_id": [its.get("graph node id") for its in arguments],
            "sizes": [
                _launch_sizes(_sizes(its["block"]), _sizes(its.get("grid"))) if "block" in its else _UNKNOWN_SIZES
                for its in arguments
            ],
        }

    def _copy_columns(self, copies: Sequence[_Placed]) -> _Columns:
        """Return the columns of copies, and of what fills memory: that has no source."""
        events = [event for event, _ in copies]
        columns = self._on_gpu(events)
        agents = columns.pop("agent_id")
        kinds = zip(*map(self._copy_kind, copies, agents), strict=True)
        columns |= zip(("name", "src_agent_id", "dst_agent_id", "category"), map(list, kinds), strict=True)
        copied, arguments = self._survey.copied, [event.args or {} for event in events]
        columns["size"] = [its.get("bytes", copied.get(its.get("correlation", 0), 0)) for its in arguments]
        return columns

    def _copy_kind(self, copy: _Placed, agent: int) -> tuple[str, int | None, int | None, str]:
        """Return name, source, target and category of a copy."""
        event, kind = copy
        if kind == SETS:
            return words.MEMORY_SET, None, agent, words.MEMORY_SET
        name, *hosts = words.copy_direction(event.name)
        ends = [None if is_host is None else words.HOST.id if is_host else agent for is_host in hosts]
        arguments = event.args or {}
        for at, key in enumerate(("fromDevice", "toDevice")):
            if isinstance(arguments.get(key), int):
                ends[at] = self._agents[arguments[key]]
        return name, ends[0], ends[1], "MEMORY_COPY"

    def _add_memory(self, event: Event, arguments: Mapping[str, Any]) -> None:
        """Add what PyTorch's allocator gave or took, and what it holds in all."""
        time, size, device = self._time(event.ts), arguments["Bytes"], arguments.get("Device Id", -1)
        is_gpu = arguments.get("Device Type") in _GPU_TYPES and device >= 0
        device = self._memory_is_on.get(device, device)
        agent = self._agents[device] if is_gpu else words.HOST.id
        thread = self._threads[event.tid]
        kind = "FREE" if size < 0 else "ALLOC"
        self._allocations.append({
            "start": time, "end": time, "agent_id": agent, "type": kind, "address": arguments.get("Addr"),
            "size": abs(size), "tid": thread, "event": {},
        })  # fmt: skip
        where = f"GPU {device}" if is_gpu else "CPU"
        for key in ("Total Allocated", "Total Reserved"):
            if is_gpu and isinstance(arguments.get(key), int):
                name = f"PyTorch {key.lower()} {where}"
                self._counters.add(name, agent, "bytes", time, float(arguments[key]))

    def _on_gpu(self, events: Sequence[Event]) -> _Columns:
        """Return the columns that work of GPUs has in common; arguments without a column are JSON."""
        agents, streams = self._agents, self._streams
        arguments = [event.args or {} for event in events]
        operations = list(zip(events, arguments, strict=True))
        left = [_left(tuple(its)) for its in arguments]
        return self._timed(events, [event.name for event in events]) | {
            "agent_id": [agents[its.get("device", event.pid)] for event, its in operations],
            "stream_id": [streams[its.get("stream", event.tid)] for event, its in operations],
            "stack_id": [its.get("correlation", 0) for its in arguments],
            "correlation_id": _externals(arguments),
            "extdata": [
                _json({name: its[name] for name in names}) if names else "{}"
                for its, names in zip(arguments, left, strict=True)
            ],
        }


_DESCRIBED: Mapping[str, Callable[[KinetoRows, _Regions, Sequence[int]], None]] = {
    OPERATORS: KinetoRows._describe_operators,
    ANNOTATIONS: KinetoRows._describe_annotations,
    PYTHON: KinetoRows._describe_python,
    GPU_ANNOTATIONS: KinetoRows._describe_on_gpu,
    MARK: KinetoRows._describe_marks,
    **dict.fromkeys(CALLS, KinetoRows._describe_calls),
}


def _devices(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    devices = facts.get("deviceProperties")
    listed = devices if isinstance(devices, list) else []
    return [device for device in listed if isinstance(device, dict) and isinstance(device.get("id"), int)]


def _agent(number: int, device: Mapping[str, Any]) -> AgentInfo:
    """Return the agent with this number that an entry of `deviceProperties` describes."""
    known = {"id", "name", "numSms", "totalGlobalMem", "warpSize"}
    more = {key: value for key, value in device.items() if key not in known}
    facts = {"cu_count": device.get("numSms"), "wave_front_size": device.get("warpSize"), **more}
    return words.gpu(number, device.get("name"), device.get("totalGlobalMem"), facts)


_OF_EVENTS = ("category", "stack_id", "correlation_id", "extdata", "call_stack")
_NOTHING = {
    "extdata": "{}",
    "call_stack": "{}",
    "group_segment_size": None,
    "graph_exec_id": None,
    "graph_node_id": None,
}


def _with_events(columns: _Columns) -> dict[str, Any]:
    """Return the columns of rows with those of their events as one; what no row has is left to the table."""
    held = {
        name: column for name, column in columns.items()
        if name not in _NOTHING or column.count(_NOTHING[name]) < len(column)
    }  # fmt: skip
    event = Events(**{name: held.pop(name) for name in _OF_EVENTS if name in held})
    return {**held, "event": event}


def _hashed(operations: Sequence[_Placed]) -> list[tuple[_Placed, int]]:
    """Return operations of GPUs, each with a hash of what says which one it is."""
    hashes = []
    for event, _ in operations:
        its = event.args or {}
        hashes.append(hash((event.ts, its.get("correlation"), its.get("device"), its.get("stream"), event.name)))
    return list(zip(operations, hashes, strict=True))


def _externals(arguments: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the numbers of the operators that were running."""
    numbers = [its["External id"] if "External id" in its else its.get("external id", 0) for its in arguments]
    return numbers if set(map(type, numbers)) == {int} else [n if isinstance(n, int) else 0 for n in numbers]


@lru_cache(1024)
def _left(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of arguments that rows don't hold elsewhere."""
    return tuple(name for name in names if name not in _IN_COLUMNS)


@lru_cache(1024)
def _left_of_call(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in _IN_COLUMNS or name in _OF_CALLS)


def _sizes(sizes: Any) -> tuple[int, ...]:
    return tuple(sizes) if isinstance(sizes, list) and len(sizes) == 3 else _NO_SIZES


@lru_cache(4096)
def _launch_sizes(block: tuple[int, ...], grid: tuple[int, ...]) -> tuple[int, ...]:
    """Return the sizes of the blocks of a launch, and of the whole."""
    return *block, *(of_block * blocks for of_block, blocks in zip(block, grid, strict=True))


def _recorded(arguments: Mapping[str, Any]) -> _Recorded:
    """Return the arguments of an operator: type, name and text of each."""
    return [
        ("int" if isinstance(value, int) else "", name, _text(value))
        for name in _left(tuple(arguments))
        for value in (arguments[name],)
    ]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    return _ENCODED(value).decode()


def read(source: TraceSource, target: TraceTarget) -> None:
    """Write the process of a PyTorch trace.

    Raises:
        InputError: the file is damaged elsewhere than at its end.
    """
    survey = KinetoSurvey()
    first = JsonEvents(source.path, Event, target.lose)
    with source.stream() as stream:
        for batch in first.batches(stream):
            for events in batch:
                survey.add(events)
                del events  # before the next ones are parsed: their memory is used again
    survey.facts = first.facts
    # Nothing in the file names the machine: clocks of two files compare as well as NTP sets them.
    node = NodeInfo(machine_id=f"kineto-{source.digest}", hostname=source.path.name)
    with target.rank(survey.pid, node, _process(survey)) as trace, source.stream() as stream:
        rows = KinetoRows(trace, survey, target.lose)
        for batch in JsonEvents(source.path, Event, lambda _: None).batches(stream):
            for events in batch:
                rows.add(events)
                del events
            rows.write()
        trace.note("clock", "CLOCK_REALTIME")
        for name, value in survey.facts.items():
            if isinstance(value, (str, int, float)):
                trace.note(f"kineto::{name}", str(value))


def _process(survey: KinetoSurvey) -> ProcessInfo:
    info = survey.facts.get("distributedInfo")
    job = info if isinstance(info, dict) else {}
    extdata = {"distributedInfo": job} if job else {}
    for name, key in (("mpi_rank", "rank"), ("mpi_size", "world_size")):
        if isinstance(job.get(key), int):
            extdata[name] = job[key]
    start, end = (survey.base + round(time * 1000) for time in survey.span) if survey.span else (None, None)
    command = survey.processes.get(survey.pid)
    return ProcessInfo(survey.pid, start=start, end=end, command=command, extdata=json.dumps(extdata))
