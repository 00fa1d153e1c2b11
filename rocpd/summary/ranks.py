"""Owns comparing ranks: totals and their balance, collectives, steps, and a table of rank × time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from rocpd.errors import RocpdError
from rocpd.federate.identify import Rank
from rocpd.summary.collectives import Collectives, Waiting, instance_rows
from rocpd.summary.intervals import Union, both, covered, length, union
from rocpd.summary.kinds import Classes
from rocpd.summary.ops import Names, Ops, read_ops
from rocpd.summary.reading import RANK, STATISTICS, Reading
from rocpd.summary.result import Field, Row, Summary, Table
from rocpd.summary.spread import Ints
from rocpd.summary.steps import Steps, is_step

_MEASURES = ("span_ns", "busy_ns", "compute_ns", "communication_ns", "copy_ns")

TABLES = {
    table.name: table
    for table in (
        Table(
            "ranks",
            "Totals of each rank. Sums of durations; busy is the union over each agent, added up over agents.",
            (
                RANK,
                Field("hostname", "", "host name"),
                Field("kernels", "", "dispatches"),
                Field("copies", "", "copies", True),
                Field("span_ns", "ns", "first start to last end of its operations", True),
                Field("busy_ns", "ns", "time with any operation"),
                Field("compute_ns", "ns", "sum of kernels other than communication"),
                Field("communication_ns", "ns", "sum of communication kernels, waiting included"),
                Field("copy_ns", "ns", "sum of copies", True),
                Field("compute_by_mean", "", "compute_ns by the mean of all ranks"),
            ),
        ),
        Table(
            "imbalance",
            "How evenly ranks are loaded: largest by mean, 1 when all are equal.",
            (
                Field("measure", "", "column of the table of ranks"),
                Field("mean_ns", "ns", "mean over ranks"),
                Field("min_ns", "ns", "smallest", True),
                Field("min_rank", "", "its rank"),
                Field("max_ns", "ns", "largest"),
                Field("max_rank", "", "its rank"),
                Field("imbalance", "", "largest by mean"),
            ),
        ),
        Table(
            "collectives",
            "Communication kernels matched across ranks by order and name; the costliest first.",
            (
                Field("name", "", "kernel"),
                Field("number", "", "which of this name, from 1", True),
                Field("ranks", "", "ranks that took part", True),
                Field("straggler", "", "rank that came last: the one with the least time in it"),
                Field("wait_ns", "ns", "waiting of all ranks together"),
                Field("max_wait_ns", "ns", "longest waiting of a rank"),
                Field("min_ns", "ns", "time of the straggler: what the collective itself takes", True),
                Field("max_ns", "ns", "time of the rank that came first"),
            ),
        ),
        Table(
            "stragglers",
            "Which ranks the others wait for.",
            (
                RANK,
                Field("collectives", "", "collectives that it took part in"),
                Field("times_last", "", "how often it came last"),
                Field("percent_last", "%", "share of its collectives"),
                Field("caused_wait_ns", "ns", "how long others waited for it, all together"),
                Field("own_wait_ns", "ns", "how long it waited for others"),
            ),
        ),
        Table(
            "waits",
            "Who waits for whom in collectives.",
            (
                Field("waiter", "", "rank that waits"),
                Field("late", "", "rank that came last"),
                Field("collectives", "", "in how many collectives"),
                Field("wait_ns", "ns", "how long in all"),
                Field("max_wait_ns", "ns", "how long at most"),
            ),
        ),
        Table(
            "steps",
            "Time of each step over all ranks, by marker; the longest first.",
            (
                Field("step", "", "text of the marker"),
                Field("number", "", "which of this text, from 1", True),
                Field("at_ns", "ns", "begin on the first rank that has it, from the begin of the time line"),
                Field("ranks", "", "ranks that have it", True),
                Field("mean_ns", "ns", "mean over ranks"),
                Field("min_ns", "ns", "shortest", True),
                Field("max_ns", "ns", "longest"),
                Field("spread_ns", "ns", "longest - shortest"),
                Field("slowest_rank", "", "rank of the longest"),
                Field("over_median", "", "mean_ns by the median of all steps"),
            ),
        ),
        Table(
            "phases",
            "Markers whose texts differ in numbers only (# stands for them), over all ranks.",
            (
                Field("phase", "", "text"),
                Field("ranks", "", "ranks that have it", True),
                *STATISTICS,
                Field("slowest_rank", "", "rank with most time in it"),
                Field("imbalance", "", "time of that rank by the mean of all"),
            ),
        ),
        Table(
            "heat",
            "Rank × time: what each rank does in each slice of the common time line.",
            (
                RANK,
                Field("at_ns", "ns", "begin of the slice, from the begin of the time line"),
                Field("slice_ns", "ns", "its length"),
                Field("busy_percent", "%", "time with any operation on any agent"),
                Field("compute_percent", "%", "time with compute"),
                Field("communication_percent", "%", "time with communication"),
            ),
        ),
    )
}


@dataclass
class _Found:
    """What is collected rank by rank."""

    names: Names
    classes: Classes
    steps: Steps
    collectives: Collectives = field(default_factory=Collectives)
    totals: list[Row] = field(default_factory=list)
    heat: list[Row] = field(default_factory=list)


def ranks(reading: Reading) -> Iterator[Summary]:
    """Compare ranks. Collectives and steps are left out, with a note, where the job has none.

    Raises:
        RocpdError: no operation and no marker.
    """
    names = Names()
    steps = Steps(is_step(reading.options.step_marker))
    found = _Found(names, Classes(reading.options.categories, names), steps)
    for rank in reading.ranks():
        _one(reading, rank, found)
    if not any(row[2] or row[3] for row in found.totals) and not steps.phases:
        raise RocpdError("no kernels, copies or markers in the selection")
    yield _table("ranks", _with_means(found.totals))
    yield _table("imbalance", list(_imbalance(found.totals)))
    yield from _collectives(reading, found)
    if steps.steps:
        yield _table("steps", steps.step_rows())
    else:
        reading.session.note("no step markers found; --step-marker REGEX says which markers are steps")
    if steps.phases:
        yield _table("phases", steps.phase_rows())
    if found.heat:
        yield _table("heat", found.heat)


def _table(name: str, rows: list[Row]) -> Summary:
    return Summary(TABLES[name], TABLES[name].fields, rows)


def _one(reading: Reading, rank: Rank, found: _Found) -> None:
    ops = read_ops(reading, rank, found.names)
    places = found.classes.split(ops)
    found.collectives.add(rank.number, ops, places["communication"])
    found.steps.add(reading, rank)
    sums = {kind: int(ops.duration[mine].sum()) for kind, mine in places.items()}
    span = int(ops.end.max() - ops.start.min()) if len(ops) else 0
    busy = sum(length(union(own.start, own.end)) for _, own in ops.agents())
    copies = len(places["copy"])
    times = (span, busy, sums["compute"], sums["communication"], sums["copy"])
    found.totals.append((rank.number, rank.hostname, len(ops) - copies, copies, *times))
    if len(ops):
        found.heat += _heat(reading, rank, ops, places)


def _with_means(totals: list[Row]) -> list[Row]:
    mean = sum(row[6] for row in totals) / len(totals)
    return [(*row, row[6] / mean if mean else None) for row in totals]


def _imbalance(totals: list[Row]) -> Iterator[Row]:
    for place, measure in enumerate(_MEASURES, 4):
        values = {row[0]: row[place] for row in totals}
        whole = sum(values.values())
        if whole:
            least = min(values, key=lambda rank: (values[rank], rank))
            most = max(values, key=lambda rank: (values[rank], -rank))
            mean = whole / len(values)
            even = values[most] * len(values) / whole
            yield measure, mean, values[least], least, values[most], most, even


def _collectives(reading: Reading, found: _Found) -> Iterator[Summary]:
    if not found.classes.communicates:
        reading.session.note("no communication kernels found")
        return
    if found.collectives.uneven():
        reading.session.note(
            f"collectives: {found.collectives.uneven()} kernels occur more often on some ranks; matched from the first"
        )
    waiting, instances = Waiting(), []
    for instance in found.collectives.instances(found.names):
        waiting.add(instance)
        instances.append(instance)
    if not instances:
        reading.session.note("no collective that two ranks took part in")
        return
    yield _table("collectives", instance_rows(instances))
    yield _table("stragglers", waiting.straggler_rows())
    yield _table("waits", waiting.pair_rows())


def _heat(reading: Reading, rank: Rank, ops: Ops, places: dict[str, Ints]) -> Iterator[Row]:
    begin, end = reading.line()
    width = max(1, -(-(end - begin) // reading.options.bins))
    edges = begin + np.arange(0, width * reading.options.bins + 1, width) - reading.offset(rank.number)
    parts = {kind: union(ops.start[mine], ops.end[mine]) for kind, mine in places.items()}
    compute, communication = parts["compute"], parts["communication"]
    busy = both(both(compute, communication), parts["copy"])
    shares = [_shares(part, edges, width) for part in (busy, compute, communication)]
    for index, values in enumerate(zip(*shares, strict=True)):
        yield (rank.number, begin + index * width, width, *values)


def _shares(part: Union, edges: Ints, width: int) -> list[float]:
    return [float(value) * 100 / width for value in np.diff(covered(part, edges))]
