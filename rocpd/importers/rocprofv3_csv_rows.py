"""What the CSV files of one process of rocprofv3 become."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from rocpd.importers.rocprofv3_files import (
    AGENTS,
    ALLOCATIONS,
    CALLS,
    COPIES,
    COUNTERS,
    GRAPHS,
    KERNELS,
    PC_SAMPLES,
    SCRATCH,
    Columns,
    CsvProcess,
    numbers,
)
from rocpd.importers.rocprofv3_pc_samples import write_texts
from rocpd.schema.trace.events import (
    CounterValues,
    Events,
    GraphLaunches,
    KernelDispatches,
    MemoryAllocations,
    MemoryCopies,
    Regions,
    message_json,
)
from rocpd.schema.trace.infos import AgentInfo, CounterInfo, KernelInfo
from rocpd.schema.trace.writer import TraceWriter

_NAMES = {"name": "name", "model_name": "model_name", "vendor_name": "vendor_name", "product_name": "product_name"}
_SIZES = {"lds_block_size": "group_segment_size", "scratch_size": "private_segment_size"}
_REGISTERS = {"vgpr_count": "arch_vgpr_count", "accum_vgpr_count": "accum_vgpr_count", "sgpr_count": "sgpr_count"}


class CsvRows:
    """Writes the rows of one process.

    Args:
        trace: the file.
        process: its files.

    Attributes:
        lost: what the files do not hold -> how often.
    """

    def __init__(self, trace: TraceWriter, process: CsvProcess) -> None:
        self._trace, self._process = trace, process
        self._by_type: dict[tuple[str, int], int] = {}
        self._kernels: dict[int, str] = {}
        self._events: dict[int, int] = {}  # dispatch id -> event
        self.lost: Counter[str] = Counter()

    def write(self) -> None:
        """Write everything."""
        self._describe_agents()
        for batch in self._batches(*CALLS):
            self._write_calls(batch)
        for batch in self._batches(KERNELS):
            self._write_dispatches(batch)
        for batch in self._batches(COPIES):
            self._write_copies(batch)
        for batch in self._batches(ALLOCATIONS, SCRATCH):
            self._write_allocations(batch)
        for batch in self._batches(GRAPHS):
            self._write_graphs(batch)
        for batch in self._batches(*COUNTERS):
            self._write_counters(batch)
        for kind, method in PC_SAMPLES.items():
            for batch in self._batches(kind):
                self.lost["lines of CSV files that are cut or damaged"] += write_texts(self._trace, method, batch)

    def _batches(self, *kinds: str) -> Iterator[Columns]:
        return self._process.batches(*kinds, lost=self.lost)

    def _describe_agents(self) -> None:
        for batch in self._batches(AGENTS):
            for row in (dict(zip(batch, values, strict=True)) for values in zip(*batch.values(), strict=True)):
                number = int(row["node_id"])
                kind = row.get("agent_type", "")
                index = sum(known == kind for known, _ in self._by_type)
                self._by_type[kind, index] = number
                facts: dict[str, Any] = {}
                for name, text in row.items():
                    of, is_dimension, axis = name.partition("_dim_")
                    if is_dimension:
                        facts.setdefault(f"{of}_dim", {})[axis] = _value(text)
                    elif name not in ("guid", *_NAMES):
                        facts[name] = _value(text)
                self._trace.register(AgentInfo(
                    number, type=kind if kind in ("CPU", "GPU", "NIC") else None, absolute_index=number,
                    logical_index=int(row.get("logical_node_id") or number), type_index=index,
                    extdata=json.dumps(facts), **{field: row.get(name) for name, field in _NAMES.items()},
                ))  # fmt: skip

    def _agents(self, batch: Columns, name: str = "agent_id") -> list[int | None]:
        """Return the agents that `Agent 2` (by its number in the node), `GPU 0` (of its type) or `2` name."""
        texts: Sequence[str] = batch.get(name) or [""] * len(next(iter(batch.values())))
        known = {text: self._agent(text) for text in set(texts)}
        return [known[text] for text in texts]

    def _agent(self, text: str) -> int | None:
        match = re.fullmatch(r"(?:(\w+) )?(\d+)", text.strip())
        if not match:
            return None
        return self._by_type.get((match[1], int(match[2])), int(match[2]))

    def _linked(
        self, batch: Columns, category: Sequence[str] | None = None, extdata: Sequence[str] | None = None
    ) -> Events:
        return Events(category, numbers(batch, "correlation_id", 0), extdata=extdata)

    def _write_calls(self, batch: Columns) -> None:
        """Write calls and markers; the function of a marker is its message."""
        domains, functions = batch["domain"], batch["function"]
        extdata = [
            message_json(name) if domain.startswith("MARKER") else "{}"
            for domain, name in zip(domains, functions, strict=True)
        ]
        self._trace.write(Regions(
            start=numbers(batch, "start_timestamp"), end=numbers(batch, "end_timestamp"), name=functions,
            tid=numbers(batch, "thread_id"), event=self._linked(batch, domains, extdata),
        ))  # fmt: skip

    def _write_dispatches(self, batch: Columns) -> None:
        sizes = {
            f"{what}_size_{axis}": numbers(batch, f"{what}_size_{axis}", 1) for what in ("workgroup", "grid")
            for axis in "xyz"
        }  # fmt: skip
        self._put_dispatches(batch, numbers(batch, "dispatch_id"), sizes)

    def _put_dispatches(self, batch: Columns, dispatches: Sequence[int | None], sizes: dict[str, list[int]]) -> None:
        self._register_kernels(batch)
        rows = self._trace.write(KernelDispatches(
            start=numbers(batch, "start_timestamp"), end=numbers(batch, "end_timestamp"),
            tid=numbers(batch, "thread_id"), agent_id=self._agents(batch), kernel_id=numbers(batch, "kernel_id", 0),
            dispatch_id=dispatches, queue_id=numbers(batch, "queue_id", 0), stream_id=numbers(batch, "stream_id", 0),
            event=self._linked(batch), **sizes,
            **{field: numbers(batch, name) for name, field in _SIZES.items()},
        ))  # fmt: skip
        self._events |= {n: event for n, event in zip(dispatches, rows.events, strict=True) if n is not None}

    def _register_kernels(self, batch: Columns) -> None:
        registers = [numbers(batch, name) for name in _REGISTERS]
        kernels = zip(numbers(batch, "kernel_id", 0), batch["kernel_name"], *registers, strict=True)
        for number, name, *counts in kernels:
            if number not in self._kernels:
                self._kernels[number] = name
                known = dict(zip(_REGISTERS.values(), counts, strict=True))
                self._trace.register(KernelInfo(number, display_name=name, **known))

    def _write_copies(self, batch: Columns) -> None:
        names = [f"MEMORY_COPY_{name.removeprefix('MEMORY_COPY_')}" for name in batch["direction"]]
        self.lost["sizes of copies, which CSV files do not hold"] += len(names)
        self._trace.write(MemoryCopies(
            start=numbers(batch, "start_timestamp"), end=numbers(batch, "end_timestamp"), name=names, size=0,
            src_agent_id=self._agents(batch, "source_agent_id"),
            dst_agent_id=self._agents(batch, "destination_agent_id"), stream_id=numbers(batch, "stream_id"),
            event=self._linked(batch),
        ))  # fmt: skip

    def _write_allocations(self, batch: Columns) -> None:
        operations = [name.removeprefix("MEMORY_ALLOCATION_") for name in batch["operation"]]
        kinds = ("ALLOC", "FREE", "RECLAIM")
        levels = ["SCRATCH" if "SCRATCH" in name else "VIRTUAL" if "VMEM" in name else "REAL" for name in operations]
        flags = [json.dumps({"flags": flag}) for flag in numbers(batch, "alloc_flags")]
        self._trace.write(MemoryAllocations(
            start=numbers(batch, "start_timestamp"), end=numbers(batch, "end_timestamp"),
            tid=numbers(batch, "thread_id"), agent_id=self._agents(batch), level=levels,
            type=[next((kind for kind in kinds if kind in name), "RECLAIM") for name in operations],
            address=[None if address is None else _signed(address) for address in numbers(batch, "address")],
            size=numbers(batch, "allocation_size", 0), queue_id=numbers(batch, "queue_id"),
            extdata=flags if "alloc_flags" in batch else None, event=self._linked(batch),
        ))  # fmt: skip

    def _write_graphs(self, batch: Columns) -> None:
        self._trace.write(GraphLaunches(
            start=numbers(batch, "start_timestamp"), end=numbers(batch, "end_timestamp"),
            tid=numbers(batch, "thread_id"), queue_id=numbers(batch, "queue_id"),
            graph_exec_id=numbers(batch, "graph_exec_id"),
            kernel_dispatch_count=numbers(batch, "kernel_dispatch_count"), event=self._linked(batch),
        ))  # fmt: skip

    def _write_counters(self, batch: Columns) -> None:
        """Write values of counters; dispatches too where there is no file of them, which have sizes in one number."""
        dispatches = numbers(batch, "dispatch_id", 0)
        firsts = {number: row for row, number in reversed(list(enumerate(dispatches))) if number not in self._events}
        if firsts:
            rows = sorted(firsts.values())
            own = {name: [column[row] for row in rows] for name, column in batch.items()}
            ones = {f"{what}_size_{axis}": [1] * len(rows) for what in ("workgroup", "grid") for axis in "yz"}
            along = {f"{what}_size_x": numbers(own, f"{what}_size", 0) for what in ("workgroup", "grid")}
            self._put_dispatches(own, [dispatches[row] for row in rows], along | ones)
        known = {
            (agent, name): self._trace.register(
                CounterInfo(agent_id=agent, target_arch="GPU", name=name, value_type="ABS")
            )
            for agent, name in sorted(set(zip(self._agents(batch), batch["counter_name"], strict=True)), key=str)
        }
        counters = [known[key] for key in zip(self._agents(batch), batch["counter_name"], strict=True)]
        values = [float(text or "nan") for text in batch["counter_value"]]
        events = [self._events.get(number) for number in dispatches]
        self._trace.write(CounterValues(event_id=events, pmc_id=counters, value=values))


def _value(text: str) -> object:
    try:
        return int(text)
    except ValueError:
        return text


def _signed(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number
