"""Made samples of program counters: the same ones as rows of a file, as rocprofv3's JSON and as its CSV files."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from rocpd.facts.pc_sampling import INSTRUCTION_TYPES, STALL_REASONS
from tests.build import GPU, TraceBuilder

KERNELS = {3: "gemm(float*)", 4: "scan<int>", 5: 'copy; "x"'}
CODE = {
    64: ("v_fma_f32 v0, v1, v2", "gemm.cpp:10"),
    72: ("s_waitcnt vmcnt(0)", "gemm.cpp:10"),
    80: ("global_load_dword v1", "gemm.cpp:12"),
    96: ("s_barrier", ""),
}
"""Offset -> instruction and source line."""

_TYPE = "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_"
_REASON = "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_"


class Dispatch(NamedTuple):
    """A dispatch: its number, its kernel and times [ns]."""

    number: int
    kernel: int
    start: int
    end: int


class Sample(NamedTuple):
    """A sample; `issued`, `kind` and `reason` are None for host traps."""

    dispatch: int
    time: int
    offset: int
    mask: int
    issued: int | None
    kind: int | None
    reason: int | None


class Sampled(NamedTuple):
    """What a process did."""

    dispatches: list[Dispatch]
    samples: list[Sample]


def made(seed: int, count: int = 120, method: str = "stochastic") -> Sampled:
    """Return dispatches that follow each other, and samples in them."""
    chance = Random(seed)
    dispatches = [
        Dispatch(number, chance.choice([*KERNELS]), 1000 * number, 1000 * number + chance.randrange(100, 900))
        for number in range(1, 9)
    ]
    samples = []
    for _ in range(count):
        dispatch = chance.choice(dispatches)
        time = chance.randrange(dispatch.start, dispatch.end)
        mask = chance.choice([(1 << 64) - 1, 7, 0, 1 << 63])
        why: tuple[int | None, int | None, int | None] = (None, None, None)
        if method == "stochastic":
            why = chance.choice([(1, 1, 0), (0, 15, chance.randrange(1, len(STALL_REASONS)))])
        samples.append(Sample(dispatch.number, time, chance.choice([*CODE]), mask, *why))
    return Sampled(dispatches, samples)


def signed(mask: int) -> int:
    return mask - (1 << 64) if mask >> 63 else mask


def as_rows(sampled: Sampled, number: int = 0) -> TraceBuilder:
    """Return a rank with the tables of ROCm's branches."""
    trace = TraceBuilder(number, pid=100 + number)
    for each in sampled.dispatches:
        trace.kernel(KERNELS[each.kernel], each.start, each.end, dispatch_id=each.number)
    for s in sampled.samples:
        trace.row(
            "rocpd_gpu_pc_sample", timestamp=s.time, dispatch_id=s.dispatch, exec_mask=signed(s.mask),
            code_object_id=1, code_object_offset=s.offset, wave_issued=s.issued, inst_type=s.kind,
            stall_reason=s.reason,
        )  # fmt: skip
    for offset, (instruction, comment) in CODE.items():
        trace.row(
            "rocpd_disassembly_data", code_object_id=1, code_object_offset=offset, instruction=instruction,
            comment=comment,
        )  # fmt: skip
    return trace


def as_json(sampled: Sampled, path: Path, method: str = "stochastic", pid: int = 100) -> Path:
    """Write rocprofv3's JSON, with its fields as a real file of an MI300X has them."""
    offsets = [*CODE]
    records = []
    for s in sampled.samples:
        record: dict[str, Any] = {
            "flags": {"has_mem_cnt": 0},
            "hw_id": {"chiplet": 3, "wave_id": 0, "simd_id": 3, "shader_engine_id": 0},
            "pc": {"code_object_id": 1, "code_object_offset": s.offset},
            "exec_mask": s.mask,
            "timestamp": s.time,
            "dispatch_id": s.dispatch,
            "corr_id": {"internal": 3, "external": 94902742904848},
            "wrkgrp_id": {"x": 62683, "y": 0, "z": 0},
            "wave_in_grp": 3,
        }
        if s.issued is not None and s.kind is not None and s.reason is not None:
            snapshot = {"stall_reason": _REASON + STALL_REASONS[s.reason], "dual_issue_valu": 0}
            kind = _TYPE + INSTRUCTION_TYPES[s.kind]
            record |= {"wave_issued": s.issued, "inst_type": kind, "wave_cnt": 6, "snapshot": snapshot}
        records.append({"record": record, "inst_index": offsets.index(s.offset)})
    content = _process(sampled, pid)
    content["strings"]["pc_sample_instructions"] = [CODE[offset][0] for offset in offsets]
    content["strings"]["pc_sample_comments"] = [CODE[offset][1] for offset in offsets]
    content["buffer_records"][f"pc_sample_{method}"] = records
    path.write_text(json.dumps({"rocprofiler-sdk-tool": [content]}))
    return path


def _process(sampled: Sampled, pid: int) -> dict[str, Any]:
    dispatches = [
        {
            "kind": 0, "operation": 0, "thread_id": pid, "start_timestamp": each.start, "end_timestamp": each.end,
            "correlation_id": {"internal": each.number, "external": 0}, "stream_id": {"handle": 0},
            "dispatch_info": {
                "agent_id": {"handle": 77}, "queue_id": {"handle": 5}, "kernel_id": each.kernel,
                "dispatch_id": each.number, "private_segment_size": 0, "group_segment_size": 0,
                "workgroup_size": dict.fromkeys("xyz", 1), "grid_size": dict.fromkeys("xyz", 1),
            },
        }
        for each in sampled.dispatches
    ]  # fmt: skip
    return {
        "metadata": {"node": {"machine_id": "m", "hostname": "h"}, "pid": pid, "command": ["./a"]},
        "agents": [{"node_id": GPU, "id": {"handle": 77}, "type": 2, "name": "gfx942"}],
        "code_objects": [{"code_object_id": 1, "agent_id": {"handle": 77}, "uri": "file://a"}],
        "kernel_symbols": [
            {"kernel_id": number, "code_object_id": 1, "kernel_name": "k.kd", "formatted_kernel_name": name}
            for number, name in KERNELS.items()
        ],
        "counters": [],
        "strings": {"buffer_records": [{"kind": "KERNEL_DISPATCH", "operations": ["KERNEL_DISPATCH_COMPLETE"]}]},
        "buffer_records": {"kernel_dispatch": dispatches},
    }


def as_csv(sampled: Sampled, folder: Path, method: str = "stochastic") -> Path:
    """Write rocprofv3's CSV files."""
    folder.mkdir()
    _table(folder / "100_kernel_trace.csv", [
        {
            "Kind": "KERNEL_DISPATCH", "Agent_Id": GPU, "Queue_Id": 1, "Stream_Id": 0, "Thread_Id": 100,
            "Dispatch_Id": each.number, "Kernel_Id": each.kernel, "Kernel_Name": KERNELS[each.kernel],
            "Correlation_Id": each.number, "Start_Timestamp": each.start, "End_Timestamp": each.end,
        }
        for each in sampled.dispatches
    ])  # fmt: skip
    rows = []
    for s in sampled.samples:
        instruction, comment = CODE[s.offset]
        row: dict[str, object] = {
            "Sample_Timestamp": s.time, "Exec_Mask": s.mask, "Dispatch_Id": s.dispatch, "Instruction": instruction,
            "Instruction_Comment": comment, "Correlation_Id": 3,
        }  # fmt: skip
        if s.issued is not None and s.kind is not None and s.reason is not None:
            row |= {"Wave_Issued_Instruction": s.issued, "Instruction_Type": _TYPE + INSTRUCTION_TYPES[s.kind]}
            row |= {"Stall_Reason": _REASON + STALL_REASONS[s.reason], "Wave_Count": 6}
        rows.append(row)
    _table(folder / f"100_pc_sampling_{method}.csv", rows)
    return folder


def _table(path: Path, rows: list[Mapping[str, object]] | list[dict[str, object]]) -> None:
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, [*rows[0]], quoting=csv.QUOTE_NONNUMERIC)
        table.writeheader()
        table.writerows(rows)
