"""The plain way to the moments of durations, which faster ways are compared with: one event after the other."""

from __future__ import annotations

from collections.abc import Iterable

from rocpd.facts.spread import Moments


def moments_one_by_one(durations: Iterable[int | None]) -> Moments:
    """Add up events of these durations [ns]; None: an event with invalid times."""
    return sum(
        (Moments(1) if d is None else Moments(1, 1, total=d, shortest=d, longest=d, squares=d * d) for d in durations),
        Moments(),
    )
