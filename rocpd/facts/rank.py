"""One rank, as everything that is derived of it reads it: its rows, what was asked, and which of its time counts.

Never decides which time counts: `units` does, for all ranks of a job at once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from typing import TypeAlias

from rocpd.base.frozen import frozen
from rocpd.base.types import NULL
from rocpd.facts.options import By, Options
from rocpd.federate.open.identify import Rank
from rocpd.federate.run.rank_reader import RankReader
from rocpd.federate.select.part import Part

Key: TypeAlias = tuple[object, ...]
Base: TypeAlias = tuple[int, int]
"""Start and end of a time that counts, by the clock of a rank [ns]."""


def key_of(by: By | None, rank: Rank, lane: int | None = None) -> Key:
    """Return the values of the columns of a division.

    Args:
        by: what divides.
        rank: the rank.
        lane: id of the agent or stream, `NULL` where it is unknown; it may be left out where neither divides.

    Raises:
        ValueError: agents or streams divide, and no lane is given; or it goes by the launch, of which `Origins` knows.
    """
    match by:
        case By.RANK:
            return (rank.number,)
        case By.HOST:
            return (rank.hostname,)
        case By.RUN:
            return (rank.run,)
        case By.COMMAND:
            return (rank.command,)
        case By.AGENT | By.STREAM:
            if lane is None:
                raise ValueError(f"the key of a division by {by.value} needs the id of the {by.value}")
            return (rank.number, None if lane == NULL else lane)
        case By.DISPATCH:
            raise ValueError("the key of a division by dispatch needs the number of the dispatch")
        case By.STEP | By.MARKER | By.API:
            raise ValueError(f"a division by {by.value} goes by the launch of each operation")
    return ()


@frozen
class RankWindow:
    """What a rank sees of a window, by its clock.

    Args:
        part: the part of it that counts; all of it without a window.
        base: start and end of what its agents could have worked in it [ns]; None without a window, and where work
            counts where it was launched, not where it ran.
    """

    part: Part = Part(None, None)
    base: Base | None = None


@frozen
class RankReading:
    """What work on one rank receives, in whichever process it runs.

    Args:
        reader: reads the rank.
        options: what was asked.
        window: what the rank sees of the window.
        left_out: kind of events of the rank -> how many of them are left out, for invalid timestamps.
    """

    reader: RankReader
    options: Options
    window: RankWindow = RankWindow()
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def rank(self) -> Rank:
        """The rank."""
        return self.reader.rank

    def whole(self) -> RankReading:
        """Return what reads all rows of the rank, whatever window and filters."""
        return RankReading(self.reader.whole(), self.options)

    def unwindowed(self) -> RankReading:
        """Return what reads the rows of the rank that pass the filters, whatever the window."""
        return RankReading(self.reader.unwindowed(), self.options)

    def key(self, lane: int | None = None) -> Key:
        """Return the values of the columns of the division that was asked for; as `key_of`."""
        return key_of(self.options.by, self.rank, lane)
