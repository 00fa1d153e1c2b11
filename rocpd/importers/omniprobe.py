"""Omniprobe's outputs, each of which becomes rows of one table by dispatch; and logduration's, which become dispatches.

MemoryAnalysis (JSON) has the cache lines that accesses need and touch, and bank conflicts, per source line.
BasicBlockAnalysis (lines of JSON, or CSV) has time and lanes of each basic block; Heatmap (lines of JSON, or of text)
the accesses to each page of memory; AddressLogger (lines of JSON, or CSV) the addresses of each access of a wave. A log
of logduration, `kernel,dispatch,startNs,endNs`, has kernels with their launch times: the column `dispatch` is the
host's time of the launch; names stand between quotes and are not escaped.

The files are never closed, hold further lines in between, and do not escape names: all that is readable is read, and
the rest is counted.
"""

from __future__ import annotations

import codecs
import contextlib
import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, BinaryIO, TypeAlias

from rocpd.base import InputError
from rocpd.facts.pc_sampling import signed
from rocpd.importers import signs
from rocpd.importers.files import TraceSource, TraceTarget
from rocpd.importers.signs import InputHead
from rocpd.importers.words import Registered, as_columns
from rocpd.schema.rules.kernel_names import without_instrumentation
from rocpd.schema.trace.events import Events, KernelDispatches
from rocpd.schema.trace.infos import AgentInfo, KernelInfo, NodeInfo, ProcessInfo
from rocpd.schema.trace.writer import TableRows

Members: TypeAlias = Mapping[str, Any]
DispatchRows: TypeAlias = Sequence[Mapping[str, Any]]
"""Rows of one dispatch, as columns of their table."""

_Records: TypeAlias = Callable[[BinaryIO], Iterator[DispatchRows | None]]
"""Yields the rows of each dispatch; None for a damaged one."""

DAMAGED = "damaged lines or dispatches of Omniprobe"

_HINT = "was the program killed while it wrote? LOGDUR_LOG_FORMAT=json and LOGDUR_LOG_LOCATION=FILE write it anew"
_BLOCK = 1 << 20
_MOST = 1 << 26  # characters of one object; longer texts are no objects
_LONGEST_MARK = 100  # characters
_DECODER = json.JSONDecoder(strict=False)
_TEXT = re.compile(
    r'("(?:name|kernel|kernel_name|file|kernel_file_name|code_context|isa_instruction)"\s*:\s*)"(.*?)"'
    r'(?=\s*(?:,\s*"\w+"\s*:|\}))',
    re.S,
)
_ESCAPED = re.compile(r'(?:[^"\\\n]|\\["\\/bfnrtu])*')
_FACT = re.compile(r"(Kernel|Dispatch|Branchiness)\s*:\s*(.*)")
_REPORT = re.compile(r"memory heatmap report\((?P<kernel>.*)\[(?P<dispatch>\d+)\]\)")
_PAGE = re.compile(r"page\[0x(?P<start>[0-9a-fA-F]+):(?:0x)?(?P<end>[0-9a-fA-F]+)\] (?P<accesses>\d+) accesses")
_COUNTS = ("start_address", "end_address", "accesses")
_ADDRESSES = re.compile(
    r'ADDRESS_MESSAGE,\s*(?P<ticks>\d+),\s*"?(?P<kernel>.*?)"?,\s*(?P<line>\d+),\s*(?P<dispatch>\d+),'
    r"\s*(?P<mask>0x[0-9a-fA-F]+|\d+),\s*(?P<xcc>\d+),\s*(?P<se>\d+),\s*(?P<cu>\d+),\s*(?P<access>[^,]*)"
    r"(?P<addresses>(?:,\s*(?:0x[0-9a-fA-F]+|\d+))*),?"
)
_ACCESSES = {1: "read", 2: "write", 3: "read/write"}


def read(source: TraceSource, target: TraceTarget) -> None:
    """Write the file of an output, which is read twice: only its end shows the number of a dispatch in its kernel.

    Raises:
        InputError: it has a form for people, or nothing in it can be read.
    """
    with source.stream() as stream:
        head = InputHead(source.path, stream.read(1 << 20))
    if signs.is_logduration(head):
        _read_log(source, target)
        return
    table, records = _table_and_records(head)
    numbers: dict[str, set[int]] = {}
    for rows in _read(source, records):
        for row in rows or ():
            numbers.setdefault(row["kernel"], set()).add(row["dispatch_id"])
    if not numbers:
        raise InputError(f"{source.path}: damaged: no dispatch of it can be read", _HINT)
    ordinals = {
        kernel: {number: ordinal for ordinal, number in enumerate(sorted(dispatches), 1)}
        for kernel, dispatches in numbers.items()
    }
    node = NodeInfo(machine_id=f"omniprobe-{source.digest}", hostname="omniprobe")
    with target.rank(0, node, ProcessInfo(1, command="omniprobe")) as trace:
        for rows in _read(source, records):
            if rows is None:
                target.lose(DAMAGED)
            elif rows:
                columns = as_columns(rows)
                columns["ordinal"] = [ordinals[row["kernel"]][row["dispatch_id"]] for row in rows]
                trace.insert(TableRows(table, columns))


def _table_and_records(head: InputHead) -> tuple[str, _Records]:
    """Return the table of an output, and the function that yields its rows, dispatch by dispatch.

    Raises:
        InputError: the output has a form for people.
    """
    if signs.is_memory_analysis(head):
        if f'"{signs.ANALYSIS}"'.encode() not in head.start:
            raise InputError(
                f"{head.path}: a report of Omniprobe for people, which does not say what is of which dispatch",
                "write it with LOGDUR_LOG_FORMAT=json",
            )
        return "rocpd_memory_access", _analyses
    if signs.is_block_analysis(head):
        return "rocpd_basic_block", _blocks if signs.JSON_BLOCKS in head.start else _blocks_of_csv
    if signs.is_heatmap(head):
        return "rocpd_memory_page", _pages
    return "rocpd_memory_message", _accesses if signs.JSON_ADDRESSES.search(head.start) else _accesses_of_csv


def _read(source: TraceSource, records: _Records) -> Iterator[DispatchRows | None]:
    with source.stream() as stream:
        yield from records(stream)


def _analyses(stream: BinaryIO) -> Iterator[DispatchRows | None]:
    for record in objects(stream, signs.ANALYSIS):
        key = dispatch(inner(record or {}, signs.ANALYSIS, "kernel_info"), "name")
        yield _of_dispatch(key, _of_analysis(record or {}))


def _of_dispatch(key: Members | None, rows: Iterable[Members]) -> DispatchRows | None:
    """Return rows with the columns that name their dispatch; None if it is not known."""
    return None if key is None else [{**key, **row} for row in rows]


def _of_analysis(record: Members) -> Iterator[dict[str, Any]]:
    gpu = inner(record, "metadata", "gpu_info")
    architecture = text(gpu.get("architecture"))
    for kind in ("cache_analysis", "bank_conflicts"):
        for access in listed(inner(record, signs.ANALYSIS, kind), "accesses"):
            source, info = inner(access, "source_location"), inner(access, "access_info")
            lines = inner(info, "cache_lines")
            yield {
                "source_file": text(source.get("file")),
                "source_line": count(source.get("line")),
                "source_column": count(source.get("column")),
                "code": text(access.get("code_context")),
                "access": text(info.get("type")),
                "executions": count(info.get("execution_count")),
                "ir_bytes": count(info.get("ir_bytes")),
                "isa_bytes": count(info.get("isa_bytes")),
                "isa_instruction": text(info.get("isa_instruction")),
                "lines_needed": count(lines.get("needed")),
                "lines_used": count(lines.get("used")),
                "line_size": count(gpu.get("cache_line_size")),
                "bank_conflicts": count(info.get("total_conflicts")),
                "architecture": None if architecture == "unknown" else architecture,
            }


def _records_in(stream: BinaryIO) -> Iterator[Members]:
    """Yield the objects of lines; an empty one for a damaged line."""
    return (members(line) or {} for line in lines(stream) if line.startswith("{"))


def _blocks(stream: BinaryIO) -> Iterator[DispatchRows | None]:
    for record in _records_in(stream):
        if "resources" not in record:  # such records are of a kernel: where its waves ran
            yield _block(record)


def _block(record: Members) -> DispatchRows | None:
    mnemonics = {name: number for name, number in inner(record, "instructions").items() if count(number) is not None}
    reals = {
        "ticks": "block_duration",
        "branchiness": "block_branchiness",
        "overhead": "block_overhead",
        "kernel_branchiness": "kernel_branchiness",
    }
    row = {
        "source_file": text(record.get("kernel_file_name")),
        "start_line": count(record.get("block_start_line")),
        "end_line": count(record.get("block_end_line")),
        "executions": count(record.get("block_count")),
        **{column: amount(record.get(name)) for column, name in reals.items()},
        "instructions": json.dumps(mnemonics),
    }
    return _of_dispatch(dispatch(record, "kernel"), [row])


def _blocks_of_csv(stream: BinaryIO) -> Iterator[DispatchRows | None]:
    """Yield the blocks of tables; lines on kernel and dispatch come before each table."""
    facts: dict[str, str] = {}
    for line in lines(stream):
        if fact := _FACT.fullmatch(line):
            facts[fact[1]] = fact[2].strip()
        elif re.match(r"\d", line) and line.count(",") >= 6:
            start, end, duration, rest = (part.strip() for part in line.split(",", 3))
            file, *shares = (part.strip() for part in rest.rsplit(",", 3))
            values: dict[str, Any] = {
                "kernel": facts.get("Kernel"), "dispatch_id": _number(facts.get("Dispatch", "")),
                "kernel_file_name": file, "block_start_line": _number(start), "block_end_line": _number(end),
                "block_duration": _number(duration), "kernel_branchiness": _number(facts.get("Branchiness", "")),
                **dict(zip(("block_branchiness", "block_overhead", "block_count"), map(_number, shares), strict=True)),
            }  # fmt: skip
            yield _block(values)


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return None


def _pages(stream: BinaryIO) -> Iterator[DispatchRows | None]:
    """Yield the pages of each dispatch; as text, a dispatch has a line for itself, then one for each page."""
    key: dict[str, Any] | None = None
    for line in lines(stream):
        if line.startswith("{"):
            record = members(line) or {}
            pages = ({name: count(page.get(name)) for name in _COUNTS} for page in listed(record, "pages"))
            yield _of_dispatch(dispatch(record, "kernel"), pages)
        elif report := _REPORT.search(line):
            key = dispatch({"kernel": report["kernel"], "id": int(report["dispatch"])}, "kernel", "id")
        elif (page := _PAGE.search(line)) and key:
            start, end = count(int(page["start"], 16)), count(int(page["end"], 16))
            yield [{**key, "start_address": start, "end_address": end, "accesses": count(int(page["accesses"]))}]


def _accesses(stream: BinaryIO) -> Iterator[DispatchRows | None]:
    return map(_access, _records_in(stream))


def _access(record: Members) -> DispatchRows | None:
    mask, access = record.get("exec"), record.get("op_type", record.get("user_data"))
    addresses = record.get("addresses")
    kind = _ACCESSES.get(access & 3) if isinstance(access, int) else access if isinstance(access, str) else None
    numbers = {
        "ticks": "timestamp",
        "source_line": "dwarf_line",
        "source_column": "dwarf_column",
        "block_x": "block_idx_x",
        "block_y": "block_idx_y",
        "block_z": "block_idx_z",
        "wave": "wave_num",
        "xcc": "xcc_id",
        "shader_engine": "se_id",
        "compute_unit": "cu_id",
        "lanes": "active_lane_count",
    }
    row = {
        **{column: count(record.get(name)) for column, name in numbers.items()},
        "exec_mask": signed(_address(mask) or 0) if _address(mask) is not None else None,
        "access": kind,
        "addresses": json.dumps([_address(each) for each in addresses] if isinstance(addresses, list) else []),
    }
    return _of_dispatch(dispatch(record, "kernel_name"), [row])


def _accesses_of_csv(stream: BinaryIO) -> Iterator[DispatchRows | None]:
    for line in lines(stream):
        if not line.startswith(signs.CSV_ADDRESSES) or line.startswith("ADDRESS_MESSAGE,timestamp"):
            continue
        match = _ADDRESSES.fullmatch(line)
        addresses = [each.strip() for each in match["addresses"].split(",") if each.strip()] if match else []
        record: dict[str, Any] = {} if not match else {
            "kernel_name": match["kernel"], "dispatch_id": int(match["dispatch"]), "timestamp": int(match["ticks"]),
            "dwarf_line": int(match["line"]), "exec": match["mask"], "xcc_id": int(match["xcc"]),
            "se_id": int(match["se"]), "cu_id": int(match["cu"]), "addresses": addresses,
            "active_lane_count": len(addresses),
            "op_type": int(match["access"]) if match["access"].strip().isdigit() else match["access"].strip(),
        }  # fmt: skip
        yield _access(record)


def _address(value: object) -> int | None:
    """Return an address or mask from a number or its text; None for anything else."""
    if isinstance(value, str) and re.fullmatch(r"0x[0-9a-fA-F]{1,16}|\d{1,20}", value):
        return int(value, 0) if value.startswith("0x") else int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64 else None


def objects(stream: BinaryIO, start: str) -> Iterator[Members | None]:
    """Yield the objects that start with a member, as far as they can be read; None for an unreadable one.

    Args:
        stream: the output; text between objects is passed over.
        start: name of the first member.
    """
    mark = re.compile(r"\{\s*" + re.escape(json.dumps(start)) + r"\s*:")
    characters = codecs.getincrementaldecoder("utf-8")("replace")  # a character may lie in two blocks
    text, is_whole = "", False
    while not is_whole:
        block = stream.read(_BLOCK)
        is_whole = not block
        text += characters.decode(block, is_whole)
        starts = [match.start() for match in mark.finditer(text)]
        tail = max(0, len(text) - _LONGEST_MARK)
        edges = starts
        if is_whole:
            edges = [*starts, len(text)]
        elif starts and len(text) - starts[-1] > _MOST:
            edges = [*starts, tail]
        for first, end in pairwise(edges):
            yield members(text[first:end])
        text = text[edges[-1] if edges else tail :]


def members(text: str) -> Members | None:
    """Return the object at the start of a text, with its names escaped where needed; None if there is no object."""
    for attempt in (text, _TEXT.sub(_escaped, text)):
        try:
            value, _ = _DECODER.raw_decode(attempt)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, Mapping) else None
    return None


def _escaped(match: re.Match[str]) -> str:
    text = match[2] if _ESCAPED.fullmatch(match[2]) else json.dumps(match[2])[1:-1]
    return f'{match[1]}"{text}"'


def dispatch(record: Members, name: str, number: str = "dispatch_id") -> dict[str, Any] | None:
    """Return kernel and number of a dispatch as columns; None if one is missing."""
    kernel, dispatch_id = record.get(name), count(record.get(number))
    if not isinstance(kernel, str) or not kernel or dispatch_id is None:
        return None
    return {"kernel": without_instrumentation(kernel), "dispatch_id": dispatch_id}


def count(value: object) -> int | None:
    """Return a count; None for anything else: negative, fractional, not a number, or beyond 63 bits."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63
    return int(value) if is_count else None  # type: ignore[call-overload]


def amount(value: object) -> float | None:
    """Return a number that is finite and not negative; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def text(value: object) -> str | None:
    """Return a text; None for anything else, and for an empty text."""
    return value if isinstance(value, str) and value else None


def inner(record: Members, *names: str) -> Members:
    """Return a member of a member …; an empty one if it is not an object."""
    for name in names:
        value = record.get(name)
        record = value if isinstance(value, Mapping) else {}
    return record


def listed(record: Members, name: str) -> Iterable[Members]:
    """Return the objects in a member that is a list."""
    value = record.get(name)
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else ()


def lines(stream: BinaryIO) -> Iterator[str]:
    """Yield the stripped lines of an output; lines longer than any object are passed over."""
    while line := stream.readline(_MOST):
        yield line.decode("utf-8", "replace").strip()


_LINE = re.compile(r'"(.*)",(\d{1,19}),(\d{1,19}),(\d{1,19})')
_BATCH = 1 << 14


def _read_log(source: TraceSource, target: TraceTarget) -> None:
    """Write the kernels of a log of logduration.

    Raises:
        InputError: it has no kernel that can be read.
    """
    if next(_log_lines(source, None), None) is None:
        raise InputError(f"{source.path}: damaged: no kernel of it can be read", 'a line is "name",launch,start,end')
    node = NodeInfo(machine_id=f"logduration-{source.digest}", hostname="logduration")
    with target.rank(0, node, ProcessInfo(1)) as trace:
        agent = trace.register(AgentInfo(0, type="GPU", absolute_index=0, name="unknown GPU"))
        kernels = Registered(trace, lambda name: KernelInfo(len(kernels) + 1, display_name=name))
        rows = _log_lines(source, target)
        while batch := list(itertools.islice(rows, _BATCH)):
            extdata = [json.dumps({"launch_ns": launch}) for _, launch, _, _ in batch]
            trace.write(KernelDispatches(
                kernel_id=[kernels[name] for name, *_ in batch], start=[start for *_, start, _ in batch],
                end=[end for *_, end in batch], agent_id=agent, tid=1, event=Events(extdata=extdata),
            ))  # fmt: skip


def _log_lines(source: TraceSource, target: TraceTarget | None) -> Iterator[tuple[str, int, int, int]]:
    """Yield name, launch, start and end [ns] of each kernel; `target` counts lines without a kernel."""
    with source.stream() as stream:
        for line in lines(stream):
            match = _LINE.fullmatch(line)
            launch, start, end = (int(match[group]) for group in (2, 3, 4)) if match else (0, 0, 0)
            if match and max(launch, start, end) < 1 << 63:
                yield match[1], launch, start, end
            elif target and line and line.encode() != signs.LOG_HEADER:
                target.lose("lines that say no kernel")
