"""What windows are looked for in: the ranks on one time line, and how their rows are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rocpd.base.frozen import frozen

if TYPE_CHECKING:
    from rocpd.federate.run.rank_reader import MapRanks
    from rocpd.federate.select.timeline import TimeLine


@frozen
class WholeTrace:
    """What a window is resolved in.

    Args:
        line: all ranks on one time line.
        ranks: their numbers.
        map_ranks: reads the rows of ranks that pass the filters.
        note: called with what the user should know.
    """

    line: TimeLine
    ranks: Sequence[int]
    map_ranks: MapRanks
    note: Callable[[str], None]

    def on_clocks(self, time: int) -> dict[int, int | None]:
        """Return a time of the common line by the clock of each rank [ns]."""
        return {rank: self.line.shift(rank).to_clock(time) for rank in self.ranks}
