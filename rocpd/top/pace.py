"""How often a job is looked at: as often as a share of a core allows, whatever a look takes. Derives nothing."""

from __future__ import annotations

import time

SHARE = 0.08
"""Of a core, for so many ranks as `_RANKS`; each further one adds `_PER_RANK`."""

_PER_RANK, _RANKS = 0.001, 64
_AT_ONCE_S = 1.0  # CPU time of the process before the share counts [s]
_DEBT_S = 0.45  # until conclusions are sure, they are drawn on credit [s]
_FIRST_DEBT_S = 1.5  # and so are the first ones, for `SHARE` of a core; with more of it, more [s]
_TRIES = 0.1  # of the share goes into trying for them after that: they will take the rest
_GROWS = 2.0  # times what the first conclusions take, which are about few steps, the next ones take at most


class LookPace:
    """CPU time that was saved for looking, and whether it will do for the next look.

    Args:
        share: of a core, that looking may take.
    """

    def __init__(self, share: float = SHARE) -> None:
        self._share, self._saved_at = share, time.monotonic()
        self._credit, self._cost = max(0.0, _AT_ONCE_S - time.process_time()), 0.0
        self._debt = _FIRST_DEBT_S

    @property
    def is_due(self) -> bool:
        """Whether there is time for as much as the last conclusions took: it is saved before it is spent."""
        return self._credit >= self._cost - self._debt

    def save(self, ranks: int) -> None:
        """Count the time since the last call as time to look at so many ranks."""
        now, share = time.monotonic(), self._share + _PER_RANK * max(0, ranks - _RANKS)
        if not self._cost:
            self._debt, share = _FIRST_DEBT_S * share / self._share, _TRIES * share
        most = max(_AT_ONCE_S, self._cost)
        self._credit, self._saved_at = min(most, self._credit + share * (now - self._saved_at)), now

    def spend(self, took_s: float, is_sure: bool | None) -> None:
        """Count the CPU time of a look, and expect as much of the next one where this one drew conclusions.

        Args:
            took_s: the CPU time [s].
            is_sure: whether more steps will hardly lead to others; None: none were drawn.
        """
        self._credit -= took_s
        if is_sure is not None:
            self._debt = 0.0 if is_sure else _DEBT_S
            self._cost = took_s if self._cost else _GROWS * took_s
