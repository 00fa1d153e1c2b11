"""Divides the time of a rank by where it is: in which step, or in which path of marker ranges.

A rank goes from step to step, whichever thread marks them. Its ranges are those of the thread on which most steps are;
without steps, of the thread whose ranges cover most time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from rocpd.frozen import frozen
from rocpd.summary.intervals import divide
from rocpd.summary.options import LAUNCHES, By
from rocpd.summary.origins import SEPARATOR, Paths
from rocpd.summary.reading import Key, RankReading
from rocpd.summary.steps import read_nesting, read_ranges, read_steps
from rocpd.trace.nesting import nest
from rocpd.trace.steps import MarkedStep, MarkerRange, is_step
from rocpd.types import Ints

_ALWAYS = np.iinfo(np.int64).min


class Stretches(NamedTuple):
    """Parts of intervals, each in one place: which interval, number of the place, start and end [ns]."""

    of: Ints
    place: Ints
    start: Ints
    end: Ints


@frozen
class Course:
    """Where a rank is at any time.

    Args:
        edges: times from which it is elsewhere [ns], ascending; the first lies before all times.
        places: number of where it is, from each edge to the next one.
        keys: number -> values of the columns of the division.
    """

    edges: Ints
    places: Ints
    keys: Sequence[Key]

    def at(self, times: Ints) -> list[Key]:
        """Return the key of where the rank is at each of some times [ns]."""
        places = self.places[np.searchsorted(self.edges, times, side="right") - 1]
        return [self.keys[place] for place in places.tolist()]

    def divide(self, start: Ints, end: Ints) -> Stretches:
        """Divide intervals, none of them empty, by where the rank is [ns]."""
        of, at, start, end = divide(self.edges, start, end)
        return Stretches(of, self.places[at], start, end)

    def between(self, start: int, end: int) -> Stretches:
        """Divide one interval [ns], which may be empty."""
        some = slice(int(end > start))
        return self.divide(np.array([start])[some], np.array([end])[some])


def course_of(reading: RankReading, agent: int) -> Course:
    """Return where a rank is; always at one place, with this agent, where neither steps nor markers divide."""
    by = reading.options.by
    if by not in LAUNCHES:
        return Course(np.array([_ALWAYS]), np.array([0]), [reading.key(agent)])
    ranges = read_ranges(reading.reader).every
    steps = read_steps(reading.reader, is_step(reading.options.step_marker))
    if by is By.STEP:
        return through_steps(ranges, steps)
    nesting = read_nesting(reading.reader)
    paths = Paths(ranges, nesting, frozenset(step.row for step in steps))
    return _course(
        nesting.segments.get(_main_thread(ranges, steps)), lambda row: (SEPARATOR.join(paths.of(-1, row)) or None,)
    )


def through_steps(ranges: Sequence[MarkerRange], steps: Sequence[MarkedStep]) -> Course:
    """Return in which of its steps a rank is; the key is the number of the step, None outside."""
    segments = nest(ranges, [step.row for step in steps], thread=0).segments.get(0)
    numbers = {step.row: step.number for step in steps}
    return _course(segments, lambda row: (numbers.get(row),))


def _main_thread(ranges: Sequence[MarkerRange], steps: Sequence[MarkedStep]) -> int | None:
    weights = Counter(ranges[step.row].thread for step in steps)
    for _, start, end, thread in () if steps else ranges:
        weights[thread] += end - start
    return weights.most_common(1)[0][0] if weights else None


def _course(segments: tuple[Ints, Ints] | None, key_of_row: Callable[[int], Key]) -> Course:
    since, rows = segments or (np.zeros(0, np.int64), np.zeros(0, np.int64))
    numbers: dict[Key, int] = {key_of_row(-1): 0}
    of_rows = {row: numbers.setdefault(key_of_row(row), len(numbers)) for row in np.unique(rows).tolist()}
    edges, places = np.append(_ALWAYS, since), np.array([0, *(of_rows[row] for row in rows.tolist())], np.int64)
    last = np.append(edges[1:] != edges[:-1], True)  # of changes at one time
    return Course(edges[last], places[last], list(numbers))
