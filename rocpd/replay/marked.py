"""The steps of a rank as its threads mark them. Reads one rank, never another.

Where several threads mark the same steps, such as one for each GPU of the process, one of them may be in a step while
another one is still in the step before. So work belongs to the step of its own thread.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from rocpd.base import NULL, Ints, by_key, frozen
from rocpd.facts.rank import RankReading
from rocpd.facts.regions import read_ranges, read_steps
from rocpd.facts.timeline import Course

BEGINS, ENDS = 1, 2
"""Kinds of edges of steps."""


class StepEdge(NamedTuple):
    """The time at which a step begins or ends [ns], and the thread of its marker."""

    time: int
    thread: int


_Steps = Mapping[int, tuple[StepEdge, StepEdge]]
"""Number of a step -> its begin and end."""


@frozen
class StepMarks:
    """The steps of a rank.

    Args:
        of_threads: thread -> the steps that it marks.
    """

    of_threads: Mapping[int, _Steps]

    @classmethod
    def read(cls, whole: RankReading, step: re.Pattern[str]) -> StepMarks:
        """Read the steps of a rank; `step`: markers that are steps."""
        ranges = read_ranges(whole.reader).every
        steps: dict[int, dict[int, tuple[StepEdge, StepEdge]]] = {}
        for row, number in read_steps(whole.reader, step):
            if number is not None:
                _, start, end, thread = ranges[row]
                marks = NULL if thread is None else thread
                steps.setdefault(marks, {})[number] = StepEdge(start, marks), StepEdge(end, marks)
        return cls({**steps})

    @functools.cached_property
    def every(self) -> _Steps:
        """The steps of all threads: each lasts from the first begin to the last end."""
        every = by_key(each for steps in self.of_threads.values() for each in steps.items())
        return {
            number: (min(start for start, _ in both), max(end for _, end in both)) for number, both in every.items()
        }

    def edges(self) -> tuple[Ints, Ints, Ints]:
        """Return the times [ns], threads and kinds of all edges, each once: one that also begins a step is an end."""
        marked = [both for steps in self.of_threads.values() for both in steps.values()]
        kinds = {both[at]: kind for at, kind in enumerate((BEGINS, ENDS)) for both in marked}
        time, thread = np.array([*kinds], np.int64).reshape(-1, 2).T
        return time, thread, np.array([*kinds.values()], np.int64)

    def at(self, thread: Ints, time: Ints) -> Ints:
        """Return the number of the step that each time of a thread lies in [ns], `NULL` between steps.

        Of a thread that marks no steps, it is the latest that another one has begun.
        """
        step = _course(self.every).at(time)
        for number, steps in self.of_threads.items() if len(self.of_threads) > 1 else ():
            here = thread == number
            step[here] = _course(steps).at(time[here])
        return step


def _course(steps: _Steps) -> Course:
    """Return the number of the step at any time, of two that overlap the later one; `NULL` between steps."""
    ordered = sorted((start.time, end.time, number) for number, (start, end) in steps.items())
    changes: list[tuple[int, int]] = []
    for start, end, number in reversed(ordered):
        then = changes[-1][0] if changes else end
        changes += [(min(end, then), NULL), (start, number)]
    columns = np.array(changes[::-1], np.int64).reshape(-1, 2)
    return Course.of(columns[:, 0], columns[:, 1], NULL)
