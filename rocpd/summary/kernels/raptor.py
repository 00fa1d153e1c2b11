"""RAPTOR's tables, under its column names: kernels after the same others, categories with idle time, variability.

Where RAPTOR's numbers are wrong these are right: the first operations of a GPU count, contexts end at the
edge of a GPU, all operations end a gap, gaps are told apart one by one, and Var_us is the time above the fastest
instance by call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from rocpd.base.errors import RocpdError
from rocpd.base.frozen import frozen
from rocpd.base.types import NULL, Row
from rocpd.facts.columns import grouped
from rocpd.facts.operations import OperationNames, read_ops
from rocpd.facts.rank import By, RankReading
from rocpd.facts.spread import Spread
from rocpd.schema.rules.kernel_categories import Categories, is_communication, load
from rocpd.summary.grouping import Total, merge, most_first
from rocpd.summary.kernels.variability import Instances
from rocpd.summary.reading import Reading
from rocpd.summary.result import Field, Summary, TableDefinition, by_name

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

TABLES = by_name(
    TableDefinition(
        "raptor-categories",
        "Time by what kernels do, and idle time.",
        (
            Field("Category", "", "category; _GPU_Idle is idle time"),
            Field("UniqKernels", "", "rows of raptor-top"),
            Field("TotalCalls", "", "operations, or gaps"),
            Field("TotalDur_ms", "", "their time"),
            Field("VarSum_ms", "", "of this above the shortest of each row"),
            Field("AvgDur_us", "", "mean"),
            Field("Pct", "", "time by that of all rows"),
        ),
        is_exact=True,
    ),
    TableDefinition(
        "raptor-top",
        "Operations after the same others, and gaps by length; those with most time first.",
        (
            Field("Kernel", "", "operation, or class of gaps; then those before it, the nearest first", is_kernel=True),
            *_TIMES,
        ),
    ),
    TableDefinition(
        "raptor-variability",
        "Time above the shortest of each row of raptor-top.",
        (
            Field("Variability", "", "by_comm: of communication; by_non_comm: of all else"),
            Field("Var_us", "", "time above the shortest"),
            Field("VarPct", "", "by the time of all rows"),
        ),
        is_exact=True,
    ),
)

_Context: TypeAlias = "tuple[str, ...]"


@frozen
class _Category(Total):
    """Rows of a category, their operations, and times [ns]."""

    kinds: int
    calls: int
    time: int
    excess: int


def raptor(reading: Reading) -> Iterator[Summary]:
    """Return RAPTOR's tables.

    Raises:
        RocpdError: there are no operations.
    """
    categories = load(reading.options.categories)
    sums: dict[_Context, Instances] = {}
    gaps: dict[int, Instances] = {}
    for rank, (of_rank, gaps_of_rank) in reading.each(partial(_of_rank, sequence=reading.options.sequence)):
        shift = reading.shift(rank.number)
        merge(sums, {context: each.shifted(shift) for context, each in of_rank.items()})
        merge(gaps, gaps_of_rank)
    if not sums:
        raise RocpdError("no kernels or copies in the selection")
    named = {context: (of_context, categories.of(context[0])) for context, of_context in sums.items()}
    every: dict[_Context, tuple[Instances, str]] = {**named}
    every |= {(_gap_text(gap_class),): (of_class, IDLE) for gap_class, of_class in gaps.items()}
    whole = sum(of_row.spread.moments.total for of_row, _ in every.values()) or 1
    yield Summary.whole(TABLES["raptor-categories"], _category_rows(every, whole))
    names = tuple(
        Field(f"Kernel+{n}", "", "operation before", is_kernel=True) for n in range(1, reading.options.sequence + 1)
    )
    kernel, *times = TABLES["raptor-top"].fields
    rows = [
        _row(context, *every[context], whole, len(names))
        for context in sorted(every, key=lambda c: (-every[c][0].spread.moments.total, c))
    ]
    yield Summary(TABLES["raptor-top"], (kernel, *names, *times), rows)
    yield Summary.whole(TABLES["raptor-variability"], _variability_rows(named, categories, whole))


def _of_rank(reading: RankReading, sequence: int) -> tuple[dict[_Context, Instances], dict[int, Instances]]:
    """Return the operations of one rank by context, and its gaps by class; times by the clock of the rank."""
    names = OperationNames()
    sums: dict[_Context, Instances] = {}
    gaps: dict[int, Instances] = {}
    for _, ops in read_ops(reading, names).lanes(By.AGENT):
        before = ops.gaps_before()
        earlier = [np.concatenate([np.full(min(n, len(ops)), -1), ops.name[:-n]]) for n in range(1, sequence + 1)]
        for codes, rows in grouped([ops.name, *earlier]):
            texts = tuple("" if code < 0 else _text(names, code) for code in codes)
            start, gap = ops.start[rows], before[rows]
            spreads = Spread.of(ops.duration[rows]), Spread.of(gap[gap != NULL])
            merge(sums, {texts: Instances(*spreads, int(start.min()), int(start.max()))})
        idle = before[before > 0]
        for (gap_class,), rows in grouped([np.searchsorted(np.array(GAPS_US) * 1000, idle, side="left")]):
            merge(gaps, {gap_class: Instances(Spread.of(idle[rows]), Spread(), 0, 0)})
    return sums, gaps


def _text(names: OperationNames, code: int) -> str:
    text = names.texts[code] or ""
    return _COPIES.get(text, text)


def _gap_text(gap_class: int) -> str:
    """Return what a class of gaps is called; a space would make it a kernel whose name can be cut.

    >>> _gap_text(0), _gap_text(1), _gap_text(len(GAPS_US))
    ('GAP:0us-10us', 'GAP:10us-20us', 'GAP:100000us-')
    """
    low, high = ((0, *GAPS_US)[gap_class], (*GAPS_US, None)[gap_class])
    return f"GAP:{low}us-{'' if high is None else f'{high}us'}"


def _row(context: _Context, each: Instances, category: str, whole: int, before: int) -> Row:
    m, gaps = each.spread.moments, each.gaps.moments
    starts = (None if category == IDLE else round(start / 1e6, 3) for start in (each.first, each.last))
    gap = round(gaps.total / gaps.calls / 1e3, 1) if gaps.calls else None
    lengths = (round((ns or 0) / 1e3, 1) for ns in (m.shortest, m.total / m.calls, m.longest))
    excess = 0 if category == IDLE else each.excess
    shares = (
        round(excess / m.calls / 1e3, 1),
        round(excess * 100 / whole, 1),
        m.calls,
        round(m.total * 100 / whole, 1),
    )
    return *context, *[None] * (before + 1 - len(context)), *starts, gap, *lengths, *shares, category


def _category_rows(every: Mapping[_Context, tuple[Instances, str]], whole: int) -> Sequence[Row]:
    rows: dict[str, _Category] = {}
    for each, category in every.values():
        m, excess = each.spread.moments, 0 if category == IDLE else each.excess
        merge(rows, {category: _Category(1, m.calls, m.total, excess)})
    return [
        (
            name,
            c.kinds,
            c.calls,
            round(c.time / 1e6, 1),
            round(c.excess / 1e6, 1),
            round(c.time / c.calls / 1e3, 1),
            round(c.time * 100 / whole, 1),
        )
        for name, c in most_first(rows, lambda c: c.time)
    ]


def _variability_rows(
    named: Mapping[_Context, tuple[Instances, str]], categories: Categories, whole: int
) -> Iterator[Row]:
    for name, wanted in (("by_comm", True), ("by_non_comm", False)):
        excess = sum(each.excess for each, category in named.values() if is_communication(category) is wanted)
        yield name, round(excess / 1e3, 1), round(excess * 100 / whole, 1)
