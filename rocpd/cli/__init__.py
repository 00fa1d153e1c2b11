"""The command line: one file per command, listed in `COMMANDS`.

Nothing here or in a command's module may import apsw, rich, pandas, pyarrow or sqlglot before the command runs:
`rocpd --help` has to be quick.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from rocpd.cli import (
    control,
    convert,
    diagnostics,
    info,
    merge,
    package,
    query,
    record,
    schema,
    shell,
    simulate,
    summary,
)
from rocpd.cli.argv import drop_no_effect, rewrite
from rocpd.errors import Exit
from rocpd.version import __version__

COMMANDS = (
    query.query,
    summary.summary,
    convert.convert,
    merge.merge,
    package.package,
    info.info,
    schema.schema,
    shell.shell,
    simulate.simulate,
    record.record,
    control.control,
)
"""All commands, in the order of `rocpd --help`."""


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"rocpd {__version__}\n")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", "-v", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Treat the profile databases of a GPU job as one.

    \b
    rocpd merge rank*.db --summary
    rocpd query "select * from top_kernels"
    rocpd convert --format pftrace
    """


def build() -> typer.Typer:
    """Give the application with all commands."""
    app = typer.Typer(
        name="rocpd",
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(_root)
    for command in COMMANDS:
        app.command(context_settings={"help_option_names": ["-h", "--help"]})(command)
    return app


def run(arguments: Sequence[str]) -> int:
    """Run one command line.

    Args:
        arguments: without the program's name.

    Returns:
        the exit code, one of `rocpd.errors.Exit`; 130 after Ctrl-C, 143 after SIGTERM.
    """
    diagnostics.set_up_streams()
    signal.signal(signal.SIGTERM, _terminated)
    kept, dropped = drop_no_effect(arguments)
    if dropped:
        diagnostics.tell(f"without effect here: {', '.join(dict.fromkeys(dropped))}")
    words = rewrite(kept)
    with diagnostics.told(verbose=diagnostics.is_verbose(words)) as outcome:
        command: Any = typer.main.get_command(build())
        code = command.main(args=words, prog_name="rocpd", standalone_mode=False)
        outcome.code = code if isinstance(code, int) else Exit.GOOD
    if outcome.code == diagnostics.INTERRUPTED:  # typer turns Ctrl-C into this code, or lets it through
        diagnostics.tell("interrupted; nothing partial is left")
    return outcome.code


def _terminated(_signal: int, _frame: object) -> None:
    # An exception, so that temporary outputs are removed on the way out.
    raise SystemExit(143)
