"""Steps by their marker: their durations, the spread of these, and why the slowest steps take longer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from rocpd.base import Row
from rocpd.facts.communication.collectives import listed
from rocpd.facts.rank import By, Key, key_of
from rocpd.facts.regions import RankSteps
from rocpd.facts.short_names import kernel_name
from rocpd.facts.spread import Spread
from rocpd.facts.timeline import KINDS
from rocpd.federate.open.identify import Rank
from rocpd.replay.causes import OF_COMPUTE, OF_COPIES, OF_HOST, OF_LINKS, Cause
from rocpd.summary.grouping import Sums, merge, order_of, ratio
from rocpd.summary.reading import statistics
from rocpd.table.human import readable

IDLE = "idle"
_GROWN = {OF_COMPUTE: KINDS[0], OF_LINKS: KINDS[1], OF_COPIES: KINDS[2], OF_HOST: IDLE}
PARTS = {KINDS[0]: "compute", KINDS[1]: "transfers", KINDS[2]: "copies", IDLE: "host"}
"""Parts that grow in a step -> words for them in a sentence."""

_CLEARLY = 0.01  # share by which a time is clearly longer


def how_grown(grew: str, by: float, name: str | None) -> str:
    """Return the growth in a slow step in words: the part, the time [ns], and the main kernel or host work, if any.

    >>> how_grown("idle", 1e6, "hipMalloc"), how_grown("compute", 1e6, None)
    ('host 1.00 ms longer, most in hipMalloc', 'compute 1.00 ms longer, all kernels alike')
    """
    kernels_alike = ", all kernels alike" if grew == KINDS[0] else ""
    shown = name if name is None or grew == IDLE else kernel_name(name).short
    return f"{PARTS[grew]} {readable(by, 'ns')} longer{f', most in {shown}' if shown else kernels_alike}"


def pause_after(step: str, pause: float, usual: float) -> str:
    """Return the pause after a step [ns] in words, compared with the usual length of a step.

    >>> pause_after("step 6", 3e6, 1e6)
    '3.00 ms pass between step 6 and the next one: 3.00 times the median step'
    """
    return f"{readable(pause, 'ns')} pass between {step} and the next one: {pause / usual:.2f} times the median step"


@dataclass
class Phase:
    """Markers whose texts differ only in numbers; ranks are added in place, as copying sums would be quadratic.

    Args:
        spreads: spread of their durations on each rank [ns].
        totals: sum of the durations by division.
        gpu: time of the operations launched in them [ns].
    """

    spreads: list[Spread] = field(default_factory=list)
    totals: Counter[Key] = field(default_factory=Counter)
    gpu: int = 0


@dataclass
class Steps:
    """Times of steps and phases by rank or host; on a host, a step takes as long as on its slowest rank.

    Args:
        by: the compared division.
        warm: numbers of the steps that are warm-up.
        uneven: ranks whose clock may have been set between steps: the time there is not known.
        steps, first, periods: text and number within the text -> lengths; first start on the time line; and sum and
            number of the ranks' times to the next step [ns].
    """

    by: By
    warm: frozenset[int] = frozenset()
    uneven: frozenset[int] = frozenset()
    steps: dict[tuple[str, int], dict[Key, int]] = field(default_factory=dict)
    first: dict[tuple[str, int], int] = field(default_factory=dict)
    periods: dict[tuple[str, int], Sums] = field(default_factory=dict)
    cut: set[tuple[str, int]] = field(default_factory=set)
    warm_up: set[tuple[str, int]] = field(default_factory=set)
    phases: dict[str, Phase] = field(default_factory=dict)

    def add(self, rank: Rank, added: RankSteps, gpu: Mapping[str, int]) -> None:
        """Add the steps and phases of a rank.

        Args:
            rank: the rank.
            added: its steps, by times from the start of the time line, and its phases.
            gpu: phase -> time of the operations launched in it [ns].
        """
        key = key_of(self.by, rank)
        for step, (start, length) in added.steps.items():
            times = self.steps.setdefault(step, {})
            times[key] = max(length, times.get(key, 0))
            self.first.setdefault(step, start)
        is_even = int(rank.number not in self.uneven)
        merge(self.periods, {step: Sums((period * is_even, is_even)) for step, period in added.periods.items()})
        self.cut |= added.cut
        self.warm_up |= added.of(self.warm)
        for text, spread in added.phases.items():
            phase = self.phases.setdefault(text, Phase())
            phase.spreads.append(spread)
            phase.totals[key] += spread.moments.total
            phase.gpu += gpu.get(text, 0)

    def step_rows(
        self,
        slow: Mapping[tuple[str, int], Cause],
        longest: Mapping[tuple[str, int], Sequence[int]] | None,
        ranks: Mapping[int, Key],
        hosts: Mapping[int, str | None],
    ) -> list[Row]:
        """Return a row per step, the longest first; `over_median` compares with whole steps that are no warm-up.

        Args:
            slow: cause of each slow step.
            longest: ranks whose own work takes longest in a step; None: not known, and the rank with the clearly
                longest marker counts, which may be one that waits if ranks wait for each other.
            ranks: number of a rank -> its key in the table.
            hosts: number of a rank -> its host.
        """
        means = {step: sum(times.values()) / len(times) for step, times in self.steps.items()}
        whole = [mean for step, mean in means.items() if step not in self.cut | self.warm_up]
        typical = median(whole) if whole else 0
        rows = []
        for step, times in self.steps.items():
            least, most = min(times.values()), max(times.values())
            over = means[step] / typical if typical and step not in self.cut else None
            lasts = (self.first[step], len(times), means[step], least, most, most - least)
            cause, alone = slow.get(step), () if longest is None else _only(longest.get(step, ()), ranks)
            slowest = _slowest_of(cause, ranks) or alone or _slowest(times, _CLEARLY)
            grown = _grown(cause, means[step] - typical)
            rest = int(step in self.warm_up), ratio(*self.periods[step]), *_several_of(cause, hosts)
            rows.append((*step, *lasts, *slowest, over, *grown, *rest))
        return sorted(rows, key=lambda row: (-row[4], row[2], row[0], row[1]))

    def phase_rows(self) -> list[Row]:
        """Return a row per phase, most time first; imbalance is the largest rank total by the mean of rank totals."""
        rows = []
        for text, phase in self.phases.items():
            totals = phase.totals
            lasts = statistics(Spread.sum(phase.spreads))
            imbalance = max(totals.values()) * len(totals) / totals.total()
            rows.append((text, len(totals), *lasts, *_slowest(totals), imbalance, phase.gpu))
        return sorted(rows, key=lambda row: (-row[3], row[0]))


def _slowest_of(cause: Cause | None, ranks: Mapping[int, Key]) -> Key:
    """Return the key that makes a slow step slow; NULL if it is slow on all; an empty key for other steps."""
    if cause is None:
        return ()
    return _only(cause.ranks, ranks) if cause.ranks else (None,) * len(next(iter(ranks.values())))


def _several_of(cause: Cause | None, hosts: Mapping[int, str | None]) -> tuple[str | None, str | None]:
    """Return the host all of whose ranks make a slow step slow; else the several ranks that do."""
    if cause is None or len(cause.ranks) < 2:
        return None, None
    host, *others = {hosts[rank] for rank in cause.ranks}
    whole = [rank for rank, its in hosts.items() if its == host]
    return (None, listed(sorted(cause.ranks))) if others or len(whole) > len(cause.ranks) else (host, None)


def _only(longest: Sequence[int], ranks: Mapping[int, Key]) -> Key:
    """Return the common key of some ranks; NULL if they have several."""
    keys = {ranks[rank] for rank in longest}
    return keys.pop() if len(keys) == 1 else (None,) * len(next(iter(ranks.values())))


def _grown(cause: Cause | None, longer: float) -> Row:
    """Return the part that grew most in a slow step, by how much [ns], the main name in it, and the rank.

    Operations that run at once all take longer, so the growth is cut to that of the step.
    """
    if cause is None:
        return None, None, None, None
    by, rank = min(cause.takes[cause.mainly], round(longer)), cause.ranks[0] if len(cause.ranks) == 1 else None
    return _GROWN[cause.mainly], by, cause.largest[0] or None, rank


def _slowest(times: Mapping[Key, int], margin: float = 0.0) -> Key:
    """Return the key with the longest time; NULL if the next one is less than the margin shorter."""
    first, *others = sorted(times, key=lambda key: (-times[key], order_of(key)))
    is_clear = not others or times[first] - times[others[0]] > margin * times[first]
    return first if is_clear else (None,) * len(first)
