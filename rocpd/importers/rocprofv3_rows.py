"""What the records of one process of rocprofv3's JSON become."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rocpd.importers.rocprofv3_pc_samples import PcSampleRows
from rocpd.importers.rocprofv3_records import Record, column, correlation, handle
from rocpd.schema.trace.events import (
    Arguments,
    CounterValues,
    Events,
    KernelDispatches,
    MemoryAllocations,
    MemoryCopies,
    Regions,
    message_json,
)
from rocpd.schema.trace.infos import AgentInfo, CodeObjectInfo, CounterInfo, KernelInfo, QueueInfo, StreamInfo
from rocpd.schema.trace.writer import TraceWriter

_CALLS = ("hip_api", "hsa_api", "rccl_api", "rocdecode_api", "rocjpeg_api", "marker_api", "ompt", "kfd_events")
_STORAGE = {1: "FILE", 2: "MEMORY"}  # of rocprofiler_code_object_storage_type_t
_AXES = "xyz"
_PC_SAMPLES = ("pc_sample_host_trap", "pc_sample_stochastic")


class RocprofRows:
    """Writes the records of one process.

    Args:
        trace: the file.
        facts: of the process: agents, code objects, kernels, counters, strings.

    Attributes:
        lost: what has no place in a rocpd file -> how often.
    """

    def __init__(self, trace: TraceWriter, facts: Record) -> None:
        self._trace, self._facts = trace, facts
        strings = facts.get("strings", {})
        self._kinds = [(kind["kind"], kind["operations"]) for kind in strings.get("buffer_records", ())]
        self._messages = {record["key"]: record["value"] for record in strings.get("marker_api", ())}
        self._agents: dict[int, int] = {}
        self._events_of: dict[int, int] = {}  # dispatch id -> event
        self._has_dispatches = False
        self._is_numbered = True  # dispatches so far, each with a number of its own
        self._pc_samples = PcSampleRows(trace, strings)
        self.lost = Counter({"files of thread traces": len(strings.get("att_filenames") or ())})
        self._describe()

    def add(self, kind: str, records: Sequence[Record]) -> None:
        """Write some records, by what the file calls their kind; those without a place in a rocpd file are counted."""
        write = _WRITERS.get(kind)
        if write is None:
            self.lost[f"records of {kind}"] += len(records)
        elif records:
            write(self, records)

    def add_counters(self, records: Sequence[Record]) -> None:
        """Write counters, after all dispatches; each has a record of its dispatch, which may be the only one."""
        data = [{**record.get("dispatch_data", {}), "thread_id": record.get("thread_id")} for record in records]
        if not self._has_dispatches:
            self._write_some_dispatches(data)
        dispatches = [each["dispatch_info"]["dispatch_id"] for each in data]
        values = [
            (self._events_of.get(dispatch), handle(value, "counter_id"), float(value["value"]))
            for dispatch, record in zip(dispatches, records, strict=True)
            for value in record.get("records") or ()
        ]
        if values:
            event, counter, value = zip(*values, strict=True)
            self._trace.write(CounterValues(event_id=event, pmc_id=counter, value=value))

    def _describe(self) -> None:
        """Register agents, code objects, kernels and counters."""
        for agent in self._facts.get("agents", ()):
            number = agent["node_id"]
            self._agents[agent["id"]["handle"]] = self._trace.register(AgentInfo(
                number, type={1: "CPU", 2: "GPU"}.get(agent["type"], "NIC"), absolute_index=number,
                logical_index=agent.get("logical_node_id"), type_index=agent.get("logical_node_type_id"),
                name=agent.get("name"), model_name=agent.get("model_name"), vendor_name=agent.get("vendor_name"),
                product_name=agent.get("product_name"), extdata=json.dumps(agent),
            ))  # fmt: skip
        for code in self._facts.get("code_objects", ()):
            self._trace.register(CodeObjectInfo(
                code["code_object_id"], agent_id=self._agent(code), uri=code.get("uri"),
                load_base=code.get("load_base"), load_size=code.get("load_size"), load_delta=code.get("load_delta"),
                storage_type=_STORAGE.get(code.get("storage_type", 0)),
            ))  # fmt: skip
        for kernel in self._facts.get("kernel_symbols", ()):
            self._register_kernel(kernel)
        for counter in self._facts.get("counters", ()):
            self._trace.register(CounterInfo(
                handle(counter, "id"), agent_id=self._agent(counter), target_arch="GPU", name=counter.get("name"),
                description=counter.get("description"), block=counter.get("block"),
                expression=counter.get("expression"), is_constant=int(counter.get("is_constant") or 0),
                is_derived=int(counter.get("is_derived") or 0), value_type="ABS",
            ))  # fmt: skip

    def _register_kernel(self, kernel: Record) -> None:
        names = ("formatted_kernel_name", "demangled_kernel_name", "truncated_kernel_name", "kernel_address")
        sizes = (
            "kernel_object", "kernarg_segment_size", "kernarg_segment_alignment", "group_segment_size",
            "private_segment_size", "sgpr_count", "arch_vgpr_count", "accum_vgpr_count",
        )  # fmt: skip
        self._trace.register(KernelInfo(
            kernel["kernel_id"], code_object_id=kernel["code_object_id"], kernel_name=kernel.get("kernel_name"),
            display_name=kernel.get("formatted_kernel_name") or kernel.get("kernel_name"),
            extdata=json.dumps({name: kernel[name] for name in names if name in kernel}),
            **{name: kernel.get(name) for name in sizes},
        ))  # fmt: skip

    def _agent(self, record: Record, name: str = "agent_id") -> int | None:
        return self._agents.get(handle(record, name))

    def _names(self, records: Sequence[Record]) -> tuple[list[str], list[str]]:
        """Return the categories and operations of records."""
        kinds, names = [], []
        for record in records:
            kind, operations = self._kinds[record["kind"]]
            kinds.append(kind)
            names.append(operations[record["operation"]] if record["operation"] < len(operations) else kind)
        return kinds, names

    def _events(self, records: Sequence[Record]) -> Events:
        internal, external = (correlation(records, kind) for kind in ("internal", "external"))
        return Events(None, internal, correlation_id=external)

    def _write_calls(self, records: Sequence[Record]) -> None:
        categories, names = self._names(records)
        messages = [self._messages.get(number) for number in correlation(records, "internal")]
        extdata = [
            message_json(message) if category.startswith("MARKER") and message is not None else "{}"
            for category, message in zip(categories, messages, strict=True)
        ]
        parents = correlation(records, "ancestor")
        events = replace(self._events(records), category=categories, parent_stack_id=parents, extdata=extdata)
        written = self._trace.write(Regions(
            start=column(records, "start_timestamp"), end=column(records, "end_timestamp"), name=names,
            tid=column(records, "thread_id"),
            event=events,
        ))  # fmt: skip
        recorded = [
            (event, position, argument.get("type", ""), argument.get("name", ""), str(argument.get("value", "")))
            for event, record in zip(written.events, records, strict=True)
            for position, argument in enumerate(record.get("args") or ())
            if isinstance(argument, Mapping)
        ]
        if recorded:
            event, position, kind, name, value = zip(*recorded, strict=True)
            self._trace.write(Arguments(event_id=event, position=position, type=kind, name=name, value=value))

    def _write_dispatches(self, records: Sequence[Record]) -> None:
        self._has_dispatches = True
        self._write_some_dispatches(records)

    def _write_some_dispatches(self, records: Sequence[Record]) -> None:
        infos: list[Record] = column(records, "dispatch_info")
        sizes = {
            f"{what}_size_{axis}": [info[f"{what}_size"][axis] for info in infos]
            for what in ("workgroup", "grid")
            for axis in _AXES
        }
        queues, streams = [handle(info, "queue_id") for info in infos], [handle(each, "stream_id") for each in records]
        for number in sorted(set(queues)):
            self._trace.register(QueueInfo(number))
        for number in sorted(set(streams)):
            self._trace.register(StreamInfo(number))
        dispatches = column(infos, "dispatch_id")
        numbers = set(dispatches)
        self._is_numbered &= len(numbers) == len(dispatches) and self._events_of.keys().isdisjoint(numbers)
        written = self._trace.write(KernelDispatches(
            id=dispatches if self._is_numbered else None, dispatch_id=dispatches,
            start=column(records, "start_timestamp"), end=column(records, "end_timestamp"),
            tid=column(records, "thread_id"), agent_id=[self._agent(info) for info in infos],
            kernel_id=column(infos, "kernel_id"), queue_id=queues, stream_id=streams,
            private_segment_size=column(infos, "private_segment_size"),
            group_segment_size=column(infos, "group_segment_size"), event=self._events(records), **sizes,
        ))  # fmt: skip
        self._events_of |= zip(dispatches, written.events, strict=True)

    def _write_pc_samples(self, records: Sequence[Record]) -> None:
        self.lost["damaged samples of program counters"] += self._pc_samples.write(records)

    def _write_copies(self, records: Sequence[Record]) -> None:
        _, names = self._names(records)
        self._trace.write(MemoryCopies(
            start=column(records, "start_timestamp"), end=column(records, "end_timestamp"),
            tid=column(records, "thread_id"), name=names,
            src_agent_id=[self._agent(record, "src_agent_id") for record in records],
            dst_agent_id=[self._agent(record, "dst_agent_id") for record in records],
            src_address=[_address(record.get("src_address")) for record in records],
            dst_address=[_address(record.get("dst_address")) for record in records],
            size=column(records, "bytes", 0), stream_id=[handle(record, "stream_id") for record in records],
            event=self._events(records),
        ))  # fmt: skip

    def _write_allocations(self, records: Sequence[Record]) -> None:
        _, names = self._names(records)
        self._trace.write(MemoryAllocations(
            start=column(records, "start_timestamp"), end=column(records, "end_timestamp"),
            tid=column(records, "thread_id"), agent_id=[self._agent(record) for record in records],
            type=["FREE" if "FREE" in name else "ALLOC" for name in names],
            level=["VIRTUAL" if "VMEM" in name else "REAL" for name in names],
            address=[_address(record.get("address")) for record in records],
            size=[record.get("allocation_size") or 0 for record in records], event=self._events(records),
        ))  # fmt: skip

    def _write_scratch(self, records: Sequence[Record]) -> None:
        _, names = self._names(records)
        kinds = [next((word for word in ("ALLOC", "FREE") if word in name), "RECLAIM") for name in names]
        self._trace.write(MemoryAllocations(
            start=column(records, "start_timestamp"), end=column(records, "end_timestamp"),
            tid=column(records, "thread_id"), agent_id=[self._agent(record) for record in records], type=kinds,
            level="SCRATCH", queue_id=[handle(record, "queue_id") for record in records],
            size=[record.get("allocation_size") or record.get("size_in_bytes") or 0 for record in records],
            extdata=[json.dumps({"flags": record.get("flags")}) for record in records], event=self._events(records),
        ))  # fmt: skip


_WRITERS: Mapping[str, Callable[[RocprofRows, Sequence[Record]], None]] = {
    **dict.fromkeys(_CALLS, RocprofRows._write_calls),
    "kernel_dispatch": RocprofRows._write_dispatches,
    "memory_copy": RocprofRows._write_copies,
    "memory_allocation": RocprofRows._write_allocations,
    "scratch_memory": RocprofRows._write_scratch,
    **dict.fromkeys(_PC_SAMPLES, RocprofRows._write_pc_samples),
}
"""Kind of records -> what writes them."""


def _address(value: Any) -> int | None:
    """Return an address, which is a number or `{"handle": …}` or `{"value": …}`."""
    if isinstance(value, Mapping):
        value = next(iter(value.values()), None)
    return value if isinstance(value, int) else None
