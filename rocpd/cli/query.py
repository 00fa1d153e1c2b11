"""Owns `rocpd query`: SQL over all ranks, as text."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, TextIO

from rocpd.base.errors import UsageError
from rocpd.base.frozen import frozen
from rocpd.base.option import Heading, Option
from rocpd.base.types import Row
from rocpd.cli import tables
from rocpd.cli.argv import check_sql, split_sql
from rocpd.cli.diagnostics import clear_bars, index_hint, note, progress
from rocpd.cli.options import Inputs, PassOptions, SelectionOptions, SqlExecution, TableOptions
from rocpd.federate.statements import statements
from rocpd.table import TableFormat


@frozen
class SqlAndInputs(Inputs):
    """SQL, and which files are read."""

    words: Annotated[
        tuple[str, ...],
        Option("SQL, then files, globs, folders, *.rpdb packages.", "[SQL] [INPUTS]...", is_positional=True),
    ] = ()


@frozen
class QueryOptions:
    """What is asked, and how the answer looks."""

    query: Annotated[str | None, Option("SQL, as an option.", "SQL")] = None
    script: Annotated[Path | None, Option("SQL script that runs first (temp views and tables).")] = None
    format: Annotated[str, tables.FORMAT] = ""
    limit: Annotated[int, Option("Rows shown on the console; 0 shows all.", heading=Heading.OUTPUT, least=0)] = 100


def query(
    inputs: SqlAndInputs,
    asked: QueryOptions,
    selection: SelectionOptions,
    passes: PassOptions,
    output: TableOptions,
    execution: SqlExecution,
) -> None:
    """Ask SQL of all ranks at once.

    Tables (rocpd_region …) and views (kernels, regions, top_kernels …) are those of the whole job; views end with
    rank and hostname. `summary.budget` and the like are the tables of `rocpd summary`, `metrics` is what hardware
    counters say of kernels. `rocpd schema` lists them all.

    Examples:
        rocpd query "select * from top_kernels limit 10"
        rocpd query "select metric, value from metrics where panel = 'l2'"
        rocpd query "select step, part, time_ns from summary.budget('step')"
        rocpd query "select rank, sum(duration) from kernels group by rank" job/*.db
        rocpd query -i a.db b.db --query "select * from regions" -o regions.csv
    """
    text, paths = _sql_and_paths(inputs, asked)
    script = _read_script(asked.script) if asked.script else ""
    form, path = tables.format_and_path(asked.format, output)
    with (
        selection.connect(inputs.only(paths), execution, all_passes=passes.all_passes) as session,
        tables.open_output(path, output) as out,
        index_hint(lambda: any(map(session.lacks_index, statements(text)))),
    ):
        results = 0
        for statement in [*statements(script), *statements(text)]:
            with _Bar(out) as bar:
                rows = (
                    session.explain(statement)
                    if execution.explain
                    else session.execute(statement, strategy=execution.strategy, on_progress=bar.on_progress)
                )
                if not rows.columns:
                    list(rows)
                    continue
                clear_bars()  # the head of a table is written before its first row is asked for
                _part_from_last(results, out, form)
                results += 1
                if tables.write_rows(rows.columns, bar.until_first(rows), out, form, asked.limit):
                    out.flush()
                    note(f"cut at {asked.limit} rows; --limit 0 shows all, --format csv streams them")


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


def _part_from_last(results: int, out: TextIO, form: TableFormat | None) -> None:
    """Put an empty line between tables; some documents hold one."""
    if results and form and form.is_document:
        raise UsageError(f"more than one statement gives rows, {form.name} holds one table", "keep one, or take csv")
    if results:
        out.write("\n")


def _sql_and_paths(inputs: SqlAndInputs, asked: QueryOptions) -> tuple[str, list[str]]:
    """Return the SQL and the inputs; SQL is `--query`, else one of the words, else the last value of `-i`."""
    if asked.query is not None:
        return asked.query, inputs.paths
    sql, words = split_sql(inputs.words)
    named = list(inputs.named)
    if sql is None and not asked.script:
        sql, named = split_sql(named)
    if sql is not None:
        check_sql(sql)
    elif not asked.script:
        raise UsageError("no SQL given", 'rocpd query "select * from top_kernels"')
    return sql or "", [*named, *words]


def _read_script(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise UsageError(f"{path}: cannot be read: {reason}") from error
