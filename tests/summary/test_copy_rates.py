"""Rates of copies, worked out by hand and against pandas."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import rocpd
from rocpd.base import RocpdError
from rocpd.simulator import JobOptions, simulate
from tests.build import CPU, GPU, GPU2, TraceBuilder
from tests.conftest import OpenJob
from tests.summary.cells import cells

MIB = 1 << 20


def test_sizes_and_pairs(open_job: OpenJob) -> None:
    """An edge belongs to the class below it; an invalid time has no rate, nor has a copy that takes no time."""
    trace = TraceBuilder().copy(100, 200, size=4096).copy(200, 300, size=4097).copy(300, 300, size=1)
    trace.copy(1000, 1000 + 2 * MIB, size=2 * MIB).copy(0, 50, size=MIB).copy(9000, 9000 + 8 * MIB, size=4 * MIB)
    trace.copy(7, 7 + 4 * MIB, size=4 * MIB, src=GPU, dst=GPU2)
    session = open_job(trace)
    gib = 1e9 / 2**30
    assert cells(session, "copy-sizes", "size copies bytes total_ns gib_per_s p5_gib_per_s max_gib_per_s") == [
        (
            "up to 4 KiB",
            2,
            4097,
            100,
            pytest.approx(40.97 * gib),
            pytest.approx(40.96 * gib),
            pytest.approx(40.96 * gib),
        ),
        ("4 KiB to 64 KiB", 1, 4097, 100, pytest.approx(40.97 * gib), *[pytest.approx(40.97 * gib)] * 2),
        ("1 MiB to 16 MiB", 3, 10 * MIB, 14 * MIB, *[pytest.approx(x * gib) for x in (10 / 14, 0.55, 1.0)]),
    ]
    assert cells(session, "copy-pairs", "source destination copies bytes") == [
        ("CPU 0", "GPU 0", 2, 6 * MIB),
        ("GPU 0", "GPU 1", 1, 4 * MIB),
    ]
    assert cells(session, "slowest-copies", "duration_ns bytes source", top=2) == [
        (8 * MIB, 4 * MIB, "CPU 0"),
        (4 * MIB, 4 * MIB, "GPU 0"),
    ]
    assert "1 memory copies left out: invalid timestamps (start 0, or end before start)" in session.notes


def test_agents_divide_nothing(open_job: OpenJob) -> None:
    with pytest.raises(RocpdError, match="copy-sizes is not divided by agent"):
        open_job(TraceBuilder().copy(1, 2, src=CPU)).summary("copy-sizes", by="agent")


@pytest.mark.parametrize("plant", ["none", "pageable-copies"])
def test_against_pandas(plant: str, tmp_path: Path) -> None:
    files = simulate(JobOptions(tmp_path / "job", ranks=3, nodes=2, steps=3, seed=733, plant=plant))
    with rocpd.connect(files) as session:
        copies = session.sql("SELECT name, size, duration, rank FROM memory_copies").df()
        copies["class"] = pd.cut(
            copies["size"], [-1, 4 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20, 1 << 60], labels=False
        )
        theirs = [
            (name, len(group), int(group["size"].sum()), int(group["duration"].sum()))
            for (name, _), group in copies.groupby(["name", "class"])
        ]
        assert cells(session, "copy-sizes", "name copies bytes total_ns", everything=True) == theirs
        for by in ("rank", "host"):
            assert sum(cells(session, "copy-sizes", "total_ns", by, everything=True)) == copies["duration"].sum()
        rates = copies[copies["name"] == "MEMORY_COPY_HOST_TO_DEVICE"]
        middle = (rates["size"] * 1e9 / rates["duration"])[rates["size"] == 8 * MIB].median() / 2**30
        shown = cells(session, "copy-sizes", "name size median_gib_per_s", everything=True)
        assert {row[:2]: row[2] for row in shown}["MEMORY_COPY_HOST_TO_DEVICE", "1 MiB to 16 MiB"] == pytest.approx(
            middle
        )


def test_a_damaged_size_is_no_rate_below_others(open_job: OpenJob) -> None:
    """2^62 bytes in a nanosecond are more bytes per second than 64 bits hold."""
    session = open_job(TraceBuilder().copy(10, 11, size=1 << 62).copy(20, 21, size=1 << 30))
    [(middle, fastest)] = cells(session, "copy-pairs", "median_gib_per_s max_gib_per_s")
    assert fastest >= middle > 1e9


def test_copies_per_step_are_those_of_ranks_with_steps(open_job: OpenJob) -> None:
    """Two in each of four steps; those of a rank without steps make them no more."""
    first = TraceBuilder(0)
    for step in range(1, 5):
        at = 100 * step
        first.region("roctxRangePushA", at, at + 100, message=f"step {step}").copy(at, at + 9).copy(at + 20, at + 29)
    second = TraceBuilder(1, pid=17).copy(100, 109).copy(200, 209).copy(300, 309).copy(400, 409)
    assert cells(open_job(first, second), "copy-calls", "copies copies_per_step") == [(12, 2.0)]


def test_the_time_of_a_call_counts_once_however_many_copies_it_makes(open_job: OpenJob) -> None:
    """One call makes three copies, of two sizes, and returns before the last one is done."""
    trace = TraceBuilder().region("hipMemcpyAsync", 10, 110, stack=7)
    for start, end, size in ((20, 40, 8), (40, 60, 8), (60, 200, 8192)):
        trace.copy(start, end, size=size, stack=7)
    trace.region("hipMemcpyAsync", 300, 310, stack=8).copy(305, 400, size=8, stack=8)
    assert cells(open_job(trace), "copy-calls", "size copies copy_ns api_ns waiting_copies waited_ns") == [
        ("up to 4 KiB", 3, 135, 110, 2, 100),
        ("4 KiB to 64 KiB", 1, 140, 0, 0, 0),
    ]
