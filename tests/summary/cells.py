"""Owns reading cells of an analysis in tests: the columns that a test is about, as tuples."""

from __future__ import annotations

from typing import Any

import rocpd


def cells(session: rocpd.Session, name: str, columns: str, by: str | None = None, **options: Any) -> list[Any]:
    """Return the columns (with spaces between them) of a table; bare values when there is one."""
    found = session.summary(name, by, **options)
    places = [found.columns.index(column) for column in columns.split()]
    rows = [tuple(row[place] for place in places) for row in found]
    return [row[0] for row in rows] if len(places) == 1 else rows
