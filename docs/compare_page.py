"""Writes the end of docs/compare.md: the columns of the tables of a comparison, from the code."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).resolve().parent / "compare.md"

_TABLES = "\n## Tables\n"
"""Where the part of the page starts that comes from the code; what is above people write."""


def compare_page() -> str:
    """Return docs/compare.md: what people wrote, then the tables from the code."""
    from rocpd.compare.tables import TABLES

    parts = [PAGE.read_text(encoding="utf-8").partition(_TABLES)[0], _TABLES]
    for table in TABLES.values():
        parts.append(f"\n`{table.name}`: {table.doc}\n\n| column | unit | meaning |\n|---|---|---|\n")
        parts += [f"| `{field.name}` | {field.unit} | {field.doc} |\n" for field in table.fields]
    return "".join(parts)
