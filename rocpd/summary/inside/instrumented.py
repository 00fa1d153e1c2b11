"""Finds the time of kernels that another run measured with instrumentation: by name, and which dispatch of it one is.

Instrumentation slows a program down, so its own times say little; a trace of the same program has the right ones. Both
runs dispatch the same kernels in the same order, or nothing can be matched. Processes, ids and times do not match.

How kernels access memory, per source line: cache lines that they need and touch, bank conflicts, pages, addresses.

Omniprobe measured it in a run with instrumentation; times are those of a trace of the same program.

Where kernels spend their time by basic block, as Omniprobe measured it in a run with instrumentation.

Ticks are of that run; times are those of a trace of the same program, by the share of ticks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any, TypeAlias, cast

from rocpd.base.documents import json_object, json_value
from rocpd.base.frozen import frozen
from rocpd.base.types import NULL, Row
from rocpd.facts.columns import statement
from rocpd.facts.operations import numbered_dispatches
from rocpd.facts.rank import RankReading
from rocpd.schema.rules.kernel_names import without_instrumentation
from rocpd.summary.grouping import Sums, merge, nothing, order_of
from rocpd.summary.reading import Reading, Tables
from rocpd.summary.result import Field, by_name, table_of

_LINE = 128  # bytes of a cache line of gfx90a and later

_SOURCES = {
    "memory-access": ("rocpd_memory_access", "memory_accesses"),
    "memory-pages": ("rocpd_memory_page", "memory_pages"),
    "memory-addresses": ("rocpd_memory_message", "memory_messages"),
    "basic-blocks": ("rocpd_basic_block", "basic_blocks"),
}
"""Table -> table of a file, and statement."""

_KERNEL = Field("kernel", "", "kernel, as it is called without instrumentation", is_kernel=True)
_DISPATCHES = Field("dispatches", "", "dispatches in which it was measured", True)

_TIME_DOC = "time of the kernel's measured dispatches in the trace, mean over ranks; NULL without a trace"
_OF_KERNEL = (_KERNEL, Field("kernel_time_ns", "ns", _TIME_DOC))

_MOST = 3  # mnemonics that are shown

TABLES = by_name(
    table_of(
        "memory-access",
        "Accesses to memory by source line, as Omniprobe's MemoryAnalysis counts them; kernels with most time first.",
        *_OF_KERNEL,
        Field("source", "", "file, line and column"),
        Field("access", "", "read, write or read/write"),
        Field("instruction", "", "instruction; NULL for banks of the LDS", True),
        _DISPATCHES,
        Field("executions", "", "how often waves executed it"),
        Field("bytes", "bytes", "width of the instruction, else of the access in the source", True),
        Field("lines_needed", "", "cache lines that would do for the bytes of all lanes; NULL for banks", True),
        Field("lines_used", "", "cache lines that were touched; NULL for banks", True),
        Field("line_use_percent", "%", "lines_needed by lines_used: 100 where no lane reaches for a line of its own"),
        Field("bank_conflicts", "", "further accesses that banks of the LDS needed; NULL for caches"),
        Field("conflicts_per_execution", "", "bank conflicts by executions"),
    ),
    table_of(
        "memory-pages",
        "Pages of memory by accesses of a kernel, as Omniprobe's Heatmap counts them.",
        *_OF_KERNEL,
        Field("page", "", "first address"),
        Field("bytes", "bytes", "size of the page"),
        _DISPATCHES,
        Field("accesses", "", "accesses to it"),
        Field("percent", "%", "share of the accesses of the kernel", is_share=True),
    ),
    table_of(
        "memory-addresses",
        "Accesses of waves by source line, from the addresses that Omniprobe's AddressLogger wrote.",
        *_OF_KERNEL,
        Field("line", "", "source line"),
        Field("access", "", "read, write or read/write"),
        _DISPATCHES,
        Field("messages", "", "accesses, each of a wave"),
        Field("lanes", "", "mean number of lanes that are active"),
        Field("lines", "", f"mean number of different cache lines of {_LINE} bytes that an access touches"),
    ),
    table_of(
        "basic-blocks",
        "Basic blocks of kernels, as Omniprobe's BasicBlockAnalysis measures them; kernels with most time first.",
        _KERNEL,
        Field(
            "kernel_time_ns", "ns", "time of its measured dispatches in the trace, mean over ranks; NULL without one"
        ),
        Field("source", "", "file, first and last line"),
        _DISPATCHES,
        Field("executions", "", "how often waves ran it"),
        Field("ticks", "", "ticks of the GPU clock in it"),
        Field("percent", "%", "share of the ticks of the kernel", is_share=True),
        Field("time_ns", "ns", "an estimate: that share of the kernel's time"),
        Field("idle_lanes_percent", "%", "lanes that did not take part (branchiness), mean over executions"),
        Field("instructions", "", "its most frequent instructions, with how often each stands in it"),
    ),
)

KernelDispatch: TypeAlias = tuple[str, int]
"""Name of a kernel, and which dispatch of it, from 1."""


@frozen
class Instrumented:
    """Values that were measured in which dispatches, and their times in the trace.

    Args:
        rows: kernel, ordinal and what was measured.
        times: of dispatches that the trace has: in how many ranks one passes window and filters, in how many of these
            it has valid times, and their sum [ns].
    """

    rows: list[Row]
    times: Mapping[KernelDispatch, Sums]

    def kernel_times(self) -> dict[str, int | None]:
        """Return kernel -> time of its measured dispatches in the trace, mean over ranks [ns]; None without one."""
        times: dict[str, int | None] = {}
        for kernel, ordinal in dict.fromkeys(map(_dispatch, self.rows)):
            _, timed, time = self.times.get((kernel, ordinal), (0, 0, 0))
            known = times.setdefault(kernel, None)
            if timed:
                times[kernel] = (known or 0) + round(time / timed)
        return times


def _instrumented(reading: Reading, table: str, select: str) -> Instrumented:
    """Read what instrumentation measured, of all ranks that hold some, with the times of its dispatches.

    Args:
        reading: the job: files of Omniprobe, and traces of the same program.
        table: what holds it.
        select: name of the statement; its first columns are kernel and ordinal.
    """
    if not any(table in rank.tables for rank in reading.session.ranks):
        return Instrumented([], {})
    rows = [row for _, of_rank in reading.each(partial(_rows, select=select)) for row in of_rank]
    kernels = frozenset(kernel for kernel, _ in map(_dispatch, rows))
    times: dict[KernelDispatch, Sums] = {}
    for _, of_rank in reading.each(partial(_times, kernels=kernels)) if rows else ():
        merge(times, of_rank)
    # A dispatch that no trace has passes window and filters.
    return Instrumented([row for row in rows if times.get(_dispatch(row), (1,))[0]], times)


def _dispatch(row: Row) -> KernelDispatch:
    return cast("KernelDispatch", row[:2])


def _rows(reading: RankReading, select: str) -> list[Row]:
    rows = reading.reader.rows(statement(select))
    return [row for row in rows if isinstance(row[0], str) and isinstance(row[1], int)]


def _times(reading: RankReading, kernels: frozenset[str]) -> dict[KernelDispatch, Sums]:
    """Return the dispatches of kernels; a merged window does not say which of its kernel one is."""
    if reading.rank.window:
        return {}
    numbers: Counter[str] = Counter()
    times: dict[KernelDispatch, Sums] = {}
    kernel_of = cache(lambda name: without_instrumentation(name or ""))
    for name, counted in numbered_dispatches(reading):
        kernel = kernel_of(name)
        if kernel in kernels:
            numbers[kernel] += 1
            start, end = counted or (NULL, NULL)
            is_timed = 0 < start <= end
            times[kernel, numbers[kernel]] = Sums((int(counted is not None), int(is_timed), (end - start) * is_timed))
    return times


def _note_unmatched(reading: Reading, measured: Instrumented) -> None:
    """Say which kernels have dispatches that the traces do not have."""
    missing = sorted(
        {kernel for kernel, ordinal in map(_dispatch, measured.rows) if (kernel, ordinal) not in measured.times}
    )
    if missing:
        shown = ", ".join(missing[:3]) + (" …" if len(missing) > 3 else "")
        reading.session.note(f"no time of {shown}: open a trace of the same program with it")


def _known_sum(values: Iterable[object]) -> int | None:
    """Return the sum of the whole numbers among values; None where there are none."""
    numbers = [value for value in values if isinstance(value, int)]
    return sum(numbers) if numbers else None


def memory_access(reading: Reading) -> Tables:
    """Return accesses by source line, pages and addresses.

    Raises:
        RocpdError: nothing of the kind was measured.
    """
    tables = ("memory-access", "memory-pages", "memory-addresses")
    return _tables(reading, tables, "accesses to memory", "MemoryAnalysis")


def basic_blocks(reading: Reading) -> Tables:
    """Return basic blocks.

    Raises:
        RocpdError: none were measured.
    """
    return _tables(reading, ("basic-blocks",), "basic blocks", "BasicBlockAnalysis")


def _tables(reading: Reading, names: Iterable[str], what: str, analysis: str) -> Tables:
    measured = {name: _instrumented(reading, *_SOURCES[name]) for name in names}
    if not any(each.rows for each in measured.values()):
        how = f"Omniprobe measures them: `omniprobe -i -a {analysis} -- ./app`, LOGDUR_LOG_FORMAT=json"
        raise nothing(f"{what} are measured", how)
    for each in measured.values():
        _note_unmatched(reading, each)
    for name, each in measured.items():
        if each.rows:
            yield reading.summary(TABLES[name], _PLACES[name].rows(each))


_Rows: TypeAlias = Sequence[Row]


@frozen
class _Places:
    """How what was measured becomes a table.

    Args:
        until: columns from the third up to this one tell places in a kernel apart.
        cells: returns the columns of a place, after kernel and time, of its name, its rows, and what `whole` returned.
        order: of the rows of a kernel.
        whole: returns of all rows of a kernel, and its time, what the places divide.
    """

    until: int
    cells: Callable[[Row, _Rows, Any], Row]
    order: Callable[[Row], Row]
    whole: Callable[[_Rows, int | None], Any] = lambda _rows, _time: None

    def rows(self, measured: Instrumented) -> list[Row]:
        """Return the rows of the table, those of kernels with most time first."""
        times = measured.kernel_times()
        kernels: dict[str, dict[Row, list[Row]]] = {}
        for row in measured.rows:
            kernels.setdefault(row[0], {}).setdefault(row[2 : self.until], []).append(row)
        rows: list[Row] = []
        for kernel, places in kernels.items():
            whole = self.whole([row for group in places.values() for row in group], times[kernel])
            rows += ((kernel, times[kernel], *self.cells(place, group, whole)) for place, group in places.items())
        return sorted(rows, key=lambda row: (-(row[1] or 0), row[0], *self.order(row)))


def _access(place: Row, group: _Rows, _whole: None) -> Row:
    file, line, column, access, instruction, _ = place
    executions, needed, used, conflicts = (_known_sum(row[at] for row in group) for at in (8, 11, 12, 13))
    width = next((row[at] for row in group for at in (10, 9) if isinstance(row[at], int)), None)
    use = 100 * needed / used if used and needed is not None else None
    of_each = conflicts / executions if executions and conflicts is not None else None
    counts = (_dispatches(group), executions, width, needed, used, use, conflicts, of_each)
    return _source(file, line, column), access, instruction, *counts


def _page(place: Row, group: _Rows, whole: int | None) -> Row:
    start, end = place
    accesses = _known_sum(row[4] for row in group)
    share = 100 * accesses / whole if accesses is not None and whole else None
    size = end - start if isinstance(start, int) and isinstance(end, int) else None
    return hex(start) if isinstance(start, int) else None, size, _dispatches(group), accesses, share


def _address(place: Row, group: _Rows, _whole: None) -> Row:
    lanes = [row[4] for row in group if isinstance(row[4], int)]
    lines = [len({address // _LINE for address in each}) for each in map(_listed, group) if each]
    return *place, _dispatches(group), len(group), *(sum(some) / len(some) if some else None for some in (lanes, lines))


def _listed(row: Row) -> list[int]:
    """Return the addresses of a message."""
    addresses = json_value(row[5])
    return [each for each in addresses if isinstance(each, int)] if isinstance(addresses, list) else []


def _dispatches(group: _Rows) -> int:
    return len({row[1] for row in group})


def _source(file: object, line: object, column: object) -> str | None:
    """Return a place as compilers write it.

    >>> _source("a.cpp", 3, 7), _source("a.cpp", None, None), _source(None, None, None)
    ('a.cpp:3:7', 'a.cpp', None)
    """
    return ":".join(str(part) for part in (file, line, column) if part is not None) or None


def _block(place: Row, group: _Rows, whole: tuple[float | None, int | None]) -> Row:
    ticks, (of_kernel, time) = _ticks(group), whole
    share = ticks / of_kernel if ticks is not None and of_kernel else None
    estimate = round(share * time) if share is not None and time is not None else None
    counts = _dispatches(group), _known_sum(row[6] for row in group), ticks, None if share is None else 100 * share
    return _lines_of(*place), *counts, estimate, _idle_lanes(group), _mnemonics(group)


def _ticks(group: _Rows) -> float | None:
    known = [float(row[5]) for row in group if isinstance(row[5], int | float)]
    return sum(known) if known else None


def _idle_lanes(group: _Rows) -> float | None:
    known = [(row[7], row[6]) for row in group if isinstance(row[7], int | float) and isinstance(row[6], int)]
    executions = sum(count for _, count in known)
    return 100 * sum(float(share) * count for share, count in known) / executions if executions else None


def _mnemonics(group: _Rows) -> str | None:
    """Return the most frequent instructions of a block, which are the same in each dispatch."""
    recorded = json_object(group[0][8]) or {}
    counts = {name: count for name, count in recorded.items() if isinstance(count, int)}
    most = sorted(counts, key=lambda name: (-counts[name], name))[:_MOST]
    return ", ".join(f"{counts[name]} {name}" for name in most) or None


def _lines_of(file: object, first: object, last: object) -> str | None:
    """Return a place as editors write it.

    >>> _lines_of("a.cpp", 3, 7), _lines_of(None, 3, 3), _lines_of(None, None, None)
    ('a.cpp:3-7', '3', None)
    """
    lines = "-".join(dict.fromkeys(str(line) for line in (first, last) if line is not None))
    return ":".join(part for part in (str(file) if file is not None else "", lines) if part) or None


_PLACES = {
    "memory-access": _Places(
        8, _access, lambda row: ((row[8] or 0) - (row[9] or 0) - (row[11] or 0), order_of(row[2:5]))
    ),
    "memory-pages": _Places(
        4, _page, lambda row: (-(row[5] or 0), order_of(row[2:3])), lambda rows, _: _known_sum(row[4] for row in rows)
    ),
    "memory-addresses": _Places(4, _address, lambda row: (-row[5], order_of(row[2:4]))),
    "basic-blocks": _Places(
        5, _block, lambda row: (-(row[5] or 0), order_of(row[2:3])), lambda rows, time: (_ticks(rows), time)
    ),
}
