"""What each rank does over time: compute, communication, nothing."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.report.material import Material
from rocpd.report.model import Block


def overview(material: Material) -> Iterator[Block]:
    """Yield the time line of all ranks, and the totals of each rank."""
    tables = material.tables("ranks")
    if "heat" in tables and "ranks" in tables:
        columns = ("rank", "hostname", "kernels", "copies", "busy_ns", "compute_ns", "communication_ns", "copy_ns")
        table = material.table(tables["ranks"], "Totals of each rank", columns)
        says = "One row a rank: the stronger the colour the busier its GPUs; no colour is idle."
        yield material.figure("time-line", tables["heat"], says, table)
