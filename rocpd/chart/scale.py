"""Owns axes: from values to places, and the round values that stand beside them."""

from __future__ import annotations

import math

from rocpd.frozen import frozen

_STEPS = (1, 2, 2.5, 5, 10)
_BINARY = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


@frozen
class Scale:
    """Lays values from `low` to `high` on places from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the place of a value."""
        span = self.high - self.low
        return self.start + (self.end - self.start) * ((value - self.low) / span if span else 0.0)

    def ticks(self, unit: str, most: int) -> list[float]:
        """Return up to `most` round values from `low` to `high`; round in the unit: 256 MiB, 20 ms.

        >>> Scale(0, 95e6, 0, 1).ticks("ns", 6)
        [0.0, 20000000.0, 40000000.0, 60000000.0, 80000000.0]
        """
        span = self.high - self.low
        if span <= 0:
            return [self.low]
        rough = span / most
        base = 1024.0 if unit == "bytes" else 10.0
        size = base ** math.floor(math.log(rough, base))
        step = next(size * times for times in (_BINARY if unit == "bytes" else _STEPS) if size * times >= rough)
        first = math.ceil(self.low / step - 1e-9)
        count = math.floor(self.high / step + 1e-9) - first + 1
        return [(first + number) * step for number in range(count)]


@frozen
class LogScale(Scale):
    """Lays values by their logarithms; all are above 0."""

    def __call__(self, value: float) -> float:
        """Return the place of a value."""
        low, high = math.log10(self.low), math.log10(self.high)
        share = (math.log10(value) - low) / (high - low) if high > low else 0.0
        return self.start + (self.end - self.start) * share

    def ticks(self, unit: str, most: int) -> list[float]:
        """Return up to `most` powers of ten.

        >>> LogScale(0.2, 5000, 0, 1).ticks("", 5)
        [1.0, 10.0, 100.0, 1000.0]
        """
        first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        step = -(-(last - first + 1) // most) or 1
        return [10.0**power for power in range(first, last + 1, step)]
