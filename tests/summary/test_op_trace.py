"""The list of operations, worked out by hand."""

from __future__ import annotations

import pytest

from rocpd.base import RocpdError
from rocpd.summary.kernels.op_trace import logduration, raptor
from rocpd.summary.reading import Reading
from tests.build import GPU2, TraceBuilder
from tests.conftest import OpenJob
from tests.summary.cells import cells


def job() -> TraceBuilder:
    trace = TraceBuilder().kernel("b", 150, 160, stream=2).kernel("a", 100, 200).copy(230, 250)
    return trace.kernel("other", 300, 310, agent=GPU2).kernel("touch", 250, 260)


def test_in_order_with_gaps(open_job: OpenJob) -> None:
    session = open_job(job())
    assert cells(session, "op-trace", "agent number gap_ns start_ns duration_ns kind name") == [
        (1, 1, None, 0, 100, "kernel", "a"),
        (1, 2, 0, 50, 10, "kernel", "b"),
        (1, 3, 30, 130, 20, "copy", "MEMORY_COPY_HOST_TO_DEVICE"),
        (1, 4, 0, 150, 10, "kernel", "touch"),
        (2, 1, None, 200, 10, "kernel", "other"),
    ]
    by_stream = cells(session, "op-trace", "stream number gap_ns name", "stream")
    assert by_stream[-1] == (2, 1, None, "b")
    assert [row[:2] for row in by_stream[:-1]] == [(0, 1), (0, 2), (0, 3), (0, 4)]


def test_it_can_be_read_twice(open_job: OpenJob) -> None:
    listed = open_job(job()).summary("op-trace")
    assert list(listed) == list(listed)
    assert len(list(listed)) == 5


def test_nothing_is_said(open_job: OpenJob) -> None:
    with pytest.raises(RocpdError, match="no kernels or copies"):
        open_job(TraceBuilder().region("f", 1, 2)).summary("op-trace")


def test_as_raptor_writes_it(open_job: OpenJob) -> None:
    """Header and rows as `"%10s %9s %13s %13s %10s %s"` and `"%d.%08d %9.1f %13s %13s %6.1f %30s"` make them."""
    trace = TraceBuilder().region("f", 1_000, 2_000).kernel("gemm", 10_497_683, 10_500_000)
    trace.kernel("b" * 31, 10_500_000, 11_500_100).copy(12_500_100, 12_500_200)
    trace.kernel("a", 2_000, 3_000, agent=GPU2)
    assert (
        "".join(raptor(Reading(open_job(trace))))
        == """\
GPU.Seq_Id PreGap_us      Start_ms        End_ms     Dur_us Kernel
1.00000001       nan       10.496683       10.499000    2.3                           gemm
1.00000002       0.0       10.499000       11.499100 1000.1 bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
1.00000003    1000.0       12.499100       12.499200    0.1     MEMORY_COPY_HOST_TO_DEVICE
2.00000001       nan        0.001000        0.002000    1.0                              a
"""
    )


def test_raptors_ranks_are_apart(open_job: OpenJob) -> None:
    session = open_job(TraceBuilder(0).kernel("a", 1, 2), TraceBuilder(1, host="node1").kernel("a", 1, 2))
    assert [line for line in "".join(raptor(Reading(session))).splitlines() if line.startswith("#")] == [
        "# rank 0, node0",
        "# rank 1, node1",
    ]


def test_as_logduration_logs_it(open_job: OpenJob) -> None:
    """In the order of completion; the launch of `lost` is not known."""
    trace = TraceBuilder().region("launch", 10, 20, stack=1).region("launch", 30, 40, stack=2)
    trace.kernel("long", 50, 90, stack=1).kernel("quick(int, float)", 60, 70, stack=2, stream=2).copy(70, 80)
    session = open_job(trace.kernel("lost", 100, 120, stack=9))
    assert (
        "".join(logduration(Reading(session)))
        == """\
kernel,dispatch,startNs,endNs
"quick(int, float)",30,60,70
"long",10,50,90
"lost",100,100,120
"""
    )


def test_batches_hold_the_same(open_job: OpenJob) -> None:
    """Each rank is a batch, so that no more than one is in memory; ids that are not there are NULL."""
    session = open_job(job(), TraceBuilder(1).kernel(None, 5, 9, stream=None, agent=None, kernel_id=99))
    listed = session.summary("op-trace")
    assert [batch.num_rows for batch in listed.arrow_batches()] == [5, 1]
    table = listed.arrow()
    assert [tuple(row.values()) for row in table.to_pylist()] == list(listed)
    assert table.schema.field("gap_ns").metadata[b"unit"] == b"ns"
    assert [table.schema.field(name).type for name in ("agent", "name")] == ["int64", "string"]


def test_narrow_terminals_keep_what_divides(open_job: OpenJob) -> None:
    session = open_job(job())
    for by, minor in ((None, ["stream", "kind"]), ("stream", ["agent", "kind"])):
        minor += ["z_score", "median_score"]
        assert [field.name for field in session.summary("op-trace", by).fields if field.minor] == minor
