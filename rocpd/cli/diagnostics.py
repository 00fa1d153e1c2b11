"""Owns everything said on stderr: notes, progress, errors with their hint, and the exit code they mean.

stdout belongs to data; nothing here writes to it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from rocpd.errors import Exit, RocpdError, UsageError

# typer carries its own copy of click in new versions and uses the installed one in old ones: this is the base of
# all usage errors in both.
_ClickException: type[Exception] = typer.BadParameter.__mro__[2]

INTERRUPTED = 130  # what a shell gives for a command that Ctrl-C ended
_PATIENCE_S = 1.0  # no bar for anything quicker


class ReaderGoneError(Exception):
    """The reader of stdout has seen enough. No OSError: typer would end the program with exit code 1."""


@dataclass
class Outcome:
    """The exit code that a block ended with."""

    code: int = Exit.GOOD


def set_up_streams() -> None:
    """Write UTF-8 whatever the locale says; a kernel name must not stop a command."""
    # A program that was started with a closed stdout or stderr has None there.
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def is_verbose(words: Sequence[str]) -> bool:
    """Whether a command was asked to show tracebacks."""
    return "--verbose" in words[1:] or "-v" in words[1:]


def tell(message: str) -> None:
    """Say one line on stderr."""
    clear_bars()
    sys.stderr.write(f"rocpd: {message}\n")
    sys.stderr.flush()


def wrote(path: Path, what: str = "") -> None:
    """Say that a file or folder was written, and how big it is."""
    files = (file for file in path.rglob("*") if file.is_file()) if path.is_dir() else (path,)
    size = float(sum(file.stat().st_size for file in files))
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    text = f"{size:.0f}" if unit == "bytes" else f"{size:.1f}"
    tell(f"wrote {path} ({what}{text} {unit})")


@contextlib.contextmanager
def told(verbose: bool) -> Iterator[Outcome]:
    """Turn errors into one line and one hint on stderr, and into an exit code."""
    outcome = Outcome()
    try:
        yield outcome
    except RocpdError as error:
        if verbose:
            traceback.print_exc()
        _tell_error(error)
        outcome.code = error.exit_code
    except _ClickException as error:
        _tell_usage(error)
        outcome.code = Exit.USAGE
    except (KeyboardInterrupt, typer.Abort):
        outcome.code = INTERRUPTED
    except ReaderGoneError:
        # Python would complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        outcome.code = Exit.GOOD
    except OSError as error:
        if verbose:
            traceback.print_exc()
        tell(f"error: {error.filename or 'output'}: {error.strerror or error}")
        outcome.code = Exit.FAILED
    except Exception as error:  # noqa: BLE001 (a bug is told in one line too)
        if verbose:
            traceback.print_exc()
        _tell_error(RocpdError(f"{type(error).__name__}: {error}", "this is a bug in rocpd; -v shows where"))
        outcome.code = Exit.FAILED


def _tell_error(error: RocpdError) -> None:
    message = " ".join(error.message.split("\n"))
    sys.stderr.write(f"rocpd: error: {message}\n")
    if error.hint:
        sys.stderr.write(f"  hint: {error.hint}\n")


def _tell_usage(error: Any) -> None:
    """Tell a wrong option in our form; a command line without words gets the help."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return
    context = getattr(error, "ctx", None)
    _tell_error(UsageError(error.format_message(), f"{context.command_path if context else 'rocpd'} --help"))


@contextlib.contextmanager
def progress(
    label: str, unit: str = "rows", size: Callable[[], int] | None = None
) -> Iterator[Callable[[int, int], None] | None]:
    """Give a callback (done, total) that draws a bar on a terminal after a second; None when stderr is no terminal.

    Args:
        label: what is going on.
        unit: what is counted.
        size: gives the bytes that `total` stands for; the bar then also shows MB/s.
    """
    if not sys.stderr.isatty():
        yield None
        return
    bar = _Bar(label, unit, size() if size else 0)
    _bars.append(bar)
    try:
        yield bar.update
    finally:
        _bars.remove(bar)
        bar.end()


def clear_bars() -> None:
    """Take what is drawn from its line, before something else is written there; the next step draws it again."""
    for bar in _bars:
        bar.clear()


class _Bar:
    """One line that is drawn over itself: label, bar, share, speed, time left. It moves each second, done or not."""

    def __init__(self, label: str, unit: str, size: int) -> None:
        self._label = label
        self._size = size
        self._unit = unit
        self._start = time.monotonic()
        self._next = self._start + _PATIENCE_S
        self._done, self._total = 0, 0
        self._drawn = False
        self._quiet = False  # somebody else writes to the terminal, until the next step
        self._lock = threading.Lock()
        self._ended = threading.Event()
        threading.Thread(target=self._tick, name="rocpd-bar", daemon=True).start()

    def update(self, done: int, total: int) -> None:
        with self._lock:
            self._done, self._total, self._quiet = done, total, False
            if time.monotonic() >= self._next:
                self._draw()

    def _tick(self) -> None:
        while not self._ended.wait(0.5):
            with self._lock:
                if time.monotonic() >= self._next + 0.9 and not self._quiet and not self._ended.is_set():
                    self._draw()

    def _draw(self) -> None:
        now = time.monotonic()
        self._next = now + 0.1
        self._drawn = True
        passed = now - self._start
        share = min(self._done / self._total, 1.0) if self._total > 0 else 0.0
        rate = self._done / passed
        left = f"{(self._total - self._done) / rate:,.0f} s left" if rate else f"{passed:,.0f} s"
        tail = f" {share:4.0%}  {rate:,.0f} {self._unit}/s  {left}"
        if self._size:
            tail = f" {share:4.0%}  {self._done:,} {self._unit}  {share * self._size / passed / 1e6:,.0f} MB/s  {left}"
        width = _width()
        room = max(10, width - len(self._label) - len(tail) - 2)
        filled = int(room * share)
        sys.stderr.write("\r" + f"{self._label} {'━' * filled}{' ' * (room - filled)}{tail}"[: width - 1])
        sys.stderr.flush()

    def clear(self) -> None:
        with self._lock:
            self._quiet = True
            if self._drawn:
                self._drawn = False
                sys.stderr.write("\r" + " " * (_width() - 1) + "\r")
                sys.stderr.flush()

    def end(self) -> None:
        self._ended.set()
        self.clear()


_bars: list[_Bar] = []


def _width() -> int:
    """Columns of stderr's terminal; stdout may be a file, or another terminal."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return shutil.get_terminal_size().columns
