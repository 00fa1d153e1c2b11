"""Which kernels take the time, and how their durations are distributed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rocpd.report.material import Material
from rocpd.report.model import Block, Column, Counts, Table
from rocpd.summary.result import Summary
from rocpd.table.human import readable

_COLUMNS = ("name", "calls", "total_ns", "percent", "mean_ns", "min_ns", "median_ns", "p99_ns", "max_ns")
_DISTRIBUTION = Column("distribution", "", "dispatches by duration, from the shortest to the longest", False)


def kernels(material: Material) -> Iterator[Block]:
    """Yield the kernels that take most time as bars, and all of them with their distributions."""
    tables = material.tables("kernels")
    if tables:
        table = material.table(tables["kernels"], "Kernels, most time first", _COLUMNS)
        table = _with_distributions(table, tables["kernels"])
        yield material.figure("kernels", tables["kernels"], "The kernels that take most time.", table)


def _with_distributions(table: Table, summary: Summary) -> Table:
    shortest, longest = _COLUMNS.index("min_ns"), _COLUMNS.index("max_ns")
    rows = []
    for number, (name, *values) in enumerate(table.rows):
        row = (name, *values)
        title = f"{readable(row[shortest], 'ns')} to {readable(row[longest], 'ns')}"
        counts = Counts(tuple(summary.counts[number]), title) if number < len(summary.counts) else None
        rows.append((name, counts, *values))
    return replace(table, columns=(table.columns[0], _DISTRIBUTION, *table.columns[1:]), rows=tuple(rows))
