"""Which commands there are. The module of a command is imported when the command runs."""

from __future__ import annotations

import keyword
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, cast

import typer
from typer.core import TyperGroup

from rocpd.base import entries
from rocpd.base.errors import UsageError
from rocpd.base.version import __version__
from rocpd.cli import argv
from rocpd.cli.build import SETTINGS, Function, command_of, rows_of, write_doc

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter

GROUPS: Mapping[str, Mapping[str, str]] = {
    "Ask": {
        "summary": "Show where the time went, exact over all ranks",
        "advise": "Say what costs time, and what to do about it",
        "whatif": "Predict how long a step would take, had something been different",
        "hang": "Say whether a job hangs, which rank is missing, and who waits",
        "diff": "Say whether a job is slower than another, and where",
        "history": "Say since when a job is as fast as it is, of many runs",
        "query": "Ask SQL of all ranks at once",
        "shell": "Open SQLite's shell on all ranks, read-only",
        "schema": "List tables and views, or the columns of one",
        "counters": "Show which hardware counters were collected, and for what",
        "info": "Show what the job is: GPUs, versions, ranks, rows, problems",
        "questions": "Show which command answers which question",
        "mcp": "Answer agents' questions by the Model Context Protocol",
        "raptor": "Show RAPTOR's tables, for its command lines",
    },
    "See": {
        "top": "Show a job while it runs: steps, ranks that cost time, who is silent",
        "view": "Show a job in the browser: time line, report, flame graphs, SQL",
        "report": "Write the verdict, charts and tables of a job as one file",
    },
    "Hand on": {
        "convert": "Write traces and tables that other tools read",
        "merge": "Write all ranks into one SQLite file",
        "trim": "Write the part of a job that lies in a window",
        "package": "Put the files of a job under one name",
        "redact": "Write files of a job that can be given away",
        "symbolize": "Name functions of stripped libraries, from debug files elsewhere",
        "import": "Write traces of other profilers as rocpd files",
        "index": "Build an index, from which queries and summaries are answered",
        "cache": "List or remove what was imported, indexed or kept of ranks",
    },
    "Record": {
        "record": "Record a command: one database per process",
        "control": "Start, stop or flush a recorder, or ask how it is",
        "doctor": "Say what this machine can record, and what to do where it cannot",
        "simulate": "Write the files of a simulated training job",
    },
}
"""Heading of `rocpd --help` -> name -> the first line of the command's docstring; help imports no command for it."""

COMMANDS: Mapping[str, str] = {name: line for each in GROUPS.values() for name, line in each.items()}
"""Name -> line, in the order of `rocpd --help`."""

_HOMES = {
    **dict.fromkeys(("merge", "trim", "package", "redact", "symbolize", "import", "index", "cache"), "files"),
    **dict.fromkeys(("counters", "raptor"), "summary"),
    "schema": "info",
    "shell": "query",
    "doctor": "record",
    "questions": "mcp",
}
"""Command -> the module that it shares with others of its subject; those that are not here have one of their name."""

_ABOUT = """Treat the profile databases of a GPU job as one.

Examples:
    rocpd job/                                what is slow, on which rank and step, and why
    rocpd advise job/                         what to do about it
    rocpd query "select * from top_kernels" job/
    rocpd convert --format pftrace job/
"""


def function_of(command: str) -> Function:
    """Return the function of a command."""
    word = command + "_" * keyword.iskeyword(command)
    function: Function = entries.load(f"rocpd.cli.{_HOMES.get(command, word)}:{word}", command)
    return function


class Commands(TyperGroup):
    """`rocpd` itself."""

    def list_commands(self, ctx: Context) -> list[str]:
        """Return the names, in order."""
        return list(COMMANDS)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """Return one command, None when there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        return command_of(function_of(cmd_name), cmd_name)

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        """Find the command of a command line; a path that is no command is a job, for `summary`.

        Raises:
            UsageError: there is none of that name.
        """
        if args[0] not in COMMANDS and argv.is_path(args[0]):
            args = ["summary", *args]
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            from rocpd.cli.hints import meant_by

            hint = meant_by(args[0], COMMANDS, "rocpd --help")
            raise UsageError(f"No such command '{args[0]}'", hint)
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the whole help."""
        self.format_usage(ctx, formatter)
        write_doc(self.help or "", formatter)
        for heading, group in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl(list(group.items()))
        with formatter.section("Options"):
            formatter.write_dl([row for _, row in rows_of(self.get_params(ctx))])


def _print_version(context: typer.Context, is_wanted: bool) -> None:
    if is_wanted and not context.resilient_parsing:
        sys.stdout.write(f"rocpd {__version__}\n")
        raise typer.Exit


def _rocpd(
    _version: Annotated[
        bool, typer.Option("-v", "--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


def commands() -> Commands:
    """Return `rocpd` with all commands."""
    app = typer.Typer(cls=Commands, help=_ABOUT, context_settings=SETTINGS, rich_markup_mode=None)
    app.callback()(_rocpd)
    return cast(Commands, typer.main.get_command(app))


def commands_with(flag: str) -> list[str]:
    """Return the names of the commands that have an option."""
    group = commands()
    context = typer.Context(group)
    known = ((name, group.get_command(context, name)) for name in COMMANDS)
    return [name for name, command in known if command and any(flag in p.opts for p in command.params)]
