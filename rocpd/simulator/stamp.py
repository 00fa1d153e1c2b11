"""Turns a template into the rows of one rank's file: the parts of a rank, then the events of each step.

Decides nothing about the job.

Row order within a step: regions, dispatches, copies, allocations, graph launches, samples; each row has one event.
Works on whole columns: made one by one in Python, rows would take several times as long as SQLite takes to store them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from rocpd.base import Floats, Ints, frozen
from rocpd.facts.cxx import bare_name
from rocpd.schema.trace import infos
from rocpd.schema.trace.columns import plain, values_of
from rocpd.schema.trace.events import (
    MARK,
    Arguments,
    Batch,
    CounterValues,
    Events,
    GraphLaunches,
    KernelDispatches,
    MemoryAllocations,
    MemoryCopies,
    Regions,
    Samples,
)
from rocpd.schema.trace.writer import Sink, TraceWriter
from rocpd.simulator import hardware, samples
from rocpd.simulator.conditions import NodeClock
from rocpd.simulator.job_plan import JobPlan, LaneTimes, RankPlan, time_columns
from rocpd.simulator.kernels import KERNEL_IDS, Kernel
from rocpd.simulator.script import COPY, Allocation, Copy, Dispatch, LaneRun, Moment, Sample, Template, Time, address
from rocpd.simulator.workload import profile_of, streams_of

_QUEUES = (16, 17, 18, 19, 20, 21, 22)
_QUEUE_OF_STREAM = {0: 0, 1: 0, 2: 1, 3: 2, 5: 3, 6: 4, 7: 5, 8: 6}  # copies run beside all queues
_THREADS = ("main", "worker", "loader")
_EXIT_ROOM = 90_000_000  # from the end of the last step to the end of the process [ns]


@frozen
class Identity:
    """Ids that the rows of a rank refer to: process, threads (main, worker, loader), GPU."""

    pid: int
    tids: tuple[int, int, int]
    gpu: int


def queue_of(stream: int) -> int:
    """Return the handle of the HSA queue that serves a stream; copies run beside all queues, on the default one."""
    return _QUEUES[_QUEUE_OF_STREAM[stream]] if stream in _QUEUE_OF_STREAM else 0


def identity_of(rank: RankPlan) -> Identity:
    """Return the ids of a rank."""
    return Identity(rank.pid, (rank.pid, rank.pid + 3, rank.pid + 5), hardware.own_gpu(rank.local_rank))


def open_trace(sink: Sink, job: JobPlan, rank: RankPlan) -> TraceWriter:
    """Write the identity of the rank and its hardware."""
    ids = identity_of(rank)
    trace = TraceWriter(sink, _node(job.nodes[rank.node]), _process(job, rank))
    for tid, name in zip(ids.tids, _THREADS, strict=True):
        trace.register(infos.ThreadInfo(tid, name=name))
    for index in range(hardware.CPUS + hardware.GPUS):
        trace.register(_agent(index))
    trace.register(infos.QueueInfo(0))
    streams = streams_of(job.layout)
    for queue in sorted({queue_of(stream) for stream in streams} - {0}):
        trace.register(infos.QueueInfo(queue, name=f"Queue {_QUEUES.index(queue)}"))
    for stream in streams:
        trace.register(infos.StreamInfo(stream))
    counters = samples.COUNTERS if job.planting.counts_much else samples.COUNTERS[: samples.FEW]
    for code, counter in enumerate(counters, 1):
        trace.register(replace(counter.info, agent_id=ids.gpu, event_code=code))
    for index, name in enumerate(samples.TRACKS):
        trace.register(infos.TrackInfo(name=name, tid=ids.tids[0] if index == samples.MARK else None))
    return trace


def end_of(job: JobPlan, rank: RankPlan) -> int:
    """Return the end of a rank in true time [ns]; a rank without GPU work ends with the last of the others."""
    return int(job.timing.end.max() if rank.idle else job.timing.end[rank.number])


def _node(node: NodeClock) -> infos.NodeInfo:
    return infos.NodeInfo(
        hash=node.hash,
        machine_id=node.machine_id,
        system_name="Linux",
        hostname=node.hostname,
        release="6.8.0-60-generic",
        version="#63-Ubuntu SMP PREEMPT_DYNAMIC Tue Apr 15 19:04:15 UTC 2025",
        hardware_name="x86_64",
        domain_name="(none)",
    )


def _process(job: JobPlan, rank: RankPlan) -> infos.ProcessInfo:
    node = job.nodes[rank.node]
    start, end = node.local(np.array([rank.start_ns, end_of(job, rank) + _EXIT_ROOM])).tolist()
    facts = {"hostname": node.hostname, "ranks": len(job.ranks), "rank": rank.number, "pid": rank.pid}
    facts |= {"local_rank": rank.local_rank, "local_size": rank.local_size}
    return infos.ProcessInfo(
        rank.pid,
        ppid=1,
        init=start,
        fini=end,
        start=start,
        end=end,
        command=profile_of(job.options.profile).command,
        environment=hardware.filled_in("environment", facts),
        extdata=hardware.filled_in("configuration", facts),
    )


@functools.cache
def _agent(index: int) -> infos.AgentInfo:
    facts = hardware.agent(index)
    return infos.AgentInfo(
        index,
        type="GPU" if index >= hardware.CPUS else "CPU",
        logical_index=index,
        type_index=facts["logical_node_type_id"],
        uuid=facts["device_id"],
        user_name=facts["product_name"],
        extdata=hardware.compact(facts),
        **{name: facts[name] for name in ("name", "model_name", "vendor_name", "product_name")},
    )


_RUNTIME, _LIBRARY, _PROGRAM = 1, 2, 3
_URIS = {
    _RUNTIME: "memory://{pid}#offset=0x2869bfb0&size=32648",
    _LIBRARY: "file:///opt/rocm/lib/hipblaslt/library/gfx942.co",
    _PROGRAM: "memory://{pid}#offset=0x2796f400&size=231200",
}
_LOAD_BASE, _LOAD_STRIDE = 0x7F2B10000000, 0x100000


def write_symbols(trace: TraceWriter, ids: Identity, kernels: Iterable[Kernel]) -> None:
    """Write all code objects and the kernels in them, in the order of their ids."""
    for number in _URIS:
        trace.register(_code_object(ids, number))
    for number, kernel in enumerate(kernels, 1):
        trace.register(_symbol(number, kernel))


def _code_object(ids: Identity, number: int) -> infos.CodeObjectInfo:
    base, size = _LOAD_BASE + number * _LOAD_STRIDE, 0x9000 * number
    load: dict[str, Any] = {"uri": _URIS[number].format(pid=ids.pid)}
    load |= {"load_base": base, "load_size": size, "load_delta": base}
    in_file = number == _LIBRARY
    described = {"size": 88, "code_object_id": number, "agent_id": {"handle": hardware.agent_handle(ids.gpu)}, **load}
    memory = {"memory_base": 664204288 + number * 65536, "memory_size": size - 4248}
    return infos.CodeObjectInfo(
        number,
        agent_id=ids.gpu,
        storage_type="FILE" if in_file else "MEMORY",
        extdata=hardware.compact(described | {"storage_type": 1 if in_file else 2} | memory),
        **load,
    )


@functools.cache
def _symbol(number: int, kernel: Kernel) -> infos.KernelInfo:
    code_object = _LIBRARY if kernel.module else _RUNTIME if kernel.key == "fill" else _PROGRAM
    address, entry = _LOAD_BASE + code_object * _LOAD_STRIDE + 64 * number, 4288 + 640 * number
    symbol = f"{kernel.mangled}.kd"
    scalar, vector, accumulation = kernel.registers
    sizes: dict[str, Any] = {
        "kernel_object": address,
        "kernarg_segment_size": 64 + 8 * number,
        "kernarg_segment_alignment": 16,
        "group_segment_size": kernel.lds,
        "private_segment_size": kernel.scratch,
        "sgpr_count": scalar,
        "arch_vgpr_count": vector,
        "accum_vgpr_count": accumulation,
    }
    described = {"size": 88, "kernel_id": number, "code_object_id": code_object, "kernel_name": symbol, **sizes}
    described |= {"kernel_code_entry_byte_offset": entry, "kernel_address": {"handle": address + entry}}
    described |= {"formatted_kernel_name": kernel.display, **_demangled(kernel)}
    names: dict[str, Any] = {"kernel_name": symbol, "display_name": kernel.display}
    return infos.KernelInfo(number, code_object_id=code_object, extdata=hardware.compact(described), **names, **sizes)


def _demangled(kernel: Kernel) -> dict[str, str]:
    """Return two more forms of the name; for a name that was never mangled the profiler repeats the symbol."""
    if kernel.display == kernel.mangled:
        symbol = f"{kernel.mangled}.kd"
        return {"demangled_kernel_name": symbol, "truncated_kernel_name": symbol}
    display = kernel.display
    return {"demangled_kernel_name": f"{display} [clone .kd]", "truncated_kernel_name": bare_name(display)}


_COPY_NAMES = {
    "HD": "MEMORY_COPY_HOST_TO_DEVICE",
    "DH": "MEMORY_COPY_DEVICE_TO_HOST",
    "DD": "MEMORY_COPY_DEVICE_TO_DEVICE",
}
_HOST_ADDRESS, _DEVICE_ADDRESS = 0x7F2B80000000, 0x7F2A40000000
_NO_CALL = -1  # index of the launching or enclosing region, if there is none


class SamplePoints:
    """Starts or ends of rows: times of calls follow anchors, times of device work come from pieces of lanes."""

    def __init__(self, moments: Sequence[Moment], first: Sequence[int]) -> None:
        """Take the moments of all rows; `first` has the number of the first piece of each lane among all pieces."""
        self._anchor, self._fixed = time_columns([m if isinstance(m, Time) else Time(0) for m in moments])
        runs = [(row, first[m.lane] + m.position) for row, m in enumerate(moments) if isinstance(m, LaneRun)]
        self._rows, self._pieces = np.array(runs, dtype=np.int64).reshape(-1, 2).T

    def resolve(self, anchors: Ints, pieces: Ints) -> Ints:
        """Return true times [ns]: a row for each row of `anchors` and of `pieces`, which covers all lanes."""
        times: Ints = anchors[:, self._anchor] + self._fixed
        times[:, self._rows] = pieces[:, self._pieces]
        return times


class TemplateColumns:
    """The columns of one template for one rank's file.

    `words` replace placeholders in arguments, `work` is a factor on the work of the rank.

    `kinds` holds the rows of each table without times; `events` their events, in row order, with indices of regions in
    place of stack ids; `parts` the range of each kind among all rows.
    """

    def __init__(
        self, template: Template, trace: TraceWriter, ids: Identity, words: dict[str, str], work: float = 1.0
    ) -> None:
        template = _with_work(template, work)
        kinds = _kinds(template, ids)
        counts = [len(rows) for rows in template.kinds]
        ends = np.cumsum(counts).tolist()
        self.rows = ends[-1]
        self.regions = len(template.regions)
        self.parts = [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]
        # Texts get their numbers once, here, rather than for every row.
        self.events = _numbered(_joined(kinds, counts), trace)
        self.kinds = [_numbered(kind, trace) for kind in kinds]
        self.changing = [i for i, text in enumerate(values_of(self.events.message, 0)) if text and "{step}" in text]
        rows = [row for kind in template.kinds for row in kind]
        self.lanes = [LaneTimes(lane) for lane in template.lanes]
        first = np.cumsum([0, *(len(lane.lengths) for lane in template.lanes)]).tolist()
        self.start, self.end = (SamplePoints([getattr(row, side) for row in rows], first) for side in ("start", "end"))
        self.leaks = [(n, row.size) for n, row in enumerate(template.allocations) if row.leaks]
        self.jitter = np.array([row.jitter for row in rows])
        self._set_values(rows)
        self._set_arguments(template, words)

    def _set_values(self, rows: Sequence[Any]) -> None:
        cells = [(i, n) for i, row in enumerate(rows) for n in _counters_of(row)]
        counters = [samples.COUNTERS[n] for _, n in cells]
        self.value_rows = np.array([row for row, _ in cells], dtype=np.int64)
        self.value_pmc = [n + 1 for _, n in cells]
        self.value_typical = np.array([_typical(rows[i], c) for (i, _), c in zip(cells, counters, strict=True)])
        self.value_per_ns = np.array([c.per_ns for c in counters])
        self.value_follows = np.array([c.follows_clock for c in counters], dtype=bool)
        self.value_spread = np.array([c.spread for c in counters])
        self.value_whole = np.array([c.whole for c in counters], dtype=bool)

    def _set_arguments(self, t: Template, words: dict[str, str]) -> None:
        args = [arg for region in t.regions for arg in region.args]
        self.arg_rows = np.array([n for n, region in enumerate(t.regions) for _ in region.args], dtype=np.int64)
        columns: dict[str, list[Any]] = {
            "position": [n for region in t.regions for n in range(len(region.args))],
            "type": [arg.type for arg in args],
            "name": [arg.name for arg in args],
            "value": [words.get(arg.value, arg.value) for arg in args],
            "extdata": [arg.extdata for arg in args],
        }
        self.args = columns if args else {}


def _with_work(template: Template, work: float) -> Template:
    """Return the template with larger kernels, except for communication."""
    if work == 1.0:
        return template
    dispatches = [d if d.kernel.communicates else replace(d, kernel=d.kernel.larger(work)) for d in template.dispatches]
    return replace(template, dispatches=dispatches)


def _typical(row: object, counter: samples.Counter) -> float:
    if counter.of_kernel is not None and isinstance(row, Dispatch):
        return counter.of_kernel(row.kernel)
    return counter.typical


def _counters_of(row: object) -> Sequence[int]:
    """Return the numbers of the counters with a value in a row."""
    if isinstance(row, Dispatch):
        return row.counters
    return (len(samples.HARDWARE) + row.track,) if isinstance(row, Sample) and row.track != samples.MARK else ()


def _kinds(t: Template, ids: Identity) -> tuple[Batch, ...]:
    """Return the rows of one step, kind by kind; steps add the times."""

    def common(rows: Sequence[Any]) -> dict[str, Any]:
        return {"start": 0, "end": 0, "tid": [ids.tids[row.thread] for row in rows]}

    def launched(rows: Sequence[Any]) -> dict[str, Any]:
        return common(rows) | {"event": Events(stack_id=[row.launcher for row in rows])}

    callers = [a.launcher for a in t.allocations]
    return (
        Regions(
            **common(t.regions),
            name=[r.name for r in t.regions],
            event=Events(
                category=[r.category for r in t.regions],
                stack_id=range(len(t.regions)),
                parent_stack_id=[r.parent for r in t.regions],
                message=[r.text for r in t.regions],
            ),
        ),
        KernelDispatches(**launched(t.dispatches), **_columns([_dispatch(d, ids) for d in t.dispatches])),
        MemoryCopies(**launched(t.copies), **_columns([_copy(c, ids) for c in t.copies])),
        MemoryAllocations(
            **common(t.allocations),
            event=Events(stack_id=callers, parent_stack_id=callers),
            **_columns([_allocation(a, ids) for a in t.allocations]),
        ),
        GraphLaunches(
            **launched(t.graphs),
            agent_id=ids.gpu,
            queue_id=queue_of(1),
            graph_exec_id=[g.exec_id for g in t.graphs],
            kernel_dispatch_count=[g.count for g in t.graphs],
        ),
        Samples(track_id=[s.track + 1 for s in t.samples], event=_of_samples(t)),
    )


def _of_samples(t: Template) -> Events:
    categories = [MARK if s.text else samples.SMI_CATEGORY for s in t.samples]
    return Events(categories, stack_id=_NO_CALL, parent_stack_id=_NO_CALL, message=[s.text for s in t.samples])


def _joined(kinds: Sequence[Batch], counts: Sequence[int]) -> Events:
    """Return the events of all kinds, one after the other."""
    filled = [(kind.events() or Events(), count) for kind, count in zip(kinds, counts, strict=True)]

    def column(name: str) -> list[Any]:
        return [value for events, count in filled for value in values_of(plain(getattr(events, name)), count)]

    stack, parent = (np.array(column(name), dtype=np.int64) for name in ("stack_id", "parent_stack_id"))
    return Events(column("category"), stack, parent, message=column("message"))


def _numbered(rows: Any, trace: TraceWriter) -> Any:
    """Return the rows with the ids of their texts, numbered row by row."""
    named = {name: getattr(rows, name, None) for name in ("category", "name", "region_name")}
    texts = {name: column for name, column in named.items() if isinstance(column, list)}
    ids = [[trace.string(text) for text in row] for row in zip(*texts.values(), strict=True)]
    return replace(rows, **{name: [row[i] for row in ids] for i, name in enumerate(texts)})


def _dispatch(d: Dispatch, ids: Identity) -> dict[str, Any]:
    kernel = d.kernel
    row: dict[str, Any] = {"agent_id": ids.gpu, "kernel_id": KERNEL_IDS[kernel.key]}
    row |= {"queue_id": queue_of(d.stream), "stream_id": d.stream, "region_name": d.marker}
    row |= {"private_segment_size": kernel.scratch, "group_segment_size": kernel.lds}
    row |= {f"workgroup_size_{axis}": size for axis, size in zip("xyz", kernel.block, strict=True)}
    row |= {f"grid_size_{axis}": size for axis, size in zip("xyz", kernel.grid, strict=True)}
    exec_id, node_id = d.graph or (None, None)
    return row | {"graph_exec_id": exec_id, "graph_node_id": node_id}


def _copy(c: Copy, ids: Identity) -> dict[str, Any]:
    agent = {"H": 0, "D": ids.gpu}
    memory = {"H": _HOST_ADDRESS, "D": _DEVICE_ADDRESS}
    source, target = c.route[0], c.route[1]
    row: dict[str, Any] = {"name": _COPY_NAMES[c.route], "size": c.size}
    row |= {"src_agent_id": agent[source], "src_address": memory[source]}
    row |= {"dst_agent_id": agent[target], "dst_address": memory[target]}
    return row | {"queue_id": queue_of(COPY), "stream_id": COPY, "region_name": c.marker}


def _allocation(a: Allocation, ids: Identity) -> dict[str, Any]:
    scratch = a.level == "SCRATCH"
    row: dict[str, Any] = {"agent_id": ids.gpu, "type": a.type, "level": a.level, "size": a.size}
    row |= {"address": None if scratch else address(a.slot), "queue_id": queue_of(1) if scratch else 0, "stream_id": 0}
    return row | {"extdata": '{"flags": 1}' if scratch else '{"flags": 0}'}


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


@frozen
class StepBatch:
    """Steps to stamp: their numbers, anchors (true ns), stretches, and shares of the full clock; one row per step."""

    steps: Sequence[int]
    anchors: Ints
    stretch: Floats
    clock: Floats


class Stamp:
    """Writes the events of one rank, batch by batch."""

    def __init__(self, trace: TraceWriter, clock: NodeClock, random: np.random.Generator) -> None:
        self._trace = trace
        self._clock = clock
        self._random = random
        self._regions = 0

    def write(self, template: TemplateColumns, batch: StepBatch) -> None:
        """Write the rows of `template` for every step of the batch."""
        start, end = self._times(template, batch)
        first = self._trace.write(self._events(template, batch)).ids[0]
        events: Ints = first + np.arange(start.size).reshape(start.shape)
        self._write_arguments(template, events)
        self._write_values(template, batch, events, end - start)
        for kind, part in zip(template.kinds, template.parts, strict=True):
            if part.stop > part.start and self._trace.holds(kind.TABLE):
                changed = _addresses(template, kind, batch) if isinstance(kind, MemoryAllocations) else {}
                self._write_rows(kind, start[:, part], end[:, part], events[:, part], changed)

    def _times(self, t: TemplateColumns, batch: StepBatch) -> tuple[Ints, Ints]:
        starts, ends = _pieces(t, batch)
        start, end = t.start.resolve(batch.anchors, starts), t.end.resolve(batch.anchors, ends)
        share = 1.0 - t.jitter * self._random.random(start.shape)
        end = start + np.ceil((end - start) * share).astype(np.int64)
        return self._clock.local(start), self._clock.local(end)

    def _events(self, t: TemplateColumns, batch: StepBatch) -> Events:
        steps = len(batch.steps)
        # Stack ids are those of the regions, which are written after their events.
        base = self._regions + 1 + np.arange(steps)[:, None] * t.regions
        self._regions += steps * t.regions
        stack, parent = (
            np.where(index >= 0, base + index, 0).ravel() for index in (t.events.stack_id, t.events.parent_stack_id)
        )
        messages = t.events.message * steps
        for row in t.changing:
            for n, step in enumerate(batch.steps):
                messages[n * t.rows + row] = t.events.message[row].replace("{step}", str(step))
        return Events(t.events.category * steps, stack, parent, message=messages)

    def _write_arguments(self, t: TemplateColumns, events: Ints) -> None:
        if not t.args:  # no call with arguments is recorded
            return
        columns = {name: values * len(events) for name, values in t.args.items()}
        self._trace.write(Arguments(event_id=events[:, t.arg_rows].ravel(), **columns))

    def _write_values(self, t: TemplateColumns, batch: StepBatch, events: Ints, duration: Ints) -> None:
        noise = 2.0 * self._random.random((len(events), len(t.value_rows))) - 1.0
        clock = np.where(t.value_follows, batch.clock[:, None], 1.0)
        measured = t.value_typical + t.value_per_ns * duration[:, t.value_rows]
        values = measured * clock * (1.0 + t.value_spread * noise)
        values = np.where(t.value_whole, np.floor(values), values).ravel()
        event = events[:, t.value_rows].ravel()
        self._trace.write(CounterValues(event_id=event, pmc_id=t.value_pmc * len(events), value=values))

    def _write_rows(self, kind: Batch, start: Ints, end: Ints, events: Ints, changed: dict[str, Any]) -> None:
        static = {f.name: getattr(kind, f.name) for f in fields(kind)}
        columns: dict[str, Any] = {n: v * len(start) for n, v in static.items() if isinstance(v, list)}
        columns |= changed
        if isinstance(kind, Samples):
            columns["timestamp"] = start.ravel()
        else:
            columns |= {"start": start.ravel(), "end": end.ravel()}
        self._trace.write(replace(kind, event=events.ravel(), **columns))


def _pieces(t: TemplateColumns, batch: StepBatch) -> tuple[Ints, Ints]:
    """Return start and end of all pieces of device work, lane by lane: a row for each step."""
    runs = [lane.runs(batch.anchors, batch.stretch) for lane in t.lanes]
    none = np.zeros((len(batch.steps), 0), dtype=np.int64)
    return np.hstack([none, *(start for start, _ in runs)]), np.hstack([none, *(end for _, end in runs)])


def _addresses(t: TemplateColumns, kind: MemoryAllocations, batch: StepBatch) -> dict[str, Any]:
    """Return the addresses of allocations; leaked ones get new addresses in every step."""
    if not t.leaks or not isinstance(kind.address, list):
        return {}
    addresses = [list(kind.address) for _ in batch.steps]
    for row, size in t.leaks:
        for step, here in zip(batch.steps, addresses, strict=True):
            here[row] += step * size
    return {"address": [address for here in addresses for address in here]}
