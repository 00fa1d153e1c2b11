"""Owns `rocpd shell`: SQLite's interactive shell on all ranks."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import typer

from rocpd.cli import options
from rocpd.errors import Exit

if TYPE_CHECKING:
    import apsw


@options.selects
def shell(
    paths: options.Paths = None,
    inputs: options.Input = None,
    selection: options.Selection = options.Selection(),
    align: options.Align = options.AlignChoice.AUTO,
    skip_bad: options.SkipBad = False,
    verbose: options.Verbose = False,
) -> None:
    """Open an SQL shell on all ranks, with completion, history and .tables; nothing can be written.

    \b
    rocpd shell job/
    echo "select count(*) from kernels;" | rocpd shell job/
    """
    with selection.connect(options.inputs(paths, inputs), align, skip_bad) as session:
        _run(session.open_views(), f"{len(session.ranks)} ranks; .tables lists what there is, .help helps")


def _run(connection: apsw.Connection, intro: str) -> None:
    from apsw.shell import Shell

    class ReadOnlyShell(Shell):
        """apsw's shell without the commands that would open a file for writing beside the session."""

        def _refuse(self, cmd: list[str]) -> None:
            """open: not available, raw files are never changed"""
            raise self.Error("not here: raw files are never changed\n")

        failed = False

        def process_sql(self, *words: Any, **options: Any) -> None:
            """Run SQL; remember whether any of it failed."""
            try:
                super().process_sql(*words, **options)
            except Exception:
                self.failed = True
                raise

        command_open = command_connection = command_restore = command_import = command_autoimport = _refuse

    shell: Any = ReadOnlyShell(db=connection)
    shell.cmdloop(intro=intro)
    if shell.failed and not sys.stdin.isatty():
        raise typer.Exit(Exit.FAILED)
