"""What a step consists of: compute, exposed communication, exposed copies and idle time add up to it exactly.

Steps are those of `steady`: without warm-up, each rank's from its first to its last. Without steps it is the time from
the first to the last operation of each agent; in a window it is the window. `--all` counts the whole trace. Where steps
or markers divide, time goes where the rank is at that time (`course`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from rocpd.errors import RocpdError
from rocpd.frozen import frozen
from rocpd.read.groups import grouped
from rocpd.summary.course import Course, course_of
from rocpd.summary.findings import Confidence, Finding, Verdict
from rocpd.summary.intervals import covered, unite
from rocpd.summary.ops import OperationNames, Ops, all_lanes, has_its_time, read_ops, split
from rocpd.summary.options import By
from rocpd.summary.reading import Base, Key, RankReading, Reading, order_of
from rocpd.summary.result import Field, Summary, TableDefinition
from rocpd.summary.steady import SteadyPart, some_without_steps, steady_default
from rocpd.summary.sums import Total, merge
from rocpd.trace.kernel_categories import Categories, load
from rocpd.trace.steps import is_step
from rocpd.types import Ints, Row

EXPOSED_COMMUNICATION = "exposed communication"
EXPOSED_COPIES = "exposed copies"
_HIDDEN, _COSTS = 5.0, 5.0  # percent of communication, and of the time: less overlaps not at all; more costs something

PARTS = ("compute", EXPOSED_COMMUNICATION, EXPOSED_COPIES, "idle")

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
        chart="rocpd.summary.plots:budget",
    )
}


@frozen
class _Times(Total):
    """Times of agents [ns]; `all_communication`: hidden or not."""

    compute: int = 0
    communication: int = 0
    copy: int = 0
    span: int = 0
    all_communication: int = 0

    def parts(self) -> tuple[int, ...]:
        """Return the times of `PARTS` [ns]."""
        busy = self.compute + self.communication + self.copy
        return self.compute, self.communication, self.copy, self.span - busy


@frozen
class _Sum(Total):
    """Times of all agents, and of those that go through steps; `agent_steps`: how many steps these go through."""

    every: _Times
    in_steps: _Times
    agent_steps: int


class _Rank(NamedTuple):
    """What one rank adds, and its steady part."""

    sums: dict[Key, _Sum]
    steady: SteadyPart | None


def budget(reading: Reading) -> Iterator[Summary]:
    """Return the parts of a step.

    Raises:
        RocpdError: no operations.
    """
    sums: dict[Key, _Sum] = {}
    categories, step = load(reading.options.categories), is_step(reading.options.step_marker)
    steady: list[SteadyPart | None] = []
    for _, of_rank in reading.each(partial(_of_rank, categories=categories, step=step)):
        merge(sums, of_rank.sums)
        steady += [of_rank.steady] if of_rank.sums else []
    if not sums:
        raise RocpdError("no kernels or copies in the selection")
    rows = (row for key in sorted(sums, key=order_of) for row in _rows(key, sums[key]))
    yield reading.summary(TABLES["budget"], rows, findings=[*_unmarked(steady), *_overlap(sums.values())])


def _unmarked(steady: Sequence[SteadyPart | None]) -> Iterator[Finding]:
    if text := some_without_steps(steady):
        evidence = {"ranks": steady.count(None)}
        yield Finding(text, "step.unmarked", Verdict.NOTE, Confidence.CERTAIN, evidence=evidence)


def _overlap(sums: Iterable[_Sum]) -> Iterator[Finding]:
    """Yield that compute hides no communication, where that costs time."""
    times = sum((each.every for each in sums), _Times())
    exposed, total, span = times.communication, times.all_communication, times.span
    hidden = (total - exposed) * 100 / total if total else 100.0
    if span and hidden < _HIDDEN and exposed * 100 / span >= _COSTS:
        share = exposed * 100 / span
        hides = f"compute hides {hidden:.1f} % of it"
        text = f"communication does not overlap: {hides}, and it takes {share:.0f} % of the time"
        evidence = {"hidden_percent": hidden, "exposed_percent": share}
        yield Finding(text, "comm.overlap", Verdict.PROBLEM, Confidence.CERTAIN, evidence=evidence)


def _of_rank(reading: RankReading, categories: Categories, step: re.Pattern[str]) -> _Rank:
    names = OperationNames()
    ops = read_ops(reading, names)
    steady = steady_default(reading, step)
    base = (steady.start, steady.end) if steady else reading.window.base
    sums: dict[Key, _Sum] = {}
    has_time = has_its_time(reading.reader)
    for agent, _, ran in all_lanes(reading, ops):
        if not len(ran) and not has_time(agent):
            continue
        course = course_of(reading, agent)
        steps = 1 if reading.options.by is By.STEP else steady.steps if steady else 0
        for key, times in _times(ran, split(ran, categories, names), base if has_time(agent) else None, course):
            count = steps if has_time(agent) and key != (None,) else 0
            merge(sums, {key: _Sum(times, times if count else _Times(), count)})
    return _Rank(sums, steady)


def _times(ops: Ops, kinds: Mapping[str, Ints], base: Base | None, course: Course) -> Iterator[tuple[Key, _Times]]:
    """Yield where a rank was, and the times of one agent there.

    Args:
        ops: what the agent did.
        kinds: kind -> numbers of the operations of this kind.
        base: between which times [ns]; None: from its first to its last operation.
        course: where the rank was.
    """
    compute, communication, copy = (ops.union(kinds[kind]) for kind in ("compute", "communication", "copy"))
    working = unite(compute, communication)
    low, high = base or (int(ops.start.min()), int(ops.end.max()))
    pieces, busy = course.between(low, high), unite(working, copy)
    inside = [
        covered(part, pieces.end) - covered(part, pieces.start) for part in (compute, working, busy, communication)
    ]
    for (place,), rows in grouped([pieces.place]):
        computes, works, does, talks = (int(time[rows].sum()) for time in inside)
        span = int((pieces.end - pieces.start)[rows].sum())
        yield course.keys[place], _Times(computes, works - computes, does - works, span, talks)


def _rows(key: Key, s: _Sum) -> Iterator[Row]:
    for part, time, in_steps in zip(PARTS, s.every.parts(), s.in_steps.parts(), strict=True):
        share = time * 100 / s.every.span if s.every.span else None
        yield (*key, part, time, in_steps / s.agent_steps if s.agent_steps else None, share)
