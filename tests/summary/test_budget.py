"""What a step consists of: worked out by hand, and the sums of other tables on simulated jobs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import rocpd
from rocpd.base import RocpdError
from rocpd.simulator import JobOptions, simulate
from tests.build import GPU2, TraceBuilder
from tests.conftest import OpenJob
from tests.summary.cells import cells

PARTS = ["compute", "exposed communication", "exposed copies", "idle"]


def test_a_step(open_job: OpenJob) -> None:
    """In each of four steps of 100: compute 10-40, communication 30-60, a copy 50-70; the rest is idle."""
    trace = TraceBuilder().kernel("before", 1, 90)
    for step in range(1, 5):
        at = 100 * step
        trace.region("roctxRangePushA", at, at + 100, message=f"step {step}")
        trace.kernel("gemm", at + 10, at + 40).kernel("ncclDevKernel_Generic_1", at + 30, at + 60)
        trace.copy(at + 50, at + 70)
    session = open_job(trace)
    assert cells(session, "budget", "part time_ns per_step_ns percent") == [
        ("compute", 120, 30.0, 30.0),
        ("exposed communication", 80, 20.0, 20.0),
        ("exposed copies", 40, 10.0, 10.0),
        ("idle", 160, 40.0, 40.0),
    ]
    window = session.within(rocpd.Window(200, 250, clip=True))
    assert cells(window, "budget", "time_ns per_step_ns") == [(30, None), (10, None), (0, None), (10, None)]
    assert dict(cells(session, "budget", "part time_ns", everything=True))["compute"] == 89 + 120
    assert cells(session, "budget", "step part time_ns per_step_ns", "step")[4:7] == [
        (2, "compute", 30, 30.0),
        (2, "exposed communication", 20, 20.0),
        (2, "exposed copies", 10, 10.0),
    ]


def test_ranks_without_steps_are_in_no_step(open_job: OpenJob) -> None:
    """The second one counts as a whole, 1,000 of compute, and does not make steps of the first one longer."""
    first = TraceBuilder(0)
    for step in range(1, 5):
        at = 100 * step
        first.region("roctxRangePushA", at, at + 100, message=f"step {step}").kernel("gemm", at, at + 60)
    session = open_job(first, TraceBuilder(1, pid=17).kernel("gemm", 1000, 2000))
    assert cells(session, "budget", "time_ns per_step_ns") == [(1240, 60.0), (0, 0.0), (0, 0.0), (160, 40.0)]
    text = "1 of 2 ranks has no steps that repeat: of them all active time counts"
    assert [finding.text for finding in session.summary("budget").findings] == [text]
    assert text in [finding.text for finding in session.summary("overview").findings]
    cells(session, "idle", "idle_ns")
    assert session.notes == ["idle: in the 4 steps of 1 of 2 ranks; --all counts all active time", text]


@pytest.mark.parametrize(("steps", "time"), [(1, 1060), (2, 120), (3, 180)])
def test_two_steps_are_enough(steps: int, time: int, open_job: OpenJob) -> None:
    """PyTorch records three by default; one alone may be anything."""
    trace = TraceBuilder().kernel("start-up", 1, 1001)
    for step in range(1, steps + 1):
        at = 1000 + 100 * step
        trace.region("roctxRangePushA", at, at + 100, message=f"step {step}").kernel("gemm", at, at + 60)
    assert cells(open_job(trace), "budget", "time_ns")[0] == time


def test_an_agent_that_idles_throughout_a_window(open_job: OpenJob) -> None:
    """As in `gpu-time`: of two agents one does nothing from 100 to 200."""
    session = open_job(TraceBuilder().kernel("a", 10, 300).kernel("b", 20, 30, agent=GPU2))
    window = session.within(rocpd.Window(100, 200))
    assert dict(cells(window, "budget", "part time_ns")) == dict(zip(PARTS, (100, 0, 0, 100), strict=True))
    assert sum(cells(window, "gpu-time", "idle_ns")) == 100


def test_streams_are_refused(open_job: OpenJob) -> None:
    with pytest.raises(RocpdError, match="budget is not divided by stream"):
        open_job(TraceBuilder().kernel("a", 1, 2)).summary("budget", by="stream")


@pytest.mark.parametrize("faults", [False, True])
def test_parts_are_those_of_other_tables(faults: bool, tmp_path: Path) -> None:
    """Over the whole trace: compute, exposed parts and idle of `overlap` and `gpu-time`; divisions add up."""
    files = simulate(JobOptions(tmp_path / "job", ranks=3, nodes=2, steps=5, seed=621, faults=faults))
    with rocpd.connect(files) as session:
        whole = dict(cells(session, "budget", "part time_ns", everything=True))
        columns = "compute_ns exposed_communication_ns exposed_copy_ns"
        sums = [sum(column) for column in zip(*cells(session, "overlap", columns, everything=True), strict=True)]
        assert [whole[part] for part in PARTS] == [*sums, sum(cells(session, "gpu-time", "idle_ns", everything=True))]
        every = Counter(dict(cells(session, "budget", "part time_ns")))
        for by in ("rank", "host", "agent", "step", "marker"):
            divided = Counter[str]()
            for part, time in cells(session, "budget", "part time_ns", by):
                divided[part] += time
            assert divided == every


@pytest.mark.parametrize(
    ("window", "per_step"),
    [
        (rocpd.Window(step=1), 60.0),
        (rocpd.Window(start_marker="step 1", end_marker="step 2"), 65.0),
        (rocpd.Window(start="50ns", end="380ns"), None),
    ],
)
def test_in_a_window_of_steps_a_step_has_its_time(
    window: rocpd.Window, per_step: float | None, open_job: OpenJob
) -> None:
    """Four steps of 100 ns that compute 50, 60, 70 and 80 ns."""
    trace = TraceBuilder()
    for step in range(4):
        at = 10 + step * 100
        trace.region("roctxRangePushA", at, at + 100, message=f"step {step}").region(
            "launch", at, at + 5, stack=step + 1
        )
        trace.kernel("a", at + 10, at + 60 + 10 * step, stack=step + 1)
    rows = cells(open_job(trace).within(window), "budget", "part per_step_ns")
    assert dict(rows)["compute"] == per_step


def test_exposed_copies_have_the_rate_of_the_table_of_copies(open_job: OpenJob) -> None:
    """In two steps 2^30 bytes each in 0.25 s are 4 GiB/s in both; the upload of start-up does not count."""
    trace = TraceBuilder().copy(0, 1_000, size=2**30).kernel("a", 100_000_000, 200_000_000)
    for step, at in enumerate((500_000_000, 1_000_000_000)):
        trace.region("roctxRangePushA", at, at + 500_000_000, message=f"step {step}")
        trace.copy(at, at + 250_000_000, size=2**30).kernel("a", at + 250_000_000, at + 500_000_000)
    session = open_job(trace)
    assert cells(session, "copy-sizes", "copies median_gib_per_s") == [(2, 4.0)]
    texts = [finding.text for finding in session.summary("budget").findings]
    says = "50 % of GPU time is exposed copies, host to device, 4.0 GiB/s in the median for those of over 256 MiB"
    assert says in texts
    assert [finding.text for finding in session.summary("copies").findings] == [says]


@pytest.mark.parametrize(
    ("times", "says"),
    [
        (
            (10, 30, 30, 30),
            "25 % of GPU time is exposed communication: 57 % of it waits for others, 43 % transfers; ",
        ),
        (
            (10, 10, 30, 30),
            "20 % of GPU time is exposed communication: 48 % of it waits for others, 52 % transfers; ",
        ),
        (
            (30, 30, 30, 30),
            "30 % of GPU time is exposed communication: 0 % of it waits for others, 100 % transfers; ",
        ),
        ((30,), "30 % of GPU time is exposed communication: whether it waits for other ranks is not known; "),
    ],
)
def test_exposed_communication_is_transfer_or_waits(open_job: OpenJob, times: tuple[int, ...], says: str) -> None:
    """Each rank computes until its kernel of RCCL starts, which takes so long of 100, and hides a tenth of that."""
    ranks = [
        TraceBuilder(rank, pid=10 + rank)
        .kernel("gemm", 1000, 2000 - 10 * time)
        .kernel("ncclDevKernel_Generic_1", 2000 - 11 * time, 2000, stream=2)
        for rank, time in enumerate(times)
    ]
    session = open_job(*ranks)
    texts = [finding.text for finding in session.summary("overview").findings]
    assert [says] == [text[: len(says)] for text in texts if "exposed communication" in text]
    parts = cells(session, "exposed-parts", "time_ns")
    for table in ("budget", "overlap"):
        text = session.summary(table).findings[0].text
        assert text.startswith(says.partition(":")[0])
        assert ("; `rocpd summary exposed-communication` says how much of it waits" in text) == (len(times) > 1)
    assert sum(parts) == 10 * sum(times)
