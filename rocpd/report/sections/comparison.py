"""How the job differs from a base: whether it is slower, and which parts, kernels, markers and ranks say why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rocpd.compare.attribution import explaining
from rocpd.compare.kernel_pairs import MatchLevel
from rocpd.compare.sides import Difference
from rocpd.report.contents import COMPARED
from rocpd.report.material import Material
from rocpd.report.model import Block, Conclusion, Figure, Findings, Table
from rocpd.summary.result import Summary

_ENOUGH = 0.99  # of all changes: rows that explain the rest are left to the command
_USUAL = (None, 0, MatchLevel.MANGLED.value)  # a column that has nothing else is not shown
_MINOR = ("p", "base_name", "percent")


def comparison(material: Material) -> Iterator[Block]:
    """Yield what differs, then the changes of parts as a chart, then those of kernels, markers and ranks."""
    tables = material.tables(COMPARED.analysis)
    yield Findings(tuple(map(Conclusion, tables["diff"].findings)))
    if "diff-parts" in tables:
        parts = tables["diff-parts"]
        says = "Each part starts where the one before leads: the changes add up to that of the whole."
        table = _table(material, parts, "Where the difference is")
        yield Figure("comparison", parts.chart(), says, table, f"{table.code}.plot()" if table.code else "")
    for name, title in (
        ("diff-kernels", "Kernels that explain it"),
        ("diff-markers", "The same by markers"),
        ("diff-ranks", "Ranks, without waiting for others"),
    ):
        if name in tables and tables[name].first(1):
            yield _table(material, tables[name], title)


def _table(material: Material, summary: Summary, title: str) -> Table:
    """Return a table with the rows that explain the change, and the columns that say anything."""
    rows = summary.fetchall()
    before, after = (summary.columns.index(name) for name in ("base_ns", "new_ns"))
    differences = [Difference(row[before] or 0, row[after] or 0) for row in rows]
    chosen = [rows[number] for number in explaining(differences, _ENOUGH)] or rows[:1]
    columns = [
        name
        for place, name in enumerate(summary.columns)
        if name not in _MINOR and any(row[place] not in _USUAL for row in chosen)
    ]
    table = material.table(summary, title, columns, chosen if summary.name != "diff-parts" else None)
    base = material.base
    command = f"rocpd diff --base {base.words} --new {material.inputs}" if base and base.words else ""
    code = f'differences["{summary.name}"]' if base and base.connect else ""
    return replace(table, total=len(rows), command=command, code=code)
