"""Why agents are idle: worked out by hand, exact sums on simulated jobs, planted facts."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import rocpd
from rocpd.base import RocpdError
from rocpd.simulator import JobOptions, simulate
from rocpd.simulator.options import Plant
from tests.build import GPU2, TraceBuilder
from tests.conftest import OpenJob
from tests.summary.cells import cells

US = 1000


def times(session: rocpd.Session, everything: bool = False) -> dict[str, int]:
    return dict(cells(session, "idle", "cause idle_ns", everything=everything))


def test_every_cause(open_job: OpenJob) -> None:
    """Each operation ends 100 us before the next one starts; what the host does in between says why [us]."""
    trace = TraceBuilder().region("hipInit", 1 * US, 50 * US).kernel("first", 100 * US, 200 * US)
    trace.region("hipDeviceSynchronize", 150 * US, 260 * US).region("hipLaunchKernel", 270 * US, 280 * US, stack=1)
    trace.kernel("synchronised", 300 * US, 400 * US, stack=1)
    trace.region("hipMalloc", 410 * US, 450 * US).region("hsa_amd_memory_pool_allocate", 415 * US, 445 * US)
    trace.region("hipLaunchKernel", 460 * US, 495 * US, stack=2).kernel("allocated", 500 * US, 600 * US, stack=2)
    trace.region("hipMemcpy", 620 * US, 810 * US, stack=3).copy(700 * US, 800 * US, stack=3)
    trace.region("ncclAllReduce", 850 * US, 870 * US, category="RCCL_API").region("hipModuleLoad", 880 * US, 890 * US)
    trace.region("hipLaunchKernel", 895 * US, 900 * US, stack=4).kernel("loaded", 900 * US, 1000 * US, stack=4)
    trace.region("roctxRangePushA", 1000 * US, 1300 * US, message="load batch 7")
    trace.region("hipLaunchKernel", 1190 * US, 1200 * US, stack=5).kernel("late", 1200 * US, 1300 * US, stack=5)
    trace.kernel("no call", 1400 * US, 1500 * US).region("hipFree", 1500 * US, 1550 * US)
    session = open_job(trace)
    assert times(session) == {
        "synchronising call": 60 * US,
        "launching": ((10 + 10) + (10 + 35) + (40 + 10 + 5 + 5) + 10) * US,
        "launched, not started": (20 + 5) * US,
        "allocation or free": 40 * US,
        "blocking copy": (80 + 10) * US,
        "communication call": 20 * US,
        "module load": 10 * US,
        "host work": (10 + 20 + 190) * US,
        "unknown": 100 * US,
    }
    assert ("host work", "load batch #", 190 * US, 999 * US) in cells(session, "idle-calls", "cause name idle_ns at_ns")
    assert ("allocation or free", "hipMalloc", 40 * US, 409 * US) in cells(
        session, "idle-calls", "cause name idle_ns at_ns"
    )


def test_calls_that_wait_have_the_markers_around_them(open_job: OpenJob) -> None:
    """Of 40 us of synchronising three quarters lie in the forward pass [us]."""
    trace = TraceBuilder().region("roctxRangePushA", 1 * US, 900 * US, message="step 1").kernel("a", 100 * US, 200 * US)
    trace.region("roctxRangePushA", 205 * US, 245 * US, message="forward 3")
    trace.region("hipDeviceSynchronize", 210 * US, 240 * US)
    trace.region("hipLaunchKernel", 250 * US, 260 * US, stack=1).kernel("b", 300 * US, 400 * US, stack=1)
    trace.region("hipDeviceSynchronize", 410 * US, 420 * US)
    trace.region("hipLaunchKernel", 430 * US, 440 * US, stack=2).kernel("c", 500 * US, 600 * US, stack=2)
    rows = cells(open_job(trace), "idle-calls", "name idle_ns in_marker in_marker_percent")
    assert ("hipDeviceSynchronize", 40 * US, "step # / forward #", 75.0) in rows
    assert all(path is None for name, _, path, _ in rows if name != "hipDeviceSynchronize")


def test_threads_are_apart(open_job: OpenJob) -> None:
    """What counts is what the thread does that launches next; the other one synchronises all the time."""
    trace = TraceBuilder().kernel("a", 10, 20).kernel("b", 90, 100, stack=1)
    trace.region("hipDeviceSynchronize", 1, 200, tid=8).region("hipLaunchKernel", 70, 80, stack=1, tid=9)
    shown = times(open_job(trace))
    assert shown == {"host work": 50, "launching": 10, "launched, not started": 10}


def test_agents_that_start_later_and_end_earlier(open_job: OpenJob) -> None:
    """The job is active from 100 to 900, of which the second GPU has a kernel; what the host did before is start-up."""
    trace = TraceBuilder().region("hipInit", 1, 50).kernel("a", 100, 900).kernel("b", 300, 400, agent=GPU2)
    session = open_job(trace)
    expected = [(2, "finished", 500), (2, "not started", 200)]
    assert cells(session, "idle", "agent cause idle_ns", "agent") == expected
    assert cells(session, "gpu-time", "agent span_ns idle_ns") == [(1, 800, 0), (2, 800, 700)]


def test_agents_that_idle_throughout_a_window(open_job: OpenJob) -> None:
    trace = TraceBuilder().kernel("a", 100, 200).kernel("b", 100, 900, agent=GPU2).kernel("c", 800, 900)
    session = open_job(trace).within(rocpd.Window(300, 500, clip=True))
    assert cells(session, "idle", "agent cause idle_ns span_percent", "agent") == [(1, "unknown", 200, 100.0)]


def test_streams_are_refused(open_job: OpenJob) -> None:
    with pytest.raises(RocpdError, match="idle is not divided by stream"):
        open_job(TraceBuilder().kernel("a", 1, 2)).summary("idle", by="stream")


@pytest.fixture(scope="module", params=[False, True], ids=["sound", "damaged"])
def job(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    folder = tmp_path_factory.mktemp("idle")
    return simulate(JobOptions(folder, ranks=3, nodes=2, steps=5, seed=907, faults=request.param))


def test_causes_add_up(job: tuple[Path, ...]) -> None:
    """Idle and busy are the time that counts, for each agent and for any division."""
    with rocpd.connect(job) as session:
        idle = Counter[tuple[int, int]]()
        for number, agent, time in cells(session, "idle", "rank agent idle_ns", "agent", everything=True):
            idle[number, agent] += time
        busy = cells(session, "gpu-time", "rank agent busy_ns span_ns", everything=True)
        assert {(number, agent): idle[number, agent] + time for number, agent, time, _ in busy} == {
            (number, agent): span for number, agent, _, span in busy
        }
        by_cause = Counter(times(session, everything=True))
        for by in ("rank", "host", "agent", "step", "marker"):
            divided = Counter[str]()
            for cause, time in cells(session, "idle", "cause idle_ns", by, everything=True):
                divided[cause] += time
            assert divided == by_cause
            calls = Counter[str]()
            for cause, time in cells(session, "idle-calls", "cause idle_ns", by, everything=True):
                calls[cause] += time
            assert calls == by_cause


def test_idle_time_counts_where_the_rank_is(open_job: OpenJob) -> None:
    """A gap from 150 to 350 in the second step: 50 in forward, 100 in backward, 30 in no other range, 20 outside."""
    trace = TraceBuilder().kernel("k", 20, 150).kernel("k", 350, 360).region("f", 1, 5, tid=2)
    for text, start, end in (("step 1", 10, 100), ("step 2", 110, 330), ("forward", 120, 200), ("backward", 200, 300)):
        trace.region("roctxRangePushA", start, end, message=text)
    trace.region("roctxRangePushA", 150, 350, message="step of another thread", tid=2)
    session = open_job(trace)
    assert cells(session, "idle", "step cause idle_ns", "step", everything=True) == [
        (1, "not started", 10),
        (2, "unknown", 180),
        (None, "unknown", 20),
    ]
    by_marker = cells(session, "idle", "marker cause idle_ns", "marker", everything=True)
    assert [row for row in by_marker if row[1] == "unknown"] == [
        ("step #", "unknown", 30),
        ("step # / backward", "unknown", 100),
        ("step # / forward", "unknown", 50),
        (None, "unknown", 20),
    ]


def test_adjoining_windows_add_up(job: tuple[Path, ...]) -> None:
    with rocpd.connect(job) as session:
        whole = Counter(times(session, everything=True))
        parts: Counter[str] = Counter()
        for low in range(0, 100, 20):
            part = session.within(rocpd.Window(f"{low}%", f"{low + 20}%" if low < 80 else None, clip=True))
            parts += Counter(times(part))
    outside = ("not started", "finished")  # of the active part, but in the window
    assert {cause: time for cause, time in parts.items() if cause not in outside} == {
        cause: time for cause, time in whole.items() if cause not in outside
    }


@pytest.mark.parametrize(
    ("plant", "cause", "name"),
    [
        (Plant.SLOW_INPUT, "host work", "load batch"),
        (Plant.LAUNCH_BOUND, "launching", "between calls"),
        (Plant.MODULE_LOADS, "module load", "hipModuleLoadData"),
    ],
)
def test_planted_causes_come_first(plant: Plant, cause: str, name: str | None, tmp_path: Path) -> None:
    options = JobOptions(tmp_path / "job", ranks=2, steps=6, seed=908, plant=plant.value)
    with rocpd.connect(simulate(options)) as session:
        assert cells(session, "idle", "cause")[0] == cause
        (finding,) = session.summary("idle").findings
        assert finding.verdict == "problem"
        if name:
            assert cells(session, "idle-calls", "cause name")[0] == (cause, name)


@pytest.mark.parametrize("job", [False], indirect=True)
def test_what_filters_leave_out_is_a_cause_of_its_own(job: tuple[Path, ...]) -> None:
    """Idle time of the whole job keeps its causes; where only other kernels run, they are left out."""
    with rocpd.connect(job) as session:
        (whole,) = session.summary("idle").findings
        chosen = session.where(rocpd.Filters(kernel="nothing|Cijk"))
        (filtered,) = chosen.summary("idle").findings
        assert filtered.text == whole.text
        of_filtered = times(chosen)
        left_out = of_filtered.pop("left out")
        assert of_filtered == times(session)
        parts = [dict(cells(each, "budget", "part time_ns")) for each in (session, chosen)]
        assert left_out == parts[1]["idle"] - parts[0]["idle"] > 0


def test_steady_steps_are_the_default(open_job: OpenJob) -> None:
    """The first step takes 300, the others 100: it is warm-up; each step has a kernel of 30."""
    trace = TraceBuilder().region("hipInit", 1, 50)
    for step, (start, end) in enumerate([(100, 400), (400, 500), (500, 600), (600, 700), (700, 800)]):
        trace.region("roctxRangePushA", start, end, message=f"step {step}").kernel("k", end - 50, end - 20)
    session = open_job(trace.region("hipFree", 900, 1000))
    assert times(session) == {"unknown": 4 * 100 - 4 * 30 - 20, "finished": 20}
    assert session.notes == ["idle: in the 4 steps of each rank, without 1 of warm-up; --all counts all active time"]
    assert sum(times(session, everything=True).values()) == 800 - 350 - 5 * 30


def test_one_gap_that_is_most_of_the_idle_time_is_named(open_job: OpenJob) -> None:
    trace = TraceBuilder()
    for start in (100, 102, 104, 900, 902):
        trace.kernel(f"kernel_{start}", start * US, (start + 1) * US)
    (finding,) = open_job(trace).summary("idle").findings
    assert finding.text == (
        "GPUs are idle 99 % of the time; no calls are recorded that would say why; "
        "100 % of it is one gap of 795 us on rank 0, after kernel_104 and before kernel_900"
    )


@pytest.mark.parametrize(
    ("idle", "says"),
    [
        ((20, 1, 1, 1, 1), "; rank 0 20.0 %, half of the ranks 1.0 % or less"),
        ((20, 30, 1, 1, 1), "; host a 25.0 %, half of the ranks 1.0 % or less"),
        ((20, 1, 30, 1, 1), ""),
        ((4, 1, 1, 1, 1), ""),
    ],
)
def test_one_rank_or_host_that_is_idle_more_than_others_is_named(
    open_job: OpenJob, idle: tuple[int, ...], says: str
) -> None:
    """Hosts have two ranks, the last one has one; how long each rank is idle of 100."""
    ranks = [
        TraceBuilder(rank, pid=10 + rank, host="aabbc"[rank]).kernel("k", 100, 150).kernel("k", 150 + time, 200)
        for rank, time in enumerate(idle)
    ]
    (finding,) = open_job(*ranks).summary("idle").findings
    assert says in finding.text
    assert ("half of the ranks" in finding.text) == bool(says)


@pytest.mark.parametrize("ranks", [3, 9])
def test_by_rank_the_one_that_is_idle_most_is_named_with_its_whole(ranks: int, open_job: OpenJob) -> None:
    """Of 1,000 us each rank is idle 10 us more than the one before it; of many ranks the last is said, too."""
    traces = []
    for rank in range(ranks):
        half = (1000 - 100 - rank * 10) * US // 2
        traces.append(TraceBuilder(rank).kernel("a", US, US + half).kernel("a", 1001 * US - half, 1001 * US))
    session = open_job(*traces)
    (text,) = [each.text for each in session.summary("idle", by="rank").findings if each.rule == "gpu.idle_ranks"]
    shown = [f"rank {rank} ({10 + rank}.0 %, {100 + rank * 10} us)" for rank in reversed(range(ranks))]
    said = ", ".join(shown) if ranks == 3 else f"{', '.join(shown[:7])} … {shown[-1]}"
    assert text == f"idle most: {said}"
    assert not [each for each in session.summary("idle").findings if each.rule == "gpu.idle_ranks"]


def test_functions_of_the_thread_that_is_waited_for(open_job: OpenJob) -> None:
    """Of its samples those in idle time count, by its cause; another thread's do not [us]."""
    trace = TraceBuilder()
    for at, tid, stack in (
        (150, 16, ["memcpy", "load", "main"]), (250, 16, ["load", "load", "main"]), (280, 17, ["other", "main"]),
        (450, 16, ["hipDeviceSynchronize", "main"]), (550, 16, ["load", "main"]),
    ):  # fmt: skip
        trace.sample("Call stack", at * US, tid=tid, category="timer_sampling")
        trace.rows["rocpd_event"][-1].update(call_stack=json.dumps(stack), extdata='{"cpu_ns": 7000}')
    trace.kernel("a", 1 * US, 100 * US).region("hipLaunchKernel", 300 * US, 310 * US, stack=1)
    trace.kernel("b", 310 * US, 400 * US, stack=1).region("hipDeviceSynchronize", 400 * US, 490 * US)
    trace.region("hipLaunchKernel", 490 * US, 500 * US, stack=2).kernel("c", 500 * US, 600 * US, stack=2)
    rows = cells(open_job(trace), "idle-stacks", "cause function count total_ns self_ns percent")
    assert rows == [
        ("host work", "load", 2, 14 * US, 7 * US, 50.0),
        ("host work", "memcpy", 1, 7 * US, 7 * US, 50.0),
        ("host work", "main", 2, 14 * US, 0, 0.0),
        ("synchronising call", "hipDeviceSynchronize", 1, 7 * US, 7 * US, 100.0),
        ("synchronising call", "main", 1, 7 * US, 0, 0.0),
    ]


def test_the_call_in_which_most_gaps_begin_is_named(tmp_path: Path) -> None:
    """A queue of small copies waits to start, which alone says not for what."""
    rocpd.simulate(tmp_path, ranks=2, steps=6, seed=3, plant="small-copies=120")
    with rocpd.connect(sorted(tmp_path.glob("*.db"))) as session:
        first, *_ = session.summary("idle").findings
        begun = {name: share for name, share in cells(session, "idle-calls", "name begun_percent") if name}
    assert "waiting to start; gaps that begin in hipMemcpyAsync take " in first.text
    assert f" take {begun['hipMemcpyAsync']:.1f} % of the time" in first.text
