"""Where tables go, stdout or files, and in which format. Text comes from `rocpd.table`."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from rocpd.base import Row, UsageError
from rocpd.base.option import Heading, Option, plain
from rocpd.base.output import complete_or_nothing
from rocpd.base.visible import as_data, visible
from rocpd.cli.diagnostics import report_written, standard_output
from rocpd.cli.options import OutputOptions, TableOptions
from rocpd.cli.terminal import page, screen_of
from rocpd.table import CONSOLE, TableFormat, find_format, format_names, known_table_formats

_TEXT = ".txt"  # ending of files that look like the console

JSON = "json"

TEXT_OR_JSON = {CONSOLE: _TEXT, JSON: ".json"}
"""Forms of answers that are no tables -> the ending of their files."""


def format_option(
    help: str = "Format of the rows, else by the ending of -o:",
    names: Callable[[], Iterable[str]] = format_names,
    listing: Callable[[], str] | None = None,
) -> str:
    """Return the field of the option `--format` of a command; its value is empty when it is not given.

    Args:
        help: it ends with a colon; the names or their listing follow it.
        names: of the formats.
        listing: the names as help shows them.
    """
    listing = listing or (lambda: ", ".join(names()))
    flags = ("-f", "--format")
    return plain("", help, "FORMAT", flags, Heading.OUTPUT, complete=names, listing=listing)


LIMIT = Option("Rows per table on the console; 0 shows all.", heading=Heading.OUTPUT, least=0, is_plain=True)
"""The option of commands that write tables of analyses."""


def of_analyses() -> list[str]:
    """Return the formats of tables of analyses."""
    return format_names(of_analyses=True)


def endings() -> dict[str, str]:
    """Return ending of a file -> format."""
    return {_TEXT: CONSOLE, **{form.ending: name for name, form in known_table_formats().items()}}


def ending_of(form: TableFormat | None) -> str:
    """Return the ending of files of a format; None is the console."""
    return form.ending if form else _TEXT


def format_by_ending(name: str | None, known: Mapping[str, str]) -> str:
    """Return the format that the name of an output has by its ending; the console where it has none.

    >>> format_by_ending("x.a.json", {".json": "json", ".a.json": "a"}), format_by_ending("x", {".json": "json"})
    ('a', 'console')
    """
    fitting = [ending for ending in known if (name or "").endswith(ending)]
    return known[max(fitting, key=len)] if fitting else CONSOLE


def format_and_path(name: str, output: OutputOptions) -> tuple[TableFormat | None, Path | None]:
    """Return the format, None for the console, and the file, None for stdout, for a value of `--format`.

    Raises:
        UsageError: as `rocpd.table.find_format`.
    """
    form = find_format(name or format_by_ending(output.name, endings()))
    return form, output.path(ending_of(form))


def form_and_path(name: str, output: OutputOptions, forms: Mapping[str, str]) -> tuple[str, Path | None]:
    """Return the form of a text, by `--format` or else by the ending of `-o`, and the file; None: stdout.

    Args:
        name: of the form, as the user has it; empty: none was named.
        output: where the text goes.
        forms: name -> ending of its files.

    Raises:
        UsageError: no form is called so.
    """
    form = name.lower() or format_by_ending(output.name, {ending: known for known, ending in forms.items()})
    if form not in forms:
        raise UsageError(f"--format {form}: unknown", f"one of {', '.join(forms)}")
    return form, output.path(forms[form])


@contextlib.contextmanager
def open_output(path: Path | None, output: TableOptions) -> Iterator[TextIO]:
    """Yield stdout, or a file that appears under `path` when the block ends without an error."""
    if path is None:
        with standard_output(), page(output.color, is_paged=not output.no_pager) as out:
            yield out
        return
    with (
        complete_or_nothing(path, output.force) as temporary,
        temporary.open("w", encoding="utf-8", errors="backslashreplace", newline="") as out,
    ):
        yield out
    report_written(path)


def write_answer(answer: object, lines: Iterable[str], out: TextIO, form: str) -> None:
    """Write an answer that is no table: its document where the form is JSON, else its lines."""
    if form == JSON:
        as_data(out).write(json.dumps(answer, indent=1, ensure_ascii=False) + "\n")
    else:
        out.writelines(f"{visible(line)}\n" for line in lines)


def write_rows(
    columns: Sequence[str], rows: Iterator[Row], out: TextIO, form: TableFormat | None = None, limit: int = 0
) -> bool:
    """Write one table; the console cuts at `limit` rows (0: none). Return whether rows were cut off."""
    from rocpd.table.human import write_console

    if form:
        form.write(columns, rows, as_data(out))
        return False
    return write_console(columns, rows, out, limit, screen_of(out))
