"""What was counted: counters, passes, dispatches; and what to collect for the metrics of each panel."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rocpd.counters.collect import block_of, collecting_runs
from rocpd.counters.definitions import Architecture, CounterMetric, architecture, is_counter, needs
from rocpd.counters.measured import Measured
from rocpd.counters.metrics import terms_of
from rocpd.counters.panels import PANELS
from rocpd.errors import RocpdError
from rocpd.federate.open.identify import Rank
from rocpd.frozen import frozen
from rocpd.read.groups import grouped
from rocpd.summary.counted import each_program
from rocpd.summary.options import Options
from rocpd.summary.reading import Reading, order_of
from rocpd.summary.result import Field, Summary, TableDefinition, by_name
from rocpd.types import Floats, Row

TABLES = by_name(
    TableDefinition(
        "collected",
        "Counters that were collected, and what they cover.",
        (
            Field("counter", "", "its name"),
            Field("block", "", "block of the hardware that counts"),
            Field("architecture", "", "of the GPUs"),
            Field("passes", "", "passes of the program that have it, from 1"),
            Field("instances", "", "most values of one dispatch, which are added up"),
            Field("dispatches", "", "dispatches with a value"),
            Field("of", "", "dispatches with any counter"),
        ),
    ),
    TableDefinition(
        "passes",
        "How long kernels took in each pass of the program: metrics of several passes are as certain as that is equal.",
        (
            Field("kernel", "", "kernel", is_kernel=True),
            Field("passes", "", "passes of which the times are known"),
            Field("dispatches", "", "dispatches of each"),
            Field("fastest_ns", "ns", "mean duration in the fastest pass"),
            Field("slowest_ns", "ns", "mean duration in the slowest pass"),
            Field("spread_percent", "%", "longest less shortest time of a dispatch, by its median; mean of dispatches"),
            Field("unmatched", "", "dispatches of a pass that the others do not have, of all kernels together"),
        ),
    ),
    TableDefinition(
        "to-collect",
        "What rocprofv3 has to collect for the metrics that lack counters, a run of the program each.",
        (
            Field("panel", "", "panel"),
            Field("architecture", "", "of the GPUs"),
            Field("run", "", "run of the program, from 1"),
            Field("option", "", "option of rocprofv3", is_command=True),
        ),
        is_exact=True,
    ),
)


@frozen
class CounterCoverage:
    """What a counter covers; two of them add up."""

    passes: frozenset[int]
    instances: int
    dispatches: int
    of: int

    def __add__(self, other: CounterCoverage) -> CounterCoverage:
        return CounterCoverage(
            self.passes | other.passes, max(self.instances, other.instances), self.dispatches + other.dispatches,
            self.of + other.of,
        )  # fmt: skip


@frozen
class PassTimes:
    """How long a kernel took in the passes of a program: sums over dispatches; two of them add up."""

    passes: int
    dispatches: int
    fastest: float
    slowest: float
    spread: float
    unmatched: int

    def __add__(self, other: PassTimes) -> PassTimes:
        sums = (getattr(self, name) + getattr(other, name) for name in ("fastest", "slowest", "spread", "unmatched"))
        return PassTimes(max(self.passes, other.passes), self.dispatches + other.dispatches, *sums)

    def row(self) -> Row:
        means = (total / self.dispatches for total in (self.fastest, self.slowest, self.spread))
        return (self.passes, self.dispatches, *means, self.unmatched)


_Covered = dict[tuple[str, str], CounterCoverage]
_Times = dict[str | None, PassTimes]


def collected(reading: Reading) -> Iterator[Summary]:
    """Return what was counted.

    Raises:
        RocpdError: nothing was.
    """
    covered: _Covered = {}
    times: _Times = {}
    for _, (of_rank, times_of_rank) in each_program(reading, _of_program):
        for key, coverage in of_rank.items():
            covered[key] = covered[key] + coverage if key in covered else coverage
        for kernel, spread in times_of_rank.items():
            times[kernel] = times[kernel] + spread if kernel in times else spread
    if not covered:
        raise RocpdError("no counter values of kernels in the selection", "rocprofv3 --pmc collects them")
    yield _summary("collected", (_row(*key, covered[key]) for key in sorted(covered)))
    if times and reading.wants("passes"):
        yield _summary(
            "passes", ((kernel, *times[kernel].row()) for kernel in sorted(times, key=lambda k: order_of((k,))))
        )
    yield _summary("to-collect", _to_collect(covered))


def _summary(name: str, rows: Iterator[Row]) -> Summary:
    return Summary(TABLES[name], TABLES[name].fields, list(rows))


def _row(counter: str, kind: str, coverage: CounterCoverage) -> Row:
    passes = " ".join(str(number) for number in sorted(coverage.passes))
    return (counter, block_of(counter), kind, passes, coverage.instances, coverage.dispatches, coverage.of)


def _of_program(counted: Measured, _rank: Rank, _options: Options) -> tuple[_Covered, _Times]:
    covered: _Covered = {}
    for number, one in enumerate(counted.passes, 1):
        for name, rows in one.counters.items():
            instances = np.bincount(rows.rows, minlength=counted.count)
            for kind, hardware in enumerate(counted.hardware):
                of_kind = counted.gpus == kind
                if not (dispatches := int(np.count_nonzero(instances[of_kind]))):
                    continue
                most, every = int(instances[of_kind].max()), int(np.count_nonzero(of_kind))
                coverage = CounterCoverage(frozenset([number]), most, dispatches, every)
                known = covered.get((name, hardware.name))
                covered[name, hardware.name] = _in_both(known, coverage) if known else coverage
    return covered, _times(counted)


def _in_both(known: CounterCoverage, other: CounterCoverage) -> CounterCoverage:
    """Return what a counter covers that several passes have: the same dispatches."""
    dispatches = max(known.dispatches, other.dispatches)
    return CounterCoverage(known.passes | other.passes, max(known.instances, other.instances), dispatches, known.of)


def _times(counted: Measured) -> _Times:
    passes = [one.durations for one in counted.passes if one.durations is not None]
    if len(passes) < 2:
        return {}
    durations: Floats = np.array(passes)
    times: _Times = {}
    for (kernel,), rows in grouped([counted.kernels]):
        some = durations[:, rows]
        some = some[:, ~np.isnan(some).any(axis=0)]
        if some.shape[1]:
            totals = some.sum(axis=1)
            spread = 100 * (some.max(axis=0) - some.min(axis=0)) / np.median(some, axis=0)
            times[counted.names[kernel]] = PassTimes(
                len(passes), some.shape[1], float(totals.min()), float(totals.max()), float(spread.sum()),
                counted.unmatched,
            )  # fmt: skip
    return times


def _to_collect(covered: _Covered) -> Iterator[Row]:
    for kind in sorted({kind for _, kind in covered}):
        known = architecture(kind)
        if known is None:
            continue
        names = {counter for counter, other in covered if other == kind}
        for panel in PANELS:
            lacking = (_counters(known, metric) for _, metric in known.panel(panel))
            runs = collecting_runs(counters for counters in lacking if not all(_has(names, one) for one in counters))
            yield from ((panel, kind, number, run.line) for number, run in enumerate(runs, 1))


def _counters(known: Architecture, metric: CounterMetric) -> list[str]:
    return [name for name in needs(metric.value, terms_of(known)) if is_counter(name)]


def _has(names: set[str], name: str) -> bool:
    if name.startswith("ACC("):
        return f"{name[4:-1]}_ACCUM" in names or {"SQ_ACCUM_PREV_HIRES", name[4:-1]} <= names
    return name in names or name.removesuffix("_sum") in names
