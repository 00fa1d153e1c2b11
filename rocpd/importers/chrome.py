"""Chrome JSON as `rocpd convert -f json` writes it: each process in it becomes a rank again.

The content of the format comes back: kernels, calls, markers, copies, allocations, samples, the links between them, and
times to the ns. Agents have no more than their numbers, and times are those of the common time line.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rocpd.base import frozen
from rocpd.importers.files import TraceSource, TraceTarget
from rocpd.importers.json_stream import Event, JsonEvents
from rocpd.importers.words import REGISTERS, CounterTracks, Registered, sizes_of, write_rows
from rocpd.schema.rules.categories import is_marker
from rocpd.schema.trace.events import (
    GraphLaunches,
    KernelDispatches,
    MemoryAllocations,
    MemoryCopies,
    Regions,
    Samples,
    message_json,
)
from rocpd.schema.trace.infos import AgentInfo, KernelInfo, NodeInfo, ProcessInfo, ThreadInfo, TrackInfo
from rocpd.schema.trace.writer import TraceWriter

_MOST_FILES = 128  # files that are open at one time


@frozen
class ChromeProcess:
    """One process in the file: its label, its tracks by their numbers, and facts of its rank."""

    label: str
    tracks: dict[int, str]
    facts: dict[str, Any]


def read(source: TraceSource, target: TraceTarget) -> None:
    """Write each process of a file.

    Raises:
        InputError: the file is damaged elsewhere than at its end.
    """
    processes: dict[int, ChromeProcess] = {}
    with source.stream() as stream:
        for batch in JsonEvents(source.path, Event, target.lose).batches(stream):
            for event in itertools.chain.from_iterable(batch):
                if event.get("ph") == "M":
                    _add_names(processes, event)
    times = Counter(process.facts.get("rank") for process in processes.values())
    numbered = iter(processes.items())
    while opened := list(itertools.islice(numbered, _MOST_FILES)):
        with contextlib.ExitStack() as ranks:
            rows: dict[object, ChromeRows] = {}
            for pid, process in opened:
                facts, rank = process.facts, process.facts.get("rank")
                extdata = json.dumps({"mpi_rank": rank} if rank is not None and times[rank] == 1 else {})
                command = facts.get("command", process.label)
                info = ProcessInfo(facts.get("pid") or pid, command=command, extdata=extdata)
                # All are on one time line: whatever machines they ran on, their clocks compare.
                node = NodeInfo(machine_id=f"chrome-{source.digest}", hostname=facts.get("hostname"))
                trace = ranks.enter_context(target.rank(pid if rank is None else rank, node, info))
                rows[pid] = ChromeRows(trace, process.tracks, facts.get("agents", {}))
            stream = ranks.enter_context(source.stream())
            for batch in JsonEvents(source.path, Event, lambda _: None, exactly=True).batches(stream):
                events = itertools.chain.from_iterable(batch)
                for pid, of_process in itertools.groupby(events, lambda event: event.get("pid")):
                    if pid in rows:
                        rows[pid].add(of_process)


def _add_names(processes: dict[int, ChromeProcess], event: Event) -> None:
    arguments: Any = event.get("args") or {}
    if event.get("name") == "process_name":
        processes[event["pid"]] = ChromeProcess(str(arguments.get("name")), {}, {})
    elif event.get("name") == "rank" and event.get("pid") in processes:
        processes[event["pid"]].facts.update(arguments)
    elif event.get("name") == "thread_name" and event.get("pid") in processes:
        processes[event["pid"]].tracks[event["tid"]] = str(arguments.get("name"))


_LANE = re.compile(r"(.*) \(\d+\)")
_OF_AGENT = re.compile(r"(.*?) · (?:stream|queue|allocations|scratch)\b")
_DERIVED = re.compile(r".* · (?:memory|scratch) \w+ held")
_SIZES = {"lds_size": "group_segment_size", "scratch_size": "private_segment_size"}


class ChromeRows:
    """Writes the events of one process.

    Args:
        trace: the file.
        tracks: number of a track -> its name.
        agents: name of an agent, as in names of tracks -> its number.
    """

    def __init__(self, trace: TraceWriter, tracks: Mapping[int, str], agents: Mapping[str, int]) -> None:
        self._trace, self._tracks, self._known_agents = trace, tracks, agents
        self._numbers = {name: number for number, name in tracks.items()}
        self._gpus = {match[1] for match in map(_OF_AGENT.match, tracks.values()) if match}
        self._counters = CounterTracks(trace)
        self._kernels = Registered(trace, _kernel)
        self._threads: dict[int, int] = {}
        self._sample_tracks: dict[int, int] = {}
        self._agents: dict[str, int | None] = {}
        self._rows: dict[type[Any], list[dict[str, Any]]] = {Regions: []}  # regions are written first

    def add(self, events: Iterable[Event]) -> None:
        """Write events."""
        for event in events:
            phase, arguments = event.get("ph"), event.get("args") or {}
            if phase == "X" and "category" in arguments:  # others are calculated from events
                start = _ns(event["ts"])
                _ADDERS.get(event.get("cat"), ChromeRows._add_region)(
                    self, event, (start, start + _ns(event["dur"])), arguments
                )
            elif phase == "i":
                self._add_sample(event, arguments)
            elif phase == "C" and not _DERIVED.fullmatch(event["name"]):
                for unit, value in arguments.items():
                    if value is not None:
                        self._counters.add(event["name"], None, unit, _ns(event["ts"]), float(value))
        for kind, rows in self._rows.items():
            if rows:
                write_rows(self._trace, kind, rows)
        self._rows = {Regions: []}
        self._counters.write()

    def _add_region(self, event: Event, times: tuple[int, int], arguments: Mapping[str, Any]) -> None:
        extdata = message_json(event["name"]) if is_marker(arguments["category"]) else "{}"
        row = {"start": times[0], "end": times[1], "tid": self._thread(event["tid"]), "name": event["name"]}
        self._put(Regions, row, arguments, extdata)

    def _thread(self, tid: int) -> int:
        """Return the thread of a track; overlapping events of a thread are on further tracks of its name."""
        if tid not in self._threads:
            name = self._tracks.get(tid)
            lane = _LANE.fullmatch(name or "")
            if lane and lane[1] in self._numbers:
                self._threads[tid] = self._thread(self._numbers[lane[1]])
            else:
                self._threads[tid] = self._trace.register(ThreadInfo(tid, name=name))
        return self._threads[tid]

    def _add_sample(self, event: Event, arguments: Mapping[str, Any]) -> None:
        tid = event["tid"]
        if tid not in self._sample_tracks:
            is_thread = is_marker(arguments.get("category"))
            track = TrackInfo(name=self._tracks.get(tid), tid=self._thread(tid) if is_thread else None)
            self._sample_tracks[tid] = self._trace.register(track)
        sample = {"track_id": self._sample_tracks[tid], "timestamp": _ns(event["ts"])}
        self._put(Samples, sample, arguments, message_json(event["name"]))

    def _add_kernel(self, event: Event, times: tuple[int, int], arguments: Mapping[str, Any]) -> None:
        kernel = self._kernels[arguments.get("name", event["name"]), *map(arguments.get, REGISTERS)]
        sizes = sizes_of(lambda what, axis: arguments.get(f"{what}_{axis}", 0))
        row = self._on_gpu(event, times, arguments) | {"kernel_id": kernel} | sizes
        row |= {field: arguments.get(name) for name, field in _SIZES.items()}
        row |= {"dispatch_id": arguments.get("dispatch_id", 0), "queue_id": row["queue_id"] or 0}
        self._put(KernelDispatches, row | {"stream_id": row["stream_id"] or 0}, arguments)

    def _add_copy(self, event: Event, times: tuple[int, int], arguments: Mapping[str, Any]) -> None:
        row = self._on_gpu(event, times, arguments)
        del row["agent_id"]
        ends = {f"{end}_agent_id": self._agent(arguments.get(name, "")) for end, name in _ENDS}
        row |= {"name": arguments.get("name", event["name"]), "size": arguments.get("bytes", 0)}
        self._put(MemoryCopies, row | ends, arguments)

    def _add_allocation(self, event: Event, times: tuple[int, int], arguments: Mapping[str, Any]) -> None:
        row = self._on_gpu(event, times, arguments)
        row |= {name: arguments.get(name) for name in ("type", "level", "address")}
        self._put(MemoryAllocations, row | {"size": arguments.get("bytes", 0)}, arguments)

    def _add_graph(self, event: Event, times: tuple[int, int], arguments: Mapping[str, Any]) -> None:
        row = self._on_gpu(event, times, arguments)
        del row["stream_id"]
        number = re.fullmatch(r"graph (\d+)", event["name"])
        row |= {"graph_exec_id": int(number[1]) if number else None}
        row |= {"kernel_dispatch_count": arguments.get("kernel_dispatch_count")}
        self._put(GraphLaunches, row, arguments)

    def _on_gpu(self, event: Event, times: tuple[int, int], arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the common columns of GPU work."""
        of_agent = _OF_AGENT.match(self._tracks.get(event["tid"], ""))
        line = {field: arguments.get(field) for field in ("queue_id", "stream_id")}
        agent = self._agent(of_agent[1] if of_agent else "")
        return {"start": times[0], "end": times[1], "agent_id": agent, **line}

    def _agent(self, text: str) -> int | None:
        """Return the agent of a name such as `GPU 2`."""
        if text not in self._agents:
            number, kind = self._known_agents.get(text), "GPU" if text in self._gpus else "CPU"
            self._agents[text] = None if number is None else self._trace.register(AgentInfo(number, type=kind))
        return self._agents[text]

    def _put(self, kind: type[Any], row: dict[str, Any], arguments: Mapping[str, Any], extdata: str = "{}") -> None:
        event = {"category": arguments.get("category"), "stack_id": arguments.get("stack_id", 0), "extdata": extdata}
        self._rows.setdefault(kind, []).append({**row, "event": event})


def _kernel(key: tuple[Any, ...]) -> KernelInfo:
    name, *registers = key
    return KernelInfo(display_name=name, **dict(zip(REGISTERS.values(), registers, strict=True)))


_ENDS = (("src", "source"), ("dst", "destination"))
_ADDERS: Mapping[Any, Callable[[ChromeRows, Event, tuple[int, int], Mapping[str, Any]], None]] = {
    "kernel_dispatch": ChromeRows._add_kernel,
    "memory_copy": ChromeRows._add_copy,
    "MEMORY_SET": ChromeRows._add_copy,
    "memory_allocation": ChromeRows._add_allocation,
    "scratch_memory": ChromeRows._add_allocation,
    "GRAPH_LAUNCH": ChromeRows._add_graph,
}


def _ns(microseconds: str | int) -> int:
    """Return a time [ns] from a number of us, in the file a text with three decimals.

    >>> _ns("1763000000000000.001"), _ns(12)
    (1763000000000000001, 12000)
    """
    whole, _, part = str(microseconds).partition(".")
    return int(whole) * 1000 + int(part.ljust(3, "0")[:3] or 0)
