"""In which marker ranges a rank makes the calls that wait. Reads ranges when it is first asked."""

from __future__ import annotations

import functools

import numpy as np

from rocpd.read.groups import grouped
from rocpd.summary.options import By
from rocpd.summary.origins import key_of_place, places_at
from rocpd.summary.reading import RankReading
from rocpd.summary.regions import RankRegions, read_regions
from rocpd.trace.host_calls import HostCall, host_call
from rocpd.types import Ints

_WAITING = (HostCall.SYNCHRONISE, HostCall.COPY, HostCall.ALLOCATE, HostCall.MODULE)

WAITING = frozenset(kind.value for kind in _WAITING)
"""Causes of idle time that are calls which somebody may leave out: so it matters where they are made."""


class CallPaths:
    """The marker ranges around those calls of a rank that are `WAITING`.

    Args:
        reading: reads the rank.
    """

    def __init__(self, reading: RankReading) -> None:
        self._reading = reading

    def times(self, name: int, start: Ints, length: Ints) -> dict[str, int]:
        """Return path -> time of some stretches that begin in calls of a name; those in no marker are left out.

        Args:
            name: number of the function, as `read_regions` has it.
            start, length: of the stretches [ns].
        """
        calls, places, paths = self._read
        rows = np.flatnonzero(calls.name == name)
        at = np.searchsorted(calls.start[rows], start, side="right") - 1
        known = np.flatnonzero(at >= 0)
        times: dict[str, int] = {}
        for (place,), which in grouped([places[rows[at[known]]]]):
            if paths[place]:
                times[paths[place]] = int(length[known[which]].sum())
        return times

    @functools.cached_property
    def _read(self) -> tuple[RankRegions, Ints, list[str]]:
        """The calls by their start, the number of the path of each, and the paths; empty: no marker."""
        regions, names = read_regions(self._reading)
        pairs = grouped([regions.name, regions.category])
        some = [rows for (name, kind), rows in pairs if host_call(names.texts[name], names.texts[kind]) in _WAITING]
        calls = regions.take(np.sort(np.concatenate([np.zeros(0, np.int64), *some])))
        places, codes = places_at(self._reading, By.MARKER, calls.thread, calls.start)
        return calls, codes, [str(key_of_place(place)[0] or "") for place in places]
