"""Owns where tables go: a file or stdout, in the format that was asked for. Text comes from `rocpd.table`."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, TextIO

from rocpd.cli.diagnostics import ReaderGoneError, wrote


class TableFormat(StrEnum):
    """How rows look."""

    CONSOLE = "console"
    CSV = "csv"
    JSON = "json"
    MD = "md"
    HTML = "html"


@contextlib.contextmanager
def target(path: Path | None, force: bool) -> Iterator[TextIO]:
    """Give stdout, or a file that appears under `path` when the block ends well."""
    if path is None:
        try:
            yield sys.stdout
            sys.stdout.flush()
        except BrokenPipeError as error:
            raise ReaderGoneError from error
        return
    from rocpd.output import complete_or_nothing

    with (
        complete_or_nothing(path, force) as temporary,
        temporary.open("w", encoding="utf-8", errors="backslashreplace", newline="") as out,
    ):
        yield out
    wrote(path)


def emit(
    columns: Sequence[str], rows: Iterator[tuple[Any, ...]], out: TextIO, form: TableFormat, limit: int = 0
) -> bool:
    """Write one table; the console form cuts at `limit` rows (0: none). Give whether rows were cut off."""
    from rocpd.table import writer
    from rocpd.table.console import write_console

    if form is not TableFormat.CONSOLE:
        writer(form.value)(columns, rows, out)
        return False
    width = shutil.get_terminal_size().columns if out.isatty() else None
    return write_console(columns, rows, out, limit, width)
