"""The parts of a report as data: sections of text, findings, tables and charts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from rocpd.base import Row, frozen
from rocpd.chart.draw import Drawing
from rocpd.chart.model import Chart
from rocpd.summary.findings import Finding


@frozen
class Name:
    """A long name with its short form; no two short forms in a table are equal."""

    short: str
    full: str

    def __str__(self) -> str:
        return self.short


@frozen
class Counts:
    """Numbers of values in equal steps; `title` gives the range of the steps."""

    counts: tuple[int, ...]
    title: str


@frozen
class Column:
    """The head of a column.

    Args:
        name: name without the unit.
        unit: `ns`, `bytes`, `%`, `GiB/s` or nothing.
        doc: its meaning.
        is_number: whether it holds numbers.
        is_count: whether its numbers are amounts, not names: people see four digits at most.
    """

    name: str
    unit: str
    doc: str
    is_number: bool
    is_count: bool = False


@frozen
class Table:
    """Rows for people, and the command that makes all of them again.

    Args:
        name: name of the table of the analysis.
        title: for people.
        doc: its meaning.
        columns: the heads.
        rows: exact values, `Name`, `Counts` or None.
        total: number of all rows.
        command: makes the table again; empty if there is none.
        code: Python that makes it from a `session`; empty if there is none.
    """

    name: str
    title: str
    doc: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    total: int
    command: str = ""
    code: str = ""


@frozen
class Text:
    """A paragraph."""

    text: str


@frozen
class Folded:
    """Lines that few readers need, under a title; folded away in formats that can."""

    title: str
    lines: tuple[str, ...]


@frozen
class Conclusion:
    """A finding, and the lines below it: (word, text), such as ("do", "…"); texts of `COMMANDS` are commands.

    `id` is the id of its element on a page, empty: there are no links to it. `section` shows its evidence, empty: none;
    None: the section for its rule.
    """

    finding: Finding
    notes: tuple[tuple[str, str], ...] = ()
    id: str = ""
    section: str | None = None


def place_id(number: int) -> str:
    """Return the id of the finding of this number, for links from a time line."""
    return f"finding-{number}"


COMMANDS = frozenset({"see", "try", "view", "trace"})


@frozen
class Findings:
    """Conclusions, most important first."""

    conclusions: tuple[Conclusion, ...]


@frozen
class Figure:
    """A chart as data and as shapes, a description in words, the table behind it, and Python that makes the chart
    from a `session`.
    """

    name: str
    chart: Chart
    drawing: Drawing
    description: str
    table: Table
    code: str = ""


Block: TypeAlias = Text | Folded | Findings | Table | Figure


@frozen
class Section:
    """One section.

    Args:
        name: its name for `--sections`.
        title: for people.
        blocks: its content.
        is_folded: whether few readers need it: it is folded away in formats that can.
        is_empty: whether there is no data for it: its block gives the reason.
    """

    name: str
    title: str
    blocks: tuple[Block, ...]
    is_folded: bool = False
    is_empty: bool = False


def tables_in(sections: Iterable[Section]) -> Iterator[Table]:
    """Yield the tables of sections, including those behind charts."""
    for section in sections:
        for block in section.blocks:
            if isinstance(block, Table | Figure):
                yield block.table if isinstance(block, Figure) else block


@frozen
class Report:
    """A whole report.

    Args:
        title: the job.
        sections: in order.
        made_by: product and version.
        inputs: the inputs as words of a command line.
        connect: Python that opens the same job, as the value of `session`; further lines make what tables need.
    """

    title: str
    sections: tuple[Section, ...]
    made_by: str
    inputs: str = ""
    connect: str = ""

    def figures(self) -> Iterator[Figure]:
        """Yield all charts."""
        return (block for section in self.sections for block in section.blocks if isinstance(block, Figure))
