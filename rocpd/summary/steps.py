"""Owns steps: markers that name a piece of the job which every rank goes through, and how their times spread."""

from __future__ import annotations

import re
import statistics as middle
from collections.abc import Iterator
from dataclasses import dataclass, field

from rocpd.errors import UsageError
from rocpd.federate.identify import Rank
from rocpd.summary.reading import Reading, statistics
from rocpd.summary.result import Row
from rocpd.summary.spread import Spread
from rocpd.summary.survey import sql

_DIGITS = re.compile(r"\d+")


def is_step(pattern: str) -> re.Pattern[str]:
    """Compile the expression for markers that are steps.

    Raises:
        UsageError: it is none.
    """
    try:
        return re.compile(pattern)
    except re.error as error:
        raise UsageError(f"--step-marker {pattern}: not a regular expression: {error}") from error


def ranges(reading: Reading, rank: Rank) -> Iterator[tuple[str, int, int]]:
    """Give text, start and end [ns] of the marker ranges of a rank in their order; marks without length are none."""
    found: list[tuple[str, int, int]] = []
    for batch in reading.session.stream_in(rank.number, sql("markers")):
        found += [(text, start, end) for text, _, start, end, *_ in batch if text and start and end and 0 < start < end]
    yield from sorted(found, key=lambda marker: (marker[1], marker[2], marker[0]))


@dataclass
class Steps:
    """Times of steps and phases of all ranks, collected rank by rank.

    A step is one marker: the n-th of a text on one rank is the n-th of that text on every other. A phase is all
    markers whose texts differ in numbers only.
    """

    pattern: re.Pattern[str]
    steps: dict[tuple[str, int], dict[int, int]] = field(default_factory=dict)
    first: dict[tuple[str, int], int] = field(default_factory=dict)
    phases: dict[str, tuple[Spread, dict[int, int]]] = field(default_factory=dict)

    def add(self, reading: Reading, rank: Rank) -> None:
        """Add the markers of a rank."""
        import numpy as np

        seen: dict[str, int] = {}
        lengths: dict[str, list[int]] = {}
        for text, start, end in ranges(reading, rank):
            lengths.setdefault(_DIGITS.sub("#", text), []).append(end - start)
            if self.pattern.search(text):
                number = seen[text] = seen.get(text, 0) + 1
                self.steps.setdefault((text, number), {})[rank.number] = end - start
                self.first.setdefault((text, number), start + reading.offset(rank.number))
        for family, own in lengths.items():
            spread, totals = self.phases.setdefault(family, (Spread(), {}))
            spread.add(np.array(own, np.int64))
            totals[rank.number] = sum(own)

    def step_rows(self) -> list[Row]:
        """One row per step, the longest first; `over_median` compares with the median of all steps."""
        means = {key: sum(own.values()) / len(own) for key, own in self.steps.items()}
        typical = middle.median(means.values()) if means else 0
        rows = []
        for (text, number), own in self.steps.items():
            slowest = max(own, key=lambda rank: (own[rank], -rank))
            least, most = min(own.values()), max(own.values())
            mean = means[text, number]
            over = mean / typical if typical else None
            begin = self.first[text, number]
            rows.append((text, number, begin, len(own), mean, least, most, most - least, slowest, over))
        return sorted(rows, key=lambda row: (-row[4], row[2], row[0], row[1]))

    def phase_rows(self) -> list[Row]:
        """One row per phase, most time first; imbalance is the largest rank total by the mean of rank totals."""
        rows = []
        for family, (spread, totals) in self.phases.items():
            slowest = max(totals, key=lambda rank: (totals[rank], -rank))
            imbalance = totals[slowest] * len(totals) / sum(totals.values())
            rows.append((family, len(totals), *statistics(spread), slowest, imbalance))
        return sorted(rows, key=lambda row: (-row[3], row[0]))

    def count(self, rank: int) -> int:
        """Say how many steps a rank went through."""
        return sum(rank in own for own in self.steps.values())
