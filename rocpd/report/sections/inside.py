"""Where kernels spend their time inside: samples of program counters, accesses to memory, basic blocks."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.report.material import Material
from rocpd.report.model import Block, Conclusion, Findings

_TITLES = {
    "hot-spots": "Sampled kernels, each with its hottest line and instruction",
    "pc-lines": "Source lines by samples",
    "stall-reasons": "What waves wait for",
    "memory-access": "Cache lines and banks that source lines use",
    "basic-blocks": "Basic blocks by time",
}


def inside(material: Material) -> Iterator[Block]:
    """Yield hot spots and why waves wait there, accesses to memory and basic blocks by source line."""
    tables = {
        name: table
        for analysis in ("hot-spots", "memory-access", "basic-blocks")
        for name, table in material.tables(analysis).items()
    }
    for name, title in _TITLES.items():
        if name in tables and tables[name].first(1):
            if tables[name].findings:
                yield Findings(tuple(map(Conclusion, tables[name].findings)))
            yield material.table(tables[name], title)
