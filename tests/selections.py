"""The events that windows and filters select: events of a job as a list, and in Python what a command line asks for.

Jobs made by hand and real files, whose events are read with Python's own sqlite3 and pandas, go through the same few
lines. Nothing here asks rocpd.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from tests.build import CPU, GPU, GPU2, TraceBuilder

MS = 1_000_000
BASE = 5_000_000_000
AWAY = 7_000_000_000
"""How far the clock of the second host is off."""
SHIFTS = {1: 2 * MS}
"""How much later a rank does everything."""

GPU_KINDS = ("kernels", "memory_copies", "memory_allocations", "graph_launches")
STREAMED = GPU_KINDS[:3]


@dataclass(frozen=True)
class Event:
    """One event: times [ns] as recorded and on the common time line differ by `offset`.

    Args:
        kind: the view that shows it; markers, ranges and marks, are of kind `markers`.
        name: kernel, direction, operation and level, function or message.
        start, end: on the common time line [ns].
        offset: what is added to them to get the recorded ones.
        domain, category: what `--category` goes by.
        agents, stream: where GPU work ran.
        owns: names of its arguments and counters.
    """

    rank: int
    kind: str
    name: str | None
    start: int
    end: int
    offset: int
    domain: str
    category: str | None
    agents: frozenset[int] = frozenset()
    stream: int | None = None
    owns: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Spec:
    """What a command line asks for; None: everything. `wanted` are domains and categories, other names as options.

    `marked` are the sides, `start` and `end`, that each rank has at a marker of its own: later where it is later.
    """

    start: int | None = None
    end: int | None = None
    inclusive: bool = True
    clip: bool = False
    ranks: frozenset[int] | None = None
    agents: frozenset[int] | None = None
    streams: frozenset[int] | None = None
    wanted: frozenset[str] | None = None
    kernel: str | None = None
    exclude: str | None = None
    marked: frozenset[str] = frozenset()

    def of(self, events: Iterable[Event], *, as_amd: bool = False) -> list[Event]:
        """Return the events that count, cut at the edges with `clip`; `as_amd`: as AMD's converters count."""
        selected = [event for event in events if self._passes(event) and self._in_window(event, as_amd)]
        if not self.clip:
            return selected
        return [event if event.kind == "samples" else self._cut(event) for event in selected]

    def _cut(self, event: Event) -> Event:
        low, high = self._edges(event.rank)
        return dataclasses.replace(event, start=max(event.start, int(low)), end=min(event.end, int(high)))

    def _edges(self, rank: int) -> tuple[float, float]:
        low, high = -(10**18) if self.start is None else self.start, 10**18 if self.end is None else self.end
        later = SHIFTS.get(rank, 0)
        return low + later * ("start" in self.marked), high + later * ("end" in self.marked)

    def _passes(self, event: Event) -> bool:
        named = event.name is not None
        kernel = event.kind == "kernels"
        return (
            (self.ranks is None or event.rank in self.ranks)
            and (self.agents is None or event.kind not in GPU_KINDS or bool(event.agents & self.agents))
            and (self.streams is None or event.kind not in STREAMED or event.stream in self.streams)
            and (self.wanted is None or event.domain in self.wanted or event.category in self.wanted)
            and (self.kernel is None or not kernel or (named and re.search(self.kernel, str(event.name)) is not None))
            and (self.exclude is None or not (kernel and named and re.search(self.exclude, str(event.name))))
        )

    def _in_window(self, event: Event, as_amd: bool) -> bool:
        low, high = self._edges(event.rank)
        starts, ends = low <= event.start < high, low < event.end <= high
        if event.start == event.end:
            return starts
        if self.clip or (self.inclusive and not as_amd):
            return event.end > low and event.start < high
        return starts or ends if self.inclusive else starts and ends


Words: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Job:
    """Files and their events."""

    folder: Path
    events: tuple[Event, ...]


# --- the job made by hand


def build(number: int, shift: int, clock: int, host: str) -> tuple[TraceBuilder, list[Event]]:
    """Fill one rank, and list its events: times in ms from the start of the time line, moved by `shift` ms."""
    trace = TraceBuilder(number, pid=100 + number, host=host)
    events: list[Event] = []

    def at(kind: str, name: str | None, start: float, end: float, *rest: Any, **more: Any) -> tuple[int, int]:
        begin, finish = (int((time + shift) * MS) for time in (start, end))
        events.append(Event(number, kind, name, BASE + begin, BASE + finish, clock, *rest, **more))
        return BASE + begin + clock, BASE + finish + clock

    hip = ("HIP", "HIP_RUNTIME_API_EXT")
    trace.region("hipMalloc", *at("regions", "hipMalloc", 0, 20, *hip, owns=(("region_args", "size"),)))
    trace.arg("size", "4096")
    category = "HSA_CORE_API"
    trace.region("hsa_init", *at("regions", "hsa_init", 1, 9, "HSA", category), category=category)
    category = "RCCL_API"
    trace.region("ncclAllReduce", *at("regions", "ncclAllReduce", 75, 210, "RCCL", category), category=category)
    trace.region("sync", *at("regions", "sync", 340, 520, *hip))
    trace.region("bare", *at("regions", "bare", 550, 560, "OTHER", None), event_id=None)
    for name, start, end in (("step", 0, 300), ("forward", 10, 100), ("step", 300, 620), ("step #2", 640, 985)):
        times = at("markers", name, start, end, "MARKERS", "MARKER_CORE_RANGE_API")
        trace.region("roctxRangePushA", *times, message=name)
    # Of another name on the other host: no collective of both says how their clocks are aligned.
    communication = "nccl_ar" if clock == 0 else "nccl_ag"
    work: tuple[tuple[str | None, int, int, int, int], ...] = (
        ("gemm_a", 30, 60, GPU, 0), (communication, 80, 200, GPU2, 5), ("gemm_b<1>", 190, 350, GPU, 0),
        ("relu", 400, 400, GPU, 5), (None, 500, 510, GPU, 0), ("gemm_a", 700, 750, GPU2, 5),
    )  # fmt: skip
    for kernel, start, end, agent, stream in work:
        owns = (("pmc_events", "SQ_WAVES"),) if start == 30 else ()
        place: dict[str, Any] = {"agents": frozenset({agent}), "stream": stream, "owns": owns}
        times = at("kernels", kernel, start, end, "KERNELS", "KERNEL_DISPATCH", **place)
        trace.kernel(kernel, *times, agent=agent, stream=stream)
        if owns:
            trace.counter("SQ_WAVES", 64.0)
    for name, start, end, src, dst, agent, stream in (
        ("HOST_TO_DEVICE", 25, 28, CPU, GPU, GPU, 0),
        ("DEVICE_TO_DEVICE", 360, 380, GPU, GPU2, GPU2, 5),
        ("DEVICE_TO_HOST", 760, 800, GPU2, CPU, GPU2, 0),
        ("HOST_TO_HOST", 802, 810, CPU, CPU, CPU, 0),
    ):
        place = {"agents": frozenset({agent}), "stream": stream}
        times = at("memory_copies", name, start, end, "MEMORY_COPIES", "MEMORY_COPY", **place)
        trace.copy(*times, name=name, src=src, dst=dst, stream=stream)
    for kind, level, start, end, agent, stream, domain in (
        ("ALLOC", "REAL", 21, 22, GPU, 0, ("MEMORY_ALLOCATIONS", "MEMORY_ALLOCATION")),
        ("ALLOC", "SCRATCH", 32, 33, GPU2, 5, ("SCRATCH_MEMORY", "SCRATCH_MEMORY")),
        ("FREE", "REAL", 900, 901, GPU, 0, ("MEMORY_ALLOCATIONS", "MEMORY_ALLOCATION")),
    ):
        place = {"agents": frozenset({agent}), "stream": stream}
        times = at("memory_allocations", f"{kind} {level}", start, end, *domain, **place)
        trace.alloc(*times, kind=kind, level=level, agent=agent, stream=stream)
    time, _ = at("markers", "here", 150, 150, "MARKERS", "MARKER_CORE_API")
    trace.sample("roctxMarkA", time, message="here")
    time, _ = at("samples", "GPU power", 410, 410, "SMI", "rocm_smi", owns=(("pmc_events", "watt"),))
    trace.sample("GPU power", time, category="rocm_smi").counter("watt", 300.5)
    trace.graph_launch(*at("graph_launches", "1", 600, 610, *hip, agents=frozenset({GPU})))
    return trace, events


def make(folder: Path) -> Job:
    """Write the job made by hand."""
    events: list[Event] = []
    for number, (shift, clock, host) in enumerate(((0, 0, "n0"), (2, 0, "n0"), (0, AWAY, "n1"))):
        trace, of_rank = build(number, shift, clock, host)
        if number == 2:
            last = Event(2, "regions", "last", BASE + 990 * MS, BASE + 1000 * MS, clock, "HIP", "HIP_RUNTIME_API_EXT")
            trace.region("last", last.start + clock, last.end + clock)
            of_rank.append(last)
        trace.write(folder / f"{number}.db")
        events += of_rank
    return Job(folder, tuple(events))


def ms(start: float | None = None, end: float | None = None, **more: Any) -> Spec:
    """Return a window in ms from the start of the time line."""
    times = [None if time is None else BASE + round(time * MS) for time in (start, end)]
    return Spec(times[0], times[1], **more)


def some(*values: Any) -> frozenset[Any]:
    """Return a set that can be a field of a `Spec`."""
    return frozenset(values)


TIMES: tuple[tuple[Words, Spec], ...] = (
    (("--start", "30%"), ms(300)),
    (("--end", "50.5%"), ms(None, 505)),
    (("--start", "12.5ms"), ms(12.5)),
    (("--start", ".12345s"), ms(123.45)),
    (("--start", "+505ms"), ms(505)),
    (("--start", "-90ms"), ms(910)),
    (("--start=-0.995s", "--end=-240000us"), ms(5, 760)),
    (("--start", str(BASE + 190 * MS), "--end", str(BASE + 350 * MS)), ms(190, 350)),
    (("--start", str(BASE + 190 * MS + 1), "--end", str(BASE + 350 * MS - 1)), ms(190.000001, 349.999999)),
    (("--start", "0%", "--end", "100%"), ms()),
    (("--start", "400ms", "--end", "40.2%"), ms(400, 402)),
)
START, END, BOTH = some("start"), some("end"), some("start", "end")
MARKERS: tuple[tuple[Words, Spec], ...] = (
    (("--start-marker", "forward"), ms(10, marked=START)),
    (("--start-marker", "forward", "--end-marker", "forward"), ms(10, 100, marked=BOTH)),
    (("--start-marker", "step#1", "--end-marker", "step#2"), ms(None, 620, marked=END)),
    (("--start-marker", "step#2", "--end-marker", "step#2"), ms(300, 620, marked=BOTH)),
    (("--start-marker", "step #2"), ms(640, marked=START)),
    (("--start-marker", "/^step$/#2", "--end-marker", "/^step #/", "--clip"), ms(300, 985, marked=BOTH, clip=True)),
    (("--start-marker", "/^f.*d$/", "--end", "20%"), ms(10, 200, marked=START)),
    (("--start-marker", "here"), ms(150, marked=START)),
    (("--start-marker", "forward", "--category", "KERNELS"), ms(10, wanted=some("KERNELS"), marked=START)),
    (("--end-marker", "step#2", "--category", "hip"), ms(None, 620, wanted=some("HIP"), marked=END)),
    (("--step", "1"), ms(300, 620, marked=BOTH)),
    (("--step", "step #2", "--clip"), ms(640, 985, marked=BOTH, clip=True)),
    (("--step", "/^forward/"), ms(10, 100, marked=BOTH)),
)
KERNELS: tuple[tuple[Words, Spec], ...] = (
    (("--window-kernel", "^gemm"), ms(30, 752)),
    (("--window-kernel", "nccl", "--clip"), ms(80, 202, clip=True)),
    (("--auto-roi",), ms(190, 352)),
    (("--auto-roi", "--exclude-kernel", "gemm_b"), ms(80, 202, exclude="gemm_b")),
    (("--auto-roi", "--agent", "GPU-1", "--clip"), ms(80, 202, agents=some(GPU2), clip=True)),
)
FORMS: tuple[tuple[Words, Spec], ...] = (
    (("--start", "200ms", "--end", "405ms", "--inclusive", "False"), ms(200, 405, inclusive=False)),
    (("--start", "200ms", "--end", "405ms", "--inclusive", "no"), ms(200, 405, inclusive=False)),
    (("--start", "200ms", "--end", "405ms", "--inclusive", "TRUE"), ms(200, 405)),
    (("--start", "200ms", "--end", "405ms", "--clip"), ms(200, 405, clip=True)),
    (("--start", "355ms", "--end", "41%", "--clip"), ms(355, 410, clip=True)),
    (("--end", "100ms", "--clip"), ms(None, 100, clip=True)),
    (("--start", "890ms", "--clip"), ms(890, clip=True)),
)
FILTERS: tuple[tuple[Words, Spec], ...] = (
    (("--rank", "0,2"), Spec(ranks=some(0, 2))),
    (("--rank", "1-8"), Spec(ranks=some(1, 2))),
    (("--host", "n1"), Spec(ranks=some(2))),
    (("--host", "n0,elsewhere", "--rank", "1-2"), Spec(ranks=some(1))),
    (("--agent", "2"), Spec(agents=some(GPU2))),
    (("--agent", "GPU-0"), Spec(agents=some(GPU))),
    (("--agent", "agent 1,gpu1"), Spec(agents=some(GPU, GPU2))),
    (("--agent", "CPU-0"), Spec(agents=some(CPU))),
    (("--stream", "0-4"), Spec(streams=some(0))),
    (("--stream", "1-5,9"), Spec(streams=some(5))),
    (("--category", "HIP,MARKER"), Spec(wanted=some("HIP", "MARKERS"))),
    (("--category", "hip_runtime_api_ext"), Spec(wanted=some("HIP_RUNTIME_API_EXT"))),
    (("--category", "kernels,MEMORY_COPY"), Spec(wanted=some("KERNELS", "MEMORY_COPIES"))),
    (("--category", "scratch,SMI,OTHER"), Spec(wanted=some("SCRATCH_MEMORY", "SMI", "OTHER"))),
    (("--category", "allocations,RCCL_API"), Spec(wanted=some("MEMORY_ALLOCATIONS", "RCCL_API"))),
    (("--kernel", "^gemm"), Spec(kernel="^gemm")),
    (("--kernel", "b<1>|relu"), Spec(kernel="b<1>|relu")),
    (("--exclude-kernel", "gemm"), Spec(exclude="gemm")),
    (("--kernel", "e", "--exclude-kernel", "_a$"), Spec(kernel="e", exclude="_a$")),
)
TOGETHER: tuple[tuple[Words, Spec], ...] = (
    # Ranks that are left out are left out of the time line too: half of rank 1's own is at 497 ms.
    (("--rank", "1", "--start", "50%"), ms(2 + 0.5 * 985, ranks=some(1))),
    (("--host", "n1", "--end", str(BASE + AWAY + 100 * MS)), ms(None, 100, ranks=some(2))),
    (
        ("--rank", "0-1", "--agent", "GPU-1", "--stream", "5", "--kernel", "nccl", "--end", "150ms", "--clip"),
        ms(None, 150, clip=True, ranks=some(0, 1), agents=some(GPU2), streams=some(5), kernel="nccl"),
    ),
    (
        ("--category", "KERNELS,HIP", "--exclude-kernel", "nccl", "--start", "55ms", "--inclusive", "False"),
        ms(55, inclusive=False, wanted=some("KERNELS", "HIP"), exclude="nccl"),
    ),
)
CASES = (*TIMES, *MARKERS, *KERNELS, *FORMS, *FILTERS, *TOGETHER)


# --- real files: events read with sqlite3 and pandas


def real_job(files: Sequence[Path]) -> Job:
    """List the kernels and regions of some real files; each ran on a machine of its own and so starts the time line."""
    selected: list[tuple[Any, ...]] = []
    for path in files:
        with contextlib.closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as connection:
            names = pd.read_sql("SELECT name FROM sqlite_master WHERE type = 'table'", connection)["name"]
            suffix = next(name.removeprefix("rocpd_region") for name in names if name.startswith("rocpd_region_"))

            def table(base: str) -> pd.DataFrame:
                return pd.read_sql(f'SELECT * FROM "rocpd_{base}{suffix}"', connection, index_col="id")  # noqa: B023

            strings = table("string")["string"]
            host, pid = table("info_node")["hostname"].iloc[0], table("info_process")["pid"].iloc[0]
            machine = table("info_node")["machine_id"].iloc[0]
            dispatches, regions = table("kernel_dispatch"), table("region")
            kernels = dispatches.join(table("info_kernel_symbol")["display_name"].rename("name"), on="kernel_id")
            regions = regions.join(strings.rename("name"), on="name_id").join(
                table("event")["category_id"], on="event_id"
            )
            regions["category"] = regions["category_id"].map(strings)
            selected.append((host, int(pid), suffix, machine, kernels, regions))
    selected.sort(key=lambda one: one[:3])
    starts: dict[str, int] = {}  # runs on one machine have one clock
    for *_, machine, kernels, regions in selected:
        first = int(min(kernels["start"].min(), regions["start"].min()))
        starts[machine] = min(first, starts.get(machine, first))
    events: list[Event] = []
    for number, (*_, machine, kernels, regions) in enumerate(selected):
        offset = starts[machine] - min(starts.values())
        for row in kernels.itertuples():
            place = (int(row.start) - offset, int(row.end) - offset, offset)
            ran = (frozenset({int(row.agent_id)}), int(row.stream_id))
            events.append(Event(number, "kernels", row.name, *place, "KERNELS", "KERNEL_DISPATCH", *ran))
        for row in regions.itertuples():
            place = (int(row.start) - offset, int(row.end) - offset, offset)
            events.append(Event(number, "regions", row.name, *place, "HIP", row.category))
    return Job(files[0].parent, tuple(events))


def windows_of(job: Job) -> list[tuple[Words, Spec]]:
    """What is asked of real files; times are worked out from the events."""
    first, last = min(e.start for e in job.events), max(e.end for e in job.events)
    kernels = pd.DataFrame([(e.name, e.start, e.end, e.end - e.start) for e in job.events if e.kind == "kernels"])
    kernels.columns = pd.Index(["name", "start", "end", "time"])
    hot = kernels[kernels["name"] == kernels.groupby("name")["time"].sum().idxmax()]
    fills = kernels[kernels["name"].str.contains("fillBuffer")]
    part = first + round((last - first) * 3 / 10)
    of_rank = [e for e in job.events if e.rank == 1]
    middle = min(e.start for e in of_rank) + round((max(e.end for e in of_rank) - min(e.start for e in of_rank)) / 2)
    return [
        ((), Spec()),
        (("--start", "30%", "--clip"), Spec(part, clip=True)),
        (("--start", "30%", "--end", "-2ms", "--inclusive", "False"), Spec(part, last - 2 * MS, inclusive=False)),
        (("--auto-roi",), Spec(int(hot["start"].min()), int(hot["end"].max()))),
        (("--window-kernel", "fillBuffer"), Spec(int(fills["start"].min()), int(fills["end"].max()))),
        (("--exclude-kernel", "fillBuffer", "--rank", "0"), Spec(exclude="fillBuffer", ranks=some(0))),
        (("--rank", "1", "--end", "50%"), Spec(end=middle, ranks=some(1))),
        (("--category", "HIP_COMPILER_API_EXT"), Spec(wanted=some("HIP_COMPILER_API_EXT"))),
        (("--agent", "GPU-0", "--category", "KERNELS"), Spec(wanted=some("KERNELS"), agents=some(2))),
    ]
