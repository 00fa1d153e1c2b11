"""How much memory is held over time, and what steps leave behind."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.report.material import Material
from rocpd.report.model import Block, Figure
from rocpd.summary.plots import plot


def memory(material: Material) -> Iterator[Block]:
    """Yield the course of memory, what steps leave behind, and who allocates."""
    held, sites = material.tables("memory"), material.tables("allocation-sites")
    if "memory-curve" in held and held["memory-curve"].fetchall():
        table = material.table(held["memory"], "Peaks of memory")
        yield Figure("memory", plot(held["memory-curve"]), "Memory that is held, of those that hold most.", table)
    if "memory-steps" in sites and sites["memory-steps"].fetchall():
        table = material.table(sites["memory-steps"], "What steps allocate and leave behind")
        yield Figure("memory-steps", plot(sites["memory-steps"]), "Memory that each step leaves behind.", table)
    if "allocation-sites" in sites:
        yield material.table(sites["allocation-sites"], "Who allocates")
