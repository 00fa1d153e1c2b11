"""Omniprobe's Heatmap: accesses to each page of memory by dispatch, as lines of JSON or of text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from rocpd.importers.head import InputHead
    from rocpd.importers.omniprobe import DispatchRows, Members
    from rocpd.importers.source import TraceSource
    from rocpd.importers.target import TraceTarget

_JSON = re.compile(rb'^[ \t]*\{\s*"kernel"\s*:[^\n]*"pages"\s*:', re.M)
_REPORT = re.compile(r"memory heatmap report\((?P<kernel>.*)\[(?P<dispatch>\d+)\]\)")
_PAGE = re.compile(r"page\[0x(?P<start>[0-9a-fA-F]+):(?:0x)?(?P<end>[0-9a-fA-F]+)\] (?P<accesses>\d+) accesses")
_COUNTS = ("start_address", "end_address", "accesses")


def knows(head: InputHead) -> bool:
    """Whether it is an output of Heatmap."""
    return bool(_JSON.search(head.start)) or b"memory heatmap report(" in head.start


def read(source: TraceSource, target: TraceTarget) -> None:
    """Write the pages of each dispatch.

    Raises:
        InputError: nothing of it can be read.
    """
    from rocpd.importers.omniprobe import OmniprobeTable

    OmniprobeTable(source, target, "rocpd_memory_page", _records).write()


def _records(stream: BinaryIO) -> Iterator[DispatchRows | None]:
    """Yield the pages of each dispatch; a text has a line for each page after that of its dispatch."""
    from rocpd.importers.omniprobe import count, dispatch, lines, members

    key: dict[str, Any] | None = None
    for line in lines(stream):
        if line.startswith("{"):
            yield _pages(members(line))
        elif report := _REPORT.search(line):
            key = dispatch({"kernel": report["kernel"], "id": int(report["dispatch"])}, "kernel", "id")
        elif (page := _PAGE.search(line)) and key:
            start, end = count(int(page["start"], 16)), count(int(page["end"], 16))
            yield [{**key, "start_address": start, "end_address": end, "accesses": count(int(page["accesses"]))}]


def _pages(record: Members | None) -> DispatchRows | None:
    from rocpd.importers.omniprobe import count, dispatch, listed

    key = dispatch(record, "kernel", "dispatch_id") if record else None
    if not record or not key:
        return None
    return [{**key, **{name: count(page.get(name)) for name in _COUNTS}} for page in listed(record, "pages")]
