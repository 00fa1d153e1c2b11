"""Reads one rank: what it did in each unit of time. Compute, exposed communication and copies, and idle time add up.

A unit is a step, from its start to the start of the next one; else what edges say; else the whole time from the first
to the last operation. Never looks at two ranks: how much of communication is waiting, `run_profile` finds out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rocpd.compare.launches import KernelLaunch, read_launches
from rocpd.compare.pieces import Pieces, divided, outside, owned
from rocpd.frozen import frozen
from rocpd.read.groups import grouped
from rocpd.summary.collectives import channels_of
from rocpd.summary.idle_causes import CAUSES, activities, idle_pieces
from rocpd.summary.intervals import unite
from rocpd.summary.ops import COPY, OperationNames, Ops, read_ops, split
from rocpd.summary.options import By
from rocpd.summary.reading import RankReading
from rocpd.summary.regions import read_regions
from rocpd.summary.steps import read_ranges
from rocpd.trace.collectives import Channel
from rocpd.trace.kernel_categories import Categories
from rocpd.trace.steps import find_steps
from rocpd.types import Floats, Ints

KINDS = ("compute", "communication", "copy")
"""What an operation is; also the order in which time is given: to compute, then to communication, then to copies."""


@frozen
class UnitEdges:
    """The units of a rank: unit `numbers[n]` lasts from `edges[n]` to `edges[n + 1]` [ns of its clock]."""

    numbers: Ints
    edges: Ints


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
        medians: median time of a launch [launch].
        idle: `[unit, cause]`, causes as `CAUSES` has them.
        exposed_communication: where the time of `exposed` lies that is communication.
        channels: the rank's communication kernels.
        phases: time in marker ranges that were asked for, by unit [ns].
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
    """Read one rank; return what it did, None for one without operations."""
    names = OperationNames()
    ops = read_ops(reading, names, stacks=True)
    if not len(ops):
        return None
    units = _steps(reading, how.step) if how.given is None else how.given[reading.rank.number]
    units = units or _whole(ops)
    kinds = split(ops, how.categories, names)
    launches, codes = read_launches(reading, ops, names, how.categories, kinds["communication"])
    channels = channels_of(reading, ops, names, how.categories)
    shape = len(units.numbers), len(launches)
    calls, time, exposed = (np.zeros(shape, np.int64) for _ in range(3))
    _count(ops, codes, units, calls, time)
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
        _medians(ops, codes, units, len(launches)),
        _idle(reading, ops, units),
        _located(communication, ops, codes, channels),
        channels,
        _phases(reading, how.marker, units),
    )


def _whole(ops: Ops) -> UnitEdges:
    """Return the time from the first to the last operation as one unit."""
    return UnitEdges(np.array([-1]), np.array([ops.start.min(), ops.end.max()]))


def _steps(reading: RankReading, pattern: re.Pattern[str]) -> UnitEdges | None:
    """Return the steps of the rank; of several with one number the first."""
    ranges = read_ranges(reading.reader).every
    first: dict[int, tuple[int, int]] = {}
    for step in find_steps(ranges, pattern):
        if step.number is not None:
            first.setdefault(step.number, (ranges[step.row].start, ranges[step.row].end))
    ordered = sorted(first.items(), key=lambda item: item[1])
    if not ordered:
        return None
    edges = [start for _, (start, _) in ordered] + [max(end for _, (_, end) in ordered)]
    return UnitEdges(np.array([number for number, _ in ordered]), np.array(edges))


def _count(ops: Ops, codes: Ints, units: UnitEdges, calls: Ints, time: Ints) -> None:
    """Count operations, and their time, where they start."""
    unit = np.searchsorted(units.edges, ops.start, side="right") - 1
    some = np.flatnonzero((unit >= 0) & (unit < len(units.numbers)))
    np.add.at(calls, (unit[some], codes[some]), 1)
    np.add.at(time, (unit[some], codes[some]), ops.duration[some])


def _medians(ops: Ops, codes: Ints, units: UnitEdges, count: int) -> Floats:
    """Return the median time of each kind of launch in all units, NaN where there is none."""
    medians = np.full(count, np.nan)
    some = np.flatnonzero((ops.start >= units.edges[0]) & (ops.start < units.edges[-1]))
    for (code,), rows in grouped([codes[some]]):
        medians[code] = np.median(ops.duration[some[rows]])
    return medians


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
