"""Owns the tables of a comparison, exact for programs; `text` draws what people see of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rocpd.compare.comparison import Comparison
from rocpd.compare.kernel_changes import KernelDifference
from rocpd.compare.sides import Difference
from rocpd.summary.result import Field, Summary, TableDefinition, by_name
from rocpd.types import Row

_TIMES = (
    Field("base_ns", "ns", "per unit of the base"),
    Field("new_ns", "ns", "per unit of the other side"),
    Field("change_ns", "ns", "how much longer"),
)
_PERCENT = Field("percent", "%", "change by the unit of the base")
_JOINED = " + "

TABLES = by_name(
    TableDefinition(
        "diff",
        "Whether the other side is slower.",
        (
            Field("verdict", "", "slower, faster, same or unclear"),
            Field("confidence", "", "certain, likely (at most, with one run a side) or hint"),
            Field("metric", "", "what decides"),
            Field("unit", "", "what a unit is"),
            Field("base", "", "median of the base [ns or bytes]"),
            Field("new", "", "median of the other side [ns or bytes]"),
            Field("change_percent", "%", "of the ratio of medians"),
            Field("low_percent", "%", "lower end of its 95 % interval"),
            Field("high_percent", "%", "upper end"),
            Field("margin_percent", "%", "differences up to this do not matter"),
            Field("p", "", "Mann-Whitney, of runs; NULL with one run a side"),
            Field("base_runs", "", "runs of the base"),
            Field("new_runs", "", "runs of the other side"),
            Field("score", "", "how well the two compare, 0 to 1"),
            Field("reason", "", "why it is unclear"),
        ),
    ),
    TableDefinition(
        "diff-parts",
        "What a unit consists of: the changes of its parts add up to that of the unit.",
        (Field("part", "", "what the time goes into"), *_TIMES, _PERCENT),
        chart="rocpd.summary.plots:changes",
    ),
    TableDefinition(
        "diff-kernels",
        "Kernels and copies, those that change most first: change = calls + work + speed + overlap + waiting.",
        (
            Field(
                "name", "", "kernel; several that are taken for one are joined by +", is_kernel=True, joined_by=_JOINED
            ),
            Field("match", "", "by what both sides have the same one; new, gone"),
            *_TIMES,
            _PERCENT,
            Field("calls_ns", "ns", "of the change: other number of calls"),
            Field("work_ns", "ns", "of the change: other grids"),
            Field("speed_ns", "ns", "of the change: longer or shorter calls on equal grids"),
            Field("overlap_ns", "ns", "of the change: more or less of it is hidden behind other work"),
            Field("waiting_ns", "ns", "of the change: waiting for other ranks, and what is not matched", True),
            Field("call_percent", "%", "change of the median call, on equal grids if there are any"),
            Field("base_calls", "", "calls per unit of the base", True),
            Field("new_calls", "", "calls per unit of the other side", True),
            Field("p", "", "Mann-Whitney, adjusted by Holm; NULL with one run a side", True),
            Field("launched", "", "what differs in grids, registers, memory and code"),
            Field("base_name", "", "its name in the base, where that is another one", True, True, _JOINED),
        ),
    ),
    TableDefinition(
        "diff-categories",
        "The same by what kernels do.",
        (Field("category", "", "category of kernels; copies"), *_TIMES, _PERCENT),
    ),
    TableDefinition(
        "diff-markers",
        "The same by the marker ranges in which work was launched.",
        (Field("marker", "", "path of the ranges, # for numbers; NULL outside"), *_TIMES, _PERCENT),
    ),
    TableDefinition(
        "diff-operators",
        "The same by the operators of PyTorch that launched it, where they are recorded.",
        (Field("operator", "", "the innermost one; NULL: none"), *_TIMES, _PERCENT),
    ),
    TableDefinition(
        "diff-ranks",
        "The time of each rank without waiting for others and without communication that is not matched, those that "
        "change most first.",
        (
            Field("rank", "", "rank number in its run"),
            Field("hostname", "", "host name"),
            Field("base_ns", "ns", "per unit of the base"),
            Field("new_ns", "ns", "per unit of the other side"),
            Field("change_ns", "ns", "how much longer"),
            Field("percent", "%", "change of its time"),
        ),
    ),
)


def tables_of(comparison: Comparison) -> Iterator[Summary]:
    """Yield the tables of a comparison; where two sides do not compare, the verdict alone."""
    yield _table("diff", [_verdict(comparison)], comparison)
    if not comparison.comparability.is_enough:
        return
    attribution, base = comparison.attribution, comparison.attribution.unit.base
    yield _table("diff-parts", _rows(attribution.parts, base))
    yield _table("diff-kernels", [_kernel(kernel, base) for kernel in attribution.kernels])
    yield _table("diff-categories", _rows(attribution.categories, base))
    yield _table("diff-markers", _rows({name or None: row for name, row in attribution.paths.items()}, base))
    operators = attribution.operators if any(attribution.operators) else {}
    yield _table("diff-operators", _rows({name or None: row for name, row in operators.items()}, base))
    yield _table("diff-ranks", [_rank(*row) for row in _ranks(comparison)])


def _table(name: str, rows: list[Row], comparison: Comparison | None = None) -> Summary:
    findings = comparison.findings if comparison else ()
    return Summary(TABLES[name], TABLES[name].fields, rows, findings=findings)


def percent(ratio: float | None) -> float | None:
    """Return by how much percent something is larger that is so many times as large."""
    return None if ratio is None else (ratio - 1) * 100


def _verdict(comparison: Comparison) -> Row:
    decision, ratio = comparison.decision, comparison.decision.ratio
    ends = (percent(ratio.estimate), percent(ratio.low), percent(ratio.high)) if ratio else (None, None, None)
    return (
        decision.verdict.value,
        decision.confidence.value,
        comparison.metric.name,
        comparison.unit,
        *decision.medians,
        *ends,
        decision.margin * 100,
        decision.p,
        *decision.runs,
        comparison.comparability.score,
        decision.reason or None,
    )


def _rows(times: Mapping[str, Difference] | Mapping[str | None, Difference], base: int) -> list[Row]:
    return [(name, row.base, row.new, row.change, _share(row.change, base)) for name, row in times.items()]


def _share(change: int, base: int) -> float | None:
    return change * 100 / base if base else None


def _kernel(kernel: KernelDifference, base: int) -> Row:
    names = [_JOINED.join(one.name for one in side) or None for side in (kernel.pair.base, kernel.pair.new)]
    return (
        names[1] or names[0],
        kernel.pair.level.value,
        kernel.base,
        kernel.new,
        kernel.change,
        _share(kernel.change, base),
        kernel.calls,
        kernel.work,
        kernel.speed,
        kernel.overlap,
        kernel.waiting,
        percent(kernel.ratio),
        *kernel.calls_per_unit,
        kernel.p,
        kernel.launched or None,
        names[0] if all(names) and names[0] != names[1] else None,
    )


def _ranks(comparison: Comparison) -> Iterator[Row]:
    return ((row.rank, row.host, row.base, row.new, row.ratio) for row in comparison.ranks)


def _rank(rank: int, host: str | None, base: float | None, new: float | None, ratio: float | None) -> Row:
    change = new - base if base is not None and new is not None else None
    return rank, host, base, new, change, percent(ratio)
