"""Steps: markers that name a piece of the job which every rank goes through, and how their times spread."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

import numpy as np

from rocpd.federate.open.identify import Rank
from rocpd.federate.run.rank_reader import RankReader
from rocpd.federate.select.timeline import Shift
from rocpd.frozen import frozen
from rocpd.read.names import as_text
from rocpd.summary.options import By
from rocpd.summary.reading import Key, key_of, order_of, statistics
from rocpd.summary.regions import read_markers
from rocpd.summary.slow_steps import Growth
from rocpd.summary.spread import Spread
from rocpd.trace.nesting import Nesting, nest
from rocpd.trace.steps import MarkedStep, MarkerRange, find_steps, folded
from rocpd.trace.times import valid_times
from rocpd.types import Row

_CLEARLY = 0.01  # longer


@frozen
class Ranges:
    """The marker ranges of a rank; marks without length are none.

    Args:
        every: all of the rank, in order of their ids.
        counted: row in `every` -> start and end of those that count, as the window cuts them [ns].
    """

    every: list[MarkerRange]
    counted: dict[int, tuple[int, int]]


def read_ranges(reader: RankReader) -> Ranges:
    """Read the marker ranges of a rank; what comes back is not to be changed."""
    return reader.once("marker ranges", lambda: _read_ranges(reader))


def read_steps(reader: RankReader, pattern: re.Pattern[str]) -> Sequence[MarkedStep]:
    """Return the steps among the ranges of `read_ranges`, those that do not count too; they are not to be changed."""
    whole = reader.whole()
    return whole.once(("steps", pattern), lambda: find_steps(read_ranges(whole).every, pattern))


def counted_steps(reader: RankReader, pattern: re.Pattern[str]) -> Iterator[tuple[str, int, int, int]]:
    """Yield text, which of this text (from 1, in the whole trace), start and end of the steps that count."""
    ranges = read_ranges(reader)
    seen: Counter[str] = Counter()
    for row, _ in read_steps(reader, pattern):
        text = ranges.every[row].text
        seen[text] += 1
        if row in ranges.counted:
            yield text, seen[text], *ranges.counted[row]


def read_nesting(reader: RankReader) -> Nesting:
    """Return how the ranges of `read_ranges` lie in each other; it is not to be changed."""
    return reader.once("nesting of marker ranges", lambda: nest(read_ranges(reader).every))


def _read_ranges(reader: RankReader) -> Ranges:
    ids, every = _ranges(reader.whole())
    if not reader.selects("rocpd_region"):
        return Ranges(every, {row: (start, end) for row, (_, start, end, _) in enumerate(every)})
    rows = {number: row for row, number in enumerate(ids)}
    counted = zip(*_ranges(reader), strict=True)
    return Ranges(every, {rows[number]: (start, end) for number, (_, start, end, _) in counted if number in rows})


def _ranges(reader: RankReader) -> tuple[list[int], list[MarkerRange]]:
    markers = read_markers(reader)
    number, thread, start, end = markers.numbers
    rows = np.flatnonzero(valid_times(start, end) & (end > start)).tolist()
    texts = {row: as_text(markers.texts[0][row]) for row in rows}
    rows = [row for row in rows if texts[row]]
    ranges = [MarkerRange(texts[row] or "", int(start[row]), int(end[row]), int(thread[row])) for row in rows]
    return number[rows].tolist(), ranges


@dataclass
class Phase:
    """Markers whose texts differ in numbers only; ranks are added in place, which copying sums would make quadratic.

    Args:
        spreads: their durations on each rank [ns].
        totals: the sum of these by division.
        gpu: time of the operations that were launched in them [ns].
    """

    spreads: list[Spread] = field(default_factory=list)
    totals: Counter[Key] = field(default_factory=Counter)
    gpu: int = 0


class RankSteps(NamedTuple):
    """Steps and phases of one rank.

    A step is one marker: the n-th of a text on one rank is the n-th of that text on every other.

    Args:
        steps: text and number within the text (from 1) -> start, duration [ns].
        phases: text, with # for numbers -> durations [ns].
        cut: steps that a window cuts.
    """

    steps: dict[tuple[str, int], tuple[int, int]]
    phases: dict[str, Spread]
    cut: frozenset[tuple[str, int]] = frozenset()

    @property
    def whole(self) -> dict[tuple[str, int], tuple[int, int]]:
        """Return the steps that no window cuts."""
        return {step: times for step, times in self.steps.items() if step not in self.cut}


def steps_of(reader: RankReader, pattern: re.Pattern[str]) -> RankSteps:
    """Read steps and phases of a rank."""
    ranges, marked = read_ranges(reader), counted_steps(reader, pattern)
    lengths: dict[str, list[int]] = {}
    for row, (start, end) in ranges.counted.items():
        lengths.setdefault(folded(ranges.every[row].text), []).append(end - start)
    steps = {(text, number): (start, end - start) for text, number, start, end in marked}
    phases = {phase: Spread.of(np.array(ns, np.int64)) for phase, ns in lengths.items()}
    if not reader.selects("rocpd_region"):
        return RankSteps(steps, phases)
    whole = {(text, number): end - start for text, number, start, end in counted_steps(reader.whole(), pattern)}
    return RankSteps(steps, phases, frozenset(step for step, (_, length) in steps.items() if length != whole[step]))


@dataclass
class Steps:
    """Times of steps and phases by rank or host, where a step takes as long as on the rank that takes longest."""

    by: By
    steps: dict[tuple[str, int], dict[Key, int]] = field(default_factory=dict)
    first: dict[tuple[str, int], int] = field(default_factory=dict)
    cut: set[tuple[str, int]] = field(default_factory=set)
    phases: dict[str, Phase] = field(default_factory=dict)
    growths: dict[tuple[str, int], tuple[int, Growth]] = field(default_factory=dict)

    def add(self, rank: Rank, added: RankSteps, gpu: Mapping[str, int], shift: Shift) -> None:
        """Add those of a rank.

        Args:
            rank: the rank.
            added: its steps and phases.
            gpu: phase -> time of the operations that were launched in it [ns].
            shift: makes its times count from the start of the time line.
        """
        key = key_of(self.by, rank)
        for step, (start, length) in added.steps.items():
            times = self.steps.setdefault(step, {})
            times[key] = max(length, times.get(key, 0))
            self.first.setdefault(step, shift.to_line(start))
        self.cut |= added.cut
        for text, spread in added.phases.items():
            phase = self.phases.setdefault(text, Phase())
            phase.spreads.append(spread)
            phase.totals[key] += spread.moments.total
            phase.gpu += gpu.get(text, 0)

    def add_growths(self, rank: Rank, growths: Mapping[tuple[str, int], Growth]) -> None:
        """Add what grew in slow steps of a rank: of each step that rank counts on which most grew."""
        for step, growth in growths.items():
            known = self.growths.get(step)
            if known is None or growth.own > known[1].own:
                self.growths[step] = rank.number, growth

    def step_rows(self, slow: Mapping[tuple[str, int], Key]) -> list[Row]:
        """One row per step, the longest first; `over_median` compares with the median of those that no window cuts.

        Args:
            slow: who was slow in a step, where that shows; else the one whose marker is clearly longest.
        """
        means = {step: sum(times.values()) / len(times) for step, times in self.steps.items()}
        whole = [mean for step, mean in means.items() if step not in self.cut]
        typical = median(whole) if whole else 0
        rows = []
        for step, times in self.steps.items():
            least, most = min(times.values()), max(times.values())
            over = means[step] / typical if typical and step not in self.cut else None
            spread = (means[step], least, most, most - least)
            rows.append(
                (
                    *(*step, self.first[step], len(times), *spread),
                    *(slow.get(step) or _slowest(times, _CLEARLY)),
                    over,
                    *self._grown(step),
                )
            )
        return sorted(rows, key=lambda row: (-row[4], row[2], row[0], row[1]))

    def _grown(self, step: tuple[str, int]) -> Row:
        if step not in self.growths:
            return None, None, None, None
        rank, growth = self.growths[step]
        return growth.part, growth.time, growth.what, rank

    def phase_rows(self) -> list[Row]:
        """One row per phase, most time first; imbalance is the largest rank total by the mean of rank totals."""
        rows = []
        for text, phase in self.phases.items():
            totals = phase.totals
            imbalance = max(totals.values()) * len(totals) / totals.total()
            rows.append(
                (text, len(totals), *statistics(Spread.sum(phase.spreads)), *_slowest(totals), imbalance, phase.gpu)
            )
        return sorted(rows, key=lambda row: (-row[3], row[0]))


def _slowest(times: Mapping[Key, int], margin: float = 0.0) -> Key:
    """Return whose time is longest; NULL where the next is as long, or shorter by less than the margin."""
    first, *others = sorted(times, key=lambda key: (-times[key], order_of(key)))
    is_clear = not others or times[first] - times[others[0]] > margin * times[first]
    return first if is_clear else (None,) * len(first)
