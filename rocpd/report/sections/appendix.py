"""The commands that make each table of a report again, with all of its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rocpd.report.material import Material
from rocpd.report.model import Block, Column, Figure, Section, Table

_COLUMNS = (Column("table", "", "as this report calls it", False), Column("command", "", "makes it again", False))


def appendix(material: Material, before: Sequence[Section]) -> Iterator[Block]:
    """Yield one table: the command of each table of the sections before."""
    blocks = (block for section in before for block in section.blocks)
    tables = [
        block.table if isinstance(block, Figure) else block for block in blocks if isinstance(block, (Figure, Table))
    ]
    rows = tuple((table.title, table.command) for table in tables if table.command)
    doc = "-f csv, json or parquet writes all rows with every digit; --help says more."
    yield Table("commands", "Commands", doc, _COLUMNS, rows, len(rows))
