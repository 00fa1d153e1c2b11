"""Omniprobe's Heatmap: accesses to each page of memory by dispatch, as lines of JSON or of text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from rocpd.importers.head import InputHead
    from rocpd.importers.omniprobe import DispatchRows
    from rocpd.importers.source import TraceSource
    from rocpd.importers.target import TraceTarget

_JSON = re.compile(rb'\{\s*"kernel"\s*:[^\n]*"pages"\s*:')
_REPORT = re.compile(r"memory heatmap report\((?P<kernel>.*)\[(?P<dispatch>\d+)\]\)")
_PAGE = re.compile(r"page\[0x(?P<start>[0-9a-fA-F]+):(?:0x)?(?P<end>[0-9a-fA-F]+)\] (?P<accesses>\d+) accesses")


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
    from rocpd.importers.omniprobe import count, dispatch, lines, listed, members

    of: dict[str, Any] | None = None
    for line in lines(stream):
        if line.startswith("{"):
            record = members(line)
            of_json = dispatch(record, "kernel", "dispatch_id") if record else None
            pages = listed(record, "pages") if record else ()
            names = ("start_address", "end_address", "accesses")
            yield (
                [{**of_json, **{name: count(page.get(name)) for name in names}} for page in pages] if of_json else None
            )
        elif report := _REPORT.search(line):
            of = dispatch({"kernel": report["kernel"], "id": int(report["dispatch"])}, "kernel", "id")
        elif (page := _PAGE.search(line)) and of:
            start, end = count(int(page["start"], 16)), count(int(page["end"], 16))
            yield [{**of, "start_address": start, "end_address": end, "accesses": count(int(page["accesses"]))}]
