"""The marker ranges of a rank, and its steps among them. Which ranges are steps, `rocpd.schema.rules.steps` says."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rocpd.base.frozen import frozen
from rocpd.facts.names import as_text
from rocpd.facts.nesting import Nesting, nest
from rocpd.facts.regions import read_markers
from rocpd.facts.spread import Spread
from rocpd.federate.run.rank_reader import RankReader
from rocpd.schema.rules.steps import MarkedStep, MarkerRange, find_steps, folded, step_times
from rocpd.schema.rules.times import valid_times

Steps = Mapping[int, tuple[int, int]]
"""Number of a step -> its start and end on a rank [ns]."""


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


def step_spans(reader: RankReader, pattern: re.Pattern[str]) -> Steps:
    """Return the steps of a rank in its whole trace; quicker than `read_steps` where nothing else is asked."""
    markers = read_markers(reader.whole())
    _, threads, starts, ends = markers.numbers
    is_named = functools.cache(lambda text: bool(text) and pattern.search(text) is not None)
    rows = [row for row, text in enumerate(markers.texts[0]) if is_named(as_text(text))]
    named = np.array(rows, np.int64)[valid_times(starts[rows], ends[rows])].tolist() if rows else []
    texts, columns = markers.texts[0], (starts[named].tolist(), ends[named].tolist(), threads[named].tolist())
    ranges = [MarkerRange(as_text(texts[row]) or "", *times) for row, *times in zip(named, *columns, strict=True)]
    return step_times(ranges, pattern)


class CountedStep(NamedTuple):
    """A step that counts: its text, which of this text (from 1), its number in the job, start and end [ns]."""

    text: str
    of_text: int
    number: int | None
    start: int
    end: int


def counted_steps(reader: RankReader, pattern: re.Pattern[str]) -> Iterator[CountedStep]:
    """Yield the steps that count, as they are numbered in the whole trace."""
    ranges = read_ranges(reader)
    seen: Counter[str] = Counter()
    for row, number in read_steps(reader, pattern):
        text = ranges.every[row].text
        seen[text] += 1
        if row in ranges.counted:
            yield CountedStep(text, seen[text], number, *ranges.counted[row])


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


class RankSteps(NamedTuple):
    """Steps and phases of one rank.

    A step is one marker: the n-th of a text on one rank is the n-th of that text on every other.

    Args:
        steps: text and number within the text (from 1) -> start, duration [ns].
        numbers: the same -> number of the step in the job, None of those of another kind.
        phases: text, with # for numbers -> durations [ns].
        cut: steps that a window cuts.
    """

    steps: dict[tuple[str, int], tuple[int, int]]
    numbers: dict[tuple[str, int], int | None]
    phases: dict[str, Spread]
    cut: frozenset[tuple[str, int]] = frozenset()

    def of(self, numbers: Collection[int]) -> frozenset[tuple[str, int]]:
        """Return the steps with some numbers."""
        return frozenset(step for step, number in self.numbers.items() if number in numbers)

    @property
    def whole(self) -> dict[tuple[str, int], tuple[int, int]]:
        """Return the steps that no window cuts."""
        return {step: times for step, times in self.steps.items() if step not in self.cut}


def steps_of(reader: RankReader, pattern: re.Pattern[str]) -> RankSteps:
    """Read steps and phases of a rank."""
    ranges, marked = read_ranges(reader), list(counted_steps(reader, pattern))
    lengths: dict[str, list[int]] = {}
    for row, (start, end) in ranges.counted.items():
        lengths.setdefault(folded(ranges.every[row].text), []).append(end - start)
    steps = {(step.text, step.of_text): (step.start, step.end - step.start) for step in marked}
    numbers = {(step.text, step.of_text): step.number for step in marked}
    phases = {phase: Spread.of(np.array(ns, np.int64)) for phase, ns in lengths.items()}
    if not reader.selects("rocpd_region"):
        return RankSteps(steps, numbers, phases)
    whole = {(each.text, each.of_text): each.end - each.start for each in counted_steps(reader.whole(), pattern)}
    cut = frozenset(step for step, (_, length) in steps.items() if length != whole[step])
    return RankSteps(steps, numbers, phases, cut)
