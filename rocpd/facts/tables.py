"""SQL tables of facts of ranks: each column with its unit and meaning. Derives nothing itself.

Rows are those of the whole rank; windows and filters of the session choose among them: the time of agents is cut at the
edges of a window, operations and calls count if their rows do, and nothing is numbered or matched anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rocpd.base import NULL, Ints, Row
from rocpd.facts.agent_time import CAUSES, CAUSES_SAID, AgentTime, read_agent_times, read_history, taken_from
from rocpd.facts.columns import Names, grouped
from rocpd.facts.communication.collectives import Group, listed
from rocpd.facts.communication.members import CLASSES, Collectives, collectives_of, moved_by, read_collectives
from rocpd.facts.memory import changes, read_allocations, read_callers
from rocpd.facts.operations import OperationNames, Ops, kinds_of, link, read_ops, started
from rocpd.facts.places import SEPARATOR, read_origins, through_steps
from rocpd.facts.rank import By, Options, RankReading, RankWindow
from rocpd.facts.regions import depths, nest_times, own_times, read_ranges, read_regions, read_steps
from rocpd.facts.timeline import ALWAYS, FOREVER, HIDES_COMMUNICATION, HIDES_COPIES, KINDS, PARTS, inside
from rocpd.facts.units import (
    Taken,
    Times,
    had_by_others,
    steps_of_ranks,
    times_that_count,
    warm_steps,
    windows,
)
from rocpd.federate.federation import Federation
from rocpd.federate.relation import Given, JobRelation, RankRelation
from rocpd.federate.run.rank_reader import RankReader
from rocpd.schema.calculated import CalculatedColumn, CalculatedTable
from rocpd.schema.rules.kernel_categories import load
from rocpd.schema.rules.steps import STEP_MARKER, is_step

_HIDES = {
    0: None,
    HIDES_COMMUNICATION: KINDS[1],
    HIDES_COPIES: KINDS[2],
    HIDES_COMMUNICATION | HIDES_COPIES: f"{KINDS[1]}, {KINDS[2]}",
}


def _agent_time(
    reader: RankReader, seen: Mapping[int, RankWindow], active: Times, counted: Times, taken: Mapping[int, Taken]
) -> Sequence[Any]:
    """Return the columns of `agent_time` of one rank."""
    number = reader.rank.number
    reading = RankReading.of(reader, seen)
    names = OperationNames()
    ops = read_ops(reading, names)
    kinds, history = kinds_of(ops, load(None), names), read_history(reading)
    steps = through_steps(reading.reader, is_step(STEP_MARKER))
    columns: list[list[Any]] = [[] for _ in AGENT_TIME.columns]
    time = counted.get(number)
    counting = (np.array([time.start]), np.array([time.end])) if time else (np.array([ALWAYS]), np.array([FOREVER]))
    for whole in read_agent_times(reading, active.get(number), ops, kinds, causes=True):
        place, pieces = steps.course.divide(whole.pieces())
        spent = whole.cut(pieces)
        counts, pieces = inside(spent.pieces(), counting)
        spent, place = spent.cut(pieces), place[pieces.of]
        is_taken, pieces = inside(spent.pieces(), had_by_others(taken.get(number, ()), whole.agent))
        spent, place, counts = spent.cut(pieces), place[pieces.of], counts[pieces.of]
        values = (
            [None if whole.agent == NULL else whole.agent] * len(place),
            [PARTS[part] for part in spent.part.tolist()],
            [None if cause < 0 else CAUSES[cause] for cause in spent.cause.tolist()],
            _what(spent, names, ops, history.names),
            [_HIDES[bits] for bits in spent.hides.tolist()],
            [steps.keys[code][0] for code in place.tolist()],
            *(column.tolist() for column in (counts.astype(int), spent.start, spent.end, spent.length)),
            is_taken.astype(int).tolist(),
        )
        for column, more in zip(columns, values, strict=True):
            column += more
    return columns


def _what(spent: AgentTime, names: OperationNames, ops: Ops, regions: Names) -> list[str | None]:
    """Return the name of the operation that has the time, or of the call or marker of idle time."""
    return [
        names.texts[ops.name[row]] if row >= 0 else None if code == NULL else regions.texts[code]
        for row, code in zip(spent.operation.tolist(), spent.what.tolist(), strict=True)
    ]


def _prepare_agent_time(session: Federation) -> dict[str, Any]:
    active, counted = (times_that_count(session, Options(everything=everything)) for everything in (True, False))
    return {"seen": windows(session), "active": active, "counted": counted, "taken": taken_from(session, Options())}


AGENT_TIME = RankRelation(
    "agent_time",
    "What every agent does at any time, in pieces that add up to its time: the active part of the job, or the window.\n"
    "`WHERE counts` has the time that `rocpd summary budget --by agent` and others count, steps without warm-up; and\n"
    "`AND NOT taken` that of the whole job, in which the time of a GPU counts once, however many processes use it.",
    (
        CalculatedColumn("agent", "", "agent id in its rank"),
        CalculatedColumn("part", "", "compute; communication, and copies, while nothing else runs; idle"),
        CalculatedColumn("cause", "", f"of idle time: {CAUSES_SAID}"),
        CalculatedColumn(
            "what", "", "operation that has the time; of idle time the call, or marker of the host's work"
        ),
        CalculatedColumn("hides", "", "what also runs meanwhile: communication, copies"),
        CalculatedColumn("step", "", "number of the step that the rank is in; NULL outside of steps"),
        CalculatedColumn("counts", "", "1: in the steps without warm-up, or all time where there are none; else 0"),
        CalculatedColumn("start", "ns", "as recorded"),
        CalculatedColumn("end", "ns", "as recorded"),
        CalculatedColumn("duration", "ns", "its length"),
        CalculatedColumn("taken", "", "1: another process that uses the same GPU has it then; else 0"),
    ),
    _agent_time,
    _prepare_agent_time,
)


def _operations(reader: RankReader, seen: Mapping[int, RankWindow]) -> Sequence[Any]:
    """Return the columns of `operations` of one rank."""
    reading = RankReading.of(reader, seen)
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
    """Return the columns of `launches` of one rank: a row for each call that launched counted operations."""
    reading = RankReading.of(reader, seen)
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
    reading = RankReading.of(reader, {})
    regions, names = read_regions(reading)
    around = nest_times(regions.start, regions.end, regions.thread).around
    steps = through_steps(reading.reader, is_step(STEP_MARKER))
    parent_ids = np.where(around >= 0, regions.id[around], NULL)
    return [
        regions.id.tolist(),
        _nulls(parent_ids),
        depths(around).tolist(),
        _nulls(regions.thread),
        [names.texts[name] for name in regions.name.tolist()],
        [names.texts[category] for category in regions.category.tolist()],
        [key[0] for key in steps.at(regions.start)],
        regions.start.tolist(),
        regions.end.tolist(),
        (regions.end - regions.start).tolist(),
        own_times(regions.start, regions.end, around).tolist(),
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
    """Return the columns of `rank_steps` of one rank: steps that lie at least partly in the window."""
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
    steps = steps_of_ranks(session, STEP_MARKER)
    return {"warm": warm_steps([steps[rank.number] for rank in session.ranks])}


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


_LARGEST = (1 << 63) - 1  # of SQLite's integers: damaged sizes can add up to more


def _memory_use(reader: RankReader, seen: Mapping[int, RankWindow]) -> Sequence[Any]:
    """Return the columns of `memory_use` of one rank."""
    reading = RankReading.of(reader, seen)
    allocations = read_allocations(reading)
    callers, change = read_callers(reading, allocations), changes(allocations)
    counts = allocations.passes[change.of] & allocations.in_window[change.by]
    of, by = change.of[counts], change.by[counts]
    steps = through_steps(reading.reader, is_step(STEP_MARKER))
    what = np.where(of == by, 0, np.where(allocations.allocates[by], 1, 2))
    return [
        [_CHANGES[code] for code in what.tolist()],
        allocations.row[by].tolist(),
        allocations.row[of].tolist(),
        _nulls(allocations.agent[of]),
        [allocations.names.texts[level] for level in allocations.level[of].tolist()],
        _nulls(callers.row[by]),
        *([None if name == NULL else callers.names.texts[name] for name in each[by].tolist()] for each in callers.what),
        [key[0] for key in steps.at(allocations.start[by])],
        allocations.start[by].tolist(),
        change.bytes[counts].tolist(),
        [min(held, _LARGEST) for held in change.held[counts].tolist()],
        [None if end < 0 else int(allocations.start[end]) for end in allocations.ended_by[of].tolist()],
    ]


_CHANGES = ("allocated", "given out again", "freed")

MEMORY_USE = RankRelation(
    "memory_use",
    "Memory as it is allocated and freed, in order of time: by whom, and what its agent holds from then on. A free of\n"
    "memory whose allocation is not recorded changes nothing known and has no row.",
    (
        CalculatedColumn("change", "", "allocated; freed; given out again: its address was, and nothing freed it"),
        CalculatedColumn("id", "", "row of `rocpd_memory_allocate` that changes it"),
        CalculatedColumn("allocation_id", "", "row that allocated it"),
        CalculatedColumn("agent", "", "agent id in its rank, of the allocation"),
        CalculatedColumn("level", "", "REAL, VIRTUAL or SCRATCH"),
        CalculatedColumn("call_id", "", "region that changes it; NULL where it is unknown"),
        CalculatedColumn("call", "", "its function"),
        CalculatedColumn("marker", "", "innermost marker around the call"),
        CalculatedColumn("step", "", "number of the step that the rank is in; NULL outside of steps"),
        CalculatedColumn("start", "ns", "as recorded"),
        CalculatedColumn("bytes", "bytes", "more that is held; below zero: less"),
        CalculatedColumn("held", "bytes", "what the agent holds of this level from then on"),
        CalculatedColumn("until", "ns", "when the memory is freed, or given out again; NULL: never"),
    ),
    _memory_use,
    _prepare_operations,
)


def _of_job(name: str, doc: str, columns: Sequence[CalculatedColumn]) -> CalculatedTable:
    return CalculatedTable(name, doc, (*_OF_COLLECTIVE, *columns), is_large=True)


_OF_COLLECTIVE = (
    CalculatedColumn("collective", "", "number of the collective in the job"),
    CalculatedColumn("name", "", "kernel"),
    CalculatedColumn("number", "", "which of this name in its group, from 1"),
    CalculatedColumn("ranks", "", "those that belong together"),
)


def _collectives(session: Federation) -> Iterator[tuple[Group, bool, Collectives, list[Row]]]:
    """Yield collectives of the job, some of a group at a time: the group, whether it is whole, the collectives, and for
    each collective the columns that both tables begin with."""
    groups, clocks = read_collectives(session.in_rows)
    seen = 0
    for group in groups:
        ranks = listed(sorted({member.rank for member in group}))
        for part in collectives_of(group, clocks):
            numbers = enumerate(part.numbers.tolist(), seen + 1)
            yield (
                group,
                clocks.is_whole(group),
                part,
                [(count, group[0].shown, number + 1, ranks) for count, number in numbers],
            )
            seen += len(part.numbers)


def _collective_members(session: Federation, given: Given) -> Iterator[Row]:
    del given
    for group, is_whole, part, fronts in _collectives(session):
        when, moved = part.arrivals, [(operation, size) for operation, size, _ in moved_by(group, part.numbers)]
        classes = when.classes(is_whole).tolist()
        after = when.came - when.came.min(0)
        transferring = np.maximum(when.times - when.waits, 0)
        times = (after, when.waits, transferring, when.times, (when.shares > 0).astype(int), part.counted.astype(int))
        for member, *columns in zip(group, *times, strict=True):
            agent = None if member.agent == NULL else member.agent
            kernels = (column[part.numbers].tolist() for column in (member.rows, member.start, member.end))
            each = zip(fronts, *kernels, *(column.tolist() for column in columns), moved, classes, strict=True)
            for front, *rest, what, code in each:
                yield (*front, member.rank, agent, *rest, *what, CLASSES[code])


COLLECTIVE_MEMBERS = JobRelation(
    _of_job(
        "collective_members",
        "Collectives of the whole job, a row for each rank that takes part: when it came, and how long it waited.",
        (
            CalculatedColumn("rank", "", "rank number"),
            CalculatedColumn("agent", "", "agent id in its rank"),
            CalculatedColumn("id", "", "dispatch of its kernel, as in `operations`"),
            CalculatedColumn("start", "ns", "of its kernel, as recorded"),
            CalculatedColumn("end", "ns", "of its kernel, as recorded"),
            CalculatedColumn("arrival", "ns", "how long after the first member it came"),
            CalculatedColumn("wait", "ns", "how long it waited for the last one"),
            CalculatedColumn("transfer", "ns", "the rest of its time in the collective"),
            CalculatedColumn("duration", "ns", "its time in the collective"),
            CalculatedColumn("is_last", "", "1: it came last, or as late as the last but for noise; else 0"),
            CalculatedColumn("counts", "", "1: its own kernel is in the window and passes the filters; else 0"),
            CalculatedColumn("operation", "", "all-reduce …; NULL where calls of RCCL don't say it"),
            CalculatedColumn("bytes", "bytes", "size of the collective; NULL where calls of RCCL don't say it"),
            CalculatedColumn("class", "", "what the time of the collective went into"),
        ),
    ),
    _collective_members,
)


def _collective_waits(session: Federation, given: Given) -> Iterator[Row]:
    del given
    for group, _, part, fronts in _collectives(session):
        late = part.arrivals.shares > 0
        waits = np.where(late, 0, part.arrivals.waits)
        for column in np.flatnonzero(late.any(0) & (waits > 0).any(0)).tolist():
            last = np.flatnonzero(late[:, column]).tolist()
            for row in np.flatnonzero(waits[:, column]).tolist():
                share, rest = divmod(int(waits[row, column]), len(last))
                for place, cause in enumerate(last):
                    pair = group[row].rank, group[cause].rank
                    yield (*fronts[column], *pair, share + (place < rest))


COLLECTIVE_WAITS = JobRelation(
    _of_job(
        "collective_waits",
        "Who waits for whom in each collective; those who come last together share the waiting of others.",
        (
            CalculatedColumn("rank", "", "rank that waits"),
            CalculatedColumn("late_rank", "", "rank that it waits for"),
            CalculatedColumn("wait", "ns", "how long"),
        ),
    ),
    _collective_waits,
)
