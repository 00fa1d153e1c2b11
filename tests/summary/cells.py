"""Reads cells of an analysis in tests: the columns that a test is about, as tuples."""

from __future__ import annotations

from typing import Any

import rocpd


def cells(session: rocpd.Session, name: str, columns: str, by: str | None = None, **options: Any) -> list[Any]:
    """Return the columns (with spaces between them) of a table; bare values when there is one."""
    table = session.summary(name, by, **options)
    indices = [table.columns.index(column) for column in columns.split()]
    rows = [tuple(row[at] for at in indices) for row in table]
    return [row[0] for row in rows] if len(indices) == 1 else rows
