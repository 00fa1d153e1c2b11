"""Finds the marker ranges that are steps of the job, and their numbers.

A step is a range whose whole text names a step (`step 16`, `ProfilerStep#16`, `[iteration 3/100]`, `train_step`), that
lies in no other step of its thread, and whose kind occurs more than once. Epochs are steps only if there are no other
steps. A range such as `Optimizer.step#AdamW.step` or `step 1 forward` is a part of a step, not a step.

A step is identified by the number in its text: the same on every rank, in any window. Where texts have no number, or
numbers repeat, it is the n-th of its kind on its thread, from 0.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rocpd.base import by_key
from rocpd.base.option import regular_expression

STEP_MARKER = (
    r"(?i)^\W*(?:(?:profiler|train(?:ing|er)?|global|outer|time|solver|main|model|eval(?:uation)?|valid(?:ation)?"
    r"|test|inference|generation|decode|bench(?:mark)?|simulation)[\s_-]?)?"
    r"(?:step|iteration|iter|cycle|(?:mini[\s_-]?)?batch|epoch)"
    r"(?:[\s_#:=.-]*\d+(?:\s*(?:/|of)\s*\d+)?)?\W*(?:, (?:seq|op_id) = \d.*)?$"
)
"""The default pattern of markers that name a step of the job."""

_CALL = re.compile(r"(?s), (?:seq|op_id) = \d.*")
"""The text that PyTorch's `emit_nvtx` adds to each name: the number of the call, and more with `record_shapes`."""

_EPOCH = re.compile(r"(?i)epoch")
_DIGITS = re.compile(r"\d+")


def is_step(pattern: str) -> re.Pattern[str]:
    """Compile the expression for markers that are steps.

    Raises:
        UsageError: it is no regular expression.
    """
    return regular_expression(pattern, "--step-marker")


class MarkerRange(NamedTuple):
    """A marker with a start and an end [ns], and the thread that set it; None: unknown."""

    text: str
    start: int
    end: int
    thread: int | None = None


class MarkedStep(NamedTuple):
    """A step of a rank: the row of its range, and its number among the steps of the main kind; None: another kind."""

    row: int
    number: int | None


@functools.lru_cache(maxsize=1 << 14)
def folded(text: str) -> str:
    """Return a text with # for numbers, which is the same for ranges that differ only in numbers.

    >>> folded("step 16"), folded("layer 2 backward"), folded("aten::mm, seq = 7, op_id = 44, sizes = [[8, 1], [1, 4]]")
    ('step #', 'layer # backward', 'aten::mm')
    """
    return _DIGITS.sub("#", _CALL.sub("", text))


def without_call(text: str) -> str:
    """Return a text without the number of the call that PyTorch adds to it."""
    return _CALL.sub("", text)


def find_steps(ranges: Sequence[MarkerRange], pattern: re.Pattern[str]) -> list[MarkedStep]:
    """Return the steps among the marker ranges of a rank, in order of their starts.

    Args:
        ranges: all ranges of the rank, in the whole trace.
        pattern: pattern of the texts of steps: `STEP_MARKER`, or the user's.

    >>> texts = ("warm up", "step 7", "step 7 forward", "step 8", "Optimizer.step#AdamW.step")
    >>> steps = find_steps([MarkerRange(text, n, n + 1) for n, text in enumerate(texts)], re.compile(STEP_MARKER))
    >>> [(texts[step.row], step.number) for step in steps]
    [('step 7', 7), ('step 8', 8)]
    """
    is_named = functools.cache(pattern.search)
    rows = [row for row, each in enumerate(ranges) if is_named(each.text) and each.end > each.start]
    named = sorted(rows, key=lambda row: (ranges[row].start, -ranges[row].end, row))
    named = [row for row in named if not _EPOCH.search(ranges[row].text)] or named
    kinds = Counter(folded(ranges[row].text) for row in named)
    if any(count > 1 for count in kinds.values()):
        named = [row for row in named if kinds[folded(ranges[row].text)] > 1 or not _holds(ranges, row, named)]
    rows = list(_outermost(ranges, named))
    numbers = _numbers(ranges, rows)
    return [MarkedStep(row, numbers.get(row)) for row in rows]


def step_times(ranges: Sequence[MarkerRange], pattern: re.Pattern[str]) -> dict[int, tuple[int, int]]:
    """Return number -> start and end [ns] of the steps of a rank; a step of several threads spans all of them.

    >>> step_times([MarkerRange("step 7", 1, 5, 1), MarkerRange("step 7", 2, 9, 2)], re.compile(STEP_MARKER))
    {7: (1, 9)}
    """
    steps: dict[int, tuple[int, int]] = {}
    for step in find_steps(ranges, pattern):
        if step.number is not None:
            _, start, end, _ = ranges[step.row]
            first, last = steps.get(step.number, (start, end))
            steps[step.number] = min(first, start), max(last, end)
    return steps


def _holds(ranges: Sequence[MarkerRange], outer: int, rows: Iterable[int]) -> bool:
    return any(row != outer and _lies_in(ranges[row], ranges[outer]) for row in rows)


def _lies_in(inner: MarkerRange, outer: MarkerRange) -> bool:
    return inner.thread == outer.thread and outer.start <= inner.start and inner.end <= outer.end


def _outermost(ranges: Sequence[MarkerRange], rows: Iterable[int]) -> Iterable[int]:
    """Yield the rows, in order of time, that lie in no other range of their thread."""
    latest: dict[int | None, int] = {}
    for row in rows:
        _, _, end, thread = ranges[row]
        if end > latest.get(thread, end - 1):
            latest[thread] = end
            yield row


def _numbers(ranges: Sequence[MarkerRange], rows: Sequence[int]) -> dict[int, int]:
    """Return row -> number of the steps of the main kind: the most frequent one, the first of equally frequent ones."""
    kinds = Counter(folded(ranges[row].text) for row in rows)
    main = [row for row in rows if folded(ranges[row].text) == kinds.most_common(1)[0][0]]
    numbers: dict[int, int] = {}
    for of_thread in by_key((ranges[row].thread, row) for row in main).values():
        texts = [_DIGITS.search(_CALL.sub("", ranges[row].text)) for row in of_thread]
        known = [int(match[0]) for match in texts if match]
        is_clear = len(known) == len(set(known)) == len(of_thread)
        numbers |= zip(of_thread, known if is_clear else range(len(of_thread)), strict=True)
    return numbers
