"""Owns the rows of code objects and kernel symbols, as the runtime reports them when it loads code."""

from __future__ import annotations

import json
from typing import Any

from rocpd.schema.write import Writer
from rocpd.simulate import hardware
from rocpd.simulate.identity import Identity, Row, insert
from rocpd.simulate.kernels import KERNELS, Kernel

_RUNTIME, _LIBRARY, _PROGRAM = 1, 2, 3
_URIS = {
    _RUNTIME: "memory://{pid}#offset=0x2869bfb0&size=32648",
    _LIBRARY: "file:///opt/rocm/lib/hipblaslt/library/gfx942.co",
    _PROGRAM: "memory://{pid}#offset=0x2796f400&size=231200",
}
_LOAD_BASE, _LOAD_STRIDE = 0x7F2B10000000, 0x100000


def write_symbols(writer: Writer, own: Identity) -> None:
    """Write all code objects and the kernels in them."""
    insert(writer, "rocpd_info_code_object", [_code_object(own, number) for number in _URIS])
    symbols = [_symbol(own, number, kernel) for number, kernel in enumerate(KERNELS, 1)]
    insert(writer, "rocpd_info_kernel_symbol", symbols)


def _code_object(own: Identity, number: int) -> Row:
    from_file = number == _LIBRARY
    base = _LOAD_BASE + number * _LOAD_STRIDE
    load = {
        "uri": _URIS[number].format(pid=own.pid),
        "load_base": base,
        "load_size": 0x9000 * number,
        "load_delta": base,
    }
    agent = {"handle": hardware.agent_handle(own.gpu)}
    facts: dict[str, Any] = {
        "size": 88,
        "code_object_id": number,
        "agent_id": agent,
        **load,
        "storage_type": 1 if from_file else 2,
    }
    facts |= {"memory_base": 664204288 + number * 65536, "memory_size": 0x9000 * number - 4248}
    kind = "FILE" if from_file else "MEMORY"
    row: Row = {"id": number, **own.where, "agent_id": own.gpu, **load}
    return row | {"storage_type": kind, "extdata": _json(facts)}


def _symbol(own: Identity, number: int, kernel: Kernel) -> Row:
    code_object = _LIBRARY if kernel.module else _RUNTIME if kernel.key == "fill" else _PROGRAM
    at, entry = _LOAD_BASE + code_object * _LOAD_STRIDE + 64 * number, 4288 + 640 * number
    names = {"kernel_name": f"{kernel.mangled}.kd"}
    scalar, vector, accumulation = kernel.registers
    sizes = {
        "kernel_object": at,
        "kernarg_segment_size": 64 + 8 * number,
        "kernarg_segment_alignment": 16,
        "group_segment_size": kernel.lds,
        "private_segment_size": kernel.scratch,
        "sgpr_count": scalar,
        "arch_vgpr_count": vector,
        "accum_vgpr_count": accumulation,
    }
    facts: dict[str, Any] = {"size": 88, "kernel_id": number, "code_object_id": code_object, **names, **sizes}
    facts |= {"kernel_code_entry_byte_offset": entry, "kernel_address": {"handle": at + entry}}
    facts |= {"formatted_kernel_name": kernel.display, **_demangled(kernel)}
    row: Row = {"id": number, **own.where, "code_object_id": code_object, **names, "display_name": kernel.display}
    return row | sizes | {"extdata": _json(facts)}


def _demangled(kernel: Kernel) -> dict[str, str]:
    """Give two more forms of the name; for one that was never mangled the profiler repeats the symbol."""
    if kernel.display == kernel.mangled:
        symbol = f"{kernel.mangled}.kd"
        return {"demangled_kernel_name": symbol, "truncated_kernel_name": symbol}
    return {"demangled_kernel_name": f"{kernel.display} [clone .kd]", "truncated_kernel_name": kernel.truncated}


def _json(facts: dict[str, Any]) -> str:
    return json.dumps(facts, separators=(",", ":"))
