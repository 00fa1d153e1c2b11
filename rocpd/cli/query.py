"""Owns `rocpd query`: SQL over all ranks, as text."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from rocpd.cli import options
from rocpd.cli.diagnostics import progress, tell
from rocpd.cli.emit import TableFormat, emit, target
from rocpd.errors import UsageError

if TYPE_CHECKING:
    from rocpd.types import Row


@options.selects
def query(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="SQL INPUTS", show_default=False, help="SQL, then inputs.")
    ] = None,
    sql: Annotated[str | None, typer.Option("--query", metavar="SQL", help="SQL, as an option.")] = None,
    script: Annotated[
        Path | None,
        typer.Option("--script", metavar="FILE", help="SQL script that runs first (temp views and tables)."),
    ] = None,
    inputs: options.Input = None,
    form: Annotated[
        TableFormat | None, typer.Option("--format", "-f", help="Form of the rows [default: console, or by -o].")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output-file", "-o", metavar="FILE", help="Write to a file instead of stdout.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--output-path", "-d", metavar="DIR", help="Folder of -o.", show_default=False)
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=0, help="Rows shown on the console; 0 shows all.")] = 100,
    selection: options.Selection = options.Selection(),
    align: options.Align = options.AlignChoice.AUTO,
    scheduler: options.Scheduler = None,
    local_hosts: options.LocalHosts = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show how the statement would run: strategy, SQL of each step.")
    ] = False,
    strategy: options.Strategy = options.StrategyChoice.AUTO,
    threads: options.Threads = 0,
    force: options.Force = False,
    skip_bad: options.SkipBad = False,
    verbose: options.Verbose = False,
) -> None:
    """Ask SQL of all ranks at once.

    Tables (rocpd_region …) and views (kernels, regions, top_kernels …) are those of the whole job; views end with
    rank and hostname. `rocpd schema` lists them.

    \b
    rocpd query "select * from top_kernels limit 10"
    rocpd query "select rank, sum(duration) from kernels group by rank" job/*.db
    rocpd query -i a.db b.db --query "select * from regions" --format csv -o regions.csv
    """
    text, paths = _split(words or [], sql, script)
    first = _read_script(script) if script else ""
    file = _file(output, folder, form)
    chosen = form or _form_of(file)
    with (
        selection.connect(
            [*(inputs or []), *paths], align, skip_bad, options.cluster(scheduler, local_hosts), threads or None
        ) as session,
        target(file, force) as out,
    ):
        results = 0
        for statement in [*_statements(first), *_statements(text)]:
            with _Bar(out) as bar:
                rows = (
                    session.explain(statement)
                    if explain
                    else session.execute(statement, strategy=strategy, on_progress=bar.on_progress)
                )
                if not rows.columns:
                    list(rows)
                    continue
                _part_from_last(results, out, chosen)
                results += 1
                if emit(rows.columns, bar.until_first(rows), out, chosen, limit):
                    out.flush()
                    tell(f"cut at {limit} rows; --limit 0 shows all, --format csv streams them")


class _Bar(contextlib.ExitStack):
    """A bar of the ranks that are done, shown until the first row goes to the same terminal."""

    def __init__(self, out: TextIO) -> None:
        super().__init__()
        self._is_terminal = out.isatty()
        self._report = self.enter_context(progress("query", "ranks"))

    def on_progress(self, done: int, total: int) -> None:
        """Draw how many ranks are done."""
        if self._report:
            self._report(done, total)

    def until_first(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield `rows`; the bar goes before the first one."""
        for row in rows:
            if self._report and self._is_terminal:
                self._report = None
                self.close()
            yield row


def _part_from_last(results: int, out: TextIO, form: TableFormat) -> None:
    """Put an empty line between tables; a json or html document holds one."""
    if results and form in (TableFormat.JSON, TableFormat.HTML):
        raise UsageError(f"more than one statement gives rows, {form.value} holds one table", "keep one, or take csv")
    if results:
        out.write("\n")


def _split(words: list[str], sql: str | None, script: Path | None) -> tuple[str, list[str]]:
    """Tell the SQL from the inputs, unless `--query` gave it: the first word that is no path, one of many words first.

    >>> _split(["missing", "select 1"], None, None)
    ('select 1', ['missing'])
    """
    if sql is not None:
        return sql, words
    candidates = [index for index, word in enumerate(words) if not _is_input(word)]
    for index in sorted(candidates, key=lambda index: not _looks_like_sql(words[index])):
        return words[index], words[:index] + words[index + 1 :]
    if script:
        return "", words
    raise UsageError("no SQL given", 'rocpd query "select * from top_kernels"')


def _is_input(word: str) -> bool:
    named = glob.has_magic(word) or word.endswith((".db", ".rpdb"))
    return os.path.lexists(word) or (named and not _looks_like_sql(word))


def _looks_like_sql(word: str) -> bool:
    return any(mark in word for mark in " \n\t;(")


def _read_script(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise UsageError(f"{path}: cannot be read: {reason}") from error


def _statements(sql: str) -> Iterator[str]:
    """Split a script by SQLite's own rules: `;` in strings, comments and triggers does not count."""
    import apsw

    pending = ""
    for piece in sql.split(";"):
        pending += piece
        if not pending.strip():
            pending = ""
        elif apsw.complete(pending + ";"):
            yield pending + ";"
            pending = ""
        else:
            pending += ";"
    if pending.strip():
        yield pending


def _file(output: Path | None, folder: Path | None, form: TableFormat | None) -> Path | None:
    if output is None and folder is None:
        return None
    name = output or Path(options.output_name(None))
    path = (folder or Path()) / name
    if path.suffix:
        return path
    return path.with_name(f"{path.name}.{'txt' if form in (None, TableFormat.CONSOLE) else form.value}")


def _form_of(file: Path | None) -> TableFormat:
    ending = file.suffix.lstrip(".").lower() if file else ""
    return TableFormat(ending) if ending in set(TableFormat) else TableFormat.CONSOLE
