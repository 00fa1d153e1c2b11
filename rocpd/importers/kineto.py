"""Traces of PyTorch's profiler (Kineto), on ROCm and CUDA: one process, as JSON, mostly compressed.

The file is read twice, in pieces: what rows need to know stands anywhere in it (`KinetoSurvey`), such as the clock, the
names of threads, the size of a copy, the arguments of a collective; rows are written in the second reading
(`KinetoRows`). What is known of it grows with the number of threads, copies, collectives and forward-backward links,
not with that of events.

What PyTorch records of its collectives becomes arguments of RCCL calls, which `facts.communication.rccl` reads.
ProcessGroupNCCL records an operator `record_param_comms` with the arguments of a collective, and in it an annotation
`nccl:all_reduce` around the call of the library. The arguments go to the annotation, which is the innermost range
around the launch, or to the operator where there is none.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from types import MethodType
from typing import Any, TypeAlias, TypeVar

import numpy as np
import orjson

from rocpd.base import Ints, by_key, frozen
from rocpd.importers import words
from rocpd.importers.files import TraceSource, TraceTarget
from rocpd.importers.json_stream import SMALL_BLOCK, Event, JsonEvents
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

OPERATOR, ANNOTATION = "record_param_comms", "nccl:"

_FUNCTIONS = (
    ("allreduce", "ncclAllReduce", "count"),
    ("allgather", "ncclAllGather", "sendcount"),
    ("reducescatter", "ncclReduceScatter", "recvcount"),
    ("alltoallv", "ncclAllToAllv", ""),
    ("alltoall", "ncclAllToAll", "count"),
    ("broadcast", "ncclBroadcast", "count"),
    ("reduce", "ncclReduce", "count"),
    ("gather", "ncclGather", "sendcount"),
    ("scatter", "ncclScatter", "recvcount"),
    ("send", "ncclSend", "count"),
    ("recv", "ncclRecv", "count"),
)
"""Start of the name of a collective, in small letters only -> the function of RCCL, and its argument for the count."""

_OF_ONE_SIZE = ("ncclAllReduce", "ncclBroadcast", "ncclReduce", "ncclSend", "ncclRecv")
"""Functions that give and get as much, however large the group is: annotations don't say that."""

_MEANS_BY_RANK = {
    "ncclBroadcast": "root", "ncclReduce": "root", "ncclGather": "root", "ncclScatter": "root",
    "ncclSend": "peer", "ncclRecv": "peer",
}  # fmt: skip
"""Function -> what the argument `Rank` of `record_param_comms` is, if not the rank itself; always within the group."""

_DATA_TYPES = {
    "bfloat16": "ncclBfloat16", "half": "ncclFloat16", "float": "ncclFloat32", "double": "ncclFloat64",
    "char": "ncclInt8", "signedchar": "ncclInt8", "byte": "ncclUint8", "unsignedchar": "ncclUint8", "bool": "ncclUint8",
    "int": "ncclInt32", "long": "ncclInt64", "longint": "ncclInt64",
    "float8_e4m3fn": "ncclFloat8e4m3", "float8_e4m3fnuz": "ncclFloat8e4m3", "float8_e5m2": "ncclFloat8e5m2",
    "float8_e5m2fnuz": "ncclFloat8e5m2",
}  # fmt: skip
"""Type of a tensor, as `_data_type` shortens it -> RCCL's."""


@frozen
class Range:
    """An operator or annotation of a collective: thread, start and end, as the file has them, name and arguments."""

    tid: object
    start: float
    end: float
    name: str
    arguments: Mapping[str, Any]

    @property
    def key(self) -> tuple[object, float, str]:
        """The key that finds it again."""
        return self.tid, self.start, self.name


def arguments_of_collectives(ranges: Sequence[Range]) -> dict[tuple[object, float, str], dict[str, str]]:
    """Return the arguments of RCCL calls by the ranges that carry them out.

    Args:
        ranges: the operators and annotations of a process.
    """
    operators = by_key((each.tid, each) for each in ranges if each.name == OPERATOR)
    annotations = [each for each in ranges if each.name != OPERATOR]
    for on_thread in operators.values():
        on_thread.sort(key=lambda operator: operator.start)
    result, used = {}, set()
    for annotation in annotations:
        if around := _around(operators.get(annotation.tid, ()), annotation):
            used.add(around.key)
        facts = _of_operator(around.arguments) if around and "Collective name" in around.arguments else {}
        result[annotation.key] = _of_annotation(annotation) | facts
    for operator in (operator for on_thread in operators.values() for operator in on_thread):
        if operator.key not in used and "Collective name" in operator.arguments:
            result[operator.key] = _of_operator(operator.arguments)
    return {key: facts for key, facts in result.items() if "function" in facts}


def _around(operators: Any, inner: Range) -> Range | None:
    """Return the innermost of the operators of a thread, in order of start, in which a range lies."""
    at = bisect_right(operators, inner.start, key=lambda operator: operator.start) - 1
    return operators[at] if at >= 0 and operators[at].end >= inner.end else None


def _of_operator(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return what the arguments of `record_param_comms` say; see `init_tensor…` in PyTorch's ParamCommsUtils."""
    facts = _function_of(str(arguments.get("Collective name", "")))
    given, taken = (_whole_number(arguments.get(f"{side} msg nelems")) for side in ("In", "Out"))
    size, ranks = _whole_number(arguments.get("Group size")), _ranks_of(arguments.get("Process Group Ranks"))
    group, number = arguments.get("Process Group Name"), _whole_number(arguments.get("Rank"))
    if group is not None:
        facts["comm"] = f"group {group}" + (f" of ranks {ranks}" if ranks else "")
    if size:
        facts["nranks"] = str(size)
    if number is not None:
        facts[_MEANS_BY_RANK.get(facts.get("function", ""), "rank")] = str(number)
    _add_count(facts, given, taken, size)
    datatype = _data_type(str(arguments.get("dtype", "")))
    return facts | ({"datatype": datatype} if datatype else {})


def _of_annotation(annotation: Range) -> dict[str, str]:
    """Return what the name and the tensors of an annotation say, which is less than what its operator does."""
    facts = _function_of(annotation.name.removeprefix(ANNOTATION))
    if peers := re.search(r"(\d+)\s*(?:->|<-)\s*(\d+)", annotation.name):
        facts["rank"], facts["peer"] = peers.groups()
    shapes, types = annotation.arguments.get("Input Dims"), annotation.arguments.get("Input type")
    if isinstance(shapes, list) and shapes and isinstance(types, list) and types:
        datatype = _data_type(str(types[0]))
        try:
            count = sum(math.prod(shape) for shape in shapes)
        except TypeError:
            return facts
        if datatype and facts.get("function") in _OF_ONE_SIZE:
            _add_count(facts, count, None, None)
            facts["datatype"] = datatype
    return facts


def _function_of(name: str) -> dict[str, str]:
    letters = re.sub("[^a-z]", "", name)
    return next(({"function": function} for start, function, _ in _FUNCTIONS if letters.startswith(start)), {})


def _add_count(facts: dict[str, str], given: int | None, taken: int | None, ranks: int | None) -> None:
    """Add the argument that says how much is moved, as RCCL's function has it."""
    argument = next((count for _, function, count in _FUNCTIONS if function == facts.get("function")), "")
    count = taken if argument == "recvcount" else given
    if facts.get("function") == "ncclAllToAll":
        count = given // ranks if given is not None and ranks else None
    if argument and count is not None:
        facts[argument] = str(count)


def _data_type(name: str) -> str | None:
    """Return RCCL's name of the type of a tensor, None if it is unknown.

    >>> _data_type("c10::BFloat16"), _data_type("BFloat16"), _data_type("long int"), _data_type("Float8_e5m2")
    ('ncclBfloat16', 'ncclBfloat16', 'ncclInt64', 'ncclFloat8e5m2')
    """
    return _DATA_TYPES.get(name.rpartition("::")[2].lower().replace(" ", ""))


def _whole_number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _ranks_of(text: Any) -> str | None:
    """Return how the ranks of a group are listed; PyTorch cuts long lists."""
    if not isinstance(text, str) or not re.search(r"\d", text):
        return None
    parts = re.findall(r"\d+|\.\.\.", text)
    if "..." not in parts and set(np.diff([int(word) for word in parts]).tolist()) == {1}:
        return f"{parts[0]}-{parts[-1]}"
    return ",".join(parts)


OPERATORS, PYTHON, ANNOTATIONS = "cpu_op", "python_function", "user_annotation"
KERNELS, COPIES, SETS, GPU_ANNOTATIONS = "kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation"
CALLS = ("cuda_runtime", "cuda_driver", "privateuse1_runtime", "privateuse1_driver")
_OPERATIONS = frozenset({KERNELS, COPIES, SETS})
ON_GPU = _OPERATIONS | frozenset({GPU_ANNOTATIONS, "cuda_sync", "gpu_mem"})

_FORMER = {
    "operator": OPERATORS, "runtime": "cuda_runtime", "memcpy": COPIES, "memset": SETS, "python": PYTHON,
    "annotation": ANNOTATIONS,
}  # fmt: skip


class _Present(dict[str, str]):
    """Category of an event -> its present name, in small letters: PyTorch 1.8 called operators `Operator`."""

    def __missing__(self, category: str) -> str:
        present = self[category] = _FORMER.get(category.lower(), category.lower())
        return present


def _argument(event: Event, name: str) -> Any:
    arguments = event.get("args")
    return arguments.get(name) if isinstance(arguments, dict) else None


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
        self._present = _Present()
        self._collectives: list[Range] = []
        self._pids: Counter[Any] = Counter()

    def add(self, events: Iterable[Event]) -> None:
        """Look at events."""
        ranges: dict[str, list[Event]] = defaultdict(list)
        for event in events:
            phase = event.get("ph")
            if phase == "X":
                category = event.get("cat", "")
                ranges[category if type(category) is str else str(category)].append(event)
            elif phase == "M":
                self._add_name(event)
            elif phase == "i" and event.get("name") == "[memory]":
                self._add_devices([event], 1, "Device Id")
            elif phase in ("s", "f") and event.get("cat") == "fwdbwd" and isinstance(event.get("id"), int):
                self.links.setdefault((event.get("tid"), event.get("ts", 0)), []).append(event["id"])
        for written, of_category in ranges.items():
            category = self._present[written]
            if category in _OPERATIONS:
                self._add_devices(of_category, 0, "device")
            elif category not in ON_GPU and category != "trace" and (timed := _timed(of_category)):
                self._add_ranges(category, timed)

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
        pids = [event.get("pid") for event in events]
        self._pids.update(dict.fromkeys(pids, 0) if category == PYTHON else pids)
        first, last = self.span or (math.inf, -math.inf)
        ends = [event["ts"] + (event.get("dur") or 0) for event in events]
        self.span = min(first, *[event["ts"] for event in events]), max(last, *ends)
        if category in CALLS:
            for event in events:
                arguments = event.get("args")
                if isinstance(arguments, dict) and ("bytes" in arguments or "size" in arguments):
                    self._add_copy(arguments)
        elif category != PYTHON:
            names = {name for event in events if type(name := event.get("name")) is str}
            names = {name for name in names if _is_collective(name, category)}
            for event, end in zip(events, ends, strict=True) if names else ():
                name, arguments = event.get("name"), event.get("args")
                if type(name) is str and name in names and isinstance(arguments, dict):
                    self._collectives.append(Range(event.get("tid"), event["ts"], end, name, arguments))

    def _add_devices(self, events: Iterable[Event], whose: int, key: str) -> None:
        devices = {its.get(key) for event in events if isinstance(its := event.get("args"), dict)}
        self.devices[whose].update(each for each in devices if isinstance(each, int) and each >= 0)

    def _add_copy(self, arguments: Mapping[str, Any]) -> None:
        size = str(arguments.get("bytes", arguments.get("size")))
        correlation = arguments.get("correlation")
        if size.isdigit() and isinstance(correlation, int):
            self.copied[correlation] = int(size)

    def _add_name(self, event: Event) -> None:
        name = _argument(event, "name")
        if not isinstance(name, str):
            return
        if event.get("name") == "thread_name":
            self.threads[event.get("pid"), event.get("tid")] = name
        elif event.get("name") == "process_name":
            self.processes[event.get("pid")] = name


def _timed(events: Sequence[Event]) -> Sequence[Event]:
    """Return the events with a time."""
    if {type(event.get("ts")) for event in events} <= {int, float}:
        return events
    return [event for event in events if isinstance(event.get("ts"), (int, float))]


_OTHERS = {"overhead": TRACER, "cuda_sync": GPU_WAIT}
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
_EXACT = 1 << 43  # [us]: below, whole ns are exact as floats
_ADDRESS = re.compile(r" at 0x[0-9a-f]+(?=>)")  # in names of functions: another one in each process


_Item = TypeVar("_Item")
_Rows = TypeVar("_Rows")
_ODD = (KeyError, TypeError, ValueError, OverflowError)
"""Errors that events without a time or a name cause, and values of types that PyTorch's have not."""

_NOT_READ = "events without a time or a name, or with values of another type than these have"

_Recorded: TypeAlias = list[words.Argument]
_Described: TypeAlias = tuple[int, str, str, Any, str, str, _Recorded]
"""Thread, name, category and call of a region, its extdata and call stack, and the arguments of its event."""
_Operation: TypeAlias = tuple[Event, dict[str, Any]]
"""An operation of a GPU and its arguments."""
_Describe: TypeAlias = Callable[[Event, Mapping[str, Any]], _Described]


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
        self._present = _Present()
        self._describing = _Describing(self)
        self._regions: list[tuple[Event, dict[str, Any], _Describe]] = []  # with arguments
        self._kernels: list[_Operation] = []
        self._copies: list[_Operation] = []
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

    def add(self, events: Iterable[Event]) -> None:
        """Write events."""
        for event in events:
            try:
                if event.get("ph") == "X":
                    self._place(event, event.get("args") or {})
                else:
                    self._add_point(event, event.get("args") or {})
            except _ODD:
                self._lose(_NOT_READ)
        regions = self._made(self._region_rows, self._regions)
        operations = self._made(self._kernel_rows, self._kernels) + self._made(self._copy_rows, self._copies)
        for ranges, recorded in regions:
            words.write_arguments(self._trace, self._trace.write(ranges).events, recorded)
        for rows in operations:
            self._trace.write(rows)
        if self._allocations:
            words.write_rows(self._trace, MemoryAllocations, self._allocations)
        self._counters.write()
        for collected in (self._regions, self._kernels, self._copies, self._allocations):
            collected.clear()

    def _place(self, event: Event, arguments: dict[str, Any]) -> None:
        """Put a range with those of its kind."""
        written = event.get("cat", "")
        category = self._present[written if type(written) is str else str(written)]
        if category not in _OPERATIONS:
            if category != "trace":
                self._regions.append((event, arguments, self._describing[category]))
        elif self._is_new(event, arguments):
            (self._kernels if category == KERNELS else self._copies).append((event, arguments))

    def _add_point(self, event: Event, arguments: dict[str, Any]) -> None:
        """Add an event that does not last."""
        phase = event.get("ph")
        if phase == "i" and event.get("name") == "[memory]":
            self._add_memory(event, arguments)
        elif phase == "i" and event.get("cat"):
            self._regions.append((event, arguments, self._describing[MARK]))
        elif phase == "C":
            self._add_counters(event)
        elif phase not in ("M", "s", "t", "f", "i"):
            self._lose(f"events of the phase {phase!r}, which PyTorch does not write")

    def _made(self, make: Callable[[Sequence[_Item]], _Rows], items: Sequence[_Item]) -> list[_Rows]:
        """Return the rows that a function makes of items, without those at which it fails."""
        try:
            return [make(items)] if items else []
        except _ODD:
            return self._made(make, self._good(make, items))

    def _good(self, make: Callable[[Sequence[_Item]], _Rows], items: Sequence[_Item]) -> list[_Item]:
        """Return the items at which a function does not fail."""
        with contextlib.suppress(*_ODD):
            make(items)
            return list(items)
        if len(items) == 1:
            self._lose(_NOT_READ)
            return []
        half = len(items) // 2
        return self._good(make, items[:half]) + self._good(make, items[half:])

    def _is_new(self, event: Event, arguments: Mapping[str, Any]) -> bool:
        """Whether the file had an operation not before: one of a launch starts once on a stream."""
        where = arguments.get("device"), arguments.get("stream")
        operation = hash((event["ts"], arguments.get("correlation"), *where, event["name"]))
        if operation in self._done:
            self._lose("operations of GPUs that the file has twice")
            return False
        self._done.add(operation)
        return True

    def _add_counters(self, event: Event) -> None:
        for series, value in (event.get("args") or {}).items():
            name = event["name"] if series in ("value", "") else f"{event['name']} {series}"
            self._counters.add(str(name), None, "", self._time(event["ts"]), float(value))

    def _time(self, microseconds: float) -> int:
        """Return a time of the file in ns from 1970, or whatever its clock counts from."""
        return self._base + round(microseconds * 1000)

    def _times(self, events: Sequence[Event]) -> tuple[Ints, Ints]:
        """Return when events start and end.

        Raises:
            TypeError: one has a name that is no text, or no time.
            OverflowError: a time does not fit into 64 bits.
        """
        if {type(event["name"]) for event in events} != {str}:
            raise TypeError("name")
        start = _later(_nanoseconds([event["ts"] for event in events]), self._base)
        return start, _later(start, _nanoseconds([event.get("dur") or 0 for event in events]).clip(0))

    def _region_rows(
        self, regions: Sequence[tuple[Event, dict[str, Any], _Describe]]
    ) -> tuple[Regions, Sequence[_Recorded]]:
        """Return the rows of ranges and marks, and the arguments of each."""
        events, arguments, _ = zip(*regions, strict=True)
        start, end = self._times(events)
        described = [describe(event, its) for event, its, describe in regions]
        tid, name, category, stack, extdata, frames, recorded = zip(*described, strict=True)
        event = Events(category, stack, None, _externals(arguments), extdata=extdata, call_stack=frames)
        return Regions(start=start, end=end, tid=tid, name=name, event=event), recorded

    def _operator(self, event: Event, arguments: Mapping[str, Any]) -> _Described:
        recorded = _recorded(arguments)
        if self._survey.links and (links := self._survey.links.get((event["tid"], event["ts"]))):
            recorded += [("int", "fwdbwd", str(link)) for link in links]
        if event["name"] in self._in_collectives:
            recorded += self._of_collective(event)
        stack = arguments.get("Call stack")
        frames = _json([frame for frame in stack.split(";") if frame]) if isinstance(stack, str) and stack else "{}"
        return self._threads[event["tid"]], event["name"], TORCH_OPERATOR, 0, "{}", frames, recorded

    def _annotation(self, event: Event, arguments: Mapping[str, Any]) -> _Described:
        recorded = _recorded(arguments) + self._of_collective(event)
        message = _json({"message": event["name"]})
        return self._threads[event.get("tid")], event["name"], MARKER_RANGE, 0, message, "{}", recorded

    def _of_collective(self, event: Event) -> list[words.Argument]:
        facts = self._collectives.get((event.get("tid"), event["ts"], event["name"]), {})
        return [("", name, value) for name, value in facts.items()]

    def _call(self, event: Event, arguments: Mapping[str, Any]) -> _Described:
        recorded = [("", name, _text(arguments[name])) for name in _left_of_call(tuple(arguments))]
        name, correlation = event["name"], arguments.get("correlation", 0)
        return self._threads[event.get("tid")], name, words.api_category(name), correlation, "{}", "{}", recorded

    def _python(self, event: Event, arguments: Mapping[str, Any]) -> _Described:
        facts = {name: arguments[name] for name in _left(tuple(arguments)) if arguments[name] is not None}
        name = event["name"]
        name = _ADDRESS.sub("", name) if " at 0x" in name else name
        return self._threads[event.get("tid")], name, PYTHON_FUNCTION, 0, _json(facts), "{}", []

    def other(self, category: str, event: Event, arguments: Mapping[str, Any]) -> _Described:
        """Describe a range of a category that has no method of its own."""
        device, stream = arguments.get("device"), arguments.get("stream")
        line = self._threads[event.get("tid")]
        if isinstance(device, int) and isinstance(stream, int):
            line = self._threads[device, stream, category]
        shown = _OTHERS.get(category, category.upper())
        return line, event["name"], shown, 0, "{}", "{}", _recorded(arguments)

    def _on_gpu(self, event: Event, _: Mapping[str, Any]) -> _Described:
        line = self._threads[event.get("pid"), event.get("tid"), "annotations"]
        return line, event["name"], GPU_ANNOTATION, 0, "{}", "{}", []

    def _mark(self, event: Event, arguments: Mapping[str, Any]) -> _Described:
        text = _json({"message": event["name"]})
        return self._threads[event.get("tid")], event["name"], MARK, 0, text, "{}", _recorded(arguments)

    def _kernel_rows(self, kernels: Sequence[_Operation]) -> KernelDispatches:
        events, arguments = zip(*kernels, strict=True)
        start, end = self._times(events)
        sizes = zip(
            *[_launch_sizes(_sizes(its.get("block")), _sizes(its.get("grid"))) for its in arguments], strict=True
        )
        return KernelDispatches(
            start=start,
            end=end,
            agent_id=self._agent_ids(kernels),
            kernel_id=[self._symbols[event["name"], its.get("registers per thread")] for event, its in kernels],
            stream_id=self._stream_ids(kernels),
            group_segment_size=[its.get("shared memory") for its in arguments],
            graph_exec_id=[its.get("graph id") for its in arguments],
            graph_node_id=[its.get("graph node id") for its in arguments],
            event=_gpu_events(arguments),
            **dict(zip(words.SIZES, sizes, strict=True)),
        )

    def _copy_rows(self, copies: Sequence[_Operation]) -> MemoryCopies:
        """Return the rows of copies, and of what fills memory: that has no source."""
        events, arguments = zip(*copies, strict=True)
        start, end = self._times(events)
        agents = self._agent_ids(copies)
        kinds = [self._copy_kind(*copy, agent) for copy, agent in zip(copies, agents, strict=True)]
        name, source, target, category = zip(*kinds, strict=True)
        return MemoryCopies(
            start=start,
            end=end,
            name=name,
            src_agent_id=source,
            dst_agent_id=target,
            size=[its.get("bytes", self._survey.copied.get(its.get("correlation", 0), 0)) for its in arguments],
            stream_id=self._stream_ids(copies),
            event=replace(_gpu_events(arguments), category=category),
        )

    def _copy_kind(
        self, event: Event, arguments: Mapping[str, Any], agent: int
    ) -> tuple[str, int | None, int | None, str]:
        """Return name, source, target and category of a copy."""
        if self._present[str(event.get("cat", ""))] == SETS:
            return words.MEMORY_SET, None, agent, words.MEMORY_SET
        name, *hosts = words.copy_direction(event["name"])
        ends = [None if is_host is None else words.HOST.id if is_host else agent for is_host in hosts]
        for at, key in enumerate(("fromDevice", "toDevice")):
            if isinstance(arguments.get(key), int):
                ends[at] = self._agents[arguments[key]]
        return name, ends[0], ends[1], "MEMORY_COPY"

    def _add_memory(self, event: Event, arguments: Mapping[str, Any]) -> None:
        """Add what PyTorch's allocator gave or took, and what it holds in all."""
        time, size, device = self._time(event["ts"]), arguments["Bytes"], arguments.get("Device Id", -1)
        is_gpu = arguments.get("Device Type") in _GPU_TYPES and device >= 0
        device = self._memory_is_on.get(device, device)
        agent = self._agents[device] if is_gpu else words.HOST.id
        thread = self._threads[event.get("tid")]
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

    def _agent_ids(self, operations: Sequence[_Operation]) -> list[int]:
        agents = self._agents
        return [agents[its["device"] if "device" in its else event.get("pid")] for event, its in operations]

    def _stream_ids(self, operations: Sequence[_Operation]) -> list[int]:
        streams = self._streams
        return [streams[its["stream"] if "stream" in its else event.get("tid")] for event, its in operations]


class _Describing(dict[str, _Describe]):
    """Category -> what describes a range of it."""

    def __init__(self, rows: KinetoRows) -> None:
        super().__init__({category: MethodType(describe, rows) for category, describe in _DESCRIBED.items()})
        self._rows = rows

    def __missing__(self, category: str) -> _Describe:
        made = self[category] = partial(self._rows.other, category)
        return made


_DESCRIBED: Mapping[str, Callable[[KinetoRows, Event, Mapping[str, Any]], _Described]] = {
    OPERATORS: KinetoRows._operator,
    ANNOTATIONS: KinetoRows._annotation,
    PYTHON: KinetoRows._python,
    GPU_ANNOTATIONS: KinetoRows._on_gpu,
    MARK: KinetoRows._mark,
    **dict.fromkeys(CALLS, KinetoRows._call),
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


def _externals(arguments: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the numbers of the operators that were running."""
    numbers = [its["External id"] if "External id" in its else its.get("external id", 0) for its in arguments]
    return numbers if set(map(type, numbers)) == {int} else [n if isinstance(n, int) else 0 for n in numbers]


def _gpu_events(arguments: Sequence[Mapping[str, Any]]) -> Events:
    """Return the events of work of a GPU; arguments without a column are their JSON."""
    extdata = [_json({name: its[name] for name in left}) if (left := _left(tuple(its))) else "{}" for its in arguments]
    stack = [its.get("correlation", 0) for its in arguments]
    return Events(stack_id=stack, correlation_id=_externals(arguments), extdata=extdata)


@lru_cache(1024)
def _left(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of arguments that rows don't hold elsewhere."""
    return tuple(name for name in names if name not in _IN_COLUMNS)


@lru_cache(1024)
def _left_of_call(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in _IN_COLUMNS or name in _OF_CALLS)


def _nanoseconds(microseconds: Sequence[Any]) -> Ints:
    """Return times [us] in ns, rounded."""
    times = np.array(microseconds)
    if times.dtype.kind in "if" and np.abs(times).max() < _EXACT:
        return np.asarray(np.rint(times * 1000), np.int64)
    return np.array([round(time * 1000) for time in microseconds], np.int64)


def _later(times: Ints, by: int | Ints) -> Ints:
    """Return times plus a duration of at least 0 [ns]; numpy itself would begin anew at the least number.

    Raises:
        OverflowError: a sum does not fit.
    """
    later = times + by
    if (later < times).any():
        raise OverflowError("a time of more than 64 bits")
    return later


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
    return orjson.dumps(value).decode()


def read(source: TraceSource, target: TraceTarget) -> None:
    """Write the process of a PyTorch trace.

    Raises:
        InputError: the file is damaged elsewhere than at its end.
    """
    survey = KinetoSurvey()
    first = JsonEvents(source.path, target.lose, block=SMALL_BLOCK)
    with source.stream() as stream:
        for events in first.batches(stream):
            survey.add(events)
            del events  # before the next ones are parsed: their memory is used again
    survey.facts = first.facts
    # Nothing in the file names the machine: clocks of two files compare as well as NTP sets them.
    node = NodeInfo(machine_id=f"kineto-{source.digest}", hostname=source.path.name)
    with target.rank(survey.pid, node, _process(survey)) as trace, source.stream() as stream:
        rows = KinetoRows(trace, survey, target.lose)
        for events in JsonEvents(source.path, lambda _: None).batches(stream):
            rows.add(events)
            del events
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
