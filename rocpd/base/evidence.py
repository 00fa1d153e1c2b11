"""Owns which files are evidence: the inputs that are open now. Refuses outputs that would replace or disturb one.

Every output passes `rocpd.base.output`, which asks here before it creates anything. Never opens a file.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from weakref import WeakSet

from rocpd.base.errors import OutputError

JOURNALS = ("-journal", "-wal", "-shm")
"""Endings of the files that SQLite keeps beside a database and reads with it."""

_HINT = "raw files are never changed, not even with --force: choose another name"


class Evidence:
    """Files that no output may touch, until they are released.

    Args:
        paths: the files; they need not exist.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        self.paths = tuple(Path(os.path.realpath(path)) for path in paths)
        _HELD.add(self)

    def release(self) -> None:
        """Stop protecting the files; idempotent."""
        _HELD.discard(self)


_HELD: WeakSet[Evidence] = WeakSet()


def check_output(path: Path) -> None:
    """Refuse an output that is an input, by whatever name, or that lies where SQLite would read it with an input.

    Raises:
        OutputError: it is.
    """
    real = Path(os.path.realpath(path))
    status = _status(path)
    for evidence in list(_HELD):
        for raw in evidence.paths:
            if real == raw or (status and (other := _status(raw)) and os.path.samestat(status, other)):
                raise OutputError(f"{path}: is an input", _HINT)
            for ending in JOURNALS:
                if real.name == raw.name + ending and real.parent == raw.parent:
                    raise OutputError(f"{path}: SQLite would read it together with the input {raw.name}", _HINT)


def check_folder(path: Path) -> None:
    """Refuse a folder as an output that replaces it, if an input lies in it.

    Raises:
        OutputError: one does.
    """
    check_output(path)
    real = Path(os.path.realpath(path))
    for evidence in list(_HELD):
        for raw in evidence.paths:
            if raw.is_relative_to(real):
                raise OutputError(f"{path}: the input {raw.name} lies in it", _HINT)


def _status(path: Path) -> os.stat_result | None:
    with contextlib.suppress(OSError):
        return path.stat()
    return None
