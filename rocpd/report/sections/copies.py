"""Copies by direction and size, and how fast they are."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.report.material import Material
from rocpd.report.model import Block

_COLUMNS = ("name", "calls", "total_ns", "percent", "mean_ns", "median_ns", "max_ns", "bytes", "gib_per_s")


def copies(material: Material) -> Iterator[Block]:
    """Yield copies by direction, then by size and between which processors."""
    by_direction, rates = material.tables("copies"), material.tables("copy-sizes")
    if by_direction:
        table = material.table(by_direction["copies"], "Copies by direction", _COLUMNS)
        yield material.figure("copies", by_direction["copies"], "Time of copies by direction.", table)
    for name, title in (("copy-sizes", "How fast, by size"), ("copy-pairs", "How fast, between processors")):
        if name in rates and rates[name].fetchall():
            yield material.table(rates[name], title)
