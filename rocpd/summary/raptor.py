"""RAPTOR's tables, under its column names: kernels after the same others, categories with idle time, variability.

Where RAPTOR's numbers are wrong these are right: the first operations of a GPU count, contexts end at the
edge of a GPU, all operations end a gap, gaps are told apart one by one, and Var_us is the time above the fastest
instance by call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, TypeVar

import numpy as np

from rocpd.errors import RocpdError
from rocpd.read.groups import grouped
from rocpd.summary.ops import OperationNames, read_ops
from rocpd.summary.options import By
from rocpd.summary.reading import RankReading, Reading
from rocpd.summary.result import Field, Summary, TableDefinition, by_name
from rocpd.summary.spread import total
from rocpd.trace.kernel_categories import Categories, is_communication, load
from rocpd.types import NULL, Ints, Row

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
_Key = TypeVar("_Key")


@dataclass(slots=True)
class _Sums:
    """Operations of one row: how often, times [ns], starts on the time line [ns], and the gaps before them [ns]."""

    calls: int
    time: int
    shortest: int
    longest: int
    first: int | None = None
    last: int | None = None
    gaps: int = 0
    gap_time: int = 0

    @property
    def excess(self) -> int:
        """Time above the shortest."""
        return self.time - self.calls * self.shortest

    def add(self, other: _Sums) -> None:
        self.calls, self.time = self.calls + other.calls, self.time + other.time
        self.shortest, self.longest = min(self.shortest, other.shortest), max(self.longest, other.longest)
        self.gaps, self.gap_time = self.gaps + other.gaps, self.gap_time + other.gap_time
        if other.first is not None and other.last is not None:
            self.first = other.first if self.first is None else min(self.first, other.first)
            self.last = other.last if self.last is None else max(self.last, other.last)


def raptor(reading: Reading) -> Iterator[Summary]:
    """Return RAPTOR's tables.

    Raises:
        RocpdError: there are no operations.
    """
    categories = load(reading.options.categories)
    sums: dict[_Context, _Sums] = {}
    gaps: dict[int, _Sums] = {}
    for rank, (of_rank, gaps_of_rank) in reading.each(partial(_of_rank, sequence=reading.options.sequence)):
        shift = reading.shift(rank.number)
        for context, more in of_rank.items():
            more.first, more.last = (None if t is None else int(shift.to_line(t)) for t in (more.first, more.last))
            _merge(sums, context, more)
        for gap_class, more in gaps_of_rank.items():
            _merge(gaps, gap_class, more)
    if not sums:
        raise RocpdError("no kernels or copies in the selection")
    named = {context: (of_context, categories.of(context[0])) for context, of_context in sums.items()}
    every: dict[_Context, tuple[_Sums, str]] = {**named}
    every |= {(_gap_text(gap_class),): (of_class, IDLE) for gap_class, of_class in gaps.items()}
    whole = sum(of_row.time for of_row, _ in every.values()) or 1
    yield Summary(TABLES["raptor-categories"], TABLES["raptor-categories"].fields, _category_rows(every, whole))
    names = tuple(
        Field(f"Kernel+{n}", "", "operation before", is_kernel=True) for n in range(1, reading.options.sequence + 1)
    )
    kernel, *times = TABLES["raptor-top"].fields
    rows = [
        _row(context, *every[context], whole, len(names))
        for context in sorted(every, key=lambda c: (-every[c][0].time, c))
    ]
    yield Summary(TABLES["raptor-top"], (kernel, *names, *times), rows)
    yield Summary(
        TABLES["raptor-variability"], TABLES["raptor-variability"].fields, _variability_rows(named, categories, whole)
    )


def _merge(sums: dict[_Key, _Sums], key: _Key, more: _Sums) -> None:
    known = sums.setdefault(key, more)
    if known is not more:
        known.add(more)


def _of_rank(reading: RankReading, sequence: int) -> tuple[dict[_Context, _Sums], dict[int, _Sums]]:
    """Return the operations of one rank by context, and its gaps by class; times by the clock of the rank."""
    names = OperationNames()
    sums: dict[_Context, _Sums] = {}
    gaps: dict[int, _Sums] = {}
    for _, ops in read_ops(reading, names).lanes(By.AGENT):
        before = ops.gaps_before()
        earlier = [np.concatenate([np.full(min(n, len(ops)), -1), ops.name[:-n]]) for n in range(1, sequence + 1)]
        for codes, rows in grouped([ops.name, *earlier]):
            texts = tuple("" if code < 0 else _text(names, code) for code in codes)
            _merge(sums, texts, _sums(ops.duration[rows], ops.start[rows], before[rows]))
        idle = before[before > 0]
        for (gap_class,), rows in grouped([np.searchsorted(np.array(GAPS_US) * 1000, idle, side="left")]):
            _merge(gaps, gap_class, _sums(idle[rows]))
    return sums, gaps


def _text(names: OperationNames, code: int) -> str:
    text = names.texts[code] or ""
    return _COPIES.get(text, text)


def _sums(times: Ints, starts: Ints | None = None, gaps: Ints | None = None) -> _Sums:
    sums = _Sums(len(times), total(times), int(times.min()), int(times.max()))
    if starts is not None and gaps is not None:
        known = gaps[gaps != NULL]
        sums.first, sums.last = int(starts.min()), int(starts.max())
        sums.gaps, sums.gap_time = len(known), total(known)
    return sums


def _gap_text(gap_class: int) -> str:
    """Return what a class of gaps is called; a space would make it a kernel whose name can be cut.

    >>> _gap_text(0), _gap_text(1), _gap_text(len(GAPS_US))
    ('GAP:0us-10us', 'GAP:10us-20us', 'GAP:100000us-')
    """
    low, high = ((0, *GAPS_US)[gap_class], (*GAPS_US, None)[gap_class])
    return f"GAP:{low}us-{'' if high is None else f'{high}us'}"


def _row(context: _Context, sums: _Sums, category: str, whole: int, before: int) -> Row:
    starts = (None if start is None else round(start / 1e6, 3) for start in (sums.first, sums.last))
    gap = round(sums.gap_time / sums.gaps / 1e3, 1) if sums.gaps else None
    lengths = (round(ns / 1e3, 1) for ns in (sums.shortest, sums.time / sums.calls, sums.longest))
    excess = 0 if category == IDLE else sums.excess
    shares = (
        round(excess / sums.calls / 1e3, 1),
        round(excess * 100 / whole, 1),
        sums.calls,
        round(sums.time * 100 / whole, 1),
    )
    return *context, *[None] * (before + 1 - len(context)), *starts, gap, *lengths, *shares, category


def _category_rows(every: Mapping[_Context, tuple[_Sums, str]], whole: int) -> Sequence[Row]:
    rows: dict[str, list[int]] = {}
    for sums, category in every.values():
        row = rows.setdefault(category, [0, 0, 0, 0])
        excess = 0 if category == IDLE else sums.excess
        for at, value in enumerate((1, sums.calls, sums.time, excess)):
            row[at] += value
    return [
        (
            name,
            kinds,
            calls,
            round(time / 1e6, 1),
            round(excess / 1e6, 1),
            round(time / calls / 1e3, 1),
            round(time * 100 / whole, 1),
        )
        for name, (kinds, calls, time, excess) in sorted(rows.items(), key=lambda item: (-item[1][2], item[0]))
    ]


def _variability_rows(named: Mapping[_Context, tuple[_Sums, str]], categories: Categories, whole: int) -> Iterator[Row]:
    for name, wanted in (("by_comm", True), ("by_non_comm", False)):
        excess = sum(sums.excess for sums, category in named.values() if is_communication(category) is wanted)
        yield name, round(excess / 1e3, 1), round(excess * 100 / whole, 1)
