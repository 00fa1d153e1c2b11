"""Reads the regions of one rank, calls and marker ranges, outer ones before those inside; how they nest; its steps.

The innermost range is the one that started last of those that are open; of equal starts the shorter one. It lies in the
one that started last of those that contain it as a whole. Which ranges are steps, `rocpd.schema.rules.steps` says.
Memory: one rank at a time, about 50 bytes per region. Rows with invalid timestamps are left out and counted.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rocpd.base import NULL, Flags, Ints, by_key, frozen
from rocpd.facts.columns import (
    Names,
    Piece,
    Select,
    as_text,
    columns,
    different,
    distinct,
    grouped,
    read_all,
    read_before,
    runs,
    shared,
    statement,
)
from rocpd.facts.operations import OperationNames, Ops, launching_rows, read_ops, string_texts
from rocpd.facts.rank import RankReading
from rocpd.facts.spread import Spread
from rocpd.facts.timeline import Course
from rocpd.federate.run.rank_reader import Fact, RankReader
from rocpd.schema.rules.categories import is_marker
from rocpd.schema.rules.events import valid_times
from rocpd.schema.rules.launch import launching_regions
from rocpd.schema.rules.steps import MarkedStep, MarkerRange, find_steps, folded, step_times


@frozen
class Nesting:
    """The ranges of a rank, thread by thread.

    Args:
        around: row of the range around each; -1: none.
        segments: thread -> times from which another range is the innermost [ns], and which; -1: none.
    """

    around: Ints
    segments: dict[int | None, tuple[Ints, Ints]]

    def innermost(self, threads: Ints, times: Ints) -> Ints:
        """Return the row of the range around each time of a thread [ns], -1 where there is none."""
        around_each = np.full(len(times), -1, np.int64)
        for thread, (since, rows) in self.segments.items():
            here = (threads == thread).nonzero()[0]
            at = np.searchsorted(since, times[here], side="right") - 1
            around_each[here] = np.where(at >= 0, rows[at], -1)
        return around_each

    def path(self, row: int) -> Iterator[int]:
        """Yield a range and those around it, from the inside out; nothing for -1."""
        while row >= 0:
            yield row
            row = int(self.around[row])


def nest_times(start: Ints, end: Ints, thread: Ints | None = None) -> Nesting:
    """Return how ranges without texts lie in each other, as `nest`; one without length is in what is open around it.

    Args:
        start, end: of each range [ns].
        thread: its thread; None: all are of thread 0.
    """
    thread = np.zeros(len(start), np.int64) if thread is None else thread
    has_length = end > start
    kept, empty = has_length.nonzero()[0], (~has_length).nonzero()[0]
    nesting = _nested_in(start, end, ((key, kept[rows]) for (key,), rows in grouped([thread[kept]])))
    nesting.around[empty] = nesting.innermost(thread[empty], start[empty])
    return nesting


def own_times(start: Ints, end: Ints, around: Ints) -> Ints:
    """Return the time of each range outside of those inside it; what two inside both cover counts once [ns].

    >>> own_times(np.array([0, 1, 2, 8]), np.array([9, 5, 7, 9]), np.array([-1, 0, 0, 0])).tolist()
    [2, 4, 5, 1]

    Args:
        start, end: of ranges [ns].
        around: row of the range around each; -1: none.
    """
    inner = (around >= 0).nonzero()[0]
    inner = inner[np.lexsort((start[inner], around[inner]))]
    outer = around[inner]
    first, count = runs(outer)
    ends, which = different(end[inner])
    family = np.arange(len(first)).repeat(count) * len(ends)  # of each outer range the latest end so far is found apart
    covered = np.empty(len(inner), np.int64)
    covered[1:] = ends[(np.maximum.accumulate(which + family) - family)[:-1]]
    covered[first] = start[outer[first]]
    own = end - start
    np.subtract.at(own, outer, np.maximum(end[inner] - np.maximum(start[inner], covered), 0))
    return own


def depths(around: Ints) -> Ints:
    """Return how many ranges are around each one.

    Args:
        around: row of the range around each; -1: none.
    """
    depth = np.zeros(len(around), np.int64)
    rows, outer = np.arange(len(around)), around
    while len(rows):
        inside = outer >= 0
        rows, outer = rows[inside], outer[inside]
        depth[rows] += 1
        outer = around[outer]
    return depth


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
    some = [row for row in (range(len(ranges)) if rows is None else rows) if ranges[row].end > ranges[row].start]
    by_thread = by_key((ranges[row].thread if thread is None else thread, row) for row in some)
    start, end = np.zeros((2, len(ranges)), np.int64)
    start[some], end[some] = [ranges[row].start for row in some], [ranges[row].end for row in some]
    return _nested_in(start, end, [(key, np.array(of_thread)) for key, of_thread in by_thread.items()])


def _nested_in(start: Ints, end: Ints, threads: Iterable[tuple[int | None, Ints]]) -> Nesting:
    """Return how ranges lie in each other, of threads with the rows of their ranges, none of which is empty."""
    around = np.full(len(start), -1, np.int64)
    segments: dict[int | None, tuple[Ints, Ints]] = {}
    for key, rows in threads:
        ordered = rows[np.lexsort((rows, -end[rows], start[rows]))]
        times = start[ordered], end[ordered]
        depth = np.arange(len(ordered)) - np.searchsorted(np.sort(times[1]), times[0], side="right")
        outer = _around(depth)
        if (times[1][outer] >= times[1])[depth > 0].all():
            outer = np.where(depth > 0, outer, -1)
            since, inside = _proper_segments(*times, depth, outer)
        else:
            since, inside, outer = _crossing_segments(times[0].tolist(), times[1].tolist())
        around[ordered] = np.where(outer >= 0, ordered[outer], -1)
        segments[key] = since, np.where(inside >= 0, ordered[inside], -1)
    return Nesting(around, segments)


def _around(depth: Ints) -> Ints:
    """Return of each range the last one before it that so many others are open around, but one; else any."""
    count = len(depth)
    key = depth * count + np.arange(count)
    order = np.argsort(key, kind="stable")
    return order[np.searchsorted(key[order], key - count) - 1]


def _proper_segments(start: Ints, end: Ints, depth: Ints, outer: Ints) -> tuple[Ints, Ints]:
    """Return the segments of ranges in order, each of which ends in the one around it."""
    row = np.arange(len(start))
    time, is_start = np.concatenate([end, start]), np.repeat([0, 1], len(start))
    order = np.lexsort((np.concatenate([-depth, row]), is_start, time))
    return time[order], np.concatenate([outer, row])[order]


def _crossing_segments(start: Sequence[int], end: Sequence[int]) -> tuple[Ints, Ints, Ints]:
    """Return the segments of ranges in order, which may end before one that lies in them, and the range around each."""
    ends = [(time, 0, row) for row, time in enumerate(end)]
    starts = [(time, 1, row) for row, time in enumerate(start)]
    outer = np.full(len(start), -1)
    opened: list[int] = []  # in order of starts; those that ended before a later one stay until that one ends
    ended: set[int] = set()
    longest: list[int] = []  # those that no later one outlasts: the last that lasts as long as another is around it
    since, inside = [], []
    for time, is_start, row in sorted(ends + starts):
        if is_start:
            while longest and end[longest[-1]] < end[row]:
                longest.pop()
            outer[row] = longest[-1] if longest else -1
            longest.append(row)
            opened.append(row)
        else:
            ended.add(row)
            while opened and opened[-1] in ended:
                opened.pop()
            while longest and end[longest[-1]] <= time:
                longest.pop()
        since.append(time)
        inside.append(opened[-1] if opened else -1)
    return np.array(since, np.int64), np.array(inside, np.int64), outer


_NO_TIMES = np.zeros(0, np.int64)
_COLUMNS = ("stack", "start", "end", "id", "thread", "name", "category")


Steps = Mapping[int, tuple[int, int]]
"""Number of a step -> its start and end on a rank [ns]."""


class RankRegions(NamedTuple):
    """The regions of one rank.

    Args:
        thread: id, `NULL` where unknown.
        start, end: [ns].
        name: number in `Names`: of a marker its message, of others the function.
        category: number in `Names`.
        stack: stack id by which it may launch operations, `NULL` where it launches none.
        id: of its row.
    """

    thread: Ints
    start: Ints
    end: Ints
    name: Ints
    category: Ints
    stack: Ints
    id: Ints

    def take(self, rows: Ints | Flags) -> RankRegions:
        """Return some of the regions, in the order of their numbers in `rows`."""
        return RankRegions(*(column[rows] for column in self))


_REGIONS = Fact("regions", 2, (RankRegions,))
_FEW = 2048  # stack ids: of more calls it takes as long to read all


def read_regions(reading: RankReading) -> tuple[RankRegions, Names]:
    """Read the regions of a rank, and the names that their numbers stand for; neither is to be changed."""
    regions, texts, invalid = reading.reader.once(_REGIONS, lambda: _read(reading, statement("regions")))
    reading.left_out["regions"] += invalid
    return regions, reading.reader.once("names of regions", lambda: Names(texts))


def calls_of(reading: RankReading, stack: Ints) -> tuple[RankRegions, Ints, Names]:
    """Return markers and calls of the whole trace, which of them launched each operation, and their names.

    Args:
        reading: reads the rank; gets the number of regions that are left out.
        stack: stack id of each operation; -1 stands for no call. Calls with other ones may be missing.
    """
    whole, stacks = reading.whole(), distinct(stack[stack > 0])
    if len(stacks) > _FEW or read_before(whole.reader, "rocpd_region", statement("regions"), _COLUMNS):
        regions, names = read_regions(whole)
    else:
        regions, texts, invalid = _read(whole, statement("few_regions").format(stacks=", ".join(map(str, stacks))))
        names, whole.left_out["regions"] = Names(texts), invalid
    reading.also_left_out(whole.left_out)
    return regions, launching_regions(regions.stack, regions.start, regions.end, stack), names


def read_recording(reading: RankReading) -> tuple[Ops, OperationNames, RankRegions, Names, int]:
    """Return operations and regions with their names, and how many have invalid times, whatever the selection.

    By all that a rank recorded the recording is judged.
    """
    whole, kernels = reading.whole(), OperationNames()
    ops = read_ops(whole, kernels, stacks=True)
    return ops, kernels, *read_regions(whole), sum(whole.left_out.values())


_MARKERS = Fact("markers", 1, (Piece,))


def read_markers(reader: RankReader) -> Piece:
    """Read the marker ranges of a rank: ids, in order, threads, starts and ends [ns]; messages; not to be changed."""
    select = Select(statement("marker_ranges"), ("id", "thread", "start", "end"), texts=("name",), base="rocpd_region")
    return reader.once(_MARKERS, lambda: read_all(reader, select))


def _read(reading: RankReading, select: str) -> tuple[RankRegions, list[str | None], int]:
    """Return regions, what their names stand for, and how many regions have invalid timestamps."""
    names = Names()
    selected = columns(reading.reader, "rocpd_region", select, _COLUMNS)
    stack, start, end, row, thread, name, category = selected
    valid = valid_times(start, end)
    if not valid.all() or reading.reader.selects("rocpd_region"):
        # The launching region may be left out: then no other launches in its place.
        stack = np.where(np.isin(row, launching_rows(reading.reader)), stack, NULL)
    texts = string_texts(reading.reader, np.concatenate([name, category]))
    codes = names.codes(name, texts.get)
    markers = read_markers(reading.reader)
    if markers.count:
        marker, messages = markers.numbers[0], np.array([names.code(as_text(text)) for text in markers.texts[0]])
        at = np.maximum(np.searchsorted(marker, row, side="right") - 1, 0)
        codes = np.where(marker[at] == row, messages[at], codes)
    order = np.lexsort((row, stack, -np.where(valid, end, 0), start))  # of equal ranges the lower id is outside
    order = order[valid[order]]
    every = (thread, start, end, codes, names.codes(category, texts.get), stack, row)
    return RankRegions(*(column[order] for column in every)), names.texts, int((~valid).sum())


def marked_threads(regions: RankRegions, names: Names) -> dict[int, Course]:
    """Return thread -> number of the message of its innermost marker at any time, `NULL` outside of markers."""
    markers = regions.take(np.array([is_marker(text or "") for text in names.texts], bool)[regions.category])
    return {thread: innermost(markers.take(rows)) for (thread,), rows in grouped([markers.thread])}


def innermost(ranges: RankRegions) -> Course:
    """Return, for the ranges of one thread, the number of the name of the one that is open and started last."""
    since, rows = nest_times(ranges.start, ranges.end).segments.get(0, (_NO_TIMES, _NO_TIMES))
    return Course.of(since, np.where(rows >= 0, ranges.name[rows], NULL), NULL)


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
    _, ranges = marker_ranges(reader.whole(), functools.cache(pattern.search))
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


_NESTING = Fact("nesting", 2, (Nesting,))


def read_nesting(reader: RankReader) -> Nesting:
    """Return how the ranges of `read_ranges` lie in each other; it is not to be changed."""
    return reader.once(_NESTING, lambda: nest(read_ranges(reader).every))


def _read_ranges(reader: RankReader) -> Ranges:
    ids, every = marker_ranges(reader.whole())
    if not reader.selects("rocpd_region"):
        return Ranges(every, {row: (start, end) for row, (_, start, end, _) in enumerate(every)})
    rows = {number: row for row, number in enumerate(ids)}
    counted = zip(*marker_ranges(reader), strict=True)
    return Ranges(every, {rows[number]: (start, end) for number, (_, start, end, _) in counted if number in rows})


def marker_ranges(reader: RankReader, is_wanted: Callable[[str], object] = bool) -> tuple[list[int], list[MarkerRange]]:
    """Return the ids of the marker ranges of a rank that have a length and a text that is wanted, and the ranges."""
    markers = read_markers(reader)
    number, thread, start, end = markers.numbers
    rows = (valid_times(start, end) & (end > start)).nonzero()[0].tolist()
    texts = {row: shared(markers.texts[0][row]) or "" for row in rows}
    rows = [row for row in rows if texts[row] and is_wanted(texts[row])]
    ranges = [MarkerRange(texts[row], int(start[row]), int(end[row]), int(thread[row])) for row in rows]
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
    def periods(self) -> dict[tuple[str, int], int]:
        """Return how long it is from the start of a step to that of the next one, of the last one to its end [ns]."""
        ordered = sorted((start, step) for step, (start, _) in self.steps.items())
        end = max((start + length for start, length in self.steps.values()), default=0)
        following = [*(start for start, _ in ordered[1:]), end]
        return {step: after - start for (start, step), after in zip(ordered, following, strict=False)}

    @property
    def whole(self) -> dict[tuple[str, int], tuple[int, int]]:
        """Return the steps that no window cuts."""
        return {step: times for step, times in self.steps.items() if step not in self.cut}


def steps_of(reader: RankReader, pattern: re.Pattern[str], *, phases: bool = False) -> RankSteps:
    """Read the steps of a rank, and its phases where they are asked for."""
    ranges, marked = read_ranges(reader), list(counted_steps(reader, pattern))
    counted = ranges.counted.items() if phases else ()
    lengths = by_key((folded(ranges.every[row].text), end - start) for row, (start, end) in counted)
    steps = {(step.text, step.of_text): (step.start, step.end - step.start) for step in marked}
    numbers = {(step.text, step.of_text): step.number for step in marked}
    durations = {phase: Spread.of(np.array(ns, np.int64)) for phase, ns in lengths.items()}
    if not reader.selects("rocpd_region"):
        return RankSteps(steps, numbers, durations)
    whole = {(each.text, each.of_text): each.end - each.start for each in counted_steps(reader.whole(), pattern)}
    cut = frozenset(step for step, (_, length) in steps.items() if length != whole[step])
    return RankSteps(steps, numbers, durations, cut)
