"""Balance, collectives and steps of a tiny job, worked out by hand."""

from __future__ import annotations

import tracemalloc
from types import SimpleNamespace
from typing import cast

import pytest

import rocpd
from rocpd.base import RocpdError
from rocpd.chart.model import Timeline
from rocpd.facts.rank import By
from rocpd.facts.regions import RankSteps
from rocpd.federate.open.identify import Rank
from rocpd.summary.communication.ranks import Steps
from rocpd.summary.reading import run
from tests.build import GPU2, TraceBuilder
from tests.conftest import OpenJob
from tests.summary.cells import cells

NCCL = "ncclDevKernel_Generic_1"


def job() -> list[TraceBuilder]:
    """Rank 1 computes longest; it comes last into the first collective, rank 2 into the second. Clocks differ."""
    ranks = []
    for number, (compute, first, second) in enumerate([(100, 80, 50), (170, 10, 70), (120, 60, 30)]):
        trace = TraceBuilder(number, host=f"n{number}", environment={"PMI_RANK": str(number)})
        base = 10_000 * (number + 1)
        trace.kernel("gemm", base, base + compute)
        trace.kernel(NCCL, base + compute, base + compute + first)
        trace.kernel(NCCL, base + 400 - second, base + 400)
        trace.region("roctxRangePushA", base, base + 200 + number, message="step 1")
        trace.region("roctxRangePushA", base + 200, base + 400 + 10 * number, message="step 2")
        ranks.append(trace)
    return ranks


def test_totals_and_imbalance(open_job: OpenJob) -> None:
    session = open_job(*job())
    assert cells(session, "ranks", "rank hostname kernels compute_ns communication_ns compute_by_mean") == [
        (0, "n0", 3, 100, 130, pytest.approx(100 / 130)),
        (1, "n1", 3, 170, 80, pytest.approx(170 / 130)),
        (2, "n2", 3, 120, 90, pytest.approx(120 / 130)),
    ]
    measures = cells(session, "imbalance", "measure mean_ns min_rank max_ns max_rank imbalance")
    assert ("compute_ns", 130.0, 0, 170, 1, pytest.approx(170 / 130)) in measures


def test_ranks_without_gpu_work_are_left_out_of_balance(open_job: OpenJob) -> None:
    """A launcher leaves a file, too: it has no kernel."""
    launcher = TraceBuilder(3, host="n0", environment={"PMI_RANK": "3"}).region("main", 1, 90_000)
    alone, session = open_job(*job()), open_job(*job(), launcher)
    for table in ("ranks", "imbalance", "collectives", "stragglers"):
        assert session.summary(table).fetchall() == alone.summary(table).fetchall()
    assert "ranks without GPU work are left out of balance: 3" in session.notes


def test_nobody_is_least_or_most_of_equals(open_job: OpenJob) -> None:
    session = open_job(*(TraceBuilder(number).kernel("gemm", 100, 200) for number in range(2)))
    assert cells(session, "imbalance", "measure min_rank max_rank imbalance") == [
        ("elapsed_ns", None, None, 1.0),
        ("busy_ns", None, None, 1.0),
        ("compute_ns", None, None, 1.0),
    ]


def test_who_waits_for_whom(open_job: OpenJob) -> None:
    session = open_job(*job())
    assert cells(session, "collectives", "name number ranks straggler wait_ns max_wait_ns min_ns max_ns") == [
        (NCCL, 1, 3, 1, 120, 70, 10, 80),
        (NCCL, 2, 3, 2, 60, 40, 30, 70),
    ]
    assert cells(session, "stragglers", "rank collectives times_last caused_wait_ns own_wait_ns") == [
        (1, 2, 1, 120, 40),
        (2, 2, 1, 60, 50),
        (0, 2, 0, 0, 90),
    ]
    assert cells(session, "waits", "waiter late collectives wait_ns max_wait_ns") == [
        (0, 1, 1, 70, 70),
        (2, 1, 1, 50, 50),
        (1, 2, 1, 40, 40),
        (0, 2, 1, 20, 20),
    ]


def test_steps_and_phases(open_job: OpenJob) -> None:
    session = open_job(*job())
    assert cells(session, "steps", "step number ranks mean_ns min_ns max_ns spread_ns slowest_rank") == [
        ("step 2", 1, 3, 210.0, 200, 220, 20, 2),
        ("step 1", 1, 3, 201.0, 200, 202, 2, None),
    ]
    assert cells(session, "phases", "phase ranks calls total_ns slowest_rank") == [("step #", 3, 6, 1233, 2)]
    assert cells(session, "steps", "step", step_marker="1$") == ["step 1"]


def test_a_host_that_begins_late_is_the_slow_one_though_its_marker_is_short() -> None:
    """Ranks 2 and 3 start 40 late; the others wait for them in theirs. Steps follow each other by 110 and 80."""
    ranks = [cast("Rank", SimpleNamespace(number=number, hostname=f"n{number // 2}")) for number in range(4)]
    steps = Steps(By.HOST)
    for rank in ranks:
        late = 40 * (rank.number // 2)
        of_rank = {("step", 1): (10 + late, 90 - late), ("step", 2): (120 + late // 4, 100)}
        steps.add(rank, RankSteps(of_rank, {("step", 1): 0, ("step", 2): 1}, {}), {})
    keys = {rank.number: (rank.hostname,) for rank in ranks}
    for longest, named in ({("step", 1): (2, 3)}, "n1"), ({("step", 1): (1, 2)}, None), (None, "n0"):
        first = next(row for row in steps.step_rows({}, longest, keys, {}) if row[1] == 1)
        assert (first[8], first[-3]) == (named, (110 + 80) / 2)


def test_the_heat_map_adds_up_to_busy_time(open_job: OpenJob) -> None:
    session = open_job(*job())
    slices = cells(session, "heat", "rank slice_ns busy_percent", bins=7)
    assert len(slices) == 21
    for rank, busy in cells(session, "ranks", "rank busy_ns"):
        assert sum(share * width / 100 for number, width, share in slices if number == rank) == pytest.approx(busy)


def test_the_heat_map_holds_no_rows(open_job: OpenJob) -> None:
    session, bins = open_job(*job()), 20_000
    session.summary("heat", bins=7)  # imports what it needs
    tracemalloc.start()
    table = session.summary("heat", bins=bins)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(table.fetchall()) == 3 * bins
    assert held < 3 * bins * 100


def test_the_chart_of_the_heat_map_adds_up_to_the_budget(open_job: OpenJob) -> None:
    """Copies that nothing hides are copies there, and what hides communication is compute."""
    trace = TraceBuilder().kernel("a", 100, 200).kernel(NCCL, 150, 260, stream=2).kernel("b", 300, 400)
    session = open_job(trace.copy(190, 290).copy(310, 320))
    chart = session.summary("heat", bins=7).chart()
    assert isinstance(chart, Timeline)
    compute, hidden, *times = (sum(part) * chart.slice for part in chart.shares[0])
    budget = dict(cells(session, "budget", "part time_ns", everything=True))
    parts = ("compute", "exposed communication", "exposed copies")
    assert [compute + hidden, *times] == pytest.approx([budget[part] for part in parts]) == [200, 60, 30]
    assert hidden == pytest.approx(50)


def test_hosts(open_job: OpenJob) -> None:
    """Ranks 0 and 1 on one host: sums of their loads, waits between hosts and inside one, steps of the longest rank."""
    ranks = job()
    for trace in ranks[:2]:
        trace.rows["rocpd_info_node"][0] |= {"hostname": "n0"}
    session = open_job(*ranks)
    assert cells(session, "ranks", "hostname kernels compute_ns communication_ns compute_by_mean", "host") == [
        ("n0", 6, 270, 210, pytest.approx(270 / 195)),
        ("n2", 3, 120, 90, pytest.approx(120 / 195)),
    ]
    assert cells(session, "imbalance", "measure min_hostname max_hostname", "host")[-1] == (
        "communication_ns",
        "n2",
        "n0",
    )
    assert cells(session, "collectives", "ranks straggler wait_ns", "host") == [(3, "n0", 120), (3, "n2", 60)]
    assert cells(session, "stragglers", "hostname collectives times_last caused_wait_ns own_wait_ns", "host") == [
        ("n0", 2, 1, 120, 70 + 20 + 40),
        ("n2", 2, 1, 60, 50),
    ]
    assert cells(session, "waits", "waiter late collectives wait_ns max_wait_ns", "host") == [
        ("n0", "n0", 1, 70, 70),
        ("n0", "n2", 1, 60, 40),
        ("n2", "n0", 1, 50, 50),
    ]
    assert cells(session, "steps", "step ranks mean_ns slowest_hostname", "host") == [
        ("step 2", 2, 215.0, "n2"),
        ("step 1", 2, 201.5, None),
    ]
    assert cells(session, "phases", "total_ns slowest_hostname", "host") == [(1233, "n0")]


def test_agents_and_streams(open_job: OpenJob) -> None:
    """One rank drives two GPUs, which wait for each other; one of them works on two streams."""
    trace = TraceBuilder().kernel("a", 100, 200).kernel("a", 150, 180, agent=GPU2, stream=1)
    trace.kernel(NCCL, 300, 400, stream=2).kernel(NCCL, 360, 400, agent=GPU2, stream=1)
    session = open_job(trace)
    assert cells(session, "ranks", "rank agent hostname elapsed_ns busy_ns compute_ns", "agent") == [
        (0, 1, "node0", 300, 200, 100),
        (0, 2, "node0", 250, 70, 30),
    ]
    assert cells(session, "ranks", "stream compute_ns communication_ns", "stream") == [
        (0, 100, 0),
        (1, 30, 40),
        (2, 0, 100),
    ]
    assert cells(session, "imbalance", "measure min_rank min_agent max_rank max_agent", "agent")[2] == (
        "compute_ns",
        0,
        2,
        0,
        1,
    )
    assert cells(session, "collectives", "group ranks straggler straggler_agent wait_ns", "agent") == [
        ("0", 1, 0, 2, 60)
    ]
    assert cells(session, "waits", "waiter waiter_stream late late_stream wait_ns", "stream") == [(0, 2, 0, 1, 60)]
    slices = cells(session, "heat", "agent busy_percent", "agent", bins=3)
    assert slices == [(1, 100.0), (1, 0.0), (1, 100.0), (2, 30.0), (2, 0.0), (2, 40.0)]


def test_heat_of_a_host_is_the_mean_of_its_ranks_with_gpu_work(open_job: OpenJob) -> None:
    """A launcher, for which nothing runs on a GPU, is left out as it is of the balance."""
    working = TraceBuilder(0).kernel("a", 100, 200), TraceBuilder(1).kernel("a", 100, 150)
    session = open_job(*working, TraceBuilder(2).region("f", 100, 200))
    assert cells(session, "heat", "hostname busy_percent", "host", bins=2) == [("node0", 100.0), ("node0", 50.0)]


def test_a_window_does_not_shift_the_numbers_of_steps(open_job: OpenJob) -> None:
    """The edge lies between the ends of the second step on the two ranks: the n-th stays the n-th of the trace."""
    ranks = []
    for number in range(2):
        trace = TraceBuilder(number, pid=100 + number).kernel("k", 1, 5)
        for step in range(4):
            at = 10 + 100 * step + 10 * number
            trace.region("roctxRangePushA", at, at + 90 + step, message="step")
        ranks.append(trace)
    session = open_job(*ranks).within(rocpd.Window(start=205, clip=True))
    assert sorted(cells(session, "steps", "number ranks spread_ns")) == [(2, 1, 0), (3, 2, 0), (4, 2, 0)]


def test_without_collectives_and_steps_it_says_so(open_job: OpenJob) -> None:
    session = open_job(TraceBuilder(0).kernel("a", 1, 5), TraceBuilder(1).kernel("a", 1, 9))
    for name in ("collectives", "steps", "phases"):
        with pytest.raises(RocpdError, match=f"{name}: nothing in the selection"):
            cells(session, name, "ranks")
    assert [table.name for table in run(session, "ranks")] == ["ranks", "imbalance", "heat"]
    assert "no communication kernels found" in session.notes
    assert "no step markers found; --step-marker REGEX says which markers are steps" in session.notes


def test_the_heat_map_of_a_window(open_job: OpenJob) -> None:
    session = open_job(TraceBuilder().kernel("a", 100, 200).kernel("b", 250, 300))
    session = session.within(rocpd.Window(150, 250, clip=True))
    assert cells(session, "heat", "at_ns slice_ns busy_percent", bins=2) == [(50, 50, 100.0), (100, 50, 0.0)]


def test_what_computes_at_once_counts_once(open_job: OpenJob) -> None:
    """On two streams, and on two agents, each for itself; kernels of ranks compare one by one."""
    session = open_job(
        *(
            TraceBuilder(number, environment={"PMI_RANK": str(number)})
            .region("roctxRangePushA", 100, 500, message="step 1")
            .kernel("a", 100, 200)
            .kernel("b", 150, 150 + 50 * (number + 1), stream=1)
            .kernel("a", 150, 180, agent=GPU2, stream=1)
            .kernel(NCCL, 300, 400, stream=2)
            for number in range(2)
        )
    )
    assert cells(session, "ranks", "rank busy_ns compute_ns kernel_sum_ns") == [(0, 230, 130, 280), (1, 280, 180, 330)]
    assert cells(session, "stragglers", "rank compute_by_peers") == [(0, 180 / 230), (1, 230 / 180)]


@pytest.mark.parametrize(
    ("grown", "expected"),
    [
        ("kernel", ("compute", 40_000, "b", 0)),
        ("kernels", ("compute", 60_000, None, 0)),
        ("copy", ("copy", 35_000, "MEMORY_COPY_HOST_TO_DEVICE", 0)),
        ("host", ("idle", 40_000, "hipMalloc", 0)),
    ],
)
def test_slow_steps_say_what_grew(grown: str, expected: tuple[object, ...], open_job: OpenJob) -> None:
    """Steps of 100 us: 40 of a, 20 of b, a copy of 5, idle for 35; the fourth one has more of one, or twice a and b."""
    trace, now = TraceBuilder(), 1_000_000
    for step in range(6):
        more = {kind: 40_000 if kind == grown and step == 3 else 0 for kind in ("kernel", "host")}
        copied = 40_000 if grown == "copy" and step == 3 else 5_000
        times = 2 if grown == "kernels" and step == 3 else 1
        a, b = now + 5_000, now + 5_000 + times * 40_000
        trace.region("hipLaunchKernel", now + 1_000, now + 3_000, stack=10 * step + 1)
        trace.kernel("a", a, b, stack=10 * step + 1)
        end = b + times * 20_000 + more["kernel"]
        trace.kernel("b", b, end)
        trace.copy(end, end + copied)
        until = end + copied + 30_000 + more["host"]
        if more["host"]:
            trace.region("hipMalloc", end + copied + 1_000, until)
        trace.region("roctxRangePushA", now, until, message=f"step {step}")
        now = until
    rows = {row[0]: row[1:] for row in cells(open_job(trace), "steps", "step grew grew_by_ns grew_in grew_rank")}
    assert rows["step 3"] == expected
    assert {values for step, values in rows.items() if step != "step 3"} == {(None, None, None, None)}
    by_host = open_job(trace).summary("steps", "host").columns
    assert {"grew_rank", "slowest_hostname"} <= {*by_host}  # steps grow rank by rank


def test_what_runs_at_once_grows_by_no_more_than_the_step(open_job: OpenJob) -> None:
    """Two streams have a kernel each at once; in the fourth step both take 40 us longer, and so does the step."""
    trace, now = TraceBuilder(), 1_000_000
    for step in range(6):
        more = 40_000 if step == 3 else 0
        for stream in (0, 1):
            trace.kernel("ab"[stream], now + 5_000, now + 65_000 + more, stream=stream + 1)
        trace.region("roctxRangePushA", now, now + 100_000 + more, message=f"step {step}")
        now += 100_000 + more
    rows = {row[0]: row[1:] for row in cells(open_job(trace), "steps", "step grew grew_by_ns")}
    assert rows["step 3"] == ("compute", 40_000)
