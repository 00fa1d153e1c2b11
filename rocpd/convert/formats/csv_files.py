"""Lists the CSV files and their columns. Never reads a database.

Headers are those of rocprofv3, after a leading Guid; values are those of AMD's `rocpd convert -f csv`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from rocpd.base.frozen import frozen
from rocpd.convert.formats import markers
from rocpd.convert.formats.csv_cells import Cell, address, agent, kernel, message, number, operation, text
from rocpd.schema.rules.categories import MARKER_PREFIXES
from rocpd.schema.rules.events import NOT_SCRATCH

Column: TypeAlias = tuple[str, Cell]
"""Header and cells."""

RANK = ("Rank", "Hostname")
"""Headers of the columns that `with_rank` adds."""


@frozen
class CsvFile:
    """One kind of event.

    Args:
        name: what follows the base name of the outputs.
        views: readable views whose rows it has.
        columns: headers and cells, without Guid.
        categories: prefixes of the categories of the rows; empty: all rows.
        where: SQL condition on the rows, over the aliases of the views.
        stats: name of the statistics file, and of the domain in `domain_stats`; None: no statistics.
    """

    name: str
    views: tuple[str, ...]
    columns: tuple[Column, ...]
    categories: tuple[str, ...] = ()
    where: str = ""
    stats: tuple[str, str] | None = None

    @property
    def name_cell(self) -> Cell:
        """What statistics go by: the name of the kernel, call or operation."""
        named = ("Kernel_Name", "Function", "Direction", "Operation")
        return next(cell for name, cell in self.columns if name in named)

    def header(self, with_rank: bool = False) -> str:
        """Return the first line."""
        names = ("Guid", *(name for name, _ in self.columns), *(RANK if with_rank else ()))
        return ",".join(f'"{name}"' for name in names) + "\n"


_TIMES: tuple[Column, ...] = (("Start_Timestamp", number("start")), ("End_Timestamp", number("end")))
_SIZES: tuple[Column, ...] = (
    ("LDS_Block_Size", number("lds_size")),
    ("Scratch_Size", number("scratch_size")),
    ("VGPR_Count", number("vgpr_count")),
    ("Accum_VGPR_Count", number("accum_vgpr_count")),
    ("SGPR_Count", number("sgpr_count")),
)

_KERNELS = CsvFile(
    "kernel_trace",
    ("kernels",),
    (
        ("Kind", text("category")),
        ("Agent_Id", agent()),
        ("Queue_Id", number("queue_id")),
        ("Stream_Id", number("stream_id")),
        ("Thread_Id", number("tid")),
        ("Dispatch_Id", number("dispatch_id")),
        ("Kernel_Id", number("kernel_id")),
        ("Kernel_Name", kernel("region", "name")),
        ("Correlation_Id", number("stack_id")),
        *_TIMES,
        *_SIZES,
        *((f"Workgroup_Size_{axis.upper()}", number(f"workgroup_{axis}")) for axis in "xyz"),
        *((f"Grid_Size_{axis.upper()}", number(f"grid_{axis}")) for axis in "xyz"),
    ),
    stats=("kernel_stats", "KERNEL_DISPATCH"),
)


def _calls(kind: str, *categories: str) -> CsvFile:
    marker = kind == "marker"
    columns: tuple[Column, ...] = (
        ("Domain", text("category")),
        ("Function", message() if marker else text("name")),
        ("Process_Id", number("pid")),
        ("Thread_Id", number("tid")),
        ("Correlation_Id", number("stack_id")),
        *_TIMES,
    )
    views = markers.SOURCES if marker else ("regions",)
    stats = (f"{kind}_api_stats", f"{kind.upper()}_API")
    return CsvFile(f"{kind}_api_trace", views, columns, categories, stats=stats)


_COPIES = CsvFile(
    "memory_copy_trace",
    ("memory_copies",),
    (
        ("Kind", text("category")),
        ("Direction", text("name")),
        ("Stream_Id", number("stream_id")),
        ("Source_Agent_Id", agent("src_")),
        ("Destination_Agent_Id", agent("dst_")),
        ("Correlation_Id", number("stack_id")),
        *_TIMES,
    ),
    stats=("memory_copy_stats", "MEMORY_COPY"),
)

_ALLOCATIONS = CsvFile(
    "memory_allocation_trace",
    ("memory_allocations",),
    (
        ("Kind", text("category")),
        ("Operation", operation()),
        ("Agent_Id", agent()),
        ("Allocation_Size", number("size")),
        ("Address", address()),
        ("Correlation_Id", number("stack_id")),
        *_TIMES,
    ),
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
        ("Queue_Id", number("queue_id")),
        ("Thread_Id", number("tid")),
        ("Alloc_Flags", number("alloc_flags")),
        *_TIMES,
        ("Allocation_Size", number("size")),
    ),
    stats=("scratch_memory_stats", "SCRATCH_MEMORY"),
)

_COUNTERS = CsvFile(
    "counter_collection",
    ("counters_collection",),
    (
        ("Correlation_Id", number("stack_id")),
        ("Dispatch_Id", number("dispatch_id")),
        ("Agent_Id", agent()),
        ("Queue_Id", number("queue_id")),
        ("Process_Id", number("pid")),
        ("Thread_Id", number("tid")),
        ("Grid_Size", number("grid_size")),
        ("Kernel_Id", number("kernel_id")),
        ("Kernel_Name", kernel("kernel_region", "kernel_name")),
        ("Workgroup_Size", number("workgroup_size")),
        ("LDS_Block_Size", number("lds_block_size")),
        *_SIZES[1:],
        ("Counter_Name", text("counter_name")),
        ("Counter_Value", number("value")),
        *_TIMES,
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


def columns_read(view: str, files: Iterable[CsvFile] = FILES) -> tuple[str, ...]:
    """Return the columns of a view that its files need: those of cells, and what rows are ordered and chosen by."""
    of_view = [file for file in files if view in file.views]
    cells = (cell for file in of_view for _, cell in file.columns)
    categories = ("category",) if any(file.categories for file in of_view) else ()
    return tuple(dict.fromkeys(("id", "start", "end", *categories, *(name for cell in cells for name in cell.reads))))
