"""Owns `rocpd shell`: SQLite's interactive shell on all ranks."""

from __future__ import annotations

import functools
import io
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocpd.base.amount import amount
from rocpd.base.errors import Exit, RocpdError
from rocpd.base.output import check_free
from rocpd.base.visible import for_reading
from rocpd.cli.options import Execution, Inputs, PassOptions, SelectionOptions

if TYPE_CHECKING:
    from rocpd.base.sqlite import apsw

_ALLOWED = frozenset({
    "bail", "changes", "color", "colour", "databases", "dbinfo", "dump", "echo", "encoding", "exceptions", "exit",
    "find", "ftsq", "header", "headers", "help", "indices", "limit", "log", "mode", "nullvalue", "output", "pages",
    "parameter", "print", "prompt", "read", "schema", "separator", "show", "tables", "timeout", "timer", "version",
    "vfsinfo", "vfslist", "vfsname", "width",
})  # fmt: skip
"""The dot commands that neither write nor run anything; one that a later apsw adds is refused."""


def shell(inputs: Inputs, selection: SelectionOptions, passes: PassOptions, execution: Execution) -> int:
    """Open SQLite's shell on all ranks, read-only.

    It has completion, history and .tables.

    Examples:
        rocpd shell job/
        echo "select count(*) from kernels;" | rocpd shell job/
    """
    with selection.connect(inputs, execution, all_passes=passes.all_passes) as session:
        ranks = amount(len(session.in_rows.ranks), "rank")
        return _run(session.open_views(), [*session.calculated()], f"{ranks}; .tables lists what there is, .help helps")


def _run(connection: apsw.Connection, calculated: Sequence[str], intro: str) -> int:
    stdin = sys.stdin or io.StringIO()  # None: the program was started with a closed one
    if isinstance(stdin, io.TextIOWrapper):
        stdin.reconfigure(encoding="utf-8", errors="replace")
    stdout, stderr = for_reading(sys.stdout), for_reading(sys.stderr)
    shell = shell_class()(db=connection, stdin=stdin, stdout=stdout, stderr=stderr)
    shell.calculated = calculated
    shell.command_colour(["off"])  # its own escape sequences would be made visible, too
    try:
        shell.cmdloop(intro=intro)
    except (TypeError, ValueError, LookupError) as error:  # of its own code, over a schema that no SQLite wrote
        raise RocpdError(f"the shell cannot read this schema: {error}", "rocpd info says what is damaged") from error
    return Exit.FAILED if shell.failed and not stdin.isatty() else Exit.GOOD


@functools.cache
def shell_class() -> Any:
    """Return apsw's shell with the commands of `_ALLOWED` alone: its class is imported when it is needed."""
    from apsw.shell import Shell

    class ReadOnlyShell(Shell):
        """apsw's shell where no command writes to a file that exists, runs a program or leaves the session."""

        failed = False
        calculated: Sequence[str] = ()

        def get_line(self, prompt: str = "") -> str | None:
            """Return the next line, None at the end of the input and after one that cannot be read."""
            try:
                inherited: Any = super()
                line: str | None = inherited.get_line(prompt)
            except OSError:
                self.handle_exception()
                return None
            return line

        def handle_exception(self) -> None:
            """Report an error; remember that there was one."""
            self.failed = True
            inherited: Any = super()
            inherited.handle_exception()

        def command_output(self, cmd: list[str]) -> None:
            """output FILENAME: Send output to a new file, or to stdout"""
            if len(cmd) == 1 and cmd[0] != "stdout":
                check_free(Path(cmd[0]), force=False)
            inherited: Any = super()
            inherited.command_output(cmd)

        def command_read(self, cmd: list[str]) -> None:
            """read FILENAME: Run the SQL and the commands of a file"""
            if any(word.lower().endswith(".py") for word in cmd):
                raise self.Error("read: Python is not run here")
            inherited: Any = super()
            inherited.command_read(cmd)

    changed: Any = ReadOnlyShell
    changed.command_tables = _with_calculated(Shell.command_tables)
    for name in dir(Shell):
        if name.startswith("command_") and name.removeprefix("command_") not in _ALLOWED:
            setattr(ReadOnlyShell, name, _refusal(name.removeprefix("command_").replace("_", "-")))
    return ReadOnlyShell


def _with_calculated(list_tables: Callable[[Any, list[str]], None]) -> Callable[[Any, list[str]], None]:
    """Return the command that lists tables with those after it that are calculated: no schema has these."""

    def list_all(self: Any, cmd: list[str]) -> None:
        list_tables(self, cmd)
        like = re.compile("|".join(map(_regex, cmd or ["%"])), re.I | re.S)
        self.write(self.stdout, "".join(f"{name}\n" for name in self.calculated if like.fullmatch(name)))

    list_all.__doc__ = list_tables.__doc__
    return list_all


def _regex(pattern: str) -> str:
    """Return the regular expression of a pattern of LIKE."""
    return "".join({"%": ".*", "_": "."}.get(letter, re.escape(letter)) for letter in pattern)


def _refusal(command: str) -> Callable[[Any, list[str]], None]:
    def refuse(self: Any, cmd: list[str]) -> None:
        raise self.Error(f"{command}: not available here, raw files are never changed")

    refuse.__doc__ = f"{command}: not available here, raw files are never changed"
    return refuse
