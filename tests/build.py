"""Tiny rocpd databases built in code, so that input, query and expected rows stand on one screen.

Fills files the way rocprofv3 does. Never checks anything: damaged rows are what half the tests need, so every
builder method takes None for what shall be NULL, and columns by name that replace what it would have written
(`tid=None`, `event_id=None`, `agent_id=99`).
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import apsw

from rocpd.schema.load import OPTIONAL_TABLES, table
from rocpd.schema.trace.events import (
    MARKER_RANGE,
    Arguments,
    CounterValues,
    Events,
    GraphLaunches,
    KernelDispatches,
    MemoryAllocations,
    MemoryCopies,
    Regions,
    Samples,
)
from rocpd.schema.trace.infos import (
    AgentInfo,
    CodeObjectInfo,
    CounterInfo,
    KernelInfo,
    NodeInfo,
    ProcessInfo,
    TrackInfo,
)
from rocpd.schema.trace.writer import Described, TableRows, TraceWriter
from rocpd.schema.versions import LATEST
from rocpd.schema.write import Writer, create, tables_of

CPU, GPU, GPU2 = 0, 1, 2
"""Agent ids of every built file."""

CODE_OBJECT = 1
QUEUE, STREAM = 1, 0

MAIN = -1
"""Stands for the main thread: its tid is the pid."""


def guid_of(number: int) -> str:
    """Return the GUID of the builder made with `number`; GUIDs sort like their numbers."""
    return f"{number:08x}-92cb-72cb-9169-c7e541b1fcdf"


class TraceBuilder:
    """Collects the rows of one rank; `write` makes the file. Methods return the builder, so calls chain.

    `rows` holds what was collected, by table; a test may change it.

    Args:
        number: makes the GUID. Everything else is equal for two builders unless given: pids and ids repeat.
        pid: OS pid, also the tid of the main thread.
        host: host name.
        machine: machine id; the same on two hosts when they are containers of one machine.
        command: command line.
        environment: environment variables of the process.
        extdata: extdata of the process.
        life: when the process started and ended [ns].
    """

    tables = tables_of(LATEST)

    def __init__(
        self,
        number: int = 0,
        *,
        pid: int = 16,
        parent: int = 1,
        host: str = "node0",
        machine: str | None = None,
        command: str = "./app --steps 3",
        environment: Mapping[str, str] | None = None,
        extdata: Mapping[str, object] | None = None,
        life: tuple[int, int] = (1, 9_000_000),
    ) -> None:
        self.guid = guid_of(number)
        self.pid = pid
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self._stacks = itertools.count(1001)
        self._kernels: dict[str, int] = {}
        self._event: int | None = None
        self._late: list[str] = []
        known: dict[str, Any] = {"init": life[0], "fini": life[1], "start": life[0], "end": life[1]}
        known |= {"environment": json.dumps(environment or {}), "extdata": json.dumps(extdata or {})}
        process = ProcessInfo(pid, ppid=parent, command=command, **known)
        self._trace = TraceWriter(self, _node(host, machine or f"machine-of-{host}"), process)
        for agent in _AGENTS:
            self._trace.register(agent)

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
        chosen = category or ("HIP_RUNTIME_API_EXT" if message is None else MARKER_RANGE)
        event = Events(chosen, self._stack(stack), parent, correlation, message)
        return self._add(Regions(start=start, end=end, name=name, tid=self._tid(tid), event=event), columns)

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
        track = self._trace.register(TrackInfo(name=name, tid=self._tid(tid)))
        event = Events(category, self._stack(stack), message=message)
        return self._add(Samples(track_id=track, timestamp=timestamp, event=event), columns)

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
        sizes = {f"workgroup_size_{axis}": size for axis, size in zip("xyz", workgroup, strict=True)}
        sizes |= {f"grid_size_{axis}": size for axis, size in zip("xyz", grid, strict=True)}
        dispatch = KernelDispatches(
            start=start,
            end=end,
            tid=self._tid(tid),
            kernel_id=self._kernel(name),
            queue_id=queue,
            stream_id=stream,
            region_name=region,
            private_segment_size=0,
            group_segment_size=2048,
            event=Events(stack_id=self._stack(stack), correlation_id=correlation),
            **sizes,
        )
        return self._add(dispatch, {"agent_id": agent, **columns})

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
        copy = MemoryCopies(
            start=start,
            end=end,
            tid=self._tid(tid),
            name=name,
            size=size,
            src_address=4096,
            dst_address=8192,
            queue_id=queue,
            stream_id=stream,
            region_name=region,
            event=Events(stack_id=self._stack(stack)),
        )
        return self._add(copy, {"src_agent_id": src, "dst_agent_id": dst, **columns})

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
        call = self._stack(stack)
        allocation = MemoryAllocations(
            start=start,
            end=end,
            tid=self._tid(tid),
            type=kind,
            level=level,
            address=address,
            size=size,
            queue_id=queue,
            stream_id=stream,
            extdata='{"flags":2}',
            event=Events(stack_id=call, parent_stack_id=call),
        )
        return self._add(allocation, {"agent_id": agent, **columns})

    def graph_launch(self, start: int, end: int, *, graph: int = 1, kernels: int = 1, **columns: object) -> Self:
        """Add the launch of an executable graph (schema 3.0.2 and later)."""
        launch = GraphLaunches(
            start=start,
            end=end,
            tid=self.pid,
            agent_id=GPU,
            queue_id=QUEUE,
            graph_exec_id=graph,
            kernel_dispatch_count=kernels,
            event=Events("HIP_RUNTIME_API_EXT", self._stack(None), 0),
        )
        return self._add(launch, columns)

    def counter(self, name: str, value: float, *, units: str = "", **columns: object) -> Self:
        """Add a counter value to the last kernel, region or sample."""
        counter = CounterInfo(
            agent_id=GPU,
            target_arch="GPU",
            name=name,
            description=f"counts {name}",
            component="rocprofiler-sdk",
            units=units,
            value_type="ABS",
            block="SQ",
            expression="",
            is_constant=0,
            is_derived=0,
        )
        pmc = self._trace.register(counter)
        return self._add(CounterValues(event_id=self._event, pmc_id=pmc, value=value), columns)

    def arg(self, name: str, value: str | None, *, type: str = "void*", **columns: object) -> Self:
        """Add an argument to the last region, kernel, copy or allocation."""
        position = sum(row["event_id"] == self._event for row in self.rows.get("rocpd_arg", ()))
        return self._add(Arguments(event_id=self._event, position=position, type=type, name=name, value=value), columns)

    def row(self, base: str, **columns: object) -> Self:
        """Add a row to table `base`; columns that are not given keep the table's defaults."""
        self._trace.insert(TableRows(base, {name: [value] for name, value in columns.items()}))
        return self

    def string(self, text: str) -> int:
        """Return the id of `text`; a new one is stored."""
        return self._trace.string(text)

    def sql(self, statement: str) -> Self:
        """Run `statement` when all rows are in, before views if they are stored; `{uuid}` stands for the suffix."""
        self._late.append(statement)
        return self

    def insert(self, base: str, columns: Mapping[str, Sequence[Any]]) -> None:
        """Collect rows of table `base`, as the TraceWriter gives them."""
        self.rows.setdefault(base, []).extend(
            dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
        )

    def write(self, path: Path, version: str = LATEST, *, views: bool = False) -> Path:
        """Make the file; NOT NULL is left out of tables that hold a NULL.

        Profilers store `views`, as simulated jobs and merged files have them: SQLite reads their text whenever it
        opens a file, which is half of what it takes to open one with few rows.
        """
        if views:
            with create(path, self.guid, version) as stored:
                self.write_into(stored)
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.write(_empty_file(self.guid, version, self._loose()))
        connection = apsw.Connection(str(path))
        for pragma in ("synchronous", "journal_mode"):
            connection.pragma(pragma, "off")
        with contextlib.closing(connection), connection:
            self._fill(Writer(connection, self.guid, version))
        return path

    def write_into(self, writer: Writer) -> None:
        """Fill the tables that `writer` made."""
        for base in self._loose():
            writer.loosen(base)
        self._fill(writer)

    def _loose(self) -> tuple[str, ...]:
        """Return the tables that hold a NULL."""
        return tuple(
            base
            for base, rows in self.rows.items()
            if base not in OPTIONAL_TABLES and any(value is None for row in rows for value in row.values())
        )

    def _fill(self, writer: Writer) -> None:
        for base, rows in self.rows.items():
            for columns, group in itertools.groupby(rows, key=tuple):
                values = zip(*(row.values() for row in group), strict=True)
                writer.insert(base, dict(zip(columns, values, strict=True)))
        for statement in self._late:
            writer.connection.execute(statement.replace("{uuid}", writer.suffix))

    def _add(self, described: Described, columns: Mapping[str, object]) -> Self:
        rows = self._trace.prepare(described)
        if "event_id" in rows.columns:
            self._event = rows.events[0]
        nulls = dict.fromkeys(_required(rows.base) - rows.columns.keys())
        self._trace.insert(rows.with_columns({**nulls, **columns}))
        return self

    def _tid(self, tid: int | None) -> int | None:
        return self.pid if tid == MAIN else tid

    def _stack(self, stack: int | None) -> int:
        return next(self._stacks) if stack is None else stack

    def _kernel(self, name: str | None) -> int | None:
        if name is None:
            return None
        if name not in self._kernels:
            self._trace.register(_CODE)
            self._kernels[name] = self._trace.register(_symbol(name, len(self._kernels) + 1))
        return self._kernels[name]


def _node(host: str, machine: str) -> NodeInfo:
    nid = zlib.crc32(machine.encode())
    uname = {"system_name": "Linux", "hostname": host, "release": "5.15.0", "version": "#1 SMP"}
    uname |= {"hardware_name": "x86_64", "domain_name": "(none)", "machine_id": machine}
    return NodeInfo(nid, hash=nid * 7, **uname)


def _agent(agent: int, kind: str, index: int, name: str) -> AgentInfo:
    product = "AMD Instinct MI300X" if kind == "GPU" else name
    return AgentInfo(
        agent,
        type=kind,
        logical_index=agent,
        type_index=index,
        uuid=29857,
        name=name,
        model_name="",
        vendor_name="AMD",
        product_name=product,
        user_name=product,
        extdata=json.dumps({"cu_count": 304 if kind == "GPU" else 0, "wave_front_size": 64, "num_xcc": 8}),
    )


_AGENTS = (_agent(CPU, "CPU", 0, "EPYC 9654"), _agent(GPU, "GPU", 0, "gfx942"), _agent(GPU2, "GPU", 1, "gfx942"))

_CODE = CodeObjectInfo(
    CODE_OBJECT,
    agent_id=GPU,
    uri="memory://16#offset=0x10&size=32648",
    load_base=4096,
    load_size=36864,
    load_delta=4096,
    extdata=json.dumps({"size": 88, "storage_type": 2, "memory_base": 678018992, "memory_size": 32648}),
)


def _symbol(name: str, number: int) -> KernelInfo:
    names = {"formatted_kernel_name": name, "demangled_kernel_name": f"{name}.kd", "truncated_kernel_name": name}
    facts = {
        "size": 88,
        "kernel_id": number,
        "kernel_code_entry_byte_offset": 11200,
        "kernel_address": {"handle": 4096},
    }
    return KernelInfo(
        number,
        code_object_id=CODE_OBJECT,
        kernel_name=f"{name}.kd",
        display_name=name,
        kernel_object=4096,
        kernarg_segment_size=24,
        kernarg_segment_alignment=16,
        group_segment_size=1024,
        private_segment_size=0,
        sgpr_count=16,
        arch_vgpr_count=32,
        accum_vgpr_count=4,
        extdata=json.dumps({**facts, **names}, ensure_ascii=False),
    )


@functools.lru_cache(64)  # making the tables takes longer than filling them
def _empty_file(guid: str, version: str, loose: tuple[str, ...]) -> bytes:
    """Return the content of a file without rows, whose tables `loose` take NULL."""
    with contextlib.closing(apsw.Connection(":memory:")) as connection:
        writer = Writer(connection, guid, version)
        writer.create_tables()
        for base in loose:
            writer.loosen(base)
        return connection.serialize("main")


@functools.cache
def _required(base: str) -> frozenset[str]:
    """Return the columns that a row can't leave to the table."""
    declared = {column.name: column.declaration for column in table(base).columns}
    return frozenset(n for n, text in declared.items() if "NOT NULL" in text and "DEFAULT" not in text)
