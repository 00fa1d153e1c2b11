"""Owns comparing rows as multisets, with floats equal to twelve digits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import apsw

from rocpd.federate.open.opening import uri_of
from rocpd.schema.load import VIEWS, view
from rocpd.schema.quote import quote_name

Rows: TypeAlias = Counter[tuple[Any, ...]]

ADDED = {
    "markers",
    "graph_launches",
    "kernel_summary",
    "kernel_summary_region",
    "memory_copy_summary",
    "memory_allocation_summary",
}
"""Views that rocprofv3 does not store."""

STORED = tuple(name for name in VIEWS if name not in ADDED)


def multiset(rows: Iterable[Sequence[Any]], width: int | None = None) -> Rows:
    """Count rows, each cut to its first `width` values."""
    return Counter(tuple(_rounded(value) for value in row[:width]) for row in rows)


def _rounded(value: object) -> object:
    return float(f"{value:.12g}") if isinstance(value, float) else value


def columns_compared(name: str) -> list[str]:
    """Documented columns, without the average that the stored views cut to whole nanoseconds before they scale it."""
    columns = [column.name for column in view(name).columns]
    return [column for column in columns if not (name in {"top", "top_kernels"} and column == "average")]


def select(name: str) -> str:
    """Give the SELECT of the columns that are compared."""
    columns = ", ".join(quote_name(column) for column in columns_compared(name))
    return f"SELECT {columns} FROM {name}"


@contextmanager
def stored(path: Path) -> Iterator[apsw.Connection]:
    """Open a file with SQLite alone, so that its own views answer."""
    connection = apsw.Connection(uri_of(path, "immutable=1"), flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    try:
        yield connection
    finally:
        connection.close()
