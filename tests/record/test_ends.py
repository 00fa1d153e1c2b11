"""However a process ends, its file is whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.record.build import Build
from tests.record.runs import CODE, check_closed, check_sound, count, databases, metadata, only, probe, rows
from tests.soak import sized

_SIGNALS = {"abort": -6, "abrt": -6, "term": -15, "int": -2}


@pytest.mark.parametrize("how", ["exit", "_exit", "_Exit", "quick_exit", "return", "thread", *_SIGNALS])
def test_file_is_closed(built: Build, tmp_path: Path, how: str) -> None:
    done = probe(built, tmp_path / "out", "ends", how)
    assert (done.returncode, done.stderr) == (_SIGNALS.get(how, CODE), "")
    (file,) = databases(tmp_path / "out")
    check_closed(file)
    unfinished = "SELECT COUNT(*) FROM rocpd_event WHERE json_extract(extdata, '$.unfinished')"
    assert (count(file), rows(file, unfinished)) == (101, [(1,)])


def test_exec_leaves_two_files(built: Build, tmp_path: Path) -> None:
    done = probe(built, tmp_path / "out", "ends", "exec")
    assert done.returncode == CODE
    after, before = databases(tmp_path / "out")
    check_closed(after)
    check_sound(before)
    assert (count(before), count(after)) == (100, 101)


def test_failed_exec_goes_on(built: Build, tmp_path: Path) -> None:
    assert probe(built, tmp_path / "out", "ends", "execfail").returncode == CODE
    (file,) = databases(tmp_path / "out")
    assert count(file) == 201


def test_each_fork_has_its_file(built: Build, tmp_path: Path) -> None:
    done = probe(built, tmp_path / "out", "forks")
    assert (done.returncode, done.stderr) == (CODE, "")
    files = databases(tmp_path / "out")
    for file in files:
        check_closed(file)
    assert sorted(map(count, files)) == [100, 100, 100, 100, 200]
    guids = [metadata(file)["guid"] for file in files]
    assert len(set(guids)) == 5


def test_forks_while_threads_record(built: Build, tmp_path: Path) -> None:
    done = probe(built, tmp_path / "out", "fork-storm", "30", env={"ROCPD_FLUSH_MS": "10"})
    assert (done.returncode, done.stderr) == (CODE, "")
    files = databases(tmp_path / "out")
    assert sorted(map(count, files))[:30] == [10] * 30
    assert len(files) == 31


def test_vfork_children_leave_no_memory_behind(built: Build, tmp_path: Path) -> None:
    assert probe(built, tmp_path / "out", "vfork-execs", "200").returncode == CODE


@pytest.mark.soak(4)
def test_end_during_the_first_event(built: Build, tmp_path: Path) -> None:
    """Closed stays closed, and whatever made it into a file is a whole file."""
    assert probe(built, tmp_path / "out", "finalize-first", sized("50", "200")).returncode == CODE
    for file in databases(tmp_path / "out"):
        check_closed(file)


def test_vfork_child_leaves_the_parent_alone(built: Build, tmp_path: Path) -> None:
    assert probe(built, tmp_path / "out", "vforks").returncode == CODE
    (file,) = databases(tmp_path / "out")
    check_closed(file)
    assert count(file) == 200


def test_finalising_from_everywhere(built: Build, tmp_path: Path) -> None:
    done = probe(built, tmp_path / "out", "finalize")
    assert (done.returncode, done.stderr) == (CODE, "")
    (file,) = databases(tmp_path / "out")
    check_closed(file)
    assert count(file) >= 1000


def test_exit_and_signal_at_once(built: Build, tmp_path: Path) -> None:
    for run in map(str, range(5)):
        assert probe(built, tmp_path / run, "race").returncode in (CODE, -15)
        (file,) = databases(tmp_path / run)
        check_closed(file)
        assert count(file) == 20000


def test_program_that_closes_all_descriptors(built: Build, tmp_path: Path) -> None:
    done = probe(built, tmp_path / "out", "closes", str(tmp_path / "own"))
    assert (done.returncode, done.stderr) == (CODE, "")
    (file,) = databases(tmp_path / "out")
    check_closed(file)
    assert count(file) == 300


def test_program_that_reads_its_own_file(built: Build, tmp_path: Path) -> None:
    """The recorder must not take the program's descriptor for its own, and its end for that of its own."""
    done = probe(built, tmp_path, "reads-own", env={"ROCPD_FLUSH_MS": "20"})
    assert (done.returncode, done.stderr) == (CODE, "")
    assert count(only(tmp_path)) == 400
