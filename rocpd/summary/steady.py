"""Finds the steady part of a rank: its steps without warm-up, start-up and shut-down.

`steady_part` is pure; `steady_default` says when an analysis takes it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median

from rocpd.frozen import frozen
from rocpd.summary.reading import RankReading, RankWindow
from rocpd.summary.steps import read_ranges, read_steps
from rocpd.trace.steps import MarkedStep, MarkerRange

_FEWEST = 2  # steps: one alone may be anything
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


def steady_part(ranges: Sequence[MarkerRange], steps: Sequence[MarkedStep]) -> SteadyPart | None:
    """Return the steady part; None where too few steps repeat.

    Args:
        ranges: all of the rank, in the whole trace.
        steps: those among them.

    >>> from rocpd.trace.steps import find_steps
    >>> ranges = [MarkerRange(f"step {n}", 100 * n, 100 * n + (300 if n == 0 else 90)) for n in range(6)]
    >>> few, more = ranges[:2], ranges[1:]
    >>> steady_part(few, find_steps(few, re.compile("step")))
    >>> steady_part(more, find_steps(more, re.compile("step")))
    SteadyPart(start=100, end=590, steps=5, warm_up=0)
    """
    main = [ranges[step.row] for step in steps if step.number is not None]
    typical = median([step.end - step.start for step in main] or [0])
    warm_up = next((n for n, step in enumerate(main) if step.end - step.start <= _WARM * typical), 0)
    steady = main[warm_up:]
    if len(steady) < _FEWEST:
        return None
    return SteadyPart(steady[0].start, max(step.end for step in steady), len(steady), warm_up)


def steady_default(reading: RankReading, pattern: re.Pattern[str]) -> SteadyPart | None:
    """Return the steady part where it is what counts: without a window, unless everything is asked for."""
    if reading.window != RankWindow() or reading.options.everything:
        return None
    return steady_part(read_ranges(reading.reader).every, read_steps(reading.reader, pattern))


def some_without_steps(parts: Sequence[SteadyPart | None]) -> str:
    """Return that some ranks with GPU work have no steady part where others have one, given those of all; or nothing.

    >>> some_without_steps([SteadyPart(1, 9, 2, 0), None, None]), some_without_steps([None, None])
    ('2 of 3 ranks have no steps that repeat: of them the whole trace counts', '')
    """
    missing = parts.count(None)
    if missing in (0, len(parts)):
        return ""
    have = "has" if missing == 1 else "have"
    return f"{missing} of {len(parts)} ranks {have} no steps that repeat: of them the whole trace counts"
