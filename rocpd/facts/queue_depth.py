"""Owns how many operations wait on an agent: launched, their call has returned, and not started yet.

The queue is empty while an agent waits for its host, and full while the host is ahead.
"""

from __future__ import annotations

import numpy as np

from rocpd.base.types import Ints


def waiting(launched: Ints, started: Ints) -> tuple[Ints, Ints]:
    """Return times [ns], ascending, and how many operations wait from each to the next one.

    Args:
        launched: when the launching call of each operation returned [ns].
        started: when it started [ns]; one that started before its call returned never waits.

    >>> [column.tolist() for column in waiting(np.array([10, 12, 30]), np.array([20, 15, 25]))]
    [[10, 12, 15, 20], [1, 2, 1, 0]]
    """
    waits = started > launched
    launched, started = launched[waits], started[waits]
    times = np.concatenate([launched, started])
    change = np.repeat(np.array([1, -1]), len(launched))
    order = np.argsort(times, kind="stable")
    depth = np.cumsum(change[order])
    times = times[order]
    last = np.append(np.diff(times) > 0, True)[: len(times)]
    return times[last], depth[last]
