"""Draws a comparison for people: sentences, a waterfall of what changed, and the kernels that explain it.

What is shown is the same on the console and on pages; what changes little is taken together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, TextIO

from rocpd.compare.attribution import explaining
from rocpd.compare.comparison import Comparison
from rocpd.compare.kernel_pairs import MatchLevel
from rocpd.compare.sides import Difference
from rocpd.compare.tables import tables_of
from rocpd.summary.result import Summary
from rocpd.table import Sheet
from rocpd.table.human import Head, heading, readable, write_readable
from rocpd.table.screen import Screen
from rocpd.types import Row
from rocpd.visible import visible

_BAR, _LEAST_BAR, _BEFORE_BAR = 40, 12, 64  # characters: of the waterfall, and of what stands before it
_LONGER, _SHORTER = "█", "░"
_LITTLE = 0.01  # of all changes: parts that change less are taken together
_FEW = 5  # rows of ranks and markers
_MOST_KERNELS = 15
_USUAL = (None, 0, MatchLevel.MANGLED.value)  # a column that has nothing else is not shown
_KERNEL_COLUMNS = (
    "name",
    "match",
    "change_ns",
    "calls_ns",
    "work_ns",
    "speed_ns",
    "overlap_ns",
    "waiting_ns",
    "call_percent",
    "launched",
)


class _Section(NamedTuple):
    """A table for people."""

    title: str
    doc: str
    heads: Sequence[Head]
    rows: Sequence[Row]


def write_text(comparison: Comparison, out: TextIO, screen: Screen | None = None) -> None:
    """Write a comparison.

    Args:
        comparison: what was found.
        out: text file.
        screen: the terminal, None for a pipe.
    """
    out.writelines(f"{visible(finding.text)}\n" for finding in comparison.findings)
    width = min(_BAR, max(screen.width - _BEFORE_BAR, _LEAST_BAR)) if screen else _BAR
    for section in _sections(comparison, width):
        out.write(f"\n{section.title.upper()}\n")
        write_readable(section.heads, iter(section.rows), out, screen=screen)


def sheets_of(comparison: Comparison) -> Iterator[Sheet]:
    """Yield the same as tables of a page; the first one has the sentences above it."""
    lines = [finding.text for finding in comparison.findings]
    for section in _sections(comparison):
        rows = (
            tuple(readable(cell, head.unit) for cell, head in zip(row, section.heads, strict=True))
            for row in section.rows
        )
        yield Sheet(section.title, section.doc, [heading(head) for head in section.heads], rows, lines)
        lines = []
    if lines:
        yield Sheet("No comparison", "", ("",), iter(()), lines)


def _sections(comparison: Comparison, width: int = _BAR) -> Iterator[_Section]:
    """Yield what is shown; `width`: characters of the waterfall's bars."""
    if not comparison.comparability.is_enough:
        return
    yield _waterfall(comparison, width)
    tables = {table.name: table for table in tables_of(comparison)}
    kernels = list(explaining(comparison.attribution.kernels))[:_MOST_KERNELS]
    if kernels:
        title = "Kernels that explain 90 % of it"
        yield _chosen(tables["diff-kernels"], title, kernels, _KERNEL_COLUMNS)
    markers = list(explaining(list(comparison.attribution.paths.values())))[:_FEW]
    if len(comparison.attribution.paths) > 1 and markers:
        yield _chosen(tables["diff-markers"], "Markers", markers)
    operators = list(explaining(list(comparison.attribution.operators.values())))[:_MOST_KERNELS]
    if any(comparison.attribution.operators) and operators:
        yield _chosen(tables["diff-operators"], "Operators", operators)
    changed = [number for number, row in enumerate(comparison.ranks) if row.base != row.new][:_FEW]
    if len(comparison.ranks) > 1 and changed:
        yield _chosen(tables["diff-ranks"], "Ranks, without waiting for others", changed)


def _waterfall(comparison: Comparison, width: int) -> _Section:
    """Return what a unit takes before and after, and between these what changed, each where the one before ended."""
    unit = comparison.attribution.unit
    parts = _together(comparison.attribution.parts.items())
    rows: list[Row] = [("base", unit.base, None, "", "")]
    changes = zip(parts, _bars([row for _, row in parts], width), strict=True)
    rows += [(part, row.base, row.new, _signed(row.change), bar) for (part, row), bar in changes]
    rows.append(("new", None, unit.new, _signed(unit.change), ""))
    times = [Head(name, "ns") for name in ("base_ns", "new_ns", "change_ns")]
    heads = [Head("part"), *times, Head("", is_drawn=True)]
    title = f"Where the difference is, per {comparison.unit} (means)"
    return _Section(title, "The changes of the parts add up to that of the whole.", heads, rows)


def _together(parts: Iterable[tuple[str, Difference]]) -> list[tuple[str, Difference]]:
    """Return parts, those that change little as one."""
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
    """Return a bar for each change, from where those before it lead."""
    ends = [0]
    for part in parts:
        ends.append(ends[-1] + part.change)
    low, span = min(ends), max(ends) - min(ends)
    bars = []
    for start, end in pairwise(ends):
        at, to = (round((value - low) * width / span) if span else 0 for value in (min(start, end), max(start, end)))
        mark = _LONGER if end > start else _SHORTER
        bars.append("" if end == start else " " * min(at, width - 1) + mark * max(1, to - at))
    return bars


def _chosen(table: Summary, title: str, rows: Sequence[int], columns: Sequence[str] = ()) -> _Section:
    """Return some rows of a table; those that are left out are one more."""
    indices = [table.columns.index(name) for name in columns or table.columns]
    fields = [table.fields[index] for index in indices]
    every = [tuple(row[index] for index in indices) for row in table.for_people()]
    chosen = [every[row] for row in rows]
    left = [row for number, row in enumerate(every) if number not in rows]
    if left and columns:
        sums = [
            sum(column) if field.unit == "ns" else None
            for field, column in zip(fields, zip(*left, strict=True), strict=True)
        ]
        chosen.append((f"{len(left)} others", *sums[1:]))
    some = [n for n in range(len(fields)) if columns == () or any(row[n] not in _USUAL for row in chosen)]
    heads = [Head(fields[n].name, fields[n].unit, fields[n].minor, fields[n].is_kernel) for n in some]
    return _Section(title, table.doc, heads, [tuple(row[n] for n in some) for row in chosen])
