"""The time line that ranks share: what is added to the times of each, which change slowly where clocks drift.

Never decides how clocks are aligned (`align` does), and never changes a time in SQL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from rocpd.base.errors import UsageError
from rocpd.base.frozen import frozen

if TYPE_CHECKING:
    from rocpd.base.types import Ints

Time = TypeVar("Time", int, "Ints")


@frozen
class Span:
    """First start and last end of the events of a rank with valid times [ns of its own clock]."""

    start: int
    end: int


@frozen
class Shift:
    """What is added to the times of a clock: `offset` at its time `at` [ns], and `drift` for each ns after it."""

    offset: int = 0
    at: int = 0
    drift: float = 0.0

    def to_line(self, time: Time) -> Time:
        """Return times of the clock as times of the common line [ns]; they stay in order."""
        if not self.drift:
            return time + self.offset
        return time + self.offset + self._drifted(time, self.drift)

    def to_clock(self, time: Time) -> Time:
        """Return times of the common line as times of the clock [ns]; a single one is the earliest that is not before.

        >>> shift = Shift(1000, 50, 1e-5)
        >>> shift.to_line(1_000_050), shift.to_clock(1_001_060), shift.to_clock(shift.to_line(777_777))
        (1001060, 1000050, 777777)
        """
        if not self.drift:
            return time - self.offset
        local: Time = time - self.offset
        local = local - self._drifted(local, self.drift / (1 + self.drift))
        if isinstance(local, int):
            while self.to_line(local) < time:
                local += 1
            while self.to_line(local - 1) >= time:
                local -= 1
        return local

    def _drifted(self, time: Time, drift: float) -> Time:
        since: Any = (time - self.at) * drift  # no numpy: help imports this
        return since.round().astype("int64") if hasattr(since, "astype") else round(since)  # type: ignore[no-any-return]


UNSHIFTED = Shift()


@frozen
class TimeLine:
    """All ranks on one time line.

    Args:
        start, end: first start and last end [ns].
        spans: rank number -> when it ran, by its own clock.
        shifts: rank number -> what is added to its times.
    """

    start: int
    end: int
    spans: Mapping[int, Span]
    shifts: Mapping[int, Shift]

    @classmethod
    def of(cls, spans: Mapping[int, Span], shifts: Mapping[int, Shift]) -> TimeLine | None:
        """Return the time line of ranks with these spans; None without events."""
        if not spans:
            return None
        starts = [shifts[rank].to_line(span.start) for rank, span in spans.items()]
        return cls(min(starts), max(shifts[rank].to_line(span.end) for rank, span in spans.items()), spans, shifts)

    def shift(self, rank: int) -> Shift:
        """Return what is added to the times of a rank, by its number."""
        return self.shifts.get(rank, UNSHIFTED)

    def of_view(self, time: int) -> int:
        """Return on this line a time as views show it [ns]: of the ranks that ran then, or else of the nearest ones.

        Raises:
            UsageError: ranks whose clocks differ ran then.
        """
        away = {rank: max(span.start - time, time - span.end, 0) for rank, span in self.spans.items()}
        nearest = [rank for rank in away if away[rank] == min(away.values())]
        places: dict[int, int] = {}
        for rank in sorted(nearest):
            places.setdefault(self.shift(rank).to_line(time), rank)
        if len(places) > 1:
            which = ", ".join(f"rank {rank}" for rank in places.values())
            raise UsageError(f"{time} ns is a time of several clocks: of {which}", "choose one with --rank")
        return min(places)
