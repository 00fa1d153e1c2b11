"""Cells of a report as text, the same in all formats for people."""

from __future__ import annotations

from collections.abc import Sequence

from rocpd.report.model import Column, Counts, Name, Table
from rocpd.summary.findings import JOB, Finding
from rocpd.table.cell import one_line
from rocpd.table.human import brief, readable, spark

MOST_ROWS = 32
"""Rows of a table on a page; workbooks have more."""

SEEN = {"problem": "Problem", "note": "Note", "none": "Fine", "unknown": "Unknown"}
"""The word for each verdict."""


def word(finding: Finding) -> str:
    """Return the word before a finding; none before the description of the job.

    >>> word(Finding("rank 2 is slow", "comm.straggler"))
    'Problem: '
    """
    return "" if finding.rule == JOB else f"{SEEN[finding.verdict]}: "


def shown(value: object, column: Column) -> str:
    """Return a cell as text on one line, numbers in a suitable unit."""
    if isinstance(value, Counts):
        return spark(value.counts)
    if isinstance(value, Name):
        return one_line(value.short)
    return (brief if column.is_count else readable)(value, column.unit)


def lines(table: Table, most: int = MOST_ROWS) -> list[list[str]]:
    """Return the first rows as texts."""
    return [list(map(shown, row, table.columns)) for row in table.rows[:most]]


def rest(table: Table, shown_rows: int) -> str:
    """Return words on the number of rows left out, with the command for all, in backquotes; empty if all are shown."""
    if table.total <= shown_rows:
        return ""
    return f"{shown_rows} of {table.total} rows{f'; all of them: `{table.command}`' if table.command else ''}"


def heads(columns: Sequence[Column]) -> list[str]:
    """Return the heads of columns."""
    return [one_line(column.name) for column in columns]
