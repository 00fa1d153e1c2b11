"""Owns which CSV files there are, their columns, and the SELECT that gives their lines for one rank.

Never runs SQL. Headers are those of rocprofv3; every file has a leading Guid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rocpd.convert.options import AgentIndex, ConvertOptions
from rocpd.schema.quote import quote_name, quote_text
from rocpd.schema.render import Part, select_text

Column: TypeAlias = tuple[str, Callable[[ConvertOptions], str]]
"""Header, and the SQL expression of its text over the columns of the view."""


def _number(column: str) -> Callable[[ConvertOptions], str]:
    """A number as SQLite writes it, nothing for NULL; text in its place (a damaged file) is quoted."""
    name = quote_name(column)
    return lambda _: f"CASE typeof({name}) WHEN 'integer' THEN {name} WHEN 'null' THEN '' ELSE {_quoted(name)} END"


def _real(column: str) -> Callable[[ConvertOptions], str]:
    """A floating-point number with as many digits as it takes to read the same one back."""
    name = quote_name(column)
    return lambda _: f"IFNULL(IIF(CAST(CAST({name} AS TEXT) AS REAL) = {name}, {name}, format('%!.17g', {name})), '')"


def _text(column: str) -> Callable[[ConvertOptions], str]:
    return lambda _: _quoted(quote_name(column))


def _quoted(expression: str) -> str:
    return f"""'"' || replace(IFNULL({expression}, ''), '"', '""') || '"'"""


def _sql(expression: str) -> Callable[[ConvertOptions], str]:
    return lambda _: _quoted(expression)


def _agent(prefix: str = "") -> Callable[[ConvertOptions], str]:
    """`"Agent 2"`, or `"GPU 0"` for the index within a type; an empty string where the agent is unknown."""

    def text(options: ConvertOptions) -> str:
        how = options.agent_index_value
        short = {AgentIndex.ABSOLUTE: "abs", AgentIndex.RELATIVE: "log", AgentIndex.TYPE_RELATIVE: "type"}[how]
        index = quote_name(f"{prefix}agent_{short}_index")
        word = quote_name(f"{prefix}agent_type") if how is AgentIndex.TYPE_RELATIVE else "'Agent'"
        return _quoted(f"{word} || ' ' || {index}")

    return text


def _kernel(region: str, name: str) -> Callable[[ConvertOptions], str]:
    def text(options: ConvertOptions) -> str:
        chosen = quote_name(name)
        return _quoted(f"IFNULL(NULLIF({quote_name(region)}, ''), {chosen})" if options.kernel_rename else chosen)

    return text


@dataclass(frozen=True)
class CsvFile:
    """One kind of event.

    Args:
        name: what follows the base name of the outputs.
        views: readable views with equal columns whose rows it has.
        columns: headers and expressions, without Guid.
        where: SQL condition on the rows, or empty.
        categories: GLOB patterns of categories of the rows, or empty; a rank that has no such text is skipped.
    """

    name: str
    views: tuple[str, ...]
    columns: tuple[Column, ...]
    where: str = ""
    categories: tuple[str, ...] = ()

    @property
    def header(self) -> str:
        """The first line."""
        return ",".join(f'"{name}"' for name in ("Guid", *(name for name, _ in self.columns))) + "\n"

    def lines(self, part: Part, options: ConvertOptions) -> str:
        """Give the SELECT of the lines of one rank as blobs, in order of start."""
        items = ", ".join(expression(options) for _, expression in self.columns)
        guid = "'\"' || replace(\"guid\", '\"', '\"\"') || '\"'"
        return (
            f"SELECT CAST(concat_ws(',', {guid}, {items}) || char(10) AS BLOB) {self._source(part)} ORDER BY start, id"
        )

    def count(self, part: Part) -> str:
        """Give the SELECT that counts the lines of one rank."""
        return f"SELECT COUNT(*) {self._source(part)}"

    def has_rows(self, part: Part) -> str | None:
        """Give a cheap SELECT that has a row when the rank may have lines; None: it may."""
        if not self.categories or "rocpd_string" not in part.tables:
            return None
        return f"SELECT 1 FROM {part.name('rocpd_string')} WHERE {_globs('string', self.categories)} LIMIT 1"

    def _source(self, part: Part) -> str:
        rows = "\nUNION ALL\n".join(select_text(view, [part]) for view in self.views)
        conditions = [c for c in (self.where, _globs("category", self.categories)) if c]
        where = f" WHERE {' AND '.join(f'({c})' for c in conditions)}" if conditions else ""
        return f"FROM (\n{rows}\n){where}"


def _globs(column: str, patterns: Sequence[str]) -> str:
    return " OR ".join(f"{quote_name(column)} GLOB {quote_text(pattern)}" for pattern in patterns)


_TIMES: tuple[Column, ...] = (("Start_Timestamp", _number("start")), ("End_Timestamp", _number("end")))
_SIZES: tuple[Column, ...] = (
    ("LDS_Block_Size", _number("lds_size")),
    ("Scratch_Size", _number("scratch_size")),
    ("VGPR_Count", _number("vgpr_count")),
    ("Accum_VGPR_Count", _number("accum_vgpr_count")),
    ("SGPR_Count", _number("sgpr_count")),
)

_KERNELS = CsvFile(
    "kernel_trace",
    ("kernels",),
    (
        ("Kind", _text("category")),
        ("Agent_Id", _agent()),
        ("Queue_Id", _number("queue_id")),
        ("Stream_Id", _number("stream_id")),
        ("Thread_Id", _number("tid")),
        ("Dispatch_Id", _number("dispatch_id")),
        ("Kernel_Id", _number("kernel_id")),
        ("Kernel_Name", _kernel("region", "name")),
        ("Correlation_Id", _number("stack_id")),
        *_TIMES,
        *_SIZES,
        *((f"Workgroup_Size_{axis.upper()}", _number(f"workgroup_{axis}")) for axis in "xyz"),
        *((f"Grid_Size_{axis.upper()}", _number(f"grid_{axis}")) for axis in "xyz"),
    ),
)


def _calls(name: str, *categories: str, views: tuple[str, ...] = ("regions",), function: str = '"name"') -> CsvFile:
    columns: tuple[Column, ...] = (
        ("Domain", _text("category")),
        ("Function", _sql(function)),
        ("Process_Id", _number("pid")),
        ("Thread_Id", _number("tid")),
        ("Correlation_Id", _number("stack_id")),
        *_TIMES,
    )
    return CsvFile(name, views, columns, categories=categories)


_MESSAGE = 'IFNULL(CASE WHEN json_valid("extdata") THEN json_extract("extdata", \'$.message\') END, "name")'

_COPIES = CsvFile(
    "memory_copy_trace",
    ("memory_copies",),
    (
        ("Kind", _text("category")),
        ("Direction", _text("name")),
        ("Stream_Id", _number("stream_id")),
        ("Source_Agent_Id", _agent("src_")),
        ("Destination_Agent_Id", _agent("dst_")),
        ("Correlation_Id", _number("stack_id")),
        *_TIMES,
    ),
)

_OPERATION = (
    "'MEMORY_ALLOCATION_' || CASE \"level\" WHEN 'VIRTUAL' THEN 'VMEM_' ELSE '' END"
    " || CASE \"type\" WHEN 'ALLOC' THEN 'ALLOCATE' ELSE \"type\" END"
)

_ALLOCATIONS = CsvFile(
    "memory_allocation_trace",
    ("memory_allocations",),
    (
        ("Kind", _text("category")),
        ("Operation", _sql(_OPERATION)),
        ("Agent_Id", _agent()),
        ("Allocation_Size", _number("size")),
        ("Address", _sql("IIF(\"address\" IS NULL, '', format('0x%016x', \"address\"))")),
        ("Correlation_Id", _number("stack_id")),
        *_TIMES,
    ),
    where="\"level\" IS NOT 'SCRATCH'",
)

_SCRATCH = CsvFile(
    "scratch_memory_trace",
    ("scratch_memory",),
    (
        ("Kind", _text("category")),
        ("Operation", _sql("'SCRATCH_MEMORY_' || \"operation\"")),
        ("Agent_Id", _agent()),
        ("Queue_Id", _number("queue_id")),
        ("Thread_Id", _number("tid")),
        ("Alloc_Flags", _number("alloc_flags")),
        *_TIMES,
        ("Allocation_Size", _number("size")),
    ),
)

_COUNTERS = CsvFile(
    "counter_collection",
    ("counters_collection",),
    (
        ("Correlation_Id", _number("stack_id")),
        ("Dispatch_Id", _number("dispatch_id")),
        ("Agent_Id", _agent()),
        ("Queue_Id", _number("queue_id")),
        ("Process_Id", _number("pid")),
        ("Thread_Id", _number("tid")),
        ("Grid_Size", _number("grid_size")),
        ("Kernel_Id", _number("kernel_id")),
        ("Kernel_Name", _kernel("kernel_region", "kernel_name")),
        ("Workgroup_Size", _number("workgroup_size")),
        ("LDS_Block_Size", _number("lds_block_size")),
        *_SIZES[1:],
        ("Counter_Name", _text("counter_name")),
        ("Counter_Value", _real("value")),
        *_TIMES,
    ),
)

FILES: tuple[CsvFile, ...] = (
    _KERNELS,
    _calls("hip_api_trace", "HIP_*"),
    _calls("hsa_api_trace", "HSA_*"),
    _calls("marker_api_trace", "MARKER_*", "rocm_marker*", views=("regions", "sample_regions"), function=_MESSAGE),
    _calls("rccl_api_trace", "RCCL_*"),
    _calls("rocdecode_api_trace", "ROCDECODE_*"),
    _calls("rocjpeg_api_trace", "ROCJPEG_*"),
    _COPIES,
    _ALLOCATIONS,
    _SCRATCH,
    _COUNTERS,
)
"""The files in the order in which they are written; agent_info comes last."""
