"""A recorded job of eight processes, of which one stays away from a collective: rocprofiler-sdk is the stand-in's."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import rocpd
from rocpd.live.hang import Hanging, HangReport, hang
from rocpd.schema.live_state import read_state
from tests.record.build import Build
from tests.record.runs import CODE, client, count, databases, environment
from tests.waiting import until

RANKS = 8


@contextmanager
def job(built: Build, folder: Path, missing: str) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Run the job until the block ends: under mpirun, where there is one, else as it would start it."""
    env = environment(
        folder / "job", LD_PRELOAD=str(built.lib / "librocpd-tool.so"), ROCPD_TOOL_WARNED="1",
        ROCPD_STANDIN_JOB=str(folder / "shared"), ROCPD_STANDIN_MISSING=missing,
    )  # fmt: skip
    program = [str(built.program("client_probe")), "0", "1000", "job"]
    if shutil.which("mpirun"):
        preload = env.pop("LD_PRELOAD")
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(RANKS), "-x", f"LD_PRELOAD={preload}"]
        started = [subprocess.Popen([*command, *program], env=env, stderr=subprocess.DEVNULL, start_new_session=True)]
    else:
        size = {"OMPI_COMM_WORLD_SIZE": str(RANKS)}
        started = [
            subprocess.Popen(program, env=env | size | {"OMPI_COMM_WORLD_RANK": str(rank)}, start_new_session=True)
            for rank in range(RANKS)
        ]
    try:
        yield started
    finally:
        for process in started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
            process.wait()


def said_of(folder: Path) -> HangReport:
    """Return the answer, for a group in which nothing has happened for a second."""
    with rocpd.connect(folder / "job") as session:
        return hang(session, 1.0)


def test_the_missing_rank_of_a_recorded_job_is_named(built: Build, tmp_path: Path) -> None:
    """While it runs, after it was ended by a signal, and with rows of all ranks beside it."""
    (tmp_path / "job").mkdir()
    with job(built, tmp_path, "3:2"):
        until(lambda: len([*(tmp_path / "job").glob("*.db.live")]) == RANKS, "each process has its state file")
        until(lambda: said_of(tmp_path).verdict is Hanging.YES, "it hangs")
        while_it_runs = said_of(tmp_path)
        # Two steps with a kernel of the program and two exchanges, then one without the last of these.
        until(lambda: {count(file, "rocpd_kernel_dispatch") for file in (tmp_path / "job").glob("*.db")} == {8}, "rows")
    for answer in (while_it_runs, said_of(tmp_path)):
        assert answer.missing == (3,)
        assert answer.lines[0].startswith("hang: rank 3 has not come to ncclAllReduce 5 of comm ")
        assert "where ranks 0-2,4-7 wait" in answer.lines[0]
        assert "it has been in the range step 2 for" in answer.lines[0]
        calls = {rank.rank: [call.call for call in rank.calls] for rank in answer.ranks}
        assert calls == {rank: [] if rank == 3 else ["hipStreamSynchronize"] for rank in range(RANKS)}


def test_groups_of_a_job_that_goes_on(built: Build, tmp_path: Path) -> None:
    """One operation that is captured, without work that could end; then one a step, and an exchange with each side."""
    (tmp_path / "job").mkdir()
    with job(built, tmp_path, ""):
        until(lambda: len([*(tmp_path / "job").glob("*.db.live")]) == RANKS, "each process has its state file")
        states = [read_state(path) for path in (tmp_path / "job").glob("*.db.live")]
        assert said_of(tmp_path).missing == ()
    whole = [[group for group in state.groups if group.size == RANKS] for state in states]
    assert {len(groups) for groups in whole} == {1}
    assert len({groups[0].id for groups in whole}) == 1
    assert sorted(groups[0].member for groups in whole) == list(range(RANKS))
    pairs = [(group.id, group.member) for state in states for group in state.groups if group.size == 2]
    assert len(pairs) == len(set(pairs)) == 2 * RANKS


def test_a_job_that_ends_well_leaves_no_state(built: Build, tmp_path: Path) -> None:
    done = client(
        built, tmp_path / "job", "job", rounds=2, OMPI_COMM_WORLD_SIZE="1", OMPI_COMM_WORLD_RANK="0",
        ROCPD_STANDIN_JOB=str(tmp_path / "shared"),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (CODE, "")
    (file,) = databases(tmp_path / "job")
    assert count(file, "rocpd_kernel_dispatch") == 6
