"""Calculates how many waves of a kernel fit on a SIMD unit, from the needs of the kernel and the limits of the GPU.

By the ISA guides of CDNA 2 and 3 (https://www.amd.com/en/support/tech-docs, "Instruction Set Architecture"): 512 vector
registers per lane of a SIMD unit, architectural and accumulation ones together, allocated in eights; LDS belongs to the
compute unit, allocated in blocks of 512 bytes. Other architectures allocate registers differently: they give no result.
"""

from __future__ import annotations

from rocpd.base import frozen

_UNIFIED = frozenset({"gfx90a", "gfx940", "gfx941", "gfx942", "gfx950"})
_REGISTERS, _REGISTER_BLOCK, _LDS_BLOCK = 512, 8, 512


@frozen
class GpuLimits:
    """The limits of a GPU: compute units, SIMD units in each, work-items of a wave, waves and LDS of a compute unit."""

    architecture: str
    compute_units: int
    simds: int
    wave: int
    waves: int
    lds: int


@frozen
class KernelNeeds:
    """The needs of a work-group of a kernel: work-items, vector registers of each, LDS [bytes]."""

    items: int
    registers: int
    lds: int


def waves_per_simd(gpu: GpuLimits, kernel: KernelNeeds) -> tuple[int, str] | None:
    """Return the number of waves that fit on a SIMD unit, and the resource that limits them; None where unknown.

    >>> gpu = GpuLimits("gfx942", 304, 4, 64, 32, 65536)
    >>> waves_per_simd(gpu, KernelNeeds(256, 24, 0)), waves_per_simd(gpu, KernelNeeds(256, 120, 16384))
    ((8, 'waves'), (4, 'registers'))
    >>> waves_per_simd(gpu, KernelNeeds(256, 64, 40_000)), waves_per_simd(gpu, KernelNeeds(1024, 512, 0))
    ((1, 'LDS'), (1, 'registers'))
    """
    if gpu.architecture not in _UNIFIED or not (gpu.simds and gpu.wave and kernel.items and kernel.registers):
        return None
    of_group = -(-kernel.items // gpu.wave)
    taken = _REGISTER_BLOCK * -(-kernel.registers // _REGISTER_BLOCK)
    limits = {"waves": gpu.waves // gpu.simds, "registers": _REGISTERS // taken}
    if kernel.lds and gpu.lds:
        groups = gpu.lds // (_LDS_BLOCK * -(-kernel.lds // _LDS_BLOCK))
        limits["LDS"] = groups * of_group // gpu.simds
    limit = min(limits, key=lambda name: limits[name])
    return max(1, limits[limit]), limit
