"""The variation of the time of one kernel, alone or in the context of the operations before it.

Excess is the time above the fastest instance: sum - calls · shortest. The context of an operation is the n operations
that started before it on the same agent; the first ones of an agent have a shorter context, none is dropped. The gap
before an operation is the time from the latest end of all before it on the agent, 0 while one still runs.

Measures the distance of a duration from others of its kind: by the mean, and by the median, which outliers do not move.

The z-score is the distance from the mean in standard deviations (of the whole, n). The median score is the distance
from the median divided by 1.4826 times the median of all such distances, the deviation of a normal distribution.

Also compares the same instance of a kernel between GPUs: the n-th run of each name on every agent of the job. Agents
that run other work have other instances, so this is for ranks that do the same. Durations need no common clock.

Also RAPTOR's tables, under its column names: kernels after the same others, categories with idle time, variability.
They differ where RAPTOR's numbers are wrong: the first operations of a GPU count, contexts end at the edge of a GPU,
all operations end a gap, gaps are separate, and Var_us is the time above the fastest instance per call.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from rocpd.base import Floats, Ints, Row, by_key, frozen
from rocpd.facts.columns import Names, grouped
from rocpd.facts.operations import COPY, KERNEL, OperationNames, read_ops
from rocpd.facts.rank import By, Key, RankReading
from rocpd.facts.spread import Spread
from rocpd.federate.run.rank_reader import Fact
from rocpd.federate.select.align import Shift
from rocpd.schema.rules.events import LAST
from rocpd.schema.rules.kernel_categories import Categories, is_communication, load
from rocpd.summary.grouping import Sums, add, merge, most_first, nothing, order_of, percent, rows_of
from rocpd.summary.reading import STATISTICS, RankAnswers, Reading, Tables, statistics
from rocpd.summary.result import Field, Summary, by_name, table_of

_THEN = " < "  # between operations in a cell
_PER_DECADE = (1, 2, 5)  # edges of classes of durations
_DECADES = range(11)  # from 1 ns; the last class has no end

TABLES = by_name(
    table_of(
        "variability",
        "Spread of each operation; with --sequence N, of each operation after the same N others.",
        Field("name", "", "kernel, or direction of a copy", is_kernel=True),
        Field(
            "after",
            "",
            "operations before it, the nearest first; NULL with --sequence 0",
            minor=True,
            is_kernel=True,
            joined_by=_THEN,
        ),
        *STATISTICS,
        Field("excess_ns", "ns", "time above the fastest instance"),
        Field("excess_percent", "%", "excess_ns by the time of all operations"),
        Field("outliers", "", "instances 3 deviations from the mean or more", True),
        Field("median_outliers", "", "instances that are far from the median: 3.5 by the median distance", True),
        Field("first_ns", "ns", "start of the first, from the start of the time line", True),
        Field("last_ns", "ns", "start of the last", True),
        Field("gap_ns", "ns", "sum of the gaps before them", True),
        Field("min_gap_ns", "ns", "shortest gap before one", True),
        Field("mean_gap_ns", "ns", "mean gap; the first operation of an agent has none", True),
        Field("std_gap_ns", "ns", "sample deviation of the gaps", True),
        Field("max_gap_ns", "ns", "longest gap", True),
    ),
    table_of(
        "variability-total",
        "Time above the fastest instance as a share of the whole.",
        Field("what", "", "communication, other kernels, copies"),
        Field("total_ns", "ns", "sum of durations"),
        Field("excess_ns", "ns", "time above the fastest instance of each"),
        Field("excess_percent", "%", "excess_ns by the time of all operations"),
    ),
    table_of(
        "durations",
        "How long operations take: how many of each are how long, in classes of 1, 2, 5, 10 …",
        Field("name", "", "kernel, or direction of a copy", is_kernel=True),
        Field("from_ns", "ns", "shortest duration of the class"),
        Field("until_ns", "ns", "shortest one of the next class; NULL: none"),
        Field("calls", "", "operations"),
        Field("total_ns", "ns", "their time"),
        Field("percent", "%", "calls by those of the name", is_share=True),
    ),
    table_of(
        "instances",
        "How the n-th run of a kernel differs between GPUs; those that differ most first.",
        Field("name", "", "kernel", is_kernel=True),
        Field("agents", "", "GPUs of all ranks that ran it"),
        Field("instances", "", "runs that two of them have, or more"),
        Field("range_ns", "ns", "longest - shortest, added up over the instances"),
        Field("over_mean_ns", "ns", "longest - mean, added up: time lost where all wait for the slowest"),
        Field("mean_range_ns", "ns", "range_ns by instances", True),
        Field("max_range_ns", "ns", "the largest one"),
        Field("instance", "", "which it is, from 1", True),
        Field("percent", "%", "over_mean_ns by the time of the slowest, added up"),
    ),
)

Z_LIMIT = 3.0
"""From this z-score on a duration is an outlier."""

MEDIAN_LIMIT = 3.5
"""From this median score on a duration is an outlier."""

_NORMAL = 1.4826  # factor from the median distance to the deviation of a normal distribution


Typical: TypeAlias = tuple[float, float]
"""Middle and width of a distribution [ns]; NaN for a width of 0, in which nothing is far."""


def scores(durations: Ints, typical: Typical) -> Floats:
    """Return the distance of each duration from the middle, in widths; NaN if more than half, or all, are equal."""
    return np.asarray((durations - typical[0]) / typical[1], np.float64)


def typical_of(spread: Spread) -> tuple[Typical, Typical]:
    """Return middle and width of a distribution: by its mean, and by its median.

    >>> typical_of(Spread.of(np.array([1, 2, 3, 4, 90])))
    ((20.0, 35.014282800023196), (3.0, 1.4826))
    """
    values, counts = spread.distribution()
    if not len(values):
        return (math.nan, math.nan), (math.nan, math.nan)
    mean = float(np.average(values, weights=counts))
    deviation = math.sqrt(float(np.average((values - mean) ** 2, weights=counts)))
    median = _median(values.astype(np.float64), counts)
    distance = _NORMAL * _median(np.abs(values - median), counts)
    return (mean, deviation or math.nan), (median, distance or math.nan)


def outliers(spread: Spread) -> list[int]:
    """Return the numbers of outliers among durations by z-score, and by median score."""
    values, counts = spread.distribution()
    ways = zip(typical_of(spread), (Z_LIMIT, MEDIAN_LIMIT), strict=True)
    return [int(counts[np.abs(scores(values, typical)) >= limit].sum()) for typical, limit in ways]


def _median(values: Floats, counts: Ints) -> float:
    order = np.argsort(values, kind="stable")
    values, until = values[order], np.cumsum(counts[order])
    last = int(until[-1])
    middle = np.searchsorted(until, [(last - 1) // 2, last // 2], side="right")
    return float(values[middle].mean())


_Context = tuple[int, ...]
_COMMUNICATION = 2  # a kind beside KERNEL and COPY
_KINDS = {_COMMUNICATION: "communication", KERNEL: "other kernels", COPY: "copies"}


@frozen
class Instances:
    """Operations in one context; two of them add up.

    Args:
        spread: spread of their durations.
        gaps: spread of the gaps before them.
        first, last: starts of the first and the last [ns].
    """

    spread: Spread
    gaps: Spread
    first: int
    last: int

    def __add__(self, other: Instances) -> Instances:
        first, last = min(self.first, other.first), max(self.last, other.last)
        return Instances(self.spread + other.spread, self.gaps + other.gaps, first, last)

    def shifted(self, shift: Shift) -> Instances:
        """Return the same on another time line."""
        return replace(self, first=int(shift.to_line(self.first)), last=int(shift.to_line(self.last)))

    @property
    def excess(self) -> int:
        """The time above the shortest [ns]."""
        m = self.spread.moments
        return m.total - m.calls * (m.shortest or 0)


Contexts = dict[Key, dict[_Context, Instances]]
"""Division -> kind, name, and names before it, the nearest first, -1 where an agent has none -> operations."""


def variability(reading: Reading) -> Tables:
    """Return the spread of each operation in its context, the total excess, and classes of durations.

    Raises:
        RocpdError: there are no operations.
    """
    yield (answers := asked(reading))
    names, divisions = all_contexts(answers)
    table = TABLES["variability"]
    if reading.options.sequence:  # rows then differ only by their context
        table = replace(table, fields=tuple(replace(f, minor=f.minor and f.name != "after") for f in table.fields))
    yield reading.summary(table, rows_of(divisions, partial(_rows, names=names)))
    yield reading.summary(TABLES["variability-total"], rows_of(divisions, _total_rows))
    yield reading.summary(TABLES["durations"], rows_of(divisions, partial(_duration_rows, names=names)))


def asked(reading: Reading) -> RankAnswers[tuple[list[str | None], Contexts]]:
    """Return the answers of ranks with operations in contexts."""
    return reading.each(partial(_read_contexts, categories=load(reading.options.categories)), _CONTEXTS)


def all_contexts(answers: RankAnswers[tuple[list[str | None], Contexts]]) -> tuple[Names, Contexts]:
    """Return the names of the operations of all ranks, and the operations by division and context, on one time line.

    Raises:
        RocpdError: there are no operations.
    """
    names = Names()
    divisions: Contexts = {}
    for rank, (texts, divisions_of_rank) in answers:
        codes = [*names.adopt(texts), -1]  # -1 stays as it is
        shift = answers.reading.shift(rank.number)
        for key, contexts in divisions_of_rank.items():
            for (kind, *of_rank), instances in contexts.items():
                add(divisions, key, (kind, *(codes[code] for code in of_rank)), instances.shifted(shift))
    if not divisions:
        raise nothing("kernels or copies")
    return names, divisions


_CONTEXTS = Fact("contexts", 1, (Instances, Spread))


def _read_contexts(reading: RankReading, categories: Categories) -> tuple[list[str | None], Contexts]:
    """Return the names of one rank, and its operations by division and context, with starts as recorded."""
    operations, names = OperationNames(), Names()
    divisions: Contexts = {}
    all_ops = read_ops(reading, operations)
    talks = np.array([is_communication(categories.of(text)) for text in operations.full], bool)
    shown = np.array(names.adopt(operations.texts), np.int64)
    for _, ops in all_ops.lanes(By.AGENT):
        kind, name = np.where(talks[ops.name] & (ops.kind == KERNEL), _COMMUNICATION, ops.kind), shown[ops.name]
        columns = [ops.lane(reading.options.by), kind, name, *_before(name, reading.options.sequence)]
        gaps = ops.gaps_before()
        for (lane, *context), rows in grouped(columns):
            start, gap = ops.start[rows], gaps[rows]
            instances = Instances(
                Spread.of(ops.duration[rows]), Spread.of(gap[gap >= 0]), int(start.min()), int(start.max())
            )
            add(divisions, reading.key(lane), tuple(context), instances)
    return names.texts, divisions


def _before(names: Ints, count: int) -> list[Ints]:
    """Return the names of the operations 1, 2 … `count` positions earlier; -1 before the first."""
    return [np.concatenate([np.full(min(n, len(names)), -1, np.int64), names[:-n]]) for n in range(1, count + 1)]


def _rows(key: Key, contexts: dict[_Context, Instances], names: Names) -> Iterator[Row]:
    total = sum(each.spread.moments.total for each in contexts.values())
    excess = {context: each.excess for context, each in contexts.items()}
    for context in sorted(contexts, key=lambda context: (-excess[context], order_of(_texts(context, names)))):
        instances = contexts[context]
        gap = instances.gaps.moments
        share = percent(excess[context], total)
        times = (instances.first, instances.last, gap.total, gap.shortest, gap.mean, gap.deviation, gap.longest)
        front = (*key, *_texts(context, names), *statistics(instances.spread), excess[context], share)
        yield (*front, *outliers(instances.spread), *times)


def _total_rows(key: Key, contexts: dict[_Context, Instances]) -> Iterator[Row]:
    total = sum(each.spread.moments.total for each in contexts.values())
    for kind, what in _KINDS.items():
        if of_kind := [each for context, each in contexts.items() if context[0] == kind]:
            over = sum(each.excess for each in of_kind)
            yield (*key, what, sum(each.spread.moments.total for each in of_kind), over, percent(over, total))


def _duration_rows(key: Key, contexts: dict[_Context, Instances], names: Names) -> Iterator[Row]:
    """Yield the classes of durations that have operations, the name with most time first."""
    spreads = by_key((names.texts[context[1]], each.spread) for context, each in contexts.items())
    spreads_of_names = {name: Spread.sum(some) for name, some in spreads.items()}
    for name, spread in most_first(spreads_of_names, lambda spread: spread.moments.total):
        values, counts = spread.distribution()
        for low, high, start, end in _classes(values):
            of_class, calls = values[low:high].tolist(), counts[low:high].tolist()
            time = sum(value * count for value, count in zip(of_class, calls, strict=True))
            yield (*key, name, start, end, sum(calls), time, sum(calls) * 100 / spread.timed)


def _classes(values: Ints) -> Sequence[tuple[int, int, int, int | None]]:
    """Return, for each class that holds some ascending durations, their places, and its edges [ns]."""
    edges = [0, *(step * 10**decade for decade in _DECADES for step in _PER_DECADE)]
    cuts = [*np.searchsorted(values, edges, side="left").tolist(), len(values)]
    return [each for each in zip(cuts, cuts[1:], edges, [*edges[1:], None], strict=False) if each[1] > each[0]]


def _texts(context: _Context, names: Names) -> tuple[str | None, str | None]:
    before = [str(names.texts[code]) for code in context[2:] if code >= 0]
    return names.texts[context[1]], _THEN.join(before) if len(context) > 2 else None


@frozen
class _Runs:
    """The n-th runs of a kernel on some agents, for each n.

    Args:
        agents: number of agents.
        count: number of agents that have an n-th run.
        time: sum of their durations [ns], a float so that sums of damaged ones do not overflow.
        shortest, longest: shortest and longest of their durations [ns].
    """

    agents: int
    count: Ints
    time: Floats
    shortest: Ints
    longest: Ints

    def __add__(self, other: _Runs) -> _Runs:
        few, many = sorted((self, other), key=lambda each: len(each.count))
        gap = 0, len(many.count) - len(few.count)
        count, time = many.count + np.pad(few.count, gap), many.time + np.pad(few.time, gap)
        shortest = np.minimum(many.shortest, np.pad(few.shortest, gap, constant_values=LAST))
        longest = np.maximum(many.longest, np.pad(few.longest, gap))
        return _Runs(self.agents + other.agents, count, time, shortest, longest)


def instances(reading: Reading) -> Tables:
    """Return the differences between instances.

    Raises:
        RocpdError: there are no kernels, or no two GPUs ran the same one.
    """
    missing = "kernel ran on two GPUs"
    runs = yield from reading.summed(_read_runs, _RUNS, what=missing)
    if not (rows := list(rows_of(runs, _run_rows))):
        raise nothing(missing)
    yield reading.summary(TABLES["instances"], rows)


_RUNS = Fact("runs", 1, (_Runs,))


def _read_runs(reading: RankReading) -> dict[Key, dict[str | None, _Runs]]:
    """Return the runs of the kernels of a rank by name."""
    names = OperationNames()
    runs: dict[str | None, _Runs] = {}
    for _, ops in read_ops(reading, names).lanes(By.AGENT):
        kernels = ops.take((ops.kind == KERNEL).nonzero()[0])
        for (name,), rows in grouped([kernels.name]):
            times = kernels.duration[rows]
            ones = np.ones(len(times), np.int64)
            merge(runs, {names.texts[name]: _Runs(1, ones, times.astype(np.float64), times, times)})
    return {reading.key(): runs}


def _run_rows(key: Key, of_names: dict[str | None, _Runs]) -> Iterator[Row]:
    rows = []
    for name, runs in of_names.items():
        repeated = (runs.count > 1).nonzero()[0]
        if len(repeated):
            longest = runs.longest[repeated].astype(np.float64)
            apart = runs.longest[repeated] - runs.shortest[repeated]
            late = round(float((longest - runs.time[repeated] / runs.count[repeated]).sum()))
            most = int(np.argmax(apart))
            whole = sum(apart.tolist())
            share = late * 100 / float(longest.sum()) if longest.any() else None
            counts = (name, runs.agents, len(repeated), whole, late, whole / len(repeated))
            rows.append((*key, *counts, int(apart[most]), int(repeated[most]) + 1, share))
    yield from sorted(rows, key=lambda row: (-row[len(key) + 4], row[len(key)] or ""))


GAPS_US = (10, 20, 50, 100, 1_000, 10_000, 100_000)
"""Edges of the classes of gaps [us]."""

IDLE = "_GPU_Idle"
_COPIES = {
    f"MEMORY_COPY_{a}_TO_{b}": f"Copy{a.title()}To{b.title()}" for a in ("HOST", "DEVICE") for b in ("HOST", "DEVICE")
}

_TIMES = (
    Field("First_ms", "", "start of the first, from the start of the time line"),
    Field("Last_ms", "", "start of the last"),
    Field("PreGap_mean_us", "", "idle time before it, the mean"),
    Field("Dur_min_us", "", "shortest"),
    Field("Dur_mean_us", "", "mean"),
    Field("Dur_max_us", "", "longest"),
    Field("Var_us", "", "time above the shortest, the mean"),
    Field("VarPct", "", "time above the shortest by that of all rows"),
    Field("TotalCalls", "", "operations, or gaps"),
    Field("PctTotal", "", "time by that of all rows, idle time included"),
    Field("Category", "", "of the kernel, as a file of expressions says"),
)

RAPTOR_TABLES = by_name(
    table_of(
        "raptor-categories",
        "Time by what kernels do, and idle time.",
        Field("Category", "", "category; _GPU_Idle is idle time"),
        Field("UniqKernels", "", "rows of raptor-top"),
        Field("TotalCalls", "", "operations, or gaps"),
        Field("TotalDur_ms", "", "their time"),
        Field("VarSum_ms", "", "of this above the shortest of each row"),
        Field("AvgDur_us", "", "mean"),
        Field("Pct", "", "time by that of all rows"),
        is_exact=True,
    ),
    table_of(
        "raptor-top",
        "Operations after the same others, and gaps by length; those with most time first.",
        Field("Kernel", "", "operation, or class of gaps; then those before it, the nearest first", is_kernel=True),
        *_TIMES,
    ),
    table_of(
        "raptor-variability",
        "Time above the shortest of each row of raptor-top.",
        Field("Variability", "", "by_comm: of communication; by_non_comm: of all else"),
        Field("Var_us", "", "time above the shortest"),
        Field("VarPct", "", "by the time of all rows"),
        is_exact=True,
    ),
)

_Named: TypeAlias = "tuple[str, ...]"


def raptor(reading: Reading) -> Iterator[Summary]:
    """Return RAPTOR's tables.

    Raises:
        RocpdError: there are no operations.
    """
    categories = load(reading.options.categories)
    names, divisions = all_contexts(asked(reading))
    sums: dict[_Named, Instances] = {}
    for contexts in divisions.values():
        for (_, *codes), each in contexts.items():
            merge(sums, {tuple("" if code < 0 else _text(names.texts[code]) for code in codes): each})
    named = {context: (of_context, categories.of(context[0])) for context, of_context in sums.items()}
    with_idle = named | {(text,): (gaps, IDLE) for text, gaps in _gaps(Spread.sum(each.gaps for each in sums.values()))}
    whole = sum(of_row.spread.moments.total for of_row, _ in with_idle.values()) or 1
    yield Summary.whole(RAPTOR_TABLES["raptor-categories"], _category_rows(with_idle, whole))
    before = tuple(
        Field(f"Kernel+{n}", "", "operation before", is_kernel=True) for n in range(1, reading.options.sequence + 1)
    )
    kernel, *times = RAPTOR_TABLES["raptor-top"].fields
    rows = [
        _row(context, *with_idle[context], whole, len(before))
        for context in sorted(with_idle, key=lambda c: (-with_idle[c][0].spread.moments.total, c))
    ]
    yield Summary(RAPTOR_TABLES["raptor-top"], (kernel, *before, *times), rows)
    yield Summary.whole(RAPTOR_TABLES["raptor-variability"], _variability_rows(named, whole))


def _text(name: str | None) -> str:
    return _COPIES.get(name or "", name or "")


def _gaps(gaps: Spread) -> Iterator[tuple[str, Instances]]:
    """Yield the classes that hold gaps, without gaps of no length."""
    lengths, counts = gaps.distribution()
    cuts = np.searchsorted(lengths, [0, *(1000 * edge for edge in GAPS_US)], side="right").tolist()
    for gap_class, (low, high) in enumerate(pairwise([*cuts, len(lengths)])):
        if high > low:
            of_class = Spread.of(np.repeat(lengths[low:high], counts[low:high]))
            yield _gap_text(gap_class), Instances(of_class, Spread(), 0, 0)


def _gap_text(gap_class: int) -> str:
    """Return the name of a class of gaps, without a space, which would make it a kernel whose name can be cut.

    >>> _gap_text(0), _gap_text(1), _gap_text(len(GAPS_US))
    ('GAP:0us-10us', 'GAP:10us-20us', 'GAP:100000us-')
    """
    low, high = ((0, *GAPS_US)[gap_class], (*GAPS_US, None)[gap_class])
    return f"GAP:{low}us-{'' if high is None else f'{high}us'}"


def _row(context: _Named, instances: Instances, category: str, whole: int, before: int) -> Row:
    m, gaps = instances.spread.moments, instances.gaps.moments
    starts = (None if category == IDLE else round(start / 1e6, 3) for start in (instances.first, instances.last))
    gap = round(gaps.total / gaps.calls / 1e3, 1) if gaps.calls else None
    lengths = (round((ns or 0) / 1e3, 1) for ns in (m.shortest, m.total / m.calls, m.longest))
    excess = 0 if category == IDLE else instances.excess
    over, share = (round(excess / m.calls / 1e3, 1), round(excess * 100 / whole, 1)), round(m.total * 100 / whole, 1)
    return *context, *[None] * (before + 1 - len(context)), *starts, gap, *lengths, *over, m.calls, share, category


def _category_rows(contexts: Mapping[_Named, tuple[Instances, str]], whole: int) -> Iterator[Row]:
    rows: dict[str, Sums] = {}
    for instances, category in contexts.values():
        m, excess = instances.spread.moments, 0 if category == IDLE else instances.excess
        merge(rows, {category: Sums((1, m.calls, m.total, excess))})
    for name, (kinds, calls, time, excess) in most_first(rows, lambda sums: sums[2]):
        times = (round(time / 1e6, 1), round(excess / 1e6, 1), round(time / calls / 1e3, 1))
        yield (name, kinds, calls, *times, round(time * 100 / whole, 1))


def _variability_rows(named: Mapping[_Named, tuple[Instances, str]], whole: int) -> Iterator[Row]:
    for name, wanted in (("by_comm", True), ("by_non_comm", False)):
        excess = sum(each.excess for each, category in named.values() if is_communication(category) is wanted)
        yield name, round(excess / 1e3, 1), round(excess * 100 / whole, 1)
