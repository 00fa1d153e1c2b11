"""Signs by which inputs are known: the first bytes of a file, its tables, the names in a folder; never a file's name.

Before an input is read, its first bytes, its SQLite tables, or the names in its folder are looked at (`InputHead`).
Each function here checks for one kind of input. Imports no importer.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import re
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from rocpd.base import RocpdError, frozen
from rocpd.base.sqlite import apsw
from rocpd.federate.open.opening import opening_of

GZIP_MAGIC = b"\x1f\x8b"
_SQLITE = b"SQLite format 3\0"
_MOST_BYTES = 1 << 20
_MOST_FILES = 10_000
_BUSY_MS = 250  # time to wait for a locked file: the names are in its start, too
_CREATE_TABLE = re.compile(rb'CREATE TABLE (?:IF NOT EXISTS )?["`\[]?(\w+)')


@frozen
class InputHead:
    """The part of an input that importers see before it is read.

    Args:
        path: file or folder.
        start: the first MiB of a file, decompressed; empty for a folder.
        names: names of the files in a folder, as `name`, `folder/name` or `pass_1/folder/name`; empty for a file.
    """

    path: Path
    start: bytes = b""
    names: tuple[str, ...] = ()

    @functools.cached_property
    def tables(self) -> frozenset[str]:
        """Names of the tables of a SQLite file; of a compressed one, those in its start; empty for other files."""
        if not self.start.startswith(_SQLITE):
            return frozenset()
        try:
            opening = opening_of(self.path, _BUSY_MS)
            try:
                with contextlib.closing(opening.connect()) as connection:
                    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
                    return frozenset(str(name) for (name,) in rows)
            finally:
                opening.discard()
        except (RocpdError, apsw.Error):
            return frozenset(name.decode() for name in _CREATE_TABLE.findall(self.start))


def head_of(path: Path) -> InputHead:
    """Return the head of an input; a file that cannot be decompressed has an empty start.

    Raises:
        OSError: the input cannot be read.
    """
    if path.is_dir():
        return InputHead(path, names=tuple(file.relative_to(path).as_posix() for file in files_in(path)[:_MOST_FILES]))
    with path.open("rb") as file:
        start = file.read(_MOST_BYTES)
    if start.startswith(GZIP_MAGIC):
        try:
            with gzip.open(path) as content:
                start = content.read(_MOST_BYTES)
        except (OSError, EOFError, zlib.error):
            start = _readable_start(start)
    return InputHead(path, start)


def _readable_start(packed: bytes) -> bytes:
    """Return the part of the start of a damaged file that can be decompressed."""
    try:
        return zlib.decompressobj(wbits=31).decompress(packed, _MOST_BYTES)
    except zlib.error:
        return b""


def files_in(folder: Path) -> Sequence[Path]:
    """Return the files of a folder and of the folders in it, in order; for rocprofv3's passes one level more."""
    paths = [path for pattern in ("*", "*/*", "pass_*/*/*") for path in sorted(folder.glob(pattern))]
    return [path for path in paths if path.is_file()]


_CHROME = re.compile(rb'\{"displayTimeUnit":"ns","traceEvents":\[\s*\{"ph":"M","pid":\d+,"name":"process_name"')
_KINETO_KEY = re.compile(rb'"(?:schemaVersion|deviceProperties|distributedInfo|record_shapes)"\s*:')
_KINETO_CATEGORY = re.compile(
    rb'"cat"\s*:\s*"(?:cpu_op|python_function|user_annotation|cuda_runtime|cuda_driver|kernel|gpu_memcpy|Operator)"'
)
ROCPROFV3_KEY = "rocprofiler-sdk-tool"
"""The first key of rocprofv3's JSON."""
ROCPROF_COLUMNS = frozenset(("index", "kernelname", "gpu-id", "grd", "wgr"))
"""Columns, in small letters, that every table of kernels of the first rocprof has."""
SYSTEM, _COUNTERS, _RESULTS = "sysinfo.csv", "pmc_perf.csv", re.compile(r"results_[^/]*\.csv(\.gz)?")
LOG_HEADER = b"kernel,dispatch,startNs,endNs"
"""The first line of a log of logduration."""

_APIS = ("hip", "hsa", "marker", "rccl", "rocdecode", "rocjpeg", "ompt", "rocshmem")
CALLS = (*(f"{api}_api_trace" for api in _APIS), "regions_trace")
KERNELS, COPIES, ALLOCATIONS, SCRATCH = (
    "kernel_trace", "memory_copy_trace", "memory_allocation_trace", "scratch_memory_trace"
)  # fmt: skip
COUNTERS, AGENTS = ("counter_collection", "counter_collection_trace"), "agent_info"
GRAPHS = "graph_launch_trace"
PC_SAMPLES = {f"pc_sampling_{method}": method for method in ("host_trap", "stochastic")}
KINDS = (*CALLS, KERNELS, COPIES, ALLOCATIONS, SCRATCH, GRAPHS, *COUNTERS, *PC_SAMPLES)
"""Kinds of rocprofv3's CSV files that hold events."""
CSV_NAME = re.compile(
    rf"(?:(?P<before>.*?)_)?(?P<kind>{'|'.join(sorted((*KINDS, AGENTS), key=len, reverse=True))})\.csv"
)

ANALYSIS = "kernel_analysis"
"""The first member of objects of Omniprobe's MemoryAnalysis."""
_REPORT_OF_MEMORY = b"=== L2 cache line use report ==="
JSON_BLOCKS, _CSV_BLOCKS = b'"block_start_line"', re.compile(rb"Start Line\s*,\s*End Line\s*,\s*Duration")
_JSON_PAGES = re.compile(rb'^[ \t]*\{\s*"kernel"\s*:[^\n]*"pages"\s*:', re.M)
JSON_ADDRESSES = re.compile(rb'^[ \t]*\{\s*"kernel_name"\s*:[^\n]*"addresses"\s*:', re.M)
CSV_ADDRESSES = "ADDRESS_MESSAGE,"


def is_rpd(head: InputHead) -> bool:
    """Whether it is an RPD trace: only RPD has a table `rocpd_api` without a suffix."""
    return "rocpd_api" in head.tables


def is_chrome(head: InputHead) -> bool:
    """Whether it is Chrome JSON of rocpd: other writers use other keys, or other spaces."""
    return bool(_CHROME.match(head.start))


def is_kineto(head: InputHead) -> bool:
    """Whether it is a PyTorch trace: it lists trace events, and has keys or categories of Kineto."""
    start = head.start.removeprefix(b"\xef\xbb\xbf").lstrip()
    is_list = start.startswith(b"[") or (start.startswith(b"{") and b'"traceEvents"' in start)
    has_category = is_list and _KINETO_CATEGORY.search(start)
    return bool(has_category or (start.startswith(b"{") and _KINETO_KEY.search(start)))


def is_nsight(head: InputHead) -> bool:
    """Whether it is an export of Nsight Systems: it has that tool's table of texts, and another table of its own."""
    prefixes = ("CUPTI_ACTIVITY_KIND_", "NVTX_EVENTS", "TARGET_INFO_", "META_DATA_EXPORT")
    return "StringIds" in head.tables and any(name.startswith(prefixes) for name in head.tables)


def is_rocprofv3_json(head: InputHead) -> bool:
    """Whether it is rocprofv3's JSON."""
    start = head.start.lstrip()
    return start.startswith(b"{") and f'"{ROCPROFV3_KEY}"'.encode() in start[:200]


def is_rocprofv3_csv(head: InputHead) -> bool:
    """Whether it is a folder with CSV files of rocprofv3."""
    matches = (CSV_NAME.fullmatch(name.rpartition("/")[2]) for name in head.names)
    return any(match["kind"] in KINDS for match in matches if match)


def is_workload(head: InputHead) -> bool:
    """Whether it is a workload folder of rocprof-compute."""
    return SYSTEM in head.names and bool(files_of_counters(head.names))


def files_of_counters(names: Iterable[str]) -> Sequence[str]:
    """Return the files of a workload folder that hold counters."""
    return (_COUNTERS,) if _COUNTERS in names else sorted(filter(_RESULTS.fullmatch, names))


def is_part(name: str) -> bool:
    """Whether a file of this name is read together with its folder, of rocprofv3 or of rocprof-compute."""
    return bool(CSV_NAME.fullmatch(name) or name == SYSTEM or files_of_counters([name]))


def is_rocprof_v1(head: InputHead) -> bool:
    """Whether the first line has the columns of the first rocprof."""
    first, _, _ = head.start.partition(b"\n")
    return ROCPROF_COLUMNS.issubset(name.strip(' "\r') for name in first.decode("utf-8", "replace").lower().split(","))


def is_memory_analysis(head: InputHead) -> bool:
    """Whether it is an output of Omniprobe's MemoryAnalysis."""
    return f'"{ANALYSIS}"'.encode() in head.start or _REPORT_OF_MEMORY in head.start


def is_block_analysis(head: InputHead) -> bool:
    """Whether it is an output of Omniprobe's BasicBlockAnalysis."""
    return JSON_BLOCKS in head.start or bool(_CSV_BLOCKS.search(head.start))


def is_heatmap(head: InputHead) -> bool:
    """Whether it is an output of Omniprobe's Heatmap."""
    return bool(_JSON_PAGES.search(head.start)) or b"memory heatmap report(" in head.start


def is_address_log(head: InputHead) -> bool:
    """Whether it is an output of Omniprobe's AddressLogger."""
    return head.start.startswith(CSV_ADDRESSES.encode()) or bool(JSON_ADDRESSES.search(head.start))


def is_logduration(head: InputHead) -> bool:
    """Whether it is a log of logduration."""
    return head.start.lstrip().startswith(LOG_HEADER)
