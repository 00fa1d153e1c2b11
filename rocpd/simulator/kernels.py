"""The kernels of simulated jobs, from `data/kernels.toml`. Has no times of runs."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from rocpd.base import frozen
from rocpd.simulator.options import Plant, Planting

SMALL_MICROS = 3.0
"""Duration of the pieces if work is cut into small kernels [us]."""

JITTER = 0.06
"""Largest share by which a run is shorter than its typical duration."""

HOTTEST = {"llm": "gemm_nt", "gemm": "bmm", "hpc": "smooth"}
"""Profile -> key of the kernel with most time."""

_TILE = re.compile(r"((?:MT|IL[ij]|<))\d+")  # of Tensile, and the first argument of a template
_OF_EXPERTS = "sendrecv"
_FEW_GROUPS = 76  # a quarter of the compute units


@frozen
class Kernel:
    """One kernel.

    Args:
        key: short name within the simulator.
        mangled: symbol name without `.kd`.
        display: demangled name; stored only if it differs from `mangled`.
        micros: typical duration [us].
        grid: work-items in x, y and z.
        block: work-items per work-group in x, y and z.
        lds: static LDS per work-group [bytes].
        scratch: static scratch per work-item [bytes].
        registers: scalar, vector and accumulation registers.
        module: whether a library loads it as a module, and launches it without a call configuration.
        math: unit of most of its arithmetic, named as in the counters of `samples`: MFMA_BF16, F32 or F64.
        flops: floating-point operations of a run.
        reads: bytes that a run reads from the GPU's memory.
        writes: bytes that a run writes to it.
    """

    key: str
    mangled: str
    display: str
    micros: float
    grid: tuple[int, int, int]
    block: tuple[int, int, int] = (256, 1, 1)
    lds: int = 0
    scratch: int = 0
    registers: tuple[int, int, int] = (32, 16, 0)
    module: bool = False
    math: str = "F32"
    flops: float = 0.0
    reads: float = 0.0
    writes: float = 0.0

    @property
    def communicates(self) -> bool:
        """Whether it is a kernel of RCCL."""
        return self.key in ("nccl", _OF_EXPERTS)

    @property
    def groups(self) -> tuple[int, int, int]:
        """Work-groups in x, y and z."""
        x, y, z = (max(1, grid // block) for grid, block in zip(self.grid, self.block, strict=True))
        return x, y, z

    @property
    def waves(self) -> int:
        """Waves of 64 work-items."""
        x, y, z = self.groups
        return x * y * z * -(-self.block[0] * self.block[1] * self.block[2] // 64)

    def larger(self, factor: float) -> Kernel:
        """Return the kernel with `factor` times the work on a larger grid."""
        groups = max(1, round(self.groups[0] * factor))
        sizes = {name: getattr(self, name) * factor for name in ("flops", "reads", "writes")}
        return replace(self, grid=(groups * self.block[0], *self.grid[1:]), **sizes)

    def cut(self) -> Kernel:
        """Return a small kernel with the part of this one's work that fits into its short time."""
        share = min(1.0, SMALL_MICROS / self.micros)
        sizes = {name: getattr(self, name) * share for name in ("flops", "reads", "writes")}
        return replace(self, micros=self.micros * share, **sizes)


def _of(facts: dict[str, Any]) -> Kernel:
    fields: dict[str, Any] = {"display": facts["mangled"]}
    fields |= {name: tuple(value) if isinstance(value, list) else value for name, value in facts.items()}
    return Kernel(**fields)


_TABLE = tomllib.loads((files(__package__) / "data" / "kernels.toml").read_text("utf-8"))

KERNELS: tuple[Kernel, ...] = tuple(map(_of, _TABLE["kernel"]))
"""All kernels; a kernel's id in a file is its position here, from 1."""

KERNEL_IDS: dict[str, int] = {kernel.key: i for i, kernel in enumerate(KERNELS, 1)}


@functools.cache
def kernels_of(profile: str, planting: Planting, has_experts: bool = False) -> Mapping[str, Kernel]:
    """Return the kernels by key, in the order of `KERNELS`, changed by planted facts."""
    kernels = {kernel.key: kernel for kernel in KERNELS if has_experts or kernel.key != _OF_EXPERTS}
    if Plant.SMALL_KERNELS in planting:
        kernels = {key: kernel if kernel.communicates else kernel.cut() for key, kernel in kernels.items()}
    hot = kernels[HOTTEST[profile]]
    if Plant.SMALL_GRIDS in planting:
        hot = replace(hot, grid=(_FEW_GROUPS * hot.block[0], 1, 1))
    if Plant.LOW_OCCUPANCY in planting:
        hot = replace(hot, registers=(hot.registers[0], 256, 256), lds=65536, scratch=48)
    return MappingProxyType(kernels | {hot.key: _changed(hot, planting)})


def _changed(hot: Kernel, planting: Planting) -> Kernel:
    """Return the hottest kernel in another version of the program."""
    hot = replace(hot, micros=hot.micros * (1 + planting.size(Plant.SLOW_KERNEL, 0) / 100))
    more = 1 + planting.size(Plant.LARGER_GRIDS, 0) / 100
    hot = replace(hot.larger(more), micros=hot.micros * more) if more > 1 else hot
    if Plant.OTHER_TILE not in planting:
        return hot
    mangled, display = (_TILE.sub(r"\g<1>512", name, count=1) for name in (hot.mangled, hot.display))
    return replace(hot, mangled=mangled, display=display)
