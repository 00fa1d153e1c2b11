"""Writes jobs of the generator as rocprofv3 does, one file a rank, on the clocks of their nodes: nothing but sqlite3
and the contract's tables.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from tests.blame.generator import Call, Job, Rank

_TABLES = Path(__file__).parents[2] / "rocpd" / "schema" / "sql" / "tables"
_OPTIONAL = {"basic_block", "disassembly_data", "gpu_pc_sample", "memory_access", "memory_message", "memory_page"}
_OPTIONAL |= {"pc_sampling"}
_GUID = "00000000-0000-7a00-8b00-000000000000"
"""In place of that of a rank, which is as long."""
_SIZES = {f"{what}_size_{axis}": 256 if axis == "x" else 1 for what in ("workgroup", "grid") for axis in "xyz"}
_AFTER = 50_000_000  # from the last call to the end of the process [ns]
_HOUR = 3_600 * 10**9


def write(job: Job, folder: Path) -> tuple[Path, ...]:
    """Write the files of a job; return them by rank."""
    folder.mkdir(parents=True, exist_ok=True)
    gpus = job.shape.gpus
    threads = [job.ranks[first : first + gpus] for first in range(0, job.shape.ranks, gpus)]
    return tuple(_File(job, number, each).write(folder / f"rank{number}.db") for number, each in enumerate(threads))


def clock(job: Job, node: int, time: int) -> int:
    """Return what the clock of a node shows at a true time [ns]: hours from others, 40 ppm too fast or slow at most."""
    offset, drift = _clock(job.shape.seed, node)
    return offset + time + int(time * drift)


@cache
def _clock(seed: int, node: int) -> tuple[int, float]:
    chance = Random(f"{seed} clock {node}")
    return int(chance.uniform(100, 170) * _HOUR), chance.uniform(-40e-6, 40e-6)


@cache
def _empty_file() -> bytes:
    """Return the content of a file without rows: making the tables takes as long as filling them."""
    names = sorted(path for path in _TABLES.glob("*.sql") if path.stem.removeprefix("rocpd_") not in _OPTIONAL)
    text = "\n".join(path.read_text("utf-8") for path in names)
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(text.replace("{{uuid}}", _suffix_of(_GUID)).replace("{{guid}}", _GUID))
        return connection.serialize()


def _suffix_of(guid: str) -> str:
    return "_" + guid.replace("-", "_")


class _File:
    """The rows of one process."""

    def __init__(self, job: Job, number: int, threads: Sequence[Rank]) -> None:
        self._job, self._number, self._threads, self._node = job, number, threads, job.shape.node(threads[0].number)
        self._guid = f"{job.shape.seed:08x}-{number:04x}-7a00-8b00-{1 + self._node:012x}"
        self._suffix = _suffix_of(self._guid)
        self._nid, self._pid = 100 + self._node, 300 + number
        self._place = {"nid": self._nid, "pid": self._pid}
        self._clock = _clock(job.shape.seed, self._node)
        self._numbers: dict[tuple[str, str], int] = {}
        self._rows: dict[str, list[dict[str, Any]]] = {}

    def write(self, path: Path) -> Path:
        """Write the file."""
        self._who()
        for thread in self._threads:
            self._rows_of(thread)
        content = _empty_file().replace(_suffix_of(_GUID).encode(), self._suffix.encode())
        path.write_bytes(content.replace(_GUID.encode(), self._guid.encode()))
        connection = sqlite3.connect(path)
        connection.executescript("PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF")
        for table, rows in self._rows.items():
            names, marks = ", ".join(f'"{name}"' for name in rows[0]), ", ".join("?" * len(rows[0]))
            sql = f'INSERT INTO "rocpd_{table}{self._suffix}" ({names}) VALUES ({marks})'
            connection.executemany(sql, [tuple(row.values()) for row in rows])
        connection.commit()
        connection.close()
        return path

    def _rows_of(self, rank: Rank) -> None:
        """Add what a thread does, and its GPU."""
        for call in rank.calls:
            if self._is_recorded(call, rank):
                self._call(call, rank)
        for operation in rank.operations:
            event = self._event("KERNEL_DISPATCH", operation.stack)
            self._add("kernel_dispatch", {
                **self._thread(rank), "agent_id": self._gpu(rank), "kernel_id": self._kernel(operation.name),
                "dispatch_id": len(self._rows.get("kernel_dispatch", ())) + 1, "queue_id": operation.stream,
                "stream_id": operation.stream, "start": self._shown(operation.start),
                "end": self._shown(operation.end), "private_segment_size": 0, "group_segment_size": 0, **_SIZES,
                "region_name_id": self._string(""), "event_id": event,
            })  # fmt: skip

    def _thread(self, rank: Rank) -> dict[str, int]:
        return {**self._place, "tid": self._pid + 100_000 * rank.thread}

    def _gpu(self, rank: Rank) -> int:
        return 1 + self._job.shape.on_node(self._node).index(rank.number)

    def _who(self) -> None:
        """Say what the file is, and who wrote it."""
        said = {"schema_version": "3.0.3", "uuid": self._suffix, "guid": self._guid}
        for tag, value in said.items():
            self._add("metadata", {"tag": tag, "value": value})
        host = {"hostname": f"node{self._node}", "machine_id": f"machine-{self._node}", "hash": 7_000 + self._node}
        self._add("info_node", {"id": self._nid, **host})
        end = self._shown(self._job.ends[-1] + _AFTER)
        ranks, number = self._job.shape.ranks // self._job.shape.gpus, self._number
        environment = json.dumps({"RANK": str(number), "WORLD_SIZE": str(ranks), "OMPI_COMM_WORLD_RANK": str(number)})
        life = {"init": self._shown(0), "fini": end, "start": self._shown(0), "end": end}
        process = {"ppid": 1, "pid": self._pid, **life, "command": "python3 train.py", "environment": environment}
        self._add("info_process", {"id": self._pid, "nid": self._nid, **process})
        for thread in self._threads:
            tid = self._thread(thread)["tid"]
            name = f"gpu {thread.thread}" if thread.thread else "main"
            self._add("info_thread", {"id": tid, **self._thread(thread), "ppid": 1, "name": name})
        gpus = [(self._gpu(thread), "GPU", "gfx942") for thread in self._threads]
        for agent, kind, name in ((0, "CPU", "EPYC"), *gpus):
            indices = {"absolute_index": agent, "logical_index": agent, "type_index": max(0, agent - 1)}
            what = {"type": kind, **indices, "name": name, "uuid": 7_000 + agent}
            self._add("info_agent", {"id": agent, **self._place, **what})
        for stream in (0, *(stream for thread in self._threads for stream in thread.streams.values())):
            for table in ("info_queue", "info_stream"):
                self._add(table, {"id": stream, **self._place, "name": f"{stream}"})
        self._add("info_code_object", {"id": 1, **self._place, "agent_id": gpus[0][0], "storage_type": "FILE"})
        self._string("")

    def _shown(self, time: int) -> int:
        offset, drift = self._clock
        return offset + time + int(time * drift)

    def _is_recorded(self, call: Call, rank: Rank) -> bool:
        shape = self._job.shape
        if call.category == "MARKER_CORE_RANGE_API" and rank.thread:
            return shape.marks
        if call.category == "RCCL_API":
            return shape.rccl == "sizes" or (shape.rccl == "calls" and call.name != "ncclCommInitRank")
        return shape.events or call.name not in ("hipEventRecord", "hipStreamWaitEvent")

    def _call(self, call: Call, rank: Rank) -> None:
        parent = call.parent if self._job.shape.rccl != "none" or call.name != "hipExtLaunchKernel" else 0
        event = self._event(
            call.category, call.stack, parent, json.dumps({"message": call.text}) if call.text else "{}"
        )
        times = {"start": self._shown(call.start), "end": self._shown(call.end)}
        self._add("region", {**self._thread(rank), **times, "name_id": self._string(call.name), "event_id": event})
        for position, (name, value) in enumerate(call.arguments.items()):
            self._add("arg", {"event_id": event, "position": position, "type": "", "name": name, "value": value})

    def _event(self, category: str, stack: int, parent: int = 0, extdata: str = "{}") -> int:
        ids = {"stack_id": stack, "parent_stack_id": parent, "correlation_id": 0}
        return self._add("event", {"category_id": self._string(category), **ids, "extdata": extdata})

    def _kernel(self, name: str) -> int:
        names = {"kernel_name": f"{name.partition('(')[0]}.kd", "display_name": name}
        return self._once("info_kernel_symbol", name, {**self._place, "code_object_id": 1, **names})

    def _string(self, text: str) -> int:
        return self._once("string", text, {"string": text})

    def _once(self, table: str, name: str, columns: dict[str, Any]) -> int:
        """Add a row unless one of that name is there; return its number."""
        if (table, name) not in self._numbers:
            self._numbers[table, name] = self._add(table, columns)
        return self._numbers[table, name]

    def _add(self, table: str, columns: dict[str, Any]) -> int:
        """Add a row; return its number, which is its id unless one is given."""
        rows = self._rows.setdefault(table, [])
        rows.append(columns)
        return len(rows)
