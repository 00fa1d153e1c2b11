"""Tells the runs apart that ranks are of: one job is one run; a folder may hold many, of days. Never reads an event.

Processes of one run live at the same time. On other machines they run the same command, and no two of them have the
same MPI rank; clocks don't compare. A process whose file does not say when it lived is taken for one of the run, and
so is what was measured with instrumentation: it belongs to traces of the same program, and has no times.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Sequence

from rocpd.federate.open.identify import Rank
from rocpd.schema.rules.tables import MEASURED


def with_runs(ranks: Sequence[Rank]) -> tuple[Rank, ...]:
    """Return the ranks with the numbers of their runs, which count from 0 in the order of ranks."""
    runs: list[list[Rank]] = []
    for machine in _by_machine(rank for rank in ranks if MEASURED.isdisjoint(rank.tables)):
        taken: list[list[Rank]] = []
        for part in _at_one_time(machine):
            run = next((run for run in runs if run not in taken and _is_one_job(run, part)), None)
            if run is None:
                run = []
                runs.append(run)
            run += part
            taken.append(run)
    if len(runs) < 2 or _are_parts_of_one(runs):
        return tuple(ranks)
    runs.sort(key=lambda run: min(rank.number for rank in run))
    number = {rank.number: run for run, members in enumerate(runs) for rank in members}
    return tuple(dataclasses.replace(rank, run=number.get(rank.number, 0)) for rank in ranks)


def _by_machine(ranks: Iterable[Rank]) -> list[list[Rank]]:
    """Return the ranks of each machine; one whose machine is unknown stands alone."""
    machines: dict[object, list[Rank]] = {}
    for rank in ranks:
        machines.setdefault(rank.number if rank.machine_id is None else rank.machine_id, []).append(rank)
    return list(machines.values())


def _at_one_time(ranks: Sequence[Rank]) -> Iterator[list[Rank]]:
    """Yield the ranks of one machine that lived at one time, the earliest first; unknown ones go with those."""
    part = [rank for rank in ranks if rank.life is None]
    last = None
    known = [(rank.life, rank) for rank in ranks if rank.life is not None]
    for (start, end), rank in sorted(known, key=lambda one: (one[0], one[1].number)):
        if last is not None and start > last:
            yield part
            part = []
        part.append(rank)
        last = end if last is None else max(last, end)
    yield part


def _is_one_job(run: Sequence[Rank], part: Sequence[Rank]) -> bool:
    mpi_ranks = [{rank.mpi_rank for rank in ranks} - {None} for ranks in (run, part)]
    commands = [{_command(rank) for rank in ranks} for ranks in (run, part)]
    return bool(commands[0] & commands[1]) and not mpi_ranks[0] & mpi_ranks[1]


def _command(rank: Rank) -> str | None:
    """Return the command without numbers, which may be those of ranks and ports."""
    return None if rank.command is None else re.sub(r"\d+", "#", rank.command)


def _are_parts_of_one(runs: Sequence[Sequence[Rank]]) -> bool:
    """Whether all processes have MPI ranks, and each MPI rank is of one run: what a rank starts has its number."""
    of_runs = [{rank.mpi_rank for rank in run} for run in runs]
    every = set().union(*of_runs)
    return None not in every and len(every) == sum(map(len, of_runs))
