"""The events of one process of an RPD file: calls, markers and operators, and the work of GPUs with its place.

Agents, queues and streams are registered when an operation first names them.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from rocpd.base import Row, frozen
from rocpd.importers import words
from rocpd.importers.rpd.tables import KERNEL_TYPES, WITHOUT_CALL, RpdProcess, RpdTables
from rocpd.importers.words import HOST, MEMORY_SET, SIZES, Registered, gpu, whole, write_rows, write_values
from rocpd.schema.rules.categories import GPU_WAIT, TORCH_OPERATOR, TRACER
from rocpd.schema.trace.events import (
    MARK,
    MARKER_RANGE,
    CounterValues,
    Events,
    GraphLaunches,
    KernelDispatches,
    MemoryCopies,
    Regions,
    Samples,
    message_json,
)
from rocpd.schema.trace.infos import AgentInfo, CounterInfo, KernelInfo, QueueInfo, StreamInfo, ThreadInfo, TrackInfo
from rocpd.schema.trace.writer import TableRows, TraceWriter

_TRACERS = frozenset({"BLOCKING", "hcc_activity_callback", "rpdflush", "rpdstart", "rpdstop", "setPythonTrace"})
_TRACERS_END = "Table::writeRows"
_MARKERS = frozenset({"roctx", "nvtx"})
_OPERATORS = frozenset({"function", "backward_function"})
_APIS = ("hip", "hsa_", "cuda", "cu", "__hip")
_LAUNCH = ("stream", "groupSegmentSize", "privateSegmentSize", "workgroupX", "workgroupY", "workgroupZ", "gridX",
           "gridY", "gridZ")  # fmt: skip
_COPY = ("stream", "size", "width", "height", "kind", "dst", "src", "dstDevice", "srcDevice", "sync", "pinned")
_COPY_TYPES = ("hipStream_t", *["size_t"] * 3, "hipMemcpyKind", "void*", "void*", "int", "int", "bool", "bool")
_OF_TABLES = 100  # position of the first argument that comes from a table, not from the text of the call
_AUTOGRAD = ("seq", "op_id", "sizes", "input_op_ids")

LACKING: Mapping[str, Sequence[str]] = {
    "rocpd_api": ("domain_id", "category_id"),
    "rocpd_kernelapi": ("api_ptr_id", "kernelName_id", *_LAUNCH),
    "rocpd_kernelop": ("op_ptr_id", "kernelName_id", *_LAUNCH),
    "rocpd_copyapi": ("api_ptr_id", *_COPY),
    "rocpd_copyop": ("op_ptr_id", *_COPY),
    "ext_autogradapi": ("api_ptr_id", "autogradName_id", *_AUTOGRAD),
}
"""Tables and columns that statements name, but not all schemas have."""

_CALLS = f"""SELECT A.id, A.tid, A.start, A."end", N.string, S.string, D.string, Y.string, KN.string,
K.{", K.".join(_LAUNCH)}, C.{", C.".join(_COPY)}, GN.string, G.{", G.".join(_AUTOGRAD)}
FROM rocpd_api A LEFT JOIN rocpd_string N ON N.id = A.apiName_id LEFT JOIN {{texts}} S ON S.id = A.args_id
LEFT JOIN rocpd_string D ON D.id = A.domain_id LEFT JOIN rocpd_string Y ON Y.id = A.category_id
LEFT JOIN rocpd_kernelapi K ON K.api_ptr_id = A.id LEFT JOIN rocpd_string KN ON KN.id = K.kernelName_id
LEFT JOIN rocpd_copyapi C ON C.api_ptr_id = A.id
LEFT JOIN ext_autogradapi G ON G.api_ptr_id = A.id LEFT JOIN rocpd_string GN ON GN.id = G.autogradName_id
WHERE A.id BETWEEN ? AND ? AND A.pid = ? ORDER BY A.id"""


@frozen
class GraphLaunch:
    """A call that launched a graph: its stream and executable graph; None if the file lacks it."""

    stream: str | None
    graph: int | None


@frozen
class _Call:
    """A call to write: name and category of its region, JSON of its event, arguments, and those from RPD's tables."""

    name: str
    category: str
    extdata: str = "{}"
    arguments: Sequence[words.Argument] = ()
    of_tables: Sequence[words.Argument] = ()


def write_calls(
    trace: TraceWriter, tables: RpdTables, process: RpdProcess, step: Callable[[int], None]
) -> dict[int, GraphLaunch]:
    """Write the calls of a process; their ids and stack ids are those of the file.

    Args:
        trace: the file.
        tables: tables of the RPD file.
        process: the process.
        step: called with the number of calls written.

    Returns:
        id of a call that launched a graph -> the launch.
    """
    graphs: dict[int, GraphLaunch] = {}
    frames = _Frames(trace, tables, process)
    statement = _CALLS.format(texts="rocpd_ustring" if tables.schema == 3 else "rocpd_string")
    for batch in tables.in_batches(statement, (process.first, process.last, process.recorded)):
        calls = [_call(row, graphs) for row in batch]
        ids, tids, starts, ends = zip(*(row[:4] for row in batch), strict=True)
        stacks = [frames.of(number) for number in ids] if frames.exist else None
        extdata = [call.extdata for call in calls]
        events = Events([call.category for call in calls], stack_id=ids, extdata=extdata, call_stack=stacks)
        names = [call.name for call in calls]
        rows = trace.write(Regions(id=ids, tid=tids, start=starts, end=ends, name=names, event=events))
        words.write_arguments(trace, rows.events, [call.arguments for call in calls])
        words.write_arguments(trace, rows.events, [call.of_tables for call in calls], _OF_TABLES)
        step(len(batch))
    return graphs


def _call(row: Row, graphs: dict[int, GraphLaunch]) -> _Call:
    number, _, start, end, name, text, domain, kind, kernel = row[:9]
    launch, copy, operator, autograd = row[9:18], row[18:29], row[29], row[30:]
    name, text = name or "", text or ""
    if operator is not None:
        return _Call(operator, TORCH_OPERATOR, arguments=list(words.facts_of_operator(*autograd)))
    category = _category(name, domain, kind, start == end)
    if category in (MARKER_RANGE, MARK):
        return _marker(name, text, category, domain)
    if category == TORCH_OPERATOR:
        return _Call(name, category, arguments=words.facts_in_json(text))
    known = _known_arguments(text)
    arguments, extdata = (known, "{}") if known is not None else ((), json.dumps({"args": text}, ensure_ascii=False))
    if "GraphLaunch" in name:
        values = {what: value for _, what, value in arguments}
        graphs[number] = GraphLaunch(values.get("stream"), words.whole(values.get("graphExec")))
    of_tables: list[words.Argument] = []
    if launch[0] is not None:
        of_tables += _of_launch(kernel, *launch)
    if copy[0] is not None:
        of_tables += _of_copy(copy)
    return _Call(name, category, extdata, arguments, of_tables)


_known_arguments = functools.lru_cache(maxsize=4096)(lambda text: words.arguments_of(text) if text else ())


@functools.lru_cache(maxsize=4096)
def _category(name: str, domain: str | None, kind: str | None, is_mark: bool) -> str:
    """Return the category of a call, by its domain and category, or by its name in files without these."""
    if domain == "rpd_tracer" or name in _TRACERS or name.endswith(_TRACERS_END):
        return TRACER
    if domain == "torch" and kind in _OPERATORS:
        return TORCH_OPERATOR
    if name.startswith(_APIS):
        return words.api_category(name)
    if domain and domain not in _MARKERS and kind != "user_scope":
        return f"{domain}_{kind}".upper() if kind else f"{domain}_API".upper()
    return MARK if is_mark else MARKER_RANGE


def _marker(name: str, text: str, category: str, domain: str | None) -> _Call:
    """Return a marker; for `rangePush` of the Python wrapper, the name of the call is the text."""
    is_roctx = name == "UserMarker" or domain in _MARKERS
    operator = words.operator_in(text) if is_roctx else None
    if operator:
        return _Call(operator[0], TORCH_OPERATOR, arguments=operator[1])
    function = "roctxMarkA" if category == MARK else "roctxThreadRangeA"
    if is_roctx:
        return _Call(function, category, _message(text))
    return _Call(function, category, _message(name), _known_arguments(text) or ())


_message = functools.lru_cache(maxsize=4096)(message_json)


def _of_launch(kernel: str, stream: str, lds: int, scratch: int, *sizes: int) -> Iterator[words.Argument]:
    yield "string", "kernel", kernel or ""
    yield "dim3", "grid", "{}, {}, {}".format(*sizes[3:])
    yield "dim3", "workgroup", "{}, {}, {}".format(*sizes[:3])
    yield "uint32_t", "groupSegmentSize", str(lds)
    yield "uint32_t", "privateSegmentSize", str(scratch)
    yield "hipStream_t", "stream", stream


def _of_copy(values: Sequence[object]) -> Iterator[words.Argument]:
    for kind, name, value in zip(_COPY_TYPES, _COPY, values, strict=True):
        if value not in (None, ""):
            yield kind, name, str(value)


class _Frames:
    """Stack frames, read along with the calls in the order of these."""

    def __init__(self, trace: TraceWriter, tables: RpdTables, process: RpdProcess) -> None:
        self.exist = tables.count("rocpd_stackframe") > 0
        self._texts: dict[int | None, str] = {}
        self._store = trace.string
        self._rows: Iterator[Row] = iter(())
        if self.exist:
            self._rows = tables.query(
                """SELECT F.api_ptr_id, F.name_id, S.string FROM rocpd_stackframe F
                LEFT JOIN rocpd_string S ON S.id = F.name_id
                WHERE F.api_ptr_id IN (SELECT id FROM rocpd_api WHERE id BETWEEN ? AND ? AND pid = ?)
                ORDER BY F.api_ptr_id, F.depth, F.id""",
                (process.first, process.last, process.recorded),
            )
        self._next: Row | None = next(self._rows, None)

    def of(self, call: int) -> str:
        """Return the frames of a call as a JSON array, the innermost first; calls come in the order of their ids."""
        frames = []
        while self._next is not None and self._next[0] <= call:
            _, name, text = self._next
            if name not in self._texts:
                self._texts[name] = json.dumps(text or "", ensure_ascii=False)
                self._store(text or "")  # gives the text an id for `rocpd_stackframe`
            frames.append(self._texts[name])
            self._next = next(self._rows, None)
        return f"[{', '.join(frames)}]" if frames else "{}"


_ABOVE_THREADS = 1 << 40  # first id of lines that are no threads


class Places:
    """Agents, queues, streams and lines of one process; an agent has the number of its GPU in the file.

    Args:
        trace: the file.
        tables: tables of the RPD file.

    Attributes:
        agents: number of a GPU in operations -> its agent.
        queues: this number, and the number of a queue on the GPU -> the queue.
        lines: the same pair -> the line on which the queue waits.
    """

    def __init__(self, trace: TraceWriter, tables: RpdTables) -> None:
        self._stride, self._first = tables.gpu_stride, tables.first_gpu
        self._host = trace.register(HOST)
        self.agents = Registered(trace, lambda gpu: agent_of(gpu % self._stride, self._first))
        self.queues = Registered(trace, _queue)
        self.lines = Registered(trace, self._line)
        self._streams = Registered(trace, _stream)

    def agent_of_copy(self, gpu: int) -> int | None:
        """Return the agent that a copy ran on; None if unknown: some tracers give copies the number 0, of a CPU."""
        if gpu % self._stride >= self._first:
            return self.agents[gpu]
        return next(iter(self.agents.values())) if len(self.agents) == 1 else None

    def ends(self, direction: str, agent: int | None, source: object, to: object) -> tuple[int | None, int | None]:
        """Return the source and destination agents of a copy.

        Args:
            direction: name of its direction.
            agent: the agent that it ran on.
            source, to: numbers of GPUs passed to the call; they count from 0, and differ only for copies between peers.
        """
        if direction == "MEMORY_COPY":
            return None, agent
        start, _, end = direction.removeprefix("MEMORY_COPY_").partition("_TO_")
        if start == end == "DEVICE" and isinstance(source, int) and isinstance(to, int) and source != to:
            return self.agents[source + self._first], self.agents[to + self._first]
        return (self._host if start == "HOST" else agent), (self._host if end == "HOST" else agent)

    def stream(self, text: str | None) -> int:
        """Return the stream of a pointer; 0, the default stream, if it is unknown."""
        return self._streams[text or ""]

    def _line(self, key: tuple[int, int]) -> ThreadInfo:
        """Return the line on which a queue waits, as a separate thread."""
        return ThreadInfo(_ABOVE_THREADS + len(self.lines), name=f"GPU {key[0]} queue {key[1]} waits")


def _queue(key: tuple[int, int]) -> QueueInfo:
    gpu, queue = key
    facts = json.dumps({"rpd_gpuId": gpu, "rpd_queueId": queue})
    return QueueInfo(name=f"GPU {gpu} queue {queue}", extdata=facts)


def _stream(text: str) -> StreamInfo:
    stream = whole(text) or 0
    return StreamInfo(stream, name=text if stream else None)


def agent_of(number: int, first: int) -> AgentInfo:
    """Return the agent of a GPU.

    Args:
        number: its number in operations.
        first: the smallest such number; if it is 0, agents begin at 1, after the host.
    """
    info = gpu(number - first, facts={"rpd_gpuId": number})
    at = number if first else info.id
    return replace(info, id=at, absolute_index=at, logical_index=at)


MONITOR = "GPU_MONITOR"
"""Category of samples of monitors."""

_UNITS = {"sclk": "MHz", "mclk": "MHz", "power": "W", "temp": "C", "vram": "bytes"}


def write_monitors(
    trace: TraceWriter, tables: RpdTables, devices: Sequence[int], lose: Callable[[str, int], None]
) -> None:
    """Write the values of monitors: a sample at the start of each; its `end` is in the extdata of its event.

    Args:
        trace: the file.
        tables: tables of the RPD file.
        devices: GPUs, by monitors' numbers, whose monitors go into this file.
        lose: called with the kind of data without a place, and its number.
    """
    registered = functools.cache(partial(_register, trace, tables))
    for device in devices:
        for batch in tables.in_batches(
            'SELECT deviceType, monitorType, start, "end", value FROM rocpd_monitor WHERE deviceId = ? ORDER BY id',
            (device,),
        ):
            rows = []
            for kind, monitor, start, end, text in batch:
                if (value := _real(text)) is None:
                    lose("values of monitors that are no numbers", 1)
                    continue
                rows.append((*registered(kind, device, monitor), start, f'{{"end": {json.dumps(end)}}}', value))
            if rows:
                counters, tracks, starts, facts, values = zip(*rows, strict=True)
                samples = trace.write(Samples(track_id=tracks, timestamp=starts, event=Events(MONITOR, extdata=facts)))
                trace.write(CounterValues(event_id=samples.events, pmc_id=counters, value=values))


def _register(trace: TraceWriter, tables: RpdTables, kind: str, device: int, monitor: str) -> tuple[int, int]:
    is_gpu = kind == "gpu"
    index = device % tables.gpu_stride
    agent = trace.register(agent_of(index + tables.first_gpu, tables.first_gpu)) if is_gpu else None
    info = CounterInfo(
        agent_id=agent,
        target_arch="GPU" if is_gpu else None,
        name=monitor,
        units=_UNITS.get(monitor, ""),
        value_type="ABS",
        extdata=json.dumps({"rpd_deviceType": kind, "rpd_deviceId": device}),
    )
    return trace.register(info), trace.register(TrackInfo(name=f"{monitor} {kind.upper()} {index}"))


def _real(text: object) -> float | None:
    try:
        value = float(str(text))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


_WORKGROUP = _LAUNCH.index("workgroupX")
_COUNT_WORK_ITEMS = frozenset({"hipExtModuleLaunchKernel", "hipHccModuleLaunchKernel"})
_FILLS, _WAITS = frozenset({"FillBuffer", "Memset"}), frozenset({"Barrier", "Marker"})
_COPIES = ("Copy", "Memcpy", "MEMORY_COPY")
_KINDS = ("HOST_TO_HOST", "HOST_TO_DEVICE", "DEVICE_TO_HOST", "DEVICE_TO_DEVICE")  # hipMemcpyKind
_LINKED = """rocpd_api_ops X JOIN rocpd_op O ON O.id = X.op_id JOIN rocpd_api A ON A.id = X.api_id"""
_FIRST_LINKS = "(SELECT MIN(id) AS id, api_id, op_id FROM rocpd_api_ops GROUP BY op_id)"
_OPERATIONS = f"""SELECT O.id, O.gpuId, O.queueId, O.sequenceId, O.start, O."end", D.string, T.string, A.id, A.tid,
F.string, KN.string, K.{", K.".join(_LAUNCH)}, C.{", C.".join(_COPY)}
FROM {{source}} LEFT JOIN rocpd_string D ON D.id = O.description_id
LEFT JOIN rocpd_string T ON T.id = O.opType_id LEFT JOIN rocpd_string F ON F.id = A.apiName_id
LEFT JOIN rocpd_kernel{{of}} K ON K.{{key}} LEFT JOIN rocpd_string KN ON KN.id = K.kernelName_id
LEFT JOIN rocpd_copy{{of}} C ON C.{{key}} WHERE {{condition}}"""


class _Operation(NamedTuple):
    """A row of the statement, up to the columns of launch and copy."""

    id: int
    gpu: int
    queue: int
    sequence: int
    start: int
    end: int
    name: str | None
    kind: str | None
    call: int | None
    tid: int | None
    function: str | None
    kernel: str | None


_WIDTH = len(_Operation._fields)


class Operations:
    """Writes the operations of one process; their ids are those of the file, their stack ids those of their calls.

    Args:
        trace: the file.
        tables: tables of the RPD file.
        process: the process.
        graphs: id of a call that launched a graph -> the launch.
    """

    def __init__(
        self, trace: TraceWriter, tables: RpdTables, process: RpdProcess, graphs: Mapping[int, GraphLaunch]
    ) -> None:
        self._trace, self._tables, self._process, self._graphs = trace, tables, process, graphs
        self._places = Places(trace, tables)
        self._counters = Registered(trace, lambda name: CounterInfo(target_arch="GPU", name=name))
        self._kernels = Registered(trace, lambda name: KernelInfo(display_name=name))
        self._launched: dict[int, list[int]] = {}

    def write(self, step: Callable[[int], None], is_alone: bool) -> None:
        """Write all operations.

        Args:
            step: called with the number of operations written.
            is_alone: whether no other process is in the file: operations without a call are then its own.
        """
        process, is_of_call = self._process, self._tables.schema > 1
        of, key = ("api", "api_ptr_id = A.id") if is_of_call else ("op", "op_ptr_id = O.id")
        statement = partial(_OPERATIONS.format, of=of, key=key)
        links = _LINKED.replace("rocpd_api_ops", _FIRST_LINKS) if self._tables.second_calls else _LINKED
        condition = "X.api_id BETWEEN ? AND ? AND A.pid = ? ORDER BY X.id"
        linked = statement(source=links, condition=condition)
        for batch in self._tables.in_batches(linked, (process.first, process.last, process.recorded)):
            self._write(batch)
            step(len(batch))
        if is_alone:
            no_call = "rocpd_op O LEFT JOIN rocpd_api A ON FALSE"
            without = statement(source=no_call, condition=f"O.{WITHOUT_CALL} ORDER BY O.id")
            for batch in self._tables.in_batches(without):
                self._write(batch)
        self._write_graph_launches()

    def _write(self, batch: Sequence[Row]) -> None:
        kernels, copies, fills, waits = [], [], [], []
        for row in batch:
            operation = _Operation._make(row[:_WIDTH])
            kind = operation.kind or ""
            if kind in _WAITS:
                waits.append(operation)
            elif kind in _FILLS or operation.name == "Fill":
                fills.append(self._copy(operation, row[_WIDTH + len(_LAUNCH) :], is_fill=True))
            elif kind.startswith(_COPIES):
                copies.append(self._copy(operation, row[_WIDTH + len(_LAUNCH) :], is_fill=False))
            else:
                kernels.append(self._kernel(operation, row[_WIDTH : _WIDTH + len(_LAUNCH)]))
        if kernels:
            self._write_counters(write_rows(self._trace, KernelDispatches, kernels))
        for rows in filter(None, (copies, fills)):
            write_rows(self._trace, MemoryCopies, rows)
        if waits:
            self._write_waits(waits)

    def _write_counters(self, kernels: TableRows) -> None:
        """Write the hardware counters of written kernels, which schema 3 has."""
        if not self._tables.has_counters:
            return
        events = dict(zip(kernels.ids, kernels.events, strict=True))
        values = self._tables.query(
            """SELECT op_id, name, value FROM counter_by_op WHERE op_id IN (SELECT value FROM json_each(?))
            ORDER BY op_id, rowid""",
            (json.dumps(list(events)),),
        )
        write_values(self._trace, [(events[operation], self._counters[name or ""], v) for operation, name, v in values])

    def _placed(self, operation: _Operation, stream: str | None, graph: GraphLaunch | None) -> dict[str, Any]:
        """Return the common columns of kernels and copies."""
        return {
            "id": operation.id, "start": operation.start, "end": operation.end, "tid": operation.tid,
            "queue_id": self._places.queues[operation.gpu, operation.queue], "stream_id": self._places.stream(stream),
            "graph_exec_id": graph.graph if graph else None,
            "event": {"stack_id": operation.call or 0, "extdata": _left(operation.kind, operation.sequence)},
        }  # fmt: skip

    def _kernel(self, operation: _Operation, launch: Row) -> dict[str, Any]:
        """Return the columns of a kernel; the sizes of a graph launch of many kernels do not apply to each."""
        if graph := self._graphs.get(operation.call or 0):
            self._count_launched(operation)
        if launch[_WORKGROUP] is None or (graph and operation.kernel != operation.name):
            launch = (graph.stream if graph else None, None, None, 0, 0, 0, 0, 0, 0)
        stream, lds, scratch, *sizes = launch
        if not (operation.function in _COUNT_WORK_ITEMS or self._tables.counts_work_items):
            sizes[3:] = [blocks * items for blocks, items in zip(sizes[3:], sizes[:3], strict=True)]
        return {
            "agent_id": self._places.agents[operation.gpu],
            "kernel_id": self._kernels[operation.name or operation.kind or ""],
            "group_segment_size": lds, "private_segment_size": scratch,
            **dict(zip(SIZES, sizes, strict=True)),
            **self._placed(operation, stream, graph),
        }  # fmt: skip

    def _copy(self, operation: _Operation, copy: Row, *, is_fill: bool) -> dict[str, Any]:
        """Return the columns of a copy, or of a memory fill, which has no source."""
        stream, size, width, height, kind, dst, src, to_device, from_device, *_ = copy
        graph = self._graphs.get(operation.call or 0)
        agent = self._places.agent_of_copy(operation.gpu)
        name = MEMORY_SET if is_fill else _direction(operation.kind or "", kind)
        source, to = (None, agent) if is_fill else self._places.ends(name, agent, from_device, to_device)
        row = {
            "src_agent_id": source, "dst_agent_id": to, "src_address": whole(src), "dst_address": whole(dst),
            "name": name, "size": whole(size) or (whole(width) or 0) * (whole(height) or 0),
            **self._placed(operation, stream or (graph.stream if graph else None), graph),
        }  # fmt: skip
        row["event"]["category"] = MEMORY_SET if is_fill else "MEMORY_COPY"
        return row

    def _write_waits(self, waits: Sequence[_Operation]) -> None:
        """Write barriers on separate lines: in them a queue waits and no GPU works."""
        lines = [self._places.lines[wait.gpu, wait.queue] for wait in waits]
        start, end, names, calls = zip(*((w.start, w.end, w.kind, w.call or 0) for w in waits), strict=True)
        events = Events(GPU_WAIT, parent_stack_id=calls)
        self._trace.write(Regions(start=start, end=end, tid=lines, name=names, event=events))

    def _count_launched(self, operation: _Operation) -> None:
        times = self._launched.get(operation.call or 0)
        if times is None:
            agent, queue = self._places.agents[operation.gpu], self._places.queues[operation.gpu, operation.queue]
            times = [operation.start, operation.end, 0, operation.tid or 0, agent, queue]
            self._launched[operation.call or 0] = times
        times[:3] = min(times[0], operation.start), max(times[1], operation.end), times[2] + 1

    def _write_graph_launches(self) -> None:
        if self._launched:
            start, end, count, tid, agent, queue = zip(*self._launched.values(), strict=True)
            graphs = [self._graphs[call].graph for call in self._launched]
            self._trace.write(GraphLaunches(
                start=start, end=end, tid=tid, agent_id=agent, queue_id=queue, graph_exec_id=graphs,
                kernel_dispatch_count=count, event=Events(stack_id=list(self._launched)),
        ))  # fmt: skip


@functools.lru_cache(maxsize=256)
def _direction(operation: str, kind: object) -> str:
    """Return the name of a copy by the type of the operation, else by the kind passed to the call.

    >>> _direction("CopyHostToDevice", None), _direction("Memcpy", 2), _direction("MEMORY_COPY_DEVICE_TO_HOST", None)
    ('MEMORY_COPY_HOST_TO_DEVICE', 'MEMORY_COPY_DEVICE_TO_HOST', 'MEMORY_COPY_DEVICE_TO_HOST')
    """
    if operation.startswith("MEMORY_COPY_"):
        return operation
    if ends := re.search(r"(Host|Device|Peer)To(Host|Device|Peer)", operation):
        source, to = (end.upper().replace("PEER", "DEVICE") for end in ends.groups())
        return f"MEMORY_COPY_{source}_TO_{to}"
    return f"MEMORY_COPY_{_KINDS[kind]}" if isinstance(kind, int) and 0 <= kind < len(_KINDS) else "MEMORY_COPY"


@functools.lru_cache(maxsize=4096)
def _left(kind: str | None, sequence: object) -> str:
    """Return data without a column as JSON: types of operations other than plain kernels, and sequence numbers."""
    facts: dict[str, Any] = {}
    if kind != KERNEL_TYPES[0]:
        facts["opType"] = kind
    if sequence:
        facts["sequenceId"] = sequence
    return json.dumps(facts) if facts else "{}"
