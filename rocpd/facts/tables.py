"""What is derived of ranks as tables of SQL: each column with its unit and meaning. Derives nothing by itself.

Rows are those of the whole rank; windows and filters of the session choose among them: the time of agents is cut at the
edges of a window, operations and calls count as their rows do, and nothing is numbered or matched anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rocpd.base.types import NULL, Ints
from rocpd.facts.agent_time import CAUSES, AgentTime, read_agent_times, read_history
from rocpd.facts.columns import Names, grouped
from rocpd.facts.operations import OperationNames, Ops, kinds_of, link, read_ops, started
from rocpd.facts.places import SEPARATOR, read_origins, through_steps
from rocpd.facts.rank import By, Options, RankReading, RankWindow
from rocpd.facts.regions import nest_times, read_ranges, read_regions, read_steps
from rocpd.facts.timeline import HIDES_COMMUNICATION, HIDES_COPIES, KINDS, PARTS, divided
from rocpd.facts.units import RankTime, Times, steps_of_ranks, times_that_count, warm_steps, windows
from rocpd.federate.federation import Federation
from rocpd.federate.relation import RankRelation
from rocpd.federate.run.rank_reader import RankReader
from rocpd.schema.calculated import CalculatedColumn
from rocpd.schema.rules.kernel_categories import load
from rocpd.schema.rules.steps import STEP_MARKER, is_step

_HIDES = {
    0: None,
    HIDES_COMMUNICATION: KINDS[1],
    HIDES_COPIES: KINDS[2],
    HIDES_COMMUNICATION | HIDES_COPIES: f"{KINDS[1]}, {KINDS[2]}",
}


def _agent_time(reader: RankReader, seen: Mapping[int, RankWindow], active: Times, counted: Times) -> Sequence[Any]:
    """Return the columns of `agent_time` of one rank."""
    number = reader.rank.number
    reading = RankReading(reader.keeping(), Options(), seen.get(number, RankWindow()))
    names = OperationNames()
    ops = read_ops(reading, names)
    kinds, history = kinds_of(ops, load(None), names), read_history(reading)
    steps = through_steps(read_ranges(reading.reader).every, read_steps(reading.reader, is_step(STEP_MARKER)))
    columns: list[list[Any]] = [[] for _ in AGENT_TIME.columns]
    for whole in read_agent_times(reading, active.get(number), ops, kinds, causes=True):
        place, pieces = steps.course.divide(whole.pieces())
        spent = whole.cut(pieces)
        step = [steps.keys[code][0] for code in place.tolist()]
        at, pieces = divided(spent.pieces(), _edges(counted.get(number)))
        spent, step = spent.cut(pieces), [step[row] for row in pieces.of.tolist()]
        what = _what(spent, names, ops, history.names)
        parts = [PARTS[part] for part in spent.part.tolist()]
        causes = [None if cause < 0 else CAUSES[cause] for cause in spent.cause.tolist()]
        hides = [_HIDES[bits] for bits in spent.hides.tolist()]
        agent = [None if whole.agent == NULL else whole.agent] * len(parts)
        times = (spent.start.tolist(), spent.end.tolist(), spent.length.tolist())
        counts = (at == 0).astype(int).tolist() if number in counted else [1] * len(parts)
        for column, values in zip(columns, (agent, parts, causes, what, hides, step, counts, *times), strict=True):
            column += values
    return columns


def _edges(time: RankTime | None) -> Ints:
    return np.array([] if time is None else [time.start, time.end], np.int64)


def _what(spent: AgentTime, names: OperationNames, ops: Ops, regions: Names) -> list[str | None]:
    """Return the operation that has the time, or the call or marker of idle time."""
    return [
        names.texts[ops.name[row]] if row >= 0 else None if code == NULL else regions.texts[code]
        for row, code in zip(spent.operation.tolist(), spent.what.tolist(), strict=True)
    ]


def _prepare_agent_time(session: Federation) -> dict[str, Any]:
    active, counted = (times_that_count(session, Options(everything=everything)) for everything in (True, False))
    return {"seen": windows(session), "active": active, "counted": counted}


AGENT_TIME = RankRelation(
    "agent_time",
    "What every agent does at any time, in pieces that add up to its time: the active part of the job, or the window.\n"
    "`WHERE counts` has the time that `rocpd summary budget` and other tables count: steps without warm-up.",
    (
        CalculatedColumn("agent", "", "agent id in its rank"),
        CalculatedColumn("part", "", "compute; communication, and copies, while nothing else runs; idle"),
        CalculatedColumn("cause", "", "of idle time: what the host does, or where the agent stands"),
        CalculatedColumn(
            "what", "", "operation that has the time; of idle time the call, or marker of the host's work"
        ),
        CalculatedColumn("hides", "", "what also runs meanwhile: communication, copies"),
        CalculatedColumn("step", "", "number of the step that the rank is in; NULL outside of steps"),
        CalculatedColumn("counts", "", "1: in the steps without warm-up, or all time where there are none; else 0"),
        CalculatedColumn("start", "ns", "as recorded"),
        CalculatedColumn("end", "ns", "as recorded"),
        CalculatedColumn("duration", "ns", "its length"),
    ),
    _agent_time,
    _prepare_agent_time,
)


def _operations(reader: RankReader, seen: Mapping[int, RankWindow]) -> Sequence[Any]:
    """Return the columns of `operations` of one rank."""
    number = reader.rank.number
    reading = RankReading(reader.keeping(), Options(), seen.get(number, RankWindow()))
    names = OperationNames()
    ops = read_ops(reading, names, stacks=True)
    kinds = kinds_of(ops, load(None), names)
    exposed = np.zeros(len(ops), np.int64)
    for spent in read_agent_times(reading, None, ops, kinds):
        busy = spent.take(spent.operation >= 0)
        np.add.at(exposed, busy.operation, busy.length)
    links = link(reading.reader, ops)
    called, delay = np.full(len(ops), NULL), np.full(len(ops), NULL)
    called[links.linked] = links.call
    delay[links.linked] = np.maximum(started(reading, ops)[links.linked] - links.end, 0)
    by_step, by_marker = (read_origins(reading, by) for by in (By.STEP, By.MARKER))
    steps = [by_step.key(code)[0] for code in by_step.of_ops(ops).tolist()]
    markers = [by_marker.key(code)[0] for code in by_marker.of_ops(ops).tolist()]
    return [
        [KINDS[kind] for kind in kinds.tolist()],
        ops.row.tolist(),
        [names.texts[name] for name in ops.name.tolist()],
        *(_nulls(column) for column in (ops.agent, ops.stream)),
        steps,
        markers,
        *(_nulls(column) for column in (called, delay)),
        ops.start.tolist(),
        ops.end.tolist(),
        ops.duration.tolist(),
        exposed.tolist(),
        (ops.duration - exposed).tolist(),
    ]


def _nulls(column: Ints) -> list[int | None]:
    return [None if value == NULL else value for value in column.tolist()]


def _prepare_operations(session: Federation) -> dict[str, Any]:
    return {"seen": windows(session)}


OPERATIONS = RankRelation(
    "operations",
    "Kernels and copies with the call that launched them, the step and the marker ranges around it, and how much of\n"
    "their time nothing else has.",
    (
        CalculatedColumn("kind", "", "compute, communication or copy"),
        CalculatedColumn("id", "", "of the dispatch, or of the copy"),
        CalculatedColumn("name", "", "kernel, or direction of a copy"),
        CalculatedColumn("agent", "", "agent id in its rank"),
        CalculatedColumn("stream", "", "HIP stream id; NULL where it is unknown"),
        CalculatedColumn("step", "", "number of the step that launched it; NULL outside of steps"),
        CalculatedColumn("marker", "", f"path of ranges around the launch, joined by '{SEPARATOR}', # for numbers"),
        CalculatedColumn("call_id", "", "region that launched it; NULL where it is unknown"),
        CalculatedColumn("delay", "ns", "from the return of that call to its start; 0 where it started before"),
        CalculatedColumn("start", "ns", "as recorded"),
        CalculatedColumn("end", "ns", "as recorded"),
        CalculatedColumn("duration", "ns", "its length"),
        CalculatedColumn("exposed", "ns", "time of its agent that it has: nothing before it in order runs"),
        CalculatedColumn("hidden", "ns", "the rest: compute, or what started before, has it"),
    ),
    _operations,
    _prepare_operations,
)


def _launches(reader: RankReader, seen: Mapping[int, RankWindow]) -> Sequence[Any]:
    """Return the columns of `launches` of one rank: a row for each call that launched operations that count."""
    reading = RankReading(reader.keeping(), Options(), seen.get(reader.rank.number, RankWindow()))
    ops = read_ops(reading, OperationNames(), stacks=True)
    links = link(reading.reader, ops)
    start, end = started(reading, ops)[links.linked], ops.end[links.linked]
    rows: list[tuple[Any, ...]] = []
    for (call,), of in grouped([links.call]):
        called, returned, first = int(links.start[of[0]]), int(links.end[of[0]]), int(start[of].min())
        work = int(ops.duration[links.linked[of]].sum())
        last = int(end[of].max())
        rows.append((call, called, returned, returned - called, len(of), first, max(first - returned, 0), last, work))
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in LAUNCHES.columns]


LAUNCHES = RankRelation(
    "launches",
    "Calls that launched operations, and when these ran.",
    (
        CalculatedColumn("call_id", "", "region"),
        CalculatedColumn("start", "ns", "when it was called, as recorded"),
        CalculatedColumn("end", "ns", "when it returned"),
        CalculatedColumn("duration", "ns", "how long it took"),
        CalculatedColumn("operations", "", "how many it launched, of those that count"),
        CalculatedColumn("started", "ns", "start of the first of them"),
        CalculatedColumn("delay", "ns", "from its return to that start; 0 where it started before"),
        CalculatedColumn("ended", "ns", "end of the last of them"),
        CalculatedColumn("gpu_time", "ns", "sum of their durations"),
    ),
    _launches,
    _prepare_operations,
)


def _nested_calls(reader: RankReader) -> Sequence[Any]:
    """Return the columns of `nested_calls` of one rank."""
    reading = RankReading(reader.keeping(), Options())
    regions, names = read_regions(reading)
    nesting = nest_times(regions.start, regions.end, regions.thread)
    parents = np.array([nesting.parents.get(row, -1) for row in range(len(regions.start))], np.int64)
    length = regions.end - regions.start
    inside = np.zeros(len(length), np.int64)
    np.add.at(inside, parents[parents >= 0], length[parents >= 0])
    depth = np.zeros(len(length), np.int64)
    for row in np.argsort(regions.start, kind="stable").tolist():
        depth[row] = depth[parents[row]] + 1 if parents[row] >= 0 else 0
    steps = through_steps(read_ranges(reading.reader).every, read_steps(reading.reader, is_step(STEP_MARKER)))
    parent_ids = np.where(parents >= 0, regions.id[np.maximum(parents, 0)], NULL) if len(parents) else parents
    return [
        regions.id.tolist(),
        _nulls(parent_ids),
        depth.tolist(),
        _nulls(regions.thread),
        [names.texts[name] for name in regions.name.tolist()],
        [names.texts[category] for category in regions.category.tolist()],
        [key[0] for key in steps.at(regions.start)],
        regions.start.tolist(),
        regions.end.tolist(),
        length.tolist(),
        (length - inside).tolist(),
    ]


NESTED_CALLS = RankRelation(
    "nested_calls",
    "Calls and marker ranges, each with the one that it runs in and the time outside of those inside it.",
    (
        CalculatedColumn("call_id", "", "region"),
        CalculatedColumn("parent_id", "", "region of its thread that it lies in; NULL at the top"),
        CalculatedColumn("depth", "", "how many regions are around it"),
        CalculatedColumn("thread", "", "thread id; NULL where it is unknown"),
        CalculatedColumn("name", "", "function, or message of a marker"),
        CalculatedColumn("category", "", "event category"),
        CalculatedColumn("step", "", "number of the step that the rank is in when it starts; NULL outside of steps"),
        CalculatedColumn("start", "ns", "as recorded"),
        CalculatedColumn("end", "ns", "as recorded"),
        CalculatedColumn("duration", "ns", "its length"),
        CalculatedColumn("exclusive", "ns", "its length without the regions that lie in it"),
    ),
    _nested_calls,
)


def _rank_steps(reader: RankReader, warm: frozenset[int]) -> Sequence[Any]:
    """Return the columns of `rank_steps` of one rank: steps that lie in a window in part at least."""
    ranges = read_ranges(reader)
    steps = [each for each in read_steps(reader, is_step(STEP_MARKER)) if each.row in ranges.counted]
    times = [ranges.counted[each.row] for each in steps]
    return [
        [each.number for each in steps],
        [ranges.every[each.row].text for each in steps],
        [ranges.every[each.row].thread for each in steps],
        [int(each.number in warm) for each in steps],
        [start for start, _ in times],
        [end for _, end in times],
        [end - start for start, end in times],
    ]


def _prepare_rank_steps(session: Federation) -> dict[str, Any]:
    every = steps_of_ranks(session, STEP_MARKER)
    return {"warm": warm_steps([every[rank.number] for rank in session.ranks])}


RANK_STEPS = RankRelation(
    "rank_steps",
    "Steps of each rank, by its markers.",
    (
        CalculatedColumn("step", "", "number of the step in the job; NULL of another kind than most"),
        CalculatedColumn("marker", "", "text"),
        CalculatedColumn("thread", "", "thread id"),
        CalculatedColumn("is_warm_up", "", "1: warm-up, the same steps on all ranks; else 0"),
        CalculatedColumn("start", "ns", "as recorded"),
        CalculatedColumn("end", "ns", "as recorded"),
        CalculatedColumn("duration", "ns", "its length"),
    ),
    _rank_steps,
    _prepare_rank_steps,
)
