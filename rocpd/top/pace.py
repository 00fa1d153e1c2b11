"""How often a job is looked at: as often as a share of a core allows, whatever a look costs. Derives nothing."""

from __future__ import annotations

import time

SHARE = 0.08
"""Share of a core for up to `_RANKS` ranks; each further one adds `_PER_RANK`."""

_PER_RANK, _RANKS = 0.001, 64
_AT_ONCE_S = 1.0  # CPU time of the process before the share counts [s]
_DEBT_S = 0.45  # time on credit for conclusions that are not sure yet [s]
_FIRST_DEBT_S = 1.5  # time on credit for the first conclusions, for `SHARE` of a core; in proportion for more [s]
_TRIES = 0.1  # share spent on attempts at them after that: they will take the rest
_GROWS = 2.0  # the next conclusions take at most this many times as long as the first ones, which cover few steps


class LookPace:
    """Saved CPU time for looking, and whether it is enough for the next look.

    Args:
        share: share of a core for looking.
    """

    def __init__(self, share: float = SHARE) -> None:
        self._share, self._saved_at = share, time.monotonic()
        self._credit, self._cost = max(0.0, _AT_ONCE_S - time.process_time()), 0.0
        self._debt = _FIRST_DEBT_S

    @property
    def is_due(self) -> bool:
        """Whether there is as much time as the last conclusions took: time is saved before it is spent."""
        return self._credit >= self._cost - self._debt

    def save(self, ranks: int) -> None:
        """Add the time since the last call to the time for looking at `ranks` ranks."""
        now, share = time.monotonic(), self._share + _PER_RANK * max(0, ranks - _RANKS)
        if not self._cost:
            self._debt, share = _FIRST_DEBT_S * share / self._share, _TRIES * share
        most = max(_AT_ONCE_S, self._cost)
        self._credit, self._saved_at = min(most, self._credit + share * (now - self._saved_at)), now

    def spend(self, took_s: float, is_sure: bool | None) -> None:
        """Subtract the CPU time of a look, and expect the same for the next one if this one drew conclusions.

        Args:
            took_s: the CPU time [s].
            is_sure: whether more steps will hardly change the conclusions; None: none were drawn.
        """
        self._credit -= took_s
        if is_sure is not None:
            self._debt = 0.0 if is_sure else _DEBT_S
            self._cost = took_s if self._cost else _GROWS * took_s
