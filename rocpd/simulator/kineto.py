"""Writes a simulated rank as a trace of PyTorch's profiler: a second recording of the same run.

Each launching call lies in an operator, a collective in `record_param_comms`, and ranges of the program are
annotations; the GPU's times are those of the file, by a clock with another origin and a drift. The trace lacks all that
the rank's file lacks. Does not change the file.
https://github.com/pytorch/kineto, format of torch.profiler's export_chrome_trace
"""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

from rocpd.base import by_key
from rocpd.base.output import complete_or_nothing
from rocpd.facts.cxx import bare_name

_BASE_NS = 1_700_000_000_000_000_000  # origin of the clock of the trace
_PPM = 12  # its drift
_OPERATORS = (("Cijk", "aten::mm"), ("Fmha", "aten::_flash_attention_forward"), ("nccl", "c10d::allreduce_"),
              ("norm", "aten::native_layer_norm"), ("reduce", "aten::sum"))  # fmt: skip
_COLLECTIVES = {"ncclAllReduce": "allreduce", "ncclAllGather": "_allgather_base", "ncclSend": "send",
                "ncclRecv": "recv"}  # fmt: skip
_TYPES = {"ncclFloat32": "Float", "ncclFloat64": "Double", "ncclBfloat16": "BFloat16"}
_COPIES = {"HOST_TO_DEVICE": ("HtoD", "Host -> Device"), "DEVICE_TO_HOST": ("DtoH", "Device -> Host"),
           "DEVICE_TO_DEVICE": ("DtoD", "Device -> Device")}  # fmt: skip


Groups: TypeAlias = Sequence[tuple[int, ...]]
"""Ranks of the communicators of a rank, in the order of their creation."""


def write_kineto(rank: Path, out: Path, groups: Groups = (), *, force: bool = False) -> None:
    """Write the trace of a rank.

    Args:
        rank: a file that `simulate` wrote.
        out: `.json.gz`.
        groups: its communicators; empty: the trace has no data on collectives, as with older versions of PyTorch.
        force: replace an existing file.

    Raises:
        OutputError: the file exists, or cannot be written.
    """
    with closing(sqlite3.connect(f"file:{rank}?mode=ro", uri=True)) as connection:
        trace = _Trace(connection, groups)
        job, events = trace.job(), list(trace.events())
    head = {"schemaVersion": 1, "distributedInfo": job, "baseTimeNanoseconds": _BASE_NS, "deviceProperties": []}
    document = {**head, "traceEvents": events}
    with complete_or_nothing(out, force) as temporary:
        temporary.write_bytes(gzip.compress(json.dumps(document).encode(), 1, mtime=0))


class _Trace:
    """The events of a trace, from the tables of a rank."""

    def __init__(self, connection: sqlite3.Connection, groups: Groups) -> None:
        self._connection, self._groups = connection, groups
        ((self._pid, self._environment),) = self._rows("SELECT pid, environment FROM rocpd_info_process")
        ((self._origin,),) = self._rows("SELECT MIN(start) FROM rocpd_kernel_dispatch")

    def _rows(self, sql: str) -> list[Any]:
        return self._connection.execute(sql).fetchall()

    def job(self) -> dict[str, Any]:
        """Return the place of the rank in the job."""
        known = json.loads(self._environment)
        return {"backend": "nccl", "rank": int(known["RANK"]), "world_size": int(known["WORLD_SIZE"])}

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield ranges, operators with calls in them, kernels and copies."""
        yield {"ph": "M", "name": "process_name", "pid": self._pid, "tid": 0, "ts": 0, "args": {"name": "python"}}
        for text, thread, *times in self._ranges():
            name = re.sub(r"^step (\d+)$", r"ProfilerStep#\1", text)
            yield self._event("user_annotation", name, (self._pid, thread), (times[0], times[1]), {})
        collectives = list(self._of_collectives()) if self._groups else []
        yield from collectives
        kernels = by_key((stack, kernel) for stack, *kernel in self._kernels())
        copies = by_key((stack, copy) for stack, *copy in self._copies())
        until: dict[int, int] = {}
        for name, thread, start, end, stack in self._calls():
            launched, common = kernels.pop(stack, []), {"correlation": stack, "External id": stack}
            if launched and not (collectives and "nccl" in launched[0][0]):
                yield self._operator(launched[0][0], thread, (start, end), until.get(thread, start - 4000))
            yield self._event("cuda_runtime", name, (self._pid, thread), (start, end), common)
            for kernel, begin, finish, agent, stream in launched:
                args = common | {"device": agent, "stream": stream}
                yield self._event("kernel", kernel, (agent, stream), (begin, finish), args)
            for direction, begin, finish, agent, stream, size in copies.pop(stack, []):
                kind, ends = _COPIES[direction.removeprefix("MEMORY_COPY_")]
                args = common | {"device": agent, "stream": stream, "bytes": size, "kind": kind}
                yield self._event("gpu_memcpy", f"Memcpy {kind} ({ends})", (agent, stream), (begin, finish), args)
            until[thread] = max(end, until.get(thread, 0))

    def _operator(self, kernel: str, thread: int, call: tuple[int, int], before: int) -> dict[str, Any]:
        """Return the operator around a call; it begins between the previous call and this one."""
        name = next((operator for word, operator in _OPERATORS if word in kernel), "aten::add")
        start = call[0] - min(2000, max(0, call[0] - before) // 2)
        return self._event("cpu_op", name, (self._pid, thread), (start, call[1]), {"Input Dims": [[128, 256]]})

    def _of_collectives(self) -> Iterator[dict[str, Any]]:
        """Yield operators for each collective; a group of sends and receives is one collective."""
        calls = self._rccl()
        addresses = {call[-1]["comm"] for call in calls if "comm" in call[-1]}
        groups = dict(zip(sorted(addresses, key=lambda text: int(text, 16)), self._groups, strict=False))
        group: list[tuple[Any, ...]] = []
        for call in calls:
            name, *_ = call
            if name in _COLLECTIVES or name == "ncclGroupStart":
                group.append(call)
            if group and (name == "ncclGroupEnd" or group[0][0] != "ncclGroupStart"):
                inside = [each for each in group if each[0] in _COLLECTIVES]
                track, times = (self._pid, call[1]), (group[0][2], call[3])
                args = _arguments(inside, groups[inside[0][-1]["comm"]])
                yield self._event("cpu_op", f"c10d::{args['Collective name']}", track, times, {})
                yield self._event("cpu_op", "record_param_comms", track, times, args)
                group = []

    def _rccl(self) -> list[tuple[str, int, int, int, dict[str, str]]]:
        """Return name, thread, start, end and arguments of the calls of RCCL, in order on each thread."""
        rows = self._rows("""
            SELECT name, tid, start, "end", event_id FROM regions
            WHERE name GLOB 'nccl*' AND duration >= 0 AND start > 0 ORDER BY tid, start, id""")
        # There is no index on the events of arguments: all are read, once.
        given = self._rows("SELECT event_id, name, value FROM rocpd_arg")
        arguments = by_key((event, (name, value)) for event, name, value in given)
        return [(*row, dict(arguments.get(event, ()))) for *row, event in rows]

    def _ranges(self) -> list[Any]:
        """Return text, thread, start and end of the ranges of the program, in order."""
        return self._rows("""
            SELECT json_extract(extdata, '$.message'), tid, start, "end" FROM regions
            WHERE category = 'MARKER_CORE_RANGE_API' AND duration >= 0 AND start > 0 ORDER BY start, id""")

    def _kernels(self) -> Iterator[tuple[Any, ...]]:
        """Return stack id, name, start, end, agent and stream of the dispatches, in order."""
        rows = self._rows("""
            SELECT stack_id, name, start, "end", agent_type_index, stream_id FROM kernels
            WHERE duration >= 0 AND start > 0 ORDER BY start, id""")
        return ((stack, bare_name(name), *rest) for stack, name, *rest in rows)

    def _copies(self) -> list[Any]:
        """Return stack id, direction, start, end, agent, stream and bytes of copies, in order."""
        return self._rows("""
            SELECT stack_id, name, start, "end", CASE 'GPU' WHEN dst_agent_type THEN dst_agent_type_index
            WHEN src_agent_type THEN src_agent_type_index END, stream_id, size FROM memory_copies
            WHERE duration >= 0 AND start > 0 ORDER BY start, id""")

    def _calls(self) -> list[Any]:
        """Return name, thread, start, end and stack id of the calls of HIP, in order."""
        return self._rows("""
            SELECT name, tid, start, "end", stack_id FROM regions WHERE name GLOB 'hip*' AND duration >= 0 AND start > 0
            ORDER BY start, id""")

    def _event(
        self, kind: str, name: str, track: tuple[int, int], times: tuple[int, int], args: dict[str, Any]
    ) -> dict[str, Any]:
        """Return an event on a process and thread, or an agent and stream, by the clock of the trace."""
        start, end = (round((time - self._origin) * (1 + _PPM * 1e-6)) for time in times)
        of_track = {"pid": track[0], "tid": track[1], "ts": start / 1000, "dur": (end - start) / 1000}
        return {"ph": "X", "cat": kind, "name": name, **of_track, "args": args}


def _arguments(calls: list[tuple[Any, ...]], members: tuple[int, ...]) -> dict[str, Any]:
    """Return the arguments of `record_param_comms` for the calls of a collective; several calls are an all-to-all."""
    name, *_, first = calls[0]
    sent = [int(each[-1]["count"]) for each in calls if each[0] == "ncclSend"] if len(calls) > 1 else []
    count = sum(sent) or int(first.get("count", first.get("sendcount", 0)))
    return {
        "Collective name": "all_to_all" if sent else _COLLECTIVES[name],
        "dtype": _TYPES[first["datatype"]],
        "In msg nelems": count,
        "Out msg nelems": count * (len(members) if name == "ncclAllGather" else 1),
        "Group size": len(members),
        "Process Group Name": str(members[0]),
        "Process Group Ranks": str(list(members)),
        **({"Rank": int(first["peer"])} if not sent and "peer" in first else {}),
    }
