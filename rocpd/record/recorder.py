"""Switches the recorder of this process on and off. The library decides what is recorded, and its place."""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, Self, TypeVar

from rocpd.base import OutputError, UsageError, frozen
from rocpd.record import library, marks

P = ParamSpec("P")
R = TypeVar("R")


@frozen
class Status:
    """State of the recorder of a process.

    Args:
        recording: whether events are taken.
        failed: whether the file could not be written.
        written: events in the file.
        lost: events that found no room in a buffer.
        file: the database, None before the first flush.
    """

    recording: bool
    failed: bool
    written: int
    lost: int
    file: Path | None


class _Process:
    """Number of active Recorders of this process, and whether recording was on before the first of them started."""

    lock = threading.RLock()
    on = 0
    was_recording = False


# A forked child lacks the thread that holds the lock, so no thread may hold it at a fork.
os.register_at_fork(
    before=_Process.lock.acquire, after_in_parent=_Process.lock.release, after_in_child=_Process.lock.release
)


class Recorder:
    """Records this process while it is on: a context manager and a decorator.

    Recorders may nest and may be used from several threads; the process is recorded while any of them is on. All write
    to the one file of the process. `start` and `stop` are idempotent.

    Args:
        folder: folder of the file; None: `$ROCPD_OUTPUT_PATH`, else `./rocpd-output-data`. A process has one folder,
            chosen by its first recorder.

    Raises:
        UsageError: the libraries are missing, or another folder was chosen before.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        if folder is not None:
            path = str(Path(folder).absolute())
            if library.loaded() is not None and os.environ.get("ROCPD_OUTPUT_PATH") != path:
                raise UsageError(f"{Path(folder)}: the recorder is in this process already and writes elsewhere")
            os.environ["ROCPD_OUTPUT_PATH"] = path
        marks.connect()
        self._lib = library.load()
        self._on = False

    def start(self) -> None:
        """Start recording.

        Raises:
            OutputError: the file was closed or could not be written before.
        """
        with _Process.lock:
            if self._on:
                return
            if _Process.on == 0:
                _Process.was_recording = self.status().recording
            if self._lib.rocpd_start() != 0:
                raise OutputError("recording cannot start: the file of this process was closed or failed before")
            self._on = True
            _Process.on += 1

    def stop(self) -> None:
        """Stop recording, and return when all recorded events are in the file."""
        with _Process.lock:
            if not self._on:
                return
            self._on = False
            _Process.on -= 1
            if _Process.on == 0 and not _Process.was_recording:
                self._lib.rocpd_stop()
        library.waiting().rocpd_flush()

    def flush(self) -> None:
        """Return when all events recorded so far are in the file.

        Raises:
            OutputError: the file cannot be written; the recorder printed the reason to stderr.
        """
        if library.waiting().rocpd_flush() != 0:
            raise OutputError("the recorder could not write its file")

    def status(self) -> Status:
        """Return the state of the recorder of this process."""
        status = library.CStatus()
        self._lib.rocpd_status(ctypes.byref(status))
        file = Path(os.fsdecode(status.file)) if status.file else None
        return Status(bool(status.recording), bool(status.failed), status.written, status.lost, file)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def recorded(*args: P.args, **kwargs: P.kwargs) -> R:
            with Recorder():
                return function(*args, **kwargs)

        return recorded
