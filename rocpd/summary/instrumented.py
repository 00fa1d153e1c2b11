"""Finds the time of kernels that another run measured with instrumentation: by name, and which dispatch of it one is.

Instrumentation slows a program down, so its own times say little; a trace of the same program has the right ones. Both
runs dispatch the same kernels in the same order, or nothing can be matched. Processes, ids and times do not match.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import TypeAlias, cast

from rocpd.frozen import frozen
from rocpd.read.names import as_text
from rocpd.summary.reading import RankReading, Reading
from rocpd.summary.statements import statement
from rocpd.summary.sums import Total, merge
from rocpd.trace.kernel_names import without_instrumentation
from rocpd.trace.times import LAST
from rocpd.types import Row

KernelDispatch: TypeAlias = tuple[str, int]
"""Name of a kernel, and which dispatch of it, from 1."""


@frozen
class MatchedTime(Total):
    """Dispatches of the ranks of a trace that are the same one of its kernel.

    Args:
        chosen: in how many ranks it passes window and filters.
        timed: of these, how many have valid times.
        time: of those [ns].
    """

    chosen: int = 0
    timed: int = 0
    time: int = 0


@frozen
class Instrumented:
    """What was measured in which dispatches, and their times in the trace.

    Args:
        rows: kernel, ordinal and what was measured.
        times: of dispatches that the trace has.
    """

    rows: list[Row]
    times: Mapping[KernelDispatch, MatchedTime]

    def kernel_times(self) -> dict[str, int | None]:
        """Return kernel -> time of its measured dispatches in the trace, mean over ranks [ns]; None without one."""
        times: dict[str, int | None] = {}
        for kernel, ordinal in dict.fromkeys(map(_dispatch, self.rows)):
            matched = self.times.get((kernel, ordinal), MatchedTime())
            known = times.setdefault(kernel, None)
            if matched.timed:
                times[kernel] = (known or 0) + round(matched.time / matched.timed)
        return times


def instrumented(reading: Reading, table: str, select: str) -> Instrumented:
    """Read what instrumentation measured, of all ranks that hold some, with the times of its dispatches.

    Args:
        reading: the job: files of Omniprobe, and traces of the same program.
        table: what holds it.
        select: name of the statement; its first columns are kernel and ordinal.
    """
    if not any(table in rank.tables for rank in reading.session.ranks):
        return Instrumented([], {})
    rows = [row for _, of_rank in reading.each(partial(_rows, select=select)) for row in of_rank]
    if not rows:
        return Instrumented([], {})
    kernels = frozenset(kernel for kernel, _ in map(_dispatch, rows))
    times: dict[KernelDispatch, MatchedTime] = {}
    for _, of_rank in reading.each(partial(_times, kernels=kernels)):
        merge(times, of_rank)
    return Instrumented([row for row in rows if _counts(times.get(_dispatch(row)))], times)


def _dispatch(row: Row) -> KernelDispatch:
    return cast("KernelDispatch", row[:2])


def _counts(matched: MatchedTime | None) -> bool:
    """Whether a dispatch passes window and filters; one that no trace has does."""
    return matched is None or matched.chosen > 0


def _rows(reading: RankReading, select: str) -> list[Row]:
    rows = reading.reader.rows(statement(select))
    return [row for row in rows if isinstance(row[0], str) and isinstance(row[1], int)]


def _times(reading: RankReading, kernels: frozenset[str]) -> dict[KernelDispatch, MatchedTime]:
    """Return the dispatches of kernels; a merged window does not say which of its kernel one is."""
    if reading.rank.window:
        return {}
    chosen = {row[0]: (row[2], row[3]) for row in reading.reader.rows(statement("numbered_dispatches"))}
    numbers: Counter[str] = Counter()
    times: dict[KernelDispatch, MatchedTime] = {}
    kernel_of = cache(lambda name: without_instrumentation(as_text(name) or ""))
    for id_, name, *_ in reading.whole().reader.rows(statement("numbered_dispatches")):
        kernel = kernel_of(name)
        if kernel in kernels:
            numbers[kernel] += 1
            times[kernel, numbers[kernel]] = _time(*chosen[id_]) if id_ in chosen else MatchedTime()
    return times


def _time(start: object, end: object) -> MatchedTime:
    if isinstance(start, int) and isinstance(end, int) and 0 < start <= end <= LAST:
        return MatchedTime(1, 1, end - start)
    return MatchedTime(1)


def note_unmatched(reading: Reading, measured: Instrumented) -> None:
    """Say which kernels have dispatches that the traces do not have."""
    missing = sorted(
        {kernel for kernel, ordinal in map(_dispatch, measured.rows) if (kernel, ordinal) not in measured.times}
    )
    if missing:
        shown = ", ".join(missing[:3]) + (" …" if len(missing) > 3 else "")
        reading.session.note(f"no time of {shown}: open a trace of the same program with it")


def grouped_rows(rows: Iterable[Row], key: Callable[[Row], Row]) -> dict[Row, list[Row]]:
    """Return rows by a key, in the order in which keys come."""
    groups: dict[Row, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def known_sum(values: Iterable[object]) -> int | None:
    """Return the sum of the whole numbers among values; None where there are none."""
    numbers = [value for value in values if isinstance(value, int)]
    return sum(numbers) if numbers else None
