"""Numbers the ranks of a job, by the MPI ranks of its processes where these say which is which."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from rocpd.federate.open.identify import Rank


def numbered(ranks: Sequence[Rank]) -> tuple[Rank, ...]:
    """Return the ranks in order, with numbers of their own.

    If the processes that are ranks have distinct MPI ranks, these are their numbers, and the others follow: launchers,
    and what a rank started, such as the workers of its data loader. Else all are numbered by (hostname, pid, GUID).
    """
    helpers = {rank.guid for rank in (*_launchers(ranks), *_started_by_ranks(ranks))}
    mpi_ranks = [rank.mpi_rank for rank in ranks if rank.guid not in helpers]
    in_order = sorted(ranks, key=lambda r: (r.hostname or "", r.pid if r.pid is not None else -1, r.guid))
    if not ranks or None in mpi_ranks or len(set(mpi_ranks)) != len(mpi_ranks):
        return tuple(dataclasses.replace(rank, number=index) for index, rank in enumerate(in_order))
    first = [dataclasses.replace(rank, number=rank.mpi_rank or 0) for rank in ranks if rank.guid not in helpers]
    first.sort(key=lambda rank: rank.number)
    others = (rank for rank in in_order if rank.guid in helpers)
    return (*first, *(dataclasses.replace(rank, number=n) for n, rank in enumerate(others, first[-1].number + 1)))


def _launchers(ranks: Sequence[Rank]) -> list[Rank]:
    """Return the processes without an MPI rank that started some with one, and what else these started."""
    starters = {(rank.machine_id, rank.parent) for rank in ranks if rank.mpi_rank is not None}
    without = [rank for rank in ranks if rank.mpi_rank is None and rank.pid is not None]
    launchers = {(rank.machine_id, rank.pid) for rank in without} & starters
    return [rank for rank in without if not launchers.isdisjoint(_process_and_parent(rank))]


def _process_and_parent(rank: Rank) -> tuple[tuple[str | None, int | None], ...]:
    return (rank.machine_id, rank.pid), (rank.machine_id, rank.parent)


def _started_by_ranks(ranks: Iterable[Rank]) -> list[Rank]:
    """Return the processes that another one with their MPI rank started."""
    alike: dict[tuple[str, int], list[Rank]] = {}
    for rank in ranks:
        if rank.machine_id is not None and rank.mpi_rank is not None:
            alike.setdefault((rank.machine_id, rank.mpi_rank), []).append(rank)
    return [rank for processes in alike.values() for rank in _without_first(processes)]


def _without_first(processes: Sequence[Rank]) -> list[Rank]:
    """Return all but the process that was there before the others; only their children where that is not known.

    The parent of a process need not be recorded, but one that was there first still lives when the others start.
    """
    pids = {rank.pid for rank in processes}
    children = [rank for rank in processes if rank.parent in pids]
    roots = [(rank.life, rank) for rank in processes if rank.parent not in pids]
    if not roots:
        return []  # damaged: each is the child of another
    lives = sorted(life for life, _ in roots if life)
    if len(lives) < len(roots) or len(roots) < 2 or not lives[0][0] < lives[1][0] <= lives[-1][0] <= lives[0][1]:
        return children
    return [*children, *(rank for life, rank in roots if life != lives[0])]
