"""Regions by name: what runs inside itself counts once, and the sums are those of the tree."""

from __future__ import annotations

from random import Random

import rocpd
from tests.build import TraceBuilder
from tests.conftest import OpenJob, private
from tests.summary.cells import cells

COLUMNS = "name calls cpu_ns cpu_self_ns gpu_ns gpu_self_ns"


def test_a_function_inside_itself_counts_once(open_job: OpenJob) -> None:
    """f 0-100 holds f 10-60, which holds g 20-30, which launches 7 ns; the outer f launches 5 ns."""
    trace = TraceBuilder().region("f", 1, 101, stack=1).region("f", 11, 61, stack=2).region("g", 21, 31, stack=3)
    trace.kernel("k", 200, 207, stack=3).kernel("k", 300, 305, stack=1)
    assert cells(open_job(trace), "functions", COLUMNS) == [("f", 2, 100, 90, 12, 5), ("g", 1, 10, 10, 7, 7)]


def test_it_is_calls_with_an_option(open_job: OpenJob) -> None:
    """The old name says in one line what it is now; both have the same rows, in Python and in SQL."""
    trace = TraceBuilder().region("f", 1, 101, stack=1).region("g", 21, 31, stack=3).region("g", 41, 42, stack=4)
    session = open_job(trace.kernel("k", 200, 207, stack=3))
    old = session.summary("functions", "agent")
    assert session.notes == ["`functions` is `calls --flat`"]
    new = session.summary("calls", "agent", flat=True)
    assert (new.columns, new.fetchall()) == (old.columns, old.fetchall())
    sql = "SELECT name, calls, cpu_self_ns, gpu_ns FROM summary.{}"
    rows = [session.execute(sql.format(name)).fetchall() for name in ("functions", "calls('all', 1)")]
    assert rows[0] == rows[1] == [("f", 1, 89, 7), ("g", 2, 11, 7)]


def test_touching_and_crossing_ranges_keep_their_time(open_job: OpenJob) -> None:
    """a touches b; c crosses b."""
    trace = TraceBuilder().region("a", 1, 11, stack=1).region("b", 11, 31, stack=2).region("c", 21, 41, stack=3)
    rows = cells(open_job(trace), "functions", "name cpu_ns cpu_self_ns")
    assert rows == [
        ("b", 20, 20),
        ("c", 20, 20),
        ("a", 10, 10),
    ]


def test_threads_of_a_rank_are_one(open_job: OpenJob) -> None:
    trace = TraceBuilder().region("f", 1, 11, tid=5, stack=1).region("f", 1, 21, tid=6, stack=2)
    assert cells(open_job(trace), "functions", "rank name calls cpu_ns", by="rank") == [(0, "f", 2, 30)]


def test_own_times_are_those_of_the_tree(open_job: OpenJob) -> None:
    """Ranges that lie anyhow, on three threads."""
    chance, trace = Random(3), TraceBuilder()
    for stack in range(1, 400):
        start, length = chance.randrange(1, 5000), chance.randrange(0, 400)
        trace.region(chance.choice("abcdef"), start, start + length, tid=chance.randrange(5, 8), stack=stack)
        trace.kernel("k", 9000, 9000 + stack, stack=stack)
    session = open_job(trace)
    sums: dict[str, list[int]] = {}
    for name, *times in cells(session, "calls", "name calls cpu_self_ns gpu_self_ns"):
        sums[name] = [so_far + time for so_far, time in zip(sums.get(name, [0, 0, 0]), times, strict=True)]
    rows = cells(session, "functions", "name calls cpu_self_ns gpu_self_ns")
    assert {name: times for name, *times in rows} == sums


def test_rpds_own_call_stacks() -> None:
    """Where ranges nest well, RPD's tables of inclusive time have the same."""
    (packed,) = private("rpd/mytrace.rpd.gz", 1)
    with rocpd.connect(packed) as session:
        rows = {name: times for name, *times in cells(session, "functions", "name calls cpu_ns gpu_ns")}
    assert rows["generate"] == [1, 456_763_032, 416_625_081]
    assert rows["execute_model"] == [22, 425_438_149, 414_666_154]
