"""Owns where what is derived from files is kept between commands, and how much of it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from rocpd.errors import OutputError, UsageError

_USUAL_SIZE = "20G"
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


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


def most_bytes() -> int:
    """Return how many bytes all entries of one kind may take: `$ROCPD_CACHE_SIZE`, else 20 GiB.

    Raises:
        UsageError: the variable holds no size.
    """
    text = os.environ.get("ROCPD_CACHE_SIZE") or _USUAL_SIZE
    match = re.fullmatch(r"(\d{1,9})([KMGT]?)(?:i?B)?", text.strip().upper())
    if not match:
        raise UsageError(f"ROCPD_CACHE_SIZE={text}: not a size", "such as 500M or 20G")
    return int(match[1]) * _UNITS[match[2]]
