"""Metrics of counters for each kernel: panels, derived counters, the roofline, and the table of SQL."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from rocpd.base import Ints, RocpdError, Row, UsageError, amount, by_key, frozen
from rocpd.counters.definitions import CounterMetric, MetricTable, architecture
from rocpd.counters.formula import evaluate
from rocpd.counters.measured import Measured
from rocpd.counters.metrics import Calculated, Calculator, DerivedCalculator, MetricSums, terms_of
from rocpd.counters.panels import PANELS, Per
from rocpd.counters.roofline import INTEGERS, LESS, LEVELS, NEAR, TABLE, TYPES, MeasuredKernel, measured_rates, sentence
from rocpd.facts.columns import grouped
from rocpd.facts.rank import By, Key, Options, key_of
from rocpd.facts.short_names import short_names
from rocpd.federate.federation import Federation
from rocpd.federate.open.identify import Rank
from rocpd.federate.relation import Given, JobRelation
from rocpd.schema.calculated import Argument, CalculatedTable
from rocpd.schema.rules.kernel_categories import Categories, is_communication, load
from rocpd.summary.counters.counters import are_counted, each_program, not_counted
from rocpd.summary.findings import Confidence, Finding, Verdict
from rocpd.summary.grouping import Sums, merge, order_of, together
from rocpd.summary.reading import DIVISIONS, Reading, Tables, columns_of, divided_by, division, planned, run_planned
from rocpd.summary.result import Field, Summary, by_name, table_of

_DIFFERENT = 0.05  # relative difference from which on means of ratios and ratios of sums are both shown
_LONGER, _SHORTER = 1.1, 0.25  # counted cycles divided by those at the highest clock

FIELDS = (
    Field("kernel", "", "kernel; NULL: every one", is_kernel=True),
    Field("table", "", "number and name of the table in rocprof-compute", True),
    Field("metric", "", "the calculated quantity", matters=True),
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
    Field("missing", "", "counters, or constants of the GPU, that a value needs and that are missing", True),
    Field("note", "", "limits of the value, to know before using it", True),
)

_CONTENTS = table_of(
    "panels",
    "Metrics of each panel that the counters suffice for, and the counters that the others lack.",
    Field("panel", "", "its name, by which it is shown alone"),
    Field("architecture", "", "of the GPUs"),
    Field("what", "", "its subject"),
    Field("metrics", "", "metrics with values"),
    Field("of", "", "metrics that it has in all"),
    Field("missing", "", "counters that were not collected, and unknown constants of the GPU", True),
)

_FEW = 5  # kernels that have a sentence each

TABLES = by_name(
    _CONTENTS,
    *(table_of(name, f"{what[0].upper()}{what[1:]}; by kernel.", *FIELDS) for name, what in PANELS.items()),
    table_of(
        "derived",
        "Counters that are derived from others, by kernel.",
        Field("kernel", "", "kernel", is_kernel=True),
        Field("metric", "", "derived counter, as rocprofv3 has it"),
        Field("value", "", "mean of dispatches, calculated of the counters that it is derived from"),
        Field("collected", "", "mean of the values that the profiler calculated itself; NULL: it did not"),
        Field("min", "", "smallest value of a dispatch", True),
        Field("max", "", "largest", True),
        Field("dispatches", "", "dispatches with a calculated value"),
        Field("source", "", "whose formula it is: the file's, or rocprofv3's for the architecture"),
        Field("passes", "", "passes of the program that its counters are of", True),
        Field("expression", "", "the formula", True),
    ),
    table_of(
        "derived-missing",
        "Derived counters that the file defines or rocprofv3 knows and that can't be calculated.",
        Field("metric", "", "derived counter"),
        Field("architecture", "", "of the GPUs"),
        Field("source", "", "whose formula it is"),
        Field("reason", "", "why not"),
    ),
    table_of(
        "roofline",
        "Kernels under the roofs of operations and of levels of memory; most time first.",
        Field("kernel", "", "kernel", is_kernel=True),
        Field("level", "", "level of memory"),
        Field("type", "", "type of most of its operations; NULL without operations", True),
        Field(
            "flops",
            "",
            "floating-point operations of a dispatch, of all types; integer ones where these are more",
            True,
        ),
        Field("bytes", "bytes", "bytes that a dispatch moves from or to the level", True),
        Field("intensity", "", "operations by bytes; NULL without bytes"),
        Field("gflop_per_s", "GFLOP/s", "operations by time", True),
        Field("roof_gflop_per_s", "GFLOP/s", "the most that the type and the level allow", True),
        Field("roof_percent", "%", "operations by those; NULL without operations"),
        Field("gb_per_s", "GB/s", "bytes by time", True),
        Field("peak_gb_per_s", "GB/s", "highest rate of the level", True),
        Field("bandwidth_percent", "%", "bytes by that"),
        Field("peak_gflop_per_s", "GFLOP/s", "highest rate of the type", True),
        Field(
            "bound", "", f"the limit that is {NEAR:.0f} % near or more: a type of operations or a level; NULL: none is"
        ),
        Field("dispatches", "", "dispatches with counters", True),
        Field("roofs", "", "where the highest rates are from: theoretical or measured", True),
        Field("note", "", "work that was not counted, and so is not in it", True),
        Field("nearest", "", "the limit that is nearest, however far it is", True),
        Field("nearest_percent", "%", "how near", True),
        chart="rocpd.summary.plots:roofline",
    ),
)

MetricKey: TypeAlias = tuple[str, str]
"""Number of the table, and name of the metric."""

GroupKey: TypeAlias = tuple[Key, "str | None", str]
"""Division, kernel, architecture."""

_WITHOUT_COUNTERS = "launch-stats"


@frozen
class KernelMetrics:
    """Metrics of one kernel in one division, on one kind of GPU; two of them add up.

    Args:
        time: time of its dispatches [ns].
        sums: sums of each metric that was calculated.
        lacking: each other metric -> the counters that were not collected; most metrics lack some.
        peaks: peak of each metric that has one, as far as it is known.
        constants: constants of the GPU, for values derived from a mean.
    """

    time: float
    sums: Mapping[MetricKey, MetricSums]
    lacking: Mapping[MetricKey, tuple[str, ...]]
    peaks: Mapping[MetricKey, float | None]
    constants: Mapping[str, float]

    def __add__(self, other: KernelMetrics) -> KernelMetrics:
        sums = {key: self.of(key) + other.of(key) for key in {**self.sums, **other.sums}}
        lacking = self.lacking
        if lacking != other.lacking:
            lacking = {key: missing for key, missing in {**lacking, **other.lacking}.items() if key not in sums}
        return KernelMetrics(self.time + other.time, sums, lacking, self.peaks, self.constants)

    def __reduce__(self) -> tuple[Any, ...]:
        alike = (tuple(column.items()) for column in (self.lacking, self.peaks, self.constants))
        return _kernel_metrics, (self.time, self.sums, *alike)

    def of(self, key: MetricKey) -> MetricSums:
        """Return the sums of a metric."""
        return self.sums.get(key) or MetricSums(0, missing=self.lacking.get(key, ()))

    def has(self, name: str) -> bool:
        """Whether the panel of rooflines has a metric for this GPU."""
        return (TABLE, name) in self.sums or (TABLE, name) in self.lacking


def _kernel_metrics(
    time: float, sums: Mapping[MetricKey, MetricSums], *columns: tuple[tuple[Any, Any], ...]
) -> KernelMetrics:
    """Return metrics that share equal objects with those of other ranks."""
    return KernelMetrics(time, sums, *map(_shared, columns))


@functools.lru_cache(64)
def _shared(items: tuple[tuple[Any, Any], ...]) -> dict[Any, Any]:
    return dict(items)


KernelGroups: TypeAlias = dict[GroupKey, KernelMetrics]


def nothing_known(is_counted: bool) -> RocpdError:
    """Return the error that nothing can be calculated: for lack of values, or of known GPUs."""
    if is_counted:
        gpus = "those of gfx908, gfx90a, gfx940 to gfx942 and gfx950 are"
        return RocpdError("no kernels on GPUs whose counters are known", gpus)
    return not_counted()


def _of_measured(counted: Measured, rank: Rank, options: Options, panels: tuple[str, ...]) -> KernelGroups:
    metrics: KernelGroups = {}
    for kind, hardware in enumerate(counted.hardware):
        if known := hardware.architecture:
            chosen = (counted.gpus == kind).nonzero()[0]
            wanted = [entry for name in panels for entry in known.panel(name)]
            calculator = Calculator(counted, hardware, chosen, options.per, options.amd_compatible)
            merge(metrics, dict(_of_gpu(calculator, counted, chosen, rank, options, wanted)))
    return metrics


_Entry: TypeAlias = tuple[MetricTable, CounterMetric]


def _of_gpu(
    calculator: Calculator, counted: Measured, chosen: Ints, rank: Rank, options: Options, wanted: Sequence[_Entry]
) -> Iterator[tuple[GroupKey, KernelMetrics]]:
    calculated = {(table.id, metric.name): calculator.calculate(metric) for table, metric in wanted}
    peaks = {(table.id, metric.name): calculator.constant(metric.peak) for table, metric in wanted if metric.peak}
    quartiles = {table.id for table, _ in wanted if table.has_quartiles}
    lacking = {key: known.missing for key, known in calculated.items() if known.values is None}
    alike = [tuple(column.items()) for column in (lacking, peaks, calculator.constants)]
    measured = {key: known for key, known in calculated.items() if known.values is not None}
    durations = counted.durations[chosen]
    for (kernel, *lane), rows in divided(counted, chosen, options.by, has_kernels=not options.amd_compatible):
        sums = {key: MetricSums.of(known, rows, key[0] in quartiles) for key, known in measured.items()}
        name = None if kernel < 0 else counted.names[kernel]
        time = float(np.nansum(durations[rows]))
        key = key_of(options.by, rank, *lane), name, calculator.architecture.name
        yield key, _kernel_metrics(time, sums, *alike)


def divided(
    counted: Measured, chosen: Ints, by: By | None, has_kernels: bool = True
) -> Iterator[tuple[tuple[int, ...], Ints]]:
    """Yield kernel (-1: all) and lane of a division, with the places of their dispatches in `chosen`."""
    kernels = counted.kernels[chosen] if has_kernels else np.full(len(chosen), -1)
    lanes = {By.AGENT: counted.agents, By.DISPATCH: counted.numbers}
    return grouped([kernels, *(lane[chosen] for lane_of, lane in lanes.items() if lane_of is by)])


@frozen
class _Panel:
    """A panel of one kind of GPU, with the options for it."""

    name: str
    kind: str
    options: Options

    def metrics(self) -> Iterator[_Entry]:
        known = architecture(self.kind)
        return known.panel(self.name) if known else iter(())

    def rows(
        self, kernel: str | None, metrics: KernelMetrics, unmeasured: frozenset[MetricKey], has_values: bool = True
    ) -> Iterator[Row]:
        """Yield the metrics that at least one kernel has; without `has_values`, those that none has."""
        for table, metric in self.metrics():
            if ((table.id, metric.name) in unmeasured) is not has_values:
                yield self._row(kernel, table, metric, metrics)

    def _row(self, kernel: str | None, table: MetricTable, metric: CounterMetric, metrics: KernelMetrics) -> Row:
        sums = metrics.of((table.id, metric.name))
        shown = _shown(metric, sums, metrics.constants)
        peak = metrics.peaks.get((table.id, metric.name))
        percent = 100 * shown / peak if shown is not None and peak else None
        unit = f"{metric.unit}/{self.options.per}" if metric.is_per else metric.unit
        quartiles = np.quantile(sums.every, (0.25, 0.5, 0.75)).tolist() if sums.every else [None] * 3
        least, most = (None, None) if metric.of_mean or not sums.count else (sums.least, sums.most)
        values = (shown, unit, peak, percent, self._of_sums(metric, sums), least, *quartiles, most, sums.count)
        return (kernel, f"{table.id} {table.name}", metric.name, *values, " ".join(sums.missing) or None, _note(sums))

    def _of_sums(self, metric: CounterMetric, sums: MetricSums) -> float | None:
        """Return the value of all dispatches together, if it differs from their mean."""
        known, mean = architecture(self.kind), sums.mean
        if metric.of_mean or not known or mean is None:
            return None
        value = sums.of_sums(metric.value, terms_of(known, self.options.per))
        return None if value is None or math.isclose(value, mean, rel_tol=_DIFFERENT, abs_tol=1e-12) else value


def panels(reading: Reading) -> Tables:
    """Return the contents of all panels, and the panels; each has metrics that no kernel has last, and only once.

    Raises:
        RocpdError: no kernels, or none on an architecture that is known.
    """
    names = [name for name in PANELS if reading.wants(name) or reading.wants("panels")]
    work = partial(_of_measured, panels=tuple(names))
    answers, programs = each_program(reading, work, together, needs_values=_WITHOUT_COUNTERS not in names)
    yield answers
    answered = [of_rank for _, of_rank in programs]
    groups: KernelGroups = together([{}, *answered])
    if not groups:
        raise nothing_known(bool(answered))
    kinds = by_key((kind, metrics) for (_, _, kind), metrics in groups.items())
    unmeasured = {kind: _unmeasured(every) for kind, every in kinds.items()}
    if reading.wants("panels"):
        contents = list(_contents(names, kinds, unmeasured, reading.options))
        yield Summary.whole(TABLES["panels"], contents)
    keys = sorted(groups, key=lambda key: (order_of(key[0]), -groups[key].time, order_of(key[1:])))
    nowhere = (None,) * len(DIVISIONS[reading.by])
    for name in names:
        shown = {kind: _Panel(name, kind, reading.options) for kind in kinds}
        rows: list[Row] = []
        for key in keys:
            rows += ((*key[0], *row) for row in shown[key[2]].rows(key[1], groups[key], unmeasured[key[2]]))
        for kind, (any_kernel, *_) in kinds.items():
            rows += ((*nowhere, *row) for row in shown[kind].rows(None, any_kernel, unmeasured[kind], has_values=False))
        yield reading.summary(TABLES[name], rows)


def _unmeasured(kernels: Sequence[KernelMetrics]) -> frozenset[MetricKey]:
    """Return the metrics that lack something for every kernel."""
    keys = *kernels[0].sums, *kernels[0].lacking
    return frozenset(key for key in keys if all(metrics.of(key).missing for metrics in kernels))


def _contents(
    names: Sequence[str],
    kinds: Mapping[str, Sequence[KernelMetrics]],
    unmeasured: Mapping[str, frozenset[MetricKey]],
    options: Options,
) -> Iterator[Row]:
    for name in names:
        for kind, kernels in kinds.items():
            keys = [(table.id, metric.name) for table, metric in _Panel(name, kind, options).metrics()]
            lacking = {key: kernels[0].of(key).missing for key in keys if key in unmeasured[kind]}
            missing = dict.fromkeys(counter for some in lacking.values() for counter in some)
            yield (name, kind, PANELS[name], len(keys) - len(lacking), len(keys), " ".join(missing) or None)


def _shown(metric: CounterMetric, sums: MetricSums, constants: Mapping[str, float]) -> float | None:
    """Return the mean of dispatches, or the value derived from it."""
    mean = sums.mean
    if mean is None or metric.of_mean is None:
        return mean
    known = {**constants, "mean": mean}
    return float(evaluate(metric.of_mean, known.__getitem__))


def _note(sums: MetricSums) -> str | None:
    notes = []
    if sums.passes > 1:
        notes.append(f"counters of {sums.passes} passes")
    if sums.window is not None and sums.window > _LONGER:
        notes.append(f"cycles were counted {sums.window:.1f} times as long as the kernel ran: too low by that factor")
    if sums.window is not None and sums.window < _SHORTER:
        notes.append("counters and times are of different runs")
    return "; ".join(notes) or None


_Rows = dict[tuple[Key, "str | None", str], Sums]
"""Division, kernel and counter -> calculated values, and collected values."""

_Formulas = dict[tuple[Key, "str | None", str], tuple[str, str]]
_Missing = dict[tuple[str, str], tuple[str, str]]


def derived(reading: Reading) -> Tables:
    """Return derived counters, and those that can't be calculated.

    Raises:
        RocpdError: there are no counter values, or none of a GPU whose formulas are known.
    """
    answers, programs = each_program(reading, _of_program, _of_programs)
    yield answers
    sums, formulas, missing = _of_programs([of_rank for _, of_rank in programs])
    if not sums and not missing:
        raise nothing_known(are_counted(reading))
    rows = []
    for key in sorted(sums, key=lambda key: (order_of(key[0]), order_of(key[1:]))):
        (calculated, collected), (source, formula) = sums[key], formulas[key]
        least, most = (calculated.least, calculated.most) if calculated.count else (None, None)
        counts = calculated.count, source, calculated.passes
        rows.append((*key[0], *key[1:], calculated.mean, collected.mean, least, most, *counts, formula))
    yield reading.summary(TABLES["derived"], rows)
    known = {key[2] for key in sums}
    lacking = [(*key, *missing[key]) for key in sorted(missing) if key[0] not in known]
    yield Summary.whole(TABLES["derived-missing"], lacking)


_Derived = tuple[_Rows, _Formulas, _Missing]


def _of_programs(every: Sequence[_Derived]) -> _Derived:
    """Return several answers as one; each formula is that of the first answer that has it."""
    formulas: _Formulas = {}
    missing: _Missing = {}
    for _, formulas_in_rank, missing_in_rank in every:
        formulas = formulas_in_rank | formulas
        missing |= missing_in_rank
    return together([{}, *(of_rank for of_rank, *_ in every)]), formulas, missing


def _of_program(counted: Measured, rank: Rank, options: Options) -> _Derived:
    sums: _Rows = {}
    formulas: _Formulas = {}
    missing: _Missing = {}
    for kind, hardware in enumerate(counted.hardware if counted.passes else ()):
        chosen = (counted.gpus == kind).nonzero()[0]
        calculator = DerivedCalculator(counted, hardware, chosen)
        for name, formula in calculator.expressions.items():
            answer, collected = calculator.calculate(name), calculator.collected(name)
            source = "file" if name in counted.expressions else "rocprofv3"
            if isinstance(answer, str) and collected.values is None:
                missing[name, hardware.name] = source, answer
                continue
            calculated = Calculated(None) if isinstance(answer, str) else answer
            for (kernel, *lane), of_lane in divided(counted, chosen, options.by):
                key = key_of(options.by, rank, *lane), counted.names[kernel], name
                merge(sums, {key: Sums((MetricSums.of(calculated, of_lane), MetricSums.of(collected, of_lane)))})
                formulas.setdefault(key, (source, formula))
    return sums, formulas, missing


def roofline(reading: Reading) -> Tables:
    """Return the places of kernels in the roofline.

    Raises:
        RocpdError: operations or bytes of no kernel were counted.
        UsageError: the file of measured rates has none in it.
    """
    roofs = _measured(reading.options.roofs)
    answers, programs = each_program(reading, _of_roofline, together, needs_values=True)
    yield answers
    groups, times = together([({}, {}), *(of_program for _, of_program in programs)])
    if not groups:
        raise nothing_known(bool(times))
    placed: dict[GroupKey, MeasuredKernel] = {}
    for key in sorted(groups, key=lambda key: (order_of(key[0]), -groups[key].time, order_of(key[1:]))):
        if kernel := _kernel(groups[key], roofs):
            placed[key] = kernel
    if not placed:
        raise RocpdError(
            "roofline: operations and bytes of no kernel were counted", "`rocpd counters` says how to collect them"
        )
    source = "measured" if roofs else "theoretical"
    rows = [row for key, kernel in placed.items() for row in _rows(key, kernel, groups[key], source)]
    findings = [*_not_placed(times, placed, load(reading.options.categories)), *_findings(placed)]
    yield reading.summary(TABLES["roofline"], rows, findings=findings)


def _measured(path: Path | None) -> dict[str, float]:
    if path is None:
        return {}
    try:
        return measured_rates(path.read_text(encoding="utf-8").splitlines(), str(path))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error


def _kernel(metrics: KernelMetrics, roofs: Mapping[str, float]) -> MeasuredKernel | None:
    """Return the counted values of a kernel; None: no operations, no bytes, or no time."""
    time = metrics.of((TABLE, "time")).mean
    floats, integers, traffic = (
        {name: mean for name in names if (mean := _mean(metrics, name)) is not None}
        for names in (TYPES, INTEGERS, LEVELS)
    )
    operations = integers if sum(integers.values()) > sum(floats.values()) else floats
    known = (*TYPES, *INTEGERS, *LEVELS)
    rates = {name: peak for (_, name), peak in metrics.peaks.items() if peak and name in known}
    return MeasuredKernel(time, operations, traffic, {**rates, **roofs}) if time and operations and traffic else None


def _mean(metrics: KernelMetrics, name: str) -> float | None:
    for which in (name, LESS.get(name)):
        if which and (sums := metrics.of((TABLE, which))).count:
            return sums.mean
    return None


def _rows(key: GroupKey, kernel: MeasuredKernel, metrics: KernelMetrics, source: str) -> Iterator[Row]:
    division, name, _ = key
    absent = [which for which in TYPES if metrics.has(which) and _mean(metrics, which) is None]
    less = [
        LESS[which]
        for which in (*kernel.operations, *kernel.traffic)
        if which in LESS and not metrics.of((TABLE, which)).count
    ]
    notes = [f"{', '.join(less)} taken"] if less else []  # first, as narrow tables leave out the middle of a note
    notes += [f"not counted: {', '.join(absent)}"] if absent else []
    dispatches = metrics.of((TABLE, "time")).count
    for level in kernel.traffic:
        roof = kernel.roof(level) if kernel.flops else None
        reached = 100 * kernel.rate / roof if roof else None
        highest = kernel.rates.get(kernel.type) if kernel.flops else None
        kind = kernel.type if kernel.flops else None
        moved = kernel.traffic[level] / kernel.time, kernel.rates.get(level), kernel.bandwidth_percent(level)
        made = kernel.flops, kernel.traffic[level], kernel.intensity(level), kernel.rate, roof, reached
        said = kernel.bound, dispatches, source, "; ".join(notes) or None, *(kernel.nearest or (None, None))
        yield (*division, name, level, kind, *made, *moved, highest, *said)


_KernelTimes = Mapping["str | None", int]
"""Kernel -> time of its dispatches, with or without counters [ns]."""


def _of_roofline(counted: Measured, rank: Rank, options: Options) -> tuple[KernelGroups, _KernelTimes]:
    return _of_measured(counted, rank, options, ("roofline",)), counted.times


def _not_placed(
    times: _KernelTimes, placed: Mapping[GroupKey, MeasuredKernel], categories: Categories
) -> Iterator[Finding]:
    """Yield a finding on the longest computing kernels that lack the counters to place them."""
    computing = (name for name in times if not is_communication(categories.of(name)))
    first = sorted(computing, key=lambda name: -times[name])[:_FEW]
    known = {name for _, name, _ in placed}
    if lacking := [name for name in first if name and name not in known]:
        short, have = short_names(lacking), "has" if len(lacking) == 1 else "have"
        text = f"{len(lacking)} of the {amount(len(first), 'kernel')} with most time {have} no counters of operations"
        text += f" and bytes: {', '.join(short[name] for name in lacking)}"
        text += "; the counters that `rocpd summary collected` lists say it, once recorded for all kernels"
        yield Finding(text, "kernel.uncounted", Verdict.NOTE, Confidence.CERTAIN)


def _findings(placed: Mapping[GroupKey, MeasuredKernel]) -> Iterator[Finding]:
    """Yield a sentence for each of the kernels with most time."""
    first = list(placed.items())[:_FEW]
    short = short_names(key[1] for key, _ in first if key[1])
    for (_, name, _), kernel in first:
        if text := sentence(kernel):
            shown = f"{short.get(name or '', '?')}: {text}"
            percents = {f"{limit}_percent": percent for limit, percent in kernel.use.items()}
            evidence = {"nearest": kernel.nearest and kernel.nearest[0], **percents}
            yield Finding(shown, "kernel.roofline", Verdict.NOTE, Confidence.CERTAIN, evidence=evidence)


_DERIVED = "derived"

_TABLE = CalculatedTable(
    "metrics",
    "What hardware counters say of each kernel: metrics of all panels and derived counters, passes of one program\n"
    "joined. `metrics('rank')`, `metrics('agent')` and `metrics('dispatch')` divide it; a second argument, `wave`,\n"
    "`cycle` or `second`, says what amounts are counted per: `metrics('all', 'wave')`. Calculated when it is read:\n"
    "`WHERE panel = 'l2'` calculates one panel. Empty without counters; merged files do not store it.",
    columns_of(
        Field("kernel", "", "kernel; NULL: every one"),
        Field("metric", "", "the calculated quantity"),
        Field("value", "", "mean of dispatches; NULL: `missing` says why"),
        *FIELDS[4:7],
        Field("panel", "", "panel that shows it, or `derived`"),
        Field("section", "", "number and name of the table in rocprof-compute; NULL for derived counters"),
        Field("of_sums", "", "the same of all dispatches together, where it differs by more than 5 %"),
        *FIELDS[8:],
        Field("rank", "", "rank; NULL in `metrics` without an argument"),
        Field("agent", "", "agent in its rank, in `metrics('agent')`"),
        Field("dispatch", "", "number of the dispatch in its rank, in `metrics('dispatch')`"),
    ),
    (
        divided_by(By.RANK, By.AGENT, By.DISPATCH),
        Argument("counted_per", "what amounts are counted per", Per.KERNEL.value, tuple(Per)),
    ),
    ("panel",),
)

_COLUMNS = tuple(column.name for column in _TABLE.columns)


def _metrics(session: Federation, given: Given) -> Iterator[Row]:
    """Yield the rows of `metrics`; none, but a note, if no counters were collected."""
    panel = given.get("panel")
    names = [name for name in (*PANELS, _DERIVED) if panel in (None, name)]
    reading = Reading(session, Options(division(given), per=Per(str(given["counted_per"]))))
    if not names:
        return
    if not are_counted(reading):
        session.note("metrics is empty: no counter values of kernels in the selection; rocprofv3 --pmc collects them")
        return
    for _, tables in run_planned(reading, planned(names)):
        try:
            for table in tables:
                yield from _metrics_rows(table)
        except RocpdError as error:
            session.note(f"metrics: {error.message}")


def _metrics_rows(table: Summary) -> Iterator[Row]:
    names = [field.name for field in table.fields]
    for row in table:
        known = dict(zip(names, row, strict=True))
        known |= {"panel": table.name.partition("-missing")[0], "section": known.get("table")}
        known.setdefault("missing", known.get("reason"))
        yield tuple(known.get(name) for name in _COLUMNS)


METRICS = JobRelation(_TABLE, _metrics)
"""The metrics of counters, in SQL."""
