"""However a process ends, its file is whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.record.build import Build
from tests.record.runs import CODE, check_closed, check_sound, count, databases, metadata, probe, rows

_SIGNALS = {"abort": -6, "term": -15, "int": -2}


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


def test_odd_ranges(built: Build, tmp_path: Path) -> None:
    done = probe(built, tmp_path / "out", "odd")
    assert done.returncode == CODE
    assert "904 events were lost" in done.stderr  # nested deeper than 4096
    (file,) = databases(tmp_path / "out")
    check_closed(file)
    assert metadata(file)["recorder_lost_events"] == "904"
    assert metadata(file)["recorder_cut_texts"] == "1"
    found = [(name, json.loads(extdata)) for name, extdata in rows(
        file, "SELECT name, extdata FROM regions WHERE json_extract(extdata, '$.message') != 'deep'")]  # fmt: skip
    texts = {extdata["message"]: (name, extdata.get("unfinished", False)) for name, extdata in found}
    assert texts.pop("x" * 32768) == ("roctxThreadRangeA", False)
    assert texts == {
        "before pause": ("roctxThreadRangeA", False),
        "mark": ("roctxMarkA", False),
        "across threads": ("roctxProcessRangeA", False),
        "never stopped": ("roctxProcessRangeA", True),
        '"quotes" \\ \n \\xff\\xfe ünï': ("roctxThreadRangeA", False),
        "thread ended": ("roctxThreadRangeA", True),
    }


def test_every_kind_of_event(built: Build, tmp_path: Path) -> None:
    assert probe(built, tmp_path / "out", "kinds").returncode == CODE
    (file,) = databases(tmp_path / "out")
    check_closed(file)
    assert rows(file, "SELECT name, region, agent_abs_index, queue, stream, stack_id FROM kernels ORDER BY id") == [
        ("kernel", "", 1, "Queue 0", "Default Stream", 100),
        ("kernel", "step", 1, "Queue 0", "Default Stream", 100),
        ("kernel 78", "", 77, "Queue 79", "Stream 80", 100),
    ]
    assert rows(file, "SELECT name, category, stack_id, corr_id FROM regions") == [
        ("hipLaunchKernel", "HIP_RUNTIME_API_EXT", 100, 9)
    ]
    assert rows(file, "SELECT position, type, name, value FROM rocpd_arg ORDER BY id") == [
        (0, "int", "n", "42"), (1, "char*", "s", 'a"b'),
    ]  # fmt: skip
    assert rows(file, "SELECT name, tid, size, dst_agent_abs_index, src_agent_abs_index FROM memory_copies") == [
        ("MEMORY_COPY_HOST_TO_DEVICE", 4242, 1 << 20, 1, None)
    ]
    assert rows(file, "SELECT type, level, address, extdata FROM rocpd_memory_allocate") == [
        ("FREE", "VIRTUAL", -256, '{"flags":"FINE_GRAINED"}')
    ]
    assert rows(file, "SELECT dispatch_id, value FROM counters_collection ORDER BY 1") == [(1, 64.0), (2, 65.0)]
    assert rows(file, "SELECT name, timestamp FROM samples") == [("temperature", 5000)]
    assert metadata(file)["note"] == 'it\'s "quoted"'
