"""What the recorder leaves of a program is, table by table and column by column, what TraceWriter writes of it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rocpd.schema.load import table
from rocpd.schema.trace.events import (
    MARKER_RANGE,
    Arguments,
    CounterValues,
    Events,
    KernelDispatches,
    MemoryAllocations,
    MemoryCopies,
    Regions,
    Samples,
    marker_ranges,
    marks,
    message_json,
)
from rocpd.schema.trace.infos import (
    AgentInfo,
    CodeObjectInfo,
    CounterInfo,
    KernelInfo,
    NodeInfo,
    ProcessInfo,
    QueueInfo,
    StreamInfo,
    ThreadInfo,
    TrackInfo,
)
from rocpd.schema.trace.writer import TraceWriter
from rocpd.schema.write import create, tables_of
from tests.record.build import Build
from tests.record.runs import CODE, databases, environment, metadata, probe, rows

VERSION = "3.0.0"

TEXTS = {"category_id", "name_id", "region_name_id"}
JSON = {"environment", "extdata", "call_stack", "line_info"}

# What legitimately differs, and why.
NUMBERED = {
    "rocpd_metadata": "lines are numbered in the order in which they come",
    "rocpd_string": "texts are numbered when they are first needed; the recorder asks for some ahead of their event",
    "rocpd_event": "the recorder writes buffer by buffer, and the SDK has a buffer of its own for GPU work",
    "rocpd_arg": "as their events",
    "rocpd_pmc_event": "as their events",
    "rocpd_region": "as their events",
    "rocpd_sample": "as their events",
    "rocpd_kernel_dispatch": "as their events; dispatch_id is the SDK's own number and is compared",
    "rocpd_memory_copy": "as their events",
    "rocpd_memory_allocate": "as their events",
}
"""Tables whose ids count rows; they are compared as sets, and ids of texts and events by what they lead to."""

RECORDED = ("schema_version", "uuid", "guid")
"""Lines of the metadata that every file has; those named `recorder…` say how the recorder fared."""

UNUSED = {"PROCESS_SAMPLE", "timer_sampling", "Python call stack", "Call stack", "MARKER_CORE_API",
          "MARKER_CORE_RANGE_API", "roctxMarkA", "roctxProcessRangeA", "roctxThreadRangeA"}  # fmt: skip
"""Texts that the recorder stores ahead of the event that may name them; so it does with those of arguments, markers."""


def contents(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Return all rows of all tables; ids that only count are gone, those that refer to such rows are resolved."""
    by_table = {base: _records(path, base) for base in tables_of(VERSION)}
    texts = {row["id"]: row["string"] for row in by_table["rocpd_string"]}
    for records in by_table.values():
        for row in records:
            row |= {name: texts.get(row[name], row[name]) for name in TEXTS & row.keys()}
            row |= {name: json.loads(row[name]) for name in JSON & row.keys()}
    events = {row["id"]: {name: row[name] for name in row if name != "id"} for row in by_table["rocpd_event"]}
    for base, records in by_table.items():
        for row in records:
            if "event_id" in row:
                row["event_id"] = events.get(row["event_id"])
            if base in NUMBERED:
                del row["id"]
        records.sort(key=repr)
    return by_table


def _records(path: Path, base: str) -> list[dict[str, Any]]:
    names = [column.name for column in table(base).columns if column.name in tables_of(VERSION)[base]]
    listed = ", ".join(f'"{name}"' for name in names)
    return [dict(zip(names, row, strict=True)) for row in rows(path, f"SELECT {listed} FROM {base}")]


def rewritten(recorded: Path, write: Callable[[TraceWriter, Path], None], folder: Path) -> Path:
    """Write `recorded` again: its node and process as the operating system told them, its events by `write`."""
    node = _records(recorded, "rocpd_info_node")[0]
    process = _records(recorded, "rocpd_info_process")[0]
    written = folder / "written.db"
    with create(written, metadata(recorded)["guid"], VERSION) as file:
        # Neither id nor hash are given: they follow from the machine id by the same rule in both.
        described = NodeInfo(**{name: value for name, value in node.items() if name not in ("id", "guid", "hash")})
        ran = ProcessInfo(**{name: value for name, value in process.items() if name not in ("guid", "nid")})
        trace = TraceWriter(file, described, ran)
        for thread in _records(recorded, "rocpd_info_thread"):
            # Name and times of a thread are the operating system's.
            if thread["start"] is not None:
                seen = {name: thread[name] for name in ("name", "start", "end")}
                trace.register(ThreadInfo(thread["id"], **seen))
        write(trace, recorded)
    return written


def check_alike(recorded: Path, written: Path) -> None:
    theirs, ours = contents(recorded), contents(written)
    recorded_texts, written_texts = (
        {row["string"] for row in by_table.pop("rocpd_string")} for by_table in (theirs, ours)
    )
    of_arguments = {row[name] for row in theirs["rocpd_arg"] for name in ("type", "name")}
    of_markers = {row["extdata"].get("message") for row in theirs["rocpd_event"]}
    assert written_texts <= recorded_texts <= written_texts | of_arguments | of_markers | UNUSED
    theirs["rocpd_metadata"] = [row for row in theirs["rocpd_metadata"] if not row["tag"].startswith("recorder")]
    for base in theirs:
        assert ours[base] == theirs[base], base
    for path in (recorded, written):
        assert rows(path, "PRAGMA integrity_check") == [("ok",)]
        assert rows(path, "PRAGMA foreign_key_check") == []


def _kernel(number: int, symbol: str, shown: str, arch_vgpr_count: int, extdata: str = "{}") -> KernelInfo:
    nothing = dict.fromkeys(
        ("kernel_object", "kernarg_segment_size", "kernarg_segment_alignment", "group_segment_size",
         "private_segment_size", "sgpr_count", "accum_vgpr_count"), 0,
    )  # fmt: skip
    return KernelInfo(number, code_object_id=1, kernel_name=symbol, display_name=shown,
                      arch_vgpr_count=arch_vgpr_count, extdata=extdata, **nothing)  # fmt: skip


def kinds(trace: TraceWriter, recorded: Path) -> None:
    """One event of every kind, as the scenario of that name has it."""
    trace.register(AgentInfo(0, type="CPU", logical_index=0, type_index=0, uuid=11, name="EPYC", model_name="model",
                             vendor_name="AMD", product_name="EPYC", user_name="cpu"))  # fmt: skip
    trace.register(AgentInfo(1, type="GPU", logical_index=1, type_index=0, uuid=12, name="gfx942", model_name="model",
                             vendor_name="AMD", product_name="MI300X", user_name="gpu",
                             extdata='{"cu_count": 304}'))  # fmt: skip
    trace.register(QueueInfo(16, name="Queue 0"))
    trace.register(CodeObjectInfo(1, agent_id=1, uri="file:///a", load_base=4096, load_size=100, load_delta=4096,
                                  storage_type="FILE"))  # fmt: skip
    trace.register(_kernel(1, "kernel.kd", "kernel", arch_vgpr_count=0))
    counter = trace.register(CounterInfo(5, agent_id=1, target_arch="GPU", event_code=5, instance_id=0,
                                         name="SQ_WAVES", value_type="ABS", is_constant=0, is_derived=0))  # fmt: skip
    trace.note("note", 'it\'s "quoted"')
    tid = rows(recorded, "SELECT pid FROM rocpd_info_process")[0][0]
    call = trace.write(
        Regions(start=1000, end=2000, name="hipLaunchKernel", tid=tid,
                event=Events("HIP_RUNTIME_API_EXT", stack_id=100, correlation_id=9))
    )  # fmt: skip
    trace.write(
        Arguments(event_id=call.events[0], position=[0, 1], type=["int", "char*"], name=["n", "s"], value=["42", 'a"b'])
    )
    launched = trace.write(
        KernelDispatches(
            start=1500, end=1600, tid=tid, agent_id=[1, 1, 77], kernel_id=[1, 1, 78], queue_id=[16, 16, 79],
            stream_id=[0, 0, 80], dispatch_id=[1, 2, 3], private_segment_size=0, group_segment_size=0,
            workgroup_size_x=1, workgroup_size_y=1, workgroup_size_z=1, grid_size_x=64, grid_size_y=64, grid_size_z=64,
            region_name=["", "step", ""], event=Events(stack_id=100),
        )
    )  # fmt: skip
    trace.write(CounterValues(event_id=launched.events[:2], pmc_id=counter, value=[64.0, 65.0]))
    trace.write(MemoryCopies(start=3000, end=3100, tid=4242, name="MEMORY_COPY_HOST_TO_DEVICE", dst_agent_id=1,
                             dst_address=0, src_address=0, size=1 << 20))  # fmt: skip
    trace.write(MemoryAllocations(start=1, end=2, tid=tid, agent_id=1, type="FREE", level="VIRTUAL", address=-256,
                                  extdata='{"flags": "FINE_GRAINED"}'))  # fmt: skip
    track = trace.register(TrackInfo(name="temperature"))
    sample = trace.write(Samples(track_id=track, timestamp=5000, event=Events("PROCESS_SAMPLE")))
    trace.write(CounterValues(event_id=sample.events, pmc_id=counter, value=36.6))


def test_one_event_of_every_kind(built: Build, tmp_path: Path) -> None:
    assert probe(built, tmp_path / "out", "kinds").returncode == CODE
    (recorded,) = databases(tmp_path / "out")
    check_alike(recorded, rewritten(recorded, kinds, tmp_path))


GPU, CPU = 2, 0
CALLS = ("HSA_CORE_API", "HSA_AMD_EXT_API", "HSA_IMAGE_EXT_API", "HSA_FINALIZE_EXT_API", "HIP_COMPILER_API_EXT",
         "RCCL_API")  # fmt: skip


class Round:
    """One round of the stand-in: what a thread does under the marker `step 0`, told by the ids of its calls.

    Args:
        trace: file to fill.
        recorded: file of the recorder, for the times alone.
        first: stack id of the marker.
        correlation: external correlation id, 0 for none.
    """

    def __init__(self, trace: TraceWriter, recorded: Path, first: int, correlation: int) -> None:
        self.trace, self.first, self.correlation = trace, first, correlation
        self.tid = rows(recorded, "SELECT pid FROM rocpd_info_process")[0][0]
        self.times = spans(recorded)

    def write(self) -> None:
        first = self.first
        start, end = self.at("rocpd_region", [first, first + 15])
        ranges = self.event(None, [first, first + 15], parent_stack_id=0)
        self.trace.write(marker_ranges(["step 0", "process range"], start, end, self.tid,
                                       ["roctxThreadRangeA", "roctxProcessRangeA"], ranges))  # fmt: skip
        mark = self.event(None, first + 14, parent_stack_id=first)
        track = self.trace.register(TrackInfo(tid=self.tid, name=MARKER_RANGE))
        self.trace.write(marks("mark", self.at("rocpd_sample", [first + 14])[0], track, event=mark))
        self.write_calls()
        self.write_work()
        self.write_memory()

    def write_calls(self) -> None:
        stack = [*range(self.first + 2, self.first + 6), *range(self.first + 8, self.first + 14)]
        start, end = self.at("rocpd_region", stack)
        names = ["hipMemcpy", "hipLaunchKernel", "hipLaunchKernel", "hipMemcpy", *["some_call"] * 6]
        event = self.event(["HIP_RUNTIME_API_EXT"] * 4 + list(CALLS), stack, parent_stack_id=self.first)
        calls = self.trace.write(Regions(start=start, end=end, name=names, tid=self.tid, event=event))
        copied = [("void*", "pointer", "0x1000"), ("unsigned long", "bytes", "4096")]
        launched = [
            [("void const*", "function_address", "0x2012a0"), ("ihipStream_t*", "stream", stream)]
            for stream in ("0x0", "0x5001")
        ]
        for number, arguments in enumerate([copied, *launched, copied]):
            types, named, values = (list(column) for column in zip(*arguments, strict=True))
            self.trace.write(
                Arguments(event_id=calls.events[number], position=[0, 1], type=types, name=named, value=values)
            )

    def write_work(self) -> None:
        launches = [self.first + 3, self.first + 4]
        start, end = self.at("rocpd_kernel_dispatch", launches)
        number = 1 if self.first == 1 else 3
        dispatches = self.trace.write(
            KernelDispatches(
                start=start, end=end, tid=self.tid, agent_id=GPU, kernel_id=[1, 2], queue_id=[16, 17], stream_id=[0, 1],
                dispatch_id=[number, number + 1], private_segment_size=0, group_segment_size=0,
                workgroup_size_x=64, workgroup_size_y=1, workgroup_size_z=1, grid_size_x=6400, grid_size_y=1,
                grid_size_z=1, region_name="step 0", event=self.event(None, launches),
            )
        )  # fmt: skip
        # A row for each instance of the counter; the stand-in has two.
        for instance in (0, 1):
            waves = [float(number + instance), float(number + 1 + instance)]
            self.trace.write(CounterValues(event_id=dispatches.events, pmc_id=1, value=waves))
        copies = [self.first + 2, self.first + 5]
        start, end = self.at("rocpd_memory_copy", copies)
        self.trace.write(
            MemoryCopies(
                start=start, end=end, tid=self.tid, name=["MEMORY_COPY_HOST_TO_DEVICE", "MEMORY_COPY_DEVICE_TO_HOST"],
                dst_agent_id=[GPU, CPU], dst_address=4096, src_agent_id=[CPU, GPU], src_address=0, size=4096,
                stream_id=0, region_name="step 0", event=self.event(None, copies),
            )
        )  # fmt: skip

    def write_memory(self) -> None:
        stack = [self.first + 1, self.first + 6, self.first + 7]
        start, end = self.at("rocpd_memory_allocate", stack)
        # The runtime allocates scratch on its own: inside no call, with nobody's correlation id.
        event = replace(self.event(None, stack), correlation_id=[self.correlation, self.correlation, 0],
                        parent_stack_id=[self.first, self.first, 0])  # fmt: skip
        self.trace.write(
            MemoryAllocations(
                start=start, end=end, tid=self.tid, agent_id=[GPU, None, GPU], type=["ALLOC", "FREE", "ALLOC"],
                level=["REAL", "REAL", "SCRATCH"], address=[0x7F0000001000, 0x7F0000001000, 0], size=[1 << 20, 0, 512],
                queue_id=[0, 0, 17], stream_id=0, extdata=["{}", "{}", '{"flags": "1"}'], event=event,
            )
        )  # fmt: skip

    def at(self, base: str, stack: list[int]) -> tuple[list[int], list[int]]:
        start, end = zip(*(self.times[base, number] for number in stack), strict=True)
        return list(start), list(end)

    def event(self, category: Any, stack: Any, **more: Any) -> Events:
        return Events(category, stack, correlation_id=self.correlation, **more)


def spans(recorded: Path) -> dict[tuple[str, int], tuple[int, int]]:
    """Return start and end of everything, by table and stack id: the clock is the machine's."""
    by_table: dict[tuple[str, int], tuple[int, int]] = {}
    for base in ("rocpd_region", "rocpd_kernel_dispatch", "rocpd_memory_copy", "rocpd_memory_allocate"):
        sql = f'SELECT E.stack_id, start, "end" FROM {base} JOIN rocpd_event E ON E.id = event_id'
        by_table |= {(base, stack): (start, end) for stack, start, end in rows(recorded, sql)}
    sql = "SELECT E.stack_id, timestamp FROM rocpd_sample JOIN rocpd_event E ON E.id = event_id"
    by_table |= {("rocpd_sample", stack): (time, time) for stack, time in rows(recorded, sql)}
    return by_table


def gpu_work(trace: TraceWriter, recorded: Path) -> None:
    """Two rounds of the stand-in, the first with an external correlation id."""
    hardware = dict(rows(recorded, "SELECT id, extdata FROM rocpd_info_agent"))
    trace.register(AgentInfo(CPU, type="CPU", logical_index=0, type_index=0, uuid=0, name="AMD EPYC", model_name="",
                             vendor_name="CPU", product_name="AMD EPYC", user_name="AMD EPYC",
                             extdata=hardware[CPU]))  # fmt: skip
    for number in (GPU, GPU + 1):
        trace.register(AgentInfo(number, type="GPU", logical_index=number - 1, type_index=number - GPU, uuid=29857,
                                 name="gfx942", model_name="", vendor_name="AMD", product_name="AMD Instinct MI300X",
                                 user_name="AMD Instinct MI300X", extdata=hardware[number]))  # fmt: skip
    code = dict(rows(recorded, "SELECT id, extdata FROM rocpd_info_code_object"))
    trace.register(CodeObjectInfo(1, agent_id=GPU, uri="memory://1#offset=0x10&size=32", load_base=4096, load_size=8192,
                                  load_delta=0, storage_type="MEMORY", extdata=code[1]))  # fmt: skip
    symbols = dict(rows(recorded, "SELECT id, extdata FROM rocpd_info_kernel_symbol"))
    gemm = "void gemm<float>(float*, float*)"
    trace.register(_kernel(1, "_Z4gemmIfEvPT_S1_.kd", gemm, arch_vgpr_count=32, extdata=symbols[1]))
    trace.register(_kernel(2, "reduce.kd", "reduce", arch_vgpr_count=32, extdata=symbols[2]))
    trace.register(CounterInfo(1, agent_id=GPU, target_arch="GPU", event_code=1, instance_id=0, name="SQ_WAVES",
                               description="of the stand-in", component="rocm", value_type="ABS",
                               block="SQ", expression="", is_constant=0, is_derived=0,
                               extdata=hardware[GPU]))  # fmt: skip
    for number in (16, 17):  # in the order in which kernels ran in them
        trace.register(QueueInfo(number, name=f"Queue {number - 16}"))
    for first, correlation in ((1, 1001), (17, 0)):
        Round(trace, recorded, first, correlation).write()


def run_client(built: Build, folder: Path, scenario: str) -> Path:
    """Record a scenario of the stand-in SDK in the main thread; nothing is flushed before the end."""
    settings = {"LD_PRELOAD": str(built.lib / "librocpd-tool.so"), "ROCPD_FLUSH_MS": "60000",
                "ROCPD_COUNTERS": "SQ_WAVES", "ROCPD_TOOL_TOLD": "1",
                "ROCPD_TRACE": "hip,hsa,marker,kernel,memcpy,alloc,scratch,rccl,counters"}  # fmt: skip
    done = subprocess.run([str(built.program("client_probe")), "0", "1", scenario], check=False,
                          env=environment(folder, **settings))  # fmt: skip
    assert done.returncode == CODE
    (recorded,) = databases(folder)
    return recorded


def test_gpu_work_under_markers(built: Build, tmp_path: Path) -> None:
    recorded = run_client(built, tmp_path / "out", "correlate")
    check_alike(recorded, rewritten(recorded, gpu_work, tmp_path))


def unfinished(trace: TraceWriter, recorded: Path) -> None:
    """Ranges that nobody ended, in two threads, and one that ended while recording was paused."""
    for base, records in (("agent", AgentInfo), ("code_object", CodeObjectInfo), ("kernel_symbol", KernelInfo),
                          ("stream", StreamInfo), ("pmc", CounterInfo)):  # fmt: skip
        # What no event names: the test before compares it.
        for row in _records(recorded, f"rocpd_info_{base}"):
            trace.register(
                records(**{name: value for name, value in row.items() if name not in ("guid", "nid", "pid")})
            )
    tids = dict(rows(recorded, "SELECT E.stack_id, tid FROM rocpd_region JOIN rocpd_event E ON E.id = event_id"))
    times = spans(recorded)
    ranges = [("open", "roctxThreadRangeA"), ("open process range", "roctxProcessRangeA")]
    for stack, (text, name) in zip(sorted(tids), [*ranges, ("across", "roctxThreadRangeA"), *ranges], strict=True):
        extdata = message_json(text) if text == "across" else message_json(text, unfinished=True)
        start, end = times["rocpd_region", stack]
        event = Events(MARKER_RANGE, stack, extdata=extdata)
        trace.write(Regions(start=start, end=end, name=name, tid=tids[stack], event=event))


def test_ranges_that_nobody_ends(built: Build, tmp_path: Path) -> None:
    recorded = run_client(built, tmp_path / "out", "open")
    check_alike(recorded, rewritten(recorded, unfinished, tmp_path))
