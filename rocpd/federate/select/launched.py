"""What is known of the calls that launched the GPU work of each rank: what windows by launch rest on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocpd.federate.select.part import Launches, of_launching_stacks
from rocpd.schema.rules.tables import OPERATIONS

if TYPE_CHECKING:
    from rocpd.federate.run.rank_reader import RankReader
    from rocpd.federate.select.whole_trace import WholeTrace

_READ = ("rocpd_region", "rocpd_event", "rocpd_string", *OPERATIONS)


def known_launches(trace: WholeTrace) -> dict[int, Launches]:
    """Return what is known of each rank, and note in one line how much GPU work does not count by its launch."""
    known = {}
    every = unknown = 0
    without = 0
    for rank, (operations, launched) in trace.map_ranks(_count):
        every, unknown = every + operations, unknown + operations - launched
        known[rank.number] = Launches.ALL if launched == operations else Launches.SOME if launched else Launches.NONE
        without += known[rank.number] is Launches.NONE
    if unknown and without == len(known):
        trace.note("no launching call is in the trace: GPU work counts by when it ran")
    elif unknown:
        trace.note(f"{unknown} of {every} operations have no launching call in the trace: they count by when they ran")
    return known


def _count(reader: RankReader) -> tuple[int, int]:
    """Return how many operations a rank has, and of how many the launching call is in the trace."""
    tables = reader.whole().tables
    if not all(base in tables.columns for base in _READ):
        return 1, 0
    condition = of_launching_stacks(tables)
    counts = [
        reader.whole().rows(f"SELECT COUNT(*), COUNT(CASE WHEN {condition} THEN 1 END) FROM {base}")
        for base in OPERATIONS
    ]
    operations, launched = (sum(rows[0][side] for rows in counts) for side in (0, 1))
    return operations, launched
