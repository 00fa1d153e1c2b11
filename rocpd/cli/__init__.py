"""The command line: one file per command, listed in `commands.COMMANDS`.

Nothing here or in a command's module may import apsw, rich, pandas, pyarrow or sqlglot before the command runs:
`rocpd --help` has to be quick.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

from rocpd.cli import argv, completion, diagnostics
from rocpd.cli.commands import Commands
from rocpd.errors import Exit

_PROGRAM = "rocpd"


def run(arguments: Sequence[str]) -> int:
    """Run one command line.

    Args:
        arguments: without the program's name.

    Returns:
        the exit code, one of `rocpd.errors.Exit`; 130 after Ctrl-C, 143 after SIGTERM.
    """
    diagnostics.set_up_streams()
    termination = diagnostics.Termination()
    signal.signal(signal.SIGTERM, termination)
    group = Commands()
    if completion.VARIABLE in os.environ:
        group.main(list(arguments), _PROGRAM)  # ends the process
    words, dropped = argv.drop_no_effect(arguments)
    if dropped:
        diagnostics.note(f"without effect here: {', '.join(dict.fromkeys(dropped))}")
    words = argv.rewrite(words)
    return diagnostics.reporting_errors(lambda: _invoke(group, words), diagnostics.is_verbose(words), termination)


def _invoke(group: Commands, words: list[str]) -> int:
    with group.make_context(_PROGRAM, list(words)) as context:
        if words:
            return group.invoke(context) or Exit.GOOD
        sys.stderr.write(context.get_help() + "\n")
        return Exit.USAGE
