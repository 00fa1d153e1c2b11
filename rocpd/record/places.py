"""Owns what is known of folders before a recording: the user's home, and whether files can be written. Makes none."""

from __future__ import annotations

import tempfile
from pathlib import Path

from rocpd.errors import UsageError


class NoFolderError(UsageError):
    """Files cannot be written where they should."""


def home() -> Path | None:
    """Return the user's home; None where there is none, as for made-up users of containers."""
    try:
        folder = Path.home()
    except RuntimeError:
        return None
    return None if folder == Path(folder.anchor) else folder


def writable(folder: Path) -> Path:
    """Return the folder, or the one in which it will be made, after making sure that files can be written there.

    Raises:
        NoFolderError: they cannot; it says why.
    """
    try:
        exists = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
        with tempfile.TemporaryFile(dir=exists):
            return exists
    except OSError as error:
        message = f"{folder} cannot be written: {error.strerror}"
        raise NoFolderError(message, "name another folder: rocpd record -o DIR") from error
