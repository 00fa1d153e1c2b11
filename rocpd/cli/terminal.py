"""The terminal of stdout: its width, its colours, and the pager for longer output.

Text is held until it fills the terminal, and then goes to the pager; otherwise it is written when the page ends. Notes
are part of the page, in their order.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, TextIO

from rocpd.base.texts import VisibleStream
from rocpd.cli.diagnostics import ReaderGoneError, notes_on, until_ctrl_c, without_bars

if TYPE_CHECKING:
    from rocpd.table.palette import Screen

_OF_LESS = {"LESS": "FRX", "LESSCHARSET": "utf-8"}  # ends on one screen, shows colours, leaves the text on the screen
_DUMB = ("dumb", "unknown")


class When(StrEnum):
    """When text is coloured."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


@contextmanager
def page(when: When, *, is_paged: bool) -> Iterator[TextIO]:
    """Yield stdout: a `TerminalPage` where it is a terminal, or has to look like one.

    Args:
        when: when text is coloured.
        is_paged: whether the pager takes output that is longer than the terminal.

    Raises:
        ReaderGoneError: the reader has left the pager, or interrupted its output.
    """
    if not sys.stdout.isatty() and when is not When.ALWAYS:
        yield VisibleStream(sys.stdout)  # type: ignore[misc] # as a TextIO, as far as anything here writes
        return

    from rocpd.table.palette import Screen

    width, height = shutil.get_terminal_size()
    out = TerminalPage(sys.stdout, Screen(width, _colours(when)), height, _pager() if is_paged else [])
    with notes_on(out):
        try:
            yield out  # type: ignore[misc] # as above
        except KeyboardInterrupt:
            if out.is_paging:
                raise ReaderGoneError from None
            raise
        except SystemExit:
            out.stop()
            raise
        finally:
            out.close()


def screen_of(out: TextIO) -> Screen | None:
    """Return the screen of a terminal; None for a pipe or file."""
    return out.screen if isinstance(out, TerminalPage) else None


def _colours(when: When) -> int:
    """Return the number of colours; `$NO_COLOR` is https://no-color.org."""
    from rocpd.table.palette import FEW, MANY

    is_dumb = os.environ.get("TERM", "") in _DUMB
    if when is When.NEVER or (when is When.AUTO and (os.environ.get("NO_COLOR") or is_dumb)):
        return 0
    return MANY if os.environ.get("COLORTERM") in ("truecolor", "24bit") else FEW


def is_interactive() -> bool:
    """Whether a person sees the output and can type."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def _pager() -> list[str]:
    """Return the command of the pager; empty where nobody could use one."""
    import shlex

    if not is_interactive() or os.environ.get("TERM", "") in _DUMB:
        return []
    command = os.environ.get("PAGER", "less")
    try:
        words = shlex.split(command)
    except ValueError:
        return []
    return words if words and words != ["cat"] and shutil.which(words[0]) else []


class TerminalPage(VisibleStream):
    """A page on a terminal.

    Args:
        stream: stdout.
        screen: its width and colours.
        height: lines of the terminal.
        pager: the command of the pager; empty: text is written at once.
    """

    def __init__(self, stream: TextIO, screen: Screen, height: int, pager: list[str]) -> None:
        super().__init__(stream, has_colours=bool(screen.colours))
        self.screen = screen
        self._room = height - 2  # the prompt of the shell comes after it
        self._command = pager
        self._held: list[str] = []
        self._pager: subprocess.Popen[str] | None = None

    @property
    def is_paging(self) -> bool:
        """Whether the page goes to the pager."""
        return self._pager is not None

    def write(self, text: str) -> int:
        """Write to the page.

        Raises:
            ReaderGoneError: the reader has left the pager.
        """
        if self._command:
            self._held.append(self._shown(text))
            self._room -= text.count("\n")
            if self._pager or self._room < 0:
                self._pass_on()
        else:
            super().write(text)
        return len(text)

    def flush(self) -> None:
        """Write text at once where there is no pager; otherwise it waits for the page to fill."""
        if not self._command:
            self._stream.flush()

    def close(self) -> None:
        """End the page; with a pager, return when the reader has left it."""
        if self._pager is None:
            self._stream.write("".join(self._held))
            self._stream.flush()
            return
        with until_ctrl_c():  # the pager receives it, too
            self._pager.communicate()
        while self._pager.poll() is None:
            with until_ctrl_c():
                self._pager.wait()

    def stop(self) -> None:
        """End the pager."""
        if self._pager:
            self._pager.terminate()

    def _pass_on(self) -> None:
        """Write the held text to the pager, starting it if necessary; without a pager, to the terminal."""
        text = "".join(self._held)
        self._held = []
        self._pager = self._pager or self._start()
        try:
            ((self._pager and self._pager.stdin) or self._stream).write(text)
        except BrokenPipeError as error:
            raise ReaderGoneError from error

    def _start(self) -> subprocess.Popen[str] | None:

        without_bars()
        self._stream.flush()
        environment = {**_OF_LESS, **os.environ}
        try:
            return subprocess.Popen(self._command, stdin=subprocess.PIPE, text=True, encoding="utf-8", env=environment)
        except OSError:
            self._command = []
            return None
