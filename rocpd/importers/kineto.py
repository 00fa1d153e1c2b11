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

import functools
import json
import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson

from rocpd.base import by_key, frozen
from rocpd.importers import words
from rocpd.importers.files import TraceSource, TraceTarget
from rocpd.importers.json_stream import Event, JsonEvents
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
ON_GPU = frozenset({KERNELS, COPIES, SETS, GPU_ANNOTATIONS, "cuda_sync", "gpu_mem"})

_FORMER = {
    "operator": OPERATORS, "runtime": "cuda_runtime", "memcpy": COPIES, "memset": SETS, "python": PYTHON,
    "annotation": ANNOTATIONS,
}  # fmt: skip


def category_of(event: Mapping[str, Any]) -> str:
    """Return the category of an event by its present name: PyTorch 1.8 called operators `Operator`."""
    return _present_category(str(event.get("cat", "")))


@functools.lru_cache(1024)
def _present_category(category: str) -> str:
    return _FORMER.get(category.lower(), category.lower())


def _argument(event: Event, name: str) -> Any:
    arguments = event.get("args")
    return arguments.get(name) if isinstance(arguments, dict) else None


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
        self._collectives: list[Range] = []
        self._pids: Counter[Any] = Counter()

    def add(self, events: Iterable[Event]) -> None:
        """Look at events."""
        for event in events:
            phase = event.get("ph")
            if phase == "X":
                self._add_range(event)
            elif phase == "M":
                self._add_name(event)
            elif phase == "i" and event.get("name") == "[memory]":
                self._add_device(event, 1, "Device Id")
            elif phase in ("s", "f") and event.get("cat") == "fwdbwd" and isinstance(event.get("id"), int):
                self.links.setdefault((event.get("tid"), event.get("ts", 0)), []).append(event["id"])

    @property
    def pid(self) -> int:
        """Id of the process: that of most calls and operators."""
        known = [pid for pid, _ in self._pids.most_common() if isinstance(pid, int)]
        return known[0] if known else 0

    @property
    def base(self) -> int:
        """The time that is added to others [ns]: then they count from 1970."""
        base = self.facts.get("baseTimeNanoseconds", 0)
        return base if isinstance(base, int) else 0

    def collectives(self) -> dict[tuple[object, float, str], dict[str, str]]:
        """Return the arguments of collectives by the ranges that carry them out."""
        return arguments_of_collectives(self._collectives)

    def _add_range(self, event: Event) -> None:
        category = category_of(event)
        if category in (KERNELS, COPIES, SETS):
            self._add_device(event, 0, "device")
        if category in ON_GPU or category == "trace":
            return
        start = event.get("ts")
        if not isinstance(start, (int, float)):
            return
        self._pids[event.get("pid")] += category != PYTHON
        end = start + (event.get("dur") or 0)
        first, last = self.span or (start, end)
        self.span = min(first, start), max(last, end)
        name, arguments = event.get("name"), event.get("args")
        if not isinstance(name, str) or not isinstance(arguments, dict):
            return
        if name == OPERATOR or (name.startswith(ANNOTATION) and category == ANNOTATIONS):
            self._collectives.append(Range(event.get("tid"), start, end, name, arguments))
        elif category in CALLS and ("bytes" in arguments or "size" in arguments):
            self._add_copy(arguments)

    def _add_device(self, event: Event, whose: int, key: str) -> None:
        device = _argument(event, key)
        if isinstance(device, int) and device >= 0:
            self.devices[whose].add(device)

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


_OTHERS = {"overhead": TRACER, "cuda_sync": GPU_WAIT}
_GPU_TYPES = frozenset({1, 6})  # of c10::DeviceType: CUDA, HIP
_IN_COLUMNS = frozenset({
    "External id", "external id", "correlation", "device", "stream", "grid", "block", "shared memory",
    "registers per thread", "bytes", "graph id", "graph node id", "Ev Idx", "Record function id", "finished", "cbid",
    "cid", "Call stack", "memory bandwidth (GB/s)",
})  # fmt: skip
"""Arguments that rows hold elsewhere, that follow from others, or that number records of the profiler."""
_NO_SIZES = (0, 0, 0)
_ADDRESS = re.compile(r" at 0x[0-9a-f]+(?=>)")  # in names of functions: another one in each process


class _Region(NamedTuple):
    """A region: times [ns], thread, name and category; number of the operator around it, and what its event has."""

    start: int
    end: int
    tid: int
    name: str
    category: str
    external: int = 0
    stack: int = 0
    extdata: str = "{}"
    call_stack: str = "{}"
    recorded: Sequence[words.Argument] = ()


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
        self._threads = words.ThreadIds(
            trace, {tid: name for (pid, tid), name in survey.threads.items() if pid == survey.pid}
        )
        self._counters = words.CounterTracks(trace)
        self._kernels = words.Registered(trace, lambda key: KernelInfo(display_name=key[0], arch_vgpr_count=key[1]))
        self._agents = words.Registered(trace, words.gpu)
        self._streams = words.Registered(trace, StreamInfo)
        self._done: set[int] = set()  # hashes of operations
        self._regions: list[_Region] = []
        kinds: tuple[type[Any], ...] = (KernelDispatches, MemoryCopies, MemoryAllocations)
        self._rows: dict[type[Any], list[dict[str, Any]]] = {kind: [] for kind in kinds}
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
                self._add(event)
            except (KeyError, TypeError, ValueError, OverflowError):
                self._lose("events without a time or a name, or with values of another type than these have")
        self._write()

    def _add(self, event: Event) -> None:
        phase = event.get("ph")
        if phase == "X":
            self._add_range(event)
        elif phase == "i" and event.get("name") == "[memory]":
            self._add_memory(event, event.get("args") or {})
        elif phase == "i" and event.get("cat"):
            self._add_mark(event)
        elif phase == "C":
            self._add_counters(event)
        elif phase not in ("M", "s", "t", "f", "i"):
            self._lose(f"events of the phase {phase!r}, which PyTorch does not write")

    def _add_range(self, event: Event) -> None:
        category, arguments = category_of(event), event.get("args") or {}
        if not isinstance(event["name"], str):
            raise TypeError(event["name"])
        begin = self._time(event["ts"])
        times = begin, begin + max(0, round((event.get("dur") or 0) * 1000))
        if category in _OPERATIONS and self._is_done(event, arguments):
            self._lose("operations of GPUs that the file has twice")
            return
        if add := _ADDERS.get(category):
            add(self, event, times, arguments)
        elif category != "trace":
            self._add_other(category, event, times, arguments)

    def _is_done(self, event: Event, arguments: Mapping[str, Any]) -> bool:
        """Whether the file had an operation before: one of a launch starts once on a stream."""
        where = arguments.get("device"), arguments.get("stream")
        operation = hash((event["ts"], arguments.get("correlation"), *where, event["name"]))
        before = len(self._done)
        self._done.add(operation)
        return len(self._done) == before

    def _add_counters(self, event: Event) -> None:
        for series, value in (event.get("args") or {}).items():
            name = event["name"] if series in ("value", "") else f"{event['name']} {series}"
            self._counters.add(str(name), None, "", self._time(event["ts"]), float(value))

    def _time(self, microseconds: float) -> int:
        """Return a time of the file in ns from 1970, or whatever its clock counts from."""
        return self._base + round(microseconds * 1000)

    def _add_operator(self, event: Event, times: tuple[int, int], arguments: Mapping[str, Any]) -> None:
        recorded = _recorded(arguments)
        recorded += [("int", "fwdbwd", str(link)) for link in self._survey.links.get((event["tid"], event["ts"]), ())]
        recorded += self._of_collective(event)
        stack = arguments.get("Call stack")
        frames = _json([frame for frame in stack.split(";") if frame]) if isinstance(stack, str) and stack else "{}"
        region = *self._where(event, times), event["name"], TORCH_OPERATOR, _external(arguments)
        self._regions.append(_Region(*region, recorded=recorded, call_stack=frames))

    def _where(self, event: Event, times: tuple[int, int]) -> tuple[int, int, int]:
        return *times, self._threads[event.get("tid")]

    def _add_annotation(self, event: Event, times: tuple[int, int], arguments: Mapping[str, Any]) -> None:
        recorded = _recorded(arguments) + self._of_collective(event)
        region = *self._where(event, times), event["name"], MARKER_RANGE, _external(arguments)
        self._regions.append(_Region(*region, recorded=recorded, extdata=_json({"message": event["name"]})))

    def _of_collective(self, event: Event) -> list[words.Argument]:
        if not self._collectives:
            return []
        facts = self._collectives.get((event.get("tid"), event["ts"], event["name"]), {})
        return [("", name, value) for name, value in facts.items()]

    def _add_call(self, event: Event, times: tuple[int, int], arguments: Mapping[str, Any]) -> None:
        recorded = [("", name, _text(value)) for name, value in arguments.items() if name not in _NOT_OF_CALLS]
        region = *self._where(event, times), event["name"], words.api_category(event["name"]), _external(arguments)
        self._regions.append(_Region(*region, recorded=recorded, stack=arguments.get("correlation", 0)))

    def _add_python(self, event: Event, times: tuple[int, int], arguments: Mapping[str, Any]) -> None:
        facts = {name: value for name, value in arguments.items() if name not in _IN_COLUMNS and value is not None}
        name = event["name"]
        name = _ADDRESS.sub("", name) if " at 0x" in name else name
        region = *self._where(event, times), name, PYTHON_FUNCTION, _external(arguments)
        self._regions.append(_Region(*region, extdata=_json(facts)))

    def _add_other(self, category: str, event: Event, times: tuple[int, int], arguments: Mapping[str, Any]) -> None:
        device, stream = arguments.get("device"), arguments.get("stream")
        line = self._threads[event.get("tid")]
        if isinstance(device, int) and isinstance(stream, int):
            line = self._threads[device, stream, category]
        region = *times, line, event["name"], _OTHERS.get(category, category.upper()), _external(arguments)
        self._regions.append(_Region(*region, recorded=_recorded(arguments)))

    def _add_on_gpu(self, event: Event, times: tuple[int, int], arguments: Mapping[str, Any]) -> None:
        line = self._threads[event.get("pid"), event.get("tid"), "annotations"]
        self._regions.append(_Region(*times, line, event["name"], GPU_ANNOTATION, _external(arguments)))

    def _add_mark(self, event: Event) -> None:
        time = self._time(event["ts"])
        region = *self._where(event, (time, time)), event["name"], MARK
        text = _json({"message": str(event["name"])})
        self._regions.append(_Region(*region, recorded=_recorded(event.get("args") or {}), extdata=text))

    def _add_kernel(self, event: Event, times: tuple[int, int], arguments: Mapping[str, Any]) -> None:
        block = _sizes(arguments.get("block"))
        grid = [blocks * items for blocks, items in zip(_sizes(arguments.get("grid")), block, strict=True)]
        kernel = self._kernels[event["name"], arguments.get("registers per thread")]
        self._rows[KernelDispatches].append({
            "start": times[0], "end": times[1], "agent_id": self._agent(event, arguments), "kernel_id": kernel,
            "stream_id": self._stream(event, arguments), "group_segment_size": arguments.get("shared memory"),
            "graph_exec_id": arguments.get("graph id"), "graph_node_id": arguments.get("graph node id"),
            **dict(zip(words.SIZES, (*block, *grid), strict=True)), "event": _gpu_event(arguments),
        })  # fmt: skip

    def _add_copy(self, event: Event, times: tuple[int, int], arguments: Mapping[str, Any]) -> None:
        """Add a copy, or what fills memory: that has no source."""
        is_set, agent = category_of(event) == SETS, self._agent(event, arguments)
        name, *hosts = (words.MEMORY_SET, None, False) if is_set else words.copy_direction(event["name"])
        ends = [None if is_host is None else words.HOST.id if is_host else agent for is_host in hosts]
        for at, key in enumerate(() if is_set else ("fromDevice", "toDevice")):
            if isinstance(arguments.get(key), int):
                ends[at] = self._agents[arguments[key]]
        size = arguments.get("bytes", self._survey.copied.get(arguments.get("correlation", 0), 0))
        self._rows[MemoryCopies].append({
            "start": times[0], "end": times[1], "src_agent_id": ends[0], "dst_agent_id": ends[1], "name": name,
            "size": size, "stream_id": self._stream(event, arguments),
            "event": {"category": words.MEMORY_SET if is_set else "MEMORY_COPY", **_gpu_event(arguments)},
        })  # fmt: skip

    def _add_memory(self, event: Event, arguments: Mapping[str, Any]) -> None:
        """Add what PyTorch's allocator gave or took, and what it holds in all."""
        time, size, device = self._time(event["ts"]), arguments["Bytes"], arguments.get("Device Id", -1)
        is_gpu = arguments.get("Device Type") in _GPU_TYPES and device >= 0
        device = self._memory_is_on.get(device, device)
        agent = self._agents[device] if is_gpu else words.HOST.id
        thread = self._threads[event.get("tid")]
        kind = "FREE" if size < 0 else "ALLOC"
        self._rows[MemoryAllocations].append({
            "start": time, "end": time, "agent_id": agent, "type": kind, "address": arguments.get("Addr"),
            "size": abs(size), "tid": thread, "event": {},
        })  # fmt: skip
        where = f"GPU {device}" if is_gpu else "CPU"
        for key in ("Total Allocated", "Total Reserved"):
            if is_gpu and isinstance(arguments.get(key), int):
                name = f"PyTorch {key.lower()} {where}"
                self._counters.add(name, agent, "bytes", time, float(arguments[key]))

    def _agent(self, event: Event, arguments: Mapping[str, Any]) -> int:
        return self._agents[arguments.get("device", event.get("pid"))]

    def _stream(self, event: Event, arguments: Mapping[str, Any]) -> int:
        return self._streams[arguments.get("stream", event.get("tid"))]

    def _write(self) -> None:
        """Write what was collected."""
        if self._regions:
            start, end, tid, name, category, external, stack, extdata, frames, recorded = zip(
                *self._regions, strict=True
            )
            events = Events(category, stack, None, external, extdata=extdata, call_stack=frames)
            rows = self._trace.write(Regions(start=start, end=end, tid=tid, name=name, event=events))
            words.write_arguments(self._trace, rows.events, recorded)
            self._regions.clear()
        for kind, collected in self._rows.items():
            if collected:
                words.write_rows(self._trace, kind, collected)
                collected.clear()
        self._counters.write()


_OPERATIONS = frozenset({KERNELS, COPIES, SETS})
_NOT_OF_CALLS = _IN_COLUMNS - {"bytes", "stream", "grid", "block", "shared memory"}
_ADDERS: Mapping[str, Callable[[KinetoRows, Event, tuple[int, int], Mapping[str, Any]], None]] = {
    OPERATORS: KinetoRows._add_operator,
    ANNOTATIONS: KinetoRows._add_annotation,
    PYTHON: KinetoRows._add_python,
    KERNELS: KinetoRows._add_kernel,
    COPIES: KinetoRows._add_copy,
    SETS: KinetoRows._add_copy,
    GPU_ANNOTATIONS: KinetoRows._add_on_gpu,
    **dict.fromkeys(CALLS, KinetoRows._add_call),
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


def _external(arguments: Mapping[str, Any]) -> int:
    """Return the number of the operator that was running."""
    external = arguments.get("External id", arguments.get("external id", 0))
    return external if isinstance(external, int) else 0


def _gpu_event(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of the event of work of a GPU; arguments without a column are its JSON."""
    stack, left = arguments.get("correlation", 0), {n: v for n, v in arguments.items() if n not in _IN_COLUMNS}
    return {"stack_id": stack, "correlation_id": _external(arguments), "extdata": _json(left)}


def _sizes(sizes: Any) -> Sequence[int]:
    return sizes if isinstance(sizes, list) and len(sizes) == 3 else _NO_SIZES


def _recorded(arguments: Mapping[str, Any]) -> list[words.Argument]:
    """Return the arguments of an operator: type, name and text of each."""
    shown = ((name, value) for name, value in arguments.items() if name not in _IN_COLUMNS)
    return [("int" if isinstance(value, int) else "", name, _text(value)) for name, value in shown]


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
    first = JsonEvents(source.path, target.lose)
    with source.stream() as stream:
        for events in first.batches(stream):
            survey.add(events)
    survey.facts = first.facts
    # Nothing in the file names the machine: clocks of two files compare as well as NTP sets them.
    node = NodeInfo(machine_id=f"kineto-{source.digest}", hostname=source.path.name)
    with target.rank(survey.pid, node, _process(survey)) as trace, source.stream() as stream:
        rows = KinetoRows(trace, survey, target.lose)
        for events in JsonEvents(source.path, lambda _: None).batches(stream):
            rows.add(events)
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
