"""How much memory is held over time, and what steps leave behind."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.report.material import Material
from rocpd.report.model import Block


def memory(material: Material) -> Iterator[Block]:
    """Yield the course of memory, what steps leave behind, and who allocates."""
    held, sites = material.tables("memory"), material.tables("allocation-sites")
    if "memory-curve" in held and held["memory-curve"].fetchall():
        table = material.table(held["memory"], "Peaks of memory")
        yield material.figure("memory", held["memory-curve"], "Memory that is held, of those that hold most.", table)
    steps = sites["memory-steps"].fetchall() if "memory-steps" in sites else []
    if steps:
        table = material.table(sites["memory-steps"], "What steps allocate and leave behind")
        says = "Memory that each step leaves behind."
        yield material.figure("memory-steps", sites["memory-steps"], says, table) if len(steps) > 1 else table
    if "allocation-sites" in sites:
        yield material.table(sites["allocation-sites"], "Who allocates")
