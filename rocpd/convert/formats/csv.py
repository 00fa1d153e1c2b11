"""The CSV files of rocprofv3, with a leading Guid column: one per kind of event, statistics, and agent_info.csv.

Headers are those of rocprofv3, after the Guid; values are those of AMD's `rocpd convert -f csv`. The files of the tool
of 2026 are known from AMD's public documents and tests: one file for regions of every category, headers in which only
the first letter of each word is a capital, and a duration at the end.

Times stay as recorded, rows of a rank are in order of start. In statistics, sums are exact integers; only averages,
shares and deviations round. In the file of agents, numbers are bare, texts quoted, and bit fields packed into a number,
as AMD's tool of 2025 writes it; the tool of 2026 has a column for each capability instead, and the type of the agent as
a word.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from rocpd.base import NULL, AmdVersion, Ints, Progress, frozen
from rocpd.base.output import check_free, complete_or_nothing
from rocpd.base.texts import json_object
from rocpd.convert import deliver, view_reader
from rocpd.convert.formats.csv_lines import cells_of, lines, quoted
from rocpd.convert.options import AgentIndex, ConvertOptions
from rocpd.convert.view_reader import MARKER_SOURCES, Coded, Values, ViewRows, as_coded, listed, marker_messages
from rocpd.facts.columns import all_texts, group_rows
from rocpd.facts.spread import Moments, moments_by_group
from rocpd.federate.federation import Federation
from rocpd.federate.result import decoded
from rocpd.federate.run.rank_reader import RankReader
from rocpd.schema.quote import quote_name
from rocpd.schema.rules.categories import MARKER_PREFIXES
from rocpd.schema.rules.events import NOT_SCRATCH, valid_times

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
            pairs = zip(listed(rows.column(f"{prefix}agent_type")), index.tolist(), strict=True)
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


_LINES = 1 << 14
"""Lines per batch."""


@dataclass
class _Report:
    """The results for a rank beside its lines.

    Args:
        left: number of rows that are in no file, by category.
        damaged: number of values that should be numbers and are not, by column.
        groups: statistics by file.
        agents: lines of its agents.
    """

    left: Counter[str] = field(default_factory=Counter)
    damaged: Counter[str] = field(default_factory=Counter)
    groups: dict[str, Groups] = field(default_factory=dict)
    agents: list[str] = field(default_factory=list)


def write(session: Federation, options: ConvertOptions, progress: Progress | None = None) -> tuple[Path, ...]:
    """Write `<name>_<kind>.csv` for each kind of event that occurs; see `rocpd.convert.Format.write`.

    All files appear together when the last one is complete.
    """
    outputs = deliver.split_outputs(deliver.placements(session, aligned=False), options.split)
    for output in outputs:
        for name in _names(options):
            check_free(_path(options, output, name), options.force)
    left, damaged = Counter[str](), Counter[str]()
    with contextlib.ExitStack() as stack:
        parts = stack.enter_context(deliver.rank_parts(_write_part, session, outputs, options, progress))
        written: list[Path] = []
        for output in outputs:
            files = _Files(stack, options, output)
            reports = [files.take(*next(parts)) for _ in output.ranks]
            files.finish(reports)
            left += sum((report.left for report in reports), Counter())
            damaged += sum((report.damaged for report in reports), Counter())
            written += files.paths
    _note_left_out(session, left)
    if damaged:
        session.note(view_reader.damage_line("csv", damaged, "texts are written as they are, the rest is left empty"))
    return tuple(written)


def _names(options: ConvertOptions) -> list[str]:
    files = files_of(options.amd_version)
    stats = [file.stats[0] for file in files if file.stats and options.stats]
    return [*(file.name for file in files), *stats, *(["domain_stats"] if options.stats else []), "agent_info"]


def _path(options: ConvertOptions, output: deliver.Output, name: str) -> Path:
    return options.path(f"{output.infix}_{name}.csv" + (".gz" if options.gzip else ""))


class _Files:
    """The files of one output; each is created with its first line."""

    def __init__(self, stack: contextlib.ExitStack, options: ConvertOptions, output: deliver.Output) -> None:
        self._stack = stack
        self._options = options
        self._output = output
        self._temporary: dict[str, Path] = {}

    @property
    def paths(self) -> list[Path]:
        """Final paths, in order of the files."""
        return [_path(self._options, self._output, name) for name in _names(self._options) if name in self._temporary]

    def take(self, part: deliver.RankPart, report: _Report) -> _Report:
        """Append the lines of one rank."""
        for file in files_of(self._options.amd_version):
            piece = part.path / file.name
            if piece.exists():
                with self._open(file.name, _line(name for name, _ in file.all_columns(self._options.with_rank))) as out:
                    deliver.append(piece, out)
        part.path.rmdir()
        return report

    def finish(self, reports: Sequence[_Report]) -> None:
        """Add statistics and agents."""
        if self._options.stats:
            self._add_stats(reports)
        if agents := [line for report in reports for line in report.agents[1:]]:
            self._write("agent_info", [reports[0].agents[0], *agents])

    def _add_stats(self, reports: Sequence[_Report]) -> None:
        domains: Groups = {}
        for file in files_of(self._options.amd_version):
            groups: Groups = {}
            for report in reports:
                add_stats(groups, report.groups.get(file.name, {}).items())
            if groups and file.stats:
                self._write(file.stats[0], stats_lines(groups))
                domains[file.stats[1]] = sum(groups.values(), Moments())
        if domains:
            self._write("domain_stats", stats_lines(domains))

    def _write(self, name: str, text: Iterable[str]) -> None:
        with self._open(name) as out:
            out.write(deliver.packed("".join(text).encode("utf-8", "backslashreplace"), self._options))

    @contextlib.contextmanager
    def _open(self, name: str, header: str = "") -> Iterator[BinaryIO]:
        new = name not in self._temporary
        if new:
            path = _path(self._options, self._output, name)
            self._temporary[name] = self._stack.enter_context(complete_or_nothing(path, self._options.force))
        with self._temporary[name].open("ab") as out:
            if new:
                out.write(deliver.packed(header.encode(), self._options))
            yield out


def _write_part(part: deliver.RankPart, reader: RankReader) -> _Report:
    report = _Report()
    part.path.mkdir()
    source = _Source(reader, files_of(part.options.amd_version))
    for file in source.files:
        if views := source.rows(file):
            with deliver.open_part(part, file.name) as out:
                numbers = [cell.is_number for _, cell in file.all_columns(part.options.with_rank)]
                for columns in _in_order(file, views, part.options):
                    out.write(lines(columns, numbers))
            if part.options.stats and file.stats:
                report.groups[file.name] = _groups(file, views, part.options)
    report.left = source.left()
    report.damaged = source.damaged
    report.agents = agent_lines(reader, part.options)
    return report


class _Source:
    """The rows of one rank by file; regions are read once for all files of calls.

    Attributes:
        damaged: number of values read that should be numbers and are not, by column.
    """

    def __init__(self, reader: RankReader, files: Sequence[CsvFile]) -> None:
        self.files = files
        self._references = view_reader.ReferenceTables(reader)
        self._categories = all_texts(reader)
        self._calls: dict[str, ViewRows | None] = {}
        self.damaged = Counter[str]()

    def rows(self, file: CsvFile) -> list[ViewRows]:
        """Return the rows of a file, one entry per view."""
        return [rows for view in file.views if (rows := self._rows(file, view)) and rows.count]

    def _rows(self, file: CsvFile, view: str) -> ViewRows | None:
        if not file.categories:
            return self._read(view, file.where)
        if view not in self._calls:
            self._calls[view] = self._read(view)
        chosen = [number for number, text in self._categories.items() if text and text.startswith(file.categories)]
        rows = self._calls[view]
        return rows and rows.take(np.isin(rows.ints("category"), chosen))

    def _read(self, view: str, where: str = "") -> ViewRows | None:
        reader = view_reader.ViewReader(self._references, view, columns_read(view, self.files), where)
        rows = reader.read_all()
        self.damaged.update({f"{view}.{column}": count for column, count in reader.damaged.items()})
        return rows

    def left(self) -> Counter[str]:
        """Count the regions and samples that are in no file, by category."""
        known = tuple(prefix for file in self.files for prefix in file.categories)
        left = Counter[str]()
        for rows in filter(None, self._calls.values()):
            numbers, counts = np.unique(rows.ints("category"), return_counts=True)
            for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
                category = self._categories.get(number) or ""
                if not category.startswith(known):
                    left[category] += count
        return left


def _in_order(file: CsvFile, views: Sequence[ViewRows], options: ConvertOptions) -> Iterator[list[Values]]:
    """Yield the cells of rows in order of start and id, in batches of some thousand rows."""
    start, number = (np.concatenate([rows.ints(name) for rows in views]) for name in ("start", "id"))
    order: Ints = np.lexsort((number, start))
    chunks = [order[first : first + _LINES] for first in range(0, len(order), _LINES)]
    if len(views) == 1:
        yield from (_cells(file, views[0].take(chunk), options) for chunk in chunks)
        return
    columns = [_concatenated(parts) for parts in zip(*(_cells(file, rows, options) for rows in views), strict=True)]
    for rows in chunks:
        yield [Coded(c.codes[rows], c.texts) if isinstance(c, Coded) else view_reader.take(c, rows) for c in columns]


def _concatenated(parts: Sequence[Values]) -> Values:
    """Return the column of several views as one; texts where a damaged file mixes numbers and texts."""
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    if len(arrays) == len(parts) and len({array.dtype for array in arrays}) == 1:
        return view_reader.joined(arrays)
    texts = (cells_of(part) if isinstance(part, np.ndarray) else listed(part) for part in parts)
    return Coded.of(itertools.chain.from_iterable(texts))


def _cells(file: CsvFile, rows: ViewRows, options: ConvertOptions) -> list[Values]:
    return [cell.make(rows, options) for _, cell in file.all_columns(options.with_rank)]


def _groups(file: CsvFile, views: Sequence[ViewRows], options: ConvertOptions) -> Groups:
    groups: Groups = {}
    for rows in views:
        add_stats(groups, stats_of(file.name_cell.make(rows, options), rows.ints("start"), rows.ints("end")))
    return groups


def _note_left_out(session: Federation, left: Counter[str]) -> None:
    """Note the regions and samples whose category has no file in rocprofv3's set."""
    if left:
        categories = sorted(category or "no category" for category in left)
        names = ", ".join(categories[:5]) + (" …" if len(categories) > 5 else "")
        count = sum(left.values())
        session.note(
            f"csv: {count} regions and samples are in no file, rocprofv3 has none for their category ({names})"
        )


_STATS_HEADER = '"Name","Calls","TotalDurationNs","AverageNs","Percentage","MinNs","MaxNs","StdDev"\n'

Groups = dict[str, Moments]
"""Statistics by name."""


def stats_of(names: Values, start: Ints, end: Ints) -> Iterator[tuple[str, Moments]]:
    """Return names with statistics of durations; rows with invalid timestamps count as calls, not as time."""
    coded, known = as_coded(names), np.where(valid_times(start, end), end - start, -1)
    groups, texts = group_rows([coded.codes]), [*coded.texts, ""]
    moments = moments_by_group(known[groups.order], groups.first)
    return zip((texts[code] for (code,) in groups.keys), moments, strict=True)


def add_stats(total: Groups, part: Iterable[tuple[str, Moments]]) -> None:
    """Add names with statistics to `total`."""
    for name, moments in part:
        total[name] = total.get(name, Moments()) + moments


def stats_lines(groups: Mapping[str, Moments]) -> Iterable[str]:
    """Yield the lines of one file, most time first; shares are shares of the time in the file."""
    yield _STATS_HEADER
    total = sum(m.total for m in groups.values())
    for name, m in sorted(groups.items(), key=lambda item: (-item[1].total, item[0])):
        share = m.total * 100 / total if total else None
        numbers = (m.calls, m.total, m.mean, share, m.shortest, m.longest, m.deviation)
        cells = ("" if value is None else repr(value) for value in numbers)
        yield f"{quoted(name)},{','.join(cells)}\n"


FIELDS: Mapping[str, Mapping[str, int]] = MappingProxyType({
    "capability": {
    "HotPluggable": 1, "HSAMMUPresent": 1, "SharedWithGraphics": 1, "QueueSizePowerOfTwo": 1, "QueueSize32bit": 1,
    "QueueIdleEvent": 1, "VALimit": 1, "WatchPointsSupported": 1, "WatchPointsTotalBits": 4, "DoorbellType": 2,
    "AQLQueueDoubleMap": 1, "DebugTrapSupported": 1, "WaveLaunchTrapOverrideSupported": 1,
    "WaveLaunchModeSupported": 1, "PreciseMemoryOperationsSupported": 1, "DEPRECATED_SRAM_EDCSupport": 1,
    "Mem_EDCSupport": 1, "RASEventNotify": 1, "ASICRevision": 4, "SRAM_EDCSupport": 1, "SVMAPISupported": 1,
    "CoherentHostAccess": 1, "DebugSupportedFirmware": 1, "PreciseALUOperationsSupported": 1,
    "PerQueueResetSupported": 1,
    },
    "fw_version": {"uCode": 10, "Major": 6, "Minor": 6, "Stepping": 10},
    "sdma_fw_version": {"uCodeSDMA": 10, "uCodeRes": 10},
})  # fmt: skip
"""Value of an agent's description that AMD's agent_info.csv packs into one number -> its fields from bit 0 up and
their widths [bits]; checked against the numbers of a real MI300X."""

_AGENT_COLUMNS = (
    "Node_Id", "Logical_Node_Id", "Agent_Type", "Cpu_Cores_Count", "Simd_Count", "Cpu_Core_Id_Base", "Simd_Id_Base",
    "Max_Waves_Per_Simd", "Lds_Size_In_Kb", "Gds_Size_In_Kb", "Num_Gws", "Wave_Front_Size", "Num_Xcc", "Cu_Count",
    "Array_Count", "Num_Shader_Banks", "Simd_Arrays_Per_Engine", "Cu_Per_Simd_Array", "Simd_Per_Cu",
    "Max_Slots_Scratch_Cu", "Gfx_Target_Version", "Vendor_Id", "Device_Id", "Location_Id", "Domain",
    "Drm_Render_Minor", "Num_Sdma_Engines", "Num_Sdma_Xgmi_Engines", "Num_Sdma_Queues_Per_Engine", "Num_Cp_Queues",
    "Max_Engine_Clk_Ccompute", "Max_Engine_Clk_Fcompute", "Sdma_Fw_Version", "Fw_Version", "Capability",
    "Cu_Per_Engine", "Max_Waves_Per_Cu", "Family_Id", "Workgroup_Max_Size", "Grid_Max_Size", "Local_Mem_Size",
    "Hive_Id", "Gpu_Id", "Workgroup_Max_Dim_X", "Workgroup_Max_Dim_Y", "Workgroup_Max_Dim_Z", "Grid_Max_Dim_X",
    "Grid_Max_Dim_Y", "Grid_Max_Dim_Z", "Name", "Vendor_Name", "Product_Name", "Model_Name",
)  # fmt: skip
_CAPABILITY = "Capability"
_CAPABILITIES = tuple(f"Cap_{name}" for name in FIELDS["capability"])
_OF_ROW = {
    "node_id": "absolute_index",
    "logical_node_id": "logical_index",
    "agent_type": "type",
    **{name: name for name in ("name", "vendor_name", "product_name", "model_name")},
}
"""Columns that the agent's row can fill in for descriptions without them; the row's type is a word, not a number."""

_EXTDATA = "CASE WHEN json_valid(extdata) THEN json_remove(extdata, '$.caches', '$.io_links') ELSE extdata END"
"""The description without parts that no column shows: 120 kB of each GPU, which take Python 2 ms to read."""


def agent_lines(reader: RankReader, options: ConvertOptions) -> list[str]:
    """Return the header and a line per agent of a rank, in order of id."""
    names = _agent_columns(options.amd_version)
    rank: tuple[object, ...] = (reader.rank.number, reader.rank.hostname or "") if options.with_rank else ()
    lines = [_line(("Guid", *names, *(name for name, _ in RANK if options.with_rank)))]
    columns = tuple(dict.fromkeys(_OF_ROW.values()))
    listed = ", ".join(map(quote_name, columns))
    for extdata, *values in reader.rows(f"SELECT {_EXTDATA}, {listed} FROM rocpd_info_agent ORDER BY id"):
        row = dict(zip(columns, values, strict=True))
        described = (json_object(extdata) if isinstance(extdata, (str, bytes)) else None) or {}
        if options.amd_version is AmdVersion.V2026:
            described["agent_type"] = row["type"]
        lines.append(_line((reader.rank.guid, *(_agent_value(described, row, name) for name in names), *rank)))
    return lines


def _agent_columns(version: AmdVersion) -> tuple[str, ...]:
    if version is AmdVersion.V2025:
        return _AGENT_COLUMNS
    at = _AGENT_COLUMNS.index(_CAPABILITY)
    return (*_AGENT_COLUMNS[:at], *_CAPABILITIES, *_AGENT_COLUMNS[at + 1 :])


def _agent_value(described: dict[str, Any], row: dict[str, Any], column: str) -> object:
    if column in _CAPABILITIES:
        of = described.get("capability")
        return of.get(column.removeprefix("Cap_")) if isinstance(of, dict) else None
    name = column.lower()
    if "_max_dim_" in name:
        of = described.get(name[:-2])
        return of.get(name[-1]) if isinstance(of, dict) else None
    value = described.get(name)
    if (number := packed_number(name, value)) is not None:
        return number
    return row[_OF_ROW[name]] if value is None and name in _OF_ROW else value


def _line(values: Iterable[object]) -> str:
    return ",".join(map(_cell, values)) + "\n"


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, (int, float)):
        return repr(value)
    return quoted(decoded(value) if isinstance(value, (str, bytes)) else _dumped(value))


def _dumped(value: object) -> str:
    try:
        return json.dumps(value, separators=(",", ":"))
    except RecursionError:  # a value that could be read at its nesting depth may not be writable at the current one
        return ""


def packed_number(name: str, value: object) -> int | None:
    """Return the number of a value that consists of bit fields; None if it is not in `FIELDS`, or has other fields.

    >>> packed_number("fw_version", {"uCode": 185, "Major": 0}), packed_number("fw_version", "185")
    (185, None)
    """
    widths = FIELDS.get(name)
    if widths is None or not isinstance(value, dict) or not value.keys() <= widths.keys():
        return None
    number = 0
    for (name_of_field, width), end in zip(widths.items(), accumulate(widths.values()), strict=True):
        bits = value.get(name_of_field, 0)
        if not isinstance(bits, int) or not 0 <= bits < 1 << width:
            return None
        number |= bits << (end - width)
    return number
