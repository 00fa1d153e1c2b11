"""Owns `rocpd shell`: SQLite's interactive shell on all ranks."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from rocpd.cli.diagnostics import amount
from rocpd.cli.options import Execution, Inputs, SelectionOptions
from rocpd.errors import Exit

if TYPE_CHECKING:
    import apsw


def shell(inputs: Inputs, selection: SelectionOptions, execution: Execution) -> int:
    """Open SQLite's shell on all ranks, read-only.

    It has completion, history and .tables.

    Examples:
        rocpd shell job/
        echo "select count(*) from kernels;" | rocpd shell job/
    """
    with selection.connect(inputs, execution) as session:
        ranks = amount(len(session.ranks), "rank")
        return _run(session.open_views(), f"{ranks}; .tables lists what there is, .help helps")


def _run(connection: apsw.Connection, intro: str) -> int:
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
    return Exit.FAILED if shell.failed and not sys.stdin.isatty() else Exit.GOOD
