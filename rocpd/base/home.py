"""The folders in which rocpd keeps derived data for its user. Makes no folder."""

from __future__ import annotations

import os
from pathlib import Path

from rocpd.base import OutputError


def cache_root(kind: str) -> Path:
    """Return the folder of one kind of entries, `$XDG_CACHE_HOME/rocpd/<kind>`, which need not exist.

    Raises:
        OutputError: neither the variable nor a home folder is set.
    """
    named = os.environ.get("XDG_CACHE_HOME", "")
    if named.startswith("/"):  # the specification demands that relative paths are ignored
        return Path(named) / "rocpd" / kind
    try:
        return Path.home() / ".cache" / "rocpd" / kind
    except RuntimeError as error:
        raise OutputError(f"no cache folder: {error}", "set XDG_CACHE_HOME") from error


def index_root(folder: Path | None) -> Path:
    """Return the folder of index entries: the given one, else `$ROCPD_INDEX_FOLDER`, else in the user's cache.

    Raises:
        OutputError: there is no cache folder.
    """
    named = os.environ.get("ROCPD_INDEX_FOLDER")
    return folder or (Path(named) if named else cache_root("index"))


def has_cache_folder() -> bool:
    """Whether the user has a folder for caches."""
    try:
        return bool(cache_root(""))
    except OutputError:
        return False
