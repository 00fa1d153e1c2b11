"""What recordings lack: planted losses, one at a time, and what can't be looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

import rocpd
from rocpd.federate.merge import merge
from rocpd.replay.whatif import what_if
from rocpd.simulator import JobOptions, simulate
from tests.build import TraceBuilder
from tests.conftest import OpenJob
from tests.soak import sample
from tests.summary.cells import cells


def problems(session: rocpd.Session) -> list[str]:
    return [check for check, verdict in cells(session, "trace", "check verdict") if verdict == "problem"]


@pytest.mark.parametrize(
    ("plant", "expected"),
    [
        ("none", []),
        ("straggler", []),
        ("lost-rank", ["ranks"]),
        ("lost-events", ["lost events"]),
        ("lost-graph-kernels", ["graphs"]),
        ("lost-dispatches", ["dispatches"]),
        ("lost-launches", ["launches"]),
        ("no-hip-trace", ["HIP trace", "communicators"]),
    ],
)
def test_what_was_lost_is_reported_and_nothing_else(plant: str, expected: list[str], tmp_path: Path) -> None:
    files = simulate(JobOptions(tmp_path / "job", ranks=3, steps=3, seed=611, plant=plant))
    with rocpd.connect(files) as session:
        assert problems(session) == expected
        findings = session.summary("trace").findings
        assert len(findings) == max(1, len(expected))
        assert {finding.verdict for finding in findings} == ({"problem"} if expected else {"none"})


def test_counts(open_job: OpenJob) -> None:
    """Of three kernels one has no call, one starts before its call; of three calls one has no kernel."""
    trace = TraceBuilder(environment={"WORLD_SIZE": "2"})
    trace.region("hipLaunchKernel", 10, 20, stack=1).kernel("late", 30, 40, stack=1)
    trace.region("hipLaunchKernel", 50, 60, stack=2).kernel("early", 45, 55, stack=2)
    trace.region("hipLaunchKernel", 70, 80, stack=3).kernel("lonely", 90, 95, stack=9).kernel("never", 0, 9)
    rows = cells(open_job(trace), "trace", "check verdict missing of ranks")
    assert {row[0]: row[1:] for row in rows} == {
        "ranks": ("problem", 1, 2, 0),
        "kernel trace": ("none", 0, 1, 0),
        "HIP trace": ("none", 0, 1, 0),
        "lost events": ("unknown", 0, 0, 0),
        "graphs": ("unknown", 0, 0, 0),
        "links": ("none", 0, 3, 0),
        "dispatches": ("problem", 1, 3, 1),
        "launches": ("problem", 1, 3, 1),
        "order": ("problem", 1, 2, 1),
        "communicators": ("unknown", 0, 0, 0),
        "clocks": ("unknown", 0, 0, 0),
        "steps": ("unknown", 0, 0, 0),
        "times": ("problem", 1, 7, 1),
    }


def test_steps_that_a_rank_lacks_are_missing(open_job: OpenJob) -> None:
    """One rank ends four steps early; one has none; one lacks two, as a recording that begins and ends somewhere."""
    counts = {0: range(10), 1: range(6), 2: (), 3: range(1, 9)}
    ranks = []
    for number, steps in counts.items():
        rank = TraceBuilder(number).kernel("gemm", 10, 20)
        for step in steps:
            rank.region("roctxRangePushA", 100 + step * 10, 109 + step * 10, message=f"step {step}")
        ranks.append(rank)
    with open_job(*ranks) as session:
        assert ("steps", "problem", 4, 30, 1) in cells(session, "trace", "check verdict missing of ranks")
        (finding,) = (each for each in session.advise().findings if each.evidence.get("check") == "steps")
    assert "`rocpd hang " in (finding.action or "")


def test_a_process_that_launches_nothing_lacks_no_kernels(open_job: OpenJob) -> None:
    """A data loader sets the device; another rank launched kernels that were not recorded."""
    loader = TraceBuilder(0).region("hipSetDevice", 10, 20)
    assert "kernel trace" not in problems(open_job(loader))
    working = TraceBuilder(1).region("hipLaunchKernel", 10, 20, stack=1)
    rows = dict(cells(open_job(loader, working), "trace", "check missing"))
    assert rows["kernel trace"] == 1


def test_nothing_to_look_at_is_no_all_clear(open_job: OpenJob) -> None:
    session = open_job(TraceBuilder().region("roctxRangePushA", 1, 9, message="step 1"))
    assert {check: verdict for check, verdict in cells(session, "trace", "check verdict") if verdict != "unknown"} == {
        "times": "none"
    }


@pytest.mark.soak(2)
@pytest.mark.parametrize(("plant", "expected"), [("none", set()), ("lost-launches", {"launches"})])
def test_what_lies_outside_of_a_merged_window_is_not_missing(plant: str, expected: set[str], tmp_path: Path) -> None:
    files = simulate(JobOptions(tmp_path / "job", ranks=2, steps=3, seed=613, plant=plant))
    windows = [rocpd.Window(f"{low}%", f"{low + 7}%") for low in (2, 61)]
    windows += [rocpd.Window(step=1), rocpd.Window("30%", "50%", inclusive=False), rocpd.Window(start="70%", clip=True)]
    for number, window in enumerate(sample(windows, 2, plant != "none")):
        merged = tmp_path / f"{number}.db"
        with rocpd.connect(files, window=window) as session:
            merge(session, merged)
        with rocpd.connect(merged) as session:
            assert set(problems(session)) <= expected, window
            verdicts = dict(cells(session, "trace", "check verdict"))
        assert verdicts["HIP trace"] == verdicts["ranks"] == "none"


def test_ranks_that_are_left_out_are_not_missing(tmp_path: Path) -> None:
    files = simulate(JobOptions(tmp_path / "job", ranks=4, steps=1, seed=614, plant="lost-rank"))
    with rocpd.connect(files, filters=rocpd.Filters(ranks="1")) as session:
        rows = {row[0]: row[1:] for row in cells(session, "trace", "check verdict missing of")}
    assert rows["ranks"] == ("problem", 1, 4)


def test_links_are_missing_where_no_kernel_has_a_call(open_job: OpenJob) -> None:
    trace = TraceBuilder().region("hipLaunchKernel", 10, 20, stack=1).kernel("one", 30, 40, stack=2)
    rows = cells(open_job(trace), "trace", "check verdict missing of ranks")
    shown = {row[0]: row[1:] for row in rows if row[0] in ("links", "launches", "dispatches")}
    unknown = ("unknown", 0, 0, 0)
    assert shown == {"links": ("problem", 1, 1, 1), "launches": unknown, "dispatches": unknown}


def test_links_that_one_rank_lacks_are_not_missing_events_of_all(open_job: OpenJob) -> None:
    linked = TraceBuilder().region("hipLaunchKernel", 10, 20, stack=1).kernel("one", 30, 40, stack=1)
    unlinked = TraceBuilder().region("hipLaunchKernel", 10, 20, stack=1).kernel("one", 30, 40, stack=2)
    rows = cells(open_job(linked, unlinked), "trace", "check verdict missing of ranks")
    shown = {row[0]: row[1:] for row in rows if row[0] in ("links", "launches", "dispatches")}
    assert shown == {"links": ("problem", 1, 2, 1), "launches": ("none", 0, 1, 0), "dispatches": ("none", 0, 1, 0)}


def test_clocks_that_contradict_each_other_are_a_problem(tmp_path: Path) -> None:
    files = simulate(JobOptions(tmp_path / "job", ranks=4, nodes=2, steps=9, seed=11, plant="clock-step"))
    with rocpd.connect(files) as session:
        assert problems(session) == ["clocks"]


def test_a_clock_that_was_set_is_named_and_changes_no_blame(tmp_path: Path) -> None:
    """The jump is taken out of times on the common line: who is slow, and at what cost, is as with clocks that run."""
    said = {}
    for plants in ("slow-node", "clock-step,slow-node"):
        options = JobOptions(tmp_path / plants, ranks=8, nodes=4, steps=24, seed=71, plant=plants)
        with rocpd.connect(simulate(options)) as session:
            first = cells(session, "trace", "verdict meaning")[0]
            slow = session.summary("ranks").findings[0].text
            said[plants] = (*first, slow.partition(" costs ")[0], what_if(session).together.predicted_step_ns)
    right, jumped = said.values()
    assert jumped[2] == right[2] == "gpu-node-00 (ranks 0-1)"
    assert jumped[3] == pytest.approx(right[3], rel=0.005)
    assert jumped[0] == "problem"
    assert jumped[1].startswith("the clock of gpu-node-00 was set by +2.0 ms, 4")
    assert jumped[1].endswith(" ms after its first event: taken out of its times on the common line")


def test_a_clock_that_was_set_makes_no_step_longer_and_hides_none(tmp_path: Path) -> None:
    lasts, slow = {}, {}
    for plants in ("slow-step", "clock-step=9000,slow-step"):
        options = JobOptions(tmp_path / plants, ranks=4, nodes=2, steps=12, seed=7, plant=plants)
        with rocpd.connect(simulate(options)) as session:
            lasts[plants] = {row[0]: row[1:] for row in cells(session, "steps", "step mean_ns period_ns")}
            slow[plants] = [(each.rule, each.step) for each in session.advise().findings if each.rule == "step.outlier"]
    right, jumped = lasts.values()
    assert jumped.keys() == right.keys()
    for step, times in jumped.items():
        assert times == pytest.approx(right[step], rel=0.01)
    assert len(set(map(tuple, slow.values()))) == 1
    assert all(slow.values())


def test_a_clock_that_was_set_leaves_no_gpu_idle(tmp_path: Path) -> None:
    """Neither in tables nor in conclusions: what never was is no time of an agent."""
    idle, said = {}, {}
    parts: dict[str, dict[object, int]] = {}
    for plant in ("none", "clock-step=5000"):
        options = JobOptions(tmp_path / plant, ranks=8, nodes=2, steps=10, seed=20300, plant=plant)
        with rocpd.connect(simulate(options)) as session:
            idle[plant] = {row[0]: row[1:] for row in cells(session, "idle", "cause idle_ns longest_ns")}
            parts[plant] = dict(session.sql("select part, sum(end - start) from agent_time group by part").fetchall())
            findings = [*session.summary("overview").findings, *session.advise().findings]
            said[plant] = [(each.rule, each.verdict) for each in findings if each.rule.startswith("gpu.")]
    assert idle["clock-step=5000"] == {cause: pytest.approx(each, rel=0.02) for cause, each in idle["none"].items()}
    assert parts["clock-step=5000"] == pytest.approx(parts["none"], rel=0.02)
    assert said["clock-step=5000"] == said["none"]


def test_nobody_knows_what_passes_between_steps_where_clocks_do_not_fit_together(tmp_path: Path) -> None:
    """Nothing says what the clock was set by, as no communicator is known: of pauses nothing is said."""
    options = JobOptions(tmp_path, ranks=4, nodes=2, steps=12, seed=3, rccl="none", plant="clock-step=9000")
    with rocpd.connect(simulate(options)) as session:
        assert set(cells(session, "steps", "period_ns")) == {None}
        rules = {finding.rule for finding in session.summary("overview").findings}
    assert "trace.clocks" in rules
    assert "step.pause" not in rules


def test_kernels_alone_are_a_kernel_trace(open_job: OpenJob) -> None:
    """Without calls of HIP there is a trace of kernels all the same."""
    rows = {row[0]: row[1:] for row in open_job(TraceBuilder().kernel("a", 10, 20)).summary("trace")}
    assert rows["kernel trace"][:3] == ("none", 0, 1)
    assert rows["HIP trace"][:3] == ("problem", 1, 1)
    assert rows["HIP trace"][-1].startswith("there are kernels and no calls of HIP or CUDA")


@pytest.mark.parametrize(("ranks", "count"), [("", (4, 6)), ("0", (3, 4)), ("1,2", (1, 2))])
def test_each_run_lacks_its_own_ranks(ranks: str, count: tuple[int, int], open_job: OpenJob) -> None:
    """A rank of a job of four, one of a job of two, and one that does not say; ranks that a filter leaves out exist."""
    runs = []
    for number, world in enumerate((4, 2, 0)):
        start, environment = 10_000 * number + 1, {"WORLD_SIZE": str(world)} if world else {}
        run = TraceBuilder(number, command=f"train {number}", environment=environment, life=(start, start + 9_000))
        runs.append(run.kernel("k", start + 10, start + 20))
    session = open_job(*runs)
    assert session.runs == 3
    chosen = session.where(rocpd.Filters(ranks=ranks)) if ranks else session
    assert ("ranks", *count) in cells(chosen, "trace", "check missing of")
