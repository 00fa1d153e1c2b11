"""Folders of rocprofv3's CSV files (`*_kernel_trace.csv`, `*_agent_info.csv` …), and those of `rocpd convert -f csv`.

Files whose names start alike are of one process, unless a column `Guid` assigns rows to processes. Folders `pass_1`,
`pass_2` … are runs of one program for different counters, one after the other; they may have a folder for each host.
Headers are compared in small letters, as AMD's tool of 2026 writes them in other letters.
"""

from __future__ import annotations

import csv
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rocpd.base import frozen
from rocpd.facts.pc_sampling import signed
from rocpd.importers import signs
from rocpd.importers.files import TraceSource, TraceTarget
from rocpd.importers.words import ONE_ROW, REGISTERS, counter_of, sizes_of
from rocpd.schema.trace.events import (
    CounterValues,
    Events,
    GraphLaunches,
    KernelDispatches,
    MemoryAllocations,
    MemoryCopies,
    Regions,
    message_json,
)
from rocpd.schema.trace.infos import AgentInfo, KernelInfo, NodeInfo, ProcessInfo
from rocpd.schema.trace.writer import TableRows, TraceWriter

_BATCH = 1 << 14
_TIMES = ("start_timestamp", "end_timestamp")
Columns = Mapping[str, Sequence[str]]


@frozen
class CsvProcess:
    """The files of one process, and the choice of its rows in them.

    Args:
        files: kind -> file.
        guid: value of `Guid` in its rows; None: all rows are its own.
        counts_damage: whether it counts damaged rows, which may be of any process.
    """

    files: Mapping[str, Path]
    guid: str | None = None
    counts_damage: bool = True

    def batches(self, *kinds: str, lost: Counter[str] | None = None) -> Iterator[Columns]:
        """Yield the columns of files, by header, some thousand rows at a time; `lost` counts damaged rows."""
        for kind in kinds:
            if kind in self.files:
                counter = Counter[str]() if lost is None or not self.counts_damage else lost
                yield from _batches(self.files[kind], self.guid, counter)

    @property
    def pid(self) -> int | None:
        """Id of the process: that of its calls, else the number at the start of file names, else its first thread."""
        for batch in self.batches(*signs.CALLS, *signs.COUNTERS):
            if known := [text for text in batch.get("process_id", ()) if text.isdecimal()]:
                return int(known[0])
        if named := re.match(r"\d+", next(iter(self.files.values())).name):
            return int(named[0])
        threads = [t for batch in self.batches(signs.KERNELS) for t in batch.get("thread_id", ()) if t.isdecimal()]
        return min(map(int, threads), default=None)

    @property
    def counted_from_to(self) -> tuple[int | None, int | None]:
        """First start and last end of dispatches with counters [ns]; None if there are no times."""
        starts, ends = set[int](), set[int]()
        for batch in self.batches(*signs.COUNTERS):
            starts |= {min(filter(None, numbers(batch, _TIMES[0])), default=0)}
            ends |= {max(filter(None, numbers(batch, _TIMES[1])), default=0)}
        return min(starts - {0}, default=None), max(ends - {0}, default=None)


def _batches(path: Path, guid: str | None, lost: Counter[str]) -> Iterator[Columns]:
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        lines = csv.reader(file)
        header = [name.strip().lower() for name in next(lines, [])]
        of_guid = header.index("guid") if guid is not None and "guid" in header else None
        timed = [header.index(name) for name in _TIMES if name in header]

        def is_whole(line: Sequence[str]) -> bool:
            good = len(line) == len(header) and all(line[column].isdecimal() for column in timed)
            lost["lines of CSV files that are cut or damaged"] += not good
            return good

        whole = filter(is_whole, lines)
        of_process = whole if of_guid is None else (line for line in whole if line[of_guid] == guid)
        while rows := list(itertools.islice(of_process, _BATCH)):
            yield dict(zip(header, zip(*rows, strict=True), strict=True))


def numbers(batch: Columns, name: str, default: Any = None) -> list[Any]:
    """Return a column as whole numbers; `default` where it is absent or a value is none."""
    texts = batch.get(name)
    return [default] * len(next(iter(batch.values()))) if texts is None else [_number(text, default) for text in texts]


def _number(text: str, default: Any) -> Any:
    try:
        return int(text, 0) if text[:2] in ("0x", "0X") else int(text)
    except ValueError:
        return default


_NAMES = ("name", "model_name", "vendor_name", "product_name")
_SAMPLE_NUMBERS = ("exec_mask", "dispatch_id", "correlation_id", "wave_issued_instruction", "wave_count")
_SAMPLE_TEXTS = ("instruction", "instruction_comment", "instruction_type", "stall_reason")
_SIZES = {"lds_block_size": "group_segment_size", "scratch_size": "private_segment_size"}


class CsvRows:
    """Writes the rows of one process.

    Args:
        trace: the file.
        process: its files.
        lost: counts data without a place in the file.
    """

    def __init__(self, trace: TraceWriter, process: CsvProcess, lost: Counter[str]) -> None:
        self._trace, self._process, self._lost = trace, process, lost
        self._by_type: dict[tuple[str, int], int] = {}
        self._kernels: dict[int, str] = {}
        self._events: dict[int, int] = {}  # dispatch id -> event

    def write(self) -> None:
        """Write everything."""
        self._describe_agents()
        for kinds, write in (
            (signs.CALLS, self._write_calls), ((signs.KERNELS,), self._write_dispatches),
            ((signs.COPIES,), self._write_copies), ((signs.ALLOCATIONS, signs.SCRATCH), self._write_allocations),
            ((signs.GRAPHS,), self._write_graphs), (signs.COUNTERS, self._write_counters),
        ):  # fmt: skip
            for batch in self._batches(*kinds):
                write(batch)
        for kind, method in signs.PC_SAMPLES.items():
            for batch in self._batches(kind):
                self._lost["lines of CSV files that are cut or damaged"] += _write_samples(self._trace, method, batch)

    def _batches(self, *kinds: str) -> Iterator[Columns]:
        return self._process.batches(*kinds, lost=self._lost)

    def _describe_agents(self) -> None:
        for batch in self._batches(signs.AGENTS):
            for row in (dict(zip(batch, values, strict=True)) for values in zip(*batch.values(), strict=True)):
                number = int(row["node_id"])
                kind = row.get("agent_type", "")
                index = sum(known == kind for known, _ in self._by_type)
                self._by_type[kind, index] = number
                facts: dict[str, Any] = {}
                for name, text in row.items():
                    of, is_dimension, axis = name.partition("_dim_")
                    if is_dimension:
                        facts.setdefault(f"{of}_dim", {})[axis] = _value(text)
                    elif name not in ("guid", *_NAMES):
                        facts[name] = _value(text)
                self._trace.register(AgentInfo(
                    number, type=kind if kind in ("CPU", "GPU", "NIC") else None, absolute_index=number,
                    logical_index=int(row.get("logical_node_id") or number), type_index=index,
                    extdata=json.dumps(facts), **{name: row.get(name) for name in _NAMES},
                ))  # fmt: skip

    def _agents(self, batch: Columns, name: str = "agent_id") -> list[int | None]:
        """Return the agents of `Agent 2` (by its number in the node), `GPU 0` (by its number in its type) or `2`."""
        texts: Sequence[str] = batch.get(name) or [""] * len(next(iter(batch.values())))
        known = {text: self._agent(text) for text in set(texts)}
        return [known[text] for text in texts]

    def _agent(self, text: str) -> int | None:
        match = re.fullmatch(r"(?:(\w+) )?(\d+)", text.strip())
        return self._by_type.get((match[1], int(match[2])), int(match[2])) if match else None

    def _common(
        self, batch: Columns, category: Sequence[str] | None = None, extdata: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """Return the columns that rows of all tables have."""
        times = {"start": numbers(batch, "start_timestamp"), "end": numbers(batch, "end_timestamp")}
        return {**times, "event": Events(category, numbers(batch, "correlation_id", 0), extdata=extdata)}

    def _write_calls(self, batch: Columns) -> None:
        """Write calls and markers; the function of a marker is its message."""
        domains, functions = batch["domain"], batch["function"]
        extdata = [
            message_json(name) if domain.startswith("MARKER") else "{}"
            for domain, name in zip(domains, functions, strict=True)
        ]
        common = self._common(batch, domains, extdata)
        self._trace.write(Regions(**common, name=functions, tid=numbers(batch, "thread_id")))

    def _write_dispatches(self, batch: Columns) -> None:
        sizes = sizes_of(lambda what, axis: numbers(batch, f"{what}_size_{axis}", 1))
        self._put_dispatches(batch, numbers(batch, "dispatch_id"), sizes)

    def _put_dispatches(self, batch: Columns, dispatches: Sequence[int | None], sizes: Mapping[str, Any]) -> None:
        self._register_kernels(batch)
        rows = self._trace.write(KernelDispatches(
            tid=numbers(batch, "thread_id"), agent_id=self._agents(batch), kernel_id=numbers(batch, "kernel_id", 0),
            dispatch_id=dispatches, queue_id=numbers(batch, "queue_id", 0), stream_id=numbers(batch, "stream_id", 0),
            **self._common(batch), **sizes, **{field: numbers(batch, name) for name, field in _SIZES.items()},
        ))  # fmt: skip
        self._events |= {n: event for n, event in zip(dispatches, rows.events, strict=True) if n is not None}

    def _register_kernels(self, batch: Columns) -> None:
        registers = [numbers(batch, name) for name in REGISTERS]
        kernels = zip(numbers(batch, "kernel_id", 0), batch["kernel_name"], *registers, strict=True)
        for number, name, *counts in kernels:
            if number not in self._kernels:
                self._kernels[number] = name
                known = dict(zip(REGISTERS.values(), counts, strict=True))
                self._trace.register(KernelInfo(number, display_name=name, **known))

    def _write_copies(self, batch: Columns) -> None:
        names = [f"MEMORY_COPY_{name.removeprefix('MEMORY_COPY_')}" for name in batch["direction"]]
        self._lost["sizes of copies, which CSV files do not hold"] += len(names)
        self._trace.write(MemoryCopies(
            **self._common(batch), name=names, size=0, stream_id=numbers(batch, "stream_id"),
            src_agent_id=self._agents(batch, "source_agent_id"),
            dst_agent_id=self._agents(batch, "destination_agent_id"),
        ))  # fmt: skip

    def _write_allocations(self, batch: Columns) -> None:
        operations = [name.removeprefix("MEMORY_ALLOCATION_") for name in batch["operation"]]
        kinds = ("ALLOC", "FREE", "RECLAIM")
        levels = ["SCRATCH" if "SCRATCH" in name else "VIRTUAL" if "VMEM" in name else "REAL" for name in operations]
        flags = [json.dumps({"flags": flag}) for flag in numbers(batch, "alloc_flags")]
        self._trace.write(MemoryAllocations(
            **self._common(batch), tid=numbers(batch, "thread_id"), agent_id=self._agents(batch), level=levels,
            type=[next((kind for kind in kinds if kind in name), "RECLAIM") for name in operations],
            address=[None if address is None else signed(address) for address in numbers(batch, "address")],
            size=numbers(batch, "allocation_size", 0), queue_id=numbers(batch, "queue_id"),
            extdata=flags if "alloc_flags" in batch else None,
        ))  # fmt: skip

    def _write_graphs(self, batch: Columns) -> None:
        self._trace.write(GraphLaunches(
            **self._common(batch), tid=numbers(batch, "thread_id"), queue_id=numbers(batch, "queue_id"),
            graph_exec_id=numbers(batch, "graph_exec_id"),
            kernel_dispatch_count=numbers(batch, "kernel_dispatch_count"),
        ))  # fmt: skip

    def _write_counters(self, batch: Columns) -> None:
        """Write values of counters; without a file of dispatches also these, whose sizes are single numbers."""
        dispatches = numbers(batch, "dispatch_id", 0)
        firsts = {number: row for row, number in reversed(list(enumerate(dispatches))) if number not in self._events}
        if firsts:
            rows = sorted(firsts.values())
            columns = {name: [column[row] for row in rows] for name, column in batch.items()}
            along = {f"{what}_size_x": numbers(columns, f"{what}_size", 0) for what in ("workgroup", "grid")}
            self._put_dispatches(columns, [dispatches[row] for row in rows], along | ONE_ROW)
        keys = list(zip(self._agents(batch), batch["counter_name"], strict=True))
        known = {key: self._trace.register(counter_of(*key)) for key in sorted(set(keys), key=str)}
        values = [float(text or "nan") for text in batch["counter_value"]]
        events = [self._events.get(number) for number in dispatches]
        self._trace.write(CounterValues(event_id=events, pmc_id=[known[key] for key in keys], value=values))


def _value(text: str) -> object:
    try:
        return int(text)
    except ValueError:
        return text


def _write_samples(trace: TraceWriter, method: str, batch: Columns) -> int:
    """Write the samples of a CSV file, taken by `method`; return the number of damaged lines."""
    times = numbers(batch, "sample_timestamp", -1)  # -1 in a file of another kind
    if rows := [row for row, time in enumerate(times) if 0 <= time < 1 << 63]:
        whole = {name: [column[row] for row in rows] for name, column in batch.items()}
        columns: dict[str, Sequence[object]] = {
            "timestamp": [times[row] for row in rows],
            **{
                name: [None if value is None else signed(value) for value in numbers(whole, name)]
                for name in _SAMPLE_NUMBERS
            },
            **{name: whole.get(name) or [None] * len(rows) for name in _SAMPLE_TEXTS},
        }
        trace.insert(TableRows("rocpd_pc_sampling", {"method": [method] * len(rows), **columns}))
    return len(times) - len(rows)


_PASS = re.compile(r"pass_\d+")


def read(source: TraceSource, target: TraceTarget) -> None:
    """Write each process of a folder."""
    processes = list(_processes(source.path))
    for number, process in enumerate(processes):
        folder = next(iter(process.files.values())).parent
        is_pass = any(map(_PASS.fullmatch, (folder.name, folder.parent.name)))
        host = source.path.name if _PASS.fullmatch(folder.name) else folder.name
        node = NodeInfo(machine_id=f"rocprofv3-csv-{source.digest}-{host}", hostname=host)
        pid = process.pid or number
        start, end = process.counted_from_to if is_pass else (None, None)
        with target.rank(process.guid or f"{number}-{pid}", node, ProcessInfo(pid, start=start, end=end)) as trace:
            CsvRows(trace, process, target.losses).write()
        source.step(number + 1, len(processes))


def _processes(path: Path) -> Iterator[CsvProcess]:
    """Yield the processes of a folder, in the order of file names, then of rows."""
    groups: dict[tuple[Path, str | None], dict[str, Path]] = {}
    for file in signs.files_in(path):
        if match := signs.CSV_NAME.fullmatch(file.name):
            groups.setdefault((file.parent, match["before"]), {})[match["kind"]] = file
    for files in groups.values():
        if not set(files) & set(signs.KINDS):
            continue
        guids: dict[str, None] = {}
        for kind in signs.KINDS:
            for batch in CsvProcess(files).batches(kind):
                guids |= dict.fromkeys(batch.get("guid", ()))
        yield from (CsvProcess(files, guid, number == 0) for number, guid in enumerate(guids or (None,)))
