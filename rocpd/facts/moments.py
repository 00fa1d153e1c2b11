"""Owns exact, mergeable statistics of durations: parts of a job add up to the whole, in any order.

All sums are Python integers; only the last division of mean and deviation rounds.
"""

from __future__ import annotations

import math

from rocpd.base.frozen import frozen


@frozen
class Moments:
    """Statistics of a group of events.

    Args:
        calls: events.
        timed: events whose duration is known.
        total: sum of durations [ns].
        shortest, longest: extremes [ns], None when nothing is timed.
        squares: sum of squared durations [ns²].
    """

    calls: int = 0
    timed: int = 0
    total: int = 0
    shortest: int | None = None
    longest: int | None = None
    squares: int = 0

    def __add__(self, other: Moments) -> Moments:
        return Moments(
            self.calls + other.calls,
            self.timed + other.timed,
            self.total + other.total,
            min((x for x in (self.shortest, other.shortest) if x is not None), default=None),
            max((x for x in (self.longest, other.longest) if x is not None), default=None),
            self.squares + other.squares,
        )

    @property
    def mean(self) -> float | None:
        """Mean duration [ns]; None when nothing is timed."""
        return self.total / self.timed if self.timed else None

    @property
    def deviation(self) -> float | None:
        """Sample deviation (n - 1) [ns]; None for fewer than two events.

        >>> Moments(2, 2, 30, 10, 20, 500).deviation
        7.0710678118654755
        """
        if self.timed < 2:
            return None
        numerator = self.timed * self.squares - self.total * self.total
        return math.sqrt(numerator / (self.timed * (self.timed - 1)))
