"""Facts as tables of SQL: rows worked out by hand, and laws over simulated jobs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import rocpd
from rocpd.simulator import JobOptions, simulate
from tests.build import TraceBuilder
from tests.conftest import OpenJob
from tests.facts.sums import assert_partition, assert_same_sums
from tests.members import Member
from tests.soak import paired, sized
from tests.summary.cells import cells

pytestmark = pytest.mark.soak(1.5)  # on jobs that are longer there


def small() -> TraceBuilder:
    """Two steps of 100 after one of 400: compute 10-40, communication 30-60, then idle until the call returns."""
    trace = TraceBuilder()
    for step, (at, length) in enumerate([(100, 400), (500, 100), (600, 100)]):
        trace.region("roctxRangePushA", at, at + length, message=f"step {step}")
        trace.region("hipLaunchKernel", at + 2, at + 8, stack=step + 1).kernel("gemm", at + 10, at + 40, stack=step + 1)
        trace.kernel("ncclDevKernel_Generic_1", at + 30, at + 60)
    return trace


def test_agent_time(open_job: OpenJob) -> None:
    columns = "part, cause, what, hides, step, counts, start, duration"
    rows = open_job(small()).sql(f"SELECT {columns} FROM agent_time WHERE counts ORDER BY start").fetchall()
    assert rows[:3] == [
        ("idle", "launching", None, None, 1, 1, 500, 2),
        ("idle", "launching", "hipLaunchKernel", None, 1, 1, 502, 6),
        ("idle", "launched, not started", None, None, 1, 1, 508, 2),
    ]
    compute = [row for row in rows if row[0] == "compute"]
    assert compute == [
        ("compute", None, "gemm", None, 1, 1, 510, 20),
        ("compute", None, "gemm", "communication", 1, 1, 530, 10),
        ("compute", None, "gemm", None, 2, 1, 610, 20),
        ("compute", None, "gemm", "communication", 2, 1, 630, 10),
    ]
    assert sum(row[-1] for row in rows) == 200


def test_operations(open_job: OpenJob) -> None:
    sql = "SELECT kind, name, step, marker, delay, duration, exposed, hidden FROM operations ORDER BY start LIMIT 2"
    assert open_job(small()).sql(sql).fetchall() == [
        ("compute", "gemm", 0, "step #", 2, 30, 30, 0),
        ("communication", "ncclDevKernel_Generic_1", 0, "step #", None, 30, 20, 10),
    ]


def test_launches(open_job: OpenJob) -> None:
    sql = "SELECT start, end, duration, operations, started, delay, ended, gpu_time FROM launches"
    assert open_job(small()).sql(sql).fetchall()[0] == (102, 108, 6, 1, 110, 2, 140, 30)


def test_nested_calls(open_job: OpenJob) -> None:
    sql = "SELECT name, depth, step, duration, exclusive FROM nested_calls ORDER BY start LIMIT 2"
    assert open_job(small()).sql(sql).fetchall() == [("step 0", 0, 0, 400, 394), ("hipLaunchKernel", 1, 0, 6, 6)]


def test_rank_steps(open_job: OpenJob) -> None:
    sql = "SELECT step, marker, is_warm_up, start, duration FROM rank_steps"
    assert open_job(small()).sql(sql).fetchall() == [
        (0, "step 0", 1, 100, 400),
        (1, "step 1", 0, 500, 100),
        (2, "step 2", 0, 600, 100),
    ]


@pytest.fixture(scope="module", params=[False, True], ids=["sound", "damaged"])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[rocpd.Session]:
    options = JobOptions(
        tmp_path_factory.mktemp("job"), ranks=4, nodes=2, steps=sized(4, 6), seed=1207, faults=request.param
    )
    with rocpd.connect(simulate(options)) as opened:
        yield opened


PARTS = ["all", "window", "clipped", "kernels", "ranks"]


@pytest.fixture(params=PARTS)
def part(request: pytest.FixtureRequest, session: rocpd.Session) -> rocpd.Session:
    """A selection of the job."""
    return {
        "all": lambda: session,
        "window": lambda: session.within(rocpd.Window("20%", "70%")),
        "clipped": lambda: session.within(rocpd.Window("20%", "70%", clip=True)),
        "kernels": lambda: session.where(rocpd.Filters(kernel="Cijk|nccl")),
        "ranks": lambda: session.where(rocpd.Filters(ranks="1,2")),
    }[request.param]()


@pytest.mark.soak(3)
@pytest.mark.parametrize(("part", "everything"), paired(PARTS, [False, True]), indirect=["part"])
def test_every_surface_has_the_same_sums(part: rocpd.Session, everything: bool) -> None:
    """agent_time, budget, gpu-time, overlap and idle of one selection are equal to the nanosecond."""
    assert_same_sums(part, everything=everything)


def test_the_overview_of_traces_has_the_same_sums(tmp_path: Path) -> None:
    """Its slices bridge short pauses, and say how long what they show really takes."""
    with rocpd.connect(simulate(JobOptions(tmp_path, ranks=2, steps=3, seed=1208))) as whole:
        clipped = whole.within(rocpd.Window("20%", "70%", clip=True))
        for number, part in enumerate((whole, clipped, whole.where(rocpd.Filters(kernel="Cijk|nccl")))):
            (path,) = part.convert("json", tmp_path / f"trace{number}")
            shown: Counter[str] = Counter()
            for event in json.loads(path.read_text(encoding="utf-8"))["traceEvents"]:
                if "time_ns" in event.get("args", {}):
                    shown[event["name"].replace("hidden communication", "compute")] += int(event["args"]["time_ns"])
            budget = dict(cells(part, "budget", "part time_ns", everything=True))
            assert shown == Counter({name: time for name, time in budget.items() if time and name != "idle"})


def test_the_time_of_agents_is_divided_without_gap_or_overlap(part: rocpd.Session) -> None:
    assert_partition(part)


def test_operations_have_the_time_that_agents_spend_on_them(part: rocpd.Session) -> None:
    rows = part.sql("SELECT count(*), sum(duration), sum(exposed), sum(hidden) FROM operations").fetchall()
    count, duration, exposed, hidden = rows[0]
    assert exposed + hidden == duration
    assert count <= sum(
        part.sql(f"SELECT count(*) FROM {view}").fetchall()[0][0] for view in ("kernels", "memory_copies")
    )


def test_steps_are_those_of_the_summary(session: rocpd.Session) -> None:
    """The same steps are warm-up in SQL and in the summary."""
    in_sql = set(session.sql("SELECT marker FROM rank_steps WHERE is_warm_up").fetchall())
    assert in_sql == {(step,) for step, is_warm in cells(session, "steps", "step is_warm_up") if is_warm}


def test_one_rank_is_read_alone(session: rocpd.Session) -> None:
    whole = session.sql("SELECT * FROM agent_time").fetchall()
    assert session.sql("SELECT * FROM agent_time WHERE rank = 2").fetchall() == [row for row in whole if row[-2] == 2]


def late() -> list[Member]:
    """Two ranks with two collectives that end together: rank 1 comes 100 us later to the first, 40 to the other."""
    starts = [(100_000, 400_000), (200_000, 440_000)]
    return [
        Member(number).collective(first, 300_000).collective(second, 600_000)
        for number, (first, second) in enumerate(starts)
    ]


def test_collective_members(open_job: OpenJob) -> None:
    sql = "SELECT number, ranks, rank, arrival, wait, transfer, duration, is_last FROM collective_members"
    assert open_job(*late()).sql(sql).fetchall() == [
        (1, "0-1", 0, 0, 100_000, 100_000, 200_000, 0),
        (2, "0-1", 0, 0, 40_000, 160_000, 200_000, 0),
        (1, "0-1", 1, 100_000, 0, 100_000, 100_000, 1),
        (2, "0-1", 1, 40_000, 0, 160_000, 160_000, 1),
    ]


def test_collective_waits(open_job: OpenJob) -> None:
    sql = "SELECT collective, rank, late_rank, wait FROM collective_waits"
    assert open_job(*late()).sql(sql).fetchall() == [(1, 0, 1, 100_000), (2, 0, 1, 40_000)]


def test_memory_use(open_job: OpenJob) -> None:
    trace = TraceBuilder().region("hipMalloc", 10, 20, stack=1).alloc(12, 18, size=64, address=4096, stack=1)
    trace.alloc(30, 31, size=16, address=8192).alloc(40, 41, size=32, address=4096)
    trace.alloc(50, 51, kind="FREE", size=0, address=8192)
    sql = 'SELECT change, allocation_id, call, start, bytes, held, "until" FROM memory_use'
    assert open_job(trace).sql(sql).fetchall() == [
        ("allocated", 1, "hipMalloc", 12, 64, 64, 40),
        ("allocated", 2, None, 30, 16, 80, 50),
        ("given out again", 1, None, 40, -64, 16, 40),
        ("allocated", 3, None, 40, 32, 48, None),
        ("freed", 2, None, 50, -16, 32, 50),
    ]


def test_waiting_is_that_of_the_summary(part: rocpd.Session) -> None:
    members = part.sql("SELECT count(DISTINCT collective), sum(wait) FROM collective_members").fetchall()
    assert members == part.sql("SELECT count(*), sum(wait_ns) FROM collectives").fetchall()


def test_members_of_collectives_are_operations(session: rocpd.Session) -> None:
    """So that SQL says of each operation and size how much of it nothing hides."""
    sql = (
        "SELECT m.operation, m.bytes, count(*), sum(m.start = o.start), sum(o.exposed), sum(o.duration) "
        "FROM collective_members m JOIN operations o USING (rank, id) WHERE o.kind = 'communication' GROUP BY 1, 2"
    )
    rows = session.sql(sql).fetchall()
    members, communication = (
        session.sql(f"SELECT count(*) FROM {table}").fetchall()
        for table in ("collective_members", "operations WHERE kind = 'communication'")
    )
    assert {row[0] for row in rows} == {"all-reduce"}
    assert all(count == same for _, _, count, same, _, _ in rows)
    assert [(sum(row[2] for row in rows),)] == members == communication
    assert all(0 < exposed <= duration for *_, exposed, duration in rows)


def test_memory_is_that_of_the_summary(session: rocpd.Session) -> None:
    sql = "SELECT level, max(held), sum(bytes), sum(change = 'allocated') FROM memory_use GROUP BY rank, agent, level"
    summary = cells(session, "memory", "level peak_bytes held_bytes allocations")
    assert Counter(session.sql(sql).fetchall()) == Counter(row for row in summary if row[-1])
