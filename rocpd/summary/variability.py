"""How much the time of one kernel varies, alone or in the context of the operations before it.

Excess is the time above the fastest instance: sum - calls · shortest. The context of an operation are the n that
started before it on the same agent; the first ones of an agent have a shorter context, none is dropped. The gap before
an operation is the time from the latest end of all before it on the agent, 0 while one still runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np

from rocpd.errors import RocpdError
from rocpd.frozen import frozen
from rocpd.read.groups import grouped
from rocpd.read.names import Names
from rocpd.summary.ops import COPY, KERNEL, OperationNames, read_ops
from rocpd.summary.options import By
from rocpd.summary.outliers import outliers
from rocpd.summary.reading import STATISTICS, Key, RankReading, Reading, order_of, statistics
from rocpd.summary.result import Field, Summary, TableDefinition, by_name
from rocpd.summary.spread import Spread
from rocpd.summary.sums import merge
from rocpd.trace.kernel_categories import Categories, is_communication, load
from rocpd.types import Ints, Row

_THEN = " < "  # between operations in a cell
_PER_DECADE = (1, 2, 5)  # edges of classes of durations
_DECADES = range(11)  # from 1 ns; the last class has no end

TABLES = by_name(
    TableDefinition(
        "variability",
        "Spread of each operation; with --sequence N, of each operation after the same N others.",
        (
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
    ),
    TableDefinition(
        "variability-total",
        "Time above the fastest instance as a share of the whole.",
        (
            Field("what", "", "communication, other kernels, copies"),
            Field("total_ns", "ns", "sum of durations"),
            Field("excess_ns", "ns", "time above the fastest instance of each"),
            Field("excess_percent", "%", "excess_ns by the time of all operations"),
        ),
    ),
    TableDefinition(
        "durations",
        "How long operations take: how many of each are how long, in classes of 1, 2, 5, 10 …",
        (
            Field("name", "", "kernel, or direction of a copy", is_kernel=True),
            Field("from_ns", "ns", "shortest duration of the class"),
            Field("until_ns", "ns", "shortest one of the next class; NULL: none"),
            Field("calls", "", "operations"),
            Field("total_ns", "ns", "their time"),
            Field("percent", "%", "calls by those of the name", is_share=True),
        ),
    ),
)

_Context = tuple[int, ...]  # kind, name, names before it from the nearest on; -1 where an agent has none
_COMMUNICATION = 2  # of kinds beside KERNEL and COPY
_KINDS = {_COMMUNICATION: "communication", KERNEL: "other kernels", COPY: "copies"}


@frozen
class _Instances:
    """Operations in one context.

    Args:
        spread: of their durations.
        gaps: of the gaps before them.
        first, last: starts of the first and the last [ns].
    """

    spread: Spread
    gaps: Spread
    first: int
    last: int

    def __add__(self, other: _Instances) -> _Instances:
        first, last = min(self.first, other.first), max(self.last, other.last)
        return _Instances(self.spread + other.spread, self.gaps + other.gaps, first, last)


_Contexts = dict[Key, dict[_Context, _Instances]]


def variability(reading: Reading) -> Iterator[Summary]:
    """Return the spread of each operation in its context, the excess over all, and classes of durations.

    Raises:
        RocpdError: there are no operations.
    """
    names = Names()
    divisions: _Contexts = {}
    work = partial(_of_rank, categories=load(reading.options.categories))
    for rank, (texts, divisions_of_rank) in reading.each(work):
        codes = [*names.adopt(texts), -1]  # -1 stays what it is
        shift = reading.shift(rank.number)
        for key, contexts in divisions_of_rank.items():
            translated = {
                (kind, *(codes[code] for code in some)): replace(
                    each, first=int(shift.to_line(each.first)), last=int(shift.to_line(each.last))
                )
                for (kind, *some), each in contexts.items()
            }
            merge(divisions.setdefault(key, {}), translated)
    if not divisions:
        raise RocpdError("no kernels or copies in the selection")
    table = TABLES["variability"]
    if reading.options.sequence:  # then rows differ by it alone
        table = replace(table, fields=tuple(replace(f, minor=f.minor and f.name != "after") for f in table.fields))
    ordered = [(key, divisions[key]) for key in sorted(divisions, key=order_of)]
    yield reading.summary(table, (row for item in ordered for row in _rows(*item, names)))
    yield reading.summary(TABLES["variability-total"], (row for item in ordered for row in _total_rows(*item)))
    yield reading.summary(TABLES["durations"], (row for item in ordered for row in _duration_rows(*item, names)))


def _of_rank(reading: RankReading, categories: Categories) -> tuple[list[str | None], _Contexts]:
    """Return the names of one rank, and its operations by division and context; starts as recorded."""
    operations, names = OperationNames(), Names()
    divisions: _Contexts = {}
    all_ops = read_ops(reading, operations)
    talks = np.array([is_communication(categories.of(text)) for text in operations.full], bool)
    shown = np.array(names.adopt(operations.texts), np.int64)
    for _, ops in all_ops.lanes(By.AGENT):
        kind, name = np.where(talks[ops.name] & (ops.kind == KERNEL), _COMMUNICATION, ops.kind), shown[ops.name]
        columns = [ops.lane(reading.options.by), kind, name, *_before(name, reading.options.sequence)]
        gaps = ops.gaps_before()
        for (lane, *context), rows in grouped(columns):
            start, gap = ops.start[rows], gaps[rows]
            instances = _Instances(
                Spread.of(ops.duration[rows]), Spread.of(gap[gap >= 0]), int(start.min()), int(start.max())
            )
            merge(divisions.setdefault(reading.key(lane), {}), {tuple(context): instances})
    return names.texts, divisions


def _before(names: Ints, count: int) -> list[Ints]:
    """Return the names of the operations 1, 2 … `count` positions earlier; -1 before the first."""
    return [np.concatenate([np.full(min(n, len(names)), -1, np.int64), names[:-n]]) for n in range(1, count + 1)]


def _rows(key: Key, contexts: dict[_Context, _Instances], names: Names) -> Iterator[Row]:
    sums = {context: each.spread.moments for context, each in contexts.items()}
    total = sum(m.total for m in sums.values())
    excess = {context: m.total - m.calls * (m.shortest or 0) for context, m in sums.items()}
    for context in sorted(contexts, key=lambda context: (-excess[context], order_of(_texts(context, names)))):
        each = contexts[context]
        gap = each.gaps.moments
        share = excess[context] * 100 / total if total else None
        times = (each.first, each.last, gap.total, gap.shortest, gap.mean, gap.deviation, gap.longest)
        front = (*key, *_texts(context, names), *statistics(each.spread), excess[context], share)
        yield (*front, *outliers(each.spread), *times)


def _total_rows(key: Key, contexts: dict[_Context, _Instances]) -> Iterator[Row]:
    total = sum(each.spread.moments.total for each in contexts.values())
    for kind, what in _KINDS.items():
        of_kind = [each.spread.moments for context, each in contexts.items() if context[0] == kind]
        if of_kind:
            over = sum(m.total - m.calls * (m.shortest or 0) for m in of_kind)
            yield (*key, what, sum(m.total for m in of_kind), over, over * 100 / total if total else None)


def _duration_rows(key: Key, contexts: dict[_Context, _Instances], names: Names) -> Iterator[Row]:
    """Yield the classes of durations that occur, those of the name with most time first."""
    spreads: dict[str | None, list[Spread]] = {}
    for context, each in contexts.items():
        spreads.setdefault(names.texts[context[1]], []).append(each.spread)
    added = {name: Spread.sum(some) for name, some in spreads.items()}
    for name in sorted(added, key=lambda name: (-added[name].moments.total, name or "")):
        values, counts = added[name].distribution()
        for low, high, start, end in _classes(values):
            some, calls = values[low:high].tolist(), counts[low:high].tolist()
            time = sum(value * count for value, count in zip(some, calls, strict=True))
            yield (*key, name, start, end, sum(calls), time, sum(calls) * 100 / added[name].timed)


def _classes(values: Ints) -> Sequence[tuple[int, int, int, int | None]]:
    """Return which of some ascending durations lie in each class, where any do, and edges of the class [ns]."""
    edges = [0, *(step * 10**decade for decade in _DECADES for step in _PER_DECADE)]
    cuts = [*np.searchsorted(values, edges, side="left").tolist(), len(values)]
    ends = [*edges[1:], None]
    return [
        (low, high, *edge)
        for (low, high), edge in zip(pairwise(cuts), zip(edges, ends, strict=True), strict=True)
        if high > low
    ]


def _texts(context: _Context, names: Names) -> tuple[str | None, str | None]:
    before = [str(names.texts[code]) for code in context[2:] if code >= 0]
    return names.texts[context[1]], _THEN.join(before) if len(context) > 2 else None
