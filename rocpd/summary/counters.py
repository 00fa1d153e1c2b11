"""Owns hardware counters per kernel: one row per kernel and counter, or a column per counter."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from rocpd.errors import RocpdError
from rocpd.federate.identify import Rank
from rocpd.summary.ops import kernel_texts
from rocpd.summary.read import NULL
from rocpd.summary.reading import Key, Reading, order_of
from rocpd.summary.result import Field, Row, Summary, Table
from rocpd.summary.survey import sql

_KERNEL = Field("kernel", "", "kernel")

TABLES = {
    table.name: table
    for table in (
        Table(
            "counters",
            "Counters by kernel, in the unit of the counter; a dispatch's value is the sum over its instances.",
            (
                _KERNEL,
                Field("counter", "", "counter"),
                Field("unit", "", "its unit, as the profiler says"),
                Field("dispatches", "", "dispatches with a value"),
                Field("min", "", "smallest value of a dispatch", True),
                Field("mean", "", "mean of dispatches"),
                Field("max", "", "largest"),
                Field("sum", "", "sum over dispatches", True),
            ),
        ),
        Table(
            "counters-wide",
            "Mean of each counter by kernel; behind these columns one per counter, by name.",
            (_KERNEL, Field("dispatches", "", "most dispatches that any counter has")),
        ),
    )
}


@dataclass
class _Values:
    """Values of one kernel and counter. Sums of ranks are added exactly, in whatever order."""

    count: int = 0
    least: float = math.inf
    most: float = -math.inf
    sums: list[float] = field(default_factory=list)

    def add(self, values: list[float]) -> None:
        self.count += len(values)
        self.least = min(self.least, *values) if values else self.least
        self.most = max(self.most, *values) if values else self.most
        self.sums.append(math.fsum(values))

    def row(self) -> Row:
        if not self.count:
            return (0, None, None, None, None)
        total = math.fsum(self.sums)
        return (self.count, self.least, total / self.count, self.most, total)


_Cells = dict[tuple[str | None, str | None], _Values]


def counters(reading: Reading) -> Iterator[Summary]:
    """Give the long and the wide table.

    Raises:
        RocpdError: no dispatch has counter values.
    """
    found: dict[Key, _Cells] = {}
    units: dict[str | None, str] = {}
    for rank in reading.ranks():
        for key, kernel, counter, unit, values in _read(reading, rank):
            units[counter] = unit or units.get(counter, "")
            found.setdefault(key, {}).setdefault((kernel, counter), _Values()).add(values)
    if not found:
        raise RocpdError("no counter values of kernels in the selection", "rocprofv3 --pmc collects them")
    ordered = [(key, found[key]) for key in sorted(found, key=order_of)]
    rows = (
        (*key, kernel, counter, units[counter] or None, *cells[kernel, counter].row())
        for key, cells in ordered
        for kernel, counter in sorted(cells, key=order_of)
    )
    yield reading.summary(TABLES["counters"], rows)
    yield _wide(reading, ordered, units)


def _read(reading: Reading, rank: Rank) -> Iterator[tuple[Key, str | None, str | None, str | None, list[float]]]:
    """Give the values of one rank by division, kernel and counter."""
    values: dict[tuple[Key, int, str | None], list[float]] = {}
    units: dict[str | None, str | None] = {}
    for batch in reading.session.stream_in(rank.number, sql("counters")):
        for kernel, counter, unit, agent, stream, value in batch:
            key = reading.key(rank, NULL if agent is None else agent, NULL if stream is None else stream)
            own = values.setdefault((key, NULL if kernel is None else kernel, counter), [])
            units[counter] = unit
            if value is not None:
                own.append(value)
    ids = np.array([number for _, number, _ in values], np.int64)
    known = kernel_texts(reading.session, rank.number, reading.options.kernel_names, ids)
    for (key, number, counter), own in values.items():
        yield key, known.get(number), counter, units[counter], own


def _wide(reading: Reading, ordered: list[tuple[Key, _Cells]], units: dict[str | None, str]) -> Summary:
    names = sorted(units, key=lambda name: name or "")
    table = TABLES["counters-wide"]
    more = tuple(Field(name or "?", "", f"mean{f' [{units[name]}]' if units[name] else ''}") for name in names)
    rows = []
    for key, cells in ordered:
        for kernel in sorted({kernel for kernel, _ in cells}, key=lambda name: name or ""):
            own = [cells[kernel, name].row() if (kernel, name) in cells else (0, None, None) for name in names]
            rows.append((*key, kernel, max(row[0] for row in own), *(row[2] for row in own)))
    return reading.summary(Table(table.name, table.doc, (*table.fields, *more)), rows)
