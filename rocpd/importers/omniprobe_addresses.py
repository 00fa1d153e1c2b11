"""Omniprobe's AddressLogger: the addresses of each access of a wave, as lines of JSON, or of CSV.

With the format csv it writes both; then lines of JSON count.
"""

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

_JSON = re.compile(rb'^[ \t]*\{\s*"kernel_name"\s*:[^\n]*"addresses"\s*:', re.M)
_MARK = b"ADDRESS_MESSAGE,"
_CSV = re.compile(
    r'ADDRESS_MESSAGE,\s*(?P<ticks>\d+),\s*"?(?P<kernel>.*?)"?,\s*(?P<line>\d+),\s*(?P<dispatch>\d+),'
    r"\s*(?P<mask>0x[0-9a-fA-F]+|\d+),\s*(?P<xcc>\d+),\s*(?P<se>\d+),\s*(?P<cu>\d+),\s*(?P<access>[^,]*)"
    r"(?P<addresses>(?:,\s*(?:0x[0-9a-fA-F]+|\d+))*),?"
)
_ACCESSES = {1: "read", 2: "write", 3: "read/write"}


def knows(head: InputHead) -> bool:
    """Whether it is an output of AddressLogger."""
    return head.start.startswith(_MARK) or bool(_JSON.search(head.start))


def read(source: TraceSource, target: TraceTarget) -> None:
    """Write each access of a wave.

    Raises:
        InputError: nothing of it can be read.
    """
    from rocpd.importers.omniprobe import OmniprobeTable

    with source.stream() as stream:
        has_json = bool(_JSON.search(stream.read(1 << 20)))
    OmniprobeTable(source, target, "rocpd_memory_message", _of_json if has_json else _of_csv).write()


def _of_json(stream: BinaryIO) -> Iterator[DispatchRows | None]:
    from rocpd.importers.omniprobe import dispatch, lines, members

    for line in lines(stream):
        if line.startswith("{"):
            record = members(line)
            key = dispatch(record, "kernel_name", "dispatch_id") if record else None
            yield [{**key, **_columns(record)}] if record and key else None


def _columns(record: Members) -> dict[str, Any]:
    from rocpd.importers.omniprobe import count
    from rocpd.trace.pc_sampling import signed

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
    return {
        **{column: count(record.get(name)) for column, name in numbers.items()},
        "exec_mask": signed(_address(mask) or 0) if _address(mask) is not None else None,
        "access": kind,
        "addresses": json.dumps([_address(each) for each in addresses] if isinstance(addresses, list) else []),
    }


def _of_csv(stream: BinaryIO) -> Iterator[DispatchRows | None]:
    from rocpd.importers.omniprobe import dispatch, lines

    for line in lines(stream):
        if not line.startswith(_MARK.decode()) or line.startswith("ADDRESS_MESSAGE,timestamp"):
            continue
        match = _CSV.fullmatch(line)
        addresses = [each.strip() for each in match["addresses"].split(",") if each.strip()] if match else []
        record: dict[str, Any] = {} if not match else {
            "kernel_name": match["kernel"], "dispatch_id": int(match["dispatch"]), "timestamp": int(match["ticks"]),
            "dwarf_line": int(match["line"]), "exec": match["mask"], "xcc_id": int(match["xcc"]),
            "se_id": int(match["se"]), "cu_id": int(match["cu"]), "addresses": addresses,
            "active_lane_count": len(addresses),
            "op_type": int(match["access"]) if match["access"].strip().isdigit() else match["access"].strip(),
        }  # fmt: skip
        key = dispatch(record, "kernel_name", "dispatch_id")
        yield [{**key, **_columns(record)}] if key else None


def _address(value: object) -> int | None:
    """Return an address or mask, which is a number or a text of one; None for anything else."""
    if isinstance(value, str) and re.fullmatch(r"0x[0-9a-fA-F]{1,16}|\d{1,20}", value):
        return int(value, 0) if value.startswith("0x") else int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64 else None
