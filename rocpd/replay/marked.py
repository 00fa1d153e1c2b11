"""The steps of a rank as its threads mark them. Reads one rank, never another.

Where several threads mark the same steps, such as one for each GPU of the process, one of them may be in a step while
another one is still in the step before. So work belongs to the step of its own thread.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import field, replace
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


class OrderedCalls(NamedTuple):
    """Calls of a rank in order of time.

    Args:
        thread, start, end: of each [ns].
        does: a number that calls share which do the same.
    """

    thread: Ints
    start: Ints
    end: Ints
    does: Ints

    def of(self, thread: int) -> OrderedCalls:
        """Return those of a thread."""
        here = self.thread == thread
        return OrderedCalls(self.thread[here], self.start[here], self.end[here], self.does[here])


@frozen
class StepMarks:
    """The steps of a rank.

    Args:
        of_threads: thread -> the steps that it marks.
        inferred: thread that marks none, but does what one does that marks them -> the number of its step at any time.
    """

    of_threads: Mapping[int, _Steps]
    inferred: Mapping[int, Course] = field(default_factory=dict)

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

        Of a thread that marks no steps, nor does what one does that marks them, it is the latest that another one has
        begun.
        """
        step = _course(self.every).at(time)
        several = len(self.of_threads) > 1
        marked = {number: _course(steps) for number, steps in self.of_threads.items() if several}
        for number, course in {**marked, **self.inferred}.items():
            here = thread == number
            step[here] = course.at(time[here])
        return step

    def with_unmarked(self, calls: OrderedCalls) -> StepMarks:
        """Return it with the steps of threads that mark none, but call all that the marking thread calls, in turn.

        Such a thread drives another GPU, and may be ahead of the marks or behind.

        Args:
            calls: the calls of all threads.
        """
        if len(self.of_threads) != 1:
            return self
        ((marking, steps),) = self.of_threads.items()
        ordered = sorted(steps.items(), key=lambda item: item[1])
        begin, end = (np.array([both[side].time for _, both in ordered], np.int64) for side in (0, 1))
        mine = calls.of(marking)
        first, last = np.searchsorted(mine.start, begin), int(np.searchsorted(mine.start, end[-1]))
        whole = mine.does[first[0] : last]
        others = [each for each in np.unique(calls.thread).tolist() if each != marking and each != NULL]
        inferred = {}
        for number in others if len(whole) else ():
            theirs = calls.of(number)
            if (shift := _place_of(whole, theirs, int(begin[0]))) is not None:
                at = first + shift - first[0]
                since = np.where(at > 0, theirs.end[at - 1], begin)
                since[0] = max(since[0] if at[0] else begin[0], min(int(theirs.start[at[0]]), int(begin[0])))
                until = max(int(end[-1]), int(theirs.end[at[0] + len(whole) - 1]))
                numbers = [*(each for each, _ in ordered), NULL]
                inferred[number] = Course.of(np.append(since, until), np.array(numbers, np.int64), NULL)
        return replace(self, inferred=inferred)


def _place_of(whole: Ints, calls: OrderedCalls, time: int) -> int | None:
    """Return where some calls are that do all of `whole` in turn, those that begin closest to a time; None: nowhere."""
    places = (calls.does[: len(calls.does) - len(whole) + 1] == whole[0]).nonzero()[0]
    near = places[np.argsort(np.abs(calls.start[places] - time), kind="stable")].tolist()
    return next((at for at in near if np.array_equal(calls.does[at : at + len(whole)], whole)), None)


def _course(steps: _Steps) -> Course:
    """Return the number of the step at any time, of two that overlap the later one; `NULL` between steps."""
    ordered = sorted((start.time, end.time, number) for number, (start, end) in steps.items())
    changes: list[tuple[int, int]] = []
    for start, end, number in reversed(ordered):
        then = changes[-1][0] if changes else end
        changes += [(min(end, then), NULL), (start, number)]
    columns = np.array(changes[::-1], np.int64).reshape(-1, 2)
    return Course.of(columns[:, 0], columns[:, 1], NULL)
