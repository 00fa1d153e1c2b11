"""Where each rank stands in what is written: on the time line, among the processes, in the order of ranks."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from rocpd.federate.federation import Federation
from rocpd.federate.open.identify import Rank
from rocpd.federate.select.align import Alignment, Clock
from rocpd.federate.select.part import Part
from rocpd.federate.select.timeline import UNSHIFTED, Shift
from rocpd.frozen import frozen

_STAND_IN_PIDS = 1 << 23
"""Above Linux's largest pid (2^22): where the pids lie that stand in for ones that clash."""


@frozen
class Placement:
    """Where a rank stands.

    Args:
        rank: the rank.
        position: 1 for the first rank of the session, and so on.
        pid: pid in the trace, distinct in the session.
        shift: what is added to its times to lay them on the common time line.
        clock: how that is known, None where all ranks share a clock.
        part: what of the rank's time counts, by its clock; None for all of it.
    """

    rank: Rank
    position: int
    pid: int
    shift: Shift
    clock: Clock | None
    part: Part | None

    @property
    def window(self) -> Part | None:
        """The part of the rank that counts, on the common time line; None for all of it."""
        return self.part.on_line(self.shift) if self.part else None

    def by_its_clock(self) -> Placement:
        """Return where it stands when its times stay as recorded."""
        return dataclasses.replace(self, shift=UNSHIFTED)


def placements(session: Federation, *, aligned: bool = True) -> tuple[Placement, ...]:
    """Return the placements of all ranks in order.

    Args:
        session: the ranks.
        aligned: lay ranks on one time line; else times stay as recorded, and nothing is noted about clocks.
    """
    alignment = session.alignment if aligned or session.window else Alignment({})
    pids = distinct_pids(session.ranks)
    return tuple(
        Placement(
            rank,
            position,
            pids[rank.number],
            alignment.shift(rank.number),
            alignment.clock(rank.number),
            session.window.part(rank.number) if session.window else None,
        )
        for position, rank in enumerate(session.ranks, start=1)
    )


def distinct_pids(ranks: Sequence[Rank]) -> dict[int, int]:
    """Return a pid of its own for each rank: the OS's where it is the first with it, else one that no OS gives.

    Viewers take processes of equal pid for one, and ranks on other hosts or in containers do have equal pids.
    """
    pids: dict[int, int] = {}
    used: set[int] = set()
    for rank in ranks:
        pid = rank.pid
        if pid is None or pid in used or not 0 < pid < _STAND_IN_PIDS:
            pid = _STAND_IN_PIDS + len(pids)
        used.add(pid)
        pids[rank.number] = pid
    return pids
