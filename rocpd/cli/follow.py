"""Owns `--follow`: kernels are printed as files grow, until Ctrl-C. Never ends by itself.

Files are opened anew when they change: a profiler may go on to another file, replace one, or be in the middle of a
transaction, whose rows come with its end.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeAlias

from rocpd.base.errors import InputError, OutputError, RocpdError, UsageError
from rocpd.base.visible import for_reading
from rocpd.federate.open.source import find_sources

if TYPE_CHECKING:
    from rocpd.facts.rank import Options
    from rocpd.session import Session

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
        report: called with what keeps files from being read, at each look.
        wait: lets some seconds pass.

    Raises:
        UsageError: what is asked for makes no sense.
        OutputError: a file of its own cannot be written.
    """
    from rocpd.summary.kernels.op_trace import KernelLog
    from rocpd.summary.reading import Reading

    log, shown = KernelLog(), for_reading(out)
    before: list[FileState] | None = None
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            start = time.monotonic()
            now = list(_states(paths))
            if now != before or _is_fresh(now):
                try:
                    with connect() as session:
                        for text in log.new_lines(Reading(session, options)):
                            shown.write(text)
                    before = now
                except (UsageError, OutputError):
                    raise
                except RocpdError as error:  # not there yet, half-written, locked, without what filters let pass
                    report(f"{error.message}; waiting")
                out.flush()
            wait(max(_INTERVAL, _REST * (time.monotonic() - start)))


def _states(paths: Sequence[str]) -> Iterator[FileState]:
    """Yield the state of each file that inputs stand for, and of those that SQLite writes beside it."""
    with contextlib.suppress(InputError):
        for path in find_sources(paths).paths:
            for file in (Path(f"{path}{ending}") for ending in _BESIDE):
                with contextlib.suppress(OSError):
                    status = file.stat()
                    yield str(file), status.st_ino, status.st_size, status.st_mtime_ns


def _is_fresh(states: Sequence[FileState]) -> bool:
    return any(time.time() - changed / 1e9 < _FRESH for *_, changed in states)
