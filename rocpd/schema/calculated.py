"""Owns what tables hold that are calculated when a statement reads them: no file has their rows.

Imports nothing that calculates. They answer in SQL as views do, on the connection that sees all ranks; arguments in
parentheses after the name choose among the ways to calculate.
"""

from __future__ import annotations

from collections.abc import Mapping

from rocpd.frozen import frozen
from rocpd.schema.load import Kind


@frozen
class CalculatedColumn:
    """One column; `unit` as for views."""

    name: str
    doc: str
    kind: Kind = Kind.TEXT
    unit: str = ""


@frozen
class CalculatedTable:
    """One table.

    Args:
        name: by which SQL names it.
        doc: what it holds.
        columns: in their order.
        arguments: column -> values that the argument in its place may have; the first one is taken without it.
        narrowing: the column for one value of which less is calculated.
    """

    name: str
    doc: str
    columns: tuple[CalculatedColumn, ...]
    arguments: Mapping[str, tuple[str, ...]]
    narrowing: str

    @property
    def declaration(self) -> str:
        """The statement by which SQLite learns the columns; arguments are hidden ones."""
        names = [f'"{column.name}"' for column in self.columns] + [f'"{name}" HIDDEN' for name in self.arguments]
        return f"CREATE TABLE {self.name} ({', '.join(names)})"


METRICS = CalculatedTable(
    "metrics",
    "What hardware counters say of each kernel: metrics of all panels and derived counters, passes of one program\n"
    "joined. `metrics('rank')`, `metrics('agent')` and `metrics('dispatch')` divide it; a second argument, `wave`,\n"
    "`cycle` or `second`, says what amounts are counted per: `metrics('all', 'wave')`. Calculated when it is read:\n"
    "`WHERE panel = 'l2'` calculates one panel. Empty without counters; merged files do not store it.",
    (
        CalculatedColumn("kernel", "kernel; NULL: every one"),
        CalculatedColumn("metric", "what is calculated"),
        CalculatedColumn("value", "mean of dispatches; NULL: `missing` says why", Kind.REAL),
        CalculatedColumn("unit", "its unit"),
        CalculatedColumn("peak", "the highest that the GPU can reach; NULL: unknown, or there is none", Kind.REAL),
        CalculatedColumn("percent", "value by peak", Kind.REAL, "%"),
        CalculatedColumn("panel", "panel that shows it, or `derived`"),
        CalculatedColumn("section", "number and name of the table in rocprof-compute; NULL for derived counters"),
        CalculatedColumn(
            "of_sums", "the same of all dispatches together, where it differs by more than 5 %", Kind.REAL
        ),
        CalculatedColumn("min", "smallest value of a dispatch", Kind.REAL),
        CalculatedColumn("q1", "lower quartile, in tables of stalls", Kind.REAL),
        CalculatedColumn("median", "median, in tables of stalls", Kind.REAL),
        CalculatedColumn("q3", "upper quartile, in tables of stalls", Kind.REAL),
        CalculatedColumn("max", "largest", Kind.REAL),
        CalculatedColumn("dispatches", "dispatches with a value", Kind.INTEGER),
        CalculatedColumn("missing", "what is missing for a value: counters, or constants of the GPU"),
        CalculatedColumn("note", "what to know before using the value"),
        CalculatedColumn("rank", "rank; NULL in `metrics` without an argument", Kind.INTEGER),
        CalculatedColumn("agent", "agent in its rank, in `metrics('agent')`", Kind.INTEGER),
        CalculatedColumn("dispatch", "number of the dispatch in its rank, in `metrics('dispatch')`", Kind.INTEGER),
    ),
    {"divided_by": ("all", "rank", "agent", "dispatch"), "counted_per": ("kernel", "wave", "cycle", "second")},
    "panel",
)

CALCULATED: Mapping[str, CalculatedTable] = {METRICS.name: METRICS}
"""All of them, by name."""
