"""Recorder, range and mark in Python programs; multiprocessing; control from outside."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from rocpd.base import InputError
from rocpd.record.control import Action, control, owner_and_socket
from tests.record.build import Build
from tests.record.cli import cli, cli_command
from tests.record.runs import check_closed, count, databases, environment, metadata, probe_until, rows
from tests.waiting import PATIENCE, until


def _python(folder: Path, script: str, *wrap: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a script from a file: multiprocessing imports it again."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "script.py"
    file.write_text(textwrap.dedent(script))
    env = environment(folder / "out", PYTHONPATH=str(Path(__file__).parents[2])) | more
    return subprocess.run(
        [*wrap, sys.executable, str(file)],
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_ranges_cost_nothing_and_work_without_a_recorder(tmp_path: Path) -> None:
    done = _python(
        tmp_path,
        """
        from rocpd import record
        @record.range("f")
        def f(n):
            with record.range("g"):
                record.mark("m")
                record.correlate(n)
                return n
        assert f(3) == 3
        """,
        ROCPD_TOOL_DIR="/nonexistent",
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert not (tmp_path / "out").exists()


def test_the_example_of_the_package(built: Build, tmp_path: Path) -> None:
    done = _python(tmp_path, "import doctest, rocpd.record; assert doctest.testmod(rocpd.record) == (0, 2)")
    assert (done.returncode, done.stdout) == (0, "")
    (file,) = databases(tmp_path / "out")
    assert rows(file, "SELECT name FROM markers") == [("step",)]


def test_a_number_of_the_programs_own(built: Build, tmp_path: Path) -> None:
    done = _python(
        tmp_path,
        """
        from rocpd import record
        with record.Recorder("chosen"):
            for step in (7, 2**64 - 1, 0):
                record.correlate(step)
                with record.range(f"step {step}"):
                    pass
        """,
    )
    assert (done.returncode, done.stderr) == (0, "")
    (file,) = databases(tmp_path / "chosen")
    assert rows(file, "SELECT name, corr_id FROM markers ORDER BY start") == [
        ("step 7", 7), (f"step {2**64 - 1}", -1), ("step 0", 0),
    ]  # fmt: skip


def test_rpds_control(built: Build, tmp_path: Path) -> None:
    """Starts are counted over instances; the folder of `setFilename` stands for the file."""
    script = """
        from rocpd.rpd import rpdTracerControl
        rpdTracerControl.setFilename(name="trace.rpd", append=False)
        profile = rpdTracerControl()
        profile.rangePush("python", "before", "")
        profile.rangePop()
        profile.start()
        with rpdTracerControl() as p:
            p.rangePush("python", "f", "inside")
            p.rangePop()
        profile.rangePush("python", "still on", "")
        profile.rangePop()
        profile.flush()
        profile.stop()
        profile.stop()
        profile.rangePush("python", "after", "")
        profile.rangePop()
        """
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "script.py").write_text(textwrap.dedent(script))
    env = environment(folder, PYTHONPATH=str(Path(__file__).parents[2]))
    del env["ROCPD_OUTPUT_PATH"]
    command = [sys.executable, "script.py"]
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    (file,) = databases(folder / "trace.rpd")
    assert rows(file, "SELECT name FROM markers ORDER BY start") == [("inside",), ("still on",)]


def test_recorder_nests_and_stops_too_often(built: Build, tmp_path: Path) -> None:
    done = _python(
        tmp_path,
        """
        import threading
        from rocpd.record import Recorder, mark, range
        with range("before"):
            pass
        recorder = Recorder("chosen")
        recorder.stop()
        with recorder:
            with range("outer"):
                with Recorder(), range("inner ü"):
                    mark("mark")
                with range("after inner"):
                    pass
            def work():
                with range("thread"):
                    pass
            threads = [threading.Thread(target=work) for _ in [0] * 4]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
        recorder.stop()
        recorder.stop()
        with range("off"):
            pass
        recorder.start()
        recorder.start()
        @Recorder()
        def whole():
            with range("decorated"):
                raise KeyError
        try:
            whole()
        except KeyError:
            pass
        recorder.flush()
        status = recorder.status()
        assert status.recording and not status.failed and status.lost == 0, status
        assert status.file is not None and status.file.parent.name == "chosen"
        recorder.stop()
        assert not recorder.status().recording
        """,
    )
    assert (done.returncode, done.stderr) == (0, "")
    (file,) = databases(tmp_path / "chosen")
    check_closed(file)
    assert rows(file, "SELECT name, COUNT(*) FROM markers GROUP BY 1 ORDER BY 1") == [
        ("after inner", 1), ("decorated", 1), ("inner ü", 1), ("mark", 1), ("outer", 1), ("thread", 4),
    ]  # fmt: skip
    nested = "SELECT o.name FROM markers i JOIN markers o ON o.stack_id = i.parent_stack_id WHERE i.name = 'inner ü'"
    assert rows(file, nested) == [("outer",)]


_FORKS = {"PYTHONWARNINGS": "ignore:This process:DeprecationWarning"}
"""Python 3.12 and later warn of a fork in a process with threads, of which the recorder's is one."""


def test_a_fork_while_another_thread_starts_a_recorder(built: Build, tmp_path: Path) -> None:
    done = _python(
        tmp_path,
        """
        import os, signal, threading, time
        from rocpd.record import Recorder, mark, recorder
        held = threading.Event()
        def hold():
            with recorder._Process.lock:
                held.set()
                time.sleep(0.2)
        threading.Thread(target=hold).start()
        held.wait()
        child = os.fork()
        if child == 0:
            signal.alarm(900)
            with Recorder("chosen"):
                mark("child")
            os._exit(3)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        """,
        **_FORKS,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_libraries_in_a_folder_with_blanks(built: Build, tmp_path: Path) -> None:
    folder = tmp_path / "of some user"
    shutil.copytree(built.lib, folder)
    script = """
        from rocpd.record import Recorder, mark
        with Recorder("chosen") as recorder:
            mark("here")
            recorder.flush()
    """
    done = _python(tmp_path, script, ROCPD_TOOL_DIR=str(folder))
    assert (done.returncode, done.stderr) == (0, "")
    assert count(databases(tmp_path / "chosen")[0], "rocpd_event") == 1


_FAMILY = """
    import multiprocessing, os, sys
    from rocpd import record
    def work(n):
        for _ in [0] * n:
            with record.range("work"):
                pass
    if __name__ == "__main__":
        work(1)
        for method in ("fork", "spawn", "forkserver"):
            context = multiprocessing.get_context(method)
            with context.Pool(2) as pool:
                pool.map(work, [10, 20], chunksize=1)
                pool.close()
                pool.join()
            child = context.Process(target=work, args=(5,))
            child.start()
            child.join()
            assert child.exitcode == 0
        child = os.fork()
        if child == 0:
            work(7)
            os._exit(0)
        os.waitpid(child, 0)
        work(1)
"""


def test_all_kinds_of_children(built: Build, tmp_path: Path) -> None:
    env = {"LD_PRELOAD": str(built.lib / "librocpd-roctx.so"), **_FORKS}
    done = _python(tmp_path, _FAMILY, **env)
    assert (done.returncode, done.stderr) == (0, "")
    files = databases(tmp_path / "out")
    for file in files:
        check_closed(file)
    assert sum(map(count, files)) == 2 + 3 * (30 + 5) + 7
    guids = {rows(file, "SELECT guid FROM rocpd_info_process")[0][0] for file in files}
    assert len(guids) == len(files)


def test_samples_keep_their_rate_however_often_recording_is_switched(built: Build, tmp_path: Path) -> None:
    """One thread samples, not one for each start: a busy machine makes it late, nothing makes it early."""

    def times(file: Path) -> list[int]:
        sql = "SELECT timestamp FROM samples WHERE name = 'process_user_cpu_time' ORDER BY 1"
        return [time for (time,) in rows(file, sql)]

    # Its own folder of sockets: there is one process that samples the node, which may be another test's.
    env = {"ROCPD_SAMPLE_HZ": "50", "ROCPD_CONTROL_DIR": str(tmp_path / "control")}
    file = probe_until(built, tmp_path / "out", lambda file: len(times(file)) > 20, "toggles", "10", "60", env=env)
    taken = times(file)
    # The sample after one that was late comes at once.
    assert len(taken) - 2 <= (taken[-1] - taken[0]) * 50 / 1e9


def _waiting(built: Build, folder: Path, **more: str) -> subprocess.Popen[str]:
    env = environment(folder / "out", ROCPD_CONTROL="1", ROCPD_CONTROL_DIR=str(folder / "control"), **more)
    process = subprocess.Popen(
        [str(built.program("probe")), "waits"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert _line(process) == "ready"
    return process


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _ask(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    assert _line(process) == "done"


def test_control_from_outside(built: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCPD_CONTROL_DIR", str(tmp_path / "control"))
    with _waiting(built, tmp_path, ROCPD_START="0") as process:
        path = owner_and_socket(process.pid)[1]
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert not control(process.pid, Action.STATUS).recording
        _ask(process)
        assert control(process.pid, Action.START).recording
        assert control(process.pid, Action.START).recording
        _ask(process)
        status = control(process.pid, Action.FLUSH)
        assert status.file is not None
        assert (status.written, count(status.file)) == (10, 10)
        assert not control(process.pid, Action.STOP).recording
        control(process.pid, Action.STOP)
        _ask(process)
        control(process.pid, Action.START)
        _ask(process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(PATIENCE) == 7
    assert not path.exists()
    (file,) = databases(tmp_path / "out")
    check_closed(file)
    assert count(file) == 20


def test_control_command(built: Build, tmp_path: Path) -> None:
    folder = str(tmp_path / "control")
    with _waiting(built, tmp_path) as process:
        done = cli(tmp_path, "control", "stop", str(process.pid), ROCPD_CONTROL_DIR=folder)
        assert done.returncode == 0
        assert done.stdout.startswith(f"{process.pid}: off, 10 events, {tmp_path}/out/")
        assert process.stdin is not None
        process.stdin.close()
    done = cli(tmp_path, "control", "status", str(os.getpid()), ROCPD_CONTROL_DIR=folder)
    assert done.returncode == 3
    assert "no recorder listens" in done.stderr


def test_what_killed_processes_left_is_swept(built: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCPD_CONTROL_DIR", str(tmp_path / "control"))
    with _waiting(built, tmp_path) as process:
        left = owner_and_socket(process.pid)[1]
        process.kill()
    assert left.exists()
    with pytest.raises(InputError, match="there is no such process"):
        control(process.pid, Action.STATUS)
    assert not left.exists()
    left.touch()
    elsewhere = left.with_name(f"1-{process.pid}.sock")  # of another container, where that process may run
    others = [elsewhere, left.with_name(f"{left.stem}.sock.old"), left.with_name("notes")]
    for path in others:
        path.touch()
    with _waiting(built, tmp_path) as second:
        assert sorted(left.parent.iterdir()) == sorted([owner_and_socket(second.pid)[1], *others])
        assert second.stdin is not None
        second.stdin.close()


def test_control_refuses_what_it_does_not_know(built: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCPD_CONTROL_DIR", str(tmp_path / "control"))
    with _waiting(built, tmp_path) as process:
        path = str(owner_and_socket(process.pid)[1])
        for bad in (b"nonsense\n", b"x" * 100, b"\n", b"\xff\n"):
            with socket.socket(socket.AF_UNIX) as link:
                link.connect(path)
                link.sendall(bad)
                link.shutdown(socket.SHUT_WR)
                link.recv(100)
        assert control(process.pid, Action.STATUS).recording
        assert process.stdin is not None
        process.stdin.close()
    with pytest.raises(InputError):
        control(process.pid, Action.STATUS)


def test_command_begins_with_recording_off(built: Build, tmp_path: Path) -> None:
    command = cli_command("record", "--off", "-o", "job", "--", str(built.program("probe")), "threads", "1", "10")
    assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 7
    assert not (tmp_path / "job").exists()


@pytest.mark.parametrize("setting", [{"ROCPD_SAMPLE_HZ": "50"}, {"ROCPD_START": "0"}, {}])
def test_ctrl_c_stays_pythons(built: Build, tmp_path: Path, setting: dict[str, str]) -> None:
    """The recorder's threads start before Python does: it must not take the signal that Python would."""
    script = """
        import os, signal, time
        from rocpd import record
        with record.range("step"):
            try:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(5)
            except KeyboardInterrupt:
                print("interrupted")
        """
    done = _python(tmp_path, script, LD_PRELOAD=str(built.lib / "librocpd-roctx.so"), **setting)
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")


def test_daemon(built: Build, tmp_path: Path) -> None:
    """A daemon forks twice, changes its folder and closes all descriptors; the folder of the files was relative."""
    script = """
        import os
        from rocpd import record
        with record.range("front"):
            pass
        if os.fork() == 0:
            os.setsid()
            if os.fork() != 0:
                os._exit(0)
            os.chdir("/")
            os.closerange(0, 256)
            with record.range("daemon"):
                pass
            os._exit(0)
        os.wait()
        """
    env = {"LD_PRELOAD": str(built.lib / "librocpd-roctx.so"), "ROCPD_OUTPUT_PATH": "out", **_FORKS}
    done = _python(tmp_path, script, **env)
    assert (done.returncode, done.stderr) == (0, "")

    def closed() -> int:
        return sum("recorder_closed" in metadata(file) for file in (tmp_path / "out").glob("*.db"))

    until(lambda: closed() == 2, "the daemon has ended, too")
    files = databases(tmp_path / "out")
    for file in files:
        check_closed(file)
    assert sorted(rows(file, "SELECT name FROM markers")[0][0] for file in files) == ["daemon", "front"]
