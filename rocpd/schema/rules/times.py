"""Owns which timestamps are valid: a start from 1 up, and an end that is not before it, both 64-bit whole numbers.

Profilers leave 0 or NULL where a time is unknown; damaged files hold texts, blobs and fractions.
"""

from __future__ import annotations

from rocpd.base.types import Flags, Ints

INVALID = "invalid timestamps (start 0, or end before start)"
"""What messages call the times of such events."""

LAST = (1 << 63) - 1
"""The latest time [ns]."""

# SQLite sorts texts and blobs above all numbers: BETWEEN refuses them and needs no typeof.
VALID_START = f"start BETWEEN 1 AND {LAST}"
"""SQL condition on events whose start is valid; they may have no valid end."""

VALID_TIMES = f'{VALID_START} AND "end" BETWEEN start AND {LAST}'
"""SQL condition on events with a valid start and end."""


def valid_times_of(alias: str = "") -> str:
    """Return the same condition as readable views have it, for the columns of an alias, such as `M`."""
    of = f"{alias}." if alias else ""
    return f'{of}start > 0 AND {of}"end" BETWEEN {of}start AND {LAST}'


VALID_POINT = f'"timestamp" BETWEEN 1 AND {LAST}'
"""SQL condition on samples with a valid time."""


def valid_start(start: Ints) -> Flags:
    """Return which starts [ns] are valid; a reader's stand-in for NULL is negative, so it is not."""
    valid: Flags = start > 0
    return valid


def valid_times(start: Ints, end: Ints) -> Flags:
    """Return which events have valid times, as `VALID_TIMES` does in SQL.

    >>> import numpy as np
    >>> valid_times(np.array([5, 5, 5, 0, -7]), np.array([9, 5, 4, 9, 9])).tolist()
    [True, True, False, False, False]
    """
    valid: Flags = valid_start(start) & (end >= start)
    return valid
