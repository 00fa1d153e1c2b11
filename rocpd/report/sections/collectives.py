"""Which collectives cost most, who waits for whom in them, and what their time goes into."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.report.material import Material
from rocpd.report.model import Block

_COLUMNS = (
    "name",
    "number",
    "group",
    "straggler",
    "wait_ns",
    "max_wait_ns",
    "min_ns",
    "class",
    "bytes",
    "bus_gb_per_s",
)


def collectives(material: Material) -> Iterator[Block]:
    """Yield who waits for whom, then stragglers, then collectives."""
    tables = material.tables("ranks")
    if "waits" in tables and tables["waits"].fetchall():
        table = material.table(tables["waits"], "Who waits for whom")
        says = "How long a rank waits in collectives for the one that comes last, in all."
        yield material.figure("waits", tables["waits"], says, table)
    for name, title in (("stragglers", "Whom the others wait for"), ("communication", "What their time goes into")):
        if name in tables and tables[name].fetchall():
            yield material.table(tables[name], title)
    if "collectives" in tables and tables["collectives"].fetchall():
        yield material.table(tables["collectives"], "Collectives, the costliest first", _COLUMNS)
