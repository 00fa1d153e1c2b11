"""SQLite exports of Nsight Systems (`nsys export --type sqlite`): a rank for each process that used a GPU.

Tables are absent if nothing was traced for them, and columns come and go with versions: each is checked for. The schema
is that of NVIDIA's exporter documentation.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from rocpd.base import by_key
from rocpd.base.texts import json_object
from rocpd.importers import words
from rocpd.importers.files import SourceTables, TraceSource, TraceTarget
from rocpd.schema.rules.categories import GPU_WAIT, TORCH_OPERATOR, TRACER
from rocpd.schema.trace.events import (
    MARK,
    MARKER_RANGE,
    Events,
    GraphLaunches,
    KernelDispatches,
    MemoryAllocations,
    MemoryCopies,
    Regions,
)
from rocpd.schema.trace.infos import KernelInfo, NodeInfo, ProcessInfo, StreamInfo
from rocpd.schema.trace.writer import TraceWriter

_NOT_EVENTS = ("ENUM_", "TARGET_INFO_", "META_DATA_", "EXPORT_", "sqlite_", "NVTX_PAYLOAD", "ANALYSIS_", "PROFILER_")


class NsightTables(SourceTables):
    """An open export."""

    def has(self, table: str, *columns: str) -> bool:
        """Whether there is a table with these columns."""
        return table in self.columns and set(columns) <= set(self.columns[table])

    def rows(self, table: str, columns: Sequence[str], where: str = "1", bindings: Sequence[Any] = ()) -> Iterator[Any]:
        """Yield rows of a table, in order; columns that it lacks are NULL, and a table that is absent has no rows."""
        if table in self.columns:
            yield from self.query(self._select(table, columns, where), bindings)

    def batches(
        self, table: str, columns: Sequence[str], where: str = "1", bindings: Sequence[Any] = ()
    ) -> Iterator[tuple[Sequence[Any], ...]]:
        """Yield columns of a table, some thousand rows at a time."""
        if table in self.columns:
            for rows in self.in_batches(self._select(table, columns, where), bindings):
                yield tuple(zip(*rows, strict=True))

    def _select(self, table: str, columns: Sequence[str], where: str) -> str:
        items = (f'"{name}"' if name in self.columns[table] else "NULL" for name in columns)
        return f"SELECT {', '.join(items)} FROM {table} WHERE {where}"

    @functools.cached_property
    def texts(self) -> Mapping[int, str]:
        """Number of a text -> the text."""
        return dict(self.rows("StringIds", ("id", "value")))

    @functools.cached_property
    def shift(self) -> int:
        """The offset that makes times count from 1970 [ns]; 0 if the session's begin is unknown.

        Times count from the session's start, or are those of the system's clock, whose time is recorded beside it.
        """
        columns = ("utcEpochNs", "systemClockNs")
        for utc, system in self.rows("TARGET_INFO_SESSION_START_TIME", columns):
            if isinstance(utc, int):
                return utc - (system or 0)
        return 0

    @functools.cached_property
    def session(self) -> tuple[int | None, int | None]:
        """Start and end of the session [ns], with the offset; None if they are not recorded."""
        for start, end in self.rows("ANALYSIS_DETAILS", ("startTime", "stopTime")):
            if isinstance(start, int) and isinstance(end, int) and start + self.shift > 0:
                return start + self.shift, end + self.shift
        return None, None

    def left_out(self, read: Collection[str], processes: Collection[int]) -> dict[str, int]:
        """Return the tables of events that are not read, and their numbers of rows; and rows of other processes."""
        counts = {}
        listed = ", ".join(map(str, processes))
        for name, columns in self.columns.items():
            times = {"start", "timestamp", "rawTimestamp"} & set(columns)
            if not times or name.startswith(_NOT_EVENTS):
                continue
            key = next((column for column in ("globalPid", "globalTid") if column in columns), None)
            where = f"{key} >> 24 & 0xFFFFFF NOT IN ({listed})" if name in read and key else "1"
            if name in read and not key:
                continue
            if count := int(self.query(f"SELECT COUNT(*) FROM {name} WHERE {where}").get):
                counts[name if name not in read else f"{name} of processes without a GPU"] = count
        return counts


_KERNELS, _COPIES, _SETS = (f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "MEMCPY", "MEMSET"))
_CALLS, _SYNCHRONIZATIONS = "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
_GRAPHS, _MEMORY = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "CUDA_GPU_MEMORY_USAGE_EVENTS"
_RANGES, _METRICS = "NVTX_EVENTS", "GPU_METRICS"
_ON_THREADS = {
    "OSRT_API": "OS_RUNTIME_API",
    **{f"MPI_{kind}_EVENTS": "MPI" for kind in ("P2P", "COLLECTIVES", "START_WAIT", "OTHER")},
    "CUDNN_EVENTS": "CUDNN_API",
    "CUBLAS_EVENTS": "CUBLAS_API",
    **dict.fromkeys(("PROFILER_OVERHEAD", "CUPTI_ACTIVITY_KIND_OVERHEAD"), TRACER),
}
"""Tables of calls without links to them, and the categories of their regions."""
_MARK, _START_END, _DOMAIN = {34, 65}, {60, 71}, 75  # of ENUM_NSYS_EVENT_TYPE
_RANGE_TYPES = {59, 70} | _START_END
_HOST_MEMORY = {0, 1}  # of ENUM_CUDA_MEM_KIND: pageable, pinned
_GPU_COLUMNS = (
    "name", "totalMemory", "smCount", "numThreadsPerWarp", "clockRate", "memoryBandwidth", "busLocation", "uuid",
    "chipName",
)  # fmt: skip
_VERSION = re.compile(r"(?:_(?:v\d+|ptsz|ptds))+$")
_NCCL = "NCCL"
_NCCL_ARGUMENTS = {
    "NCCL communicator ID": "comm", "No. of ranks": "nranks", "Rank": "rank", "Peer rank": "peer", "Root": "root",
}  # fmt: skip


class NsightRows:
    """Writes the events of one process.

    Args:
        trace: the file.
        tables: the export.
        pid: the process.
        holds_metrics: whether metrics of GPUs, which belong to no process, go into this file.
    """

    TABLES = (_KERNELS, _COPIES, _SETS, _GRAPHS, _CALLS, _SYNCHRONIZATIONS, _RANGES, *_ON_THREADS, _MEMORY, _METRICS)
    """The tables that are read, in order."""

    def __init__(self, trace: TraceWriter, tables: NsightTables, pid: int, *, holds_metrics: bool) -> None:
        self._trace, self._tables, self._pid = trace, tables, pid
        self._holds_metrics = holds_metrics
        self._agents = words.Registered(trace, lambda device: words.gpu(device, vendor="NVIDIA"))
        self._devices: dict[int, int] = {}  # number of a GPU in the machine -> its number in the process
        self._kernels = words.Registered(trace, self._kernel)
        names = {
            thread & 0xFFFFFF: tables.texts.get(name)
            for thread, name in tables.rows("ThreadNames", ("globalTid", "nameId"), "1 ORDER BY priority DESC")
            if pid_of(thread) == pid
        }
        self._threads = words.ThreadIds(trace, {tid: name for tid, name in names.items() if name})
        chains = tables.rows("CUDA_CALLCHAINS", ("id", "symbol"), "1 ORDER BY id, stackDepth")  # the innermost first
        frames = by_key((number, tables.texts.get(symbol, "?")) for number, symbol in chains)
        self._stacks = {number: json.dumps(names) for number, names in frames.items()}
        trace.register(words.HOST)
        self._describe_gpus()
        self._describe_streams()

    def write(self) -> Iterator[str]:
        """Write all events; yield the name of each table once it is written."""
        for name in self.TABLES:
            _WRITERS.get(name, NsightRows._write_calls)(self, name)
            yield name

    def _describe_gpus(self) -> None:
        """Register GPUs by the numbers that CUDA gives them in this process."""
        self._gpus = {row[0]: row[1:] for row in self._tables.rows("TARGET_INFO_GPU", ("id", *_GPU_COLUMNS))}
        by_cuda = {
            cuda: number
            for pid, number, cuda in self._tables.rows("TARGET_INFO_CUDA_DEVICE", ("pid", "gpuId", "cudaId"))
            if pid in (self._pid, None)
        }
        for device in sorted(by_cuda or self._gpus):
            self._describe_gpu(device, by_cuda.get(device, device))

    def _describe_gpu(self, device: int, number: int) -> None:
        """Register a GPU by its numbers in the process and in the machine, as far as it is known."""
        self._devices[number] = device
        if number in self._gpus:
            name, memory, units, wave, *more = self._gpus[number]
            facts = {"cu_count": units, "wave_front_size": wave, **dict(zip(_GPU_COLUMNS[4:], more, strict=True))}
            self._agents[device] = self._trace.register(words.gpu(device, name, memory, facts, "NVIDIA"))

    def _agent_in_machine(self, number: int) -> int | None:
        """Return the agent of a GPU by its number in the machine, some of whose GPUs the process may not see."""
        if number not in self._devices:
            self._describe_gpu(max(self._agents) + 1 if number in self._agents else number, number)
        return self._agents_of([self._devices[number]])[0]

    def _describe_streams(self) -> None:
        columns = ("streamId", "contextId", "priority")
        streams = {
            row[0]: row for row in self._tables.rows("TARGET_INFO_CUDA_STREAM", columns, "processId = ?", (self._pid,))
        }
        sql = " UNION ".join(
            f"SELECT DISTINCT streamId FROM {name} WHERE {self._mine('globalPid')}"
            for name in (_KERNELS, _COPIES, _SETS, _GRAPHS)
            if self._tables.has(name, "streamId")
        )
        for (stream,) in self._tables.query(sql) if sql else ():
            _, context, priority = streams.get(stream, (stream, None, None))
            facts = {} if context is None else {"context": context, "priority": priority}
            self._trace.register(StreamInfo(stream, name=f"Stream {stream}", extdata=json.dumps(facts)))

    def _mine(self, column: str) -> str:
        return f"{column} >> 24 & 0xFFFFFF = {self._pid}"

    def _batches(self, table: str, columns: Sequence[str], key: str = "globalPid") -> Iterator[tuple[Any, ...]]:
        if self._tables.has(table, key):
            yield from self._tables.batches(table, columns, self._mine(key))

    def _lasting(
        self, table: str, columns: Sequence[str], key: str = "globalPid"
    ) -> Iterator[tuple[dict[str, list[int]], tuple[Any, ...]]]:
        """Yield start and end, and columns of a table; an event still running has no end, and ends at its start."""
        for start, end, *others in self._batches(table, ("start", "end", *columns), key):
            ends = [first if last is None else last for first, last in zip(start, end, strict=True)]
            yield {"start": self._times(start), "end": self._times(ends)}, tuple(others)

    def _times(self, column: Sequence[int]) -> list[int]:
        shift = self._tables.shift
        return [time + shift for time in column]

    def _agents_of(self, devices: Sequence[int | None]) -> list[int | None]:
        return [None if device is None else self._agents[device] for device in devices]

    def _write_kernels(self, table: str) -> None:
        columns = (
            "deviceId", "streamId", "correlationId", "demangledName", "mangledName",
            "registersPerThread", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "staticSharedMemory",
            "dynamicSharedMemory", "localMemoryPerThread", "graphNodeId", "graphId", "graphExecId",
        )  # fmt: skip
        for times, batch in self._lasting(table, columns):
            device, stream, correlation, name, mangled, registers, *rest = batch
            gx, gy, gz, bx, by, bz = map(_or_0, rest[:6])
            static, dynamic, local, node, graph, executable = rest[6:]
            grids = ([a * b for a, b in zip(g, w, strict=True)] for g, w in ((gx, bx), (gy, by), (gz, bz)))
            kernels = [self._kernels[key] for key in zip(name, mangled, registers, strict=True)]
            self._trace.write(KernelDispatches(
                **times, agent_id=self._agents_of(device), kernel_id=kernels, stream_id=_or_0(stream),
                **dict(zip(words.SIZES, (bx, by, bz, *grids), strict=True)), private_segment_size=local,
                group_segment_size=[(a or 0) + (b or 0) for a, b in zip(static, dynamic, strict=True)],
                graph_exec_id=[b if a is None else a for a, b in zip(executable, graph, strict=True)],
                graph_node_id=node, event=Events(None, _or_0(correlation)),
            ))  # fmt: skip

    def _kernel(self, key: tuple[int, int | None, int | None]) -> KernelInfo:
        name, mangled, registers = key
        shown = self._tables.texts.get(name, f"kernel {name}")
        linked = self._tables.texts.get(mangled or 0, shown)
        return KernelInfo(display_name=shown, kernel_name=linked, arch_vgpr_count=registers)

    def _write_copies(self, table: str) -> None:
        kinds = dict(self._tables.rows("ENUM_CUDA_MEMCPY_OPER", ("id", "label"))) or _COPY_KINDS
        columns = ("deviceId", "streamId", "correlationId", "bytes", "copyKind", "srcDeviceId", "dstDeviceId")
        for times, (device, stream, correlation, size, kind, source, to) in self._lasting(table, columns):
            names, ends = [], ([], [])  # type: ignore[var-annotated]
            for number, on, *others in zip(kind, self._agents_of(device), source, to, strict=True):
                name, *hosts = words.copy_direction(str(kinds.get(number, "")))
                names.append(name)
                for side, is_host, other in zip(ends, hosts, others, strict=True):
                    agent = on if other is None else self._agents_of([other])[0]
                    side.append(words.HOST.id if is_host else None if is_host is None else agent)
            self._trace.write(MemoryCopies(
                **times, name=names, src_agent_id=ends[0], dst_agent_id=ends[1], size=_or_0(size), stream_id=stream,
                event=Events(None, _or_0(correlation)),
            ))  # fmt: skip

    def _write_sets(self, table: str) -> None:
        columns = ("deviceId", "streamId", "correlationId", "bytes")
        for times, (device, stream, correlation, size) in self._lasting(table, columns):
            self._trace.write(MemoryCopies(
                **times, name=words.MEMORY_SET, size=_or_0(size), dst_agent_id=self._agents_of(device),
                stream_id=stream, event=Events(words.MEMORY_SET, _or_0(correlation)),
            ))  # fmt: skip

    def _write_graphs(self, table: str) -> None:
        columns = ("deviceId", "correlationId", "graphExecId", "graphId")
        for times, (device, correlation, executable, graph) in self._lasting(table, columns):
            self._trace.write(GraphLaunches(
                **times, agent_id=self._agents_of(device),
                graph_exec_id=[b if a is None else a for a, b in zip(executable, graph, strict=True)],
                event=Events(None, _or_0(correlation)),
            ))  # fmt: skip

    def _write_calls(self, table: str) -> None:
        """Write calls of CUDA, which launch, or calls of another library."""
        columns = ("globalTid", "nameId", "textId", "correlationId", "returnValue", "callchainId")
        category = _ON_THREADS.get(table)
        for times, (thread, name, text, correlation, result, chain) in self._lasting(table, columns, "globalTid"):
            numbers = [b if a is None else a for a, b in zip(name, text, strict=True)]
            names = [_VERSION.sub("", self._tables.texts.get(number, "?")) for number in numbers]
            rows = self._trace.write(Regions(
                **times, tid=[self._threads[number & 0xFFFFFF] for number in thread], name=names,
                event=Events(
                    list(map(words.api_category, names)) if category is None else category,
                    _or_0(correlation) if category is None else 0,
                    call_stack=[self._stacks.get(number, "{}") for number in chain],
                ),
            ))  # fmt: skip
            returned = [[("int", "returnValue", str(code))] if code else [] for code in result]
            words.write_arguments(self._trace, rows.events, returned)

    def _write_synchronizations(self, table: str) -> None:
        kinds = dict(self._tables.rows("ENUM_CUPTI_SYNC_TYPE", ("id", "label")))
        for times, (device, stream, kind) in self._lasting(table, ("deviceId", "streamId", "syncType")):
            lines = [self._threads[on, at, "synchronization"] for on, at in zip(device, stream, strict=True)]
            self._trace.write(Regions(
                **times, tid=lines,
                name=[str(kinds.get(number, f"synchronization {number}")) for number in kind],
                event=Events(GPU_WAIT),
            ))  # fmt: skip

    def _write_ranges(self, table: str) -> None:
        domains = {
            domain: text or self._tables.texts.get(number, "")
            for domain, text, number in self._tables.rows(
                table, ("domainId", "text", "textId"), f"eventType = {_DOMAIN} AND {self._mine('globalTid')}"
            )
        }
        schemas = self._tables.rows("NVTX_PAYLOAD_SCHEMA_ENTRIES", ("domainId", "name"))
        domains |= {number: _NCCL for number, name in schemas if str(name).startswith(_NCCL) and number not in domains}
        columns = ("start", "end", "eventType", "globalTid", "text", "textId", "domainId", "jsonText", "jsonTextId")
        for batch in self._batches(table, columns, "globalTid"):
            regions, arguments = [], []
            for start, end, kind, thread, text, number, domain, payload, payload_number in zip(*batch, strict=True):
                shown = self._tables.texts.get(number, "") if text is None else text
                facts = payload or self._tables.texts.get(payload_number)
                name, category, extdata, recorded = _range(shown, domains.get(domain), facts)
                if kind not in _RANGE_TYPES | _MARK:
                    continue
                category = MARK if kind in _MARK and category == MARKER_RANGE else category
                tid = self._threads[thread & 0xFFFFFF]
                regions.append((start, start if end is None else end, tid, name, category, extdata))
                arguments.append(recorded)
            self._write_regions(regions, arguments)

    def _write_regions(self, regions: Sequence[Any], arguments: Sequence[Sequence[words.Argument]]) -> None:
        if not regions:
            return
        start, end, tid, name, category, extdata = zip(*regions, strict=True)
        times, events = {"start": self._times(start), "end": self._times(end)}, Events(category, extdata=extdata)
        rows = self._trace.write(Regions(**times, tid=tid, name=name, event=events))
        words.write_arguments(self._trace, rows.events, arguments)

    def _write_memory(self, table: str) -> None:
        columns = ("start", "deviceId", "bytes", "address", "memoryOperationType", "streamId", "memKind")
        for start, device, size, address, kind, stream, memory in self._batches(table, columns):
            times = self._times(start)
            is_host = [kind_of in _HOST_MEMORY for kind_of in memory]
            on_gpus = self._agents_of([None if host else on for on, host in zip(device, is_host, strict=True)])
            agents = [words.HOST.id if host else on for on, host in zip(on_gpus, is_host, strict=True)]
            self._trace.write(MemoryAllocations(
                start=times, end=times, agent_id=agents, address=address, size=_or_0(size),
                type=["FREE" if operation else "ALLOC" for operation in kind], stream_id=stream,
            ))  # fmt: skip

    def _write_metrics(self, table: str) -> None:
        """Write metrics of GPUs; the lowest byte of `typeId` is the number of the GPU in the machine."""
        if not self._holds_metrics or not self._tables.has(table, "timestamp", "typeId", "metricId", "value"):
            return
        names = {
            (kind, metric): name
            for kind, metric, name in self._tables.rows("TARGET_INFO_GPU_METRICS", ("typeId", "metricId", "metricName"))
        }
        counters = words.CounterTracks(self._trace)
        for batch in self._tables.batches(table, ("timestamp", "typeId", "metricId", "value")):
            for time, kind, metric, value in zip(*batch, strict=True):
                agent = self._agent_in_machine(kind & 0xFF)
                name = names.get((kind, metric), f"metric {metric}")
                counters.add(name, agent, "%" if "%" in name else "", time + self._tables.shift, float(value))
            counters.write()


_WRITERS: Mapping[str, Callable[[NsightRows, str], None]] = {
    _KERNELS: NsightRows._write_kernels,
    _COPIES: NsightRows._write_copies,
    _SETS: NsightRows._write_sets,
    _GRAPHS: NsightRows._write_graphs,
    _SYNCHRONIZATIONS: NsightRows._write_synchronizations,
    _RANGES: NsightRows._write_ranges,
    _MEMORY: NsightRows._write_memory,
    _METRICS: NsightRows._write_metrics,
}
_COPY_KINDS = {1: "Host-to-Device", 2: "Device-to-Host", 8: "Device-to-Device", 9: "Host-to-Host", 10: "Peer-to-Peer"}


def _or_0(column: Sequence[int | None]) -> list[int]:
    return [number or 0 for number in column]


def _range(text: str, domain: str | None, payload: str | None) -> tuple[str, str, str, Sequence[words.Argument]]:
    """Return name, category, JSON and arguments of an NVTX range.

    NCCL puts ranges around its calls; PyTorch (`emit_nvtx`) around operators, with their numbers in the names.

    >>> _range("aten::mm, seq = 7, op_id = 12", None, None)
    ('aten::mm', 'TORCH_OPERATOR', '{}', [('int', 'Sequence number', '7'), ('int', 'op_id', '12')])
    >>> _range("ncclSend", "NCCL", '{"Peer rank": 1, "Message size [bytes]": 8}')
    ('ncclSend', 'RCCL_API', '{}', [('', 'peer', '1'), ('', 'count', '8'), ('', 'datatype', 'ncclInt8')])
    >>> _range("step 1", None, None)
    ('step 1', 'MARKER_CORE_RANGE_API', '{"message": "step 1"}', ())
    """
    if domain == _NCCL and text.startswith("nccl"):
        return text, "RCCL_API", "{}", _nccl_arguments(text, payload)
    if operator := words.operator_in(text):
        return operator[0], TORCH_OPERATOR, "{}", operator[1]
    facts_of_range = {"message": text} | {k: v for k, v in (("domain", domain), ("payload", payload)) if v}
    return text, MARKER_RANGE, json.dumps(facts_of_range, ensure_ascii=False), ()


def _nccl_arguments(function: str, payload: str | None) -> Sequence[words.Argument]:
    """Return the values in the payload of a range of NCCL, under the names of NCCL's arguments."""
    facts = json_object(payload) or {}
    recorded = {name: str(facts[key]) for key, name in _NCCL_ARGUMENTS.items() if key in facts}
    if "Message size [bytes]" in facts:
        counts = {"ncclAllGather": "sendcount", "ncclReduceScatter": "recvcount"}
        recorded |= {counts.get(function, "count"): str(facts["Message size [bytes]"]), "datatype": "ncclInt8"}
    return [("", name, value) for name, value in recorded.items()]


_WITH_PROCESS = (
    ((_KERNELS, "globalPid"), (_COPIES, "globalPid"), (_SETS, "globalPid"), (_CALLS, "globalTid")),
    ((_RANGES, "globalTid"), ("OSRT_API", "globalTid"), ("MPI_COLLECTIVES_EVENTS", "globalTid")),
)
"""Tables that show processes: those with calls of CUDA or GPU work; others only if there are none of these."""


def read(source: TraceSource, target: TraceTarget) -> None:
    """Write each process of an export."""
    tables = NsightTables(source.database)
    system = dict(tables.rows("TARGET_INFO_SYSTEM_ENV", ("name", "value")))
    node = NodeInfo(
        machine_id=f"nsys-{source.digest}",
        hostname=system.get("Hostname") or source.path.name,
        system_name=system.get("OsDescription"),
        version=system.get("KernelVersion"),
        hardware_name=system.get("CpuArchitecture"),
    )
    processes = _processes(tables)
    steps = len(processes) * len(NsightRows.TABLES)
    for number, pid in enumerate(processes):
        with target.rank(pid, node, _process(tables, pid)) as trace:
            rows = NsightRows(trace, tables, pid, holds_metrics=number == 0)
            for done, _ in enumerate(rows.write(), number * len(NsightRows.TABLES) + 1):
                source.step(done, steps)
            for name, value in tables.rows("META_DATA_EXPORT", ("name", "value")):
                if name.startswith(("EXPORT_PRODUCT_", "EXPORT_SCHEMA_VERSION")):
                    trace.note(f"nsys::{name}", str(value))
            if tables.shift:  # the export has the time when the session began
                trace.note("clock", "CLOCK_REALTIME")
    for name, count in tables.left_out(NsightRows.TABLES, processes).items():
        target.lose(f"rows of the table {name}", count)


def _processes(tables: NsightTables) -> list[int]:
    for sources in _WITH_PROCESS:
        pids: set[int] = set()
        for name, column in sources:
            if tables.has(name, column):
                pids |= {pid for (pid,) in tables.query(f"SELECT DISTINCT {column} >> 24 & 0xFFFFFF FROM {name}")}
        if pids:
            return sorted(pids)
    return []


def _process(tables: NsightTables, pid: int) -> ProcessInfo:
    names = {number: name for number, name in tables.rows("PROCESSES", ("pid", "name")) if name}
    ranks = {pid_of(number): rank for number, rank in tables.rows("MPI_RANKS", ("globalPid", "rank"))}
    extdata = {"mpi_rank": ranks[pid], "mpi_size": len(ranks)} if pid in ranks else {}
    start, end = tables.session
    return ProcessInfo(pid, start=start, end=end, command=names.get(pid), extdata=json.dumps(extdata))


def pid_of(number: int) -> int:
    """Return the process of a `globalPid` or `globalTid`."""
    return number >> 24 & 0xFFFFFF
