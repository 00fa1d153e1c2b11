"""Roofline: how near each kernel is to the highest rates of operations and of each level of memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from rocpd.counters.roofline import INTEGERS, LESS, LEVELS, TABLE, TYPES, MeasuredKernel, measured_rates, sentence
from rocpd.errors import RocpdError, UsageError
from rocpd.summary.findings import Confidence, Finding, Verdict
from rocpd.summary.kernel_metrics import GroupKey, KernelMetrics, of_panels
from rocpd.summary.reading import Reading, order_of
from rocpd.summary.result import Field, Summary, TableDefinition, by_name
from rocpd.trace.short_names import short_names
from rocpd.types import Row

_FEW = 5  # kernels that get a sentence

TABLES = by_name(
    TableDefinition(
        "roofline",
        "Kernels under the roofs of operations and of levels of memory; most time first.",
        (
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
            Field("bound", "", "the limit that is nearest: a type of operations or a level"),
            Field("dispatches", "", "dispatches with counters", True),
            Field("roofs", "", "where the highest rates are from: theoretical or measured", True),
            Field("note", "", "what was not counted, and so is not in it", True),
        ),
        chart="rocpd.summary.plots:roofline",
    )
)


def roofline(reading: Reading) -> Iterator[Summary]:
    """Return where kernels are.

    Raises:
        RocpdError: operations or bytes of no kernel were counted.
        UsageError: the file of measured rates has none.
    """
    roofs = _measured(reading.options.roofs)
    groups = of_panels(reading, ("roofline",))
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
    yield reading.summary(TABLES["roofline"], rows, findings=_findings(placed))


def _measured(path: Path | None) -> dict[str, float]:
    if path is None:
        return {}
    try:
        return measured_rates(path.read_text(encoding="utf-8").splitlines(), str(path))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error


def _kernel(metrics: KernelMetrics, roofs: Mapping[str, float]) -> MeasuredKernel | None:
    """Return what was counted of a kernel; None: no operations, or no bytes, or no time."""
    time = metrics.sums[TABLE, "time"].mean
    floats, integers, traffic = (_means(metrics, names) for names in (TYPES, INTEGERS, LEVELS))
    operations = integers if sum(integers.values()) > sum(floats.values()) else floats
    known = (*TYPES, *INTEGERS, *LEVELS)
    rates = {name: peak for (_, name), peak in metrics.peaks.items() if peak and name in known}
    return MeasuredKernel(time, operations, traffic, {**rates, **roofs}) if time and operations and traffic else None


def _means(metrics: KernelMetrics, names: Iterable[str]) -> dict[str, float]:
    return {name: mean for name in names if (mean := _mean(metrics, name)) is not None}


def _mean(metrics: KernelMetrics, name: str) -> float | None:
    for which in (name, LESS.get(name)):
        sums = metrics.sums.get((TABLE, which)) if which else None
        if sums and sums.count:
            return sums.mean
    return None


def _rows(key: GroupKey, kernel: MeasuredKernel, metrics: KernelMetrics, source: str) -> Iterator[Row]:
    division, name, _ = key
    bound = kernel.bound[0] if kernel.bound else None
    absent = [which for which in TYPES if (TABLE, which) in metrics.sums and _mean(metrics, which) is None]
    less = [LESS[which] for which in (*kernel.operations, *kernel.traffic) if _is_less(metrics, which)]
    notes = [f"not counted: {', '.join(absent)}"] if absent else []
    notes += [f"taken: {', '.join(less)}"] if less else []
    dispatches = metrics.sums[TABLE, "time"].count
    for level in kernel.traffic:
        roof = kernel.roof(level) if kernel.flops else None
        reached = 100 * kernel.rate / roof if roof else None
        highest = kernel.rates.get(kernel.type) if kernel.flops else None
        kind = kernel.type if kernel.flops else None
        moved = kernel.traffic[level] / kernel.time, kernel.rates.get(level), kernel.bandwidth_percent(level)
        made = kernel.flops, kernel.traffic[level], kernel.intensity(level), kernel.rate, roof, reached
        said = bound, dispatches, source, "; ".join(notes) or None
        yield (*division, name, level, kind, *made, *moved, highest, *said)


def _is_less(metrics: KernelMetrics, name: str) -> bool:
    return name in LESS and not metrics.sums[TABLE, name].count


def _findings(placed: Mapping[GroupKey, MeasuredKernel]) -> Iterator[Finding]:
    """Yield a sentence for each of the kernels with most time."""
    first = list(placed.items())[:_FEW]
    short = short_names(key[1] for key, _ in first if key[1])
    for (_, name, _), kernel in first:
        if text := sentence(kernel):
            shown = f"{short.get(name or '', '?')}: {text}"
            bound = kernel.bound[0] if kernel.bound else None
            evidence = {"bound": bound, **{f"{limit}_percent": percent for limit, percent in kernel.use.items()}}
            yield Finding(shown, "kernel.roofline", Verdict.NOTE, Confidence.CERTAIN, evidence=evidence)
