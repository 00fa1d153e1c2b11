"""What the time of GPUs consists of, over all and by rank."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.report.material import Material
from rocpd.report.model import Block
from rocpd.summary.options import By


def budget(material: Material) -> Iterator[Block]:
    """Yield the budget of the job, then that of each rank as bars."""
    whole = material.tables("budget").get("budget")
    by_rank = material.tables("budget", By.RANK).get("budget")
    if whole:
        yield material.table(whole, "All ranks")
    if by_rank:
        table = material.table(by_rank, "Budget of each rank", by=By.RANK)
        yield material.figure("budget", by_rank, "The parts of a rank's time add up to all of it.", table, By.RANK)
