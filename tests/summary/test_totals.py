"""Totals of a tiny job, worked out by hand."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import rocpd
from rocpd.base import RocpdError, UsageError
from rocpd.federate.select.filters import event_categories
from tests.build import CPU, GPU, GPU2, TraceBuilder
from tests.conftest import OpenJob
from tests.summary.cells import cells


def test_kernels_with_percentiles(open_job: OpenJob) -> None:
    """gemm 10, 20, 30, 40 on two ranks: median 25, p95 at place 2.85, p99 at place 2.97."""
    first = TraceBuilder(0).kernel("gemm", 100, 110).kernel("gemm", 200, 240)
    second = TraceBuilder(1).kernel("gemm", 100, 130).kernel("gemm", 200, 220).kernel("copy_k", 300, 400)
    table = cells(
        open_job(first, second), "kernels", "name calls total_ns min_ns median_ns p95_ns p99_ns max_ns percent"
    )
    assert table == [
        ("copy_k", 1, 100, 100, 100.0, 100.0, 100.0, 100, 50.0),
        ("gemm", 4, 100, 10, 25.0, pytest.approx(38.5), pytest.approx(39.7), 40, 50.0),
    ]


@pytest.mark.parametrize(
    ("by", "columns", "expected"),
    [
        ("rank", "rank name total_ns percent", [(0, "a", 10, 100.0), (1, "b", 30, 75.0), (1, "a", 10, 25.0)]),
        ("host", "hostname name calls", [("n0", "a", 1), ("n1", "b", 1), ("n1", "a", 1)]),
        ("agent", "rank agent name", [(0, 1, "a"), (1, 1, "a"), (1, 2, "b")]),
        ("stream", "rank stream name", [(0, 0, "a"), (1, 0, "a"), (1, 5, "b")]),
    ],
)
def test_divisions(by: str, columns: str, expected: list[object], open_job: OpenJob) -> None:
    first = TraceBuilder(0, host="n0").kernel("a", 100, 110)
    second = TraceBuilder(1, host="n1").kernel("a", 100, 110).kernel("b", 200, 230, agent=GPU2, stream=5)
    assert cells(open_job(first, second), "kernels", columns, by) == expected


def test_copies_have_bandwidth(open_job: OpenJob) -> None:
    """2 GiB in 2 s: 1 GiB/s; a copy with invalid timestamps counts, its bytes do not."""
    trace = TraceBuilder().copy(10, 10 + 10**9, size=2**30).copy(5 * 10**9, 6 * 10**9, size=2**30)
    trace.copy(0, 5, size=2**40)
    assert cells(open_job(trace), "copies", "calls total_ns bytes gib_per_s") == [(3, 2 * 10**9, 2**31, 1.0)]


def test_a_copy_belongs_to_its_gpu(open_job: OpenJob) -> None:
    trace = TraceBuilder().copy(1, 3, src=CPU, dst=GPU).copy(1, 5, src=GPU2, dst=CPU).copy(1, 4, src=GPU, dst=GPU2)
    assert cells(open_job(trace), "copies", "agent total_ns", "agent") == [(1, 2), (2, 7)]


def test_allocations_and_scratch(open_job: OpenJob) -> None:
    trace = TraceBuilder().alloc(100, 130, size=64).alloc(200, 210, kind="FREE", size=0)
    trace.alloc(100, 101, level="VIRTUAL", size=8).alloc(300, 305, level="SCRATCH", size=7)
    session = open_job(trace)
    assert cells(session, "allocations", "name level total_ns bytes") == [
        ("ALLOC", "REAL", 30, 64),
        ("FREE", "REAL", 10, 0),
        ("ALLOC", "VIRTUAL", 1, 8),
    ]
    assert cells(session, "scratch", "name total_ns bytes") == [("ALLOC", 5, 7)]


def test_api_markers_and_domains(open_job: OpenJob) -> None:
    trace = TraceBuilder().region("hipMalloc", 10, 40).region("ncclSend", 10, 17, category="rocm_rccl_api")
    trace.region("roctxRangePushA", 10, 60, message="step").kernel("gemm", 5, 25).region("f", 1, 4, event_id=None)
    session = open_job(trace)
    assert cells(session, "api", "domain name total_ns") == [
        ("HIP", "hipMalloc", 30),
        ("RCCL", "ncclSend", 7),
        ("OTHER", "f", 3),
    ]
    assert cells(session, "markers", "name total_ns percent") == [("step", 50, 100.0)]
    assert cells(session, "domains", "domain calls total_ns") == [
        ("MARKERS", 1, 50),
        ("HIP", 1, 30),
        ("KERNELS", 1, 20),
        ("RCCL", 1, 7),
        ("OTHER", 1, 3),
    ]


def test_the_table_knows_its_units(open_job: OpenJob) -> None:
    table = open_job(TraceBuilder().copy(1, 5)).summary("copies")
    assert dict(zip(table.columns, table.units, strict=True))["gib_per_s"] == "GiB/s"
    assert table.arrow().schema.field("total_ns").metadata == {b"unit": b"ns", b"doc": b"sum of durations"}
    assert table.df()["total_ns"].tolist() == [4]


def test_what_cannot_be(open_job: OpenJob) -> None:
    session = open_job(TraceBuilder().kernel("a", 1, 2))
    with pytest.raises(RocpdError, match="no memory copies in the selection"):
        session.summary("copies")
    with pytest.raises(UsageError, match="no summary is called kernel"):
        session.summary("kernel")
    with pytest.raises(UsageError, match="by node: unknown"):
        session.summary("kernels", by="node")


def test_damaged_times_are_told(open_job: OpenJob) -> None:
    session = open_job(TraceBuilder().kernel("a", 100, 90).kernel("a", 0, 50).kernel("a", 10, 15))
    assert cells(session, "kernels", "calls total_ns mean_ns") == [(3, 5, 5.0)]
    assert session.notes == [
        "kernels: 2 of 3 have invalid timestamps (start 0, or end before start): they count as calls, not as time"
    ]


def test_the_package_can_be_called(open_job: OpenJob) -> None:
    """`rocpd.summary` is a package and the function, whichever of its modules was imported before."""
    session = open_job(TraceBuilder().kernel("a", 1, 5))
    table = session.summary("kernels", by="rank")
    assert (table.name, table.columns[:2], table.fetchall()[0][:4]) == ("kernels", ("rank", "name"), (0, "a", 1, 4))
    assert next(iter(session.summary("gaps", by="rank")))[:3] == (0, "up to 10 us", 0)


def test_domains_are_those_that_are_listed(tmp_path: Path) -> None:
    """Graph launches and samples are events too."""
    rocpd.simulate(tmp_path / "job", ranks=2, steps=2, seed=31)
    session = rocpd.connect(tmp_path / "job")
    listed = Counter[str]()
    for domain, _, events in event_categories(session.map_ranks):
        listed[domain] += events
    assert {"GRAPH", "SMI"} <= listed.keys()
    assert dict(cells(session, "domains", "domain calls")) == listed
