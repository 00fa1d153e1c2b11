"""Analyses of damaged files: names that are no text, numbers that are none, sums beyond 64 bits."""

from __future__ import annotations

import json
import math

import numpy as np

import rocpd
from rocpd.base import RocpdError
from rocpd.facts.rank import By, Options
from rocpd.facts.spread import total
from rocpd.summary.host.calls import folded
from rocpd.summary.reading import Reading, run
from rocpd.summary.registry import SUMMARIES
from tests.build import TraceBuilder
from tests.conftest import OpenJob
from tests.summary.cells import cells

NEVER = 2**63 - 1  # an end that was never written, as some profilers say it


def sizes_of_tables(session: rocpd.Session) -> dict[str, int | None]:
    """Return how many rows each table of each analysis has, by rank where it can be; None: it lacks its data."""
    sizes: dict[str, int | None] = {}
    for name, analysis in SUMMARIES.items():
        try:
            tables = list(run(session, name, Options(By.RANK if By.RANK in analysis.by else None)))
        except RocpdError:
            tables = []
        rows = {table.name: len(table.fetchall()) for table in tables}
        sizes |= {table: rows.get(table) for table in analysis.tables}
    return sizes


def test_names_that_are_blobs(open_job: OpenJob) -> None:
    """Every analysis shows them in hex, wherever a name stands."""
    trace = TraceBuilder().region("f", 1, 50, stack=1).kernel("a", 60, 70, stack=1).counter("waves", 3)
    trace.copy(62, 66, stack=1).alloc(2, 3).region("roctxRangePushA", 4, 9, message="step 1")
    sizes = sizes_of_tables(open_job(trace))
    trace.sql("UPDATE \"rocpd_string{uuid}\" SET string = x'ff00' WHERE string = 'f'")
    trace.sql("UPDATE \"rocpd_string{uuid}\" SET string = x'ff01' WHERE string = 'MEMORY_COPY_HOST_TO_DEVICE'")
    trace.sql("UPDATE \"rocpd_info_kernel_symbol{uuid}\" SET display_name = x'ff02'")
    trace.sql("UPDATE \"rocpd_info_pmc{uuid}\" SET name = x'ff03', units = x'ff04'")
    session = open_job(trace)
    assert sizes_of_tables(session) == sizes
    assert cells(session, "kernels", "name") == ["ff02"]
    for table in ("launch", "variability"):
        assert set(cells(session, table, "name")) == {"ff01", "ff02"}
    assert cells(session, "counters", "kernel counter unit") == [("ff02", "ff03", "ff04")]
    assert "ff00;step 1 5\n" in list(folded(Reading(session)))


def test_a_message_that_is_a_number(open_job: OpenJob) -> None:
    trace = TraceBuilder().region("roctxRangePushA", 4, 9, message="step").kernel("a", 5, 6)
    trace.sql(
        f"UPDATE \"rocpd_event{{uuid}}\" SET extdata = '{json.dumps({'message': 7})}' WHERE extdata LIKE '%step%'"
    )
    session = open_job(trace)
    assert cells(session, "calls", "name") == ["7"]
    assert cells(session, "markers", "name") == ["7"]
    assert cells(session, "phases", "phase") == ["#"]


def test_sizes_and_addresses_of_allocations_that_are_no_numbers(open_job: OpenJob) -> None:
    trace = TraceBuilder().alloc(10, 11, size=100, address=1).alloc(20, 21, size=7, address=2).alloc(30, 31, address=3)
    trace.sql("UPDATE \"rocpd_memory_allocate{uuid}\" SET size = 'big', address = '0x2' WHERE address = 2")
    trace.sql("UPDATE \"rocpd_memory_allocate{uuid}\" SET agent_id = 'x', start = 'late' WHERE address = 3")
    assert cells(open_job(trace), "memory", "agent allocations peak_bytes held_bytes") == [(1, 2, 100, 100)]


def test_sizes_beyond_64_bits(open_job: OpenJob) -> None:
    trace = TraceBuilder()
    for number in range(3):
        trace.copy(100, 200, size=NEVER).alloc(10, 20 + number, size=NEVER, address=number)
    session = open_job(trace)
    assert cells(session, "copies", "bytes") == [3 * NEVER]
    assert cells(session, "allocations", "bytes") == [3 * NEVER]
    assert cells(session, "memory", "peak_bytes held_bytes") == [(3 * NEVER, 3 * NEVER)]


def test_times_beyond_64_bits(open_job: OpenJob) -> None:
    """Three operations and their call that never ended: sums are those of Python's integers."""
    trace = TraceBuilder().region("f", 1, NEVER, stack=1)
    for start in (10, 20, 30):
        trace.kernel("a", start, NEVER, stack=1)
    session = open_job(trace)
    all_time = 3 * NEVER - 60
    assert cells(session, "kernels", "total_ns") == [all_time]
    assert cells(session, "gpu-time", "sum_ns busy_ns") == [(all_time, NEVER - 10)]
    assert cells(session, "ranks", "compute_ns kernel_sum_ns") == [(NEVER - 10, all_time)]
    assert cells(session, "launch", "gpu_ns api_ns") == [(all_time, NEVER - 1)]
    assert cells(session, "bottleneck", "gpu_ns") == [all_time]
    assert cells(session, "calls", "gpu_ns") == [all_time]
    assert cells(session, "variability", "total_ns excess_ns") == [(all_time, 30)]


def test_gaps_beyond_64_bits(open_job: OpenJob) -> None:
    ranks = [TraceBuilder(n).kernel("a", 1, 2).kernel("b", 2**62, 2**62 + 1) for n in range(4)]
    assert sum(cells(open_job(*ranks), "gaps", "total_ns")) == 4 * (2**62 - 2)


def test_counters_that_are_infinite(open_job: OpenJob) -> None:
    trace = TraceBuilder().kernel("a", 1, 5).counter("x", math.inf).kernel("a", 6, 7).counter("x", -math.inf)
    trace.kernel("a", 8, 9).counter("y", 1e308).kernel("a", 8, 9).counter("y", 1e308)
    assert cells(open_job(trace), "counters", "counter dispatches min mean max sum") == [
        ("x", 2, -math.inf, None, math.inf, None),
        ("y", 2, 1e308, math.inf, 1e308, math.inf),
    ]


def test_registers_that_are_no_numbers(open_job: OpenJob) -> None:
    trace = TraceBuilder().kernel("gemm", 1, 2).counter("SQ_WAVES", 4.0)
    trace.sql("UPDATE \"rocpd_info_kernel_symbol{uuid}\" SET arch_vgpr_count = '['")
    assert cells(open_job(trace), "collected", "counter")


def test_total() -> None:
    assert total(np.array([NEVER, NEVER, 1], np.int64)) == 2 * NEVER + 1
    assert total(np.empty(0, np.int64)) == 0
