"""The parts of a report, before anybody writes it: sections of text, findings, tables and charts as data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from rocpd.base import Row, frozen
from rocpd.chart.draw import Drawing
from rocpd.chart.model import Chart
from rocpd.summary.findings import Finding


@frozen
class Name:
    """A name that is long in full, and what people call it; no two of a table look alike."""

    short: str
    full: str

    def __str__(self) -> str:
        return self.short


@frozen
class Counts:
    """How often values of each of equal steps occur; `title` says from where to where they go."""

    counts: tuple[int, ...]
    title: str


@frozen
class Column:
    """The head of a column.

    Args:
        name: what it is called, without the unit.
        unit: `ns`, `bytes`, `%`, `GiB/s` or nothing.
        doc: what it means.
        is_number: whether it holds numbers.
        is_count: whether these say how much, and name nothing: people see four digits at most.
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
        name: of the analysis' table.
        title: for people.
        doc: what it says.
        columns: the heads.
        rows: exact values, `Name`, `Counts` or None.
        total: how many rows there are in all.
        command: makes the table again; empty where none does.
        code: Python that does so, of a `session`; empty where none does.
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
    """Lines that few readers need, under a title that says what they are: formats that can fold them away do."""

    title: str
    lines: tuple[str, ...]


@frozen
class Conclusion:
    """A finding, and what is said below it: (word, text), such as ("do", "…"); texts of `COMMANDS` are commands.

    `id` is that of the element of a page that has it, empty: none leads there. `section` shows what it rests on, empty:
    none; None: the one that its rule says.
    """

    finding: Finding
    notes: tuple[tuple[str, str], ...] = ()
    id: str = ""
    section: str | None = None


def place_id(number: int) -> str:
    """Return the id of the finding of this number, which a time line leads to."""
    return f"finding-{number}"


COMMANDS = frozenset({"see", "try", "view", "trace"})


@frozen
class Findings:
    """Conclusions, most important first."""

    conclusions: tuple[Conclusion, ...]


@frozen
class Figure:
    """A chart as data and as shapes, what it says in words, the table behind it, and Python that makes the chart again,
    of a `session`.
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
        name: under which it is asked for.
        title: for people.
        blocks: what is in it.
        is_folded: whether few readers need it: formats that can fold it away do.
        is_empty: whether there is no data for it: its block says why.
    """

    name: str
    title: str
    blocks: tuple[Block, ...]
    is_folded: bool = False
    is_empty: bool = False


def tables_in(sections: Iterable[Section]) -> Iterator[Table]:
    """Yield the tables of sections, those behind charts too."""
    for section in sections:
        for block in section.blocks:
            if isinstance(block, Table | Figure):
                yield block.table if isinstance(block, Figure) else block


@frozen
class Report:
    """All that is written.

    Args:
        title: what job it is.
        sections: in order.
        made_by: product and version.
        inputs: what was read, as words of a command line.
        connect: Python that opens the same job, as the value of `session`; lines after it make what tables need.
    """

    title: str
    sections: tuple[Section, ...]
    made_by: str
    inputs: str = ""
    connect: str = ""

    def figures(self) -> Iterator[Figure]:
        """Yield all charts."""
        return (block for section in self.sections for block in section.blocks if isinstance(block, Figure))
