"""Hardware counters by kernel, and how near kernels are to the highest rates."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.report.material import Material
from rocpd.report.model import Block, Conclusion, Findings


def counters(material: Material) -> Iterator[Block]:
    """Yield the roofline, and the mean of each counter by kernel."""
    rooflines = material.tables("roofline")
    if "roofline" in rooflines:
        summary = rooflines["roofline"]
        if summary.findings:
            yield Findings(tuple(map(Conclusion, summary.findings)))
        table = material.table(summary, "Kernels under the roofs of operations and memory")
        yield material.figure("roofline", summary, "Rate of operations by operations for each byte.", table)
    tables = material.tables("counters")
    if "counters-wide" in tables:
        yield material.table(tables["counters-wide"], "Mean of each counter by kernel")
