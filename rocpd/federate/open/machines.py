"""Sets machines apart that have one id: the image of a container may bring its own to every machine that runs it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from rocpd.federate.open.identify import Rank


def with_machines(ranks: Sequence[Rank]) -> tuple[Rank, ...]:
    """Return the ranks, with the boot in the machine id where machines of one id were started at different times.

    Those are several machines, or one that was restarted meanwhile: times of two boots do not compare either way.
    """
    boots: dict[str | None, set[str]] = {}
    for rank in ranks:
        if rank.boot:
            boots.setdefault(rank.machine_id, set()).add(rank.boot)
    several = {machine for machine, of_machine in boots.items() if machine is not None and len(of_machine) > 1}
    return tuple(
        dataclasses.replace(rank, machine_id=f"{rank.machine_id}/{rank.boot}")
        if rank.boot and rank.machine_id in several
        else rank
        for rank in ranks
    )
