"""Call stacks of one rank, however they were recorded: of calls of APIs, of samples, of functions traced one by one.

Windows and filters choose among them; for which time a sample stands does not depend on the selection.

`call_stack` of an event is a JSON array of frames, the innermost first. A frame is a text, of Python as
`file(line): function`, of native code as `function at file:line`, or the function alone; or an object with `function`,
`file` and `line`. Samplers of threads write a row of `rocpd_sample` on the track of the thread for each sample.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from rocpd.base import NULL, Ints
from rocpd.base.texts import json_value
from rocpd.facts.columns import Select, batches, columns, grouped, statement
from rocpd.facts.operations import string_texts, timed_columns
from rocpd.facts.rank import RankReading
from rocpd.facts.regions import Nesting, nest_times
from rocpd.federate.run.rank_reader import RankReader
from rocpd.schema.rules.events import valid_start, valid_times

_PYTHON = re.compile(r"(?P<file>.*)\((?P<line>\d+)\): (?P<function>.+)", re.DOTALL)
_NATIVE = re.compile(r"(?P<function>.+) at (?P<file>[^ ].*?):(?P<line>\d+)(?::\d+)?", re.DOTALL)
_AROUND = re.compile(r"^\s*(?:0x[0-9a-fA-F]+|\(inlined\))\s+in\s+| in (?:hip|hsa_|cu)\w+\(\)$")
"""Texts around native frames: addresses, and in RPD's innermost ones the call itself."""
CALLS, SAMPLES, FUNCTIONS = "calls", "samples", "functions"
"""Kinds of stacks, by what was recorded."""

Path: TypeAlias = tuple[str, ...]
"""Texts of frames, the outermost first."""

_RANGE = ("start", "end", "thread", "event")
_FUNCTION = ("start", "end", "thread", "name")
_SAMPLE = ("at", "thread", "event", "length")


class StackFrame(NamedTuple):
    """A function, and the line that it is at; file and line are None where they were not recorded."""

    function: str
    file: str | None = None
    line: int | None = None


@functools.lru_cache(maxsize=1 << 14)
def frame_of(text: str) -> StackFrame:
    """Return what the text of a frame says.

    >>> frame_of("model.py(88): decode")
    StackFrame(function='decode', file='model.py', line=88)
    >>> frame_of("0x00007f12 in run(int) at /src/run.cpp:12:3 in hipMalloc()")
    StackFrame(function='run(int)', file='/src/run.cpp', line=12)
    >>> frame_of("nn.Module: Linear_0")
    StackFrame(function='nn.Module: Linear_0', file=None, line=None)
    """
    match = _PYTHON.fullmatch(text)
    if match is None:
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
    valid = (valid_start(at) & (length >= 0)).nonzero()[0]
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
