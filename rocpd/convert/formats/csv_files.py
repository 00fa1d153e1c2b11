"""Lists the CSV files and their columns. Never reads a database.

Headers are those of rocprofv3, after a leading Guid; values are those of AMD's `rocpd convert -f csv`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from rocpd.convert.formats import markers
from rocpd.convert.formats.csv_cells import Cell, Number, address, agent, kernel, message, operation, text
from rocpd.convert.options import AgentIndex
from rocpd.trace.markers import MARKER_PREFIXES
from rocpd.trace.memory import NOT_SCRATCH

Column: TypeAlias = tuple[str, Cell]
"""Header and cells."""


@dataclass(frozen=True)
class CsvFile:
    """One kind of event.

    Args:
        name: what follows the base name of the outputs.
        views: readable views whose rows it has.
        columns: headers and cells, without Guid.
        reads: columns of the views that the cells need.
        categories: prefixes of the categories of the rows; empty: all rows.
        where: SQL condition on the rows, over the aliases of the views.
        stats: name of the statistics file, and of the domain in `domain_stats`; None: no statistics.
    """

    name: str
    views: tuple[str, ...]
    columns: tuple[Column, ...]
    reads: tuple[str, ...]
    categories: tuple[str, ...] = ()
    where: str = ""
    stats: tuple[str, str] | None = None

    @property
    def name_cell(self) -> Cell:
        """What statistics go by: the name of the kernel, call or operation."""
        named = ("Kernel_Name", "Function", "Direction", "Operation")
        return next(cell for name, cell in self.columns if name in named)

    @property
    def header(self) -> str:
        """The first line."""
        return ",".join(f'"{name}"' for name in ("Guid", *(name for name, _ in self.columns))) + "\n"


_TIMES: tuple[Column, ...] = (("Start_Timestamp", Number("start")), ("End_Timestamp", Number("end")))
_SIZES: tuple[Column, ...] = (
    ("LDS_Block_Size", Number("lds_size")),
    ("Scratch_Size", Number("scratch_size")),
    ("VGPR_Count", Number("vgpr_count")),
    ("Accum_VGPR_Count", Number("accum_vgpr_count")),
    ("SGPR_Count", Number("sgpr_count")),
)
_AGENT = (*(index.view_column for index in AgentIndex), "agent_type")
_SHAPE = ("lds_size", "scratch_size", "vgpr_count", "accum_vgpr_count", "sgpr_count")
_WHEN = ("id", "start", "end")

_KERNELS = CsvFile(
    "kernel_trace",
    ("kernels",),
    (
        ("Kind", text("category")),
        ("Agent_Id", agent()),
        ("Queue_Id", Number("queue_id")),
        ("Stream_Id", Number("stream_id")),
        ("Thread_Id", Number("tid")),
        ("Dispatch_Id", Number("dispatch_id")),
        ("Kernel_Id", Number("kernel_id")),
        ("Kernel_Name", kernel("region", "name")),
        ("Correlation_Id", Number("stack_id")),
        *_TIMES,
        *_SIZES,
        *((f"Workgroup_Size_{axis.upper()}", Number(f"workgroup_{axis}")) for axis in "xyz"),
        *((f"Grid_Size_{axis.upper()}", Number(f"grid_{axis}")) for axis in "xyz"),
    ),
    (
        *("category", "queue_id", "stream_id", "tid", "dispatch_id", "kernel_id", "region", "name", "stack_id"),
        *(f"{what}_{axis}" for what in ("workgroup", "grid") for axis in "xyz"),
        *(*_AGENT, *_SHAPE, *_WHEN),
    ),
    stats=("kernel_stats", "KERNEL_DISPATCH"),
)

_CALL = ("category", "name", "pid", "tid", "stack_id", "extdata", *_WHEN)


def _calls(kind: str, *categories: str) -> CsvFile:
    marker = kind == "marker"
    columns: tuple[Column, ...] = (
        ("Domain", text("category")),
        ("Function", message if marker else text("name")),
        ("Process_Id", Number("pid")),
        ("Thread_Id", Number("tid")),
        ("Correlation_Id", Number("stack_id")),
        *_TIMES,
    )
    views = markers.SOURCES if marker else ("regions",)
    stats = (f"{kind}_api_stats", f"{kind.upper()}_API")
    return CsvFile(f"{kind}_api_trace", views, columns, _CALL, categories, stats=stats)


_COPIES = CsvFile(
    "memory_copy_trace",
    ("memory_copies",),
    (
        ("Kind", text("category")),
        ("Direction", text("name")),
        ("Stream_Id", Number("stream_id")),
        ("Source_Agent_Id", agent("src_")),
        ("Destination_Agent_Id", agent("dst_")),
        ("Correlation_Id", Number("stack_id")),
        *_TIMES,
    ),
    (
        "category",
        "name",
        "stream_id",
        "stack_id",
        *(f"{end}_{name}" for end in ("src", "dst") for name in _AGENT),
        *_WHEN,
    ),
    stats=("memory_copy_stats", "MEMORY_COPY"),
)

_ALLOCATIONS = CsvFile(
    "memory_allocation_trace",
    ("memory_allocations",),
    (
        ("Kind", text("category")),
        ("Operation", operation),
        ("Agent_Id", agent()),
        ("Allocation_Size", Number("size")),
        ("Address", address),
        ("Correlation_Id", Number("stack_id")),
        *_TIMES,
    ),
    ("category", "type", "level", "size", "address", "stack_id", *_AGENT, *_WHEN),
    where=f"M.{NOT_SCRATCH}",  # scratch memory has a file of its own
    stats=("memory_allocation_stats", "MEMORY_ALLOCATION"),
)

_SCRATCH = CsvFile(
    "scratch_memory_trace",
    ("scratch_memory",),
    (
        ("Kind", text("category")),
        ("Operation", text("operation", "SCRATCH_MEMORY_")),
        ("Agent_Id", agent()),
        ("Queue_Id", Number("queue_id")),
        ("Thread_Id", Number("tid")),
        ("Alloc_Flags", Number("alloc_flags")),
        *_TIMES,
        ("Allocation_Size", Number("size")),
    ),
    ("category", "operation", "queue_id", "tid", "alloc_flags", "size", *_AGENT, *_WHEN),
    stats=("scratch_memory_stats", "SCRATCH_MEMORY"),
)

_COUNTERS = CsvFile(
    "counter_collection",
    ("counters_collection",),
    (
        ("Correlation_Id", Number("stack_id")),
        ("Dispatch_Id", Number("dispatch_id")),
        ("Agent_Id", agent()),
        ("Queue_Id", Number("queue_id")),
        ("Process_Id", Number("pid")),
        ("Thread_Id", Number("tid")),
        ("Grid_Size", Number("grid_size")),
        ("Kernel_Id", Number("kernel_id")),
        ("Kernel_Name", kernel("kernel_region", "kernel_name")),
        ("Workgroup_Size", Number("workgroup_size")),
        ("LDS_Block_Size", Number("lds_block_size")),
        *_SIZES[1:],
        ("Counter_Name", text("counter_name")),
        ("Counter_Value", Number("value")),
        *_TIMES,
    ),
    (
        *("stack_id", "dispatch_id", "queue_id", "pid", "tid", "grid_size", "kernel_id", "kernel_region"),
        *("kernel_name", "workgroup_size", "lds_block_size", *_SHAPE[1:], "counter_name", "value"),
        *(*_AGENT, *_WHEN),
    ),
)

FILES: tuple[CsvFile, ...] = (
    _KERNELS,
    _calls("hip", "HIP_"),
    _calls("hsa", "HSA_"),
    _calls("marker", *MARKER_PREFIXES),
    _calls("rccl", "RCCL_"),
    _calls("rocdecode", "ROCDECODE_"),
    _calls("rocjpeg", "ROCJPEG_"),
    _COPIES,
    _ALLOCATIONS,
    _SCRATCH,
    _COUNTERS,
)
"""The files in the order in which they are written; statistics and agent_info come last."""
