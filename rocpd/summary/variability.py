"""How much the time of one kernel varies, alone or in the context of the operations before it.

Excess is the time above the fastest instance: sum - calls · shortest. The context of an operation are the n that
started before it on the same agent; the first ones of an agent have a shorter context, none is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from rocpd.errors import RocpdError
from rocpd.read.groups import grouped
from rocpd.read.names import Names
from rocpd.summary.ops import COPY, KERNEL, OperationNames, read_ops
from rocpd.summary.options import By
from rocpd.summary.reading import STATISTICS, Key, RankReading, Reading, order_of, statistics
from rocpd.summary.result import Field, Summary, TableDefinition, by_name
from rocpd.summary.spread import Spread
from rocpd.summary.sums import merge
from rocpd.trace.kernel_categories import Categories, is_communication, load
from rocpd.types import Ints, Row

_THEN = " < "  # between operations in a cell

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
)

_Context = tuple[int, ...]  # kind, name, names before it from the nearest on; -1 where an agent has none
_Spreads = dict[Key, dict[_Context, Spread]]
_COMMUNICATION = 2  # of kinds beside KERNEL and COPY
_KINDS = {_COMMUNICATION: "communication", KERNEL: "other kernels", COPY: "copies"}


def variability(reading: Reading) -> Iterator[Summary]:
    """Return the spread of each operation in its context, and the excess over all.

    Raises:
        RocpdError: there are no operations.
    """
    names = Names()
    divisions: _Spreads = {}
    for _, (texts, divisions_of_rank) in reading.each(partial(_of_rank, categories=load(reading.options.categories))):
        codes = [*names.adopt(texts), -1]  # -1 stays what it is
        for key, spreads in divisions_of_rank.items():
            translated = {(kind, *(codes[code] for code in some)): spread for (kind, *some), spread in spreads.items()}
            merge(divisions.setdefault(key, {}), translated)
    if not divisions:
        raise RocpdError("no kernels or copies in the selection")
    rows: list[Row] = []
    totals: list[Row] = []
    for key in sorted(divisions, key=order_of):
        spreads = divisions[key]
        sums = {context: spread.moments for context, spread in spreads.items()}
        total = sum(m.total for m in sums.values())
        excess = {context: m.total - m.calls * (m.shortest or 0) for context, m in sums.items()}
        ordered = sorted(spreads, key=lambda context: (-excess[context], order_of(_texts(context, names))))
        for context in ordered:
            share = excess[context] * 100 / total if total else None
            rows.append((*key, *_texts(context, names), *statistics(spreads[context]), excess[context], share))
        for kind, what in _KINDS.items():
            of_kind = [context for context in sums if context[0] == kind]
            if of_kind:
                over = sum(excess[context] for context in of_kind)
                time = sum(sums[context].total for context in of_kind)
                totals.append((*key, what, time, over, over * 100 / total if total else None))
    table = TABLES["variability"]
    if reading.options.sequence:  # then rows differ by it alone
        table = replace(table, fields=tuple(replace(f, minor=f.minor and f.name != "after") for f in table.fields))
    yield reading.summary(table, rows)
    yield reading.summary(TABLES["variability-total"], totals)


def _of_rank(reading: RankReading, categories: Categories) -> tuple[list[str | None], _Spreads]:
    """Return the names of one rank, and the durations of its operations by division and context."""
    operations, names = OperationNames(), Names()
    divisions: _Spreads = {}
    all_ops = read_ops(reading, operations)
    talks = np.array([is_communication(categories.of(text)) for text in operations.full], bool)
    shown = np.array(names.adopt(operations.texts), np.int64)
    for _, ops in all_ops.lanes(By.AGENT):
        kind, name = np.where(talks[ops.name] & (ops.kind == KERNEL), _COMMUNICATION, ops.kind), shown[ops.name]
        columns = [ops.lane(reading.options.by), kind, name, *_before(name, reading.options.sequence)]
        for (lane, *context), rows in grouped(columns):
            spread = Spread.of(ops.duration[rows])
            merge(divisions.setdefault(reading.key(lane), {}), {tuple(context): spread})
    return names.texts, divisions


def _before(names: Ints, count: int) -> list[Ints]:
    """Return the names of the operations 1, 2 … `count` positions earlier; -1 before the first."""
    return [np.concatenate([np.full(min(n, len(names)), -1, np.int64), names[:-n]]) for n in range(1, count + 1)]


def _texts(context: _Context, names: Names) -> tuple[str | None, str | None]:
    before = [str(names.texts[code]) for code in context[2:] if code >= 0]
    return names.texts[context[1]], _THEN.join(before) if len(context) > 2 else None
