"""Functions and lines of call stacks: the time of threads in them, and the activity of the GPU meanwhile.

Recursive functions count their time once.

There are three kinds, which are never added together: calls of APIs with the frames that they came from, samples of
threads, and functions of Python that were traced one by one. A stretch of time on a thread belongs to the innermost
open range; a sample stands for the time that its sampler gives, else for the usual time between two samples of its
thread. Stretches count for the step and the marker in which they start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np

from rocpd.base import Ints, Row
from rocpd.facts.operations import OperationNames, idle_until, launch_calls, read_ops
from rocpd.facts.places import key_of_place, places_at
from rocpd.facts.rank import LAUNCHES, Key, RankReading
from rocpd.facts.regions import (
    FUNCTIONS,
    SAMPLES,
    Path,
    StackFrame,
    StackRanges,
    frame_of,
    read_calls_with_stacks,
    read_functions,
    read_stack_samples,
)
from rocpd.facts.spread import total
from rocpd.federate.open.identify import Rank
from rocpd.federate.run.rank_reader import Fact
from rocpd.summary.grouping import Largest, Sums, add, added, merge, order_of, percent
from rocpd.summary.reading import Reading, Tables
from rocpd.summary.result import Field, by_name, table_of

_TIMES = (
    Field("count", "", "calls or samples that have it in their stack; of traced functions their calls", True),
    Field("total_ns", "ns", "time with it anywhere in the stack"),
    Field("self_ns", "ns", "time with it innermost"),
    Field("percent", "%", "self_ns by the time of all stacks of the kind", True, is_share=True),
    Field("idle_ns", "ns", "of total_ns while no GPU of the rank works, between its first and last operation"),
    Field("idle_self_ns", "ns", "of self_ns", True),
    Field("gpu_ns", "ns", "operations launched with it in the stack; NULL for samples", True),
    Field("gpu_self_ns", "ns", "launched with it innermost", True),
)

_WHERE = (
    Field("kind", "", "kind of record: calls of APIs with their stacks, samples, or functions one by one"),
    Field("function", "", "function"),
    Field("file", "", "its file, NULL where not recorded"),
)

TABLES = by_name(
    table_of(
        "stacks",
        "Functions of call stacks; those with most time of their own first.",
        *_WHERE,
        *_TIMES,
        chart="rocpd.summary.plots:stacks",
    ),
    table_of(
        "stack-lines",
        "Lines of functions in call stacks; those with most time of their own first.",
        *_WHERE,
        Field("line", "", "of samples and calls the one it is at, else its first"),
        *_TIMES,
    ),
)

Stacks: TypeAlias = dict[tuple[Key, str], dict[Path, Sums]]
"""Division and kind -> time by path."""

_HOW = (
    "`rocpd record --stacks 100` and rocprof-sys-sample record those of C and C++, `--python-stacks` those of Python, "
    "PyTorch does with `with_stack=True`, RPD with RPDT_STACKFRAMES=1, nsys with --cudabacktrace"
)

TIME, GPU = 1, 3
"""Places of two of a stack's sums: its time, and the time of operations launched in it [ns]."""


class RankStacks(NamedTuple):
    """Call stacks of a rank, and whether it has GPU operations.

    Args:
        times: division and kind, and path -> number of calls or samples, their time, the part of it between the first
            and the last operation of the rank while none runs, and the time of operations launched in them [ns].
        has_operations: 1: the rank has some.
    """

    times: Stacks
    has_operations: Largest


_STACKS = Fact("stacks", 3, (RankStacks, Sums, Largest, StackFrame))


def read_stacks_of(reading: RankReading) -> RankStacks:
    """Read the call stacks of a rank."""
    return reading.derived(_STACKS, _read)


def _read(reading: RankReading) -> RankStacks:
    idle, has_operations = idle_until(reading)
    times: Stacks = {}
    framed, events = read_calls_with_stacks(reading)
    for ranges in (framed, read_functions(reading)):
        if len(ranges.start):
            _add_ranges(times, reading, ranges, idle)
    _add_samples(times, reading, events, idle)
    return RankStacks(times, Largest(has_operations))


def _add_ranges(times: Stacks, reading: RankReading, ranges: StackRanges, idle: Callable[[Ints], Ints]) -> None:
    """Add calls or functions: their number, the time in which each is innermost, and the operations launched in it."""
    parts: list[tuple[Ints | int, ...]] = [(np.arange(len(ranges.start)), ranges.thread, ranges.start, 1, 0, 0, 0)]
    for thread, (since, inside) in ranges.nesting.segments.items():
        open_ = (inside[:-1] >= 0).nonzero()[0]
        start, end = since[open_], since[open_ + 1]
        parts.append((inside[open_], thread or 0, start, 0, end - start, idle(end) - idle(start), 0))
    ops = read_ops(reading, OperationNames(), stacks=True)
    threads, at = launch_calls(reading.reader, ops.stack)
    around = ranges.nesting.innermost(threads, at)
    inner = (around >= 0).nonzero()[0]
    parts.append((around[inner], threads[inner], at[inner], 0, 0, 0, ops.duration[inner]))
    columns = (np.concatenate(column) for column in zip(*(np.broadcast_arrays(*part) for part in parts), strict=True))
    rows, threads, at, *values = columns
    keys, codes = _divisions(reading, threads, at)
    pairs, pair_of = np.unique(codes * len(ranges.start) + rows, return_inverse=True)
    sums = np.zeros((len(values), len(pairs)), np.int64 if all(total(each) < 1 << 63 for each in values) else object)
    for of_pairs, column in zip(sums, values, strict=True):
        np.add.at(of_pairs, pair_of, column)
    for pair, *of_pair in zip(pairs.tolist(), *sums.tolist(), strict=True):
        code, row = divmod(pair, len(ranges.start))
        add(times, (keys[code], ranges.kind), ranges.path_of(row), Sums(of_pair))


def _add_samples(times: Stacks, reading: RankReading, events: Ints, idle: Callable[[Ints], Ints]) -> None:
    """Add samples, except those that are calls, too."""
    at, thread, event, length, paths = read_stack_samples(reading)
    rows = (~np.isin(event, events)).nonzero()[0]
    if not len(rows):
        return
    keys, codes = _divisions(reading, thread[rows], at[rows])
    is_idle = idle(at[rows] + 1) > idle(at[rows])
    for row, code, ns, idles in zip(*(each.tolist() for each in (rows, codes, length[rows], is_idle)), strict=True):
        add(times, (keys[code], SAMPLES), paths[row], Sums((1, ns, ns if idles else 0, 0)))


def _divisions(reading: RankReading, threads: Ints, at: Ints) -> tuple[list[Key], Ints]:
    """Return the keys of the division, and for each time of a thread the place of its key."""
    by = reading.options.by
    if by not in LAUNCHES:
        return [reading.key()], np.zeros(len(at), np.int64)
    places, codes = places_at(reading, by, threads, at)
    return [key_of_place(place) for place in places], codes


def stacks(reading: Reading) -> Tables:
    """Return the tables of functions and of lines.

    Raises:
        RocpdError: no call stacks were recorded.
    """
    yield (answers := reading.each(read_stacks_of))
    times, has_operations = all_stacks(answers)
    for table, place_of in (("stacks", lambda frame: frame[:2]), ("stack-lines", tuple)):
        rows: list[Row] = []
        for key, kind in sorted(times, key=lambda pair: (order_of(pair[0]), pair[1])):
            rows += _rows((*key, kind), _by_frame(kind, times[key, kind], place_of), kind, has_operations)
        summary = reading.summary(TABLES[table], rows)
        summary.stacks = {
            (*key, kind): [(path, sums[TIME]) for path, sums in paths.items()] for (key, kind), paths in times.items()
        }
        yield summary


def all_stacks(answers: Iterable[tuple[Rank, RankStacks]]) -> tuple[Stacks, bool]:
    """Return the stacks of all ranks, and whether there are GPU operations.

    Raises:
        RocpdError: no call stacks were recorded.
    """
    times, has_operations = added(answers, "call stacks", _HOW)
    return times, bool(has_operations)


def _by_frame(kind: str, times: Mapping[Path, Sums], place_of: Callable[[StackFrame], Row]) -> dict[Row, Sums]:
    """Return function or line -> count, and the times of its stacks [ns]: total, and with it innermost.

    `place_of` returns the function or line of a frame.
    """
    sums: dict[Row, Sums] = {}
    for path, (calls, time, idle, gpu) in times.items():
        places = [place_of(frame_of(text)) for text in path]
        innermost = places[-1]
        for place in dict.fromkeys(places):
            count = calls if place == innermost or kind != FUNCTIONS else 0
            merge(sums, {place: Sums((count, time, 0, idle, 0, gpu, 0))})
        merge(sums, {innermost: Sums((0, 0, time, 0, idle, 0, gpu))})
    return sums


def _rows(front: Row, sums: Mapping[Row, Sums], kind: str, has_operations: bool) -> Iterator[Row]:
    whole = sum(own_time for _, _, own_time, *_ in sums.values())
    for place, values in sorted(sums.items(), key=lambda item: (-item[1][2], -item[1][1], order_of(item[0]))):
        idle = values[3:5] if has_operations else (None, None)
        gpu = values[5:] if has_operations and kind != SAMPLES else (None, None)
        yield (*front, *place, *values[:3], percent(values[2], whole), *idle, *gpu)
