"""Owns the rows that say what a rank is: node, process, threads, agents, queues, streams, symbols, counters, tracks.

Writes no events.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rocpd.schema.write import Writer
from rocpd.simulate import hardware, samples
from rocpd.simulate.kernels import KERNELS, Kernel
from rocpd.simulate.plan import NodeClock, RankPlace
from rocpd.simulate.profiles import PROFILE_TABLE

STREAMS = 5
_QUEUES = (16, 17, 18)
_OBJECTS = ("memory://{pid}#offset=0x2869bfb0&size=32648", "file:///opt/rocm/lib/hipblaslt/library/gfx942.co", "memory://{pid}#offset=0x2796f400&size=231200")
_LOAD_BASE = 0x7F2B10000000


def queue_of(stream: int) -> int:
    """Give the handle of the HSA queue that serves a stream; copies run beside all queues, on the default one."""
    return (_QUEUES[0], _QUEUES[0], _QUEUES[1], _QUEUES[2], 0)[stream]


@dataclass(frozen=True)
class Identity:
    """Ids that event rows of a rank refer to."""

    nid: int
    pid: int
    tids: tuple[int, int, int]
    gpu: int


def identity_of(place: RankPlace, node: NodeClock) -> Identity:
    """Give a rank's ids as rocprofv3 chooses them: OS ids, a hash, hardware indices."""
    tids = (place.pid, place.pid + 3, place.pid + 5)
    return Identity(node.hash & 0x7FFFFFFF, place.pid, tids, hardware.own_gpu(place.local_rank))


def write_identity(writer: Writer, place: RankPlace, node: NodeClock, job: tuple[str, int, int, int]) -> Identity:
    """Write all rows but events; `job` holds profile, number of ranks, begin and end of the process [ns]."""
    own = identity_of(place, node)
    profile, ranks, begin, end = job
    _write_process(writer, place, node, own, (PROFILE_TABLE[profile].command, ranks, begin, end))
    names = ("python3", "pt_autograd_0", "pt_data_worker")
    threads = [(tid, own.nid, 1, own.pid, tid, name) for tid, name in zip(own.tids, names, strict=True)]
    writer.insert("rocpd_info_thread", ("id", "nid", "ppid", "pid", "tid", "name"), threads)
    _write_agents(writer, own)
    columns = ("id", "nid", "pid", "name")
    queues = [(0, "Default Queue"), *((q, f"Queue {i}") for i, q in enumerate(_QUEUES))]
    writer.insert("rocpd_info_queue", columns, [(q, own.nid, own.pid, name) for q, name in queues])
    streams = [(s, own.nid, own.pid, f"Stream {s}" if s else "Default Stream") for s in range(STREAMS)]
    writer.insert("rocpd_info_stream", columns, streams)
    _write_counters(writer, own)
    _write_code(writer, own)
    tracks = [(i, own.nid, own.pid, None, writer.string(name)) for i, name in enumerate(samples.TRACKS, 1)]
    tracks[samples.MARK] = (*tracks[samples.MARK][:3], own.tids[0], tracks[samples.MARK][4])
    writer.insert("rocpd_track", ("id", "nid", "pid", "tid", "name_id"), tracks)
    return own


def _write_process(
    writer: Writer, place: RankPlace, node: NodeClock, own: Identity, job: tuple[str, int, int, int]
) -> None:
    command, ranks, begin, end = job
    release, version = "6.8.0-60-generic", "#63-Ubuntu SMP PREEMPT_DYNAMIC Tue Apr 15 19:04:15 UTC 2025"
    facts = (own.nid, node.hash, node.machine_id, "Linux", node.hostname, release, version, "x86_64", "(none)")
    columns = ("id", "hash", "machine_id", "system_name", "hostname", "release", "version", "hardware_name", "domain_name")
    writer.insert("rocpd_info_node", columns, [facts])
    environment = hardware.environment_json(place.rank, place.local_rank, ranks, place.local_size, node.hostname)
    row = (own.pid, own.nid, 1, own.pid, begin, end, begin, end, command, environment)
    columns = ("id", "nid", "ppid", "pid", "init", "fini", "start", "end", "command", "environment", "extdata")
    writer.insert("rocpd_info_process", columns, [(*row, hardware.configuration_json(node.hostname, own.pid))])


def _write_agents(writer: Writer, own: Identity) -> None:
    rows = []
    for index in range(hardware.CPUS + hardware.GPUS):
        gpu = hardware.agent_type(index) == "GPU"
        name = hardware.GPU_ARCH if gpu else hardware.CPU_NAME
        product = hardware.GPU_NAME if gpu else hardware.CPU_NAME
        indices = (index, index, index - hardware.CPUS if gpu else index, hardware.device_id(index))
        names = (name, "ip discovery" if gpu else "", "AMD" if gpu else "CPU", product, product)
        rows.append((index, own.nid, own.pid, "GPU" if gpu else "CPU", *indices, *names, hardware.agent_json(index)))
    columns = ("id", "nid", "pid", "type", "absolute_index", "logical_index", "type_index", "uuid", "name")
    more = ("model_name", "vendor_name", "product_name", "user_name", "extdata")
    writer.insert("rocpd_info_agent", (*columns, *more), rows)


def _write_counters(writer: Writer, own: Identity) -> None:
    rows = []
    for i, c in enumerate((*samples.HARDWARE, *samples.SAMPLED), 1):
        component = "rocprofiler-sdk" if i <= len(samples.HARDWARE) else "rocm_smi"
        where = (i, own.nid, own.pid, own.gpu, "GPU", i, 0)
        what = (c.name, c.name, c.description, component, c.units, c.value_type, c.block, c.expression)
        rows.append((*where, *what, 0, int(bool(c.expression))))
    columns = ("id", "nid", "pid", "agent_id", "target_arch", "event_code", "instance_id", "name", "symbol", "description")
    more = ("component", "units", "value_type", "block", "expression", "is_constant", "is_derived")
    writer.insert("rocpd_info_pmc", (*columns, *more), rows)


def _write_code(writer: Writer, own: Identity) -> None:
    objects = []
    for i, template in enumerate(_OBJECTS, 1):
        uri, base, size = template.format(pid=own.pid), _LOAD_BASE + i * 0x100000, 0x9000 * i
        facts: dict[str, Any] = {"size": 88, "code_object_id": i, "agent_id": {"handle": 9300 + own.gpu}, "uri": uri}
        facts |= {"load_base": base, "load_size": size, "load_delta": base}
        facts |= {"storage_type": 1 if i == 2 else 2, "memory_base": 664204288 + i * 65536, "memory_size": size - 4248}
        kind = "FILE" if i == 2 else "MEMORY"
        objects.append((i, own.nid, own.pid, own.gpu, uri, base, size, base, kind, _json(facts)))
    columns = ("id", "nid", "pid", "agent_id", "uri", "load_base", "load_size", "load_delta", "storage_type", "extdata")
    writer.insert("rocpd_info_code_object", columns, objects)
    columns = ("id", "nid", "pid", "code_object_id", "kernel_name", "display_name", "kernel_object", "kernarg_segment_size")
    more = ("kernarg_segment_alignment", "group_segment_size", "private_segment_size", "sgpr_count", "arch_vgpr_count")
    writer.insert("rocpd_info_kernel_symbol", (*columns, *more, "accum_vgpr_count", "extdata"), _symbols(own))


def _symbols(own: Identity) -> Iterator[tuple[Any, ...]]:
    for i, kernel in enumerate(KERNELS, 1):
        code_object = 2 if kernel.library else 1 if kernel.key == "fill" else 3
        at = _LOAD_BASE + code_object * 0x100000 + 64 * i
        sizes = (64 + 8 * i, 16, kernel.lds, kernel.scratch, *kernel.registers)
        extdata = _symbol_json(kernel, (i, code_object, at), sizes)
        names = (f"{kernel.mangled}.kd", kernel.display)
        yield (i, own.nid, own.pid, code_object, *names, at, *sizes, extdata)


def _symbol_json(kernel: Kernel, place: tuple[int, int, int], sizes: tuple[int, ...]) -> str:
    offset = 4288 + 640 * place[0]
    keys = ("kernarg_segment_size", "kernarg_segment_alignment", "group_segment_size", "private_segment_size")
    keys = (*keys, "sgpr_count", "arch_vgpr_count", "accum_vgpr_count")  # type: ignore[assignment]
    demangled = kernel.display != kernel.mangled
    facts: dict[str, Any] = {"size": 88, "kernel_id": place[0], "code_object_id": place[1]}
    facts |= {"kernel_name": f"{kernel.mangled}.kd", "kernel_object": place[2], **dict(zip(keys, sizes, strict=True))}
    facts |= {"kernel_code_entry_byte_offset": offset, "kernel_address": {"handle": place[2] + offset}}
    facts |= {"formatted_kernel_name": kernel.display}
    facts |= {"demangled_kernel_name": f"{kernel.display} [clone .kd]" if demangled else f"{kernel.mangled}.kd"}
    facts |= {"truncated_kernel_name": kernel.truncated if demangled else f"{kernel.mangled}.kd"}
    return _json(facts)


def _json(facts: dict[str, Any]) -> str:
    return json.dumps(facts, separators=(",", ":"))
