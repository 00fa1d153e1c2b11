"""Rows in, text out. `TABLE_FORMATS` is the table of contents; the console, which fits a screen, is a module apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TextIO, TypeAlias, cast

from rocpd.base import Row, UsageError, entries, frozen

if TYPE_CHECKING:
    import pyarrow

Writer: TypeAlias = Callable[[Sequence[str], Iterator[Row], TextIO], None]

ENTRY_POINTS = "rocpd.table_formats"
"""Entry point group; each entry names a `TableFormat`, or a function (columns, rows, out) that writes one table."""

CONSOLE = "console"
"""The format of terminals and pipes for people; its files end in `.txt`."""


class Sheet(NamedTuple):
    """One of several tables in one text.

    `lines` are sentences above it; `right`: whether each column is right-aligned, by default columns of numbers.
    """

    title: str
    doc: str
    columns: Sequence[str]
    rows: Iterator[Row]
    lines: Sequence[str] = ()
    right: Sequence[bool] | None = None


@frozen
class TableFormat:
    """One format of tables.

    Args:
        name: the value of `--format`.
        doc: one line for people.
        home: `module:function` that writes one table: (columns, rows, text file), or (record batches, path) if
            `is_columnar`.
        ending: ending of its files, `.csv`.
        page: `module:function` (sheets, text file) that writes several tables as one text; empty: one after the other,
            with an empty line between.
        is_page: whether several tables go to one file, not to a file each.
        is_document: whether a table stands alone, so that no second table can follow it.
        is_columnar: whether it needs columns of known types, which tables of analyses have and answers to SQL don't.
    """

    name: str
    doc: str
    home: str
    ending: str
    page: str = ""
    is_page: bool = False
    is_document: bool = False
    is_columnar: bool = False

    def write(self, columns: Sequence[str], rows: Iterator[Row], out: TextIO) -> None:
        """Write one table."""
        cast("Writer", entries.load(self.home, f"format {self.name}"))(columns, rows, out)

    def write_batches(self, batches: pyarrow.RecordBatchReader, path: Path) -> None:
        """Write one table of typed columns to a file."""
        entries.load(self.home, f"format {self.name}")(batches, path)

    def write_page(self, sheets: Iterable[Sheet], out: TextIO) -> None:
        """Write several tables as one text."""
        if self.page:
            entries.load(self.page, f"format {self.name}")(sheets, out)
            return
        for number, sheet in enumerate(sheets):
            out.write("\n" if number else "")
            self.write(sheet.columns, sheet.rows, out)


TABLE_FORMATS: Mapping[str, TableFormat] = {
    name: TableFormat(name, doc, f"rocpd.table.{home}:write_{home}", f".{name}", page, *kind)
    for name, home, doc, page, kind in (
        ("csv", "csv", "comma-separated values", "", ()),
        ("json", "json", "an array of objects, one row a line", "rocpd.table.json:write_json_page", (False, True)),
        ("md", "markdown", "a Markdown table", "rocpd.table.markdown:write_markdown_page", (True,)),
        ("html", "html", "a page that stands alone", "rocpd.table.html:write_html_page", (True, True)),
        ("parquet", "parquet", "typed columns with units", "", (False, False, True)),
    )
}
"""The formats of this package, in the order in which help shows them."""


def known_table_formats() -> dict[str, TableFormat]:
    """Return TABLE_FORMATS and the formats of installed packages; these cannot replace a name in TABLE_FORMATS."""
    others = dict(entries.added(ENTRY_POINTS, TableFormat, _plain))
    return {**TABLE_FORMATS, **{name: entry for name, entry in others.items() if name not in TABLE_FORMATS}}


def format_names(*, of_analyses: bool = False) -> list[str]:
    """Return the names of the formats of any table, or of tables of analyses, whose columns have known types."""
    return [CONSOLE, *(name for name, form in known_table_formats().items() if of_analyses or not form.is_columnar)]


def find_format(
    name: str, *, of_analyses: bool = False, further: Iterable[str] = (), option: str = "--format"
) -> TableFormat | None:
    """Return the format that a user named, None for the console.

    Args:
        name: as the user wrote it.
        of_analyses: whether the tables are those of analyses, whose columns have known types.
        further: names with another meaning, for the hint.
        option: the option for the name.

    Raises:
        UsageError: there is no such format, or it needs columns of known types.
    """
    known = known_table_formats()
    if name.lower() == CONSOLE:
        return None
    if (form := known.get(name.lower())) is None:
        names = [*format_names(of_analyses=of_analyses), *further]
        raise UsageError(f"{option} {name}: unknown", entries.near(name, names, f"one of {', '.join(names)}"))
    if form.is_columnar and not of_analyses:
        raise UsageError(f"{option} {name}: is for tables of `rocpd summary`", f"one of {', '.join(format_names())}")
    return form


def _plain(name: str, home: str, package: str) -> TableFormat:
    return TableFormat(name, f"from {package}", home, f".{name}")
