"""Separate runs in one folder: told from one job, divided by `--by run`, never compared as ranks of one."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import apsw
import pytest

import rocpd
from rocpd.federate.open import identify
from rocpd.federate.open.identify import Rank
from tests.build import TraceBuilder
from tests.conftest import Cli, OpenJob

EARLY, LATE = (100, 900), (1000, 1900)


def rank(number: int, life: tuple[int, int] = EARLY, **what: Any) -> TraceBuilder:
    """A process that runs one kernel while it lives; pids keep the order of numbers on a host."""
    return TraceBuilder(number, pid=10 + number, life=life, **what).kernel("gemm", life[0] + 10, life[1] - 10)


def mpi(number: int) -> dict[str, Any]:
    return {"extdata": {"mpi_rank": number}}


@pytest.mark.parametrize(
    ("job", "runs"),
    [
        ([rank(0), rank(1)], [0, 0]),
        ([rank(0), rank(1, LATE)], [0, 1]),
        ([rank(0), rank(1, LATE), rank(2, (850, 1050))], [0, 0, 0]),  # its life joins the others
        ([rank(0), rank(1, LATE), rank(2, LATE)], [0, 1, 1]),
        ([rank(0), rank(1, command="./other")], [0, 0]),  # a launcher and what it launches
        ([rank(0, host="a"), rank(1, LATE, host="b")], [0, 0]),  # clocks of machines don't compare
        ([rank(0, host="a"), rank(1, host="b", command="./other")], [0, 1]),
        ([rank(0, host="a", command="./app --port 7"), rank(1, host="b", command="./app --port 9")], [0, 0]),
        ([rank(0, host="a"), rank(1, LATE, host="a"), rank(2, host="b"), rank(3, LATE, host="b")], [0, 1, 0, 1]),
        ([rank(0, host="a"), rank(1, host="b"), rank(2, LATE, host="b")], [0, 0, 1]),
        ([rank(0, EARLY, **mpi(0)), rank(1, LATE, **mpi(1))], [0, 0]),  # MPI knows them as one job
        ([rank(0, EARLY, **mpi(0)), rank(1, LATE, **mpi(1)), rank(2, (300, 400), **mpi(0))], [0, 0, 0]),
        ([rank(0, EARLY, **mpi(0)), rank(1, LATE, **mpi(0))], [0, 1]),
        ([rank(0, host="a", **mpi(0)), rank(1, host="b", **mpi(0))], [0, 1]),
        ([rank(0), rank(1, (0, 0))], [0, 0]),  # nobody knows when it lived
    ],
)
def test_runs(job: list[TraceBuilder], runs: list[int], open_job: OpenJob) -> None:
    session = open_job(*job)
    assert [each.run for each in session.ranks] == runs
    assert session.info()["ranks"].columns[-1] == "run"
    assert [row[-1] for row in session.info()["ranks"]] == runs


@pytest.mark.parametrize(
    ("hours", "second", "runs"),
    [
        (1, {}, [0, 1]),
        (0.1, {}, [0, 0]),  # clocks of machines may differ by so much
        (1, mpi(1), [0, 0]),  # MPI knows them as one job: a clock had been set
    ],
)
def test_runs_of_two_machines_whose_clocks_show_the_date(
    hours: float, second: dict[str, Any], runs: list[int], open_job: OpenJob
) -> None:
    later = (1000 + int(hours * 3600e9), 2000 + int(hours * 3600e9))
    first = mpi(0) if second else {}
    job = [rank(0, host="a", machine="a", **first), rank(1, later, host="a", machine="b", **second)]
    for process in job:
        process.row("rocpd_metadata", id=9, tag="clock", value="CLOCK_REALTIME")
    assert [each.run for each in open_job(*job).ranks] == runs


@pytest.mark.parametrize(
    ("change", "first", "second", "runs"),
    [
        ("name = 'gfx1100'", {}, {}, [0, 1]),
        ("name = 'gfx1100'", mpi(0), mpi(1), [0, 0]),  # MPI knows them as one job
        ("name = 'gfx1100'", {}, mpi(1), [0, 0]),  # one that MPI knows may have any
        ("type = 'CPU'", {}, {}, [0, 0]),  # one of them sees no GPU
    ],
)
def test_machines_with_other_gpus_are_of_other_runs(
    change: str, first: dict[str, Any], second: dict[str, Any], runs: list[int], tmp_path: Path
) -> None:
    paths = [rank(n, host="ab"[n], **said).write(tmp_path / f"{n}.db") for n, said in enumerate((first, second))]
    with contextlib.closing(apsw.Connection(str(paths[1]))) as file:
        find = "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'rocpd_info_agent%'"
        ((table,),) = file.execute(find).fetchall()
        file.execute(f"UPDATE {table} SET {change} WHERE type = 'GPU'")
    with rocpd.connect(paths) as session:
        assert [each.run for each in session.ranks] == runs


@pytest.mark.parametrize(
    ("kernels", "later", "runs"),
    [
        ("gg", LATE, [0, 1]),
        ("gg", (850, 1000), [0, 0]),  # clocks that show one time are likely one
        ("nn", LATE, [0, 0]),
        ("gn", LATE, [0, 1]),
    ],
)
def test_machines_whose_files_name_no_command(
    kernels: str, later: tuple[int, int], runs: list[int], open_job: OpenJob
) -> None:
    job = [rank(n, (EARLY, later)[n], host="ab"[n], command=None) for n in (0, 1)]
    for process, kernel, (start, end) in zip(job, kernels, (EARLY, later), strict=True):
        process.kernel({"g": "gemm", "n": "ncclDevKernel_Generic_1"}[kernel], start + 10, end - 10)
    session = open_job(*job)
    assert [each.run for each in session.ranks] == runs
    assert session.summary("overview").findings[0].text.rpartition("; ")[2] == "AMD Instinct MI300X"  # no commands


def test_a_run_communicates_where_any_machine_does(open_job: OpenJob) -> None:
    """The second machine runs with the first one, and the third one communicates as the second one does."""
    lives = EARLY, EARLY, LATE
    job = [rank(n, lives[n], host="abc"[n], command=None) for n in range(3)]
    for process, kernel, (start, end) in zip(job, ("gemm", *["ncclDevKernel_Generic_1"] * 2), lives, strict=True):
        process.kernel(kernel, start + 10, end - 10)
    assert [each.run for each in open_job(*job).ranks] == [0, 0, 0]


def test_gpus_are_read_where_several_machines_know_no_mpi_rank(
    monkeypatch: pytest.MonkeyPatch, open_job: OpenJob
) -> None:
    asked: list[str] = []
    names_of = identify._names

    def spied(rank: Rank, base: str, *columns: str) -> list[tuple[str, ...]]:
        asked.append(base)
        return names_of(rank, base, *columns)

    monkeypatch.setattr(identify, "_names", spied)
    for job in ([rank(0), rank(1)], [rank(0, host="a", **mpi(0)), rank(1, host="b", **mpi(1))]):
        open_job(*job)
    assert asked == []
    open_job(rank(0, host="a"), rank(1, host="b"))
    assert asked == ["rocpd_info_agent"] * 2


def test_runs_do_not_depend_on_the_order_of_files(tmp_path: Path) -> None:
    job = [rank(0, host="a"), rank(1, LATE, host="a"), rank(2, host="b"), rank(3, LATE, host="b"), rank(4, host="b")]
    paths = [trace.write(tmp_path / f"{n}.db") for n, trace in enumerate(job)]
    with rocpd.connect(paths) as session, rocpd.connect(paths[::-1]) as turned:
        assert [each.run for each in session.ranks] == [each.run for each in turned.ranks] == [0, 1, 0, 1, 0]
        session.merge(tmp_path / "merged.db")
    with rocpd.connect(tmp_path / "merged.db") as merged:
        assert [each.run for each in merged.ranks] == [0, 1, 0, 1, 0]


def test_tables_are_divided_by_run_and_command(open_job: OpenJob) -> None:
    session = open_job(rank(0), rank(1), rank(2, LATE, command="./other"))
    by_run, by_command = (session.summary("kernels", by) for by in ("run", "command"))
    assert [row[:3] for row in by_run] == [(0, "gemm", 2), (1, "gemm", 1)]
    assert [row[:3] for row in by_command] == [("./app --steps 3", "gemm", 2), ("./other", "gemm", 1)]
    assert session.notes == []


def test_ranks_of_separate_runs_are_listed_but_not_measured_by_each_other(open_job: OpenJob) -> None:
    separate, one_job = open_job(rank(0), rank(1, LATE)), open_job(rank(0), rank(1))
    assert [row[-1] for row in separate.summary("ranks")] == [None, None]
    assert [row[-1] for row in one_job.summary("ranks")] == [1, 1]


def test_of_one_job_nothing_is_said(open_job: OpenJob) -> None:
    session = open_job(rank(0), rank(1))
    assert list(session.summary("imbalance", "run"))
    assert "separate" not in " ".join(session.notes)


@pytest.mark.parametrize("name", ["imbalance", "stragglers", "waits", "collectives", "communication", "steps"])
@pytest.mark.parametrize("by", [[], ["--by", "run"]], ids=["", "by run"])
def test_separate_runs_are_not_compared(name: str, by: list[str], cli: Cli, tmp_path: Path) -> None:
    for number, life in enumerate((EARLY, LATE)):
        rank(number, life).write(tmp_path / f"{number}.db")
    refused = cli("summary", name, str(tmp_path), *by)
    assert (refused.code, refused.out) == (1, "")
    last = f"rocpd: error: {name}: 2 separate runs, not one job: choose the ranks of one with --rank"
    assert refused.err.splitlines()[-1] == last
    if name == "imbalance":
        assert cli("summary", name, str(tmp_path), "--rank", "1").code == 0


def test_what_takes_runs_together_says_so_once(cli: Cli, tmp_path: Path) -> None:
    for number, life in enumerate((EARLY, LATE)):
        rank(number, life).write(tmp_path / f"{number}.db")
    told = "rocpd: 2 separate runs, not one job: --rank chooses one, `rocpd summary --by run` divides\n"
    first = cli("summary", str(tmp_path))
    assert (first.out + first.err).count("2 separate runs") == 1  # the first line of the answer
    for words in (["summary", "kernels"], ["summary", "ranks"], ["info"]):
        assert cli(*words, str(tmp_path)).err.count(told) == 1, words
    assert cli("convert", "-f", "json", "-d", str(tmp_path / "o"), str(tmp_path)).err.count(told) == 1
    assert told not in cli("summary", "kernels", "--by", "run", str(tmp_path)).err


def test_real_files_are_separate_runs(real_files: tuple[Path, ...], cli: Cli) -> None:
    folder = real_files[0].parent
    said = cli("summary", "stragglers", folder)
    assert (said.code, said.out) == (1, "")
    assert said.err == "rocpd: error: stragglers: 12 separate runs, not one job: choose the ranks of one with --rank\n"
    assert "rocpd: 12 separate runs, not one job: --rank chooses one, " in cli("summary", "kernels", folder).err
    by_run = cli("summary", "kernels", folder, "--by", "run", "--format", "csv")
    assert {line.partition(",")[0] for line in by_run.out.splitlines()[1:]} == {str(number) for number in range(12)}
    with rocpd.connect(real_files) as session:
        assert session.runs == 12


def test_runs_that_are_alike_are_said_at_once(open_job: OpenJob) -> None:
    """Of the same command and size, and most time in the same part: the ends of what they take are said."""
    busy, longer, idle = rank(0), rank(1, (1000, 2800)), TraceBuilder(2, pid=12, life=(3000, 9000))
    idle.kernel("gemm", 3010, 3020).kernel("gemm", 8000, 8010)
    job, alike, other, _ = (each.text for each in open_job(busy, longer, idle).summary("overview").findings[:4])
    assert job.startswith("3 separate runs, not one job, on 1 node")
    assert alike == "runs 0-1: 1 rank each; 780 ns to 1.78 us of GPUs: 100 % compute"
    assert other.startswith("run 2: 1 rank; ")


def test_steps_of_separate_runs_are_not_taken_for_those_of_one_job(open_job: OpenJob) -> None:
    """The third step of the first run is slow; the mean with the other run's would be slow in neither."""
    early, late = rank(0), rank(1, LATE)
    for step, (start, end) in enumerate([(100, 200), (200, 300), (300, 700), (700, 800)]):
        early.region(f"step {step}", start, end, category="MARKER_CORE_RANGE_API")
        late.region(f"step {step}", 1000 + 100 * step, 1100 + 100 * step, category="MARKER_CORE_RANGE_API")
    both, alone = (job.summary("overview").findings for job in (open_job(early, late), open_job(early)))
    assert any(each.text.startswith("step 2 is slow: 4.00 times the median of 4 steps, rank 0: ") for each in alone)
    assert both[0].text.startswith("2 separate runs, not one job, on 1 node")
    assert not [finding for finding in both if finding.rule == "step.outlier"]
