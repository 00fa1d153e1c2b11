"""Where each rank stands in what is written: on the time line, among the processes, in the order of ranks."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import PurePath

from rocpd.base.frozen import frozen
from rocpd.federate.federation import Federation
from rocpd.federate.open.identify import Rank
from rocpd.federate.select.align import UNSHIFTED, Alignment, Clock, Shift
from rocpd.federate.select.selection import Part

_STAND_IN_PIDS = 1 << 23
"""Above Linux's largest pid (2^22): where the pids lie that stand in for ones that clash."""


_CONTAINER = re.compile(r"^([0-9a-f]{6})[0-9a-f]{6,}$")


@frozen
class Placement:
    """Where a rank stands.

    Args:
        rank: the rank.
        label: what people call it, in order of the ranks when sorted as text: `rank 02 · node-7`.
        position: 1 for the first rank of the session, and so on.
        pid: pid in the trace, distinct in the session.
        shift: what is added to its times to lay them on the common time line.
        clock: how that is known, None where all ranks share a clock.
        part: what of the rank's time counts, by its clock; None for all of it.
    """

    rank: Rank
    label: str
    position: int
    pid: int
    shift: Shift
    clock: Clock | None
    part: Part | None

    @property
    def about(self) -> str:
        """Its process and its clock, for people."""
        rank = self.rank
        words = f"process {'?' if rank.pid is None else rank.pid} of {rank.hostname or '?'}: {rank.command or '?'}"
        return f"{words}\n{self.clock}" if self.clock else words

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
    labels = rank_labels(session.ranks)
    return tuple(
        Placement(
            rank,
            labels[rank.number],
            position,
            pids[rank.number],
            alignment.shift(rank.number),
            alignment.clock(rank.number),
            session.window.part(rank.number) if session.window else None,
        )
        for position, rank in enumerate(session.ranks, start=1)
    )


def rank_labels(ranks: Sequence[Rank]) -> dict[int, str]:
    """Return number -> label of ranks: number, the program where it is not the same on all, and host.

    Numbers are as long as the largest, so that viewers which sort by name have ranks in order.
    """
    width = len(str(max((rank.number for rank in ranks), default=0)))
    hosts = _short_hosts(ranks)
    programs = {rank.number: _program(rank) for rank in ranks}
    differ = len(set(programs.values())) > 1
    words = {n: (programs[n] if differ else None, hosts.get(n)) for n in programs}
    return {n: " · ".join((f"rank {n:0{width}}", *filter(None, words[n]))) for n in programs}


def _short_hosts(ranks: Sequence[Rank]) -> dict[int, str]:
    """Return number -> host name up to the first dot, six digits of a container's, where that tells hosts apart."""
    hosts = {rank.number: rank.hostname for rank in ranks if rank.hostname}
    short = {host: _CONTAINER.sub(r"\1", host.partition(".")[0]) for host in hosts.values()}
    return {n: short[host] if len(set(short.values())) == len(short) else host for n, host in hosts.items()}


def _program(rank: Rank) -> str | None:
    words = (rank.command or "").split()
    return PurePath(words[0]).name if words else None


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
