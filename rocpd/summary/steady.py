"""Finds the steady part of a rank: its steps without warm-up, start-up and shut-down.

Pure: it gets markers of steps, and never reads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from statistics import median

from rocpd.frozen import frozen

_DIGITS = re.compile(r"\d+")
_FEWEST = 4  # steps: with fewer there is nothing steady to speak of
_WARM = 1.5  # times the median: leading steps that take longer are warm-up


@frozen
class SteadyPart:
    """The steady part of a rank.

    Args:
        start, end: of its first and last step, as recorded [ns].
        steps: how many.
        warm_up: how many steps before them are warm-up.
    """

    start: int
    end: int
    steps: int
    warm_up: int


def steady_part(steps: Mapping[tuple[str, int], tuple[int, int]]) -> SteadyPart | None:
    """Return the steady part; None where too few steps repeat.

    Args:
        steps: text and number of a step -> its start and duration [ns].

    >>> steady_part({(f"step {n}", 1): (100 * n, 300 if n == 0 else 90) for n in range(3, 9)})
    SteadyPart(start=300, end=890, steps=6, warm_up=0)
    """
    kinds: dict[str, list[tuple[int, int]]] = {}
    for (text, _), step in steps.items():
        kinds.setdefault(_DIGITS.sub("#", text), []).append(step)
    if not kinds:
        return None
    covered = {kind: sum(length for _, length in times) for kind, times in kinds.items()}
    most = max(covered.values())
    often = max((kind for kind in kinds if covered[kind] * 2 >= most), key=lambda kind: len(kinds[kind]))
    times = sorted(kinds[often])
    typical = median(length for _, length in times)
    warm_up = next((n for n, (_, length) in enumerate(times) if length <= _WARM * typical), 0)
    rest = times[warm_up:]
    if len(rest) < _FEWEST:
        return None
    return SteadyPart(rest[0][0], max(start + length for start, length in rest), len(rest), warm_up)
