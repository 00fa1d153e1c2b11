"""Memory held, worked out by hand."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

import rocpd
from tests.build import GPU2, TraceBuilder
from tests.conftest import OpenJob
from tests.summary.cells import cells

COLUMNS = "agent level allocations frees peak_bytes peak_at_ns held_bytes unmatched_frees"


def test_peak_and_rest(open_job: OpenJob) -> None:
    """100 at 10, 50 at 20 (peak 150), 100 freed at 30, 30 at 40; the free names no agent and no size."""
    trace = TraceBuilder().alloc(10, 11, size=100, address=1).alloc(20, 21, size=50, address=2)
    trace.alloc(30, 31, kind="FREE", size=0, address=1, agent=None).alloc(40, 41, size=30, address=3)
    trace.alloc(50, 51, kind="FREE", size=0, address=99, agent=None)
    trace.alloc(15, 16, size=7, address=1, level="SCRATCH").alloc(60, 61, size=5, address=4, agent=GPU2)
    session = open_job(trace)
    assert cells(session, "memory", COLUMNS) == [
        (1, "REAL", 3, 1, 150, 10, 80, 0),
        (1, "SCRATCH", 1, 0, 7, 5, 7, 0),
        (2, "REAL", 1, 0, 5, 50, 5, 0),
        (None, "REAL", 0, 0, 0, None, 0, 1),
    ]
    course = [row for row in cells(session, "memory-curve", "agent level at_ns peak_bytes", bins=4) if row[1] == "REAL"]
    assert course[:4] == [(1, "REAL", 0, 100), (1, "REAL", 8, 150), (1, "REAL", 16, 150), (1, "REAL", 24, 80)]


def test_an_address_that_is_given_out_again(open_job: OpenJob) -> None:
    trace = TraceBuilder().alloc(10, 11, size=100, address=1).alloc(20, 21, size=30, address=1)
    assert cells(open_job(trace), "memory", "peak_bytes held_bytes") == [(100, 30)]


def test_what_ends_where_a_slice_starts_is_not_in_it(open_job: OpenJob) -> None:
    """100 from 10 on, freed at 30, where the third slice of ten starts; 7 at 49."""
    trace = TraceBuilder().alloc(10, 11, size=100, address=1).alloc(30, 31, kind="FREE", size=0, address=1)
    session = open_job(trace.alloc(49, 50, size=7, address=2))
    curve = [(0, 100), (10, 100), (20, 0), (30, 7)]
    assert cells(session, "memory-curve", "at_ns peak_bytes", bins=4) == curve


def test_what_ranks_hosts_and_streams_hold(open_job: OpenJob) -> None:
    """Rank 0 holds 100 on GPU 1 (stream 0) and 40 on GPU 2 (stream 5) at a time; rank 1 adds 30 while they do."""
    first = TraceBuilder(0).alloc(10, 11, size=100, address=1).alloc(20, 21, size=40, address=2, agent=GPU2, stream=5)
    first.alloc(40, 41, kind="FREE", size=0, address=1, agent=None, stream=None)
    second = TraceBuilder(1).alloc(30, 31, size=30, address=1).alloc(35, 36, kind="FREE", size=0, address=1)
    session = open_job(first, second)
    columns = "allocations frees peak_bytes peak_at_ns held_bytes"
    assert cells(session, "memory", f"rank {columns}", "rank") == [(0, 2, 1, 140, 10, 40), (1, 1, 1, 30, 20, 0)]
    assert cells(session, "memory", f"hostname {columns}", "host") == [("node0", 3, 2, 170, 20, 40)]
    by_agent = f"rank agent {columns}"
    assert cells(session, "memory", by_agent, "agent") == cells(session, "memory", by_agent)
    assert cells(session, "memory", f"rank stream {columns}", "stream") == [
        (0, 0, 1, 1, 100, 0, 0),
        (0, 5, 1, 0, 40, 10, 40),
        (1, 0, 1, 1, 30, 20, 0),
    ]
    assert cells(session, "memory-curve", "at_ns peak_bytes", "host", bins=4) == [
        (0, 100),
        (8, 140),
        (16, 170),
        (24, 170),
    ]


@pytest.mark.parametrize(
    ("trace", "held"),
    [
        pytest.param(
            TraceBuilder()
            .alloc(10, 11, size=100, address=1, level="VIRTUAL")
            .alloc(20, 21, size=60, address=1)
            .alloc(30, 31, kind="FREE", size=0, address=1),
            {"REAL": 0, "VIRTUAL": 100},
            id="reserved and real memory at one address",
        ),
        pytest.param(
            TraceBuilder()
            .alloc(10, 11, size=50, address=0, level="SCRATCH", queue=1)
            .alloc(20, 21, size=70, address=0, level="SCRATCH", queue=2)
            .alloc(30, 31, kind="FREE", size=0, address=0, level="SCRATCH", queue=1),
            {"SCRATCH": 70},
            id="scratch memory of two queues",
        ),
    ],
)
def test_summary_and_traces_hold_the_same(
    trace: TraceBuilder, held: dict[str, int], open_job: OpenJob, tmp_path: Path
) -> None:
    session = open_job(trace)
    rows = cells(session, "memory", "level held_bytes unmatched_frees")
    assert rows == [(level, held[level], 0) for level in sorted(held)]
    (path,) = session.convert("json", tmp_path / "trace.json")
    counters = re.findall(r'"ph":"C".*?memory (\w+) held".*?"bytes":(\d+)', path.read_text())
    assert {level: int(value) for level, value in counters} == held


def held_long_before() -> TraceBuilder:
    """8 held from 10 to 900, 1 from 500 to 600, and 2 of scratch memory that ends before the windows begin."""
    trace = TraceBuilder().region("whole", 1, 1000).alloc(10, 11, size=8, address=1).alloc(500, 501, size=1, address=2)
    trace.alloc(20, 21, size=2, address=0, level="SCRATCH")
    trace.alloc(30, 31, kind="FREE", size=0, address=0, level="SCRATCH")
    trace.alloc(600, 601, kind="FREE", size=0, address=2, agent=None)
    return trace.alloc(900, 901, kind="FREE", size=0, address=1, agent=None)


@pytest.mark.parametrize("clip", [False, True])
def test_memory_in_a_window_starts_from_what_was_held(clip: bool, open_job: OpenJob) -> None:
    session = open_job(held_long_before())

    def held(start: int, end: int) -> list[object]:
        window = rocpd.Window(start, end, clip=clip)
        return cells(session.within(window), "memory", "level allocations frees peak_bytes peak_at_ns held_bytes")

    assert held(400, 550) == [("REAL", 1, 0, 9, 499, 9)]
    assert held(550, 700) == [("REAL", 0, 1, 9, 549, 8)]
    assert held(700, 800) == [("REAL", 0, 0, 8, 699, 8)]
    assert held(800, 1000) == [("REAL", 0, 1, 8, 799, 0)]
    curve = cells(session.within(rocpd.Window(400, 550, clip=clip)), "memory-curve", "at_ns peak_bytes", bins=2)
    assert curve == [(399, 8), (450, 9)]


def test_windows_of_memory_join_on(open_job: OpenJob) -> None:
    """Adjoining windows count each allocation and free once, and one starts with what the other ended with."""
    session = open_job(held_long_before())
    edges = [2, 15, 25, 500, 600, 750, 999]
    windows = [session.within(rocpd.Window(a, b)) for a, b in pairwise(edges)]
    rows = [row for window in windows for row in cells(window, "memory", "allocations frees")]
    assert [sum(column) for column in zip(*rows, strict=True)] == [3, 3]
    ends = [dict(cells(window, "memory", "level held_bytes")).get("REAL", 0) for window in windows]
    assert ends == [8, 8, 8, 9, 8, 0]


def test_filters_hold_with_a_window_and_without(open_job: OpenJob) -> None:
    """What an agent that is left out holds is not counted, before a window or in it."""
    trace = TraceBuilder().alloc(10, 11, size=8, address=1).alloc(20, 21, size=5, address=2, agent=GPU2)
    session = open_job(trace.region("whole", 1, 100)).where(rocpd.Filters(agents="GPU-1"))
    for selected in (session, session.within(rocpd.Window(15, 50))):
        assert cells(selected, "memory", "agent peak_bytes") == [(2, 5)]


def test_a_free_belongs_to_the_agent_of_its_memory(open_job: OpenJob) -> None:
    """Most frees name no agent: a filter by agent keeps those of memory that it keeps, and no others."""
    trace = TraceBuilder().alloc(10, 11, size=8, address=1).alloc(20, 21, size=5, address=2, agent=GPU2)
    for address in (1, 2):
        trace.alloc(50 + address, 59, kind="FREE", size=0, address=address, agent=None)
    session = open_job(trace.region("whole", 1, 100)).where(rocpd.Filters(agents="GPU-1"))
    columns = "agent allocations frees peak_bytes held_bytes unmatched_frees"
    assert cells(session, "memory", columns) == [(2, 1, 1, 5, 0, 0)]
    changes = session.execute("SELECT change, bytes FROM memory_use").fetchall()
    assert changes == [("allocated", 5), ("freed", -5)]
