"""Where kernels spend their time by basic block, as Omniprobe measured it in a run with instrumentation.

Ticks are of that run; times are those of a trace of the same program, by the share of ticks.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence

from rocpd.errors import RocpdError
from rocpd.summary.instrumented import Instrumented, grouped_rows, instrumented, known_sum, note_unmatched
from rocpd.summary.reading import Reading, order_of
from rocpd.summary.result import Field, Summary, TableDefinition, by_name
from rocpd.types import Row

_MOST = 3  # mnemonics that are shown

TABLES = by_name(
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
    )
)


def basic_blocks(reading: Reading) -> Iterator[Summary]:
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
    yield reading.summary(TABLES["basic-blocks"], _rows(measured))


def _rows(measured: Instrumented) -> list[Row]:
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
            kernel, time, _source(file, first, last), dispatches, executions, ticks,
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


def _source(file: object, first: object, last: object) -> str | None:
    """Return a place as editors write it.

    >>> _source("a.cpp", 3, 7), _source(None, 3, 3), _source(None, None, None)
    ('a.cpp:3-7', '3', None)
    """
    lines = "-".join(dict.fromkeys(str(line) for line in (first, last) if line is not None))
    return ":".join(part for part in (str(file) if file is not None else "", lines) if part) or None
