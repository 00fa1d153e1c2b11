"""The command line: commands are listed in `commands.COMMANDS`.

Nothing here or in a command's module may import apsw, rich, pandas, pyarrow or sqlglot before the command runs, so
that `rocpd --help` is quick. Nothing at all is imported before Ctrl-C is handled.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Sequence
    from typing import NoReturn

    from rocpd.cli.commands import Commands
else:
    import _signal as signal  # built in; `signal` imports other modules, and Ctrl-C meanwhile would have no handler

_PROGRAM = "rocpd"
_COMPLETE = "_ROCPD_COMPLETE"  # environment variable through which the shell asks for completions


def start(*words: str) -> NoReturn:
    """Run the command line of this process, with `words` before its arguments, and exit.

    Where the locale makes Python decode arguments and names of files by another encoding than UTF-8, even under
    PYTHONUTF8=0, Python starts again in its UTF-8 mode: texts in SQL, in files and in names have to compare.
    """
    _let_ctrl_c_end_at_once()
    if sys.getfilesystemencoding() != "utf-8":
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
    arguments = [*words, *sys.argv[1:]]
    if arguments[:1] != ["record"]:  # `record` hands its environment on
        # numpy's linear algebra, unused here, starts threads; where it can't, it writes to stderr and sends SIGINT.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.exit(run(arguments, is_own_process=True))


def run(arguments: Sequence[str], *, is_own_process: bool = False) -> int:
    """Run one command line.

    Handlers of SIGINT, SIGTERM and SIGHUP stay set, so that signals at the end of the interpreter are quiet, too.

    Args:
        arguments: without the program's name.
        is_own_process: whether the process does nothing else.

    Returns:
        the exit code, one of `rocpd.base.Exit`; 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP.
    """
    _let_ctrl_c_end_at_once()
    from rocpd.base import process

    if is_own_process:
        process.claim()
    from rocpd.base import Exit
    from rocpd.cli import argv, diagnostics
    from rocpd.cli.commands import commands

    diagnostics.set_up_streams()
    group = commands()
    if _COMPLETE in os.environ:
        from rocpd.cli import completion

        completion.complete(group)
    words, dropped = argv.drop_no_effect(arguments)
    if dropped:
        diagnostics.note(f"without effect here: {', '.join(dict.fromkeys(dropped))}")
    words = argv.rewrite(words)
    is_gate = words[:1] == ["diff"] or words[:2] == ["history", "check"]
    failed = Exit.INPUT if is_gate else Exit.FAILED  # 1 means slower there
    is_verbose = diagnostics.is_verbose(words)
    code = diagnostics.reporting_errors(lambda: _invoke(group, words), is_verbose, failed)
    code = diagnostics.report_failures(code, is_verbose, failed)
    _let_ctrl_c_end_at_once()
    return code


def _let_ctrl_c_end_at_once() -> None:
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:  # scripts in the background ignore it
        signal.signal(signal.SIGINT, _end_at_once)


def _end_at_once(_signal: int, _frame: object) -> None:
    """Handle Ctrl-C before and after a command, when nothing is being written."""
    os.write(2, b"rocpd: interrupted; nothing partial is left\n")
    os._exit(128 + signal.SIGINT)


def _invoke(group: Commands, words: list[str]) -> int:
    from rocpd.base import Exit
    from rocpd.cli import diagnostics

    with group.make_context(_PROGRAM, list(words)) as context:
        if words:
            return group.invoke(context) or Exit.GOOD
        diagnostics.say(context.get_help() + "\n")
        return Exit.USAGE
