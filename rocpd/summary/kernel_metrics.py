"""Calculates metrics of counters for each kernel: rank by rank, and of the passes of one program together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from rocpd.counters.definitions import Architecture, CounterMetric, MetricTable
from rocpd.counters.measured import Measured
from rocpd.counters.metrics import Calculator, MetricSums
from rocpd.errors import RocpdError
from rocpd.federate.open.identify import Rank
from rocpd.frozen import frozen
from rocpd.read.groups import grouped
from rocpd.summary.counted import each_program
from rocpd.summary.options import By, Options
from rocpd.summary.reading import Key, Reading, key_of
from rocpd.types import Ints

MetricKey: TypeAlias = tuple[str, str]
"""Number of the table, and the metric's name."""

GroupKey: TypeAlias = tuple[Key, "str | None", str]
"""Division, kernel, architecture."""

_WITHOUT_COUNTERS = "launch-stats"


@frozen
class KernelMetrics:
    """Metrics of one kernel in one division, on one kind of GPU; two of them add up.

    Args:
        time: of its dispatches [ns].
        sums: of each metric.
        peaks: of each metric that has one, as far as it is known.
        constants: of the GPU, for what is shown of a mean.
    """

    time: float
    sums: Mapping[MetricKey, MetricSums]
    peaks: Mapping[MetricKey, float | None]
    constants: Mapping[str, float]

    def __add__(self, other: KernelMetrics) -> KernelMetrics:
        sums = {key: sums + other.sums[key] for key, sums in self.sums.items()}
        return KernelMetrics(self.time + other.time, sums, self.peaks, self.constants)


KernelGroups: TypeAlias = dict[GroupKey, KernelMetrics]


def of_panels(reading: Reading, panels: Sequence[str]) -> KernelGroups:
    """Return the metrics of some panels.

    Raises:
        RocpdError: no kernels with counters, or none on an architecture that is known.
    """
    metrics: KernelGroups = {}
    is_counted = False
    work = partial(_of_measured, panels=tuple(panels))
    for _, of_rank in each_program(reading, work, needs_values=_WITHOUT_COUNTERS not in panels):
        is_counted = True
        _merge(metrics, of_rank)
    if not metrics:
        raise nothing_known(is_counted)
    return metrics


def nothing_known(is_counted: bool) -> RocpdError:
    """Return the error that says why nothing can be calculated: no values, or values of GPUs that are not known."""
    if is_counted:
        gpus = "those of gfx908, gfx90a, gfx940 to gfx942 and gfx950 are"
        return RocpdError("no kernels on GPUs whose counters are known", gpus)
    return RocpdError("no counter values of kernels in the selection", "rocprofv3 --pmc collects them")


def _merge(into: KernelGroups, added: Mapping[GroupKey, KernelMetrics]) -> None:
    for key, metrics in added.items():
        into[key] = into[key] + metrics if key in into else metrics


def _of_measured(counted: Measured, rank: Rank, options: Options, panels: tuple[str, ...]) -> KernelGroups:
    metrics: KernelGroups = {}
    for kind, hardware in enumerate(counted.hardware):
        known = hardware.architecture
        if known:
            chosen = np.flatnonzero(counted.gpus == kind)
            calculator = Calculator(counted, hardware, chosen, options.per, options.amd_compatible)
            _merge(metrics, dict(_of_gpu(calculator, counted, chosen, rank, options, _metrics_of(known, panels))))
    return metrics


def _metrics_of(known: Architecture, panels: Sequence[str]) -> list[tuple[MetricTable, CounterMetric]]:
    return [entry for name in panels for entry in known.panel(name)]


def _of_gpu(
    calculator: Calculator,
    counted: Measured,
    chosen: Ints,
    rank: Rank,
    options: Options,
    wanted: Sequence[tuple[MetricTable, CounterMetric]],
) -> Iterator[tuple[GroupKey, KernelMetrics]]:
    calculated = {(table.id, metric.name): calculator.calculate(metric) for table, metric in wanted}
    peaks = {(table.id, metric.name): calculator.constant(metric.peak) for table, metric in wanted if metric.peak}
    quartiles = {table.id for table, _ in wanted if table.has_quartiles}
    nothing = {key: MetricSums(0, missing=known.missing) for key, known in calculated.items() if known.values is None}
    durations = counted.durations[chosen]
    for (kernel, *lane), rows in divided(counted, chosen, options.by, has_kernels=not options.amd_compatible):
        sums = {
            key: nothing.get(key) or MetricSums.of(values, rows, key[0] in quartiles)
            for key, values in calculated.items()
        }
        name = None if kernel < 0 else counted.names[kernel]
        time = float(np.nansum(durations[rows]))
        yield (
            (division_of(options.by, rank, lane), name, calculator.architecture.name),
            KernelMetrics(time, sums, peaks, calculator.constants),
        )


def divided(
    counted: Measured, chosen: Ints, by: By | None, has_kernels: bool = True
) -> Iterator[tuple[tuple[int, ...], Ints]]:
    """Yield kernel (-1: every one) and lane of a division, and the places in `chosen` of their dispatches."""
    kernels = counted.kernels[chosen] if has_kernels else np.full(len(chosen), -1)
    lanes = {By.AGENT: counted.agents, By.DISPATCH: counted.numbers}
    return grouped([kernels, *(lane[chosen] for lane_of, lane in lanes.items() if lane_of is by)])


def division_of(by: By | None, rank: Rank, lane: Sequence[int]) -> Key:
    """Return the values of the columns of a division."""
    return (rank.number, *lane) if by is By.DISPATCH else key_of(by, rank, *lane)
