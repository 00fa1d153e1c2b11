"""Workload folders of rocprof-compute: `sysinfo.csv`, and `pmc_perf.csv`, wide (a column for each counter) or long.

Versions of 2026 write `results_*.csv.gz` instead, which are long, a file for each pass.

The program ran once for each pass, because a GPU can count few things at a time. All passes share the dispatches of one
run: each counter value has its pass and the times of its measurement in its extdata. So passes are neither ranks nor
kernels.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rocpd.base import frozen
from rocpd.importers.files import TraceSource, TraceTarget
from rocpd.importers.signs import SYSTEM, files_of_counters
from rocpd.importers.words import ONE_ROW, Registered, counter_of, gpu
from rocpd.schema.trace.events import CounterValues, KernelDispatches
from rocpd.schema.trace.infos import KernelInfo, NodeInfo, ProcessInfo
from rocpd.schema.trace.writer import TraceWriter

_TIMES = "timestamps.csv"
_SIZES = {
    "lds_per_workgroup": "group_segment_size", "scratch_per_workitem": "private_segment_size",
    "workgroup_size": "workgroup_size_x", "grid_size": "grid_size_x",
}  # fmt: skip
_REGISTERS = {"arch_vgpr": "arch_vgpr_count", "accum_vgpr": "accum_vgpr_count", "sgpr": "sgpr_count"}
_REPEAT = re.compile(r"(\w+)_\d+")
_NEXT_PASS = re.compile(r"wave_size_\d+")
_NO_COUNTER = re.compile(
    r"(wave_size|obj|sig|correlation_id|xcc_index|queue[-_]id|queue-index|pid|tid|dispatchns|completens)(_\d+)?"
    r"|guid|dispatch_id|kernel_name|kernel_id|gpu_id|(start|end)_timestamp|" + "|".join([*_SIZES, *_REGISTERS])
)
_FACTS = {
    "cu_count": "cu_per_gpu", "wave_front_size": "wave_size", "num_xcc": "num_xcd", "simd_per_cu": "simd_per_cu",
    "max_engine_clk_fcompute": "max_sclk", "max_waves_per_cu": "max_waves_per_cu",
    "workgroup_max_size": "workgroup_max_size", "array_count": "se_per_gpu",
    **{name: name for name in (
        "total_l2_chan", "lds_banks_per_cu", "sqc_per_gpu", "pipes_per_gpu", "num_hbm_channels",
    )},
}  # fmt: skip
"""Name of a GPU's property in rocprofv3's files -> column of `sysinfo.csv`."""
_ACCUMULATED = "SQ_ACCUM_PREV_HIRES"
_CLONE = re.compile(r"( \[clone )?( \()?\.kd[\])]?$")


@frozen
class CounterValue:
    """A counter of a dispatch, and the pass in which it was measured: its number from 1, start and end [ns].

    A value that another pass measured as well `is_repeat`: its name ends in the pass, so that the two are not added up.
    """

    dispatch: int
    counter: str
    value: float
    number: int
    times: tuple[int, int] | None = None
    is_repeat: bool = False

    @property
    def name(self) -> str:
        """The name of the counter in the file."""
        return f"{self.counter}_{self.number}" if self.is_repeat else self.counter


@frozen
class CountedProgram:
    """The program whose counters a folder holds.

    Args:
        dispatches: number of a dispatch -> its first row.
        values: values of counters.
        system: properties of the machine that it ran on.
        passes: number of runs of the program.
    """

    dispatches: Mapping[int, Mapping[str, str]]
    values: tuple[CounterValue, ...]
    system: Mapping[str, str]
    passes: int


def read(source: TraceSource, target: TraceTarget) -> None:
    """Write the program of a workload folder."""
    workload = _workload(source.path)
    system = workload.system
    node = NodeInfo(
        machine_id=f"rocprof-compute-{source.digest}",
        hostname=system.get("hostname"),
        system_name=system.get("linux_distro"),
        release=system.get("linux_kernel_version"),
    )
    pids = [row["pid"] for row in workload.dispatches.values() if row.get("pid", "").isdigit()]
    process = ProcessInfo(
        int(pids[0]) if pids else 1,
        command=system.get("command"),
        extdata=json.dumps({"passes": workload.passes, "workload": system.get("workload_name")}),
    )
    with target.rank(system.get("workload_name") or "workload", node, process) as trace:
        _write(trace, workload)
        for name, value in system.items():
            trace.note(f"rocprof-compute::{name}", value)


def _rows(path: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of a file by headers in small letters; of repeated headers the first counts."""
    if not path.exists():
        return
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", newline="", encoding="utf-8", errors="replace") as file:
        lines = csv.reader(file)
        header = next(lines, [])
        for line in lines:
            row: dict[str, str] = {}
            for name, text in zip(header, line, strict=False):
                row.setdefault(name if _is_counter(name) else name.lower(), text)
            yield row


def _is_counter(name: str) -> bool:
    return not _NO_COUNTER.fullmatch(name.lower())


def _workload(path: Path) -> CountedProgram:
    rows = [row for name in files_of_counters([file.name for file in path.iterdir()]) for row in _rows(path / name)]
    times = {row["dispatch_id"]: row for row in _rows(path / _TIMES) if "dispatch_id" in row}
    dispatches: dict[int, dict[str, str]] = {}
    for row in rows:
        known = {name: text for name, text in times.get(row["dispatch_id"], {}).items() if not _is_counter(name)}
        dispatches.setdefault(int(row["dispatch_id"]), {**known, **row})
    values = list(_long(rows) if rows and "Counter_Name" in rows[0] else _wide(rows))
    values += _levels(path, values)
    with (path / SYSTEM).open(newline="", encoding="utf-8", errors="replace") as file:
        system = next(csv.DictReader(file), {})
    return CountedProgram(dispatches, tuple(values), system, max((value.number for value in values), default=0))


def _long(rows: list[dict[str, str]]) -> Iterator[CounterValue]:
    """Yield values that have a row each; a run of a dispatch at another time is another pass."""
    runs: dict[int, dict[tuple[int, int], int]] = {}
    known: dict[tuple[int, str], int] = {}
    for row in rows:
        dispatch, times = int(row["dispatch_id"]), (int(row["start_timestamp"]), int(row["end_timestamp"]))
        number = runs.setdefault(dispatch, {}).setdefault(times, len(runs[dispatch]) + 1)
        counter = row["Counter_Name"]
        is_repeat = known.setdefault((dispatch, counter), number) != number
        yield CounterValue(dispatch, counter, float(row["Counter_Value"]), number, times, is_repeat)


def _wide(rows: list[dict[str, str]]) -> Iterator[CounterValue]:
    """Yield values that have a column each; columns of a pass follow the columns that repeat for each pass."""
    for row in rows:
        number = 1
        for name, text in row.items():
            if _NEXT_PASS.fullmatch(name):
                number += 1
            elif _is_counter(name) and text:
                again = _REPEAT.fullmatch(name)
                is_repeat = again is not None and again[1] in row
                counter = again[1] if again and is_repeat else name
                yield CounterValue(int(row["dispatch_id"]), counter, float(text), number, is_repeat=is_repeat)


def _levels(path: Path, joined: Sequence[CounterValue]) -> Iterator[CounterValue]:
    """Yield the values of further files, each of a separate pass: numbers of instructions or waves under way.

    All have them under one name, which belongs to the counter in the name of the file.
    """
    known = {(value.dispatch, value.counter) for value in joined}
    number = max((value.number for value in joined), default=0)
    for file in sorted(path.glob("SQ_*.csv")):
        number += 1
        for row in _rows(file):
            dispatch, times = int(row["dispatch_id"]), (int(row["start_timestamp"]), int(row["end_timestamp"]))
            for name, text in row.items():
                counter = f"{file.stem}_ACCUM" if name == _ACCUMULATED else name
                if _is_counter(name) and text:
                    yield CounterValue(dispatch, counter, float(text), number, times, (dispatch, counter) in known)
                    known.add((dispatch, counter))


def _write(trace: TraceWriter, workload: CountedProgram) -> None:
    agents = _agents(trace, workload)
    events: dict[int, int] = {}
    counters = Registered(trace, lambda key: counter_of(*key))
    for number, row in workload.dispatches.items():
        name = _CLONE.sub("", row["kernel_name"])
        registers: dict[str, Any] = {field: _whole(row.get(column)) for column, field in _REGISTERS.items()}
        sizes: dict[str, Any] = {field: _whole(row.get(column)) or 0 for column, field in _SIZES.items()}
        kernel = trace.register(KernelInfo(display_name=name, **registers))
        dispatch = KernelDispatches(
            start=_whole(row.get("start_timestamp")) or 0, end=_whole(row.get("end_timestamp")) or 0,
            agent_id=agents[row["gpu_id"]], kernel_id=kernel, dispatch_id=number, **sizes, **ONE_ROW,
        )  # fmt: skip
        events[number] = trace.write(dispatch).events[0]
    if workload.values:
        ran_on = [agents[workload.dispatches[value.dispatch]["gpu_id"]] for value in workload.values]
        of_gpus = zip(ran_on, workload.values, strict=True)
        trace.write(CounterValues(
            event_id=[events[value.dispatch] for value in workload.values],
            pmc_id=[counters[agent, value.name, value.counter] for agent, value in of_gpus],
            value=[value.value for value in workload.values],
            extdata=[json.dumps(_pass(value, workload.passes)) for value in workload.values],
        ))  # fmt: skip


def _pass(value: CounterValue, passes: int) -> dict[str, int]:
    times = dict(zip(("start", "end"), value.times, strict=True)) if value.times else {}
    return {"pass": value.number, "passes": passes, **times}


def _agents(trace: TraceWriter, workload: CountedProgram) -> dict[str, int]:
    """Register the GPUs that dispatches ran on; return them by their names in the folder."""
    system = workload.system
    agents = {}
    for device, name in enumerate(sorted({row["gpu_id"] for row in workload.dispatches.values()})):
        clock = _whole(system.get("max_mclk"))
        facts = {fact: _whole(system.get(column)) for fact, column in _FACTS.items()}
        facts["simd_arrays_per_engine"] = 1 if facts["array_count"] else None  # `se_per_gpu` counts engines
        banks = [{"heap_type": 1, "mem_clk_max": clock}] if clock else None
        info = gpu(device, system.get("gpu_model"), None, {**facts, "gpu_id": _whole(name), "mem_banks": banks}, "AMD")
        agents[name] = trace.register(replace(info, name=system.get("gpu_arch") or info.name))
    return agents


def _whole(text: str | None) -> int | None:
    """Return a whole number from text such as `1700` or `1700.0`; None for any other text."""
    try:
        return int(float(text or ""))
    except ValueError:
        return None
