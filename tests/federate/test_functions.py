"""SQL functions beside SQLite's own: the same on every number of files and in every strategy."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocpd.federate.run.attach import SampleDeviation
from tests.build import TraceBuilder
from tests.conftest import OpenJob


def deviation(values: list[object]) -> float | None:
    collected = SampleDeviation()
    for value in values:
        collected.step(value)
    return collected.final()


@given(st.lists(st.integers(-(2**62), 2**62) | st.floats(-1e9, 1e9), min_size=2, max_size=20))
def test_deviation(values: list[float]) -> None:
    result = deviation([None, *values, "text"])
    assert result == deviation(list(reversed(values)))
    assert result is not None
    assert math.isclose(result, statistics.stdev(values), rel_tol=1e-9, abs_tol=1e-9)


@pytest.mark.parametrize("values", [[], [1], [None, 3], [1, math.inf, 2], ["1", "2"]])
def test_no_deviation(values: list[object]) -> None:
    assert deviation(values) is None


def test_over_ranks(open_job: OpenJob) -> None:
    """Durations of 10, 20 and 60 ns on two ranks."""
    session = open_job(
        TraceBuilder(0).kernel("a", 100, 110).kernel("a", 200, 220), TraceBuilder(1).kernel("a", 100, 160)
    )
    assert session.execute("SELECT stddev(duration) FROM kernels").fetchall() == [(math.sqrt(700),)]
    assert session.execute("SELECT stddev(duration) FROM kernels", strategy="attached").fetchall() == [
        (math.sqrt(700),)
    ]


def test_the_name_of_agents_in_amds_documents(open_job: OpenJob) -> None:
    session = open_job(TraceBuilder(0).kernel("a", 1, 2), TraceBuilder(1).kernel("a", 1, 2))
    same = "SELECT id, guid, type, absolute_index, name, extdata FROM {} ORDER BY guid, id"
    assert session.execute(same.format("rocpd_info_agents")).fetchall() == (
        session.execute(same.format("rocpd_info_agent")).fetchall()
    )
