"""Panels: what counters say of kernels, in the tables that rocprof-compute's users know.

One engine shows them all; the files of `rocpd.counters` define their metrics.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from rocpd.counters.definitions import CounterMetric, MetricTable, architecture
from rocpd.counters.formula import evaluate
from rocpd.counters.metrics import LeafScope, MetricSums, terms_of
from rocpd.counters.panels import PANELS
from rocpd.frozen import frozen
from rocpd.summary.kernel_metrics import KernelMetrics, MetricKey, of_panels
from rocpd.summary.options import Options
from rocpd.summary.reading import DIVISIONS, Reading, order_of
from rocpd.summary.result import Field, Summary, TableDefinition, by_name
from rocpd.types import Row

_DIFFERENT = 0.05  # means of ratios and ratios of sums that differ by more say different things
_LONGER, _SHORTER = 1.1, 0.25  # counted cycles by those that the highest clock allows

FIELDS = (
    Field("kernel", "", "kernel; NULL: every one", is_kernel=True),
    Field("table", "", "number and name of the table in rocprof-compute", True),
    Field("metric", "", "what is calculated", matters=True),
    Field("value", "", "mean of dispatches"),
    Field("unit", "", "its unit"),
    Field("peak", "", "the highest that the GPU can reach; NULL: unknown, or there is none"),
    Field("percent", "%", "value by peak"),
    Field(
        "of_sums", "", "the same of all dispatches together, where that differs from the mean by more than 5 %", True
    ),
    Field("min", "", "smallest value of a dispatch", True),
    Field("q1", "", "lower quartile, in tables of stalls", True),
    Field("median", "", "median, in tables of stalls", True),
    Field("q3", "", "upper quartile, in tables of stalls", True),
    Field("max", "", "largest", True),
    Field("dispatches", "", "dispatches with a value", True),
    Field("missing", "", "what is missing for a value: counters, or constants of the GPU", True),
    Field("note", "", "what to know before using the value", True),
)

_CONTENTS = TableDefinition(
    "panels",
    "What the counters suffice for: metrics of each panel, and what the others lack.",
    (
        Field("panel", "", "its name, by which it is shown alone"),
        Field("architecture", "", "of the GPUs"),
        Field("what", "", "what it shows"),
        Field("metrics", "", "metrics with values"),
        Field("of", "", "metrics that it has in all"),
        Field("missing", "", "counters that were not collected, and unknown constants of the GPU", True),
    ),
)

TABLES = by_name(
    _CONTENTS,
    *(TableDefinition(name, f"{what[0].upper()}{what[1:]}; by kernel.", FIELDS) for name, what in PANELS.items()),
)


@frozen
class _Panel:
    """A panel of one kind of GPU, and what is asked of it."""

    name: str
    kind: str
    options: Options

    def metrics(self) -> Iterator[tuple[MetricTable, CounterMetric]]:
        known = architecture(self.kind)
        return known.panel(self.name) if known else iter(())

    def rows(
        self, kernel: str | None, metrics: KernelMetrics, unmeasured: frozenset[MetricKey], has_values: bool = True
    ) -> Iterator[Row]:
        """Yield the metrics that some kernel has, or else those that none has."""
        for table, metric in self.metrics():
            if ((table.id, metric.name) in unmeasured) is not has_values:
                yield self._row(kernel, table, metric, metrics)

    def _row(self, kernel: str | None, table: MetricTable, metric: CounterMetric, metrics: KernelMetrics) -> Row:
        sums = metrics.sums[table.id, metric.name]
        shown = _shown(metric, sums, metrics.constants)
        peak = metrics.peaks.get((table.id, metric.name))
        percent = 100 * shown / peak if shown is not None and peak else None
        unit = f"{metric.unit}/{self.options.per}" if metric.is_per else metric.unit
        quartiles = np.quantile(sums.every, (0.25, 0.5, 0.75)).tolist() if sums.every else [None] * 3
        least, most = (None, None) if metric.of_mean or not sums.count else (sums.least, sums.most)
        values = (shown, unit, peak, percent, self._of_sums(metric, sums), least, *quartiles, most, sums.count)
        return (kernel, f"{table.id} {table.name}", metric.name, *values, " ".join(sums.missing) or None, _note(sums))

    def _of_sums(self, metric: CounterMetric, sums: MetricSums) -> float | None:
        """Return the value of all dispatches together, where it says something else than their mean."""
        known, mean = architecture(self.kind), sums.mean
        if metric.of_mean or not known or mean is None:
            return None
        value = sums.of_sums(metric.value, terms_of(known, self.options.per))
        return None if value is None or math.isclose(value, mean, rel_tol=_DIFFERENT, abs_tol=1e-12) else value


def panels(reading: Reading) -> Iterator[Summary]:
    """Return what each panel has, and the panels; metrics that no kernel has come last in these, once.

    Raises:
        RocpdError: no kernels, or none on an architecture that is known.
    """
    names = [name for name in PANELS if reading.wants(name) or reading.wants("panels")]
    groups = of_panels(reading, names)
    kinds: dict[str, list[KernelMetrics]] = {}
    for (_, _, kind), metrics in groups.items():
        kinds.setdefault(kind, []).append(metrics)
    unmeasured = {kind: _unmeasured(every) for kind, every in kinds.items()}
    if reading.wants("panels"):
        contents = list(_contents(names, kinds, unmeasured, reading.options))
        yield Summary(TABLES["panels"], TABLES["panels"].fields, contents)
    keys = sorted(groups, key=lambda key: (order_of(key[0]), -groups[key].time, order_of(key[1:])))
    nowhere = (None,) * len(DIVISIONS[reading.by])
    for name in names:
        rows: list[Row] = []
        for division, kernel, kind in keys:
            shown = _Panel(name, kind, reading.options)
            rows += ((*division, *row) for row in shown.rows(kernel, groups[division, kernel, kind], unmeasured[kind]))
        for kind, (any_kernel, *_) in kinds.items():
            shown = _Panel(name, kind, reading.options)
            rows += ((*nowhere, *row) for row in shown.rows(None, any_kernel, unmeasured[kind], has_values=False))
        yield reading.summary(TABLES[name], rows)


def _unmeasured(every: Sequence[KernelMetrics]) -> frozenset[MetricKey]:
    """Return the metrics for which something is missing with every kernel."""
    return frozenset(key for key in every[0].sums if all(metrics.sums[key].missing for metrics in every))


def _contents(
    names: Sequence[str],
    kinds: Mapping[str, Sequence[KernelMetrics]],
    unmeasured: Mapping[str, frozenset[MetricKey]],
    options: Options,
) -> Iterator[Row]:
    for name in names:
        for kind, every in kinds.items():
            keys = [(table.id, metric.name) for table, metric in _Panel(name, kind, options).metrics()]
            lacking = {key: every[0].sums[key].missing for key in keys if key in unmeasured[kind]}
            missing = dict.fromkeys(counter for some in lacking.values() for counter in some)
            yield (name, kind, PANELS[name], len(keys) - len(lacking), len(keys), " ".join(missing) or None)


def _shown(metric: CounterMetric, sums: MetricSums, constants: Mapping[str, float]) -> float | None:
    """Return the mean of dispatches, or what is shown of it."""
    mean = sums.mean
    if mean is None or metric.of_mean is None:
        return mean
    known = {**constants, "mean": mean}
    return float(evaluate(metric.of_mean, LeafScope({}, known.__getitem__)))


def _note(sums: MetricSums) -> str | None:
    notes = []
    if sums.passes > 1:
        notes.append(f"counters of {sums.passes} passes")
    if sums.window is not None and sums.window > _LONGER:
        notes.append(f"cycles were counted {sums.window:.1f} times as long as the kernel ran: too low by that factor")
    if sums.window is not None and sums.window < _SHORTER:
        notes.append("counters and times are of different runs")
    return "; ".join(notes) or None
