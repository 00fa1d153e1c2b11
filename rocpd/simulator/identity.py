"""The parts of a rank: node, process, threads, agents, queues, streams, counters, tracks, code objects and kernels.

Writes no events.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from rocpd.base.frozen import frozen
from rocpd.facts.cxx import bare_name
from rocpd.schema.trace import infos
from rocpd.schema.trace.writer import Sink, TraceWriter
from rocpd.simulator import hardware, samples
from rocpd.simulator.conditions import NodeClock
from rocpd.simulator.job_plan import JobPlan, RankPlan
from rocpd.simulator.kernels import Kernel
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
    """Write who the rank is and what it runs on."""
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
    """Return when a rank is done in true time [ns]; one without GPU work is when all others are."""
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
    load: dict[str, Any] = {
        "uri": _URIS[number].format(pid=ids.pid),
        "load_base": base,
        "load_size": size,
        "load_delta": base,
    }
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
    """Return two more forms of the name; for one that was never mangled the profiler repeats the symbol."""
    if kernel.display == kernel.mangled:
        symbol = f"{kernel.mangled}.kd"
        return {"demangled_kernel_name": symbol, "truncated_kernel_name": symbol}
    display = kernel.display
    return {"demangled_kernel_name": f"{display} [clone .kd]", "truncated_kernel_name": bare_name(display)}
