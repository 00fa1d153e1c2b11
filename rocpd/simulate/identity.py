"""Owns the rows that say what a rank is: node, process, threads, agents, queues, streams, counters, tracks.

Writes no events; code objects and kernel symbols are next door, in `symbols`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rocpd.schema.write import Writer
from rocpd.simulate import hardware, samples
from rocpd.simulate.plan import NodeClock, RankPlace

STREAMS = 5
_QUEUES = (16, 17, 18)
_THREADS = ("main", "worker", "loader")

Row = dict[str, Any]


@dataclass(frozen=True)
class Identity:
    """Ids that the rows of a rank refer to: node, process, threads (main, worker, loader), GPU."""

    nid: int
    pid: int
    tids: tuple[int, int, int]
    gpu: int

    @property
    def where(self) -> Row:
        """The columns that nearly every row begins with."""
        return {"nid": self.nid, "pid": self.pid}


@dataclass(frozen=True)
class Process:
    """Facts of one process: command line, number of ranks of the job, begin and end on the node's clock [ns]."""

    command: str
    ranks: int
    begin: int
    end: int


def queue_of(stream: int) -> int:
    """Give the handle of the HSA queue that serves a stream; copies run beside all queues, on the default one."""
    return (_QUEUES[0], _QUEUES[0], _QUEUES[1], _QUEUES[2], 0)[stream]


def insert(writer: Writer, table: str, rows: Sequence[Row]) -> None:
    """Insert rows that all have the same keys."""
    writer.insert(table, tuple(rows[0]), [tuple(row.values()) for row in rows])


def write_identity(writer: Writer, place: RankPlace, node: NodeClock, process: Process) -> Identity:
    """Write who the rank is and give the ids, chosen as rocprofv3 chooses them: OS ids, a hash, hardware indices."""
    tids = (place.pid, place.pid + 3, place.pid + 5)
    own = Identity(node.hash & 0x7FFFFFFF, place.pid, tids, hardware.own_gpu(place.local_rank))
    insert(writer, "rocpd_info_node", [_node(own, node)])
    insert(writer, "rocpd_info_process", [_process(own, place, node, process)])
    named = zip(own.tids, _THREADS, strict=True)
    insert(writer, "rocpd_info_thread", [{"id": t, **own.where, "ppid": 1, "tid": t, "name": n} for t, n in named])
    insert(writer, "rocpd_info_agent", [_agent(own, i) for i in range(hardware.CPUS + hardware.GPUS)])
    queues = [(0, "Default Queue"), *((q, f"Queue {i}") for i, q in enumerate(_QUEUES))]
    insert(writer, "rocpd_info_queue", [{"id": q, **own.where, "name": name} for q, name in queues])
    streams = [(s, f"Stream {s}" if s else "Default Stream") for s in range(STREAMS)]
    insert(writer, "rocpd_info_stream", [{"id": s, **own.where, "name": name} for s, name in streams])
    insert(writer, "rocpd_info_pmc", [_counter(own, i) for i in range(len(samples.HARDWARE) + len(samples.SAMPLED))])
    insert(writer, "rocpd_track", [_track(writer, own, i) for i in range(len(samples.TRACKS))])
    return own


def _node(own: Identity, node: NodeClock) -> Row:
    return {
        "id": own.nid,
        "hash": node.hash,
        "machine_id": node.machine_id,
        "system_name": "Linux",
        "hostname": node.hostname,
        "release": "6.8.0-60-generic",
        "version": "#63-Ubuntu SMP PREEMPT_DYNAMIC Tue Apr 15 19:04:15 UTC 2025",
        "hardware_name": "x86_64",
        "domain_name": "(none)",
    }


def _process(own: Identity, place: RankPlace, node: NodeClock, process: Process) -> Row:
    ranks = (place.rank, process.ranks, place.local_rank, place.local_size)
    return {
        "id": own.pid,
        **own.where,
        "ppid": 1,
        "init": process.begin,
        "fini": process.end,
        "start": process.begin,
        "end": process.end,
        "command": process.command,
        "environment": hardware.environment_json(node.hostname, *ranks),
        "extdata": hardware.configuration_json(node.hostname, own.pid),
    }


def _agent(own: Identity, index: int) -> Row:
    gpu = hardware.is_gpu(index)
    product = hardware.GPU_NAME if gpu else hardware.CPU_NAME
    return {
        "id": index,
        **own.where,
        "type": "GPU" if gpu else "CPU",
        "absolute_index": index,
        "logical_index": index,
        "type_index": index - hardware.CPUS if gpu else index,
        "uuid": hardware.device_id(index),
        "name": hardware.GPU_ARCH if gpu else hardware.CPU_NAME,
        "model_name": "ip discovery" if gpu else "",
        "vendor_name": "AMD" if gpu else "CPU",
        "product_name": product,
        "user_name": product,
        "extdata": hardware.agent_json(index),
    }


def _counter(own: Identity, index: int) -> Row:
    counter = (*samples.HARDWARE, *samples.SAMPLED)[index]
    return {
        "id": index + 1,
        **own.where,
        "agent_id": own.gpu,
        "target_arch": "GPU",
        "event_code": index + 1,
        "instance_id": 0,
        "name": counter.name,
        "symbol": counter.name,
        "description": counter.description,
        "component": "rocprofiler-sdk" if index < len(samples.HARDWARE) else "rocm_smi",
        "units": counter.units,
        "value_type": counter.value_type,
        "block": counter.block,
        "expression": counter.expression,
        "is_constant": 0,
        "is_derived": int(bool(counter.expression)),
    }


def _track(writer: Writer, own: Identity, index: int) -> Row:
    tid = own.tids[0] if index == samples.MARK else None
    return {"id": index + 1, **own.where, "tid": tid, "name_id": writer.string(samples.TRACKS[index])}
