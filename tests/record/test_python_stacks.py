"""Samples of Python's call stacks: of all its threads and children, without a change of the program."""

from __future__ import annotations

import itertools
import json
import statistics
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import rocpd
from tests.record.build import Build
from tests.record.runs import check_closed, databases, environment, metadata, probe, rows
from tests.waiting import until

_STACKS = """
SELECT T.tid, S.timestamp, E.id, E.call_stack, C.string
FROM rocpd_sample S
JOIN rocpd_track T ON T.id = S.track_id
JOIN rocpd_event E ON E.id = S.event_id
JOIN rocpd_string C ON C.id = E.category_id
ORDER BY S.timestamp
"""


def _environment(built: Build, folder: Path, script: str, hz: int) -> dict[str, str]:
    """Write the program, and return the environment in which it is sampled."""
    folder.mkdir(exist_ok=True)
    (folder / "program.py").write_text(textwrap.dedent(script))
    more = {"ROCPD_PYTHON_STACKS": str(hz), "ROCPD_FLUSH_MS": "20"}
    return environment(folder / "out", LD_PRELOAD=str(built.lib / "librocpd-roctx.so"), **more)


def _sampled(built: Build, folder: Path, script: str, hz: int = 200) -> subprocess.CompletedProcess[str]:
    env = _environment(built, folder, script, hz)
    return subprocess.run(
        [sys.executable, "program.py"], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def two_threads(built: Build, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, int]]:
    """The file of a program whose main thread waits while another works, and the numbers of both threads."""
    folder = tmp_path_factory.mktemp("stacks")
    script = """
    import json, os, threading, time

    class Model:
        def forward(self):
            return sum(number % 7 for number in range(1000))

    def work():
        while not os.path.exists("stop"):
            end = time.monotonic() + 0.1
            while time.monotonic() < end:
                Model().forward()

    worker = threading.Thread(target=work)
    worker.start()
    print(json.dumps({"main": os.getpid(), "worker": worker.native_id}))
    worker.join()
    """
    env = _environment(built, folder, script, hz=200)

    def enough(file: Path) -> bool:
        stacks = [stack for _, _, _, stack, _ in rows(file, _STACKS)]
        return all(sum(frame in stack for stack in stacks) > 5 for frame in ("Model.forward", "Thread.join"))

    with subprocess.Popen(
        [sys.executable, "program.py"], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            until(lambda: any(map(enough, (folder / "out").glob("*.db"))), "both threads are seen")
        finally:
            (folder / "stop").touch()
            threads, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    (file,) = databases(folder / "out")
    return file, json.loads(threads)


def test_frames_of_each_thread(two_threads: tuple[Path, dict[str, int]]) -> None:
    file, threads = two_threads
    check_closed(file)
    stacks: dict[int, list[list[str]]] = {}
    for tid, _, _, stack, category in rows(file, _STACKS):
        stacks.setdefault(tid, []).append(json.loads(stack))
        assert category == "timer_sampling"
    assert sorted(stacks) == sorted(threads.values())
    working = [stack for stack in stacks[threads["worker"]] if "program.py(6): Model.forward" in stack]
    assert len(working) > 5
    frames = ["Model.forward", "work", "Thread.run", "Thread._bootstrap_inner", "Thread._bootstrap"]
    assert {tuple(frame.split(": ")[1] for frame in stack[-5:]) for stack in working} == {tuple(frames)}
    joining = [stack for stack in stacks[threads["main"]] if "program.py(17): <module>" in stack]
    assert len(joining) > 5
    assert all("Thread.join" in stack[-2] for stack in joining)


def test_equal_stacks_are_stored_once(two_threads: tuple[Path, dict[str, int]]) -> None:
    samples = rows(two_threads[0], _STACKS)
    events = {event: stack for _, _, event, stack, _ in samples}
    assert len(set(events.values())) == len(events) < len(samples)


def test_stacks_are_summarized(two_threads: tuple[Path, dict[str, int]]) -> None:
    with rocpd.connect([two_threads[0]]) as session:
        shown = session.summary("stacks").df().to_dict("records")
    forward = next(row for row in shown if row["function"] == "Model.forward")
    run = next(row for row in shown if row["function"] == "Thread.run")
    assert (forward["kind"], forward["file"]) == ("samples", "program.py")
    file, threads = two_threads
    samples = [sample for sample in rows(file, _STACKS) if sample[0] == threads["worker"]]
    between = statistics.median(after[1] - before[1] for before, after in itertools.pairwise(samples))
    for row in (forward, run):
        assert row["count"] == sum(f': {row["function"]}"' in stack for _, _, _, stack, _ in samples)
        assert row["total_ns"] / row["count"] == pytest.approx(between, rel=0.01)
    assert forward["total_ns"] <= run["total_ns"]


def test_code_that_keeps_the_lock_is_seen(built: Build, tmp_path: Path) -> None:
    """Nearly all the time is that of `forward`, but the interpreter's lock is given up in `os.path.exists` alone."""
    script = """
    import os, time

    def forward():
        return sum(number % 7 for number in range(5000))

    def work():
        end = time.monotonic() + 1
        while time.monotonic() < end:
            os.path.exists("nothing")
            forward()

    work()
    """
    done = _sampled(built, tmp_path, script)
    assert (done.returncode, done.stderr) == (0, "")
    (file,) = databases(tmp_path / "out")
    working = [stack for _, _, _, stack, _ in rows(file, _STACKS) if ": work" in stack]
    assert sum(": forward" in stack for stack in working) > len(working) / 2 > 10


def test_the_switch_interval_stays(built: Build, tmp_path: Path) -> None:
    """Also in a child that is forked while a sample is waited for: a fork keeps the interpreter's lock for long."""
    script = """
    import os, sys, time, warnings

    warnings.simplefilter("ignore")  # the recorder's threads are no reason not to fork
    sys.setswitchinterval(0.003)
    end = time.monotonic() + 1
    while time.monotonic() < end:
        if (child := os.fork()) == 0:
            os._exit(round(sys.getswitchinterval() * 1e3))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    seen = []
    while seen.count(3) < 20 and len(seen) < 1000:  # it is short for a moment of each sample
        time.sleep(0.0001)
        seen.append(round(sys.getswitchinterval() * 1e3))
    assert seen.count(3) == 20, seen
    """
    done = _sampled(built, tmp_path, script, hz=1000)
    assert (done.returncode, done.stderr) == (0, "")


def test_children_are_sampled(built: Build, tmp_path: Path) -> None:
    """Those that are forked while their parent is sampled, too."""
    script = """
    import glob, multiprocessing, os

    def in_file(name):
        return any(name in open(path, "rb").read() for path in glob.glob(f"out/*-{os.getpid()}.db"))

    def leaf():
        while not in_file(b"): leaf"):
            pass

    def child():
        leaf()

    if __name__ == "__main__":
        while not in_file(b"): in_file"):
            pass
        for method in ("fork", "spawn"):
            process = multiprocessing.get_context(method).Process(target=child)
            process.start()
            process.join()
            assert process.exitcode == 0
    """
    done = _sampled(built, tmp_path, script)
    assert (done.returncode, done.stderr) == (0, "")
    with_leaf = [file for file in databases(tmp_path / "out") if "leaf" in str(rows(file, _STACKS))]
    assert len(with_leaf) == 2


def test_a_program_ends_as_it_would(built: Build, tmp_path: Path) -> None:
    """Sampling goes on until Python ends: by exit, by an error, by os._exit, with threads that still run."""
    script = """
    import os, sys, threading, time
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    end = time.monotonic() + 0.05
    while time.monotonic() < end:
        pass
    {}
    """
    for number, (ending, code) in enumerate((("sys.exit(3)", 3), ("raise ValueError", 1), ("os._exit(4)", 4))):
        done = _sampled(built, tmp_path / str(number), script.format(ending), hz=1000)
        assert done.returncode == code, done.stderr
        for file in databases(tmp_path / str(number) / "out"):
            check_closed(file)


def test_other_programs_have_no_stacks(built: Build, tmp_path: Path) -> None:
    probe(built, tmp_path, "threads", "1", "2", env={"ROCPD_PYTHON_STACKS": "1000"})
    (file,) = databases(tmp_path)
    assert rows(file, _STACKS) == []
    assert metadata(file)["recorder_lost_events"] == "0"


@pytest.mark.parametrize("source", ["python_lock", "python_sampler"])
def test_the_end_of_python_unwinds_no_frame_of_the_sampler(built: Build, source: str) -> None:
    """It ends the thread by pthread_exit; a library that brings an unwinder of its own, as the wheel's, would crash."""
    (compiled,) = built.folder.glob(f"CMakeFiles/rocpd-recorder.dir/src/{source}.cpp.o")
    sections = subprocess.run(["readelf", "-SW", str(compiled)], capture_output=True, text=True, check=True).stdout
    assert ".text" in sections
    assert "eh_frame" not in sections
