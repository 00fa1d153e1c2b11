"""Reads one rank: what it did in each unit of time. Compute, exposed communication and copies, and idle time add up.

A unit is a step, from its start to the start of the next one; else what edges say; else the whole time from the first
to the last operation. Of a window those units count that lie in it as a whole. Never looks at two ranks: how much of
communication is waiting, `critical` finds out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rocpd.compare.launches import COPY_KIND, KernelLaunch, read_launches
from rocpd.compare.pieces import Pieces, divided, outside, owned
from rocpd.federate.select.part import Part
from rocpd.frozen import frozen
from rocpd.read.groups import grouped
from rocpd.summary.collectives import channels_of
from rocpd.summary.idle_causes import CAUSES, activities, idle_pieces
from rocpd.summary.intervals import unite
from rocpd.summary.ops import COPY, OperationNames, Ops, read_ops, split
from rocpd.summary.options import By
from rocpd.summary.reading import RankReading
from rocpd.summary.regions import read_regions
from rocpd.summary.steps import read_ranges, read_steps
from rocpd.trace.collectives import Channel
from rocpd.trace.kernel_categories import Categories
from rocpd.types import Floats, Ints

KINDS = ("compute", "communication", COPY_KIND)
"""What an operation is; also the order in which time is given: to compute, then to communication, then to copies."""


WHOLE = -1
"""Number of the unit that is all the time."""


@frozen
class UnitEdges:
    """The units of a rank.

    Args:
        numbers: of the units.
        edges: unit `numbers[n]` lasts from `edges[n]` to `edges[n + 1]` [ns of the rank's clock].
        ends: where its marker ends, up to which it has to lie in a window to count.
    """

    numbers: Ints
    edges: Ints
    ends: Ints


class ExposedCommunication(NamedTuple):
    """Stretches in which a communication kernel runs and nothing computes, of all agents.

    Args:
        unit: row of the unit.
        launch: number in `RankMeasure.launches`.
        channel: number in `RankMeasure.channels`, -1: none.
        position: which kernel of the channel.
        start, end: [ns].
    """

    unit: Ints
    launch: Ints
    channel: Ints
    position: Ints
    start: Ints
    end: Ints


@frozen
class RankMeasure:
    """What a rank did in each unit; times are sums over its agents [ns].

    Args:
        units: its units.
        agents: how many of its GPUs worked.
        launches: kernels and copies, by what they are launched with and where.
        calls: how many started in a unit: `[unit, launch]`.
        time: how long these ran in all.
        exposed: how much each adds to the time in which something of its kind or of one before it runs.
        medians: median time of these; NaN: none started.
        idle: `[unit, cause]`, causes as `CAUSES` has them.
        exposed_communication: where the time of `exposed` lies that is communication.
        channels: the rank's communication kernels.
        phases: time in marker ranges that were asked for, by unit [ns].
        part: what of the rank's time counts.
    """

    units: UnitEdges
    agents: int
    launches: Sequence[KernelLaunch]
    calls: Ints
    time: Ints
    exposed: Ints
    medians: Floats
    idle: Ints
    exposed_communication: ExposedCommunication
    channels: Sequence[Channel]
    phases: Ints
    part: Part


@frozen
class Measuring:
    """How ranks are measured.

    Args:
        categories: say what kernels do.
        step: markers that are steps.
        marker: ranges whose time is wanted.
        given: rank -> units to take instead of steps, None for the whole time; then other ranks are left out.
    """

    categories: Categories
    step: re.Pattern[str]
    marker: re.Pattern[str] | None = None
    given: Mapping[int, UnitEdges | None] | None = None


def measure(reading: RankReading, how: Measuring) -> RankMeasure | None:
    """Read one rank; return what it did, None for one without operations in the window.

    Args:
        reading: reads the rank; a window cuts nothing of what it reads.
        how: what is measured.
    """
    names = OperationNames()
    ops = read_ops(reading, names, stacks=True)
    if not len(ops):
        return None
    part = reading.window.part
    units = inside(_steps(reading, how.step), part) if how.given is None else how.given[reading.rank.number]
    units = units or _whole(ops, part)
    if units is None:
        return None
    kinds = split(ops, how.categories, names)
    launches, codes = read_launches(reading, ops, names, how.categories, kinds["communication"])
    channels = channels_of(reading, ops, names, how.categories)
    calls, time, medians = _count(ops, codes, units, len(launches))
    exposed = np.zeros(calls.shape, np.int64)
    communication = []
    for _, on_agent in grouped([ops.agent]):
        for kind, pieces in _exposed(ops, kinds, on_agent).items():
            unit, cut = divided(pieces, units.edges)
            np.add.at(exposed, (unit, codes[cut.of]), cut.length)
            if kind == "communication":
                communication.append((unit, cut))
    return RankMeasure(
        units,
        len(set(ops.agent.tolist())),
        launches,
        calls,
        time,
        exposed,
        medians,
        _idle(reading, ops, units),
        _located(communication, ops, codes, channels),
        channels,
        _phases(reading, how.marker, units),
        part,
    )


def inside(units: UnitEdges | None, part: Part) -> UnitEdges | None:
    """Return the units that lie in a part of the time as a whole; None: there are none.

    >>> numbers, edges, ends = np.array([5, 6, 7]), np.array([10, 20, 30, 40]), np.array([19, 29, 39])
    >>> units = inside(UnitEdges(numbers, edges, ends), Part(15, 29))
    >>> units.numbers.tolist(), units.edges.tolist()
    ([6], [20, 30])
    """
    if units is None:
        return None
    first = 0 if part.start is None else int(np.searchsorted(units.edges, part.start))
    last = len(units.numbers) if part.end is None else int(np.searchsorted(units.ends, part.end, side="right"))
    numbers, edges, ends = units.numbers[first:last], units.edges[first : last + 1], units.ends[first:last]
    return UnitEdges(numbers, edges, ends) if len(numbers) else None


def _whole(ops: Ops, part: Part) -> UnitEdges | None:
    """Return the time from the first to the last operation of a part of the time as one unit; None: there are none."""
    start = max(int(ops.start.min()), part.start or 0)
    end = int(ops.end.max()) if part.end is None else min(int(ops.end.max()), part.end)
    is_some = bool(((ops.start < end) & (ops.end > start)).any())
    return UnitEdges(np.array([WHOLE]), np.array([start, end]), np.array([end])) if is_some else None


def _steps(reading: RankReading, pattern: re.Pattern[str]) -> UnitEdges | None:
    """Return the steps of the rank; of several with one number the first."""
    ranges = read_ranges(reading.reader).every
    first: dict[int, tuple[int, int]] = {}
    for step in read_steps(reading.reader, pattern):
        if step.number is not None:
            first.setdefault(step.number, (ranges[step.row].start, ranges[step.row].end))
    ordered = sorted(first.items(), key=lambda item: item[1])
    if not ordered:
        return None
    ends = np.array([end for _, (_, end) in ordered])
    edges = np.array([*(start for _, (start, _) in ordered), ends.max()])
    return UnitEdges(np.array([number for number, _ in ordered]), edges, np.minimum(ends, edges[1:]))


def _count(ops: Ops, codes: Ints, units: UnitEdges, count: int) -> tuple[Ints, Ints, Floats]:
    """Return how many operations of each kind of launch start in a unit, their time, and their median; NaN: none."""
    shape = len(units.numbers), count
    unit = np.searchsorted(units.edges, ops.start, side="right") - 1
    some = np.flatnonzero((unit >= 0) & (unit < shape[0]))
    group = unit[some] * count + codes[some]
    duration = ops.duration[some]
    calls = np.bincount(group, minlength=shape[0] * count)
    time, medians = np.zeros(len(calls), np.int64), np.full(len(calls), np.nan)
    np.add.at(time, group, duration)
    ordered = duration[np.lexsort((duration, group))]
    used = np.flatnonzero(calls)
    first, last = (np.cumsum(calls) - calls)[used], np.cumsum(calls)[used] - 1
    below = (first + last) // 2
    medians[used] = (ordered[below] + ordered[first + last - below]) / 2
    return calls.reshape(shape), time.reshape(shape), medians.reshape(shape)


def _exposed(ops: Ops, kinds: Mapping[str, Ints], on_agent: Ints) -> dict[str, Pieces]:
    """Return what each kind adds to the time of one agent in which those before it work."""
    is_here = np.zeros(len(ops), bool)
    is_here[on_agent] = True
    working = np.zeros(0, np.int64), np.zeros(0, np.int64)
    result = {}
    for kind in KINDS:
        rows = kinds[kind][is_here[kinds[kind]]]
        pieces = owned(ops.start[rows], ops.end[rows])
        result[kind] = outside(Pieces(rows[pieces.of], pieces.start, pieces.end), working)
        working = unite(working, ops.union(rows))
    return result


def _idle(reading: RankReading, ops: Ops, units: UnitEdges) -> Ints:
    """Return the idle time of each unit by cause."""
    regions, names = read_regions(reading)
    threads = activities(regions, names)
    idle = np.zeros((len(units.numbers), len(CAUSES)), np.int64)
    span = min(int(units.edges[0]), int(ops.start.min())), max(int(units.edges[-1]), int(ops.end.max()))
    for _, on_agent in ops.lanes(By.AGENT):
        gaps = idle_pieces(on_agent, regions, threads, span)
        unit, cut = divided(Pieces(np.arange(len(gaps.start)), gaps.start, gaps.end), units.edges)
        np.add.at(idle, (unit, gaps.cause[cut.of]), cut.length)
    return idle


def _located(
    parts: Sequence[tuple[Ints, Pieces]], ops: Ops, codes: Ints, channels: Sequence[Channel]
) -> ExposedCommunication:
    """Say of which channel, and which of its kernels, each stretch is."""
    nothing = np.zeros(0, np.int64)
    unit = np.concatenate([nothing, *(unit for unit, _ in parts)])
    of, start, end = (np.concatenate([nothing, *(cut[column] for _, cut in parts)]) for column in range(3))
    channel, position = np.full(len(of), -1), np.zeros(len(of), np.int64)
    for number, known in enumerate(channels):
        order = np.argsort(known.counted.row)
        rows = known.counted.row[order]
        if len(rows):
            at = np.minimum(np.searchsorted(rows, ops.row[of]), len(rows) - 1)
            is_its = (rows[at] == ops.row[of]) & (ops.kind[of] != COPY)
            channel[is_its], position[is_its] = number, known.numbers[order[at[is_its]]]
    return ExposedCommunication(unit, codes[of], channel, position, start, end)


def _phases(reading: RankReading, marker: re.Pattern[str] | None, units: UnitEdges) -> Ints:
    """Return the time of the marker ranges that were asked for, where they start."""
    times = np.zeros(len(units.numbers), np.int64)
    every = read_ranges(reading.reader).every if marker else ()
    ranges = [(each.start, each.end) for each in every if marker and marker.search(each.text)]
    if ranges:
        start, end = np.array(ranges, np.int64).T
        unit = np.searchsorted(units.edges, start, side="right") - 1
        some = (unit >= 0) & (unit < len(times))
        np.add.at(times, unit[some], (end - start)[some])
    return times
