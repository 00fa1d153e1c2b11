"""Defines the CSV files, their columns, and how cells are made of the columns of views. Reads no database.

Headers are those of rocprofv3, after a leading Guid; values are those of AMD's `rocpd convert -f csv`. The files of the
tool of 2026 are known from AMD's public documents and tests: one file for regions of every category, headers in which
only the first letter of each word is a capital, and a duration at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from rocpd.base import NULL, AmdVersion, frozen
from rocpd.convert.options import AgentIndex, ConvertOptions
from rocpd.convert.view_reader import MARKER_SOURCES, Coded, Values, ViewRows, as_coded, listed, marker_messages
from rocpd.schema.rules.categories import MARKER_PREFIXES
from rocpd.schema.rules.events import NOT_SCRATCH

Make: TypeAlias = Callable[[ViewRows, ConvertOptions], Values]


@frozen
class Cell:
    """The cells of one column.

    Args:
        reads: columns of the view that the cells are made of.
        make: makes the cells.
        is_number: whether they are numbers; in a damaged file they may be texts.
    """

    reads: tuple[str, ...]
    make: Make
    is_number: bool = False


Column: TypeAlias = tuple[str, Cell]
"""Header and cells."""


def number(column: str) -> Cell:
    """A number."""
    return Cell((column,), lambda rows, _: rows.column(column), is_number=True)


def text(column: str, before: str = "") -> Cell:
    """A text, with `before` in front of it."""

    def make(rows: ViewRows, _: ConvertOptions) -> Values:
        values = rows.column(column)
        if not before:
            return values
        coded = as_coded(values)
        return Coded(coded.codes, [before + text for text in coded.texts])

    return Cell((column,), make)


def agent(prefix: str = "") -> Cell:
    """Cells such as `"Agent 2"`, or `"GPU 0"` for the index within a type; an empty text for an unknown agent."""

    def make(rows: ViewRows, options: ConvertOptions) -> Values:
        how = options.agent_index_value or AgentIndex.RELATIVE
        index = np.asarray(rows.column(prefix + how.view_column))
        if how.has_type:
            words = listed(rows.column(f"{prefix}agent_type"))
            pairs = zip(words, index.tolist(), strict=True)
            return Coded.of(None if word is None or number == NULL else f"{word} {number}" for word, number in pairs)
        known, codes = np.unique(index, return_inverse=True)
        return Coded(np.where(index == NULL, -1, codes), [f"Agent {number}" for number in known.tolist()])

    return Cell((*(prefix + index.view_column for index in AgentIndex), f"{prefix}agent_type"), make)


def kernel(region: str, name: str) -> Cell:
    """The kernel, or with `kernel_rename` the text of the enclosing marker if there is one."""

    def make(rows: ViewRows, options: ConvertOptions) -> Values:
        names = rows.column(name)
        if not options.kernel_rename:
            return names
        marked = listed(rows.column(region))
        return Coded.of(text or kernel for text, kernel in zip(marked, listed(names), strict=True))

    return Cell((region, name), make)


MESSAGE = Cell(("name", "extdata"), lambda rows, _: marker_messages(rows))
"""The message of a marker, or its function if it has none."""


def _operations(rows: ViewRows, _: ConvertOptions) -> Values:
    """Return the operations: `MEMORY_ALLOCATION_ALLOCATE`, `MEMORY_ALLOCATION_VMEM_FREE` …"""
    pairs = zip(*(listed(rows.column(name)) for name in ("level", "type")), strict=True)
    return Coded.of(_operation(level, kind) for level, kind in pairs)


def _addresses(rows: ViewRows, _: ConvertOptions) -> Values:
    """Return the addresses in 16 hexadecimal digits; an empty text for a missing one."""
    values = listed(rows.column("address"))
    return ["" if v == NULL else f"0x{v & (1 << 64) - 1:016x}" if isinstance(v, int) else v for v in values]


def _operation(level: str | None, kind: str | None) -> str:
    if kind is None:
        return ""
    return f"MEMORY_ALLOCATION_{'VMEM_' if level == 'VIRTUAL' else ''}{'ALLOCATE' if kind == 'ALLOC' else kind}"


_GUID: Column = ("Guid", text("guid"))
RANK: tuple[Column, ...] = (
    ("Rank", Cell((), lambda rows, _: np.full(rows.count, rows.rank.number), is_number=True)),
    ("Hostname", Cell((), lambda rows, _: Coded(np.zeros(rows.count, np.int64), [rows.rank.hostname or ""]))),
)
"""The columns that `with_rank` adds."""


@frozen
class CsvFile:
    """One kind of event.

    Args:
        name: the part of the file's name after the base name of the outputs.
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
        """The cell whose values group the statistics: the name of the kernel, call or operation."""
        named = ("Kernel_Name", "Function", "Direction", "Operation")
        return next(cell for name, cell in self.columns if name in named)

    def all_columns(self, with_rank: bool) -> tuple[Column, ...]:
        """Return the columns with Guid and, if `with_rank`, those of the rank."""
        return (_GUID, *self.columns, *(RANK if with_rank else ()))


_CELLS: Mapping[str, Cell] = {
    "Kind": text("category"),
    "Domain": text("category"),
    "Direction": text("name"),
    "Agent_Id": agent(),
    "Source_Agent_Id": agent("src_"),
    "Destination_Agent_Id": agent("dst_"),
    "Process_Id": number("pid"),
    "Thread_Id": number("tid"),
    "Correlation_Id": number("stack_id"),
    "Start_Timestamp": number("start"),
    "End_Timestamp": number("end"),
    **{f"{what}_Size_{d.upper()}": number(f"{what.lower()}_{d}") for what in ("Workgroup", "Grid") for d in "xyz"},
    "Allocation_Size": number("size"),
    "Address": Cell(("address",), _addresses),
    "Counter_Name": text("counter_name"),
    "Counter_Value": number("value"),
}
"""Header -> cells; any other header stands for numbers of the view's column of this name in small letters."""


def _columns(header: str, others: Mapping[str, Cell] = MappingProxyType({})) -> tuple[Column, ...]:
    """Return the columns of a header; `others` has cells for this header alone."""
    known = {**_CELLS, **others}
    return tuple((name, known.get(name) or number(name.lower())) for name in header.split(","))


_KERNELS = CsvFile(
    "kernel_trace",
    ("kernels",),
    _columns(
        "Kind,Agent_Id,Queue_Id,Stream_Id,Thread_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,Start_Timestamp,"
        "End_Timestamp,LDS_Block_Size,Scratch_Size,VGPR_Count,Accum_VGPR_Count,SGPR_Count,Workgroup_Size_X,"
        "Workgroup_Size_Y,Workgroup_Size_Z,Grid_Size_X,Grid_Size_Y,Grid_Size_Z",
        {"Kernel_Name": kernel("region", "name"), "LDS_Block_Size": number("lds_size")},
    ),
    stats=("kernel_stats", "KERNEL_DISPATCH"),
)


def _call_columns(function: Cell) -> tuple[Column, ...]:
    header = "Domain,Function,Process_Id,Thread_Id,Correlation_Id,Start_Timestamp,End_Timestamp"
    return _columns(header, {"Function": function})


def _calls(kind: str, *categories: str) -> CsvFile:
    marker = kind == "marker"
    columns = _call_columns(MESSAGE if marker else text("name"))
    views = MARKER_SOURCES if marker else ("regions",)
    stats = (f"{kind}_api_stats", f"{kind.upper()}_API")
    return CsvFile(f"{kind}_api_trace", views, columns, categories, stats=stats)


_COPIES = CsvFile(
    "memory_copy_trace",
    ("memory_copies",),
    _columns(
        "Kind,Direction,Stream_Id,Source_Agent_Id,Destination_Agent_Id,Correlation_Id,Start_Timestamp,End_Timestamp"
    ),
    stats=("memory_copy_stats", "MEMORY_COPY"),
)

_ALLOCATIONS = CsvFile(
    "memory_allocation_trace",
    ("memory_allocations",),
    _columns(
        "Kind,Operation,Agent_Id,Allocation_Size,Address,Correlation_Id,Start_Timestamp,End_Timestamp",
        {"Operation": Cell(("level", "type"), _operations)},
    ),
    where=f"M.{NOT_SCRATCH}",  # scratch memory has a file of its own
    stats=("memory_allocation_stats", "MEMORY_ALLOCATION"),
)

_SCRATCH = CsvFile(
    "scratch_memory_trace",
    ("scratch_memory",),
    _columns(
        "Kind,Operation,Agent_Id,Queue_Id,Thread_Id,Alloc_Flags,Start_Timestamp,End_Timestamp,Allocation_Size",
        {"Operation": text("operation", "SCRATCH_MEMORY_")},
    ),
    stats=("scratch_memory_stats", "SCRATCH_MEMORY"),
)

_COUNTERS = CsvFile(
    "counter_collection",
    ("counters_collection",),
    _columns(
        "Correlation_Id,Dispatch_Id,Agent_Id,Queue_Id,Process_Id,Thread_Id,Grid_Size,Kernel_Id,Kernel_Name,"
        "Workgroup_Size,LDS_Block_Size,Scratch_Size,VGPR_Count,Accum_VGPR_Count,SGPR_Count,Counter_Name,Counter_Value,"
        "Start_Timestamp,End_Timestamp",
        {"Kernel_Name": kernel("kernel_region", "kernel_name")},
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
    """Return the columns of a view that its files need: for cells, and for the order and selection of rows."""
    of_view = [file for file in files if view in file.views]
    cells = (cell for file in of_view for _, cell in file.columns)
    categories = ("category",) if any(file.categories for file in of_view) else ()
    return tuple(dict.fromkeys(("id", "start", "end", *categories, *(name for cell in cells for name in cell.reads))))


_DURATION = _columns("Duration")
_NAMES = {"counter_collection": "counter_collection_trace"}

_REGIONS = CsvFile(
    "regions_trace", ("regions",), (*_call_columns(MESSAGE), *_DURATION), stats=("regions_stats", "REGIONS")
)

_GRAPHS = CsvFile(
    "graph_launch_trace",
    ("graph_launches",),
    _columns(
        "Queue_Id,Thread_Id,Graph_Exec_Id,Kernel_Dispatch_Count,Correlation_Id,Start_Timestamp,End_Timestamp,Duration"
    ),
)


def _titled(file: CsvFile) -> CsvFile:
    columns = tuple(("_".join(word.capitalize() for word in name.split("_")), cell) for name, cell in file.columns)
    return replace(file, name=_NAMES.get(file.name, file.name), columns=(*columns, *_DURATION))


FILES_2026 = (*(_titled(file) for file in FILES if not file.categories), _REGIONS, _GRAPHS)
"""The files in the order in which they are written; statistics and agent_info come last."""


def files_of(version: AmdVersion) -> tuple[CsvFile, ...]:
    """Return the files of a version of AMD's tool."""
    return FILES_2026 if version is AmdVersion.V2026 else FILES
