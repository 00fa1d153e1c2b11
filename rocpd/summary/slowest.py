"""Says which rank was slow in a step, where one was. Knows no markers: a step is a row.

In a synchronous job all ranks end a step together, so how long a step takes says nothing about a rank. What it computed
does, against ranks that do the same, and how late it came to their collectives.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rocpd.types import Flags, Floats, Ints

_OUTSTANDING = 4.0  # deviations above the peers
_AHEAD = 1.0  # deviations above the next rank: otherwise both are
_LEAST_COMPUTE = 0.003  # deviation of times of computing, at least
_LEAST_LATE_NS = 20_000  # deviation of how late ranks come, at least: collectives end so far apart
_NORMAL = 1.4826  # deviation by median distance


def slowest(compute: Floats, late: Floats, is_late_known: Flags, peers: Sequence[Ints]) -> list[int | None]:
    """Return the column of the rank that was slow in each step, None where all were alike or several were slow.

    Args:
        compute: how long each rank (column) computed in each step (row).
        late: how late it came to collectives [ns].
        is_late_known: columns of which that is known.
        peers: columns of ranks that do the same.
    """
    everyone = np.ones(compute.shape[1], bool)
    by_compute = _outstanding(compute, everyone, peers, _LEAST_COMPUTE, is_relative=True)
    by_arrival = _outstanding(late, is_late_known, peers, _LEAST_LATE_NS, is_relative=False)
    return [first if first is not None else second for first, second in zip(by_compute, by_arrival, strict=True)]


def _outstanding(
    values: Floats, is_known: Flags, peers: Sequence[Ints], least: float, *, is_relative: bool
) -> list[int | None]:
    """Return the column that is far above its peers, and above any other, in each row."""
    deviations = np.full(values.shape, -np.inf)
    for every in peers:
        columns = every[is_known[every]]
        if len(columns) > 1:
            usual = np.median(values[:, columns], axis=1, keepdims=True)
            apart = values[:, columns] - usual
            apart = apart / np.maximum(usual, 1) if is_relative else apart
            deviations[:, columns] = apart / max(least, _NORMAL * float(np.median(np.abs(apart))))
    first = deviations.argmax(1)
    rows = np.arange(len(values))
    most = deviations[rows, first]
    deviations[rows, first] = -np.inf
    stands_out = (most >= _OUTSTANDING) & (most >= deviations.max(1, initial=-np.inf) + _AHEAD)
    return [column if stands else None for column, stands in zip(first.tolist(), stands_out.tolist(), strict=True)]
