"""Owns `--follow`: kernels are printed as files grow, until Ctrl-C. Never ends by itself.

Files are opened anew when they change: a profiler may go on to another file, replace one, or be in the middle of a
transaction, whose rows come with its end.
"""

from __future__ import annotations

import contextlib
import glob
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeAlias

from rocpd.errors import InputError
from rocpd.visible import for_reading

if TYPE_CHECKING:
    from rocpd.session import Session
    from rocpd.summary.options import Options

_INTERVAL = 0.5  # seconds between two looks
_REST = 4  # times as long as the last look took: looking takes a fifth of the time at most
_FRESH = 2.0  # seconds after a change in which another one may have left the same time
_BESIDE = ("", "-wal", "-journal")  # files that SQLite writes for one

FileState: TypeAlias = tuple[str, int, int, int]
"""Path, inode, size and time of change [ns] of a file."""


def follow(
    connect: Callable[[], Session],
    paths: Sequence[str],
    options: Options,
    out: TextIO,
    report: Callable[[str], None],
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """Print kernels as logduration logs them, each when it is first seen; returns at Ctrl-C.

    Args:
        connect: opens the files as they are now.
        paths: the inputs, to see whether they changed.
        options: what is asked of the analysis.
        out: where lines go.
        report: called with what keeps files from being read, once in a row.
        wait: lets some seconds pass.
    """
    from rocpd.summary.reading import Reading
    from rocpd.summary.trace_text import KernelLog

    log, shown = KernelLog(), for_reading(out)
    before: list[FileState] | None = None
    trouble = ""
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            began = time.monotonic()
            now = list(_states(paths))
            if now != before or _is_fresh(now):
                try:
                    with connect() as session:
                        for text in log.new_lines(Reading(session, options)):
                            shown.write(text)
                    before, trouble = now, ""
                except InputError as error:  # not there yet, half-written, locked
                    if error.message != trouble:
                        trouble = error.message
                        report(f"{trouble}; waiting")
                out.flush()
            wait(max(_INTERVAL, _REST * (time.monotonic() - began)))


def _states(paths: Sequence[str]) -> Iterator[FileState]:
    """Yield the state of each file that inputs name, and of those that SQLite writes beside it."""
    for text in paths or (".",):
        for name in sorted(glob.glob(text)) or [text]:  # noqa: PTH207 (a path may be absolute)
            path = Path(name)
            inside = sorted(path.rglob("*")) if path.is_dir() else [Path(f"{name}{end}") for end in _BESIDE]
            for file in inside:
                with contextlib.suppress(OSError):
                    known = file.stat()
                    yield str(file), known.st_ino, known.st_size, known.st_mtime_ns


def _is_fresh(states: Sequence[FileState]) -> bool:
    return any(time.time() - changed / 1e9 < _FRESH for *_, changed in states)
