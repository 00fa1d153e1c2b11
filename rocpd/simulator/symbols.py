"""Owns the code objects and kernel symbols of a simulated process, as the runtime reports them when it loads code."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rocpd.schema.trace.infos import CodeObjectInfo, KernelInfo
from rocpd.schema.trace.writer import TraceWriter
from rocpd.simulator import hardware
from rocpd.simulator.identity import Identity
from rocpd.simulator.kernels import Kernel
from rocpd.trace.cxx import bare_name

_RUNTIME, _LIBRARY, _PROGRAM = 1, 2, 3
_URIS = {
    _RUNTIME: "memory://{pid}#offset=0x2869bfb0&size=32648",
    _LIBRARY: "file:///opt/rocm/lib/hipblaslt/library/gfx942.co",
    _PROGRAM: "memory://{pid}#offset=0x2796f400&size=231200",
}
_LOAD_BASE, _LOAD_STRIDE = 0x7F2B10000000, 0x100000


def write_symbols(trace: TraceWriter, ids: Identity, kernels: Iterable[Kernel]) -> None:
    """Write all code objects and the kernels in them, in the order of their ids."""
    for number in _URIS:
        trace.register(_code_object(ids, number))
    for number, kernel in enumerate(kernels, 1):
        trace.register(_symbol(number, kernel))


def _code_object(ids: Identity, number: int) -> CodeObjectInfo:
    base, size = _LOAD_BASE + number * _LOAD_STRIDE, 0x9000 * number
    load: dict[str, Any] = {
        "uri": _URIS[number].format(pid=ids.pid),
        "load_base": base,
        "load_size": size,
        "load_delta": base,
    }
    in_file = number == _LIBRARY
    described = {"size": 88, "code_object_id": number, "agent_id": {"handle": hardware.agent_handle(ids.gpu)}, **load}
    memory = {"memory_base": 664204288 + number * 65536, "memory_size": size - 4248}
    return CodeObjectInfo(
        number,
        agent_id=ids.gpu,
        storage_type="FILE" if in_file else "MEMORY",
        extdata=hardware.compact(described | {"storage_type": 1 if in_file else 2} | memory),
        **load,
    )


def _symbol(number: int, kernel: Kernel) -> KernelInfo:
    code_object = _LIBRARY if kernel.module else _RUNTIME if kernel.key == "fill" else _PROGRAM
    address, entry = _LOAD_BASE + code_object * _LOAD_STRIDE + 64 * number, 4288 + 640 * number
    symbol = f"{kernel.mangled}.kd"
    scalar, vector, accumulation = kernel.registers
    sizes: dict[str, Any] = {
        "kernel_object": address,
        "kernarg_segment_size": 64 + 8 * number,
        "kernarg_segment_alignment": 16,
        "group_segment_size": kernel.lds,
        "private_segment_size": kernel.scratch,
        "sgpr_count": scalar,
        "arch_vgpr_count": vector,
        "accum_vgpr_count": accumulation,
    }
    described = {"size": 88, "kernel_id": number, "code_object_id": code_object, "kernel_name": symbol, **sizes}
    described |= {"kernel_code_entry_byte_offset": entry, "kernel_address": {"handle": address + entry}}
    described |= {"formatted_kernel_name": kernel.display, **_demangled(kernel)}
    names: dict[str, Any] = {
        "kernel_name": symbol,
        "display_name": kernel.display,
        "extdata": hardware.compact(described),
    }
    return KernelInfo(number, code_object_id=code_object, **names, **sizes)


def _demangled(kernel: Kernel) -> dict[str, str]:
    """Return two more forms of the name; for one that was never mangled the profiler repeats the symbol."""
    if kernel.display == kernel.mangled:
        symbol = f"{kernel.mangled}.kd"
        return {"demangled_kernel_name": symbol, "truncated_kernel_name": symbol}
    display = kernel.display
    return {"demangled_kernel_name": f"{display} [clone .kd]", "truncated_kernel_name": bare_name(display)}
