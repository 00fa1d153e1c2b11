"""What operations wait for, as the graph has it, against what the simulator made them wait for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import rocpd
from rocpd.base import Floats, Ints
from rocpd.facts.timeline import COPIES
from rocpd.replay.job import JobGraph, read_job
from rocpd.replay.points import Edge, Point
from rocpd.simulator import JobOptions, simulate
from rocpd.simulator.job_plan import JobPlan, LaneTimes, plan
from rocpd.simulator.script import COPY, LANE_GAP, After, Exchange, LaneEnd, LaneRun, Template, Time
from tests.replay.test_replay import LAYOUTS
from tests.soak import sized

NEAR = 2_000
"""Of what ends so shortly before the last one, each may be what was waited for [ns]."""


class Start(NamedTuple):
    """When a kernel or copy truly starts [ns], and what it waited for."""

    is_copy: bool
    time: int
    waits: frozenset[Edge]


class _Round:
    """One step of a rank, as it was planned."""

    def __init__(self, template: Template, anchors: Ints, stretch: Floats) -> None:
        self.template, self.anchors = template, anchors
        self.lanes = [LaneTimes(lane) for lane in template.lanes]
        runs = (lane.runs(anchors[None], stretch[None]) for lane in self.lanes)
        self.runs = [(start[0], end[0]) for start, end in runs]
        rows = [(row, row.stream) for row in template.dispatches] + [(row, COPY) for row in template.copies]
        self.of_lane = {row.start.lane: stream for row, stream in rows if isinstance(row.start, LaneRun)}
        self.of_exchange = {row.end.anchor: stream for row, stream in rows if isinstance(row.end, Time)}
        self.rows = rows

    def starts(self) -> Iterator[Start]:
        """Yield the start of each operation."""
        for row, stream in self.rows:
            terms = sorted(self._terms(row.start, stream), reverse=True)
            latest = terms[0][0]
            yield Start(stream == COPY, latest, frozenset(kind for time, kind in terms if time >= latest - NEAR))

    def _terms(self, start: Time | LaneRun, stream: int) -> Iterator[tuple[int, Edge]]:
        """Yield until when each thing holds up an operation [ns]."""
        if isinstance(start, Time):
            yield from self._latest(start, stream)
            return
        lane, (_, ends) = self.lanes[start.lane], self.runs[start.lane]
        yield self._time(Time(int(lane.anchor[start.position]), int(lane.fixed[start.position]))), Edge.LAUNCH
        yield from self._latest(lane.start, stream)
        if start.position:
            yield int(ends[start.position - 1]) + LANE_GAP, Edge.STREAM

    def _latest(self, time: Time, stream: int) -> Iterator[tuple[int, Edge]]:
        """Yield the same of what comes at an anchor."""
        op = self.template.ops[time.anchor - 1] if time.anchor else None
        if isinstance(op, After):
            for term in op.terms:
                if isinstance(term, LaneEnd):
                    end = int(self.runs[term.lane][1][: term.position + 1].max())
                    yield end, _between(self.of_lane[term.lane], stream)
                else:
                    yield from self._exchanged(term, stream)
        elif op:
            yield from self._exchanged(time, stream)

    def _exchanged(self, time: Time, stream: int) -> Iterator[tuple[int, Edge]]:
        is_exchange = time.anchor and isinstance(self.template.ops[time.anchor - 1], Exchange)
        yield self._time(time), _between(self.of_exchange[time.anchor], stream) if is_exchange else Edge.LAUNCH

    def _time(self, time: Time) -> int:
        return int(self.anchors[time.anchor]) + time.fixed


def _between(source: int, stream: int) -> Edge:
    return Edge.STREAM if source == stream else Edge.BETWEEN_STREAMS


def _planned(job: JobPlan, rank: int, is_copy: bool) -> list[Start]:
    """Return the operations of the steps of a rank, in order."""
    template = [program.templates[job.layout.stage(rank)] for program in job._programs()]
    starts = []
    for at in range(1, job.steps + 1):
        anchors, stretch = job.timing.anchors[at, rank], job.conditions.stretch[at][rank]
        starts += [start for start in _Round(template[at], anchors, stretch).starts() if start.is_copy == is_copy]
    return sorted(starts, key=lambda start: start.time)


def _found(job: JobGraph, rank: int, is_copy: bool) -> Ints:
    """Return the kind of edge that each operation of the steps of a rank waits for, in order; -1: none."""
    points, edges = job.points, job.edges.every()
    after = points.time[edges.source] + edges.lag
    latest = np.full(len(points), np.iinfo(np.int64).min)
    np.maximum.at(latest, edges.target, after)
    binds, bound = np.full(len(points), -1), np.flatnonzero(after == latest[edges.target])
    binds[edges.target[bound]] = edges.kind[bound]
    begins = np.isin(points.kind, (Point.OPERATION, Point.ARRIVAL)) & ((points.part == COPIES) == is_copy)
    rows = np.flatnonzero((job.rank == rank) & (points.step >= 0) & begins)
    start = points.time[rows] - np.where(points.kind[rows] == Point.OPERATION, points.work[rows], 0)
    return binds[rows[np.argsort(start, kind="stable")]]


@pytest.mark.soak(30)
@pytest.mark.parametrize("layout", sized(["tensor and data", "pipeline"], list(LAYOUTS)))
def test_operations_wait_for_what_the_graph_says(layout: str, tmp_path: Path) -> None:
    """Of each kind of edge that binds, 95 of 100 are found, and 95 of 100 that are found are right."""
    counts: Counter[tuple[Edge | None, Edge | None]] = Counter()
    for seed in range(700, 700 + sized(1, 10)):
        options = JobOptions(tmp_path / str(seed), steps=sized(4, 8), plant="none", seed=seed, **LAYOUTS[layout])
        with rocpd.connect(simulate(options)) as session:
            job = read_job(session)
        for rank in range(options.ranks):
            for is_copy in (False, True):
                planned, found = _planned(plan(options), rank, is_copy), _found(job, rank, is_copy)
                for start, number in zip(planned, found.tolist(), strict=True):
                    edge = Edge(number) if number >= 0 else None
                    counts[edge if edge in start.waits else min(start.waits), edge] += 1
    for kind in (Edge.LAUNCH, Edge.STREAM, Edge.BETWEEN_STREAMS):
        either = [sum(count for both, count in counts.items() if both[side] is kind) for side in (0, 1)]
        assert counts[kind, kind] >= 0.95 * max(either), counts
