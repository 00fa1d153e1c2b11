"""Finds the time of kernels that another run measured with instrumentation: by name, and which dispatch of it one is.

Instrumentation slows a program down, so its own times say little; a trace of the same program has the right ones. Both
runs dispatch the same kernels in the same order, or nothing can be matched. Processes, ids and times do not match.

How kernels access memory, per source line: cache lines that they need and touch, bank conflicts, pages, addresses.

Omniprobe measured it in a run with instrumentation; times are those of a trace of the same program.

Where kernels spend their time by basic block, as Omniprobe measured it in a run with instrumentation.

Ticks are of that run; times are those of a trace of the same program, by the share of ticks.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import TypeAlias, cast

from rocpd.base.errors import RocpdError
from rocpd.base.frozen import frozen
from rocpd.base.types import Row
from rocpd.facts.columns import as_text, statement
from rocpd.facts.rank import RankReading
from rocpd.schema.rules.events import LAST
from rocpd.schema.rules.kernel_names import without_instrumentation
from rocpd.summary.grouping import Total, merge, order_of
from rocpd.summary.reading import Reading, Tables
from rocpd.summary.result import Field, TableDefinition, by_name

_LINE = 128  # bytes of a cache line of gfx90a and later

_SOURCES = {
    "memory-access": ("rocpd_memory_access", "memory_accesses"),
    "memory-pages": ("rocpd_memory_page", "memory_pages"),
    "memory-addresses": ("rocpd_memory_message", "memory_messages"),
}
"""Table -> table of a file, and statement."""

_KERNEL = Field("kernel", "", "kernel, as it is called without instrumentation", is_kernel=True)
_DISPATCHES = Field("dispatches", "", "dispatches in which it was measured", True)

_KERNEL_TIME = Field(
    "kernel_time_ns",
    "ns",
    "time of the kernel's measured dispatches in the trace, mean over ranks; NULL without a trace",
)

_MOST = 3  # mnemonics that are shown

TABLES = by_name(
    TableDefinition(
        "memory-access",
        "Accesses to memory by source line, as Omniprobe's MemoryAnalysis counts them; kernels with most time first.",
        (
            _KERNEL,
            _KERNEL_TIME,
            Field("source", "", "file, line and column"),
            Field("access", "", "read, write or read/write"),
            Field("instruction", "", "instruction; NULL for banks of the LDS", True),
            _DISPATCHES,
            Field("executions", "", "how often waves executed it"),
            Field("bytes", "bytes", "width of the instruction, else of the access in the source", True),
            Field("lines_needed", "", "cache lines that would do for the bytes of all lanes; NULL for banks", True),
            Field("lines_used", "", "cache lines that were touched; NULL for banks", True),
            Field(
                "line_use_percent", "%", "lines_needed by lines_used: 100 where no lane reaches for a line of its own"
            ),
            Field("bank_conflicts", "", "further accesses that banks of the LDS needed; NULL for caches"),
            Field("conflicts_per_execution", "", "bank conflicts by executions"),
        ),
    ),
    TableDefinition(
        "memory-pages",
        "Pages of memory by accesses of a kernel, as Omniprobe's Heatmap counts them.",
        (
            _KERNEL,
            _KERNEL_TIME,
            Field("page", "", "first address"),
            Field("bytes", "bytes", "size of the page"),
            _DISPATCHES,
            Field("accesses", "", "accesses to it"),
            Field("percent", "%", "share of the accesses of the kernel", is_share=True),
        ),
    ),
    TableDefinition(
        "memory-addresses",
        "Accesses of waves by source line, from the addresses that Omniprobe's AddressLogger wrote.",
        (
            _KERNEL,
            _KERNEL_TIME,
            Field("line", "", "source line"),
            Field("access", "", "read, write or read/write"),
            _DISPATCHES,
            Field("messages", "", "accesses, each of a wave"),
            Field("lanes", "", "mean number of lanes that are active"),
            Field("lines", "", f"mean number of different cache lines of {_LINE} bytes that an access touches"),
        ),
    ),
    TableDefinition(
        "basic-blocks",
        "Basic blocks of kernels, as Omniprobe's BasicBlockAnalysis measures them; kernels with most time first.",
        (
            Field("kernel", "", "kernel, as it is called without instrumentation", is_kernel=True),
            Field(
                "kernel_time_ns",
                "ns",
                "time of its measured dispatches in the trace, mean over ranks; NULL without one",
            ),
            Field("source", "", "file, first and last line"),
            Field("dispatches", "", "dispatches in which it was measured", True),
            Field("executions", "", "how often waves ran it"),
            Field("ticks", "", "ticks of the GPU clock in it"),
            Field("percent", "%", "share of the ticks of the kernel", is_share=True),
            Field("time_ns", "ns", "an estimate: that share of the kernel's time"),
            Field("idle_lanes_percent", "%", "lanes that did not take part (branchiness), mean over executions"),
            Field("instructions", "", "its most frequent instructions, with how often each stands in it"),
        ),
    ),
)

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


def memory_access(reading: Reading) -> Tables:
    """Return accesses by source line, pages and addresses.

    Raises:
        RocpdError: nothing of the kind was measured.
    """
    measured = {name: instrumented(reading, *source) for name, source in _SOURCES.items()}
    if not any(each.rows for each in measured.values()):
        raise RocpdError(
            "no accesses to memory are measured in the selection",
            "Omniprobe measures them: `omniprobe -i -a MemoryAnalysis -- ./app`, LOGDUR_LOG_FORMAT=json",
        )
    for each in measured.values():
        note_unmatched(reading, each)
    for name, each in measured.items():
        if each.rows:
            yield reading.summary(TABLES[name], _ROWS[name](each))


def _accesses(measured: Instrumented) -> list[Row]:
    times = measured.kernel_times()
    rows = []
    for (kernel, file, line, column, access, instruction, _), group in grouped_rows(
        measured.rows, lambda row: (row[0], *row[2:8])
    ).items():
        executions, needed, used, conflicts = (known_sum(row[at] for row in group) for at in (8, 11, 12, 13))
        width = next((row[at] for row in group for at in (10, 9) if isinstance(row[at], int)), None)
        rows.append((
            kernel, times[str(kernel)], _source(file, line, column), access, instruction, _dispatches(group),
            executions, width, needed, used, 100 * needed / used if used and needed is not None else None, conflicts,
            conflicts / executions if executions and conflicts is not None else None,
        ))  # fmt: skip
    return sorted(
        rows,
        key=lambda row: (
            *_kernels_first(row, times),
            (row[8] or 0) - (row[9] or 0) - (row[11] or 0),
            order_of(row[2:5]),
        ),
    )


def _pages(measured: Instrumented) -> list[Row]:
    times = measured.kernel_times()
    of_kernel = {
        kernel: known_sum(row[4] for row in rows) or 0
        for (kernel,), rows in grouped_rows(measured.rows, lambda row: (row[0],)).items()
    }
    rows = []
    for (kernel, start, end), group in grouped_rows(measured.rows, lambda row: (row[0], row[2], row[3])).items():
        accesses = known_sum(row[4] for row in group)
        share = 100 * accesses / of_kernel[kernel] if accesses is not None and of_kernel[kernel] else None
        size = end - start if isinstance(start, int) and isinstance(end, int) else None
        page = hex(start) if isinstance(start, int) else None
        rows.append((kernel, times[str(kernel)], page, size, _dispatches(group), accesses, share))
    return sorted(rows, key=lambda row: (*_kernels_first(row, times), -(row[5] or 0), order_of(row[2:3])))


def _addresses(measured: Instrumented) -> list[Row]:
    times = measured.kernel_times()
    rows = []
    for (kernel, line, access), group in grouped_rows(measured.rows, lambda row: (row[0], row[2], row[3])).items():
        lanes = [row[4] for row in group if isinstance(row[4], int)]
        lines = [len({address // _LINE for address in each}) for each in map(_listed, group) if each]
        means = (sum(some) / len(some) if some else None for some in (lanes, lines))
        rows.append((kernel, times[str(kernel)], line, access, _dispatches(group), len(group), *means))
    return sorted(rows, key=lambda row: (*_kernels_first(row, times), -row[5], order_of(row[2:4])))


def _listed(row: Row) -> list[int]:
    """Return the addresses of a message."""
    try:
        addresses = json.loads(str(row[5]))
    except ValueError:
        return []
    return [each for each in addresses if isinstance(each, int)] if isinstance(addresses, list) else []


def _dispatches(group: Sequence[Row]) -> int:
    return len({row[1] for row in group})


def _source(file: object, line: object, column: object) -> str | None:
    """Return a place as compilers write it.

    >>> _source("a.cpp", 3, 7), _source("a.cpp", None, None), _source(None, None, None)
    ('a.cpp:3:7', 'a.cpp', None)
    """
    return ":".join(str(part) for part in (file, line, column) if part is not None) or None


def _kernels_first(row: Row, times: Mapping[str, int | None]) -> tuple[int, str]:
    return -(times[str(row[0])] or 0), str(row[0])


_ROWS = {"memory-access": _accesses, "memory-pages": _pages, "memory-addresses": _addresses}


def basic_blocks(reading: Reading) -> Tables:
    """Return basic blocks.

    Raises:
        RocpdError: none were measured.
    """
    measured = instrumented(reading, "rocpd_basic_block", "basic_blocks")
    if not measured.rows:
        raise RocpdError(
            "no basic blocks are measured in the selection",
            "Omniprobe measures them: `omniprobe -i -a BasicBlockAnalysis -- ./app`, LOGDUR_LOG_FORMAT=json",
        )
    note_unmatched(reading, measured)
    yield reading.summary(TABLES["basic-blocks"], _block_rows(measured))


def _block_rows(measured: Instrumented) -> list[Row]:
    times = measured.kernel_times()
    ticks_of = {kernel: _ticks(rows) for (kernel,), rows in grouped_rows(measured.rows, lambda row: (row[0],)).items()}
    rows = []
    for (kernel, file, first, last), group in grouped_rows(measured.rows, lambda row: (row[0], *row[2:5])).items():
        ticks, time = _ticks(group), times[str(kernel)]
        of_kernel = ticks_of[kernel]
        share = ticks / of_kernel if ticks is not None and of_kernel else None
        estimate = round(share * time) if share is not None and time is not None else None
        dispatches, executions = len({row[1] for row in group}), known_sum(row[6] for row in group)
        rows.append((
            kernel, time, _lines_of(file, first, last), dispatches, executions, ticks,
            None if share is None else 100 * share, estimate, _idle_lanes(group), _mnemonics(group),
        ))  # fmt: skip
    return sorted(rows, key=lambda row: (-(row[1] or 0), str(row[0]), -(row[5] or 0), order_of(row[2:3])))


def _ticks(group: Sequence[Row]) -> float | None:
    known = [float(row[5]) for row in group if isinstance(row[5], int | float)]
    return sum(known) if known else None


def _idle_lanes(group: Sequence[Row]) -> float | None:
    known = [(row[7], row[6]) for row in group if isinstance(row[7], int | float) and isinstance(row[6], int)]
    executions = sum(count for _, count in known)
    return 100 * sum(float(share) * count for share, count in known) / executions if executions else None


def _mnemonics(group: Sequence[Row]) -> str | None:
    """Return the most frequent instructions of a block, which are the same in each dispatch."""
    counts: Counter[str] = Counter()
    try:
        counts.update({name: count for name, count in json.loads(str(group[0][8])).items() if isinstance(count, int)})
    except (ValueError, AttributeError):
        return None
    most = sorted(counts, key=lambda name: (-counts[name], name))[:_MOST]
    return ", ".join(f"{counts[name]} {name}" for name in most) or None


def _lines_of(file: object, first: object, last: object) -> str | None:
    """Return a place as editors write it.

    >>> _lines_of("a.cpp", 3, 7), _lines_of(None, 3, 3), _lines_of(None, None, None)
    ('a.cpp:3-7', '3', None)
    """
    lines = "-".join(dict.fromkeys(str(line) for line in (first, last) if line is not None))
    return ":".join(part for part in (str(file) if file is not None else "", lines) if part) or None
