"""Owns tiny rocpd databases built in code, so that input, query and expected rows stand on one screen.

Fills files the way rocprofv3 does. Never checks anything: damaged rows are what half the tests need, so every
builder method takes None for what shall be NULL, and columns by name that replace what it would have written
(`tid=None`, `event_id=None`, `agent_id=99`).
"""

from __future__ import annotations

import itertools
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from rocpd.schema.quote import quote_name
from rocpd.schema.versions import LATEST
from rocpd.schema.write import Writer, create, create_table_text

CPU, GPU, GPU2 = 0, 1, 2
"""Agent ids of every built file."""

CODE_OBJECT = 1
QUEUE, STREAM = 1, 0
MAIN = -1
"""Stands for the main thread: its tid is the pid."""


def guid_of(number: int) -> str:
    """Give the GUID of the builder made with `number`; GUIDs sort like their numbers."""
    return f"{number:08x}-92cb-72cb-9169-c7e541b1fcdf"


class TraceBuilder:
    """Collects the rows of one rank; `write` makes the file. Methods give the builder back, so calls chain.

    Args:
        number: makes the GUID. Everything else is equal for two builders unless given: pids and ids repeat.
        pid: OS pid, also the tid of the main thread.
        host: host name.
        machine: machine id; the same on two hosts when they are containers of one machine.
        command: command line.
        environment: environment variables of the process.
        extdata: extdata of the process.
    """

    def __init__(
        self,
        number: int = 0,
        *,
        pid: int = 16,
        host: str = "node0",
        machine: str | None = None,
        command: str = "./app --steps 3",
        environment: Mapping[str, str] | None = None,
        extdata: Mapping[str, object] | None = None,
    ) -> None:
        self.guid = guid_of(number)
        self.pid = pid
        self.nid = zlib.crc32((machine or host).encode())
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self._strings: dict[str, int] = {}
        self._known: dict[tuple[str, object], int] = {}
        self._stacks = itertools.count(1001)
        self._event: int | None = None
        self._late: list[str] = []
        self.string("")
        self._describe_process(host, machine or f"machine-of-{host}", command, environment or {}, extdata or {})
        self._describe_agents()

    def region(
        self,
        name: str | None,
        start: int,
        end: int,
        *,
        tid: int | None = MAIN,
        category: str | None = None,
        message: str | None = None,
        stack: int | None = None,
        parent: int = 0,
        correlation: int = 0,
        **columns: object,
    ) -> Self:
        """Add a region on a CPU thread; with a `message` it is a marker."""
        chosen = category or ("HIP_RUNTIME_API_EXT" if message is None else "MARKER_CORE_RANGE_API")
        event = self._new_event(chosen, stack, parent, correlation, message)
        places = {"tid": self._thread(tid), "start": start, "end": end, "name_id": self.string(name)}
        return self._timed("rocpd_region", {**places, "event_id": event, **columns})

    def sample(
        self,
        name: str,
        timestamp: int,
        *,
        tid: int | None = MAIN,
        category: str = "MARKER_CORE_API",
        message: str | None = None,
        stack: int | None = None,
        **columns: object,
    ) -> Self:
        """Add a point in time on the track `name` of a thread."""
        event = self._new_event(category, stack, 0, 0, message)
        track = {"tid": self._thread(tid), "name_id": self.string(name)}
        track_id = self._once("rocpd_track", (name, tid), {"nid": self.nid, "pid": self.pid, **track})
        return self.row("rocpd_sample", **{"track_id": track_id, "timestamp": timestamp, "event_id": event, **columns})

    def kernel(
        self,
        name: str | None,
        start: int,
        end: int,
        *,
        agent: int | None = GPU,
        stream: int | None = STREAM,
        queue: int | None = QUEUE,
        tid: int | None = MAIN,
        region: str | None = "",
        stack: int | None = None,
        correlation: int = 0,
        grid: tuple[int, int, int] = (1024, 1, 1),
        workgroup: tuple[int, int, int] = (256, 1, 1),
        **columns: object,
    ) -> Self:
        """Add a kernel dispatch; `region` is the text of the enclosing marker."""
        event = self._new_event("KERNEL_DISPATCH", stack, None, correlation)
        ids = {"agent_id": agent, "kernel_id": self._symbol(name), "event_id": event, "tid": self._thread(tid)}
        lanes = {"queue_id": self._queue(queue), "stream_id": self._stream(stream)}
        sizes = {f"workgroup_size_{axis}": size for axis, size in zip("xyz", workgroup, strict=True)}
        sizes |= {f"grid_size_{axis}": size for axis, size in zip("xyz", grid, strict=True)}
        sizes |= {"private_segment_size": 0, "group_segment_size": 2048}
        place = {"dispatch_id": self._count("rocpd_kernel_dispatch") + 1, "start": start, "end": end}
        text = {"region_name_id": self.string(region)}
        return self._timed("rocpd_kernel_dispatch", {**ids, **lanes, **place, **sizes, **text, **columns})

    def copy(
        self,
        start: int,
        end: int,
        *,
        size: int = 4096,
        name: str = "MEMORY_COPY_HOST_TO_DEVICE",
        src: int | None = CPU,
        dst: int | None = GPU,
        stream: int | None = STREAM,
        queue: int | None = QUEUE,
        tid: int | None = MAIN,
        region: str | None = "",
        stack: int | None = None,
        **columns: object,
    ) -> Self:
        """Add a memory copy."""
        event = self._new_event("MEMORY_COPY", stack, None)
        ends = {"src_agent_id": src, "src_address": 4096, "dst_agent_id": dst, "dst_address": 8192, "size": size}
        lanes = {"queue_id": self._queue(queue), "stream_id": self._stream(stream), "tid": self._thread(tid)}
        text = {"name_id": self.string(name), "region_name_id": self.string(region)}
        place = {"start": start, "end": end, "event_id": event}
        return self._timed("rocpd_memory_copy", {**place, **ends, **lanes, **text, **columns})

    def alloc(
        self,
        start: int,
        end: int,
        *,
        size: int = 4096,
        kind: str = "ALLOC",
        level: str = "REAL",
        agent: int | None = GPU,
        address: int | None = 8192,
        stream: int | None = STREAM,
        queue: int | None = QUEUE,
        tid: int | None = MAIN,
        stack: int | None = None,
        **columns: object,
    ) -> Self:
        """Add an allocation, a free (`kind="FREE"`) or scratch memory (`level="SCRATCH"`)."""
        event = self._new_event("SCRATCH_MEMORY" if level == "SCRATCH" else "MEMORY_ALLOCATION", stack, None)
        what = {"type": kind, "level": level, "agent_id": agent, "address": address, "size": size}
        lanes = {"queue_id": self._queue(queue), "stream_id": self._stream(stream), "tid": self._thread(tid)}
        place = {"start": start, "end": end, "event_id": event, "extdata": '{"flags":2}'}
        return self._timed("rocpd_memory_allocate", {**place, **what, **lanes, **columns})

    def graph_launch(self, start: int, end: int, *, graph: int = 1, kernels: int = 1, **columns: object) -> Self:
        """Add the launch of an executable graph (schema 3.0.2 and later)."""
        event = self._new_event("HIP_RUNTIME_API_EXT", None, 0)
        ids = {"agent_id": GPU, "queue_id": self._queue(QUEUE), "tid": self._thread(MAIN), "event_id": event}
        what = {"start": start, "end": end, "graph_exec_id": graph, "kernel_dispatch_count": kernels}
        return self._timed("rocpd_graph_launch", {**ids, **what, **columns})

    def counter(self, name: str, value: float, *, units: str = "", **columns: object) -> Self:
        """Add a counter value to the last kernel, region or sample."""
        what = {"agent_id": GPU, "target_arch": "GPU", "name": name, "symbol": name, "description": f"counts {name}"}
        kind = {"component": "rocprofiler-sdk", "units": units, "value_type": "ABS", "block": "SQ", "expression": ""}
        flags = {"is_constant": 0, "is_derived": 0}
        pmc = self._once("rocpd_info_pmc", name, {"nid": self.nid, "pid": self.pid, **what, **kind, **flags})
        return self.row("rocpd_pmc_event", **{"event_id": self._event, "pmc_id": pmc, "value": value, **columns})

    def arg(self, name: str, value: str | None, *, type: str = "void*", **columns: object) -> Self:
        """Add an argument to the last region, kernel, copy or allocation."""
        place = {"event_id": self._event, "position": self._count("rocpd_arg", event_id=self._event)}
        return self.row("rocpd_arg", **{**place, "type": type, "name": name, "value": value, **columns})

    def row(self, base: str, **columns: object) -> Self:
        """Add a row to table `base`; columns that are not given keep the table's defaults."""
        rows = self.rows.setdefault(base, [])
        rows.append({"id": len(rows) + 1, **columns})
        return self

    def string(self, text: str | None) -> int | None:
        """Give the id of `text`; a new one is stored."""
        if text is None:
            return None
        if text not in self._strings:
            self._strings[text] = len(self._strings) + 1
            self.row("rocpd_string", id=self._strings[text], string=text)
        return self._strings[text]

    def sql(self, statement: str) -> Self:
        """Run `statement` when all rows are in and before views are stored; `{uuid}` stands for the suffix."""
        self._late.append(statement)
        return self

    def write(self, path: Path, version: str = LATEST) -> Path:
        """Make the file; NOT NULL is left out of tables that hold a NULL."""
        with create(path, self.guid, version) as writer:
            self.write_into(writer)
        return path

    def write_into(self, writer: Writer) -> None:
        """Fill the tables that `writer` made."""
        for base, rows in self.rows.items():
            if any(value is None for row in rows for value in row.values()):
                _loosen(writer, base)
            for columns, group in itertools.groupby(rows, key=tuple):
                writer.insert(base, columns, [tuple(row.values()) for row in group])
        for statement in self._late:
            writer.connection.execute(statement.replace("{uuid}", writer.suffix))

    def _describe_process(
        self, host: str, machine: str, command: str, environment: Mapping[str, str], extdata: Mapping[str, object]
    ) -> None:
        uname = {"system_name": "Linux", "hostname": host, "release": "5.15.0", "version": "#1 SMP"}
        rest = {"hardware_name": "x86_64", "domain_name": "(none)"}
        self.row("rocpd_info_node", id=self.nid, hash=self.nid * 7, machine_id=machine, **uname, **rest)
        life = {"init": 1, "fini": 9_000_000, "start": 1, "end": 9_000_000}
        text = {"command": command, "environment": json.dumps(environment), "extdata": json.dumps(extdata)}
        self.row("rocpd_info_process", id=self.pid, nid=self.nid, ppid=1, pid=self.pid, **life, **text)

    def _describe_agents(self) -> None:
        agents = ((CPU, "CPU", 0, "EPYC 9654"), (GPU, "GPU", 0, "gfx942"), (GPU2, "GPU", 1, "gfx942"))
        for agent, kind, index, name in agents:
            product = "AMD Instinct MI300X" if kind == "GPU" else name
            indices = {"absolute_index": agent, "logical_index": agent, "type_index": index, "uuid": 29857}
            names = {"name": name, "model_name": "", "vendor_name": "AMD"}
            names |= {"product_name": product, "user_name": product}
            record = json.dumps({"cu_count": 304 if kind == "GPU" else 0, "wave_front_size": 64, "num_xcc": 8})
            place = {"id": agent, "nid": self.nid, "pid": self.pid, "type": kind}
            self.row("rocpd_info_agent", **{**place, **indices, **names, "extdata": record})

    def _timed(self, base: str, columns: Mapping[str, object]) -> Self:
        return self.row(base, **{"nid": self.nid, "pid": self.pid, **columns})

    def _new_event(
        self, category: str, stack: int | None, parent: int | None, correlation: int = 0, message: str | None = None
    ) -> int:
        """`parent` None: the event is its own parent, as dispatches and copies are."""
        own = next(self._stacks) if stack is None else stack
        links = {"stack_id": own, "parent_stack_id": own if parent is None else parent, "correlation_id": correlation}
        extdata = "{}" if message is None else json.dumps({"message": message}, ensure_ascii=False)
        self._event = self._count("rocpd_event") + 1
        self.row("rocpd_event", category_id=self.string(category), **links, extdata=extdata)
        return self._event

    def _thread(self, tid: int | None) -> int | None:
        tid = self.pid if tid == MAIN else tid
        return self._handle("rocpd_info_thread", tid, {"ppid": 1, "tid": tid})

    def _queue(self, queue: int | None) -> int | None:
        return self._handle("rocpd_info_queue", queue, {"name": f"Queue {queue}"})

    def _stream(self, stream: int | None) -> int | None:
        return self._handle("rocpd_info_stream", stream, {"name": f"Stream {stream}" if stream else "Default Stream"})

    def _handle(self, base: str, handle: int | None, columns: Mapping[str, object]) -> int | None:
        """Store what the runtime knows by a handle: the handle is the row's id."""
        place = {"nid": self.nid, "pid": self.pid}
        return None if handle is None else self._once(base, handle, {**place, **columns}, handle)

    def _symbol(self, name: str | None) -> int | None:
        if name is None:
            return None
        place = {"nid": self.nid, "pid": self.pid}
        image = {"uri": "memory://16#offset=0x10&size=32648", "load_base": 4096, "load_size": 36864, "load_delta": 4096}
        record = json.dumps({"size": 88, "storage_type": 2, "memory_base": 678018992, "memory_size": 32648})
        self._once("rocpd_info_code_object", "", {**place, "agent_id": GPU, **image, "extdata": record})
        sizes = {"kernarg_segment_size": 24, "kernarg_segment_alignment": 16, "group_segment_size": 1024}
        counts = {"private_segment_size": 0, "sgpr_count": 16, "arch_vgpr_count": 32, "accum_vgpr_count": 4}
        names = {"formatted_kernel_name": name, "demangled_kernel_name": f"{name}.kd", "truncated_kernel_name": name}
        more = {
            "size": 88,
            "kernel_id": self._count("rocpd_info_kernel_symbol") + 1,
            "kernel_code_entry_byte_offset": 11200,
            "kernel_address": {"handle": 4096},
        }
        symbol = {
            "code_object_id": CODE_OBJECT,
            "kernel_name": f"{name}.kd",
            "display_name": name,
            "kernel_object": 4096,
        }
        text = {"extdata": json.dumps({**more, **names}, ensure_ascii=False)}
        return self._once("rocpd_info_kernel_symbol", name, {**place, **symbol, **sizes, **counts, **text})

    def _once(self, base: str, key: object, columns: Mapping[str, object], row_id: int | None = None) -> int:
        """Give the id of the row known as `key`; a new one is stored."""
        if (base, key) not in self._known:
            chosen = self._count(base) + 1 if row_id is None else row_id
            self.row(base, **{**columns, "id": chosen})
            self._known[base, key] = chosen
        return self._known[base, key]

    def _count(self, base: str, **where: object) -> int:
        return sum(all(row.get(k) == v for k, v in where.items()) for row in self.rows.get(base, ()))


def _loosen(writer: Writer, base: str) -> None:
    """Make table `base` again, without NOT NULL."""
    writer.connection.execute(f"DROP TABLE {quote_name(base + writer.suffix)}")
    text = create_table_text(base, writer.suffix, writer.guid, writer.version)
    writer.connection.execute(text.replace(" NOT NULL", ""))
