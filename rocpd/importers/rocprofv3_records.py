"""Records of rocprofv3's JSON: what they refer to, and values of many as columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

Record: TypeAlias = Mapping[str, Any]


def handle(record: Record, name: str) -> int:
    """Return what a record refers to by a handle, 0 where it refers to nothing."""
    return int((record.get(name) or {}).get("handle", 0))


def column(records: Iterable[Record], name: str, default: Any = None) -> list[Any]:
    """Return a value of each record."""
    return [record.get(name, default) for record in records]


def correlation(records: Sequence[Record], kind: str) -> list[int]:
    """Return the correlation ids of records: `internal`, `external` or `ancestor`."""
    return [int(record.get("correlation_id", {}).get(kind) or 0) for record in records]
