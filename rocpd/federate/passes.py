"""Tells which runs are passes of one program: a GPU counts few things at a time, so a program runs for each few.

Passes run one after the other, have as many dispatches, and count different things. The values of all belong together;
everything else is there once for each pass, and counts once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from rocpd.base.frozen import frozen
from rocpd.federate.open.identify import Rank
from rocpd.federate.run.rank_reader import RankReader

_DISPATCHES = "SELECT COUNT(*) FROM rocpd_kernel_dispatch"
_COUNTERS = """SELECT DISTINCT I.name FROM (SELECT pmc_id, event_id FROM rocpd_pmc_event LIMIT 4096) V
JOIN rocpd_info_pmc I ON I.id = V.pmc_id WHERE V.event_id IN (SELECT event_id FROM rocpd_kernel_dispatch)"""
_SIMILAR = 0.95  # of the dispatches: the number that a program launches may hang on time


@frozen
class CountedRun:
    """What a rank counted: how many dispatches it has, and names of counters."""

    dispatches: int
    counters: frozenset[str]


Survey: TypeAlias = Callable[[Iterable[int]], Mapping[int, CountedRun]]
"""Looks into ranks, by their numbers."""


def counted_run(reader: RankReader) -> CountedRun:
    """Return what a rank counted, by its first values."""
    counters = frozenset(str(name) for (name,) in reader.rows(_COUNTERS))
    return CountedRun(int(reader.rows(_DISPATCHES)[0][0]), counters)


def programs(ranks: Sequence[Rank], survey: Survey) -> tuple[tuple[int, ...], ...]:
    """Return the numbers of ranks that are passes of one program, in the order in which they ran.

    Reads nothing where no command ran twice.
    """
    groups = _candidates(ranks)
    if not groups:
        return ()
    runs = survey([number for group in groups for number in group])
    lives = {rank.number: rank.life or (0, 0) for rank in ranks}
    return tuple(
        tuple(sorted(group, key=lambda number: (lives[number], number)))
        for group in groups
        if _are_passes([runs[number] for number in group])
    )


def _candidates(ranks: Sequence[Rank]) -> list[list[int]]:
    """Return the ranks that are each the n-th one of a run of the same command on the same host."""
    places: dict[int, int] = {}
    groups: dict[tuple[object, ...], list[int]] = {}
    for rank in ranks:
        place = places[rank.run] = places.get(rank.run, -1) + 1
        groups.setdefault((rank.hostname, rank.command, place), []).append(rank.number)
    return [group for group in groups.values() if len(group) > 1]


def _are_passes(runs: Sequence[CountedRun]) -> bool:
    counters = {run.counters for run in runs}
    dispatches = [run.dispatches for run in runs]
    return len(counters) == len(runs) and all(counters) and min(dispatches) >= _SIMILAR * max(dispatches)
