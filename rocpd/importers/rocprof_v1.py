"""CSV files of the first rocprof (`results.csv`): a line for each kernel, with its counters.

They have neither the architecture of the GPUs nor the launches of kernels. Without `--timestamp on` there are no times:
kernels then count as having invalid ones, in the order of the file.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rocpd.importers.files import TraceSource, TraceTarget
from rocpd.importers.signs import ROCPROF_COLUMNS
from rocpd.importers.words import ONE_ROW, counter_of, gpu, write_values
from rocpd.schema.rules.kernel_names import without_kd
from rocpd.schema.trace.events import KernelDispatches
from rocpd.schema.trace.infos import KernelInfo, NodeInfo, ProcessInfo
from rocpd.schema.trace.writer import TraceWriter

_NO_COUNTERS = ROCPROF_COLUMNS | {
    "queue-id", "queue-index", "pid", "tid", "lds", "scr", "vgpr", "arch_vgpr", "accum_vgpr", "sgpr", "fbar",
    "wave_size", "sig", "obj", "dispatchns", "beginns", "endns", "completens", "durationns",
}  # fmt: skip
_SIZES = {
    "grd": "grid_size_x", "wgr": "workgroup_size_x", "lds": "group_segment_size", "scr": "private_segment_size",
    "queue-id": "queue_id", "tid": "tid", "index": "dispatch_id", "beginns": "start", "endns": "end",
}  # fmt: skip
_REGISTERS = {
    "vgpr": "arch_vgpr_count", "arch_vgpr": "arch_vgpr_count", "accum_vgpr": "accum_vgpr_count", "sgpr": "sgpr_count"
}  # fmt: skip


def read(source: TraceSource, target: TraceTarget) -> None:
    """Write each process of a file."""
    with source.stream() as stream:
        lines = csv.reader(io.StringIO(stream.read().decode("utf-8", "replace"), newline=""))
        header = [name.strip() for name in next(lines)]
        rows, damaged = _rows(header, lines)
    target.lose("lines of CSV files that are cut or damaged", damaged)
    counters = [name for name in header if name.lower() not in _NO_COUNTERS]
    node = NodeInfo(machine_id=f"rocprof-v1-{source.digest}")
    for pid, of_process in itertools.groupby(sorted(rows, key=_process), _process):
        with target.rank(pid, node, ProcessInfo(pid)) as trace:
            target.lose("values of counters that are no numbers", _write(trace, list(of_process), counters))


def _rows(header: Sequence[str], lines: Iterator[list[str]]) -> tuple[list[dict[str, str]], int]:
    """Return the complete rows, with names in small letters except for counters; and the number of other rows."""
    names = [name.lower() if name.lower() in _NO_COUNTERS else name for name in header]
    rows, damaged = [], 0
    for line in filter(None, lines):
        row = dict(zip(names, map(str.strip, line), strict=False))
        if len(line) == len(header) and all(row[name].isdecimal() for name in ("index", "gpu-id", "grd", "wgr")):
            rows.append(row)
        else:
            damaged += 1
    return rows, damaged


def _process(row: Mapping[str, str]) -> int:
    return _whole(row, "pid") or 1


def _whole(row: Mapping[str, str], name: str) -> int:
    text = row.get(name, "")
    return int(text) if text.isdecimal() else 0


def _write(trace: TraceWriter, rows: Sequence[Mapping[str, str]], counters: Sequence[str]) -> int:
    """Write the dispatches of one process; return the number of counter values that are no numbers."""
    devices = sorted({_whole(row, "gpu-id") for row in rows})
    agents = {device: trace.register(gpu(number, vendor="AMD")) for number, device in enumerate(devices)}
    kernels = []
    for row in rows:
        registers: dict[str, Any] = {field: _whole(row, name) for name, field in _REGISTERS.items() if name in row}
        kernels.append(trace.register(KernelInfo(display_name=without_kd(row["kernelname"]), **registers)))
    sizes: dict[str, Any] = {field: [_whole(row, name) for row in rows] for name, field in _SIZES.items()}
    ran_on = [agents[_whole(row, "gpu-id")] for row in rows]
    written = trace.write(KernelDispatches(agent_id=ran_on, kernel_id=kernels, **sizes, **ONE_ROW))
    return _write_counters(trace, rows, list(zip(written.events, ran_on, strict=True)), counters)


def _write_counters(
    trace: TraceWriter, rows: Sequence[Mapping[str, str]], events: Sequence[tuple[int, int]], counters: Sequence[str]
) -> int:
    values: list[tuple[int | None, int, float]] = []
    no_numbers = 0
    for (event, agent), row in zip(events, rows, strict=True):
        for name in filter(row.get, counters):
            try:
                value = float(row[name])
            except ValueError:
                no_numbers += 1
                continue
            values.append((event, trace.register(counter_of(agent, name, name)), value))
    write_values(trace, values)
    return no_numbers
