"""Each summary table of a tiny job, with its rows worked out by hand."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

import rocpd
from rocpd.base import AmdVersion
from rocpd.schema.rules.categories import domain_of
from rocpd.summary.summarize import BY_RANK, FIELDS, SummaryOptions, summarize
from tests.build import TraceBuilder
from tests.conftest import OpenJob

COLUMNS = tuple(field.name for field in FIELDS)
HEADS = tuple(field.name for field in BY_RANK)
ALL = SummaryOptions(by_rank=True, domains=True)
ROOT2 = math.sqrt(2)


def tables(session: rocpd.Session, options: SummaryOptions | None = None) -> dict[str, list[tuple[Any, ...]]]:
    return {table.name: table.fetchall() for table in summarize(session, options)}


def test_kernels(open_job: OpenJob) -> None:
    """gemm 10 + 20 + 30, copy_k 40: two ranks, one table."""
    first = TraceBuilder(0).kernel("gemm", 100, 110).kernel("gemm", 200, 220)
    second = TraceBuilder(1).kernel("gemm", 100, 130).kernel("copy_k", 200, 240)
    assert tables(open_job(first, second)) == {
        "kernels_summary": [
            ("gemm", 3, 60, 20.0, 60.0, 10, 30, 10.0),
            ("copy_k", 1, 40, 40.0, 40.0, 40, 40, None),
        ]
    }


def test_copies_by_direction(open_job: OpenJob) -> None:
    trace = TraceBuilder().copy(100, 110).copy(200, 230)
    trace.copy(300, 360, name="MEMORY_COPY_DEVICE_TO_HOST", src=None, dst=None)
    assert tables(open_job(trace)) == {
        "memory_copies_summary": [
            ("MEMORY_COPY_DEVICE_TO_HOST", 1, 60, 60.0, 60.0, 60, 60, None),
            ("MEMORY_COPY_HOST_TO_DEVICE", 2, 40, 20.0, 40.0, 10, 30, 10 * ROOT2),
        ]
    }


def test_scratch_memory_is_counted_once(open_job: OpenJob) -> None:
    trace = TraceBuilder().alloc(100, 130).alloc(200, 210, kind="FREE")
    trace.alloc(300, 305, level="SCRATCH").alloc(400, 415, level="SCRATCH", kind="FREE")
    by_table = tables(open_job(trace), SummaryOptions(domains=True))
    assert by_table["memory_allocations_summary"] == [
        ("ALLOC", 1, 30, 30.0, 75.0, 30, 30, None),
        ("FREE", 1, 10, 10.0, 25.0, 10, 10, None),
    ]
    assert [row[1:] for row in by_table["scratch_memory_summary"]] == [
        (1, 15, 15.0, 75.0, 15, 15, None),
        (1, 5, 5.0, 25.0, 5, 5, None),
    ]
    assert [row[:3] for row in by_table["domain_summary"]] == [("MEMORY_ALLOCATIONS", 2, 40), ("SCRATCH_MEMORY", 2, 20)]


def test_regions_by_api_and_markers_by_message(open_job: OpenJob) -> None:
    trace = TraceBuilder().region("hipMalloc", 10, 40).region("hipMalloc", 50, 60, category="HIP_COMPILER_API")
    trace.region("hsa_init", 10, 15, category="HSA_CORE_API").region("ncclSend", 10, 17, category="rocm_rccl_api")
    trace.region("roctxRangePushA", 10, 60, message="step 1").region("roctxRangePushA", 70, 80, message="step 2")
    trace.region("roctxRangePushA", 90, 120, message="step 1").region("main", 1, 4, category=None, event_id=None)
    assert tables(open_job(trace)) == {
        "markers_summary": [
            ("step 1", 2, 80, 40.0, 80 * 100 / 90, 30, 50, 10 * ROOT2),
            ("step 2", 1, 10, 10.0, 10 * 100 / 90, 10, 10, None),
        ],
        "hip_summary": [("hipMalloc", 2, 40, 20.0, 100.0, 10, 30, 10 * ROOT2)],
        "rccl_summary": [("ncclSend", 1, 7, 7.0, 100.0, 7, 7, None)],
        "hsa_summary": [("hsa_init", 1, 5, 5.0, 100.0, 5, 5, None)],
        "other_summary": [("main", 1, 3, 3.0, 100.0, 3, 3, None)],
    }


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        (None, ["kernels_summary", "hip_summary", "markers_summary"]),
        (["HIP"], ["kernels_summary", "hip_summary"]),
        (["hip", "markers"], ["kernels_summary", "hip_summary", "markers_summary"]),
        ([], ["kernels_summary"]),
        (["RCCL"], ["kernels_summary"]),
        (["KERNEL"], ["kernels_summary"]),
        (["Memory_Copy"], []),
        (["HIP", "kernels"], ["kernels_summary", "hip_summary"]),
        (["MEMORY", "hip"], ["hip_summary"]),
    ],
)
def test_region_categories(asked: list[str] | None, given: list[str], open_job: OpenJob) -> None:
    trace = TraceBuilder().kernel("gemm", 1, 2).region("hipMalloc", 1, 40).region("f", 1, 9, message="step")
    assert list(tables(open_job(trace), SummaryOptions(region_categories=asked))) == given


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        (None, ["kernels_summary", "hip_summary", "markers_summary"]),
        (["HIP"], ["hip_summary"]),
        (["KERNEL", "hip"], ["kernels_summary", "hip_summary"]),
        (["MARKER"], ["markers_summary"]),
        ([], ["kernels_summary"]),
    ],
)
def test_categories_of_2026_leave_out_what_they_do_not_name(
    asked: list[str] | None, given: list[str], open_job: OpenJob
) -> None:
    trace = TraceBuilder().kernel("gemm", 1, 2).region("hipMalloc", 1, 40).region("f", 1, 9, message="step")
    options = SummaryOptions(region_categories=asked, amd_version=AmdVersion.V2026)
    assert list(tables(open_job(trace), options)) == given


def test_heads_of_2026(open_job: OpenJob) -> None:
    session = open_job(TraceBuilder().kernel("gemm", 1, 2))
    old, new = (list(summarize(session, SummaryOptions(by_rank=True, amd_version=version))) for version in AmdVersion)
    assert new[0].columns == (
        "Name", "Calls", "Duration (Nsec)", "Average (Nsec)", "Percent (Inc)", "Min (Nsec)", "Max (Nsec)", "Std_Dev",
    )  # fmt: skip
    assert new[1].columns == ("ProcessID", "Hostname", *new[0].columns)
    assert [table.fetchall() for table in old] == [table.fetchall() for table in new]


def test_a_category_without_events_is_reported(open_job: OpenJob) -> None:
    session = open_job(TraceBuilder().region("hipMalloc", 1, 40).region("f", 1, 9, message="step"))
    shown = tables(session, SummaryOptions(domains=True, region_categories=["markers", "ROCR", "KERNEL"]))
    assert list(shown) == ["markers_summary", "domain_summary"]
    assert [row[0] for row in shown["domain_summary"]] == ["HIP", "MARKERS"]
    assert session.notes == ["no events of the category ROCR"]


def test_domain_summary_merges_moments(open_job: OpenJob) -> None:
    """Kernels of 10, 20 and 60 ns under two names on two ranks: deviation of all three, not a sum of two."""
    first = TraceBuilder(0).kernel("a", 100, 110).kernel("b", 200, 220).region("hipMalloc", 1, 11)
    second = TraceBuilder(1).kernel("b", 100, 160)
    by_table = tables(open_job(first, second), SummaryOptions(domains=True))
    assert by_table["domain_summary"] == [
        ("KERNELS", 3, 90, 30.0, 90.0, 10, 60, math.sqrt(700)),
        ("HIP", 1, 10, 10.0, 10.0, 10, 10, None),
    ]


def test_by_rank(open_job: OpenJob) -> None:
    first = TraceBuilder(0, pid=7).kernel("gemm", 100, 110).kernel("relu", 200, 230)
    second = TraceBuilder(1, pid=8, host="node1").kernel("gemm", 100, 150)
    session = open_job(first, second)
    by_rank = next(t for t in summarize(session, ALL) if t.name == "kernels_summary_by_rank")
    assert by_rank.columns == (*HEADS, *COLUMNS)
    assert tuple(by_rank) == (
        (7, "node0", "relu", 1, 30, 30.0, 75.0, 30, 30, None),
        (7, "node0", "gemm", 1, 10, 10.0, 25.0, 10, 10, None),
        (8, "node1", "gemm", 1, 50, 50.0, 100.0, 50, 50, None),
    )
    domains = next(t for t in summarize(session, ALL) if t.name == "domain_summary_by_rank")
    assert [row[:5] for row in domains] == [(7, "node0", "KERNELS", 2, 40), (8, "node1", "KERNELS", 1, 50)]


def test_by_rank_with_equal_pids_and_hosts(open_job: OpenJob) -> None:
    """One rank per container: pid 16 on `node0` twice; a rank's rows must not show under the other."""
    first, second = TraceBuilder(0).kernel("gemm", 100, 110), TraceBuilder(1).kernel("gemm", 100, 150)
    by_rank = next(t for t in summarize(open_job(first, second), ALL) if t.name == "kernels_summary_by_rank")
    assert by_rank.columns == (*HEADS, *COLUMNS, "Rank")
    assert [(*row[:5], row[-1]) for row in by_rank] == [
        (16, "node0", "gemm", 1, 10, 0),
        (16, "node0", "gemm", 1, 50, 1),
    ]


def test_percentages_add_to_100(open_job: OpenJob) -> None:
    """Thirds, sevenths and primes, of every kind, on three ranks."""
    job = []
    for number in range(3):
        trace = TraceBuilder(number, pid=number + 1)
        for index, length in enumerate((3, 7, 11, 13, 17)):
            trace.kernel(f"k{index}", 100, 100 + length).region(f"r{index}", 5, 5 + length * 3)
            trace.copy(100, 100 + length, name=f"c{index}").alloc(50, 50 + length, level=("REAL", "SCRATCH")[index % 2])
            trace.region("f", 1, 1 + length, message=f"m{index}")
        job.append(trace)
    by_table = tables(open_job(*job), ALL)
    assert len(by_table) == 14
    for name, rows in by_table.items():
        at = COLUMNS.index("PERCENT (INC)") + (2 if name.endswith("_by_rank") else 0)
        groups = [row[0] for row in rows] if name.endswith("_by_rank") else [0] * len(rows)
        for group in set(groups):
            shares = [row[at] for row, group_of_row in zip(rows, groups, strict=True) if group_of_row == group]
            assert sum(shares) == pytest.approx(100, abs=1e-9), (name, group)
        assert all(later[at] <= row[at] for row, later in itertools.pairwise(rows) if not name.endswith("_by_rank"))


def test_damaged_times_count_as_calls_and_not_as_time(open_job: OpenJob) -> None:
    """Epoch-sized durations from a start of 0 would drown everything else."""
    trace = TraceBuilder().kernel("gemm", 100, 110).kernel("gemm", 0, 1_700_000_000_000_000_000)
    trace.kernel("gemm", 500, 400).kernel("late", 0, 5).kernel("gemm", 200, 220)
    session = open_job(trace)
    assert tables(session) == {
        "kernels_summary": [
            ("gemm", 4, 30, 15.0, 100.0, 10, 20, 5 * ROOT2),
            ("late", 1, 0, None, 0.0, None, None, None),
        ]
    }
    assert session.notes == [
        "kernels: 3 of 5 have invalid timestamps (start 0, or end before start): they count as calls, not as time"
    ]


def test_sums_beyond_64_bits_stay_exact(open_job: OpenJob) -> None:
    """Ten kernels of 1.7e18 ns pass 2^63 together; SQLite's SUM gives up, the summary does not."""
    longest = 1_700_000_000_000_000_000
    trace = TraceBuilder().kernel("short", 5, 6)
    for extra in range(10):
        trace.kernel("gemm", 1, 1 + longest + extra)
    rows = tables(open_job(trace), SummaryOptions(domains=True))["kernels_summary"]
    total = 10 * longest + 45
    assert rows[0][:4] == ("gemm", 10, total, total / 10)
    assert rows[0][5:7] == (longest, longest + 9)
    assert rows[0][7] == pytest.approx(math.sqrt(55 / 6), rel=1e-12)
    assert rows[1][:3] == ("short", 1, 1)


def test_nothing_gives_no_tables(open_job: OpenJob) -> None:
    assert tables(open_job(TraceBuilder()), ALL) == {}


def test_ties_are_in_order_of_name(open_job: OpenJob) -> None:
    first = TraceBuilder(0).kernel("b", 1, 2).kernel("c", 1, 2)
    second = TraceBuilder(1).kernel("a", 1, 2).kernel(None, 1, 2, kernel_id=99)
    assert [row[0] for row in tables(open_job(first, second))["kernels_summary"]] == [None, "a", "b", "c"]


def test_milliseconds_to_hours_spread_exactly(open_job: OpenJob) -> None:
    """The sum of squares is put together from three parts: each has to count."""
    for length in (10**3, 10**6 + 7, 10**9 + 9, 4 * 10**12 + 11):
        trace = TraceBuilder().kernel("k", 5, 5 + length).kernel("k", 5, 5 + 3 * length).kernel("k", 5, 5 + 8 * length)
        [row] = tables(open_job(trace))["kernels_summary"]
        assert row[:3] == ("k", 3, 12 * length)
        assert row[7] == pytest.approx(length * math.sqrt(13), rel=1e-14)


def test_progress_goes_on_with_each_rank(open_job: OpenJob) -> None:
    steps: list[tuple[int, int]] = []
    session = open_job(TraceBuilder(0).kernel("a", 1, 2), TraceBuilder(1).kernel("a", 1, 2))
    list(summarize(session, ALL, lambda done, total: steps.append((done, total))))
    assert len(steps) >= 2
    assert steps == sorted(steps, key=lambda step: step[0])
    assert all(0 <= done <= total for done, total in steps)


def test_a_window_restricts_the_summary(open_job: OpenJob) -> None:
    session = open_job(TraceBuilder().kernel("a", 1000, 1100).kernel("b", 1200, 1300).kernel("b", 1900, 2000))
    session = session.within(rocpd.Window(start=1150))
    assert tables(session)["kernels_summary"] == [("b", 2, 200, 100.0, 100.0, 100, 100, 0.0)]


@pytest.mark.parametrize(
    ("category", "domain"),
    [
        ("HIP_RUNTIME_API", "HIP"),
        ("HIP_COMPILER_API_EXT", "HIP"),
        ("HSA_AMD_EXT_API", "HSA"),
        ("MARKER_CORE_RANGE_API", "MARKERS"),
        ("KFD_PAGE_FAULT", "KFD"),
        ("OMPT", "OMPT"),
        ("rocm_hip_api", "HIP"),
        ("rocm_rccl_api", "RCCL"),
        ("", "OTHER"),
        (None, "OTHER"),
    ],
)
def test_domain_of(category: str | None, domain: str) -> None:
    assert domain_of(category) == domain
