"""What was found, the most important first: the verdict is the first line of a report."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.report.material import Material
from rocpd.report.model import Block, Findings
from rocpd.summary.overview import ANALYSES, conclude
from rocpd.summary.result import Summary


def verdict(material: Material) -> Iterator[Block]:
    """Yield the findings, as the overview of `rocpd summary` has them."""
    tables: dict[str, Summary] = {}
    for name in ANALYSES:
        tables |= material.tables(name)
    yield Findings(tuple(conclude(material.session, tables)))
