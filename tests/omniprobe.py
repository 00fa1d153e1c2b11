"""Made outputs of Omniprobe and logduration, written as its code writes them: never closed, names not escaped."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

KERNELS = ("gemm(float*, unsigned long)", 'scan<"a", 2>(int*)', "copy")
"""Kernels of the program; the second name needs escapes that Omniprobe leaves out."""

MANGLED = (f"__amd_crk_{KERNELS[0][:-1]}, void*) [clone .kd]", KERNELS[1], "__amd_crk_copyPv.kd")
"""The same as Omniprobe calls them."""

ORDER = (0, 1, 0, 2, 1, 0)
"""Which kernel each dispatch of the program runs."""


def dispatches() -> list[tuple[int, str, int]]:
    """Return number, kernel and which dispatch of this kernel each is."""
    numbered: list[tuple[int, str, int]] = []
    for number, kernel in enumerate(ORDER, 1):
        numbered.append((number, KERNELS[kernel], ORDER[:number].count(kernel)))
    return numbered


def accesses(seed: int) -> dict[int, dict[str, list[dict[str, Any]]]]:
    """Return dispatch -> what MemoryAnalysis says of it: `cache` and `banks`."""
    chance = Random(seed)
    made: dict[int, dict[str, list[dict[str, Any]]]] = {}
    for number, *_ in dispatches():
        needed = [chance.randrange(1, 50) for _ in range(2)]
        cache = [
            {"line": 10 + at, "type": ("read", "write")[at], "executions": chance.randrange(1, 90), "needed": many,
             "used": many * chance.randrange(1, 9), "isa": "global_load_dwordx4"}
            for at, many in enumerate(needed)
        ]  # fmt: skip
        banks = [{"line": 20, "type": "read/write", "executions": 7, "conflicts": chance.randrange(99)}]
        made[number] = {"cache": cache, "banks": banks}
    return made


def memory_analysis(made: dict[int, dict[str, list[dict[str, Any]]]], *, console: bool = False) -> str:
    """Return the JSON of MemoryAnalysis: `[` before the first dispatch, no end; on a console other lines between."""
    parts = []
    for number, _, _ in dispatches():
        name = MANGLED[ORDER[number - 1]]
        cache = ",".join(
            f'{{"source_location": {{"file": "/src/gemm.cpp", "line": {each["line"]}, "column": 7}}, '
            f'"code_context": "x[i] = y["a, b"];", "access_info": {{"type": "{each["type"]}", '
            f'"execution_count": {each["executions"]}, "ir_bytes": 4, "isa_bytes": 16, '
            f'"isa_instruction": "{each["isa"]}", "cache_lines": {{"needed": {each["needed"]}, '
            f'"used": {each["used"]}}}}}}}'
            for each in made[number]["cache"]
        )
        banks = ",".join(
            f'{{"source_location": {{"file": "/src/gemm.cpp", "line": {each["line"]}, "column": 3}}, '
            f'"code_context": "lds[t]", "access_info": {{"type": "{each["type"]}", "execution_count": '
            f'{each["executions"]}, "ir_bytes": 4, "total_conflicts": {each["conflicts"]}}}}}'
            for each in made[number]["banks"]
        )
        parts.append(
            f'{{\n  "kernel_analysis": {{"kernel_info": {{"name": "{name}", "dispatch_id": {number}}},\n'
            f'  "cache_analysis": {{"accesses": [{cache}]}},\n  "bank_conflicts": {{"accesses": [{banks}]}}}},\n'
            '  "metadata": {"version": "1.0", "timestamp": "2026-04-28 10:00:00", "gpu_info": '
            '{"architecture": "gfx942", "cache_line_size": 128}}\n}'
        )
    return "DEBUG: filter\n".join(parts) if console else "[\n" + ",\n".join(parts)


def blocks(seed: int) -> list[dict[str, Any]]:
    """Return the records of BasicBlockAnalysis."""
    chance = Random(seed)
    return [
        {
            "kernel": MANGLED[ORDER[number - 1]],
            "kernel_file_name": "/src/gemm.cpp",
            "block_start_line": start,
            "block_end_line": start + 3,
            "block_duration": chance.randrange(1, 5000),
            "dispatch_id": number,
            "block_branchiness": chance.random(),
            "block_count": chance.randrange(1, 64),
            "block_overhead": chance.random(),
            "kernel_branchiness": 0.25,
            "instructions": {"v_add_f32": 3, "s_cbranch": 1, "v_mul_f32": 3, "s_nop": 1},
        }
        for number, *_ in dispatches()
        for start in (5, 12)
    ]


def unescaped(record: dict[str, Any]) -> str:
    """Return a line of JSON in which names stand as they are."""
    return json.dumps(record).replace('\\"', '"')


def json_lines(path: Path, records: Iterable[dict[str, Any]]) -> Path:
    path.write_text("".join(f"{unescaped(record)}\n" for record in records))
    return path


def pages(seed: int) -> list[dict[str, Any]]:
    """Return the records of Heatmap."""
    chance = Random(seed)
    return [
        {
            "kernel": MANGLED[ORDER[number - 1]],
            "dispatch_id": number,
            "pages": [
                {"start_address": start, "end_address": start + 4096, "accesses": chance.randrange(1, 1000)}
                for start in (0x7F0000000000, 0x7F0000001000)
            ],
        }
        for number, *_ in dispatches()
    ]


def heatmap_text(records: list[dict[str, Any]]) -> str:
    """Return the same as the report for people."""
    text = []
    for record in records:
        text.append(f"memory heatmap report({record['kernel']}[{record['dispatch_id']}])\n\tpage size = 4096\n")
        text += [
            f"\tpage[0x{page['start_address']:x}:{page['end_address']:x}] {page['accesses']} accesses\n"
            for page in record["pages"]
        ]
    return "".join(text)


def messages(seed: int) -> list[dict[str, Any]]:
    """Return the records of AddressLogger."""
    chance = Random(seed)
    records = []
    for number, *_ in dispatches():
        for line in (31, 32):
            stride = chance.choice([4, 64, 256])
            lanes = chance.randrange(1, 65)
            records.append({
                "kernel_name": MANGLED[ORDER[number - 1]], "dispatch_id": number, "exec": (1 << lanes) - 1,
                "timestamp": 1000 + number, "dwarf_line": line, "dwarf_column": 3, "block_idx_x": 1, "block_idx_y": 0,
                "block_idx_z": 0, "wave_num": 2, "xcc_id": 3, "se_id": 1, "cu_id": 4, "active_lane_count": lanes,
                "user_type": 0, "op_type": "read",
                "addresses": [0x7F0000000000 + lane * stride for lane in range(lanes)],
            })  # fmt: skip
    return records


def address_csv(records: list[dict[str, Any]], *, with_json: bool) -> str:
    """Return the same as CSV; the code always writes a line of JSON after each row."""
    text = ["ADDRESS_MESSAGE,timestamp,kernel,src_line,dispatch,exec_mask,xcc_id,se_id,cu_id,kind,address\n"]
    for each in records:
        head = f"ADDRESS_MESSAGE,{each['timestamp']},{each['kernel_name']},{each['dwarf_line']},{each['dispatch_id']}"
        places = f"0x{each['exec']:x},{each['xcc_id']},{each['se_id']},{each['cu_id']},{each['op_type']}"
        text.append(f"{head},{places},{','.join(map(hex, each['addresses']))}\n")
        text += [f"{unescaped(each)}\n"] if with_json else []
    return "".join(text)
