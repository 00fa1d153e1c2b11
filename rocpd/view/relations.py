"""Owns the list of tables and views that stands beside the SQL of a page."""

from __future__ import annotations

from typing import Any

from rocpd.schema.load import TABLES, VIEWS, table, view


def relations() -> list[dict[str, Any]]:
    """Return `name`, `about` and `columns` (`name`, `unit`, `about`) of each view and table, views first."""
    described = [(name, view(name)) for name in VIEWS] + [(name, table(name)) for name in TABLES]
    return [
        {
            "name": name,
            "about": relation.doc.splitlines()[0],
            "columns": [{"name": c.name, "unit": c.unit, "about": c.doc} for c in relation.columns],
        }
        for name, relation in described
    ]
