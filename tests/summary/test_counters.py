"""Counters, worked out by hand."""

from __future__ import annotations

import pytest

from rocpd.base import RocpdError
from tests.build import GPU2, TraceBuilder
from tests.conftest import OpenJob
from tests.summary.cells import cells


def job() -> list[TraceBuilder]:
    """gemm: waves 10 (4 + 6 of two instances) and 30 on two ranks, hits 5 on one; relu: waves 1."""
    first = TraceBuilder(0).kernel("gemm", 1, 5).counter("waves", 4, units="waves").counter("waves", 6)
    first.counter("hits", 5).kernel("relu", 6, 8, agent=GPU2).counter("waves", 1)
    return [first, TraceBuilder(1).kernel("gemm", 1, 5).counter("waves", 30, units="waves").kernel("bare", 1, 2)]


def test_long_and_wide(open_job: OpenJob) -> None:
    session = open_job(*job())
    assert cells(session, "counters", "kernel counter unit dispatches min mean max sum") == [
        ("gemm", "hits", None, 1, 5.0, 5.0, 5.0, 5.0),
        ("gemm", "waves", "waves", 2, 10.0, 20.0, 30.0, 40.0),
        ("relu", "waves", "waves", 1, 1.0, 1.0, 1.0, 1.0),
    ]
    assert cells(session, "counters-wide", "kernel dispatches hits waves") == [
        ("gemm", 2, 5.0, 20.0),
        ("relu", 1, None, 1.0),
    ]
    assert cells(session, "counters", "rank agent kernel mean", "agent") == [
        (0, 1, "gemm", 5.0),
        (0, 1, "gemm", 10.0),
        (0, 2, "relu", 1.0),
        (1, 1, "gemm", 30.0),
    ]


def test_the_wide_form_says_units(open_job: OpenJob) -> None:
    wide = open_job(*job()).summary("counters-wide")
    assert {field.name: field.unit for field in wide.fields}["waves"] == "waves"
    assert wide.arrow().schema.field("waves").metadata[b"unit"] == b"waves"


def test_without_counters_it_says_so(open_job: OpenJob) -> None:
    with pytest.raises(RocpdError, match="no counter values"):
        open_job(TraceBuilder().kernel("a", 1, 2)).summary("counters")
