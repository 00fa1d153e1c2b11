"""Where rocpd keeps what it derives, of the user who runs it. Makes no folder."""

from __future__ import annotations

import os
from pathlib import Path

from rocpd.base import OutputError


def cache_root(kind: str) -> Path:
    """Return the folder of one kind of entries, `$XDG_CACHE_HOME/rocpd/<kind>`, which need not exist.

    Raises:
        OutputError: neither the variable nor a home folder says where.
    """
    named = os.environ.get("XDG_CACHE_HOME", "")
    if named.startswith("/"):  # the specification has relative ones ignored
        return Path(named) / "rocpd" / kind
    try:
        return Path.home() / ".cache" / "rocpd" / kind
    except RuntimeError as error:
        raise OutputError(f"no cache folder: {error}", "set XDG_CACHE_HOME") from error


def index_root(folder: Path | None) -> Path:
    """Return where entries of the index lie: the folder given, else `$ROCPD_INDEX_FOLDER`, else the user's cache.

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
