"""`rocpd query`, SQL over all ranks, as text, and `rocpd shell`: SQLite's interactive shell on them."""

from __future__ import annotations

import contextlib
import functools
import io
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from rocpd.base import Exit, RocpdError, Row, UsageError, amount, frozen
from rocpd.base.option import Heading, declare, plain
from rocpd.base.output import check_free
from rocpd.base.texts import VisibleStream
from rocpd.cli import tables
from rocpd.cli.argv import check_sql, split_sql
from rocpd.cli.diagnostics import clear_bars, index_hint, note, progress
from rocpd.cli.options import JobChoice, PassOptions, TableOptions
from rocpd.federate.plan.steps import Strategy
from rocpd.federate.statements import statements

if TYPE_CHECKING:
    from rocpd.base.sqlite import apsw


@frozen
class SqlJob(JobChoice):
    """The SQL, the job, and the strategy for SQL."""

    words: tuple[str, ...] = plain(
        (), "SQL, then files, globs, folders, *.rpdb packages.", "[SQL] [INPUTS]...", is_positional=True
    )
    strategy: Strategy = declare(
        Strategy.AUTO,
        "How a statement runs over ranks; the answer is the same, but for the last digit of sums of reals.",
        heading=Heading.EXECUTION,
    )
    explain: bool = declare(False, "Show how it would run: strategy, SQL of each step.", heading=Heading.EXECUTION)


@frozen
class QueryOptions:
    """The statement, and the look of the answer."""

    query: str | None = declare(None, "SQL, as an option.", "SQL", heading=Heading.AMD)
    script: Path | None = plain(None, "SQL script that runs first (temp views and tables).")
    format: str = tables.format_option()
    limit: int | None = plain(
        None, "Most rows, 0: all; without it 100 on the console, else all.", "N", heading=Heading.OUTPUT, least=0
    )


def query(asked: QueryOptions, job: SqlJob, passes: PassOptions, output: TableOptions) -> None:
    """Ask SQL of all ranks at once.

    Tables (rocpd_region …) and views (kernels, regions, top_kernels …) are those of the whole job; views end with
    rank and hostname. `summary.budget` and the like are the tables of `rocpd summary`, `metrics` has the metrics of
    kernels from hardware counters. `rocpd schema` lists them all.

    Examples:
        rocpd query "select * from top_kernels limit 10" job/
        rocpd query "select metric, value from metrics where panel = 'l2'"
        rocpd query "select step, part, time_ns from summary.budget('step')"
        rocpd query "select rank, sum(duration) from kernels group by rank" job/*.db
        rocpd query "select * from regions" a.db b.db -o regions.csv
    """
    text, paths = _sql_and_paths(job, asked)
    script = _read_script(asked.script) if asked.script else ""
    form, path = tables.format_and_path(asked.format, output)
    limit = tables.most_rows(asked.limit, form is None, usual=100)
    with (
        job.only(paths).connect(all_passes=passes.all_passes) as session,
        tables.open_output(path, output) as out,
        index_hint(lambda: any(map(session.lacks_index, statements(text)))),
    ):
        results = 0
        for statement in [*statements(script), *statements(text)]:
            with _Bar(out) as bar:
                rows = (
                    session.explain(statement)
                    if job.explain
                    else session.execute(statement, strategy=job.strategy, on_progress=bar.on_progress)
                )
                if not rows.columns:
                    list(rows)
                    continue
                clear_bars()  # the head of a table is written before its first row is asked for
                if results and form and form.is_document:
                    what = f"more than one statement gives rows, {form.name} holds one table"
                    raise UsageError(what, "keep one, or take csv")
                out.write("\n" if results else "")
                results += 1
                if tables.write_rows(rows.columns, bar.until_first(rows), out, form, limit):
                    out.flush()
                    note(f"cut at {amount(limit, 'row')}; --limit 0 shows all, --format csv streams them")


class _Bar(contextlib.ExitStack):
    """A bar of the finished ranks, shown until the first row goes to the same terminal."""

    def __init__(self, out: TextIO) -> None:
        super().__init__()
        self._is_terminal = out.isatty()
        self._report = self.enter_context(progress("query", "ranks"))

    def on_progress(self, done: int, total: int) -> None:
        """Draw the number of finished ranks."""
        if self._report:
            self._report(done, total)

    def until_first(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield `rows`; the bar disappears before the first one."""
        for row in rows:
            if self._report and self._is_terminal:
                self._report = None
                self.close()
            yield row


def _sql_and_paths(job: SqlJob, asked: QueryOptions) -> tuple[str, list[str]]:
    """Return the SQL and the inputs; SQL is `--query`, else one of the words, else the last value of `-i`."""
    if asked.query is not None:
        return asked.query, job.paths
    sql, words = split_sql(job.words)
    named = list(job.named)
    if sql is None and not asked.script:
        sql, named = split_sql(named)
    if sql and sql.strip():
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


_ALLOWED = frozenset({
    "bail", "changes", "color", "colour", "databases", "dbinfo", "dump", "echo", "encoding", "exceptions", "exit",
    "find", "ftsq", "header", "headers", "help", "indices", "limit", "log", "mode", "nullvalue", "output", "pages",
    "parameter", "print", "prompt", "read", "schema", "separator", "show", "tables", "timeout", "timer", "version",
    "vfsinfo", "vfslist", "vfsname", "width",
})  # fmt: skip
"""The dot commands that neither write nor run anything; commands that a later apsw adds are refused."""


def shell(job: JobChoice, passes: PassOptions) -> int:
    """Open SQLite's shell on all ranks, read-only.

    It has completion, history and .tables.

    Examples:
        rocpd shell job/
        echo "select count(*) from kernels;" | rocpd shell job/
    """
    with job.connect(all_passes=passes.all_passes) as session:
        intro = f"{amount(len(session.in_rows.ranks), 'rank')}; .tables lists what there is, .help helps"
        return _run_shell(session.open_views(), [*session.calculated()], intro)


def _run_shell(connection: apsw.Connection, calculated: Sequence[str], intro: str) -> int:
    stdin = sys.stdin or io.StringIO()  # None where the program was started with a closed stdin
    if isinstance(stdin, io.TextIOWrapper):
        stdin.reconfigure(encoding="utf-8", errors="replace")
    stdout, stderr = (VisibleStream(stream).data() for stream in (sys.stdout, sys.stderr))
    shell = shell_class()(db=connection, stdin=stdin, stdout=stdout, stderr=stderr)
    shell.calculated = calculated
    shell.command_colour(["off"])  # its own escape sequences would be made visible, too
    try:
        shell.cmdloop(intro=intro)
    except (TypeError, ValueError, LookupError) as error:  # its own, over a schema that SQLite did not write
        raise RocpdError(f"the shell cannot read this schema: {error}", "rocpd info says what is damaged") from error
    return Exit.FAILED if shell.failed and not stdin.isatty() else Exit.GOOD


@functools.cache
def shell_class() -> Any:
    """Return apsw's shell with only the commands of `_ALLOWED`. Its class is imported on demand."""
    from apsw import shell

    Shell: Any = shell.Shell  # noqa: N806 (a class; its own types are incomplete)

    class ReadOnlyShell(Shell):  # type: ignore[misc]
        """apsw's shell where no command writes to a file that exists, runs a program or leaves the session."""

        failed = False
        calculated: Sequence[str] = ()

        def get_line(self, prompt: str = "") -> str | None:
            """Return the next line, None at the end of the input and after one that cannot be read."""
            try:
                line: str | None = super().get_line(prompt)
            except OSError:
                self.handle_exception()
                return None
            return line

        def handle_exception(self) -> None:
            """Report an error, and remember it."""
            self.failed = True
            super().handle_exception()

        def command_output(self, cmd: list[str]) -> None:
            """output FILENAME: Send output to a new file, or to stdout"""
            if len(cmd) == 1 and cmd[0] != "stdout":
                check_free(Path(cmd[0]), force=False)
            super().command_output(cmd)

        def command_read(self, cmd: list[str]) -> None:
            """read FILENAME: Run the SQL and the commands of a file"""
            if any(word.lower().endswith(".py") for word in cmd):
                raise self.Error("read: Python is not run here")
            super().command_read(cmd)

    ReadOnlyShell.command_tables = _with_calculated(Shell.command_tables)
    for name in dir(Shell):
        if name.startswith("command_") and name.removeprefix("command_") not in _ALLOWED:
            setattr(ReadOnlyShell, name, _refusal(name.removeprefix("command_").replace("_", "-")))
    return ReadOnlyShell


def _with_calculated(list_tables: Callable[[Any, list[str]], None]) -> Callable[[Any, list[str]], None]:
    """Return the command that lists tables, extended by the calculated ones, which no schema holds."""

    def list_all(self: Any, cmd: list[str]) -> None:
        list_tables(self, cmd)
        like = re.compile("|".join(map(_regex, cmd or ["%"])), re.I | re.S)
        self.write(self.stdout, "".join(f"{name}\n" for name in self.calculated if like.fullmatch(name)))

    list_all.__doc__ = list_tables.__doc__
    return list_all


def _regex(pattern: str) -> str:
    """Return the regular expression for a pattern of LIKE."""
    return "".join({"%": ".*", "_": "."}.get(letter, re.escape(letter)) for letter in pattern)


def _refusal(command: str) -> Callable[[Any, list[str]], None]:
    def refuse(self: Any, cmd: list[str]) -> None:
        raise self.Error(f"{command}: not available here, raw files are never changed")

    refuse.__doc__ = f"{command}: not available here, raw files are never changed"
    return refuse
