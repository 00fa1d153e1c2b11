"""How long steps take, in order, and which are slow."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.report.material import Material
from rocpd.report.model import Block


def steps(material: Material) -> Iterator[Block]:
    """Yield the course of steps."""
    table = material.tables("ranks").get("steps")
    if table:
        says = "The mean of the ranks, and the rank that took longest. Slow steps are marked."
        yield material.figure("steps", table, says, material.table(table, "Steps, the longest first"))
