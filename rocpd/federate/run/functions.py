"""Adds the SQL functions that AMD's documents use and SQLite lacks. Never changes one of SQLite's own."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rocpd.base.sqlite import apsw

if TYPE_CHECKING:
    from fractions import Fraction


def add_functions(connection: apsw.Connection) -> None:
    """Add the aggregate `stddev(x)`: the sample deviation (n - 1), NULL for fewer than two numbers."""
    connection.create_aggregate_function("stddev", SampleDeviation, 1)


class SampleDeviation:
    """Collects numbers; sums are exact, so their order changes nothing."""

    def __init__(self) -> None:
        self._count = 0
        self._sum: int | Fraction = 0
        self._squares: int | Fraction = 0
        self._is_finite = True

    def step(self, *values: apsw.SQLiteValue) -> None:
        """Take one value; what is no number does not count."""
        (value,) = values
        if isinstance(value, float) and not math.isfinite(value):
            self._is_finite = False
        elif isinstance(value, (int, float)):
            number = value if isinstance(value, int) else _fraction(value)
            self._count += 1
            self._sum += number
            self._squares += number * number

    def final(self) -> float | None:
        """Return the deviation."""
        count = self._count
        if count < 2 or not self._is_finite:
            return None
        return math.sqrt((count * self._squares - self._sum * self._sum) / _fraction(count * (count - 1)))


def _fraction(number: float) -> Fraction:
    from fractions import Fraction  # with decimal: 3 ms, of which most processes have no use

    return Fraction(number)
