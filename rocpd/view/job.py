"""Owns what is viewed: which files, how they are opened, and how it shows that they changed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import field
from typing import TypeAlias

from rocpd.errors import InputError
from rocpd.federate.open.source import find_sources
from rocpd.federate.select.align import Align, GivenOffset
from rocpd.federate.select.filters import Filters
from rocpd.federate.select.window import Window
from rocpd.frozen import frozen
from rocpd.session import Session, connect

Stamp: TypeAlias = tuple[tuple[str, int, int], ...]
"""(path, bytes, time of the last change [ns]) of each file, and of the log beside one that is being written."""


@frozen
class ViewedJob:
    """A job as `rocpd.connect` opens it; see there for the arguments. A value that can be sent to a process."""

    inputs: tuple[str, ...]
    skip_bad: bool = False
    align: Align = Align.AUTO
    clock_offsets: Mapping[str, GivenOffset] = field(default_factory=dict)
    window: Window | None = None
    filters: Filters | None = None
    jobs: int | None = None

    def connect(self) -> Session:
        """Open the files. Errors as `rocpd.connect`."""
        return connect(
            self.inputs,
            skip_bad=self.skip_bad,
            align=self.align,
            clock_offsets=self.clock_offsets,
            window=self.window,
            filters=self.filters,
            jobs=self.jobs,
        )

    def stamp(self) -> Stamp:
        """Return what tells this state of the files from a later one; files that vanished are missing in it."""
        stamps = []
        with contextlib.suppress(InputError):
            for path in find_sources(self.inputs).paths:
                for file in (os.fspath(path), f"{os.fspath(path)}-wal"):
                    with contextlib.suppress(OSError):
                        status = os.stat(file)  # noqa: PTH116 (a path of a log beside a file is no Path yet)
                        stamps.append((file, status.st_size, status.st_mtime_ns))
        return tuple(stamps)
