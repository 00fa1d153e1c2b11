"""Owns filling the file of one rank: identity, setup, steps in order, teardown. Never looks at other ranks."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rocpd.schema.trace.writer import TraceWriter
from rocpd.schema.write import Writer, create
from rocpd.simulator import faults, layout
from rocpd.simulator.columns import TemplateColumns
from rocpd.simulator.identity import identity_of, open_trace
from rocpd.simulator.job_plan import JobPlan, RankPlan
from rocpd.simulator.stamp import Stamp, StepBatch
from rocpd.simulator.symbols import write_symbols
from rocpd.simulator.template import Template
from rocpd.types import Ints


def write_rank(path: Path, job: JobPlan, rank: RankPlan) -> None:
    """Write the file of one rank under `path`, complete or not at all.

    Raises:
        OutputError: the file exists (unless the options say force) or cannot be written.
    """
    with create(path, rank.guid, rank.version, job.options.force) as file:
        if job.options.faults:
            faults.loosen(file)
        _fill(file, job, rank)
        if job.options.faults:
            faults.damage(file)


def _fill(file: Writer, job: JobPlan, rank: RankPlan) -> None:
    trace = open_trace(file, job, rank)
    write_symbols(trace, identity_of(rank))
    if rank.empty:
        return
    stamp = Stamp(trace, job.nodes[rank.node], np.random.default_rng([job.options.seed, 2, rank.number]))
    profile = job.options.profile
    _once(stamp, _columns(layout.setup(profile), trace, job, rank), rank.start_ns + 4_000_000)
    steps = [_columns(layout.step(profile, special), trace, job, rank) for special in (False, True)]
    _steps(stamp, steps, job, rank)
    _once(stamp, _columns(layout.teardown(profile), trace, job, rank), int(job.timing.end[rank.number]))


def _columns(template: Template, trace: TraceWriter, job: JobPlan, rank: RankPlan) -> TemplateColumns:
    words = {"{ranks}": str(job.options.ranks), "{rank}": str(rank.number)}
    return TemplateColumns(template, trace, identity_of(rank), words)


def _once(stamp: Stamp, columns: TemplateColumns, at: int) -> None:
    anchors: Ints = np.array([[at, at, at]], dtype=np.int64)
    stamp.write(columns, StepBatch((0,), anchors, np.ones((1, 1))))


def _steps(stamp: Stamp, columns: list[TemplateColumns], job: JobPlan, rank: RankPlan) -> None:
    """Write the steps in order: ids must ascend for SQLite to append rather than search."""
    anchors, stretch = job.timing.anchors[:, rank.number], job.timing.stretch[:, rank.number]
    for first in range(0, job.steps, layout.SPECIAL_EVERY):
        last = min(first + layout.SPECIAL_EVERY, job.steps)
        for special, part in ((True, range(first, first + 1)), (False, range(first + 1, last))):
            if part:
                chosen = slice(part.start, part.stop)
                stamp.write(columns[special], StepBatch(part, anchors[chosen], stretch[chosen]))
