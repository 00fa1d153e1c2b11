"""Owns the list of tables and views that stands beside the SQL of a page."""

from __future__ import annotations

from typing import Any

from rocpd.schema.calculated import CalculatedTable
from rocpd.schema.load import TABLES, VIEWS, BaseTable, View, table, view
from rocpd.summary.relations import RELATIONS


def relations() -> list[dict[str, Any]]:
    """Return `name`, `about` and `columns` (`name`, `unit`, `about`) of each relation, tables of files last."""
    described: list[tuple[str, CalculatedTable | View | BaseTable]] = [(name, view(name)) for name in VIEWS]
    described += [(name, load().table) for name, load in RELATIONS.items()]
    described += [(name, table(name)) for name in TABLES]
    return [
        {
            "name": name,
            "about": relation.doc.splitlines()[0],
            "columns": [{"name": c.name, "unit": c.unit, "about": c.doc} for c in relation.columns],
        }
        for name, relation in described
    ]
