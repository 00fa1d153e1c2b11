"""The first answer names what was planted, fits a screen, and is the same however a job is stored."""

from __future__ import annotations

from pathlib import Path

import pytest

import rocpd
from rocpd.base import RocpdError
from rocpd.federate.merge import merge
from rocpd.simulator import JobOptions, plan, simulate
from tests.build import TraceBuilder
from tests.conftest import Cli, OpenJob
from tests.summary.cells import cells


def findings(files: tuple[Path, ...]) -> list[str]:
    with rocpd.connect(files) as session:
        return [finding.text for finding in session.summary("overview").findings]


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> JobOptions:
    return JobOptions(tmp_path_factory.mktemp("job"), ranks=6, nodes=2, steps=8, seed=47)


@pytest.fixture(scope="module")
def files(options: JobOptions) -> tuple[Path, ...]:
    return simulate(options)


def test_the_first_lines_name_the_straggler_and_the_slow_step(options: JobOptions, files: tuple[Path, ...]) -> None:
    truth = plan(options)
    job, straggler, lasting, *others = findings(files)
    assert job.startswith("6 ranks on 2 nodes; AMD Instinct MI300X; 8 steps, median ")
    assert straggler.startswith(f"rank {truth.straggler_rank} costs ")
    assert lasting.startswith("it lasts: ")
    (slow,) = (text for text in others if "is slow" in text)
    assert slow.startswith(f"step {truth.slow_step} is slow: ")
    assert ", all ranks alike: compute " in slow


@pytest.mark.parametrize(
    ("plant", "expected"),
    [
        ("none", ["no straggler", "no slow step"]),
        ("lost-overlap", ["communication does not overlap: compute hides"]),
        ("launch-bound", ["while the host launches"]),
        ("lost-rank", ["1 of 4 ranks is not among the files"]),
        ("leak", ["leak candidate: hipMalloc"]),
        ("slow-collectives", ["6 of 18 large collectives of ranks 0-3 are slow: "]),
    ],
)
def test_planted_facts_stand_in_the_first_ten_lines(plant: str, expected: list[str], tmp_path: Path) -> None:
    shown = findings(simulate(JobOptions(tmp_path / "job", ranks=4, nodes=2, steps=6, seed=48, plant=plant)))
    assert len(shown) <= 10
    assert [words for words in expected if not any(words in text for text in shown)] == []


def test_it_fits_a_screen(files: tuple[Path, ...], cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = cli("summary", *files).out.splitlines()
    tables = lines[lines.index("OVERVIEW") :]
    assert len(tables) <= 40


def test_a_merged_file_gives_the_same(files: tuple[Path, ...], tmp_path: Path) -> None:
    with rocpd.connect(files) as session:
        merge(session, tmp_path / "job.db")
    assert findings((tmp_path / "job.db",)) == findings(files)


def test_a_trace_without_gpu_work(open_job: OpenJob) -> None:
    """What there is: calls by domain."""
    session = open_job(TraceBuilder().region("hipInit", 1, 9).region("hipFree", 10, 14))
    assert cells(session, "overview", "domain calls total_ns") == [("HIP", 2, 12)]
    job, gpus = (finding.text for finding in session.summary("overview").findings[:2])
    assert job.startswith("1 rank on 1 node")
    assert gpus.startswith("no work of GPUs is recorded: record with `rocprofv3 --kernel-trace` ")
    with pytest.raises(RocpdError, match="nothing to summarise"):
        open_job(TraceBuilder(1)).summary("overview")


def test_a_rank_with_steps_and_without_gpu_work(open_job: OpenJob) -> None:
    """What there is: time by domain, then steps; no empty table."""
    rank = TraceBuilder()
    for step, end in enumerate((19, 29, 39, 59), 1):
        rank.region(f"step {step}", 10 * step, end, category="MARKER_CORE_RANGE_API")
    session = open_job(rank)
    assert cells(session, "overview", "domain calls total_ns") == [("MARKERS", 4, 46)]
    assert cells(session, "top-steps", "step max_ns")[0] == ("step 4", 19)
    with pytest.raises(RocpdError, match="top-kernels"):
        session.summary("top-kernels")


def test_steps_that_a_window_cuts_make_no_other_step_slow(open_job: OpenJob) -> None:
    """Whole steps take 10: what is left of the first and the last one is no measure for them."""
    rank = TraceBuilder()
    for step in range(1, 7):
        rank.region(f"step {step}", 10 * step, 10 * step + 10, category="MARKER_CORE_RANGE_API")
        rank.kernel("gemm", 10 * step, 10 * step + 10)
    session = open_job(rank).within(rocpd.Window(18, 62, clip=True))
    shown = cells(session, "steps", "step mean_ns over_median")
    assert shown == [*((f"step {step}", 10, 1.0) for step in (2, 3, 4, 5)), ("step 1", 2, None), ("step 6", 2, None)]
    texts = [finding.text for finding in session.summary("overview").findings]
    assert "4 steps, median 10 ns" in texts[0]
    assert "no slow step: none of 4 takes 1.2 times the median" in texts


@pytest.mark.parametrize(
    ("window", "text"),
    [
        ((0, 500), "GPUs ran nothing in this time"),
        ((0, 1010), "GPUs are idle 99 % of the time, 100 % of it before their first operation"),
        ((990, 1100), "GPUs are idle 9 % of the time, 100 % of it before their first operation"),
        ((1000, 1100), "GPUs are busy: idle 0.0 % of the time"),
    ],
)
def test_who_does_nothing_is_not_called_busy(window: tuple[int, int], text: str, open_job: OpenJob) -> None:
    trace = TraceBuilder().region("hipInit", 1, 900).kernel("a", 1000, 1200)
    session = open_job(trace).within(rocpd.Window(*window, clip=True))
    assert text in [finding.text for finding in session.summary("idle").findings]


def test_separate_runs_have_a_line_each(open_job: OpenJob) -> None:
    one = TraceBuilder(0, command="train a", life=(1, 900)).kernel("a", 100, 200)
    other = TraceBuilder(1, command="train b", life=(2000, 3000)).kernel("b", 2100, 2200).copy(2200, 2300)
    other.kernel("b", 2300, 2400)
    texts = [finding.text for finding in open_job(one, other).summary("overview").findings]
    assert texts[1:4] == [
        "run 0: 1 rank; 100 ns of GPUs: 100 % compute; train a",
        "run 1: 1 rank; 300 ns of GPUs: 67 % compute, 33 % exposed copies; train b",
        "`--by run` divides tables, `--rank` chooses the ranks of one run",
    ]


def test_time_between_steps_is_told_where_no_step_is_slow(open_job: OpenJob) -> None:
    """`diff --step 2` calls the step slow: it goes from start to start."""
    trace = TraceBuilder()
    for step, start in enumerate((0, 110, 220, 630, 740, 850)):
        trace.region(f"step {step}", 1000 + start, 1100 + start, category="MARKER_CORE_RANGE_API")
        trace.kernel("gemm", 1010 + start, 1090 + start)
    texts = [finding.text for finding in open_job(trace).summary("overview").findings]
    assert "310 ns pass between step 2 and the next one: 2.82 times the median step" in texts
    assert "no slow step: none of 6 takes 1.2 times the median" in texts
