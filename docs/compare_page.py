"""Writes the end of docs/compare.md and docs/history.md: the columns of their tables, from the code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rocpd.summary.result import TableDefinition

PAGE = Path(__file__).resolve().parent / "compare.md"
HISTORY_PAGE = PAGE.with_name("history.md")

_TABLES = "\n## Tables\n"
"""Where the part of a page starts that comes from the code; what is above people write."""


def compare_page() -> str:
    """Return docs/compare.md: what people wrote, then the tables from the code."""
    from rocpd.compare.tables import TABLES

    return _with_tables(PAGE, TABLES)


def history_page() -> str:
    """Return docs/history.md, made alike."""
    from rocpd.history.history import TABLES

    return _with_tables(HISTORY_PAGE, TABLES)


def _with_tables(page: Path, tables: Mapping[str, TableDefinition]) -> str:
    parts = [page.read_text(encoding="utf-8").partition(_TABLES)[0], _TABLES]
    for table in tables.values():
        parts.append(f"\n`{table.name}`: {table.doc}\n\n| column | unit | meaning |\n|---|---|---|\n")
        parts += [f"| `{field.name}` | {field.unit} | {field.doc} |\n" for field in table.fields]
    return "".join(parts)
