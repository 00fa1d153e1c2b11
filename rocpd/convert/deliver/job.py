"""Owns what a writer needs of one rank, as one frozen value that can be sent to another process.

Each rank is read through a connection of its own: no limit on the number of files, and pages of a file go when the
rank is done. Never reads an event.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import apsw

from rocpd.convert.options import ConvertOptions
from rocpd.convert.read import Tables, total_rows
from rocpd.federate.federation import Federation
from rocpd.federate.open.identify import Rank
from rocpd.federate.open.opening import as_input_error
from rocpd.federate.run.connection_cache import borrow
from rocpd.federate.select.window import Interval
from rocpd.schema.render import RankTables

_OWN_PIDS = 1 << 23
"""Above Linux's largest pid (2^22): where the pids lie that stand in for ones that clash."""


@dataclass(frozen=True)
class RankJob:
    """One rank to be written.

    Args:
        rank: the rank, with how its file is opened.
        part: its tables as a connection to its own file names them, with what window and filters let count.
        whole: the same, with what filters alone let count.
        interval: window on the common time line, or None.
        offset: what is added to its times to lay them on the common time line [ns].
        place: 1 for the first rank of the session, and so on.
        pid: pid in the trace, distinct in the session.
        options: how events are shown.
    """

    rank: Rank
    part: RankTables
    whole: RankTables
    interval: Interval | None
    offset: int
    place: int
    pid: int
    options: ConvertOptions

    @contextlib.contextmanager
    def open(self) -> Iterator[Tables]:
        """Open the rank's file and give its tables; errors name the file."""
        with borrow(self.rank.opening, self.part) as database:
            try:
                yield Tables(database.connection, self.part, self.interval, self.whole)
            except apsw.Error:
                # No other error: what the caller writes meanwhile may fail too, and that is not the input's fault.
                with as_input_error(self.rank.opening.path):
                    raise

    def rows(self) -> int:
        """Count the events of the rank."""
        with self.open() as tables:
            return total_rows(tables)


def jobs(session: Federation, options: ConvertOptions, *, aligned: bool = True) -> tuple[RankJob, ...]:
    """Give the ranks of a session in order.

    Args:
        aligned: lay ranks on one time line; else times stay as recorded, and the user is told nothing about clocks.
    """
    offsets = session.alignment.offsets if aligned or session.window else {}
    pids = distinct_pids(session.ranks)
    return tuple(
        RankJob(
            rank,
            session.rank_tables(rank.number),
            session.selection.apply_filters(rank.number, session.job.parts[rank.number]),
            session.window,
            offsets.get(rank.number, 0),
            place,
            pids[rank.number],
            options,
        )
        for place, rank in enumerate(session.ranks, start=1)
    )


def distinct_pids(ranks: Sequence[Rank]) -> dict[int, int]:
    """Give each rank a pid of its own: the OS's where it is the first with it, else one that no OS gives.

    Viewers take processes of equal pid for one, and ranks on other hosts or in containers do have equal pids.
    """
    pids: dict[int, int] = {}
    used: set[int] = set()
    for rank in ranks:
        pid = rank.pid
        if pid is None or pid in used or not 0 < pid < _OWN_PIDS:
            pid = _OWN_PIDS + len(pids)
        used.add(pid)
        pids[rank.number] = pid
    return pids
