"""Hardware counters by kernel."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.report.material import Material
from rocpd.report.model import Block


def counters(material: Material) -> Iterator[Block]:
    """Yield the mean of each counter by kernel."""
    tables = material.tables("counters")
    if "counters-wide" in tables:
        yield material.table(tables["counters-wide"], "Mean of each counter by kernel")
