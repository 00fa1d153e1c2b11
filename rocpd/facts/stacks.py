"""Call stacks of one rank, however they were recorded: of calls of APIs, of samples, of functions traced one by one.

Windows and filters choose among them; for which time a sample stands does not depend on the selection.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from rocpd.base import NULL, Ints
from rocpd.facts.columns import Select, batches, columns, grouped, statement
from rocpd.facts.frames import frames_of
from rocpd.facts.operations import string_texts, timed_columns
from rocpd.facts.rank import RankReading
from rocpd.facts.regions import Nesting, nest_times
from rocpd.federate.run.rank_reader import RankReader
from rocpd.schema.rules.events import valid_start, valid_times

CALLS, SAMPLES, FUNCTIONS = "calls", "samples", "functions"
"""Kinds of stacks, by what was recorded."""

Path: TypeAlias = tuple[str, ...]
"""Texts of frames, the outermost first."""

_RANGE = ("start", "end", "thread", "event")
_FUNCTION = ("start", "end", "thread", "name")
_SAMPLE = ("at", "thread", "event", "length")


class StackRanges(NamedTuple):
    """Calls or functions of a rank: how they lie in each other, and the path of each."""

    kind: str
    start: Ints
    thread: Ints
    nesting: Nesting
    path_of: Callable[[int], Path]


class StackSamples(NamedTuple):
    """Samples of call stacks; all columns are equally long.

    Args:
        at: [ns].
        thread: id.
        event: id of its event: a call may be a sample too.
        length: for how long it stands, as its sampler says; else the usual time between two of its thread [ns].
        paths: of each.
    """

    at: Ints
    thread: Ints
    event: Ints
    length: Ints
    paths: Sequence[Path]


def read_calls_with_stacks(reading: RankReading) -> tuple[StackRanges, Ints]:
    """Return the calls whose stack was recorded, and their events."""
    (start, end, thread, event), stacks = _with_stacks(reading, "stack_calls", _RANGE, "rocpd_region")
    valid = np.flatnonzero(valid_times(start, end))
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
    """Return the samples of call stacks; of some samplers each frame is a region. They are not to be changed."""
    samples, invalid = reading.reader.once("samples of call stacks", lambda: _stack_samples(reading))
    reading.left_out["samples of call stacks"] += invalid
    return samples


def _stack_samples(reading: RankReading) -> tuple[StackSamples, int]:
    """Return samples with valid times, and how many others there are."""
    (at, thread, event, length), paths = _with_stacks(reading, "stack_samples", _SAMPLE, "rocpd_sample")
    if (length == NULL).any():
        for number, interval in _intervals(reading).items():
            length = np.where((length == NULL) & (thread == number), interval, length)
    if has_frames(reading.reader):
        framed, framed_paths = _with_stacks(reading, "sampled_frames", _SAMPLE)
        at, thread, event, length = map(np.concatenate, zip((at, thread, event, length), framed, strict=True))
        paths = [*paths, *framed_paths]
    valid = np.flatnonzero(valid_start(at) & (length >= 0))
    some = [paths[row] for row in valid.tolist()]
    return StackSamples(at[valid], thread[valid], event[valid], length[valid], some), len(at) - len(valid)


def has_frames(reader: RankReader) -> bool:
    """Return whether regions may be frames of samples: to read that there are none takes ten times as long."""
    return bool(reader.rows(statement("samplers")))


def _with_stacks(
    reading: RankReading, select: str, numbers: tuple[str, ...], base: str | None = None
) -> tuple[list[Ints], Sequence[Path]]:
    """Read columns with the path of each row; equal stacks are taken apart once."""
    known: dict[object, Path] = {}
    read, paths = [[np.empty(0, np.int64)] * len(numbers)], []
    for batch in batches(reading.reader, Select(statement(select), numbers, texts=("call_stack",), base=base)):
        read.append(batch.numbers)
        for text in batch.texts[0]:
            path = known.get(text)
            if path is None:
                path = known[text] = frames_of(text) or ("?",)
            paths.append(path)
    return [np.concatenate(column) for column in zip(*read, strict=True)], paths


def _intervals(reading: RankReading) -> dict[int, int]:
    """Return thread -> usual time between two of its samples [ns], in the whole trace; 0 of one that has one sample."""
    at, thread, _, stated = columns(reading.whole().reader, "rocpd_sample", statement("stack_samples"), _SAMPLE)
    at, thread = at[stated == NULL], thread[stated == NULL]
    intervals = {}
    for (number,), rows in grouped([thread]):
        apart = np.diff(np.sort(at[rows][valid_start(at[rows])]))
        apart = apart[apart > 0]
        intervals[number] = int(np.median(apart)) if len(apart) else 0
    return intervals
