"""The list of operations, worked out by hand."""

from __future__ import annotations

import pytest

from rocpd.errors import RocpdError
from rocpd.summary.analyse import summary
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
    found = summary(open_job(job()), "op-trace")
    assert list(found) == list(found)
    assert len(list(found)) == 5


def test_nothing_is_said(open_job: OpenJob) -> None:
    with pytest.raises(RocpdError, match="no kernels or copies"):
        summary(open_job(TraceBuilder().region("f", 1, 2)), "op-trace")
