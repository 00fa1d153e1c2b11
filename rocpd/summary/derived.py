"""Derived counters of each kernel: by the formulas that the file has of them, or else rocprofv3's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from rocpd.counters.derived import DerivedCalculator, DerivedValues
from rocpd.counters.measured import Measured
from rocpd.counters.metrics import Calculated, MetricSums
from rocpd.federate.open.identify import Rank
from rocpd.frozen import frozen
from rocpd.summary.counted import are_counted, each_program
from rocpd.summary.kernel_metrics import divided, division_of, nothing_known
from rocpd.summary.options import Options
from rocpd.summary.reading import Key, Reading, order_of
from rocpd.summary.result import Field, Summary, TableDefinition, by_name
from rocpd.types import Floats, Ints, Row

TABLES = by_name(
    TableDefinition(
        "derived",
        "Counters that are derived from others, by kernel.",
        (
            Field("kernel", "", "kernel", is_kernel=True),
            Field("metric", "", "derived counter, as rocprofv3 has it"),
            Field("value", "", "mean of dispatches, calculated of the counters that it is derived from"),
            Field("collected", "", "mean of what the profiler calculated itself; NULL: it did not"),
            Field("min", "", "smallest value of a dispatch", True),
            Field("max", "", "largest", True),
            Field("dispatches", "", "dispatches with a calculated value"),
            Field("source", "", "whose formula it is: the file's, or rocprofv3's for the architecture"),
            Field("passes", "", "passes of the program that its counters are of", True),
            Field("expression", "", "the formula", True),
        ),
    ),
    TableDefinition(
        "derived-missing",
        "Derived counters that the file defines or rocprofv3 knows and that can't be calculated.",
        (
            Field("metric", "", "derived counter"),
            Field("architecture", "", "of the GPUs"),
            Field("source", "", "whose formula it is"),
            Field("reason", "", "why not"),
        ),
    ),
)


@frozen
class DerivedSums:
    """A derived counter of one kernel; two of them add up."""

    calculated: MetricSums
    collected: MetricSums
    is_files_own: bool
    expression: str

    def __add__(self, other: DerivedSums) -> DerivedSums:
        collected = self.collected + other.collected
        return DerivedSums(self.calculated + other.calculated, collected, self.is_files_own, self.expression)

    def row(self) -> Row:
        sums = self.calculated
        least, most = (sums.least, sums.most) if sums.count else (None, None)
        source = _source(self.is_files_own)
        return (sums.mean, self.collected.mean, least, most, sums.count, source, sums.passes, self.expression)


_Rows = dict[tuple[Key, "str | None", str], DerivedSums]
_Missing = dict[tuple[str, str], tuple[str, str]]


def derived(reading: Reading) -> Iterator[Summary]:
    """Return derived counters, and those that can't be calculated.

    Raises:
        RocpdError: there are no counter values, or none of a GPU whose formulas are known.
    """
    rows: _Rows = {}
    missing: _Missing = {}
    for _, (of_rank, missing_in_rank) in each_program(reading, _of_program):
        for key, sums in of_rank.items():
            rows[key] = rows[key] + sums if key in rows else sums
        missing |= missing_in_rank
    if not rows and not missing:
        raise nothing_known(are_counted(reading))
    ordered = sorted(rows, key=lambda key: (order_of(key[0]), order_of(key[1:])))
    yield reading.summary(TABLES["derived"], [(*key[0], *key[1:], *rows[key].row()) for key in ordered])
    known = {key[2] for key in rows}
    lacking = [(*key, *missing[key]) for key in sorted(missing) if key[0] not in known]
    yield Summary(TABLES["derived-missing"], TABLES["derived-missing"].fields, lacking)


def _of_program(counted: Measured, rank: Rank, options: Options) -> tuple[_Rows, _Missing]:
    rows: _Rows = {}
    missing: _Missing = {}
    for kind, hardware in enumerate(counted.hardware if counted.passes else ()):
        chosen = np.flatnonzero(counted.gpus == kind)
        calculator = DerivedCalculator(counted, hardware, chosen)
        for name, counter in calculator.counters.items():
            answer, collected = calculator.calculate(name), calculator.collected(name)
            if answer.values is None and collected is None:
                missing[name, hardware.name] = (_source(counter.is_files_own), str(answer.reason))
                continue
            for (kernel, *lane), some in divided(counted, chosen, options.by):
                sums = DerivedSums(
                    _sums(answer, some), _sums(DerivedValues(collected), some), counter.is_files_own, counter.expression
                )  # fmt: skip
                key = division_of(options.by, rank, lane), counted.names[kernel], name
                rows[key] = rows[key] + sums if key in rows else sums
    return rows, missing


def _sums(answer: DerivedValues, rows: Ints) -> MetricSums:
    values: Floats | None = answer.values
    leaves: Mapping[str, Floats] = {}
    return MetricSums.of(Calculated(values, leaves, passes=answer.passes), rows)


def _source(is_files_own: bool) -> str:
    return "file" if is_files_own else "rocprofv3"
