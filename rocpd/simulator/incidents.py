"""Incidents that stop a job that is written in real time: which rank stops where, and who then waits for it.

Pure arithmetic over the exchanges that each rank makes: a rank whose partner does not come stops at that exchange, and
so do those that wait for it, until nothing changes. Opens no file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from rocpd.base.errors import UsageError
from rocpd.base.frozen import frozen

NEVER = 2**62
"""A time that does not come [ns]."""


class Incident(StrEnum):
    """Incidents of a job that runs."""

    STALL = "stall"
    KILL = "kill"
    MISMATCH = "mismatch"
    DISK_FULL = "disk-full"


@frozen
class Happening:
    """An incident on a rank, in a step."""

    incident: Incident
    rank: int
    step: int


@frozen
class GroupKey:
    """Who exchanges: the ranks of a communicator, or of one direction between two of them; in order.

    Args:
        name: for people.
        members: ranks.
        is_pair: whether the first sends to the second.
    """

    name: str
    members: tuple[int, ...]
    is_pair: bool = False


@frozen
class MadeExchange:
    """One exchange of a rank: when it was called, when its kernel ran [ns of the rank's clock]."""

    name: str
    bytes: int
    called: int
    started: int
    ended: int


@frozen
class Halt:
    """When host and GPU of a rank come no further, and when its rows end [ns of its clock].

    Args:
        host: calls that end later are not made.
        device: work that ends later is not done.
        rows: nothing is written later.
        dies: whether its process is gone from then on.
        instead: the exchange that it called out of order, and which.
    """

    host: int = NEVER
    device: int = NEVER
    rows: int = NEVER
    dies: bool = False
    instead: tuple[GroupKey, MadeExchange] | None = None


Exchanges = Mapping[GroupKey, Sequence[MadeExchange]]
"""The exchanges of a rank, by group, in the order of its calls."""


def parse_incident(text: str, ranks: int, steps: int, seed: int) -> Happening | None:
    """Return what `stall=5` asks for: the incident, the step, and by the seed the rank; `none` is nothing.

    Raises:
        UsageError: an unknown incident, or a step that the job does not have.
    """
    name, _, step = text.partition("=")
    if name == "none":
        return None
    if name not in tuple(Incident):
        raise UsageError(f"incident {name}: unknown", f"none, or one of {', '.join(Incident)}")
    if step and not (step.isdecimal() and int(step) < steps):
        raise UsageError(f"incident {text}: not a step", f"a number below {steps}")
    return Happening(Incident(name), (seed * 7 + 3) % ranks, int(step) if step else steps // 2)


def spread(halts: dict[int, Halt], exchanges: Mapping[int, Exchanges], waits: Mapping[int, Sequence[int]]) -> None:
    """Let all who wait for a rank that has halted halt too.

    Args:
        halts: of every rank; changed.
        exchanges: of every rank.
        waits: when each rank begins to wait for its GPU [ns], in order.
    """
    keys = {key for own in exchanges.values() for key in own}
    changed = True
    while changed:
        changed = False
        for key in keys:
            number = _first_missing(key, halts, exchanges)
            for rank in key.members if number is not None else ():
                own = exchanges[rank][key]
                if number is None or number >= len(own) or not _comes(own[number], halts[rank]):
                    continue
                halt = _waiting(halts[rank], own[number], waits[rank])
                changed |= halt != halts[rank]
                halts[rank] = halt


def _comes(operation: MadeExchange, halt: Halt) -> bool:
    return operation.called <= halt.host and operation.started <= halt.device


def _first_missing(key: GroupKey, halts: Mapping[int, Halt], exchanges: Mapping[int, Exchanges]) -> int | None:
    """Return the number of the first exchange that some member does not come to, None: all come to all."""
    missing = [
        next((n for n, operation in enumerate(exchanges[rank][key]) if not _comes(operation, halts[rank])), NEVER)
        for rank in key.members
    ]
    return min(missing) if min(missing) < NEVER else None


def _waiting(halt: Halt, operation: MadeExchange, waits: Sequence[int]) -> Halt:
    """Return where a rank halts that waits in an exchange: its GPU there, its host where it waits for the GPU next."""
    device = min(halt.device, operation.started)
    begins = next((start for start in waits if start >= operation.called), NEVER)
    host = min(halt.host, max(begins + 1, operation.called + 1))
    return Halt(host, device, halt.rows, halt.dies, halt.instead)
