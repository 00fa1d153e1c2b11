"""What a step consists of: compute, exposed communication, exposed copies and idle time add up to it exactly.

Steps are those of `steady`: without warm-up, each rank's from its first to its last. Without steps it is the time from
the first to the last operation of each agent; in a window it is the window. `--all` counts the whole trace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import numpy as np

from rocpd.errors import RocpdError
from rocpd.frozen import frozen
from rocpd.summary.intervals import length, unite
from rocpd.summary.ops import OperationNames, Ops, read_ops, split
from rocpd.summary.options import By
from rocpd.summary.reading import Key, RankReading, Reading, key_of, order_of
from rocpd.summary.result import Field, Summary, TableDefinition
from rocpd.summary.steady import steady_default
from rocpd.summary.sums import Total, merge
from rocpd.trace.kernel_categories import Categories, load
from rocpd.trace.steps import is_step
from rocpd.types import Row

EXPOSED_COMMUNICATION = "exposed communication"
PARTS = ("compute", EXPOSED_COMMUNICATION, "exposed copies", "idle")

TABLES = {
    "budget": TableDefinition(
        "budget",
        "What the time of agents consists of: the parts add up. Per step where steps are marked.",
        (
            Field("part", "", "compute; communication, and copies, while nothing else runs; idle", has_colour=True),
            Field("time_ns", "ns", "of all agents together"),
            Field("per_step_ns", "ns", "of one agent in one step; NULL without steps"),
            Field("percent", "%", "share of the time of the agents", is_share=True),
        ),
    )
}


@frozen
class _Sum(Total):
    """Times of agents [ns]; `agent_steps`: steps that they went through, all together."""

    compute: int
    communication: int
    copy: int
    span: int
    agent_steps: int

    def parts(self) -> tuple[int, ...]:
        """Return the times of `PARTS` [ns]."""
        busy = self.compute + self.communication + self.copy
        return self.compute, self.communication, self.copy, self.span - busy


def budget(reading: Reading) -> Iterator[Summary]:
    """Return the parts of a step.

    Raises:
        RocpdError: no operations.
    """
    sums: dict[Key, _Sum] = {}
    categories, step = load(reading.options.categories), is_step(reading.options.step_marker)
    for _, sums_of_rank in reading.each(partial(_of_rank, categories=categories, step=step)):
        merge(sums, sums_of_rank)
    if not sums:
        raise RocpdError("no kernels or copies in the selection")
    rows = (row for key in sorted(sums, key=order_of) for row in _rows(key, sums[key]))
    yield reading.summary(TABLES["budget"], rows)


def _of_rank(reading: RankReading, categories: Categories, step: re.Pattern[str]) -> dict[Key, _Sum]:
    names = OperationNames()
    ops = read_ops(reading, names)
    steady = steady_default(reading, step)
    base = (steady.start, steady.end) if steady else reading.window.base
    sums: dict[Key, _Sum] = {}
    for agent, ran in ops.lanes(By.AGENT):
        key = key_of(reading.options.by, reading.rank, agent)
        merge(sums, {key: _sum(ran, categories, names, base, steady.steps if steady else 0)})
    return sums


def _sum(ops: Ops, categories: Categories, names: OperationNames, base: tuple[int, int] | None, steps: int) -> _Sum:
    """Return the budget of one agent between two times [ns], None: from its first to its last operation."""
    low, high = base or (int(ops.start.min()), int(ops.end.max()))
    inside = np.flatnonzero((ops.end > low) & (ops.start < high))
    ran = ops.take(inside).cut(low, high)
    kinds = split(ran, categories, names)
    compute, communication, copy = (ran.union(kinds[kind]) for kind in ("compute", "communication", "copy"))
    working = unite(compute, communication)
    busy = length(unite(working, copy))
    return _Sum(length(compute), length(working) - length(compute), busy - length(working), high - low, steps)


def _rows(key: Key, s: _Sum) -> Iterator[Row]:
    for part, time in zip(PARTS, s.parts(), strict=True):
        share = time * 100 / s.span if s.span else None
        yield (*key, part, time, time / s.agent_steps if s.agent_steps else None, share)
