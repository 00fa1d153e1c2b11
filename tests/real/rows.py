"""Compares rows as multisets, with floats equal to twelve digits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import apsw

from rocpd.federate.open.opening import uri_of
from rocpd.schema.quote import quote_name
from tests.published import PUBLISHED

Rows: TypeAlias = Counter[tuple[Any, ...]]

STORED = tuple(name for name in PUBLISHED if name != "graph_launches")
"""Views that rocprofv3 of ROCm 7.1 stores."""


def multiset(rows: Iterable[Sequence[Any]], width: int | None = None) -> Rows:
    """Count rows, each cut to its first `width` values."""
    return Counter(tuple(_rounded(value) for value in row[:width]) for row in rows)


def _rounded(value: object) -> object:
    return float(f"{value:.12g}") if isinstance(value, float) else value


def columns_compared(name: str) -> list[str]:
    """AMD's columns, without the average that stored views cut to whole nanoseconds before they scale it."""
    return [column for column in PUBLISHED[name] if not (name in {"top", "top_kernels"} and column == "average")]


def select(name: str) -> str:
    """Return the SELECT of the columns that are compared."""
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
