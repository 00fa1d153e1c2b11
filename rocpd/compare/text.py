"""Draws a comparison for people: sentences, a waterfall of what changed, and the kernels that explain it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TextIO

from rocpd.compare.attribution import Difference, explaining
from rocpd.compare.comparison import Comparison
from rocpd.compare.kernel_pairs import MatchLevel
from rocpd.compare.tables import tables_of
from rocpd.summary.result import Summary
from rocpd.table.human import Head, readable, write_readable
from rocpd.table.screen import Screen
from rocpd.types import Row
from rocpd.visible import visible

_BAR, _LEAST_BAR, _BEFORE_BAR = 40, 12, 64  # characters: of the waterfall, and of what stands before it
_LONGER, _SHORTER = "█", "░"
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


def write_text(comparison: Comparison, out: TextIO, screen: Screen | None = None) -> None:
    """Write a comparison.

    Args:
        comparison: what was found.
        out: text file.
        screen: the terminal, None for a pipe.
    """
    out.writelines(f"{visible(finding.text)}\n" for finding in comparison.findings)
    if not comparison.comparability.is_enough:
        return
    out.write(f"\nWHERE THE DIFFERENCE IS, PER {comparison.unit.upper()}\n")
    _write_waterfall(comparison, out, screen)
    tables = {table.name: table for table in tables_of(comparison)}
    kernels = list(explaining(comparison.attribution.kernels))[:_MOST_KERNELS]
    if kernels:
        _write(tables["diff-kernels"], "KERNELS THAT EXPLAIN 90 % OF IT", kernels, out, screen, _KERNEL_COLUMNS)
    markers = list(explaining(list(comparison.attribution.paths.values())))[:_FEW]
    if len(comparison.attribution.paths) > 1 and markers:
        _write(tables["diff-markers"], "MARKERS", markers, out, screen)
    changed = [number for number, row in enumerate(comparison.ranks) if row.base != row.new][:_FEW]
    if len(comparison.ranks) > 1 and changed:
        _write(tables["diff-ranks"], "RANKS, WITHOUT WAITING FOR OTHERS", changed, out, screen)


def _write_waterfall(comparison: Comparison, out: TextIO, screen: Screen | None) -> None:
    """Write what a unit takes before and after, and between these what changed, each where the one before ended."""
    unit, parts = comparison.attribution.unit, comparison.attribution.parts
    width = min(_BAR, max(screen.width - _BEFORE_BAR, _LEAST_BAR)) if screen else _BAR
    bars = _bars(list(parts.values()), width)
    rows: list[Row] = [("base", unit.base, None, "", "")]
    changes = zip(parts.items(), bars, strict=True)
    rows += [(part, row.base, row.new, _signed(row.change), bar) for (part, row), bar in changes]
    rows.append(("new", None, unit.new, _signed(unit.change), ""))
    heads = [
        Head("part"),
        Head("base_ns", "ns"),
        Head("new_ns", "ns"),
        Head("change_ns", "ns"),
        Head("", is_drawn=True),
    ]
    write_readable(heads, iter(rows), out, screen=screen)


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


def _write(
    table: Summary, title: str, rows: Sequence[int], out: TextIO, screen: Screen | None, columns: Sequence[str] = ()
) -> None:
    """Write some rows of a table."""
    indices = [table.columns.index(name) for name in columns or table.columns]
    fields = [table.fields[index] for index in indices]
    every = list(table.for_people())
    chosen = [tuple(every[row][index] for index in indices) for row in rows]
    some = [n for n in range(len(fields)) if columns == () or any(row[n] not in _USUAL for row in chosen)]
    heads = [Head(fields[n].name, fields[n].unit, fields[n].minor, fields[n].is_kernel) for n in some]
    out.write(f"\n{title}\n")
    write_readable(heads, (tuple(row[n] for n in some) for row in chosen), out, screen=screen)
