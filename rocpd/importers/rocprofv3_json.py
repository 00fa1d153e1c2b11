"""rocprofv3's JSON (`*_results.json`, `--output-format json`): one or more processes, with all traced events.

The keys are those of rocprofiler-sdk's own records. Rows get the same ids as in rocprofv3's databases.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from rocpd.facts.pc_sampling import instruction_type, signed, stall_reason
from rocpd.importers import signs
from rocpd.importers.files import TraceSource, TraceTarget
from rocpd.importers.json_stream import JsonWalk
from rocpd.importers.words import Argument, as_columns, sizes_of, write_arguments, write_values
from rocpd.schema.trace import infos
from rocpd.schema.trace.events import Events, KernelDispatches, MemoryAllocations, MemoryCopies, Regions, message_json
from rocpd.schema.trace.writer import TableRows, TraceWriter

Record: TypeAlias = Mapping[str, Any]


def handle(record: Record, name: str) -> int:
    """Return the handle in a member of a record; 0 if there is none."""
    return int((record.get(name) or {}).get("handle", 0))


def column(records: Iterable[Record], name: str, default: Any = None) -> list[Any]:
    """Return the value of a member of each record."""
    return [record.get(name, default) for record in records]


def correlation(records: Sequence[Record], kind: str) -> list[int]:
    """Return the correlation ids of records: `internal`, `external` or `ancestor`."""
    return [int(record.get("correlation_id", {}).get(kind) or 0) for record in records]


_CALLS = ("hip_api", "hsa_api", "rccl_api", "rocdecode_api", "rocjpeg_api", "marker_api", "ompt", "kfd_events")
_STORAGE = {1: "FILE", 2: "MEMORY"}  # of rocprofiler_code_object_storage_type_t
_PC_SAMPLES = ("pc_sample_host_trap", "pc_sample_stochastic")


class RocprofRows:
    """Writes the records of one process.

    Args:
        trace: the file.
        facts: facts of the process: agents, code objects, kernels, counters, strings.
        lost: counts data without a place in the file.
    """

    def __init__(self, trace: TraceWriter, facts: Record, lost: Counter[str]) -> None:
        self._trace, self._facts, self._lost = trace, facts, lost
        strings = facts.get("strings", {})
        self._kinds = [(kind["kind"], kind["operations"]) for kind in strings.get("buffer_records", ())]
        self._messages = {record["key"]: record["value"] for record in strings.get("marker_api", ())}
        self._agents: dict[int, int] = {}
        self._events_of: dict[int, int] = {}  # dispatch id -> event
        self._has_dispatches = False
        self._is_numbered = True  # whether each dispatch so far has a number of its own
        self._pc_samples = PcSampleRows(trace, strings)
        self._lost["files of thread traces"] += len(strings.get("att_filenames") or ())
        self._describe()

    def add(self, kind: str, records: Sequence[Record]) -> None:
        """Write some records of a kind, as the file names it; those without a place in a rocpd file are counted."""
        if (write := _WRITERS.get(kind)) is None:
            self._lost[f"records of {kind}"] += len(records)
        elif records:
            self._has_dispatches |= kind == "kernel_dispatch"
            write(self, records)

    def add_counters(self, records: Sequence[Record]) -> None:
        """Write counters, after all dispatches; each has a record of its dispatch, which may be the only record."""
        data = [{**record.get("dispatch_data", {}), "thread_id": record.get("thread_id")} for record in records]
        if not self._has_dispatches:
            self._write_dispatches(data)
        dispatches = [each["dispatch_info"]["dispatch_id"] for each in data]
        values = [
            (self._events_of.get(dispatch), handle(value, "counter_id"), float(value["value"]))
            for dispatch, record in zip(dispatches, records, strict=True)
            for value in record.get("records") or ()
        ]
        write_values(self._trace, values)

    def _describe(self) -> None:
        """Register agents, code objects, kernels and counters."""
        for agent in self._facts.get("agents", ()):
            number = agent["node_id"]
            self._agents[agent["id"]["handle"]] = self._trace.register(infos.AgentInfo(
                number, type={1: "CPU", 2: "GPU"}.get(agent["type"], "NIC"), absolute_index=number,
                logical_index=agent.get("logical_node_id"), type_index=agent.get("logical_node_type_id"),
                name=agent.get("name"), model_name=agent.get("model_name"), vendor_name=agent.get("vendor_name"),
                product_name=agent.get("product_name"), extdata=json.dumps(agent),
            ))  # fmt: skip
        for code in self._facts.get("code_objects", ()):
            self._trace.register(infos.CodeObjectInfo(
                code["code_object_id"], agent_id=self._agent(code), uri=code.get("uri"),
                load_base=code.get("load_base"), load_size=code.get("load_size"), load_delta=code.get("load_delta"),
                storage_type=_STORAGE.get(code.get("storage_type", 0)),
            ))  # fmt: skip
        for kernel in self._facts.get("kernel_symbols", ()):
            self._register_kernel(kernel)
        for counter in self._facts.get("counters", ()):
            self._trace.register(infos.CounterInfo(
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
        self._trace.register(infos.KernelInfo(
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

    def _common(self, records: Sequence[Record]) -> dict[str, Any]:
        """Return the columns that rows of all tables have."""
        internal, external = (correlation(records, kind) for kind in ("internal", "external"))
        columns = {"start": "start_timestamp", "end": "end_timestamp", "tid": "thread_id"}
        known: dict[str, Any] = {field: column(records, name) for field, name in columns.items()}
        return known | {"event": Events(None, internal, correlation_id=external)}

    def _write_calls(self, records: Sequence[Record]) -> None:
        categories, names = self._names(records)
        messages = [self._messages.get(number) for number in correlation(records, "internal")]
        extdata = [
            message_json(message) if category.startswith("MARKER") and message is not None else "{}"
            for category, message in zip(categories, messages, strict=True)
        ]
        common, parents = self._common(records), correlation(records, "ancestor")
        common["event"] = replace(common["event"], category=categories, parent_stack_id=parents, extdata=extdata)
        written = self._trace.write(Regions(**common, name=names))
        write_arguments(self._trace, written.events, [_arguments(record.get("args") or ()) for record in records])

    def _write_dispatches(self, records: Sequence[Record]) -> None:
        launched: list[Record] = column(records, "dispatch_info")
        sizes = sizes_of(lambda what, axis: [info[f"{what}_size"][axis] for info in launched])
        queues = [handle(info, "queue_id") for info in launched]
        streams = [handle(each, "stream_id") for each in records]
        for number in sorted(set(queues)):
            self._trace.register(infos.QueueInfo(number))
        for number in sorted(set(streams)):
            self._trace.register(infos.StreamInfo(number))
        dispatches = column(launched, "dispatch_id")
        numbers = set(dispatches)
        self._is_numbered &= len(numbers) == len(dispatches) and self._events_of.keys().isdisjoint(numbers)
        written = self._trace.write(KernelDispatches(
            id=dispatches if self._is_numbered else None, dispatch_id=dispatches,
            **self._common(records), **sizes, agent_id=[self._agent(info) for info in launched],
            kernel_id=column(launched, "kernel_id"), queue_id=queues, stream_id=streams,
            private_segment_size=column(launched, "private_segment_size"),
            group_segment_size=column(launched, "group_segment_size"),
        ))  # fmt: skip
        self._events_of |= zip(dispatches, written.events, strict=True)

    def _write_pc_samples(self, records: Sequence[Record]) -> None:
        self._lost["damaged samples of program counters"] += self._pc_samples.write(records)

    def _write_copies(self, records: Sequence[Record]) -> None:
        _, names = self._names(records)
        self._trace.write(MemoryCopies(
            **self._common(records), name=names,
            src_agent_id=[self._agent(record, "src_agent_id") for record in records],
            dst_agent_id=[self._agent(record, "dst_agent_id") for record in records],
            src_address=[_address(record.get("src_address")) for record in records],
            dst_address=[_address(record.get("dst_address")) for record in records],
            size=column(records, "bytes", 0), stream_id=[handle(record, "stream_id") for record in records],
        ))  # fmt: skip

    def _write_allocations(self, records: Sequence[Record]) -> None:
        _, names = self._names(records)
        self._trace.write(MemoryAllocations(
            **self._common(records), agent_id=[self._agent(record) for record in records],
            type=["FREE" if "FREE" in name else "ALLOC" for name in names],
            level=["VIRTUAL" if "VMEM" in name else "REAL" for name in names],
            address=[_address(record.get("address")) for record in records],
            size=[record.get("allocation_size") or 0 for record in records],
        ))  # fmt: skip

    def _write_scratch(self, records: Sequence[Record]) -> None:
        _, names = self._names(records)
        kinds = [next((word for word in ("ALLOC", "FREE") if word in name), "RECLAIM") for name in names]
        self._trace.write(MemoryAllocations(
            **self._common(records), agent_id=[self._agent(record) for record in records], type=kinds,
            level="SCRATCH", queue_id=[handle(record, "queue_id") for record in records],
            size=[record.get("allocation_size") or record.get("size_in_bytes") or 0 for record in records],
            extdata=[json.dumps({"flags": record.get("flags")}) for record in records],
        ))  # fmt: skip


def _arguments(recorded: Iterable[Any]) -> list[Argument]:
    """Return the arguments of a call."""
    known = [argument for argument in recorded if isinstance(argument, Mapping)]
    return [(each.get("type", ""), each.get("name", ""), str(each.get("value", ""))) for each in known]


_WRITERS: Mapping[str, Callable[[RocprofRows, Sequence[Record]], None]] = {
    **dict.fromkeys(_CALLS, RocprofRows._write_calls),
    "kernel_dispatch": RocprofRows._write_dispatches,
    "memory_copy": RocprofRows._write_copies,
    "memory_allocation": RocprofRows._write_allocations,
    "scratch_memory": RocprofRows._write_scratch,
    **dict.fromkeys(_PC_SAMPLES, RocprofRows._write_pc_samples),
}
"""Kind of records -> the method that writes them."""


def _address(value: Any) -> int | None:
    """Return an address, which is a number or `{"handle": …}` or `{"value": …}`."""
    if isinstance(value, Mapping):
        value = next(iter(value.values()), None)
    return value if isinstance(value, int) else None


_RECORDS, _COUNTED, _COUNTERS = "buffer_records", "callback_records", "counter_collection"
_NEEDED = {"metadata", "agents", "strings", "kernel_symbols"}
_HINT = "was rocprofv3 killed while it wrote?"


_UNKNOWN = -1  # index of an instruction that rocprofv3 could not decode
_INSTRUCTION_COLUMNS = ("code_object_id", "code_object_offset", "instruction", "comment")


class PcSampleRows:
    """Writes the samples of one process of a JSON file.

    Args:
        trace: the file.
        strings: texts of the process: instructions and source lines, by index.
    """

    def __init__(self, trace: TraceWriter, strings: Record) -> None:
        self._trace = trace
        self._instructions = _texts(strings, "pc_sample_instructions")
        self._comments = _texts(strings, "pc_sample_comments")
        self._known: set[tuple[int | None, int | None]] = set()

    def write(self, records: Sequence[Any]) -> int:
        """Write samples and new instructions; return the number of damaged samples, which have no place."""
        columns = [_sample_columns(record) for record in records]
        if whole := [(record, sample) for record, sample in zip(records, columns, strict=True) if sample]:
            self._trace.insert(TableRows("rocpd_gpu_pc_sample", as_columns([sample for _, sample in whole])))
            self._write_instructions(whole)
        return len(records) - len(whole)

    def _write_instructions(self, samples: Sequence[tuple[Record, Record]]) -> None:
        rows: list[tuple[object, ...]] = []
        for record, sample in samples:
            address = sample["code_object_id"], sample["code_object_offset"]
            index = record.get("inst_index")
            if address in self._known or not isinstance(index, int) or not _UNKNOWN < index < len(self._instructions):
                continue
            self._known.add(address)
            comment = self._comments[index] if index < len(self._comments) else None
            rows.append((*address, self._instructions[index], comment))
        if rows:
            columns = dict(zip(_INSTRUCTION_COLUMNS, zip(*rows, strict=True), strict=True))
            self._trace.insert(TableRows("rocpd_disassembly_data", columns))


def _sample_columns(entry: Any) -> dict[str, Any] | None:
    """Return the columns of a sample; None if it is damaged."""
    record = entry.get("record") if isinstance(entry, Mapping) else None
    if not isinstance(record, Mapping) or _whole(record, "timestamp") is None:
        return None
    inner = (record.get(name) for name in ("pc", "snapshot", "corr_id"))
    address, snapshot, correlation = (each if isinstance(each, Mapping) else {} for each in inner)
    return {
        **{name: _whole(record, name) for name in ("timestamp", "dispatch_id", "exec_mask", "wave_issued")},
        **{name: _whole(address, name) for name in ("code_object_id", "code_object_offset")},
        "correlation_id": _whole(correlation, "internal"),
        "inst_type": instruction_type(record.get("inst_type")),
        "stall_reason": stall_reason(snapshot.get("stall_reason")),
        "wave_count": _whole(record, "wave_cnt"),
    }


def _whole(record: Record, name: str) -> int | None:
    value = record.get(name)
    return signed(int(value)) if isinstance(value, int) else None


def _texts(strings: Record, name: str) -> list[str]:
    texts = strings.get(name)
    return [str(text) for text in texts] if isinstance(texts, list) else []


def read(source: TraceSource, target: TraceTarget) -> None:
    """Write each process of a JSON file, a batch of records at a time.

    Counters come before their dispatches: if there are any, the file is read a second time for them.

    Raises:
        InputError: the file is no JSON.
    """
    keys: list[int | str] = []
    with ExitStack() as ranks:
        with source.stream() as stream:
            walk = JsonWalk(stream, source.path, _HINT)
            processes = [_read(walk, partial(_started, target, ranks, keys)) for _ in _processes(walk)]
        if any(has_counters for _, has_counters in processes):
            with source.stream() as stream:
                walk = JsonWalk(stream, source.path, _HINT)
                for (rows, _), _ in zip(processes, _processes(walk), strict=False):
                    _read_counters(walk, rows)


def _processes(walk: JsonWalk) -> Iterator[None]:
    """Yield before each process, when it comes next."""
    for key in walk.members():
        if key == signs.ROCPROFV3_KEY:
            yield from walk.items()
        else:
            walk.value()


def _read(walk: JsonWalk, start: Callable[[Record], RocprofRows]) -> tuple[RocprofRows, bool]:
    """Read all of a process but its counters; return its rows, which `start` begins, and whether it has counters."""
    facts: dict[str, Any] = {}
    late: dict[str, Any] = {}
    rows, has_counters = None, False
    for name in walk.members():
        if name == _COUNTED:
            for kind in walk.members():
                count = sum(map(len, walk.batches()))
                has_counters |= kind == _COUNTERS and count > 0
        elif name != _RECORDS:
            facts[name] = walk.value()
        elif facts.keys() >= _NEEDED:
            rows = start(facts)
            for kind in walk.members():
                for batch in walk.batches():
                    rows.add(kind, batch)
        else:  # rocprofv3 writes the records last
            late = walk.value()
    rows = rows or start(facts)
    for kind, records in late.items():
        rows.add(kind, records or ())
    return rows, has_counters


def _read_counters(walk: JsonWalk, rows: RocprofRows) -> None:
    """Read the counters of a process."""
    for name in walk.members():
        if name != _COUNTED:
            walk.value()
            continue
        for kind in walk.members():
            for batch in walk.batches():
                if kind == _COUNTERS:
                    rows.add_counters(batch)


def _started(target: TraceTarget, ranks: ExitStack, keys: list[int | str], facts: Record) -> RocprofRows:
    """Open the file of a process, which `ranks` closes; its key is added to those of the processes before it."""
    metadata = facts["metadata"]
    pid, node, command = metadata["pid"], metadata["node"], metadata.get("command")
    keys.append(pid if pid not in keys else f"{pid}-{len(keys)}")
    names = ("system_name", "hostname", "release", "version", "hardware_name", "domain_name")
    machine = infos.NodeInfo(machine_id=node["machine_id"], **{name: node.get(name) for name in names})
    process = infos.ProcessInfo(
        pid, ppid=metadata.get("ppid"), init=metadata.get("init_time"), fini=metadata.get("fini_time"),
        command=" ".join(command) if isinstance(command, list) else command,
        extdata=json.dumps(metadata.get("config") or {}),
    )  # fmt: skip
    return RocprofRows(ranks.enter_context(target.rank(keys[-1], machine, process)), facts, target.losses)
