"""Reads the regions of one rank: calls and marker ranges, outer ones first; their nesting; the steps of the rank.
Also call stacks in all recorded forms: of API calls, of samples, of functions traced one by one; and the kinds of
calls while a GPU idles: wait, allocate, copy, load code, launch.

The innermost range is the open one that started last; of equal starts the shorter one. It lies in the range that
started last among those that contain it as a whole. `rocpd.schema.rules.steps` decides which ranges are steps. Memory:
one rank at a time, about 50 bytes per region. Rows with invalid timestamps are left out and counted.

Windows and filters choose among stacks; the time that a sample stands for does not depend on the selection.
`call_stack` of an event is a JSON array of frames, the innermost first. A frame is a text, of Python as
`file(line): function`, of native code as `function at file:line`, or the function alone; or an object with `function`,
`file` and `line`. Samplers of threads write a row of `rocpd_sample` on the track of the thread for each sample.

The kind of a call goes by the function names of HIP, HSA and RCCL; functions of CUDA mean the same as HIP's of the same
name.
"""

from __future__ import annotations

import enum
import functools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from rocpd.base import NULL, Flags, Ints, by_key, frozen
from rocpd.base.texts import json_value
from rocpd.facts.columns import (
    Names,
    Piece,
    Select,
    as_text,
    batches,
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
from rocpd.facts.operations import OperationNames, Ops, launching_rows, read_ops, string_texts, timed_columns
from rocpd.facts.rank import RankReading
from rocpd.facts.spread import Spread
from rocpd.facts.timeline import Course
from rocpd.federate.run.rank_reader import Fact, RankReader
from rocpd.federate.select.align import Shift
from rocpd.schema.rules.categories import domain_of, is_marker
from rocpd.schema.rules.events import valid_start, valid_times
from rocpd.schema.rules.launch import launching_regions
from rocpd.schema.rules.steps import MarkedStep, MarkerRange, find_steps, folded, step_times, without_call


@frozen
class Nesting:
    """The nesting of ranges of a rank, thread by thread.

    Args:
        around: row of the range around each; -1: none.
        segments: thread -> times from which another range is the innermost [ns], and its row; -1: none.
    """

    around: Ints
    segments: dict[int | None, tuple[Ints, Ints]]

    def innermost(self, threads: Ints, times: Ints) -> Ints:
        """Return the row of the innermost range around each time of a thread [ns], -1 where there is none."""
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
    """Return the nesting of ranges without texts, as `nest`; a range without length lies in the range open around it.

    Args:
        start, end: of each range [ns].
        thread: thread of each range; None: all are on thread 0.
    """
    thread = np.zeros(len(start), np.int64) if thread is None else thread
    has_length = end > start
    kept, empty = has_length.nonzero()[0], (~has_length).nonzero()[0]
    nesting = _nested_in(start, end, ((key, kept[rows]) for (key,), rows in grouped([thread[kept]])))
    nesting.around[empty] = nesting.innermost(thread[empty], start[empty])
    return nesting


def own_times(start: Ints, end: Ints, around: Ints) -> Ints:
    """Return the time of each range outside its inner ranges [ns]; time that two inner ranges cover counts once.

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
    family = np.arange(len(first)).repeat(count) * len(ends)  # separates outer ranges in the running latest end
    covered = np.empty(len(inner), np.int64)
    covered[1:] = ends[(np.maximum.accumulate(which + family) - family)[:-1]]
    covered[first] = start[outer[first]]
    own_time = end - start
    np.subtract.at(own_time, outer, np.maximum(end[inner] - np.maximum(start[inner], covered), 0))
    return own_time


def depths(around: Ints) -> Ints:
    """Return the number of ranges around each range.

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
    """Return the nesting of ranges.

    >>> step, layer, alone = MarkerRange("step", 0, 9, 1), MarkerRange("layer", 2, 5, 1), MarkerRange("copy", 3, 9, 2)
    >>> nesting = nest([step, layer, alone])
    >>> nesting.innermost(np.array([1, 1, 1, 2, 2]), np.array([1, 2, 5, 2, 3])).tolist(), list(nesting.path(1))
    ([0, 1, 0, -1, 2], [1, 0])

    Args:
        ranges: ranges of a rank.
        rows: rows of the ranges that count; None: all.
        thread: treat all as ranges of this thread.
    """
    lasting = [row for row in (range(len(ranges)) if rows is None else rows) if ranges[row].end > ranges[row].start]
    by_thread = by_key((ranges[row].thread if thread is None else thread, row) for row in lasting)
    start, end = np.zeros((2, len(ranges)), np.int64)
    start[lasting], end[lasting] = [ranges[row].start for row in lasting], [ranges[row].end for row in lasting]
    return _nested_in(start, end, [(key, np.array(of_thread)) for key, of_thread in by_thread.items()])


def _nested_in(start: Ints, end: Ints, threads: Iterable[tuple[int | None, Ints]]) -> Nesting:
    """Return the nesting of ranges; `threads`: threads with the rows of their ranges, which are not empty."""
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
    """Return for each range the last one before it whose depth is one less; any row where there is none."""
    count = len(depth)
    key = depth * count + np.arange(count)
    order = np.argsort(key, kind="stable")
    return order[np.searchsorted(key[order], key - count) - 1]


def _proper_segments(start: Ints, end: Ints, depth: Ints, outer: Ints) -> tuple[Ints, Ints]:
    """Return the segments of ordered ranges, each of which ends inside the range around it."""
    row = np.arange(len(start))
    time, is_start = np.concatenate([end, start]), np.repeat([0, 1], len(start))
    order = np.lexsort((np.concatenate([-depth, row]), is_start, time))
    return time[order], np.concatenate([outer, row])[order]


def _crossing_segments(start: Sequence[int], end: Sequence[int]) -> tuple[Ints, Ints, Ints]:
    """Return the segments of ordered ranges, which may end before an inner one, and the range around each."""
    ends = [(time, 0, row) for row, time in enumerate(end)]
    starts = [(time, 1, row) for row, time in enumerate(start)]
    outer = np.full(len(start), -1)
    opened: list[int] = []  # in order of starts; ranges that ended before a later one stay until that one ends
    ended: set[int] = set()
    longest: list[int] = []  # ranges that no later one outlasts: the last that lasts as long as another is around it
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
REGION_COLUMNS = ("stack", "start", "end", "id", "thread", "name", "category", "event")
"""Columns of the statement `regions` that are read together: a column alone takes as long as all."""


Steps = Mapping[int, tuple[int, int]]
"""Number of a step -> its start and end on a rank [ns]."""


class RankRegions(NamedTuple):
    """The regions of one rank.

    Args:
        thread: id, `NULL` where unknown.
        start, end: [ns].
        name: number in `Names`: the message of a marker, the function of other regions.
        category: number in `Names`.
        stack: stack id by which it may launch operations, `NULL` if it launches none.
        id: id of its row.
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
_FEW = 2048  # stack ids: for more, reading all regions takes no longer


def read_regions(reading: RankReading) -> tuple[RankRegions, Names]:
    """Read the regions of a rank, and the names of their numbers; do not change the results."""
    regions, texts, invalid = reading.reader.once(_REGIONS, lambda: _read(reading, statement("regions")))
    reading.left_out["regions"] += invalid
    return regions, reading.reader.once("names of regions", lambda: Names(texts))


def calls_of(reading: RankReading, stack: Ints) -> tuple[RankRegions, Ints, Names]:
    """Return markers and calls of the whole trace, the row of the call that launched each operation, and their names.

    Args:
        reading: reads the rank; counts regions that are left out.
        stack: stack id of each operation; -1 stands for no call. Calls with other stack ids may be missing.
    """
    whole, stacks = reading.whole(), distinct(stack[stack > 0])
    if len(stacks) > _FEW or read_before(whole.reader, "rocpd_region", statement("regions"), REGION_COLUMNS):
        regions, names = read_regions(whole)
    else:
        regions, texts, invalid = _read(whole, statement("few_regions").format(stacks=", ".join(map(str, stacks))))
        names, whole.left_out["regions"] = Names(texts), invalid
    reading.also_left_out(whole.left_out)
    return regions, launching_regions(regions.stack, regions.start, regions.end, stack), names


def read_recording(reading: RankReading) -> tuple[Ops, OperationNames, RankRegions, Names, int]:
    """Return operations and regions with their names, and the number with invalid times, regardless of the selection.

    A recording is judged by everything that the rank recorded.
    """
    whole, kernels = reading.whole(), OperationNames()
    return read_ops(whole, kernels, stacks=True), kernels, *read_regions(whole), sum(whole.left_out.values())


_MARKERS = Fact("markers", 1, (Piece,), is_small=True)


def read_markers(reader: RankReader) -> Piece:
    """Read the marker ranges of a rank: ids in order, threads, starts and ends [ns], messages; do not change them."""
    select = Select(statement("marker_ranges"), ("id", "thread", "start", "end"), texts=("name",), base="rocpd_region")
    return reader.once(_MARKERS, lambda: read_all(reader, select))


def _read(reading: RankReading, select: str) -> tuple[RankRegions, list[str | None], int]:
    """Return regions, the names of their numbers, and the number of regions with invalid timestamps."""
    names = Names()
    read = columns(reading.reader, "rocpd_region", select, REGION_COLUMNS)
    stack, start, end, row, thread, name, category, _ = read
    valid = valid_times(start, end)
    if not valid.all() or reading.reader.selects("rocpd_region"):
        # The launching region may be left out: then no other region counts as launching in its place.
        stack = np.where(np.isin(row, launching_rows(reading.reader)), stack, NULL)
    texts = string_texts(reading.reader, np.concatenate([name, category]))
    codes = names.codes(name, texts.get)
    markers = read_markers(reading.reader)
    if markers.count:
        marker, messages = markers.numbers[0], np.array([names.code(as_text(text)) for text in markers.texts[0]])
        at = np.maximum(np.searchsorted(marker, row, side="right") - 1, 0)
        codes = np.where(marker[at] == row, messages[at], codes)
    order = np.lexsort((row, stack, -np.where(valid, end, 0), start))  # of equal ranges the lower id is outer
    order = order[valid[order]]
    by_column = (thread, start, end, codes, names.codes(category, texts.get), stack, row)
    return RankRegions(*(column[order] for column in by_column)), names.texts, int((~valid).sum())


def are_markers(regions: RankRegions, names: Names) -> Flags:
    """Return which regions are markers, by their categories."""
    flags: Flags = np.array([is_marker(text or "") for text in names.texts], bool)[regions.category]
    return flags


def marked_threads(regions: RankRegions, names: Names, threads: Ints) -> dict[int, Course]:
    """Return thread -> message number of its innermost marker at any time, `NULL` outside of markers."""
    markers = regions.take(are_markers(regions, names))
    of_threads = ((thread, (markers.thread == thread).nonzero()[0]) for thread in distinct(threads).tolist())
    return {thread: innermost(markers.take(rows)) for thread, rows in of_threads}


def innermost(ranges: RankRegions) -> Course:
    """Return the name number of the innermost of the ranges of one thread at any time, else `NULL`."""
    since, rows = nest_times(ranges.start, ranges.end).segments.get(0, (_NO_TIMES, _NO_TIMES))
    return Course.of(since, np.where(rows >= 0, ranges.name[rows], NULL), NULL)


@frozen
class Ranges:
    """The marker ranges of a rank, without marks, which have no length.

    Args:
        every: all ranges of the rank, in order of their ids.
        counted: row in `every` -> start and end of the ranges that count, as the window cuts them [ns].
    """

    every: list[MarkerRange]
    counted: dict[int, tuple[int, int]]


def read_ranges(reader: RankReader) -> Ranges:
    """Read the marker ranges of a rank; do not change the result."""
    return reader.once("marker ranges", lambda: _read_ranges(reader))


def read_steps(reader: RankReader, pattern: re.Pattern[str]) -> Sequence[MarkedStep]:
    """Return all steps among the ranges of `read_ranges`, even if they do not count; do not change the result."""
    whole = reader.whole()
    return whole.once(("steps", pattern), lambda: find_steps(read_ranges(whole).every, pattern))


def step_spans(reader: RankReader, pattern: re.Pattern[str]) -> Steps:
    """Return the steps of a rank in its whole trace; faster than `read_steps` where nothing else is needed."""
    _, ranges = marker_ranges(reader.whole(), functools.cache(pattern.search))
    return step_times(ranges, pattern)


def form_of(text: str) -> str:
    """Return the text of a marker with # for numbers: `ProfilerStep#` of `ProfilerStep#16`."""
    return folded(text).replace("##", "#")


def forms_of_steps(reader: RankReader, pattern: re.Pattern[str]) -> frozenset[str]:
    """Return the forms of markers whose numbers follow the steps of the rank: no text of them comes twice on a thread.

    Nothing of a rank with fewer than two steps.
    """
    if len(step_spans(reader, pattern)) < 2:
        return frozenset()
    markers = read_markers(reader.whole())
    texts = (without_call(as_text(text) or "") for text in markers.texts[0])
    times = Counter(zip(markers.numbers[1].tolist(), texts, strict=True))
    often = {form_of(text) for (_, text), number in times.items() if number > 1}
    return frozenset(form_of(text) for _, text in times) - often


class CountedStep(NamedTuple):
    """A step that counts: its text, its place among steps of this text (from 1), its number in the job, times [ns]."""

    text: str
    of_text: int
    number: int | None
    start: int
    end: int


def counted_steps(reader: RankReader, pattern: re.Pattern[str]) -> Iterator[CountedStep]:
    """Yield the steps that count, numbered as in the whole trace."""
    ranges = read_ranges(reader)
    seen: Counter[str] = Counter()
    for row, number in read_steps(reader, pattern):
        text = ranges.every[row].text
        seen[text] += 1
        if row in ranges.counted:
            yield CountedStep(text, seen[text], number, *ranges.counted[row])


_NESTING = Fact("nesting", 2, (Nesting,))


def read_nesting(reader: RankReader) -> Nesting:
    """Return the nesting of the ranges of `read_ranges`; do not change the result."""
    return reader.once(_NESTING, lambda: nest(read_ranges(reader).every))


def _read_ranges(reader: RankReader) -> Ranges:
    ids, ranges = marker_ranges(reader.whole())
    if not reader.selects("rocpd_region"):
        return Ranges(ranges, {row: (start, end) for row, (_, start, end, _) in enumerate(ranges)})
    rows = {number: row for row, number in enumerate(ids)}
    counted = zip(*marker_ranges(reader), strict=True)
    return Ranges(ranges, {rows[number]: (start, end) for number, (_, start, end, _) in counted if number in rows})


def marker_ranges(reader: RankReader, is_wanted: Callable[[str], object] = bool) -> tuple[list[int], list[MarkerRange]]:
    """Return the ids of the marker ranges of a rank with a length and a wanted text, and the ranges."""
    markers = read_markers(reader)
    number, thread, start, end = markers.numbers
    valid = (valid_times(start, end) & (end > start)).nonzero()[0].tolist()
    texts = {row: text for row in valid if (text := shared(markers.texts[0][row])) and is_wanted(text)}
    rows = [*texts]
    columns = (column[rows].tolist() for column in (start, end, thread))
    return number[rows].tolist(), list(map(MarkerRange, texts.values(), *columns))


class RankSteps(NamedTuple):
    """Steps and phases of one rank.

    A step is one marker: the n-th marker of a text on one rank is the n-th of that text on every other rank.

    Args:
        steps: text and number within the text (from 1) -> start, duration [ns].
        numbers: text and number within the text -> number of the step in the job, None for steps of another kind.
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
        """Return step -> time from its start to the start of the next step, or to the last end [ns]."""
        ordered = sorted((start, step) for step, (start, _) in self.steps.items())
        end = max((start + length for start, length in self.steps.values()), default=0)
        following = [*(start for start, _ in ordered[1:]), end]
        return {step: after - start for (start, step), after in zip(ordered, following, strict=False)}

    def on_line(self, shift: Shift) -> RankSteps:
        """Return the same with times of the common line, where a clock that was set makes no step or pause longer."""
        ends = {step: (shift.to_line(start), shift.to_line(start + ns)) for step, (start, ns) in self.steps.items()}
        return self._replace(steps={step: (start, end - start) for step, (start, end) in ends.items()})

    @property
    def whole(self) -> dict[tuple[str, int], tuple[int, int]]:
        """Return the steps that no window cuts."""
        return {step: times for step, times in self.steps.items() if step not in self.cut}


def steps_of(reader: RankReader, pattern: re.Pattern[str], *, phases: bool = False) -> RankSteps:
    """Read the steps of a rank, and its phases if `phases`."""
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


_PYTHON = re.compile(r"(?P<file>.*)\((?P<line>\d+)\): (?P<function>.+)", re.DOTALL)
_NATIVE = re.compile(r"(?P<function>.+) at (?P<file>[^ ].*?):(?P<line>\d+)(?::\d+)?", re.DOTALL)
_AROUND = re.compile(r"^\s*(?:0x[0-9a-fA-F]+|\(inlined\))\s+in\s+| in (?:hip|hsa_|cu)\w+\(\)$")
"""Texts around native frames: addresses, and in RPD's innermost frames the call itself."""
CALLS, SAMPLES, FUNCTIONS = "calls", "samples", "functions"
"""Kinds of stacks, by the recorded events."""

Path: TypeAlias = tuple[str, ...]
"""Texts of frames, the outermost first."""

_RANGE = ("start", "end", "thread", "event")
_FUNCTION = ("start", "end", "thread", "name")
_SAMPLE = ("at", "thread", "event", "length")


class StackFrame(NamedTuple):
    """A function and its current line; file and line are None where they were not recorded."""

    function: str
    file: str | None = None
    line: int | None = None


@functools.lru_cache(maxsize=1 << 14)
def frame_of(text: str) -> StackFrame:
    """Return the frame that a text describes.

    >>> frame_of("model.py(88): decode")
    StackFrame(function='decode', file='model.py', line=88)
    >>> frame_of("0x00007f12 in run(int) at /src/run.cpp:12:3 in hipMalloc()")
    StackFrame(function='run(int)', file='/src/run.cpp', line=12)
    >>> frame_of("nn.Module: Linear_0")
    StackFrame(function='nn.Module: Linear_0', file=None, line=None)
    """
    if (match := _PYTHON.fullmatch(text)) is None:
        text = _AROUND.sub("", text)
        match = _NATIVE.fullmatch(text)
    if match is None:
        return StackFrame(text)
    return StackFrame(match["function"], match["file"] or None, int(match["line"]) or None)


def frames_of(call_stack: str) -> tuple[str, ...]:
    """Return the texts of the frames of a call stack, the outermost first; nothing for other text.

    >>> frames_of('["decode", {"function": "main", "file": "app.py", "line": 3}]')
    ('app.py(3): main', 'decode')
    """
    frames = json_value(call_stack)
    return tuple(map(_text, reversed(frames))) if isinstance(frames, list) else ()


def _text(frame: object) -> str:
    if not isinstance(frame, dict):
        return "?" if frame is None else str(frame)
    function, file, line = (frame.get(key) for key in ("function", "file", "line"))
    return _text(function) if file is None else f"{file}({line or 0}): {function}"


class StackRanges(NamedTuple):
    """Calls or functions of a rank: their nesting, and the path of each."""

    kind: str
    start: Ints
    thread: Ints
    nesting: Nesting
    path_of: Callable[[int], Path]


class StackSamples(NamedTuple):
    """Samples of call stacks; all columns are equally long.

    Args:
        at: time [ns].
        thread: id.
        event: id of its event: a call may be a sample too.
        length: time that the sample stands for, by its sampler; else the usual time between two of its thread [ns].
        paths: path of each sample.
    """

    at: Ints
    thread: Ints
    event: Ints
    length: Ints
    paths: Sequence[Path]


def read_calls_with_stacks(reading: RankReading) -> tuple[StackRanges, Ints]:
    """Return the calls with a recorded stack, and their events."""
    (start, end, thread, event), stacks = _with_stacks(reading, "stack_calls", _RANGE, "rocpd_region")
    valid = valid_times(start, end).nonzero()[0]
    reading.left_out["calls with stacks"] += len(start) - len(valid)
    paths = [stacks[row] for row in valid.tolist()]
    start, end, thread = start[valid], end[valid], thread[valid]
    return StackRanges(CALLS, start, thread, nest_times(start, end, thread), paths.__getitem__), event[valid]


def read_functions(reading: RankReading) -> StackRanges:
    """Return the functions that were traced one by one."""
    start, end, thread, name = timed_columns(reading, "rocpd_region", "stack_functions", _FUNCTION, "functions")
    texts, nesting = string_texts(reading.reader, name), nest_times(start, end, thread)

    @functools.cache
    def path_of(row: int) -> Path:
        return tuple(texts.get(int(name[each])) or "?" for each in reversed(list(nesting.path(row))))

    return StackRanges(FUNCTIONS, start, thread, nesting, path_of)


def read_stack_samples(reading: RankReading) -> StackSamples:
    """Return the samples of call stacks; some samplers write each frame as a region. Do not change the result."""
    samples, invalid = reading.reader.once("samples of call stacks", lambda: _stack_samples(reading))
    reading.left_out["samples of call stacks"] += invalid
    return samples


def _stack_samples(reading: RankReading) -> tuple[StackSamples, int]:
    """Return samples with valid times, and the number of others."""
    (at, thread, event, length), paths = _with_stacks(reading, "stack_samples", _SAMPLE, "rocpd_sample")
    if (length == NULL).any():
        for number, interval in _intervals(reading).items():
            length = np.where((length == NULL) & (thread == number), interval, length)
    if has_frames(reading.reader):
        framed, framed_paths = _with_stacks(reading, "sampled_frames", _SAMPLE)
        at, thread, event, length = map(np.concatenate, zip((at, thread, event, length), framed, strict=True))
        paths = [*paths, *framed_paths]
    valid = (valid_start(at) & (length >= 0)).nonzero()[0]
    valid_paths = [paths[row] for row in valid.tolist()]
    return StackSamples(at[valid], thread[valid], event[valid], length[valid], valid_paths), len(at) - len(valid)


def has_frames(reader: RankReader) -> bool:
    """Whether regions may be frames of samples: reading regions to find none takes ten times as long."""
    return bool(reader.rows(statement("samplers")))


def _with_stacks(
    reading: RankReading, select: str, numbers: tuple[str, ...], base: str | None = None
) -> tuple[list[Ints], Sequence[Path]]:
    """Read columns with the path of each row; equal stacks are parsed once."""
    known: dict[object, Path] = {}
    read, paths = [[np.empty(0, np.int64)] * len(numbers)], []
    for batch in batches(reading.reader, Select(statement(select), numbers, texts=("call_stack",), base=base)):
        read.append(batch.numbers)
        for text in batch.texts[0]:
            if (path := known.get(text)) is None:
                path = known[text] = frames_of(text) or ("?",)
            paths.append(path)
    return [np.concatenate(column) for column in zip(*read, strict=True)], paths


def _intervals(reading: RankReading) -> dict[int, int]:
    """Return thread -> usual time between two of its samples in the whole trace [ns]; 0 for a single sample."""
    at, thread, _, stated = columns(reading.whole().reader, "rocpd_sample", statement("stack_samples"), _SAMPLE)
    at, thread = at[stated == NULL], thread[stated == NULL]
    intervals = {}
    for (number,), rows in grouped([thread]):
        apart = np.diff(np.sort(at[rows][valid_start(at[rows])]))
        apart = apart[apart > 0]
        intervals[number] = int(np.median(apart)) if len(apart) else 0
    return intervals


class HostCall(enum.StrEnum):
    """The kinds of calls."""

    LAUNCH = "launching"
    SYNCHRONISE = "synchronising call"
    ALLOCATE = "allocation or free"
    COPY = "blocking copy"
    MODULE = "module load"
    COMMUNICATION = "communication call"
    OTHER = "other call"


_HIP = (
    (HostCall.LAUNCH, r"hip\w*Launch\w*|hipMem(cpy|set)\w*Async|__hip(Push|Pop)CallConfiguration"),
    (HostCall.SYNCHRONISE, r"hip\w+Synchronize|hip(Event|Stream)Query|hipStreamWaitValue\w*"),
    (HostCall.COPY, r"hipMem(cpy|set)\w*"),
    (HostCall.ALLOCATE, r"hip(Ext|Host)?(Malloc|Free)\w*|hipHost(Alloc|Register|Unregister)|hipMem(Pool|Address)\w+"),
    (
        HostCall.ALLOCATE,
        r"hipMem(Create|Release|Map|Unmap|SetAccess|AllocPitch|AllocHost)|hipArray(3D)?(Create|Destroy)",
    ),
    (HostCall.MODULE, r"hipModule(Load|Unload)\w*|hiprtc\w+|hipLink\w+|hipLibrary\w+|__hip(Un)?Register\w+"),
)
_HSA = (
    (HostCall.SYNCHRONISE, r"hsa_(amd_)?signal_wait\w*"),
    (HostCall.COPY, r"hsa_(amd_)?memory_copy\w*|hsa_amd_memory_fill"),
    (HostCall.LAUNCH, r"hsa_amd_memory_async_copy\w*"),
    (HostCall.ALLOCATE, r"hsa_(amd_)?memory_(pool_)?(allocate|free)|hsa_amd_agents_allow_access|hsa_amd_vmem_\w+"),
    (HostCall.MODULE, r"hsa_(executable|code_object)\w+"),
)
_RULES = (*_HIP, *_HSA)  # compiled when they are needed, as many commands need none


@functools.lru_cache(maxsize=4096)
def host_call(function: str | None, category: str | None) -> HostCall | None:
    """Return the kind of a region; None for other host work: markers, OpenMP and unknown categories.

    >>> host_call("hipMemcpyAsync", "HIP_RUNTIME_API"), host_call("hipMemcpy", "HIP_RUNTIME_API")
    (<HostCall.LAUNCH: 'launching'>, <HostCall.COPY: 'blocking copy'>)
    >>> host_call("hipMallocAsync", "HIP_RUNTIME_API_EXT").value, host_call("ncclAllReduce", "RCCL_API").value
    ('allocation or free', 'communication call')
    >>> host_call("step 3", "MARKER_CORE_RANGE_API") is None
    True
    """
    domain = domain_of(category)
    if domain == "RCCL":
        return HostCall.COMMUNICATION
    if domain not in ("HIP", "HSA", "CUDA"):
        return None
    name = in_hip(function)
    return next((kind for kind, pattern in _RULES if re.fullmatch(pattern, name)), HostCall.OTHER)


@functools.lru_cache(maxsize=4096)
def in_hip(function: str | None) -> str:
    """Return the function of HIP that corresponds to a function of CUDA; other functions stay.

    >>> in_hip("cudaMemcpyAsync"), in_hip("cuLaunchKernelEx"), in_hip("cudaLaunchKernelExC"), in_hip("hsa_init")
    ('hipMemcpyAsync', 'hipLaunchKernelEx', 'hipLaunchKernelExC', 'hsa_init')
    """
    return re.sub(r"^cu(da)?(?=[A-Z])", "hip", function or "")


_KERNEL = r"hip(Ext|Module|ExtModule)?Launch(Cooperative)?Kernel(ExC?|_spt|_ptsz)?"
_GRAPH = r"hipGraphLaunch(_spt)?"


@functools.lru_cache(maxsize=4096)
def launches_kernel(function: str | None) -> bool:
    """Whether a call launches exactly one kernel.

    >>> launches_kernel("hipExtModuleLaunchKernel"), launches_kernel("hipGraphLaunch"), launches_kernel("hipMemcpy")
    (True, False, False)
    """
    return bool(re.fullmatch(_KERNEL, in_hip(function)))


@functools.lru_cache(maxsize=4096)
def launches_graph(function: str | None) -> bool:
    """Whether a call launches all operations of a graph."""
    return bool(re.fullmatch(_GRAPH, in_hip(function)))
