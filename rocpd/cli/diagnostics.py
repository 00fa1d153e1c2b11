"""Owns everything said on stderr: notes, progress, errors with their hint, and the exit code they mean.

stdout belongs to data; nothing here writes to it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
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
    try:
        yield bar.update
    finally:
        bar.clear()


class _Bar:
    """One line that is drawn over itself: label, bar, share, speed, time left."""

    def __init__(self, label: str, unit: str, size: int) -> None:
        self._label = label
        self._size = size
        self._unit = unit
        self._start = time.monotonic()
        self._next = self._start + _PATIENCE_S
        self._drawn = False

    def update(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now < self._next or total <= 0:
            return
        self._next = now + 0.1
        self._drawn = True
        share = min(done / total, 1.0)
        rate = done / (now - self._start)
        left = (total - done) / rate if rate else 0
        tail = f" {share:4.0%}  {rate:,.0f} {self._unit}/s  {left:,.0f} s left"
        if self._size:
            megabytes = share * self._size / (now - self._start) / 1e6
            tail = f" {share:4.0%}  {done:,} {self._unit}  {megabytes:,.0f} MB/s  {left:,.0f} s left"
        room = max(10, shutil.get_terminal_size().columns - len(self._label) - len(tail) - 2)
        filled = int(room * share)
        sys.stderr.write(f"\r{self._label} {'━' * filled}{' ' * (room - filled)}{tail}")
        sys.stderr.flush()

    def clear(self) -> None:
        if self._drawn:
            sys.stderr.write("\r" + " " * (shutil.get_terminal_size().columns - 1) + "\r")
            sys.stderr.flush()
