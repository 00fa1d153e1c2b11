"""The tables of analyses: Results whose columns have units."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from types import MappingProxyType
from typing import TYPE_CHECKING, TextIO

from rocpd.base import Row, by_key, entries, frozen
from rocpd.federate.result import Result, Rows

if TYPE_CHECKING:
    import pyarrow

    from rocpd.chart.model import Chart
    from rocpd.chart.plot import Plot
    from rocpd.replay.whatif import Replays
    from rocpd.summary.findings import Finding
    from rocpd.table.human import LeftOut
    from rocpd.table.palette import Colour, Screen


_BARS = "rocpd.summary.plots:totals"  # chart of tables without one of their own
_SHOWN_BY_INDENTING = ("node", "parent", "depth")  # columns of a tree


def away_from_page(text: str) -> str:
    """Return a description without its pointer to the page of the analysis, which has more below it.

    >>> away_from_page("what its time went into, as said below")
    'what its time went into'
    """
    return text.replace(", as said below", "")


@frozen
class Field:
    """One column: its name, its unit (`ns`, `bytes`, `%`, `GiB/s` or nothing) and its meaning.

    A `minor` column is left out where a terminal is too narrow for all. An `is_kernel` column holds names of kernels,
    or directions of copies, shortened for people and in full for programs; `joined_by` separates several in a cell. An
    `is_share` column has parts of a whole, drawn as bars. A `has_colour` column has names of the palette, which colour
    these bars. An `is_command` column has text that people copy: it is never cut, however narrow the terminal. A column
    that `matters` is cut only if leaving out all minor ones is not enough, and so are names of kernels.
    """

    name: str
    unit: str = ""
    doc: str = ""
    minor: bool = False
    is_kernel: bool = False
    joined_by: str = ""
    is_share: bool = False
    has_colour: bool = False
    is_command: bool = False
    matters: bool = False


@frozen
class Picture:
    """A picture of a table for a screen: its numbers over time, or from rank to rank, to take in at a glance.

    Args:
        home: `module:function` that takes the table and a `Screen`, and yields lines.
        is_all: whether it shows everything in the rows: they are then shown only on request.
    """

    home: str
    is_all: bool = False


@frozen
class TableDefinition:
    """The definition of a table of an analysis: its name, its sentence, its columns and how it is drawn.

    Args:
        name: as `rocpd summary` takes it.
        doc: its meaning, in a sentence.
        fields: its columns.
        is_exact: whether it keeps every digit and the names of its columns on the console, too.
        title: title of its chart; empty: the first words of `doc`.
        chart: `module:function` that takes the table and returns its chart; empty: its first numbers are drawn as bars.
        picture: picture on a screen above the rows, or in their place.
    """

    name: str
    doc: str
    fields: tuple[Field, ...]
    is_exact: bool = False
    title: str = ""
    chart: str = ""
    picture: Picture | None = None


def table_of(
    name: str,
    doc: str,
    *fields: Field,
    is_exact: bool = False,
    title: str = "",
    chart: str = "",
    picture: Picture | None = None,
) -> TableDefinition:
    """Return the definition of a table with these columns; arguments as in `TableDefinition`."""
    return TableDefinition(name, doc, fields, is_exact, title, chart, picture)


def by_front(table: Summary, column: str) -> dict[Row, list[Row]]:
    """Return the rows of a table by the values of the columns before one of them, in order."""
    place = table.columns.index(column)
    return by_key((tuple(row[:place]), row) for row in table)


def by_name(*tables: TableDefinition) -> dict[str, TableDefinition]:
    """Return the tables of an analysis by their names."""
    return {table.name: table for table in tables}


class Summary(Result):
    """A table of an analysis. Iterate it, or take `.fetchall()`, `.df()`, `.arrow()`, `.show()`.

    Args:
        table: its definition.
        fields: all columns, those of the division (`--by`) in front.
        rows: all rows, or a function that reads them anew; then the session has to stay open.
        tree: whether column `depth` holds the indentation of a row's name for people.
        batches: returns all rows as record batches of one schema, for tables that may not fit into memory.
        findings: conclusions of the analysis; people see them above the table.

    Attributes:
        counts: for each of the first rows, the number of its events by duration (`Spread.counts`), where known.
        pictured_by: the table whose picture shows this one; None: its own.
        stacks: for each division and kind of call stacks in the table, their own time by frames [ns].
        replays: returns the job of the compared ranks, ready to be replayed with changes, if its steps are known.
        hosts: number of a rank -> its host, for a picture of ranks on several hosts; else empty.
    """

    counts: Sequence[Sequence[int]] = ()
    pictured_by: Summary | None = None
    stacks: Mapping[Row, Sequence[tuple[Sequence[str], int]]] = MappingProxyType({})
    replays: Callable[[], Replays] | None = None
    hosts: Mapping[int, str] = MappingProxyType({})

    def __init__(
        self,
        table: TableDefinition,
        fields: Sequence[Field],
        rows: Iterable[Row] | Callable[[], Iterator[Row]],
        tree: bool = False,
        batches: Callable[[], pyarrow.RecordBatchReader] | None = None,
        findings: Iterable[Finding] = (),
    ) -> None:
        self.definition = table
        self.name = table.name
        self.doc = table.doc
        self.fields = tuple(fields)
        self.tree = tree
        self.findings = tuple(findings)
        self.is_exact = table.is_exact
        self._batches = batches
        self._columns_of_kernels = {index: field.joined_by for index, field in enumerate(fields) if field.is_kernel}
        names = tuple(field.name for field in fields)
        read = rows if callable(rows) else tuple(rows).__iter__
        super().__init__(lambda: Rows(names, read()))

    @property
    def units(self) -> tuple[str, ...]:
        """Unit of each column; empty for names and numbers of things."""
        return tuple(field.unit for field in self.fields)

    @classmethod
    def whole(
        cls,
        table: TableDefinition,
        rows: Iterable[Row] | Callable[[], Iterator[Row]],
        findings: Iterable[Finding] = (),
    ) -> Summary:
        """Return a table without a division: it has just the columns of its definition."""
        return cls(table, table.fields, rows, findings=findings)

    def values(self, *names: str) -> list[Row]:
        """Return some columns of all rows."""
        places = [self.columns.index(name) for name in names]
        return [tuple(row[place] for place in places) for row in self]

    def arrow(self) -> pyarrow.Table:
        """Return all rows as a pyarrow Table; the metadata of each field holds its `unit` and `doc`."""
        if self._batches:
            return self.arrow_batches().read_all()
        table = super().arrow()
        return table.cast(self._described(table.schema))

    def arrow_batches(self) -> pyarrow.RecordBatchReader:
        """Return all rows in batches: of a table that is read rank by rank, only one rank's rows are in memory."""
        import pyarrow as pa

        if not self._batches:
            return self.arrow().to_reader()
        batches = self._batches()
        schema = self._described(batches.schema)
        return pa.RecordBatchReader.from_batches(schema, (batch.cast(schema) for batch in batches))

    def _described(self, schema: pyarrow.Schema) -> pyarrow.Schema:
        for index, field in enumerate(self.fields):
            described = schema.field(index).with_metadata({"unit": field.unit, "doc": field.doc})
            schema = schema.set(index, described)
        return schema.with_metadata({"name": self.name, "doc": self.doc})

    def chart(self) -> Chart:
        """Return the chart that shows the table best, as data.

        Raises:
            UsageError: it holds no numbers.
        """
        draw: Callable[[Summary], Chart] = entries.load(self.definition.chart or _BARS, self.name)
        return draw(self)

    def plot(self) -> Plot:
        """Return the chart that shows the table best.

        Raises:
            UsageError: it holds no numbers.
        """
        from rocpd.chart.plot import Plot

        return Plot(self.chart())

    def cut(self, count: int) -> Summary:
        """Return the same table with only its first rows."""
        first = copy.copy(self)
        first._all, first._batches = self.first(count), None
        return first

    def keep_names(self) -> None:
        """Show people the full names of kernels, too."""
        self._columns_of_kernels = {}

    def for_people(self) -> Iterator[Row]:
        """Yield all rows with short names of kernels, each unique; rows are read twice, not held."""
        return self.shortened(self)

    def shortened(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield some rows, which are read twice, with short names of kernels, unique among them."""
        if not (columns := self._columns_of_kernels):
            yield from rows
            return
        from rocpd.facts.short_names import short_names

        short = short_names(
            name for row in rows for index, joined in columns.items() for name in _names(row[index], joined)
        )
        for row in rows:
            cells = list(row)
            for index, joined in columns.items():
                if row[index] is not None:
                    cells[index] = joined.join(short[name] for name in _names(row[index], joined))
            yield tuple(cells)

    def _repr_html_(self) -> str:
        """Return the table as notebooks show it, below its chart if it has one of its own."""
        picture = self.plot().svg if self.definition.chart and self.first(1) else ""
        return picture + super()._repr_html_()

    def write_text(self, out: TextIO, limit: int = 0) -> bool:
        """Write up to `limit` rows (0: all) with suitable units; return whether there were more."""
        return self.write_readable(out, limit).rows

    def _write_first(self, out: TextIO, limit: int) -> bool:
        return self.write_text(out, limit)

    def write_html(self, out: TextIO, limit: int) -> None:
        """Write up to `limit` rows as an HTML table, with suitable units."""
        from rocpd.table.html import write_html_lines, write_html_table
        from rocpd.table.human import Head, heading, readable, with_unit

        heads = [Head(field.name, field.unit) for field in self.fields]
        first = [with_unit(heads, row) for row in self.shortened(self.first(limit))]
        rows = (tuple(readable(value, head.unit) for value, head in zip(row, heads, strict=True)) for row in first)
        right = [all(not isinstance(value, str) for value in values) for values in zip(*first, strict=True)]
        write_html_lines([finding.text for finding in self.findings], out)
        write_html_table([heading(head) for head in heads], rows, out, right)

    def write_readable(self, out: TextIO, limit: int = 0, screen: Screen | None = None) -> LeftOut:
        """Write the table for people, as `rocpd.table.human.write_readable`; names of a tree are indented."""
        from rocpd.table.human import Head, LeftOut, Pictures, write_console, write_readable

        if self.is_exact:
            whole = any(field.is_command for field in self.fields)
            return LeftOut(write_console(self.columns, iter(self), out, limit, None if whole else screen), ())
        heads = [
            Head(field.name, field.unit, field.minor, field.is_kernel or field.matters, field.is_share)
            for field in self.fields
        ]
        if self.tree:
            heads = [head for head in heads if head.name not in _SHOWN_BY_INDENTING]
            return write_readable(heads, self._indented(), out, limit, screen)
        rows = iter(self)
        first = list(islice(rows, limit)) if limit else list(rows)
        drawn = Pictures(self._colours(first), self.counts) if screen else None
        return write_readable(heads, chain(self.shortened(first), rows), out, limit, screen, drawn)

    def _colours(self, rows: Sequence[Row]) -> list[Colour]:
        """Return the colours of the bars of some rows, if a column has names that determine them."""
        from rocpd.table.palette import colour_of

        for index, field in enumerate(self.fields):
            if field.has_colour:
                return [colour_of(row[index]) for row in rows]
            if field.is_kernel and not field.joined_by:
                from rocpd.schema.rules.kernel_categories import load

                categories = load(None)
                return [colour_of(categories.of(row[index])) for row in rows]
        return []

    def _indented(self) -> Iterator[Row]:
        depth, name = self.columns.index("depth"), self.columns.index("name")
        shown = [index for index, column in enumerate(self.columns) if column not in _SHOWN_BY_INDENTING]
        for row in self:
            text = "· " * row[depth] + ("NULL" if row[name] is None else row[name])
            yield tuple(text if index == name else row[index] for index in shown)


def _names(cell: str | None, joined: str) -> list[str]:
    """Return the names in a cell, separated by a text; the whole cell as one name where that text is empty."""
    return [] if cell is None else cell.split(joined) if joined else [cell]
