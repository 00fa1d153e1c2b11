"""Owns what a rank is made of: node, process, threads, agents, queues, streams, counters, tracks.

Writes no events; code objects and kernel symbols are next door, in `symbols`.
"""

from __future__ import annotations

from dataclasses import dataclass

from rocpd.schema.trace.infos import (
    AgentInfo,
    CounterInfo,
    NodeInfo,
    ProcessInfo,
    QueueInfo,
    StreamInfo,
    ThreadInfo,
    TrackInfo,
)
from rocpd.schema.trace.writer import Sink, TraceWriter
from rocpd.simulator import hardware, samples
from rocpd.simulator.job_plan import NodeClock, RankPlan

_STREAMS = 5
_QUEUES = (16, 17, 18)
_THREADS = ("main", "worker", "loader")


@dataclass(frozen=True)
class Identity:
    """Ids that the rows of a rank refer to: process, threads (main, worker, loader), GPU."""

    pid: int
    tids: tuple[int, int, int]
    gpu: int


@dataclass(frozen=True)
class Life:
    """What a process runs: its command line, the ranks of the job, start and end on the node's clock [ns]."""

    command: str
    ranks: int
    start: int
    end: int


def queue_of(stream: int) -> int:
    """Return the handle of the HSA queue that serves a stream; copies run beside all queues, on the default one."""
    return (_QUEUES[0], _QUEUES[0], _QUEUES[1], _QUEUES[2], 0)[stream]


def identity_of(rank: RankPlan) -> Identity:
    """Return the ids of a rank."""
    return Identity(rank.pid, (rank.pid, rank.pid + 3, rank.pid + 5), hardware.own_gpu(rank.local_rank))


def open_trace(sink: Sink, rank: RankPlan, node: NodeClock, life: Life) -> TraceWriter:
    """Write who the rank is and what it runs on."""
    ids = identity_of(rank)
    trace = TraceWriter(sink, _node(node), _process(rank, node, life))
    for tid, name in zip(ids.tids, _THREADS, strict=True):
        trace.register(ThreadInfo(tid, name=name))
    for index in range(hardware.CPUS + hardware.GPUS):
        trace.register(_agent(index))
    trace.register(QueueInfo(0))
    for number, queue in enumerate(_QUEUES):
        trace.register(QueueInfo(queue, name=f"Queue {number}"))
    for stream in range(_STREAMS):
        trace.register(StreamInfo(stream))
    for index in range(len(samples.HARDWARE) + len(samples.SAMPLED)):
        trace.register(_counter(index, ids.gpu))
    for index, name in enumerate(samples.TRACKS):
        trace.register(TrackInfo(name=name, tid=ids.tids[0] if index == samples.MARK else None))
    return trace


def _node(node: NodeClock) -> NodeInfo:
    return NodeInfo(
        hash=node.hash,
        machine_id=node.machine_id,
        system_name="Linux",
        hostname=node.hostname,
        release="6.8.0-60-generic",
        version="#63-Ubuntu SMP PREEMPT_DYNAMIC Tue Apr 15 19:04:15 UTC 2025",
        hardware_name="x86_64",
        domain_name="(none)",
    )


def _process(rank: RankPlan, node: NodeClock, life: Life) -> ProcessInfo:
    ranks = (rank.number, life.ranks, rank.local_rank, rank.local_size)
    return ProcessInfo(
        rank.pid,
        ppid=1,
        init=life.start,
        fini=life.end,
        start=life.start,
        end=life.end,
        command=life.command,
        environment=hardware.environment_json(node.hostname, *ranks),
        extdata=hardware.configuration_json(node.hostname, rank.pid),
    )


def _agent(index: int) -> AgentInfo:
    gpu = hardware.is_gpu(index)
    product = hardware.GPU_NAME if gpu else hardware.CPU_NAME
    return AgentInfo(
        index,
        type="GPU" if gpu else "CPU",
        logical_index=index,
        type_index=index - hardware.CPUS if gpu else index,
        uuid=hardware.device_id(index),
        name=hardware.GPU_ARCH if gpu else hardware.CPU_NAME,
        model_name="ip discovery" if gpu else "",
        vendor_name="AMD" if gpu else "CPU",
        product_name=product,
        user_name=product,
        extdata=hardware.agent_json(index),
    )


def _counter(index: int, gpu: int) -> CounterInfo:
    counter = (*samples.HARDWARE, *samples.SAMPLED)[index]
    return CounterInfo(
        agent_id=gpu,
        target_arch="GPU",
        event_code=index + 1,
        instance_id=0,
        name=counter.name,
        description=counter.description,
        component="rocprofiler-sdk" if index < len(samples.HARDWARE) else "rocm_smi",
        units=counter.units,
        value_type=counter.value_type,
        block=counter.block,
        expression=counter.expression,
        is_constant=0,
        is_derived=int(bool(counter.expression)),
    )
