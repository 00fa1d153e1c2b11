"""The step, or path of marker ranges, of a rank at any time, and of its GPU work by its launch.

A step holds all work that any thread of the rank launches during it. Other ranges hold the work that their own thread
launches; their path begins with the step that the rank is in. Work whose call is not in the trace counts by its start,
for steps only. Calls and markers are those of the whole trace, regardless of the selection.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from rocpd.base import Flags, Ints, frozen
from rocpd.facts.agent_time import read_history
from rocpd.facts.columns import distinct, first_of, grouped, numbered
from rocpd.facts.operations import COPY, KERNEL, NO_THREAD, Ops, launch_calls, read_stacks
from rocpd.facts.rank import LAUNCHES, By, Key, RankReading
from rocpd.facts.regions import HostCall, RankRegions, depths, nest, read_nesting, read_ranges, read_steps
from rocpd.facts.spread import total
from rocpd.facts.timeline import ALWAYS, NOTHING, Course, Pieces
from rocpd.federate.run.rank_reader import RankReader
from rocpd.schema.rules.steps import MarkedStep, MarkerRange, folded, is_step

SEPARATOR = " / "
"""Between the ranges of a path."""

Path: TypeAlias = tuple[str, ...]
"""Texts of ranges, with # for numbers, the outermost first."""

Place: TypeAlias = int | Path | None
"""A step (None outside of steps), or a path."""


@frozen
class Origins:
    """The places where the operations of a rank were launched.

    Args:
        codes: kind of operation -> ids of its rows in order, and for each the number of its place.
        places: number -> place.
    """

    codes: dict[int, tuple[Ints, Ints]]
    places: Sequence[Place]

    def of(self, kind: int, rows: Ints) -> Ints:
        """Return the number of the place of each operation, by its row id; -1 for one without valid times."""
        ids, codes = self.codes[kind]
        if not len(ids):
            return np.full(len(rows), -1, np.int64)
        at = np.minimum(np.searchsorted(ids, rows), len(ids) - 1)
        return np.where(ids[at] == rows, codes[at], -1)

    def of_ops(self, ops: Ops) -> Ints:
        """Return the number of the place of each operation, for both kinds."""
        return np.where(ops.kind == COPY, self.of(COPY, ops.row), self.of(KERNEL, ops.row))

    def key(self, code: int) -> Key:
        """Return the value of a place in the column of the division."""
        return key_of_place(self.places[code] if code >= 0 else None)


def read_origins(reading: RankReading, by: By) -> Origins:
    """Find the step, or the path of markers, in which each operation that counts was launched."""
    # The edge of a window may have cut off the start.
    source = reading.unwindowed() if reading.reader.cuts else reading
    of_kinds = read_stacks(source.reader)
    at, stacks = (np.concatenate([of_kinds[kind][side] for kind in (KERNEL, COPY)]) for side in (1, 2))
    threads, starts = launch_calls(reading.reader, stacks)
    places, codes = places_at(reading, by, threads, np.where(threads == NO_THREAD, at, starts))
    kernels, copies = (of_kinds[kind][0] for kind in (KERNEL, COPY))
    return Origins({KERNEL: (kernels, codes[: len(kernels)]), COPY: (copies, codes[len(kernels) :])}, places)


def places_at(reading: RankReading, by: By, threads: Ints, at: Ints) -> tuple[list[Place], Ints]:
    """Return steps, or paths of markers, and for each time of a thread the number of the place around it.

    Args:
        reading: reads the rank.
        by: `By.STEP` or `By.MARKER`.
        threads: ids; `NO_THREAD` for an unknown thread.
        at: times [ns].
    """
    ranges = read_ranges(reading.reader).every
    steps = read_steps(reading.reader, is_step(reading.options.step_marker))
    step = _steps_at(ranges, steps, threads, at)
    if by is By.STEP:
        return _numbered([step], {step.row: step.number for step in steps}.get)
    rows, paths = read_nesting(reading.reader).innermost(threads, at), _paths_of(ranges, steps, reading.reader)
    outside = np.where(paths.has_step[rows], 0, paths.number[step])
    return _numbered([outside, paths.number[rows]], lambda outer, inner: paths.every[outer] + paths.every[inner])


def key_of_place(place: Place) -> Key:
    """Return the value of a place in the column of the division."""
    return (SEPARATOR.join(place) or None if isinstance(place, tuple) else place,)


def launched_in(reading: RankReading, ops: Ops) -> dict[str, int]:
    """Return folded text of marker ranges -> time of the operations launched in them [ns]."""
    origins = read_origins(reading, By.MARKER)
    times: dict[str, int] = {}
    for (code,), rows in grouped([origins.of_ops(ops)]):
        path = origins.places[code] if code >= 0 else None
        for text in set(path if isinstance(path, tuple) else ()):
            times[text] = times.get(text, 0) + total(ops.duration[rows])
    return times


def _steps_at(ranges: Sequence[MarkerRange], steps: Iterable[MarkedStep], threads: Ints, at: Ints) -> Ints:
    """Return the row of the step around each launch: a step of its thread, else of any thread, else -1."""
    rows = [step.row for step in steps]
    around = nest(ranges, rows).innermost(threads, at)
    (others,) = (around < 0).nonzero()
    if len(others):
        around[others] = nest(ranges, rows, thread=0).innermost(np.zeros_like(others), at[others])
    return around


@frozen
class _Paths:
    """The paths of the ranges of a rank, each on its thread.

    Args:
        every: the different paths; the first one is empty.
        number: number in `every` of each range's path; the last element, for row -1, is the empty path.
        has_step: whether a step is part of each range's path; the last element is for row -1.
    """

    every: list[Path]
    number: Ints
    has_step: Flags


def _paths_of(ranges: Sequence[MarkerRange], steps: Iterable[MarkedStep], reader: RankReader) -> _Paths:
    around, texts = read_nesting(reader).around, dict[str, int]()
    text = np.array([texts.setdefault(folded(each.text), len(texts)) for each in ranges], np.int64)
    names, depth = list(texts), depths(around)
    paths: list[Path] = [()]
    number, has_step = np.zeros(len(ranges) + 1, np.int64), np.zeros(len(ranges) + 1, bool)
    has_step[[step.row for step in steps]] = True
    for level in range(int(depth.max(initial=-1)) + 1):
        rows = (depth == level).nonzero()[0]
        outer = around[rows]
        has_step[rows] |= has_step[outer]
        code = numbered(number[outer], text[rows])
        heads = first_of(code)
        outside = [paths[path] for path in number[outer[heads]].tolist()]
        number[rows] = len(paths) + code
        paths += [(*path, names[of]) for path, of in zip(outside, text[rows[heads]].tolist(), strict=True)]
    return _Paths(paths, number, has_step)


def _numbered(around: Sequence[Ints], place: Callable[..., Place]) -> tuple[list[Place], Ints]:
    """Return the different places, and for each operation the number of its place; `place`: rows of ranges -> place."""
    code = numbered(*around)
    first = first_of(code)
    named = [place(*pair) for pair in zip(*(rows[first].tolist() for rows in around), strict=True)]
    numbers = {value: number for number, value in enumerate(dict.fromkeys(named))}
    return list(numbers), np.array([numbers[value] for value in named], np.int64)[code]


@frozen
class Whereabouts:
    """The place of a rank at any time.

    Args:
        course: number of its place.
        keys: number -> values of the columns of the division.
    """

    course: Course
    keys: Sequence[Key]

    def at(self, times: Ints) -> list[Key]:
        """Return the key of the rank's place at each of some times [ns]."""
        return [self.keys[place] for place in self.course.at(times).tolist()]

    def divide(self, pieces: Pieces) -> Iterator[tuple[Key, Pieces]]:
        """Yield the key of each place, and the parts of pieces, which are not empty, that lie there."""
        places, cut = self.course.divide(pieces)
        if len(self.keys) == 1 and len(cut.of):
            yield self.keys[0], cut
            return
        for (place,), rows in grouped([places]):
            yield self.keys[place], cut.take(rows)


def whereabouts(reading: RankReading, agent: int) -> Whereabouts:
    """Return the places of a rank; a single place, with this agent, where neither steps nor markers divide.

    A rank goes from step to step, whichever thread marks them. Its ranges are those of the thread with most steps;
    without steps, of the thread whose ranges cover most time.
    """
    by = reading.options.by
    if by not in LAUNCHES:
        return Whereabouts(Course(np.array([ALWAYS]), np.array([0])), [reading.key(agent)])
    pattern = is_step(reading.options.step_marker)
    if by is By.STEP:
        return through_steps(reading.reader, pattern)
    ranges, steps = read_ranges(reading.reader).every, read_steps(reading.reader, pattern)
    segments, paths = read_nesting(reading.reader).segments, _paths_of(ranges, steps, reading.reader)
    of_main = segments.get(_main_thread(ranges, steps))
    return _named(of_main, lambda row: key_of_place(paths.every[int(paths.number[row])]))


def through_steps(reader: RankReader, pattern: re.Pattern[str]) -> Whereabouts:
    """Return the step of a rank at any time of its whole trace; the key is the number of the step, None outside.

    Args:
        reader: reads the rank.
        pattern: pattern of the texts of steps.
    """
    ranges, steps = read_ranges(reader.whole()).every, read_steps(reader, pattern)
    segments = nest(ranges, [step.row for step in steps], thread=0).segments.get(0)
    numbers = {step.row: step.number for step in steps}
    return _named(segments, lambda row: (numbers.get(row),))


def _main_thread(ranges: Sequence[MarkerRange], steps: Sequence[MarkedStep]) -> int | None:
    weights = Counter(ranges[step.row].thread for step in steps)
    for _, start, end, thread in () if steps else ranges:
        weights[thread] += end - start
    return weights.most_common(1)[0][0] if weights else None


def _named(segments: tuple[Ints, Ints] | None, key_of_row: Callable[[int], Key]) -> Whereabouts:
    since, rows = segments or NOTHING
    numbers: dict[Key, int] = {key_of_row(-1): 0}
    of_rows = {row: numbers.setdefault(key_of_row(row), len(numbers)) for row in distinct(rows).tolist()}
    values = np.array([of_rows[row] for row in rows.tolist()], np.int64)
    return Whereabouts(Course.of(since, values, 0), list(numbers))


_WAITING = (HostCall.SYNCHRONISE, HostCall.COPY, HostCall.ALLOCATE, HostCall.MODULE)

_IS_WAITING = np.array([*(kind in _WAITING for kind in HostCall), False])  # -1: no call

WAITING = frozenset(kind.value for kind in _WAITING)
"""Causes of idle time that are calls which the program may avoid: so the place of the call matters."""


class CallPaths:
    """The marker ranges around those calls of a rank that are `WAITING`, in the whole trace.

    Args:
        reading: reads the rank.
    """

    def __init__(self, reading: RankReading) -> None:
        self._reading = reading.whole()

    def times(self, name: int, start: Ints, length: Ints) -> dict[str, int]:
        """Return path -> time of stretches that begin in calls of a name; stretches in no marker are left out.

        Args:
            name: number of the function, as in `read_regions`.
            start, length: of the stretches [ns].
        """
        calls, places, paths = self._read
        rows = (calls.name == name).nonzero()[0]
        at = np.searchsorted(calls.start[rows], start, side="right") - 1
        known = (at >= 0).nonzero()[0]
        times: dict[str, int] = {}
        for (place,), which in grouped([places[rows[at[known]]]]):
            if paths[place]:
                times[paths[place]] = int(length[known[which]].sum())
        return times

    @functools.cached_property
    def _read(self) -> tuple[RankRegions, Ints, list[str]]:
        """The calls by start, the number of the path of each call, and the paths; an empty path: no marker."""
        history = read_history(self._reading)
        calls = history.regions.take(_IS_WAITING[history.calls])
        places, codes = places_at(self._reading, By.MARKER, calls.thread, calls.start)
        return calls, codes, [str(key_of_place(place)[0] or "") for place in places]
