"""Omniprobe's MemoryAnalysis as JSON: cache lines that accesses need and touch, and bank conflicts, per source line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from rocpd.importers.head import InputHead
    from rocpd.importers.omniprobe import DispatchRows, Members
    from rocpd.importers.source import TraceSource
    from rocpd.importers.target import TraceTarget

_START = "kernel_analysis"
_REPORT = b"=== L2 cache line use report ==="


def knows(head: InputHead) -> bool:
    """Whether it is an output of MemoryAnalysis."""
    return f'"{_START}"'.encode() in head.start or _REPORT in head.start


def read(source: TraceSource, target: TraceTarget) -> None:
    """Write the accesses of each dispatch.

    Raises:
        InputError: it is the form for people, or nothing of it can be read.
    """
    from rocpd.errors import InputError
    from rocpd.importers.omniprobe import OmniprobeTable

    with source.stream() as stream:
        start = stream.read(1 << 20)
    if f'"{_START}"'.encode() not in start:
        raise InputError(
            f"{source.path}: a report of Omniprobe for people, which does not say what is of which dispatch",
            "write it with LOGDUR_LOG_FORMAT=json",
        )
    OmniprobeTable(source, target, "rocpd_memory_access", _records).write()


def _records(stream: BinaryIO) -> Iterator[DispatchRows | None]:
    from rocpd.importers.omniprobe import dispatch, inner, objects

    for record in objects(stream, _START):
        key = dispatch(inner(record, _START, "kernel_info"), "name", "dispatch_id") if record else None
        yield [{**key, **row} for row in _accesses(record)] if record and key else None


def _accesses(record: Members) -> Iterator[dict[str, Any]]:
    from rocpd.importers.omniprobe import count, inner, listed, text

    gpu = inner(record, "metadata", "gpu_info")
    architecture = text(gpu.get("architecture"))
    for kind in ("cache_analysis", "bank_conflicts"):
        for access in listed(inner(record, _START, kind), "accesses"):
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
