"""Owns which commands there are. A command's module is imported when the command runs."""

from __future__ import annotations

import keyword
import sys
from collections.abc import Mapping
from types import MappingProxyType

import click

from rocpd import entries
from rocpd.cli import completion, help
from rocpd.cli.build import command_of
from rocpd.errors import UsageError
from rocpd.version import __version__

COMMANDS: Mapping[str, str] = MappingProxyType(
    {
        "query": "Ask SQL of all ranks at once",
        "summary": "Show where the time went, exact over all ranks",
        "counters": "Show which hardware counters were collected, and for what",
        "diff": "Say whether a job is slower than another, and where",
        "advise": "Say what costs time, and what to do about it",
        "report": "Write what there is to say about a job as one file",
        "view": "Show a job in the browser: report, time line, SQL",
        "convert": "Write traces and tables that other tools read",
        "merge": "Write all ranks into one SQLite file",
        "trim": "Write the part of a job that lies in a window",
        "package": "Put the files of a job under one name",
        "redact": "Write files of a job that can be given away",
        "raptor": "Show RAPTOR's tables, for its command lines",
        "import": "Write traces of other profilers as rocpd files",
        "index": "Build an index, from which queries and summaries are answered",
        "cache": "List or remove what was imported, indexed or kept of answers",
        "info": "Show what the job is: GPUs, versions, ranks, rows, problems",
        "schema": "List tables and views, or the columns of one",
        "shell": "Open SQLite's shell on all ranks, read-only",
        "simulate": "Write the files of a simulated training job",
        "record": "Record a command: one database per process",
        "doctor": "Say what this machine can record, and what to do where it cannot",
        "control": "Start, stop or flush a recorder, or ask how it is",
    }
)
"""Name -> the first line of its docstring, in the order of `rocpd --help`, which imports no command for it."""

_ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {
        "compare": "rocpd diff BASE NEW",
        "stats": "rocpd summary",
        "analyze": "rocpd summary --list",
        "top": "rocpd summary kernels",
        "export": "rocpd convert --format csv",
        "trace": "rocpd convert --format pftrace",
        "view": "rocpd report, or rocpd convert --format pftrace",
    }
)
"""What other tools call it -> what it is here."""

_ABOUT = """Treat the profile databases of a GPU job as one.

Examples:
    rocpd merge rank*.db --summary
    rocpd query "select * from top_kernels"
    rocpd convert --format pftrace
"""


def _print_version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        sys.stdout.write(f"rocpd {__version__}\n")
        context.exit()


_OPTIONS = (
    (("--version", "-v"), "Print the version.", _print_version),
    (("--install-completion",), "Install completion for the current shell.", completion.install),
    (("--show-completion",), "Print the completion script of the current shell.", completion.show),
)


class Commands(click.Group):
    """`rocpd` itself."""

    def __init__(self) -> None:
        options = [
            click.Option(flags, callback=callback, is_flag=True, is_eager=True, expose_value=False)
            for flags, _, callback in _OPTIONS
        ]
        super().__init__("rocpd", context_settings=help.SETTINGS, no_args_is_help=False, params=options)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return one command, None when there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        word = cmd_name + "_" * keyword.iskeyword(cmd_name)
        return command_of(entries.load(f"rocpd.cli.{word}:{word}", cmd_name), cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of a command line.

        Raises:
            UsageError: there is none of that name.
        """
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            known = entries.closest(args[0], (*COMMANDS, *_ELSEWHERE))
            hint = _ELSEWHERE.get(known[0], f"did you mean {' or '.join(known)}?") if known else "rocpd --help"
            raise UsageError(f"No such command '{args[0]}'", hint)
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the whole help."""
        self.format_usage(ctx, formatter)
        help.write_doc(_ABOUT, formatter)
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))
        with formatter.section("Options"):
            formatter.write_dl([*((flags[0], text) for flags, text, _ in _OPTIONS), help.HELP_ROW])


def commands_with(flag: str) -> list[str]:
    """Return the names of the commands that have an option."""
    group = Commands()
    context = click.Context(group)
    commands = ((name, group.get_command(context, name)) for name in COMMANDS)
    return [name for name, command in commands if command and any(flag in p.opts for p in command.params)]
