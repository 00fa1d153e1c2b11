"""Owns how much the time of one kernel varies, alone or in the context of the operations before it.

Excess is the time above the fastest instance: sum - calls · shortest. The context of an operation are the n that
started before it on the same agent; the first ones of an agent have a shorter context, none is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from rocpd.errors import RocpdError
from rocpd.read.groups import grouped
from rocpd.read.names import Names
from rocpd.summary.kernel_categories import is_communication, load
from rocpd.summary.ops import COPY, read_ops
from rocpd.summary.options import By
from rocpd.summary.reading import STATISTICS, Key, RankReading, Reading, order_of, statistics
from rocpd.summary.result import Field, Summary, TableDefinition
from rocpd.summary.spread import Spread
from rocpd.summary.sums import merge
from rocpd.types import Ints, Row

TABLES = {
    table.name: table
    for table in (
        TableDefinition(
            "variability",
            "Spread of each operation; with --sequence N, of each operation behind the same N others.",
            (
                Field("name", "", "kernel, or direction of a copy"),
                Field("after", "", "operations before it, the nearest first; NULL with --sequence 0", True),
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
}

_Context = tuple[int, ...]  # kind, name, names before it from the nearest on; -1 where an agent has none
_Spreads = dict[Key, dict[_Context, Spread]]
_KINDS = ("communication", "other kernels", "copies")


def variability(reading: Reading) -> Iterator[Summary]:
    """Give the spread of each operation in its context, and the excess over all.

    Raises:
        RocpdError: there are no operations.
    """
    names = Names()
    found: _Spreads = {}
    for _, (texts, own) in reading.each(_one):
        codes = [*names.adopt(texts), -1]  # -1 stays what it is
        for key, spreads in own.items():
            translated = {(kind, *(codes[code] for code in some)): spread for (kind, *some), spread in spreads.items()}
            merge(found.setdefault(key, {}), translated)
    if not found:
        raise RocpdError("no kernels or copies in the selection")
    categories = load(reading.options.categories)
    talks = {code: is_communication(categories.of(text)) for code, text in enumerate(names.texts)}
    rows: list[Row] = []
    totals: list[Row] = []
    for key in sorted(found, key=order_of):
        sums = {context: spread.moments for context, spread in found[key].items()}
        whole = sum(m.total for m in sums.values())
        excess = {context: m.total - m.calls * (m.shortest or 0) for context, m in sums.items()}
        ordered = sorted(found[key], key=lambda context: (-excess[context], order_of(_texts(context, names))))
        for context in ordered:
            share = excess[context] * 100 / whole if whole else None
            rows.append((*key, *_texts(context, names), *statistics(found[key][context]), excess[context], share))
        for kind in _KINDS:
            mine = [context for context in sums if _kind(context, talks) == kind]
            if mine:
                over = sum(excess[context] for context in mine)
                total = sum(sums[context].total for context in mine)
                totals.append((*key, kind, total, over, over * 100 / whole if whole else None))
    table = TABLES["variability"]
    if reading.options.sequence:  # then rows differ by it alone
        table = replace(table, fields=tuple(replace(f, minor=f.minor and f.name != "after") for f in table.fields))
    yield reading.summary(table, rows)
    yield reading.summary(TABLES["variability-total"], totals)


def _one(mine: RankReading) -> tuple[list[str | None], _Spreads]:
    """Give the names of one rank, and the durations of its operations by division and context."""
    names = Names()
    found: _Spreads = {}
    by_stream = mine.options.by is By.STREAM
    for agent, own in read_ops(mine, names).lanes(By.AGENT):
        columns = [own.kind, own.name, *_before(own.name, mine.options.sequence)]
        for context, places in grouped([*columns, *([own.stream] if by_stream else [])]):
            lane, chosen = (context[-1], context[:-1]) if by_stream else (agent, context)
            spread = Spread()
            spread.add(own.duration[places])
            merge(found.setdefault(mine.key(lane), {}), {chosen: spread})
    return names.texts, found


def _before(names: Ints, count: int) -> list[Ints]:
    """Give the names 1, 2 … `count` places earlier; -1 before the first."""
    return [np.concatenate([np.full(min(n, len(names)), -1, np.int64), names[:-n]]) for n in range(1, count + 1)]


def _texts(context: _Context, names: Names) -> tuple[str | None, str | None]:
    before = [str(names.texts[code]) for code in context[2:] if code >= 0]
    return names.texts[context[1]], " < ".join(before) if len(context) > 2 else None


def _kind(context: _Context, talks: dict[int, bool]) -> str:
    if context[0] == COPY:
        return "copies"
    return "communication" if talks[context[1]] else "other kernels"
