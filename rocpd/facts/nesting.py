"""Owns which marker range is around a time of a thread, and which range is around that one.

The innermost range is the one that started last of those that are open; of equal starts the shorter one. It lies in the
one that started last of those that contain it as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from rocpd.base.frozen import frozen
from rocpd.base.types import Ints
from rocpd.schema.rules.steps import MarkerRange


@frozen
class Nesting:
    """The ranges of a rank, thread by thread.

    Args:
        parents: row -> row of the range around it; without those that nothing is around.
        segments: thread -> times from which another range is the innermost [ns], and which; -1: none.
    """

    parents: dict[int, int]
    segments: dict[int | None, tuple[Ints, Ints]]

    def innermost(self, threads: Ints, times: Ints) -> Ints:
        """Return the row of the range around each time of a thread [ns], -1 where there is none."""
        around_each = np.full(len(times), -1, np.int64)
        for thread, (since, rows) in self.segments.items():
            here = np.flatnonzero(threads == thread)
            at = np.searchsorted(since, times[here], side="right") - 1
            around_each[here] = np.where(at >= 0, rows[at], -1)
        return around_each

    def path(self, row: int) -> Iterator[int]:
        """Yield a range and those around it, from the inside out; nothing for -1."""
        while row >= 0:
            yield row
            row = self.parents.get(row, -1)


def nest_times(start: Ints, end: Ints, thread: Ints | None = None) -> Nesting:
    """Return how ranges without texts lie in each other, as `nest`.

    Args:
        start, end: of each range [ns].
        thread: its thread; None: all are of one.
    """
    times = [column.tolist() for column in (start, end, *([] if thread is None else [thread]))]
    return nest([MarkerRange("", *each) for each in zip(*times, strict=True)])


def nest(ranges: Sequence[MarkerRange], rows: Iterable[int] | None = None, thread: int | None = None) -> Nesting:
    """Return how ranges lie in each other.

    >>> step, layer, alone = MarkerRange("step", 0, 9, 1), MarkerRange("layer", 2, 5, 1), MarkerRange("copy", 3, 9, 2)
    >>> nesting = nest([step, layer, alone])
    >>> nesting.innermost(np.array([1, 1, 1, 2, 2]), np.array([1, 2, 5, 2, 3])).tolist(), list(nesting.path(1))
    ([0, 1, 0, -1, 2], [1, 0])

    Args:
        ranges: of a rank.
        rows: which of them; None: all.
        thread: takes all for ranges of this one thread.
    """
    by_thread: dict[int | None, list[int]] = {}
    for row in range(len(ranges)) if rows is None else rows:
        if ranges[row].end > ranges[row].start:
            by_thread.setdefault(ranges[row].thread if thread is None else thread, []).append(row)
    parents: dict[int, int] = {}
    return Nesting(parents, {key: _segments(ranges, of_thread, parents) for key, of_thread in by_thread.items()})


def _segments(ranges: Sequence[MarkerRange], rows: Sequence[int], parents: dict[int, int]) -> tuple[Ints, Ints]:
    """Return the segments of one thread; add to `parents` what each range lies in."""
    ends = [(ranges[row].end, 0, 0, row) for row in rows]
    starts = [(ranges[row].start, 1, -ranges[row].end, row) for row in rows]
    opened: list[int] = []
    since, inside = [], []
    for time, is_start, _, row in sorted(ends + starts):
        if is_start:
            around = next((outer for outer in reversed(opened) if ranges[outer].end >= ranges[row].end), -1)
            if around >= 0:
                parents[row] = around
            opened.append(row)
        else:
            opened.remove(row)  # nearly always the last
        since.append(time)
        inside.append(opened[-1] if opened else -1)
    return np.array(since, np.int64), np.array(inside, np.int64)
