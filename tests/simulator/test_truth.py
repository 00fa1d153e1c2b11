"""What is planted can be found again: links, nesting, clocks, collectives, the straggler, the slow step, memory."""

from __future__ import annotations

from itertools import pairwise

import apsw
import numpy as np
import pytest

from rocpd.simulator import PROFILES, JobOptions, plan, simulate
from rocpd.simulator.job_plan import JobPlan
from rocpd.simulator.options import Plant
from tests.simulator.jobs import read, rows

Job = tuple[JobPlan, list[apsw.Connection]]


@pytest.fixture(scope="module", params=PROFILES)
def job(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[JobPlan, list[apsw.Connection]]:
    """A job of four ranks on two nodes."""
    options = JobOptions(tmp_path_factory.mktemp("job"), nodes=2, steps=20, seed=7, profile=request.param)
    return plan(options), [read(path) for path in simulate(options)]


def test_work_is_linked_to_the_call_that_launched_it(job: Job) -> None:
    for connection in job[1]:
        linked = """SELECT COUNT(*), COUNT(R.id), SUM(W.start >= R.end), SUM(W.tid = R.tid),
                SUM(W.parent_stack_id = W.stack_id)
            FROM (SELECT stack_id, parent_stack_id, start, tid FROM kernels
                UNION ALL SELECT stack_id, parent_stack_id, start, tid FROM memory_copies) W
            LEFT JOIN regions R USING (stack_id)"""
        (counts,) = rows(connection, linked)
        assert len(set(counts)) == 1


def test_regions_nest_inside_their_parents(job: Job) -> None:
    for connection in job[1]:
        sql = """SELECT COUNT(*) FROM regions C LEFT JOIN regions P ON P.stack_id = C.parent_stack_id
            WHERE C.parent_stack_id AND NOT (P.start <= C.start AND C.end <= P.end AND P.tid = C.tid) IS TRUE"""
        assert rows(connection, sql) == [(0,)]
        assert rows(connection, "SELECT COUNT(*) FROM regions WHERE parent_stack_id")[0][0] > 100
        assert rows(connection, 'SELECT COUNT(*) FROM regions WHERE "end" < start') == [(0,)]
        for (tid,) in rows(connection, "SELECT tid FROM threads"):
            spans = rows(connection, f'SELECT start, "end" FROM regions WHERE tid = {tid} ORDER BY start, "end" DESC')
            assert _nested(spans)


def _nested(spans: list[tuple[int, ...]]) -> bool:
    open_ends: list[int] = []
    for start, end in spans:
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        if open_ends and end > open_ends[-1]:
            return False
        open_ends.append(end)
    return True


def test_kernels_of_a_stream_follow_each_other(job: Job) -> None:
    for connection in job[1]:
        for (stream,) in rows(connection, "SELECT DISTINCT stream_id FROM kernels"):
            spans = rows(connection, f'SELECT start, "end" FROM kernels WHERE stream_id = {stream} ORDER BY start')
            assert all(end <= start for (_, end), (start, _) in pairwise(spans))
            assert all(start < end for start, end in spans)


def test_collectives_are_recorded_as_they_were(job: Job) -> None:
    """All ranks begin before one ends, and end within the jitter: each on the clock of its node."""
    facts, connections = job
    truth = facts.collectives()
    for rank, connection in zip(facts.ranks, connections, strict=True):
        times = rows(connection, """SELECT start, "end" FROM kernels WHERE name GLOB 'nccl*' ORDER BY start, "end" """)
        true = np.array([(c.starts[rank.number], c.ends[rank.number]) for c in truth], dtype=np.int64)
        assert np.array(times).tolist() == facts.nodes[rank.node].local(true).tolist()
    assert [collective.end for collective in facts.collectives()] == [max(c.ends) for c in truth]
    first, second = facts.nodes
    assert abs(first.offset_ns - second.offset_ns) > 10**9
    assert first.drift_ppm != second.drift_ppm


def test_straggler_and_slow_step(job: Job) -> None:
    facts, connections = job
    mean = "SELECT AVG(duration) FROM kernels WHERE name NOT GLOB 'nccl*'"
    means = [rows(connection, mean)[0][0] for connection in connections]
    assert facts.straggler_rank == int(np.argmax(means))
    assert max(means) / sorted(means)[-2] == pytest.approx(facts.factor(Plant.STRAGGLER), rel=0.1)
    steps = "SELECT name FROM markers WHERE name GLOB 'step [0-9]*' AND duration ORDER BY duration DESC"
    assert [rows(c, steps)[0] for c in connections] == [(f"step {facts.slow_step}",)] * 4
    waits = "SELECT AVG(duration) FROM kernels WHERE name GLOB 'nccl*'"
    waiting = [rows(connection, waits)[0][0] for connection in connections]
    assert facts.straggler_rank == int(np.argmin(waiting))


def test_memory_comes_back(job: Job) -> None:
    for connection in job[1]:
        held: dict[int, int] = {}
        peak = 0
        sql = """SELECT type, address, size FROM memory_allocations WHERE level != 'SCRATCH' ORDER BY start"""
        for kind, address, size in rows(connection, sql):
            if kind == "FREE":
                del held[address]
            else:
                assert address not in held
                held[address] = size
            peak = max(peak, sum(held.values()))
        assert held == {}
        assert peak > 2**28
        levels = rows(connection, "SELECT level, COUNT(*) FROM memory_allocations GROUP BY level")
        assert {level for level, _ in levels} == {"REAL", "SCRATCH", "VIRTUAL"}


def test_markers_name_what_runs_inside(job: Job) -> None:
    for connection in job[1]:
        regions = {name for (name,) in rows(connection, "SELECT DISTINCT region FROM kernels")}
        markers = {name for (name,) in rows(connection, "SELECT DISTINCT name FROM markers")}
        assert len(regions) >= 3
        assert regions <= markers | {""}
        marks = "SELECT COUNT(*), SUM(duration = 0) FROM markers WHERE function = 'roctxMarkA'"
        assert rows(connection, marks) == [(40, 40)]
