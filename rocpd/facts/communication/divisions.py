"""Divides ranks into groups of equal size so that arrivals in a group explain when its members leave. Pure arithmetic.

Nobody leaves a collective before the last member has come, and all leave soon after. So of all ways to divide ranks,
the true one leaves least unexplained, even where groups run in step and end no further apart than members of a group.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from rocpd.base import Floats, Ints

Division = tuple[tuple[int, ...], ...]
"""Rows of each group."""

_FEWEST, _MOST = 12, 256  # collectives that are compared, evenly spaced
_MOST_RANKS = 32
_FEW_RANKS = 8  # so many are divided in every way
_CHANCE = 0.001  # that a wrong division is taken


def divide(start: Ints, end: Ints, size: int | None = None) -> list[Ints]:
    """Return the rows of each group; nothing where no division is clearly best, or where each rank would be alone.

    Args:
        start, end: of the collectives (columns) of each rank (row) [ns].
        size: number of ranks of a group, some of which may be on other machines; None where unknown.

    >>> came = np.array([[0, 9, 0, 5] * 9, [6, 0, 0, 0] * 9, [0, 0, 8, 0] * 9, [0, 0, 0, 7] * 9])
    >>> left = 20 + np.repeat([came[:2].max(0), came[2:].max(0)], 2, axis=0)
    >>> [rows.tolist() for rows in divide(came, left)], divide(0 * came, left)
    ([[0, 1], [2, 3]], [])
    """
    ranks, times = start.shape
    if times < _FEWEST or not 4 <= ranks <= _MOST_RANKS:
        return []
    sample = np.linspace(0, times - 1, min(times, _MOST)).astype(np.int64)
    first = start[:, sample].min(0)
    came, left = (start[:, sample] - first).astype(float), (end[:, sample] - first).astype(float)
    costs = {division: _unexplained(came, left, division) for division in _divisions(ranks, size)}
    if len(costs) < 2:
        return []
    best = _improved(came, left, costs) if ranks > _FEW_RANKS else _cheapest(costs)
    sure = math.sqrt(2 * math.log(len(costs) / _CHANCE))  # standard errors that chance reaches in none of the divisions
    more = (cost - costs[best] for division, cost in costs.items() if division != best)
    is_clear = all(each.mean() > sure * each.std(ddof=1) / math.sqrt(len(sample)) for each in more)
    return [np.array(rows) for rows in best] if is_clear and len(best) < ranks else []


def _divisions(ranks: int, size: int | None) -> Iterator[Division]:
    """Yield ways to divide ranks: all ways for few ranks, else those by rank numbers that layouts use."""
    for width in range(1, min(ranks, size or ranks) + 1):
        if ranks % width == 0:
            ways = _every(tuple(range(ranks)), width) if ranks <= _FEW_RANKS else _by_numbers(ranks, width)
            yield from ways


def _every(rows: Sequence[int], size: int) -> Iterator[Division]:
    """Yield all ways to divide rows into groups of a size."""
    if not rows:
        yield ()
        return
    for others in itertools.combinations(rows[1:], size - 1):
        group = rows[0], *others
        for rest in _every([row for row in rows if row not in group], size):
            yield (group, *rest)


def _by_numbers(ranks: int, size: int) -> Iterator[Division]:
    """Yield groups of equally distant numbers.

    >>> list(_by_numbers(4, 2))
    [((0, 1), (2, 3)), ((0, 2), (1, 3))]
    """
    for distance in range(1, ranks // size + 1):
        if ranks % (size * distance) == 0:
            numbers = np.arange(ranks).reshape(-1, size, distance).swapaxes(1, 2).reshape(-1, size)
            yield tuple(map(tuple, numbers.tolist()))


def _improved(came: Floats, left: Floats, costs: dict[Division, Floats]) -> Division:
    """Return a division that exchanging two ranks makes no cheaper; `costs` gets the cost of all tried divisions."""
    while True:
        best = _cheapest(costs)
        for division in _exchanged(best):
            if division not in costs:
                costs[division] = _unexplained(came, left, division)
        if _cheapest(costs) == best:
            return best


def _exchanged(division: Division) -> Iterator[Division]:
    """Yield divisions in which two ranks of different groups have changed places."""
    for first, second in itertools.combinations(range(len(division)), 2):
        for a, b in itertools.product(division[first], division[second]):
            groups = list(division)
            groups[first] = tuple(sorted((set(division[first]) - {a}) | {b}))
            groups[second] = tuple(sorted((set(division[second]) - {b}) | {a}))
            yield tuple(sorted(groups))


def _cheapest(costs: dict[Division, Floats]) -> Division:
    return min(costs, key=lambda division: float(costs[division].sum()))


def _unexplained(came: Floats, left: Floats, division: Division) -> Floats:
    """Return for each collective the unexplained time of its ranks, added up [ns].

    A rank leaves at its usual time after the last arrival of its group; the distance from that time is unexplained. The
    duration of a collective may differ from one to the next, equally for all groups.
    """
    rest = np.empty_like(left)
    for rows in map(list, division):
        rest[rows] = left[rows] - came[rows].max(0)
    rest -= np.median(rest, axis=0)
    rest -= np.median(rest, axis=1, keepdims=True)
    unexplained: Floats = np.abs(rest).sum(0)
    return unexplained
