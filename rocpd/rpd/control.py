"""RPD's switch of the recorder, `from rocpd.rpd import rpdTracerControl`: it switches `rocpd.record.Recorder`."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Self

from rocpd.record import marks
from rocpd.record.recorder import Recorder


class rpdTracerControl:  # noqa: N801 (RPD's name)
    """Switches the recorder of this process: `start` and `stop`, or a with statement.

    Starts are counted over all instances: recording goes on until each start has its stop. Recordings go into a folder
    with one database per process, which every command takes like a file: the folder of `$ROCPD_OUTPUT_PATH` if it is
    set, as under `rocpd record`, else the one from `setFilename`. Processes started after the first instance was made
    record into it, too.

    Raises:
        UsageError: the recorder is not installed.
    """

    _folder = os.environ.get("RPDT_FILENAME", "trace.rpd")

    def __init__(self) -> None:
        self._recorder()
        self._on: list[Recorder] = []

    @classmethod
    def setFilename(cls, name: str | os.PathLike[str], append: bool = False) -> None:  # noqa: N802
        """Choose the folder, before the first instance is made.

        Args:
            name: its path.
            append: without effect: databases of earlier runs stay in the folder beside those of this one.
        """
        cls._folder = os.fspath(name)

    @classmethod
    def _recorder(cls) -> Recorder:
        return Recorder(None if "ROCPD_OUTPUT_PATH" in os.environ else cls._folder)

    def start(self) -> None:
        """Start recording."""
        self._on.append(self._recorder())
        self._on[-1].start()

    def stop(self) -> None:
        """Undo the last start of this instance; the recorded events are then in the file."""
        if self._on:
            self._on.pop().stop()

    def flush(self) -> None:
        """Return when all events recorded so far are in the file."""
        self._recorder().flush()

    def rangePush(self, domain: str, apiName: str, args: str) -> None:  # noqa: N802, N803
        """Begin a range of the calling thread; its text is `args`, else the name, and the domain is left out."""
        text = (args or apiName).encode("utf-8", "surrogateescape")
        marks.Calls.push(text, len(text))

    def rangePop(self) -> None:  # noqa: N802
        """End the last range of the calling thread."""
        marks.Calls.pop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
