"""Whether kernels take longer while the clock of their GPU is lower: rank correlation of durations and samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rocpd.read.columns import columns
from rocpd.read.groups import group_rows, grouped
from rocpd.summary.reading import RankReading
from rocpd.summary.statements import statement
from rocpd.trace.times import valid_times
from rocpd.types import Floats, Ints

_COLUMNS = ("agent", "name", "grid_size_x", "grid_size_y", "grid_size_z", "start", "end")


class ClockEffect(NamedTuple):
    """How durations go with the clock.

    Args:
        rho: Spearman's rank correlation of the median duration of the hottest kernel on its most common grid with the
            clock, sample by sample: -1: it always takes longer when the clock is lower.
        samples: of the clock in which the kernel ran.
    """

    rho: float
    samples: int


def clock_effects(reading: RankReading, clocks: Mapping[int, tuple[Ints, Floats]]) -> dict[int, ClockEffect]:
    """Return agent -> how its hottest kernel goes with its clock, where both change.

    Args:
        reading: reads the rank.
        clocks: agent -> times [ns], ascending, and the clock from each of them to the next one.
    """
    agent, kernel, x, y, z, start, end = columns(
        reading.reader, "rocpd_kernel_dispatch", statement("kernels"), _COLUMNS
    )
    valid = valid_times(start, end)
    effects: dict[int, ClockEffect] = {}
    for number, (times, values) in clocks.items():
        rows = np.flatnonzero(valid & (agent == number))
        if not len(rows):
            continue
        shapes = [rows[some] for _, some in group_rows([column[rows] for column in (kernel, x, y, z)])]
        hottest = max(shapes, key=lambda some: int((end - start)[some].sum()))
        effect = _effect(start[hottest], (end - start)[hottest], times, values)
        effects |= {number: effect} if effect else {}
    return effects


def _effect(start: Ints, duration: Ints, times: Ints, values: Floats) -> ClockEffect | None:
    """Return how the durations of runs of one kernel go with the clock; None where one of them does not change."""
    at = np.searchsorted(times, start, side="right") - 1
    medians = {number: float(np.median(duration[rows])) for (number,), rows in grouped([at]) if number >= 0}
    clock = [float(values[number]) for number in medians]
    rho = spearman(clock, list(medians.values()))
    return None if rho is None else ClockEffect(rho, len(medians))


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return the rank correlation of pairs; equal values share the mean of their ranks. None: one of them is constant.

    Spearman, American Journal of Psychology 15, 1904.

    >>> round(spearman([1, 2, 3, 4], [8, 6, 6, 1]), 3), spearman([1, 2], [3, 3])
    (-0.949, None)
    """
    ranks = [_ranks(np.array(values)) for values in (first, second)]
    if any(len(set(each.tolist())) < 2 for each in ranks):
        return None
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _ranks(values: Floats) -> Floats:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Floats = (last - (counts - 1) / 2)[inverse.reshape(-1)]
    return ranks
