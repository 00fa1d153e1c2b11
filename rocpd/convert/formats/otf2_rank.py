"""Turns one rank into what OTF2 holds: locations with sequences of enter and leave, metrics, the regions they name.

All of it is numpy columns, so that a worker process can make it and send it. Never writes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from rocpd.convert.deliver.parts import RankPart
from rocpd.convert.formats.order import instant_ties, nesting, ties
from rocpd.convert.gather.collect import collect
from rocpd.convert.gather.context import Damage
from rocpd.convert.model import Counters, RankEvents
from rocpd.federate.open.identify import Rank
from rocpd.federate.run.rank_reader import RankReader
from rocpd.trace.markers import is_marker
from rocpd.types import Floats, Ints

LEAVE, ENTER, BOTH = 0, 1, 2
"""What happens to a region: BOTH is a region without length."""

_PARADIGMS = (
    ("HIP", "HIP"), ("HSA", "HIP"), ("ROCM_HIP", "HIP"), ("ROCM_HSA", "HIP"), ("KERNEL", "HIP"), ("MEMORY", "HIP"),
    ("SCRATCH", "HIP"), ("ROCM_KERNEL", "HIP"), ("ROCM_MEMORY", "HIP"),
    ("OMPT", "OPENMP"), ("ROCM_OMPT", "OPENMP"), ("MPI", "MPI"), ("PTHREAD", "PTHREAD"), ("KOKKOS", "KOKKOS"),
    ("USER", "USER"), ("HOST", "USER"), ("TIMER_SAMPLING", "SAMPLING"), ("SAMPLING", "SAMPLING"),
)  # fmt: skip
"""Prefixes of categories, and OTF2's paradigm for each."""
_ROLES = {"ALLOC": "ALLOCATE", "FREE": "DEALLOCATE", "REALLOC": "REALLOCATE", "RECLAIM": "DEALLOCATE"}


@dataclass(frozen=True)
class Region:
    """What is entered and left: `role` and `paradigm` by OTF2's names."""

    name: str
    role: str
    paradigm: str


@dataclass(frozen=True)
class Location:
    """A location: its name, whether it is a CPU thread, and what happens on it in order of time."""

    name: str
    is_thread: bool
    time: Ints
    what: npt.NDArray[np.int8]
    region: npt.NDArray[np.int32]

    @property
    def events(self) -> int:
        """How many OTF2 events these are."""
        return len(self.what) + int(np.count_nonzero(self.what == BOTH))


@dataclass(frozen=True)
class Metric:
    """A metric: values in order of time."""

    name: str
    unit: str
    time: Ints
    value: Floats


@dataclass
class RankTrace:
    """One rank."""

    rank: Rank
    regions: list[Region] = field(default_factory=list)
    locations: list[Location] = field(default_factory=list)
    metrics: list[Metric] = field(default_factory=list)
    damage: Damage = field(default_factory=Damage)


def trace(part: RankPart, reader: RankReader) -> RankTrace:
    """Return one rank, its times on the common time line."""
    rank = RankTrace(reader.rank)
    events = collect(reader, part.placement, part.options, rank.damage)
    track, time, tie, what, region = (np.concatenate(column) for column in zip(*_columns(events, rank), strict=True))
    order = np.lexsort((tie, time, track))
    bounds = np.searchsorted(track[order], np.arange(len(events.tracks.all) + 1))
    for index, each in enumerate(events.tracks.all):
        rows = order[bounds[index] : bounds[index + 1]]
        if each.unit is None and (len(rows) or each.tid is not None):
            is_thread = each.tid is not None or each.nests
            rank.locations.append(Location(each.name, is_thread, time[rows], what[rows], region[rows]))
    rank.metrics = [metric for counters in events.counters for metric in _metrics(events, counters)]
    return rank


def _columns(events: RankEvents, rank: RankTrace) -> list[tuple[np.ndarray, ...]]:
    """Return track, time, tie, what and region of all that happens, as columns per kind."""
    nests = nesting(events.tracks.all)
    regions: dict[Region, int] = {}
    names, categories = events.names.texts, events.categories.texts

    def numbered(kind: str, name: Ints, category: Ints) -> np.ndarray:
        width = len(categories) or 1
        keys, inverse = np.unique(name * width + category, return_inverse=True)
        numbers = [
            regions.setdefault(_region(kind, names[key // width], categories[key % width]), len(regions))
            for key in keys.tolist()
        ]
        return np.array(numbers, np.int32)[inverse] if numbers else np.zeros(0, np.int32)

    columns: list[tuple[np.ndarray, ...]] = []
    kinds = ("call", "kernel", "copy", "graph", "memory")
    for kind, slices in zip(kinds, events.slices, strict=True):
        region = numbered(kind, slices.name, slices.category)
        at = ties(slices, nests)
        what = np.where(at.lasting, ENTER, BOTH).astype(np.int8)
        columns.append((slices.track, slices.start, at.start, what, region))
        rows = np.flatnonzero(at.lasting)
        leave = np.full(len(rows), LEAVE, np.int8)
        columns.append((slices.track[rows], slices.end[rows], at.end[rows], leave, region[rows]))
    for instants in events.instants:
        region = numbered("instant", instants.name, instants.category)
        both = np.full(len(instants), BOTH, np.int8)
        columns.append((instants.track, instants.time, instant_ties(len(instants)), both, region))
    rank.regions = list(regions)
    return columns


def _region(kind: str, name: str, category: str) -> Region:
    paradigms = (paradigm for prefix, paradigm in _PARADIGMS if category.upper().startswith(prefix))
    paradigm = "USER" if is_marker(category) else next(paradigms, "UNKNOWN")
    if kind == "kernel":
        return Region(name, "KERNEL", "HIP")
    if kind == "copy":
        return Region(name, "DATA_TRANSFER", "HIP")
    if kind == "memory":
        return Region(name, _ROLES.get(name.split()[0], "UNKNOWN"), "HIP")
    if kind == "instant":
        return Region(name, "ARTIFICIAL" if paradigm == "SAMPLING" else "FUNCTION", paradigm)
    return Region(name, "CODE" if paradigm == "USER" else "FUNCTION", paradigm)


def _metrics(events: RankEvents, counters: Counters) -> list[Metric]:
    metrics = []
    for index in np.unique(counters.track).tolist():
        rows = counters.track == index
        track = events.tracks.all[index]
        metrics.append(Metric(track.name, track.unit or "", counters.time[rows], counters.value[rows]))
    return metrics
