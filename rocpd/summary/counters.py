"""Hardware counters per kernel: one row per kernel and counter, or a column per counter."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from rocpd.errors import RocpdError
from rocpd.federate.open.identify import Rank
from rocpd.frozen import frozen
from rocpd.read.columns import number
from rocpd.read.names import as_text
from rocpd.summary.ops import kernel_texts
from rocpd.summary.options import By
from rocpd.summary.reading import Key, RankReading, Reading, order_of
from rocpd.summary.result import Field, Summary, TableDefinition, by_name
from rocpd.summary.statements import statement
from rocpd.summary.sums import merge
from rocpd.types import Row

_KERNEL = Field("kernel", "", "kernel", is_kernel=True)

TABLES = by_name(
    TableDefinition(
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
    TableDefinition(
        "counters-wide",
        "Mean of each counter by kernel; after these columns one per counter, by name.",
        (_KERNEL, Field("dispatches", "", "most dispatches that any counter has")),
    ),
)


@frozen
class _Values:
    """Values of one kernel and counter. Sums of ranks are added exactly, in whatever order."""

    count: int
    least: float
    most: float
    sums: tuple[float, ...]

    @staticmethod
    def of(values: list[float]) -> _Values:
        return _Values(len(values), min(values, default=math.inf), max(values, default=-math.inf), (_sum(values),))

    def __add__(self, other: _Values) -> _Values:
        count, sums = self.count + other.count, self.sums + other.sums
        return _Values(count, min(self.least, other.least), max(self.most, other.most), sums)

    def row(self) -> Row:
        if not self.count:
            return (0, None, None, None, None)
        total = _sum(self.sums)
        if math.isnan(total):  # infinity less infinity: no number, NULL as in SQLite
            return (self.count, self.least, None, self.most, None)
        return (self.count, self.least, total / self.count, self.most, total)


def _sum(values: Sequence[float]) -> float:
    """Add up exactly; not a number when both infinities are among the values."""
    try:
        return math.fsum(values)
    except (ValueError, OverflowError):
        return sum(values)


_Cells = dict[tuple[str | None, str | None], _Values]
_OfRank = tuple[dict[Key, _Cells], dict[str | None, str | None]]


def counters(reading: Reading) -> Iterator[Summary]:
    """Return the long and the wide table.

    Raises:
        RocpdError: no dispatch has counter values.
    """
    divisions: dict[Key, _Cells] = {}
    units: dict[str | None, str] = {}
    for divisions_of_rank, units_of_rank in _of_ranks(reading):
        for key, cells in divisions_of_rank.items():
            merge(divisions.setdefault(key, {}), cells)
        for counter, unit in units_of_rank.items():
            units[counter] = unit or units.get(counter, "")
    if not divisions:
        raise RocpdError("no counter values of kernels in the selection", "rocprofv3 --pmc collects them")
    ordered = [(key, divisions[key]) for key in sorted(divisions, key=order_of)]
    rows = (
        (*key, kernel, counter, units[counter] or None, *cells[kernel, counter].row())
        for key, cells in ordered
        for kernel, counter in sorted(cells, key=order_of)
    )
    yield reading.summary(TABLES["counters"], rows)
    yield _wide(reading, ordered, units)


def _of_ranks(reading: Reading) -> Iterator[_OfRank]:
    """Yield the values of each rank; of passes of one program each counter is of the first pass that counted it."""
    programs = reading.every_pass.job.programs
    first = {number: program[0] for program in programs for number in program}
    order = {number: place for program in programs for place, number in enumerate(program)}
    answers: Iterable[tuple[Rank, _OfRank]] = reading.with_passes().each(_of_rank)
    if programs:
        answers = sorted(answers, key=lambda answer: order.get(answer[0].number, 0))
    counted: dict[int, set[str | None]] = {}
    for rank, (divisions, units) in answers:
        known = counted.setdefault(first.get(rank.number, rank.number), set())
        new = {
            key: {cell: values for cell, values in cells.items() if cell[1] not in known}
            for key, cells in divisions.items()
        }
        known.update(units)
        yield new, units


def _of_rank(reading: RankReading) -> _OfRank:
    """Return the values of one rank by division, kernel and counter, and the units of its counters."""
    values: dict[tuple[int, int, str | None], list[float]] = {}
    units: dict[str | None, str | None] = {}
    by = reading.options.by
    for batch in reading.reader.stream(statement("counters"), size=1000):
        for kernel, name, kind, agent, stream, value in batch:
            counter, unit = as_text(name), as_text(kind)
            lane = agent if by is By.AGENT else stream if by is By.STREAM else None
            cell = values.setdefault((number(lane), number(kernel), counter), [])
            units[counter] = unit
            if value is not None:
                cell.append(value)
    ids = np.array([kernel for _, kernel, _ in values], np.int64)
    names = kernel_texts(reading.reader, reading.options.kernel_names, ids)
    divisions: dict[Key, _Cells] = {}
    for (lane, kernel, counter), cell in values.items():
        merge(divisions.setdefault(reading.key(lane), {}), {(names.get(kernel), counter): _Values.of(cell)})
    return divisions, units


def _wide(reading: Reading, ordered: list[tuple[Key, _Cells]], units: dict[str | None, str]) -> Summary:
    names = sorted(units, key=lambda name: name or "")
    table = TABLES["counters-wide"]
    more = tuple(Field(name or "?", units[name], "mean") for name in names)
    rows = []
    for key, cells in ordered:
        for kernel in sorted({kernel for kernel, _ in cells}, key=lambda name: name or ""):
            means = [cells[kernel, name].row() if (kernel, name) in cells else (0, None, None) for name in names]
            rows.append((*key, kernel, max(row[0] for row in means), *(row[2] for row in means)))
    return reading.summary(TableDefinition(table.name, table.doc, (*table.fields, *more)), rows)
