"""What kernels are launched with: grids, work-groups, registers, and how much of the GPU these can fill.

A kernel launched with another grid is other work: each grid and work-group of a kernel is a row, whose times compare.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from rocpd.errors import RocpdError
from rocpd.frozen import frozen
from rocpd.read.columns import columns
from rocpd.read.groups import grouped
from rocpd.summary.ops import kernel_forms
from rocpd.summary.reading import Key, RankReading, Reading, order_of
from rocpd.summary.result import Field, Summary, TableDefinition, by_name
from rocpd.summary.spread import Spread
from rocpd.summary.statements import statement
from rocpd.summary.sums import merge
from rocpd.trace.occupancy import GpuLimits, KernelNeeds, waves_per_simd
from rocpd.trace.times import valid_times
from rocpd.types import NULL, Row

_LOW = 0.05  # runs that take as long are as good as the fastest: a single one may be an accident

TABLES = by_name(
    TableDefinition(
        "kernel-shapes",
        "Kernels by what they are launched with, and how much of a GPU that can fill; most time first.",
        (
            Field("name", "", "kernel", is_kernel=True),
            Field("grid", "", "work-items in x, y and z"),
            Field("workgroup", "", "work-items per work-group in x, y and z"),
            Field("calls", "", "dispatches"),
            Field("total_ns", "ns", "sum of durations"),
            Field("percent", "%", "share of the time of all kernels", True, is_share=True),
            Field("groups", "", "work-groups of the grid; NULL where it is not recorded", True),
            Field("compute_units", "", "of the agent", True),
            Field("vector_registers", "", "of a work-item, architectural and accumulation ones", True),
            Field("lds_bytes", "bytes", "LDS of a work-group", True),
            Field(
                "scratch_bytes", "bytes", "scratch of a work-item: above 0 registers spill, or arrays lie there", True
            ),
            Field("waves_per_simd", "", "waves that fit on a SIMD unit; NULL where the architecture is not known"),
            Field("limited_by", "", "what limits them: waves, registers or LDS", True),
            Field("median_ns", "ns", "median duration", True),
            Field("unstable_ns", "ns", "time above the 5th percentile up to the median, of all calls", True),
            Field("first_ns", "ns", "duration of the first run, the longest of all GPUs", True),
        ),
    ),
)


class _Shape(NamedTuple):
    """A kernel as it is launched."""

    name: str | None
    grid: tuple[int, int, int]
    workgroup: tuple[int, int, int]
    registers: int
    lds: int
    scratch: int
    compute_units: int | None
    waves: int | None
    limit: str | None


@frozen
class _Runs:
    """Runs of a kernel: their durations, and that of the first one on a GPU; two of them add up."""

    spread: Spread
    first_ns: int

    def __add__(self, other: _Runs) -> _Runs:
        return _Runs(self.spread + other.spread, max(self.first_ns, other.first_ns))


_Shapes = dict[_Shape, _Runs]

_SYMBOLS = "SELECT id, COALESCE(arch_vgpr_count, 0) + COALESCE(accum_vgpr_count, 0) FROM rocpd_info_kernel_symbol"
_AGENTS = """SELECT id, name, cu_count, simd_count, wave_size, max_waves_per_cu, lds_size FROM agents
WHERE type = 'GPU'"""
_NUMBERS = (
    "name",
    "agent",
    "grid_size_x",
    "grid_size_y",
    "grid_size_z",
    "workgroup_size_x",
    "workgroup_size_y",
    "workgroup_size_z",
    "lds",
    "scratch",
    "start",
    "end",
)


def kernel_shapes(reading: Reading) -> Iterator[Summary]:
    """Return kernels by what they are launched with.

    Raises:
        RocpdError: there are no kernels.
    """
    shapes: dict[Key, _Shapes] = {}
    for _, added in reading.each(_of_rank):
        for key, of_rank in added.items():
            merge(shapes.setdefault(key, {}), of_rank)
    if not shapes:
        raise RocpdError("no kernels in the selection")
    rows = (row for key in sorted(shapes, key=order_of) for row in _rows(key, shapes[key]))
    yield reading.summary(TABLES["kernel-shapes"], rows)


def _of_rank(reading: RankReading) -> dict[Key, _Shapes]:
    read = columns(reading.reader, "rocpd_kernel_dispatch", statement("kernels"), _NUMBERS)
    valid = np.flatnonzero(valid_times(read[-2], read[-1]))
    reading.left_out["GPU operations"] += len(read[-1]) - len(valid)
    *shape, start, end = (column[valid] for column in read)
    if not len(valid):
        return {}
    shown, _ = kernel_forms(reading, shape[0])
    registers = {number: int(count) for number, count in reading.reader.rows(_SYMBOLS)}
    gpus = _gpus(reading)
    shapes: dict[Key, _Shapes] = {}
    for (kernel, agent, *sizes), rows in grouped(shape):
        launched = _shape(shown.get(kernel), sizes, registers.get(kernel, 0), gpus.get(agent))
        durations = end[rows] - start[rows]
        runs = _Runs(Spread.of(durations), int(durations[start[rows].argmin()]))
        merge(shapes.setdefault(reading.key(agent), {}), {launched: runs})
    return shapes


def _gpus(reading: RankReading) -> dict[int, GpuLimits]:
    gpus = {}
    for number, name, units, simds, *limits in reading.reader.rows(_AGENTS):
        if units:
            gpus[number] = GpuLimits(str(name), units, (simds or 0) // units, *(limit or 0 for limit in limits))
    return gpus


def _shape(name: str | None, sizes: list[int], registers: int, gpu: GpuLimits | None) -> _Shape:
    x, y, z, *group, lds, scratch = (0 if size == NULL else size for size in sizes)
    workgroup = group[0], group[1], group[2]
    fits = waves_per_simd(gpu, KernelNeeds(int(np.prod(workgroup)), registers, lds)) if gpu else None
    units = gpu.compute_units if gpu else None
    return _Shape(name, (x, y, z), workgroup, registers, lds, scratch, units, *(fits or (None, None)))


def _rows(key: Key, shapes: Mapping[_Shape, _Runs]) -> Iterator[Row]:
    totals = {shape: runs.spread.moments.total for shape, runs in shapes.items()}
    every = sum(totals.values())
    for shape in sorted(shapes, key=lambda shape: (-totals[shape], order_of((shape.name, *shape.grid)))):
        spread, total = shapes[shape].spread, totals[shape]
        middle, low = spread.quantile(0.5), spread.quantile(_LOW)
        sizes = (
            _product(shape.grid),
            _product(shape.workgroup),
            spread.calls,
            total,
            total * 100 / every if every else None,
        )
        takes = (_groups(shape), shape.compute_units, shape.registers, shape.lds, shape.scratch)
        unstable = None if middle is None or low is None else round((middle - low) * spread.calls)
        yield (*key, shape.name, *sizes, *takes, shape.waves, shape.limit, middle, unstable, shapes[shape].first_ns)


def _groups(shape: _Shape) -> int | None:
    """Return the work-groups of a grid; None where it is not recorded."""
    if not all((*shape.grid, *shape.workgroup)):
        return None
    return math.prod(-(-items // size) for items, size in zip(shape.grid, shape.workgroup, strict=True))


def _product(sizes: tuple[int, int, int]) -> str:
    return "x".join(map(str, sizes))
