"""Omniprobe's BasicBlockAnalysis: time and lanes of each basic block by dispatch, as lines of JSON, or of CSV."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from rocpd.importers.head import InputHead
    from rocpd.importers.omniprobe import DispatchRows, Members
    from rocpd.importers.source import TraceSource
    from rocpd.importers.target import TraceTarget

_JSON = b'"block_start_line"'
_CSV = re.compile(rb"Start Line\s*,\s*End Line\s*,\s*Duration")
_FACT = re.compile(r"(Kernel|Dispatch|Branchiness)\s*:\s*(.*)")


def knows(head: InputHead) -> bool:
    """Whether it is an output of BasicBlockAnalysis."""
    return _JSON in head.start or bool(_CSV.search(head.start))


def read(source: TraceSource, target: TraceTarget) -> None:
    """Write the blocks of each dispatch.

    Raises:
        InputError: nothing of it can be read.
    """
    from rocpd.importers.omniprobe import OmniprobeTable

    with source.stream() as stream:
        has_json = _JSON in stream.read(1 << 20)
    OmniprobeTable(source, target, "rocpd_basic_block", _of_json if has_json else _of_csv).write()


def _of_json(stream: BinaryIO) -> Iterator[DispatchRows | None]:
    from rocpd.importers.omniprobe import lines, members

    for line in lines(stream):
        if line.startswith("{"):
            record = members(line)
            if record is None or "resources" not in record:  # of the kernel: where its waves ran
                yield _rows(record)


def _rows(record: Members | None) -> DispatchRows | None:
    from rocpd.importers.omniprobe import amount, count, dispatch, inner, text

    key = dispatch(record, "kernel", "dispatch_id") if record else None
    if record is None or key is None:
        return None
    mnemonics = {name: number for name, number in inner(record, "instructions").items() if count(number) is not None}
    reals = {
        "ticks": "block_duration",
        "branchiness": "block_branchiness",
        "overhead": "block_overhead",
        "kernel_branchiness": "kernel_branchiness",
    }
    return [
        {
            **key,
            "source_file": text(record.get("kernel_file_name")),
            "start_line": count(record.get("block_start_line")),
            "end_line": count(record.get("block_end_line")),
            "executions": count(record.get("block_count")),
            **{column: amount(record.get(name)) for column, name in reals.items()},
            "instructions": json.dumps(mnemonics),
        }
    ]


def _of_csv(stream: BinaryIO) -> Iterator[DispatchRows | None]:
    """Yield the blocks of tables that lines on kernel and dispatch precede."""
    from rocpd.importers.omniprobe import lines

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
            yield _rows(values)


def _number(text: str) -> int | float | None:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return None
