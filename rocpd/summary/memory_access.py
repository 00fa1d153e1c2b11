"""How kernels access memory, per source line: cache lines that they need and touch, bank conflicts, pages, addresses.

Omniprobe measured it in a run with instrumentation; times are those of a trace of the same program.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from rocpd.errors import RocpdError
from rocpd.summary.instrumented import Instrumented, grouped_rows, instrumented, known_sum, note_unmatched
from rocpd.summary.reading import Reading, order_of
from rocpd.summary.result import Field, Summary, TableDefinition, by_name
from rocpd.types import Row

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
)


def memory_access(reading: Reading) -> Iterator[Summary]:
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
