"""The output of a comparison: exact tables and a JSON document for programs, and text for people.

People see the same on the console and on pages; small changes are taken together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice, pairwise
from typing import Any, NamedTuple, TextIO

from rocpd.base import Row, amount
from rocpd.base.texts import visible
from rocpd.compare.attribution import Difference, KernelDifference, MatchLevel, explaining
from rocpd.compare.comparison import CHANGED_CALLS, Comparison, RankDifference
from rocpd.summary.result import Field, Summary, by_name, table_of
from rocpd.table import Sheet
from rocpd.table.human import Head, all_numbers, heading, readable, write_readable
from rocpd.table.palette import Screen

_TIMES = (
    Field("base_ns", "ns", "mean of a unit of the base, such as a step"),
    Field("new_ns", "ns", "the same of the other side"),
    Field("change_ns", "ns", "how much longer"),
)
_CHANGED = (*_TIMES, Field("percent", "%", "change by the unit of the base"))
_JOINED = " + "

TABLES = by_name(
    table_of(
        "diff",
        "Whether the other side is slower.",
        Field("verdict", "", "slower, faster, same or unclear"),
        Field("confidence", "", "certain, likely (at most, with one run a side) or hint"),
        Field("metric", "", "the metric that decides"),
        Field("unit", "", "the unit of work: step, window …"),
        Field("base", "", "median of the base, of several runs the geometric mean of theirs [ns or bytes]"),
        Field("new", "", "that of the other side [ns or bytes]"),
        Field("change_percent", "%", "from one to the other"),
        Field("low_percent", "%", "lower end of its 95 % interval; NULL: too few values"),
        Field("high_percent", "%", "upper end"),
        Field("margin_percent", "%", "differences up to this do not matter"),
        Field("p", "", "Mann-Whitney, of runs; NULL with one run a side"),
        Field("base_runs", "", "runs of the base"),
        Field("new_runs", "", "runs of the other side"),
        Field("score", "", "how well the two compare, 0 to 1"),
        Field("reason", "", "why it is unclear"),
        Field("deviation_percent", "%", "deviation of runs that the interval counts with; NULL within a run"),
    ),
    table_of(
        "diff-parts",
        "What a unit consists of: the changes of its parts add up to that of the unit.",
        Field("part", "", "use of the time; of idle time the cause, as `rocpd schema idle` explains it"),
        *_CHANGED,
        chart="rocpd.summary.plots:changes",
    ),
    table_of(
        "diff-kernels",
        "Kernels and copies, those that change most first: change = calls + work + speed + overlap + waiting.",
        Field("name", "", "kernel; several that are taken for one are joined by +", is_kernel=True, joined_by=_JOINED),
        Field("match", "", "the property by which both sides have the same one; new, gone"),
        *_CHANGED,
        Field("calls_ns", "ns", "of the change per unit: more or fewer calls"),
        Field("work_ns", "ns", "of the change per unit: calls on other grids, or of collectives of other bytes"),
        Field("speed_ns", "ns", "of the change per unit: calls of equal work that take longer (below 0: shorter)"),
        Field(
            "overlap_ns",
            "ns",
            "of the change per unit: time that other work no longer hides (below 0: that it hides now)",
        ),
        Field("waiting_ns", "ns", "of the change per unit: waiting for other ranks, and unmatched communication", True),
        Field(
            "call_percent",
            "%",
            "how much longer the median call takes on the critical rank, of equal work if there is any",
        ),
        Field("base_calls", "", "calls per unit of the base", True),
        Field("new_calls", "", "calls per unit of the other side", True),
        Field("p", "", "Mann-Whitney, adjusted by Holm; NULL with one run a side", True),
        Field("launched", "", "differences in bytes of collectives, grids, registers, memory and code"),
        Field("base_name", "", "its name in the base, where that is another one", True, True, _JOINED),
    ),
    table_of(
        "diff-categories",
        "The same by what kernels do.",
        Field("category", "", "category of kernels; copies"),
        *_CHANGED,
    ),
    table_of(
        "diff-markers",
        "The same by the marker ranges in which work was launched.",
        Field("marker", "", "path of the ranges, # for numbers; NULL outside"),
        *_CHANGED,
    ),
    table_of(
        "diff-operators",
        "The same by the operators of PyTorch that launched it, where they are recorded.",
        Field("operator", "", "the innermost one; NULL: none"),
        *_CHANGED,
    ),
    table_of(
        "diff-ranks",
        "The time of each rank without exposed communication, those that change most first.",
        Field("rank", "", "rank number in its run"),
        Field("hostname", "", "host name"),
        *_TIMES,
        Field("percent", "%", "change of its time"),
    ),
    table_of(
        "diff-calls",
        "The host's calls of HIP, CUDA and RCCL where both sides recorded them, and its work in markers that GPUs wait "
        "for, on average of all ranks, those first whose time changes most.",
        Field("name", "", "function, or marker"),
        Field("base_calls", "", "calls per unit of the base, on a rank"),
        Field("new_calls", "", "calls per unit of the other side"),
        Field("base_each_ns", "ns", "mean of a call of the base; NULL: there is none"),
        Field("new_each_ns", "ns", "the same of the other side"),
        Field("change_ns", "ns", "how much longer all calls of a unit take, on a rank: time of the host, not of steps"),
    ),
)


def tables_of(comparison: Comparison) -> Iterator[Summary]:
    """Yield the tables of a comparison; only the verdict if the two sides do not compare."""
    yield Summary.whole(TABLES["diff"], [_verdict(comparison)], comparison.findings)
    if not comparison.comparability.is_enough:
        return
    attribution, base = comparison.attribution, comparison.attribution.unit.base
    rows = {
        "diff-parts": _rows(attribution.parts, base),
        "diff-kernels": [_kernel(kernel, base) for kernel in attribution.kernels],
        "diff-categories": _rows(attribution.categories, base),
        "diff-markers": _rows(attribution.paths, base),
        "diff-operators": _rows(attribution.operators if any(attribution.operators) else {}, base),
        "diff-ranks": [_rank(row) for row in comparison.ranks],
        "diff-calls": [(call.name, *call.calls, *call.lengths, call.change) for call in comparison.calls],
    }
    yield from (Summary.whole(TABLES[name], of_table) for name, of_table in rows.items())


def percent(ratio: float | None) -> float | None:
    """Return a ratio as a change in percent."""
    return None if ratio is None else (ratio - 1) * 100


def _verdict(comparison: Comparison) -> Row:
    decision, ratio = comparison.decision, comparison.decision.ratio
    ends = (percent(ratio.estimate), percent(ratio.low), percent(ratio.high)) if ratio else (None, None, None)
    said = decision.verdict.value, decision.confidence.value, comparison.metric.name, comparison.unit
    tested = decision.margin * 100, decision.p, *decision.runs, comparison.comparability.score
    noise = None if decision.noise is None else decision.noise * 100
    return (*said, *decision.medians, *ends, *tested, decision.reason or None, noise)


def _rows(times: Mapping[str, Difference], base: int) -> list[Row]:
    return [(name or None, *_times(row, base)) for name, row in times.items()]


def _times(row: Difference, base: int) -> Row:
    return row.base, row.new, row.change, row.change * 100 / base if base else None


def _kernel(kernel: KernelDifference, base: int) -> Row:
    names = [_JOINED.join(one.name for one in side) or None for side in (kernel.pair.base, kernel.pair.new)]
    effects = kernel.calls, kernel.work, kernel.speed, kernel.overlap, kernel.waiting
    calls = percent(kernel.ratio), *kernel.calls_per_unit, kernel.p, kernel.launched or None
    base_name = names[0] if all(names) and names[0] != names[1] else None
    return (names[1] or names[0], kernel.pair.level.value, *_times(kernel, base), *effects, *calls, base_name)


def _rank(row: RankDifference) -> Row:
    change = row.new - row.base if row.base is not None and row.new is not None else None
    return row.rank, row.host, row.base, row.new, change, percent(row.ratio)


VERSION = 1
"""Version of the form of the document; a change of a meaning makes it another one."""

_IN_DOCUMENT = ("parts", "kernels", "categories", "markers", "operators", "ranks", "calls")


def document_of(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as a JSON document."""
    tables = ((table.name.removeprefix("diff-"), table) for table in tables_of(comparison))
    rows = {name: [dict(zip(table.columns, row, strict=True)) for row in table] for name, table in tables}
    (decided,) = rows["diff"]
    unit, compared = comparison.attribution.unit, comparison.comparability
    differences = list(compared.sentences)
    return {
        "rocpd_diff": VERSION,
        **{key: decided[key] for key in ("verdict", "confidence", "reason")},
        "runs_needed": comparison.decision.needed,
        "metric": comparison.metric.name,
        "metric_unit": comparison.metric.unit,
        "unit": comparison.unit,
        "base": {"runs": list(comparison.base), "median": decided["base"]},
        "new": {"runs": list(comparison.new), "median": decided["new"]},
        **{key: decided[key] for key in ("change_percent", "low_percent", "high_percent", "margin_percent")},
        **{key: decided[key] for key in ("deviation_percent", "p")},
        "comparable": {"score": compared.score, "is_enough": compared.is_enough, "differences": differences},
        "unit_ns": {"base": unit.base, "new": unit.new, "change": unit.change},
        **{key: rows.get(key, []) for key in _IN_DOCUMENT},
        "findings": [{"rule": f.rule, "verdict": f.verdict.value, "text": f.text} for f in comparison.findings],
    }


_BAR, _LEAST_BAR, _BEFORE_BAR = 40, 12, 64  # characters: of the waterfall's bars, and of the columns before them
_LONGER, _SHORTER = "█", "░"
_LITTLE = 0.01  # share of all changes: parts that change less are taken together
_FEW = 5  # rows of ranks and markers
_MOST_KERNELS = 15
_USUAL = (None, 0, MatchLevel.MANGLED.value)  # a column with nothing else is not shown
_EFFECTS = ("calls_ns", "work_ns", "speed_ns", "overlap_ns", "waiting_ns")
_KERNEL_COLUMNS = ("name", "match", "change_ns", *_EFFECTS, "call_percent", "launched")


class _Section(NamedTuple):
    """A table for people."""

    title: str
    doc: str
    heads: Sequence[Head]
    rows: Sequence[Row]


def write_text(comparison: Comparison, out: TextIO, screen: Screen | None = None, limit: int | None = None) -> None:
    """Write a comparison.

    Args:
        comparison: the comparison.
        out: text file.
        screen: the terminal; None for a pipe.
        limit: rows per table, 0 for all; None: the rows that explain most.
    """
    out.writelines(f"{visible(finding.text)}\n" for finding in comparison.findings)
    width = min(_BAR, max(screen.width - _BEFORE_BAR, _LEAST_BAR)) if screen else _BAR
    for section in _sections(comparison, width, limit):
        out.write(f"\n{section.title.upper()}\n")
        write_readable(section.heads, iter(section.rows), out, screen=screen)


def sheets_of(comparison: Comparison, limit: int | None = None) -> Iterator[Sheet]:
    """Yield the comparison as tables of a page; the first has the sentences above it; `limit` as in `write_text`."""
    lines = [finding.text for finding in comparison.findings]
    for section in _sections(comparison, limit=limit):
        units = [head.unit for head in section.heads]
        rows = (tuple(map(readable, row, units)) for row in section.rows)
        names = [heading(head).replace("_", " ") for head in section.heads]
        columns = zip(*section.rows, strict=True)
        right = [bool(head.unit) or all_numbers(values) for head, values in zip(section.heads, columns, strict=True)]
        yield Sheet(section.title, section.doc, names, rows, lines, right)
        lines = []
    if lines:
        yield Sheet("No comparison", "", ("",), iter(()), lines)


def _sections(comparison: Comparison, width: int = _BAR, limit: int | None = None) -> Iterator[_Section]:
    """Yield the tables to show; `width`: characters of the waterfall's bars; `limit` as in `write_text`."""
    if not comparison.comparability.is_enough:
        return
    yield _waterfall(comparison, width)
    tables = {table.name: table for table in tables_of(comparison)}
    attribution, ranks = comparison.attribution, comparison.ranks
    paths, operators = list(attribution.paths.values()), list(attribution.operators.values())
    changed = (number for number, row in enumerate(ranks) if row.base != row.new)
    calls = (number for number, call in enumerate(comparison.calls) if call.is_changed)
    has_calls = any(finding.rule == CHANGED_CALLS for finding in comparison.findings)
    chosen = (
        ("diff-kernels", "Kernels that explain 90 % of it", explaining(attribution.kernels), _MOST_KERNELS, True),
        ("diff-markers", "Markers", explaining(paths), _FEW, len(paths) > 1),
        ("diff-operators", "Operators", explaining(operators), _MOST_KERNELS, any(attribution.operators)),
        ("diff-ranks", "Ranks, without communication", changed, _FEW, len(ranks) > 1),
        ("diff-calls", "Calls of the host", calls, _FEW, has_calls),
    )
    for name, title, rows, most, is_shown in chosen:
        some = list(islice(rows, most) if limit is None else range(len(list(tables[name])))[: limit or None])
        if some and is_shown:
            yield _chosen(tables[name], title, some, _KERNEL_COLUMNS if name == "diff-kernels" else ())


def _waterfall(comparison: Comparison, width: int) -> _Section:
    """Return the times of a unit before and after, and between them the changes, each from where the last one ended."""
    unit = comparison.attribution.unit
    parts = _together(comparison.attribution.parts.items())
    rows: list[Row] = [("base", unit.base, None, "", "")]
    changes = zip(parts, _bars([row for _, row in parts], width), strict=True)
    rows += [(part, row.base, row.new, _signed(row.change), bar) for (part, row), bar in changes]
    rows.append(("new", None, unit.new, _signed(unit.change), ""))
    times = [Head(name, "ns") for name in ("base_ns", "new_ns", "change_ns")]
    heads = [Head("part"), *times, Head("", is_drawn=True)]
    where = "" if comparison.subject.paired else ", on the critical rank"
    title = f"Where the difference is, per {comparison.unit}{where} (means)"
    return _Section(title, "The changes of the parts add up to that of the whole.", heads, rows)


def _together(parts: Iterable[tuple[str, Difference]]) -> list[tuple[str, Difference]]:
    """Return parts, with those that change little joined into one."""
    every = list(parts)
    least = _LITTLE * sum(abs(part.change) for _, part in every)
    few = [part for _, part in every if abs(part.change) < least]
    if len(few) < 2:
        return every
    rest = Difference(sum(part.base for part in few), sum(part.new for part in few))
    return [*(each for each in every if each[1] not in few), (f"{len(few)} others", rest)]


def _signed(change: int) -> str:
    return f"{'+' if change > 0 else ''}{readable(change, 'ns')}"


def _bars(parts: Sequence[Difference], width: int) -> list[str]:
    """Return a bar for each change, from where the changes before it lead."""
    ends = list(accumulate((part.change for part in parts), initial=0))
    low, span = min(ends), max(ends) - min(ends)
    bars = []
    for start, end in pairwise(ends):
        at, to = (round((value - low) * width / span) if span else 0 for value in (min(start, end), max(start, end)))
        mark = _LONGER if end > start else _SHORTER
        bars.append("" if end == start else " " * min(at, width - 1) + mark * max(1, to - at))
    return bars


def _chosen(table: Summary, title: str, rows: Sequence[int], columns: Sequence[str] = ()) -> _Section:
    """Return some rows of a table; the sum of those left out is one more row."""
    indices = [table.columns.index(name) for name in columns or table.columns]
    fields = [table.fields[index] for index in indices]
    every = [tuple(row[index] for index in indices) for row in table.for_people()]
    chosen = [every[row] for row in rows]
    left = [row for number, row in enumerate(every) if number not in rows]
    if left:
        by_field = zip(fields, zip(*left, strict=True), strict=True)
        adds_up = table.name not in ("diff-ranks", "diff-calls")
        sums = [sum(column) if adds_up and field.unit == "ns" else None for field, column in by_field]
        chosen.append((amount(len(left), "other"), *sums[1:]))
    some = [n for n in range(len(fields)) if columns == () or any(row[n] not in _USUAL for row in chosen)]
    heads = [Head(fields[n].name, fields[n].unit, fields[n].minor, fields[n].is_kernel) for n in some]
    return _Section(title, table.doc, heads, [tuple(row[n] for n in some) for row in chosen])
