"""What is wrong with a running job is said, and the rest is shown; Ctrl-C gives the terminal back as it was."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from rocpd.facts.rank import Options
from rocpd.schema.versions import VERSIONS
from rocpd.top.glance import Glance, JobState
from rocpd.top.pace import LookPace
from rocpd.top.watch import Watch, WatchOptions
from tests.cli.test_process import environment
from tests.top.played import PlayedJob, played

_JOB = {"ranks": 2, "steps": 10, "plant": "none"}
_HOUR_NS = 3_600_000_000_000


def _watched(folder: Path, options: WatchOptions | None = None) -> Glance:
    with Watch([str(folder)], options or WatchOptions(rows_first=True), LookPace(1e9)) as watch:
        glances = [watch.look() for _ in range(2)]
    return glances[-1]


def _folder(job: PlayedJob) -> Path:
    job.play(9)
    return job.job.options.out


def test_half_a_page_is_named_and_the_others_are_shown(tmp_path: Path) -> None:
    with played(tmp_path, **_JOB) as job:
        folder = _folder(job)
        (folder / "rank2.db").write_bytes((folder / "rank0.db").read_bytes()[:2348])
        glance = _watched(folder)
    assert glance.problems == (f"{folder / 'rank2.db'}: damaged: truncated within a page",)
    assert [rank.state for rank in glance.ranks] == [JobState.UNREADABLE, JobState.RUNNING, JobState.RUNNING]
    assert glance.looked_at == "steps 0 to 7"


def test_two_jobs_in_one_folder_are_not_taken_for_one(tmp_path: Path) -> None:
    with played(tmp_path / "one", **_JOB) as one, played(tmp_path / "other", **_JOB, seed=1) as other:
        folder = _folder(one)
        for path in _folder(other).glob("*.db*"):
            shutil.copy(path, folder / f"other-{path.name}")
        glance = _watched(folder)
    assert glance.job.startswith("2 separate runs, not one job")
    assert "2 separate runs, not one job; " in glance.line()
    assert (len(glance.ranks), [rank for rank in glance.ranks if rank.is_straggler]) == (4, [])


def test_files_of_an_older_version_are_followed(tmp_path: Path) -> None:
    with played(tmp_path, **_JOB, version=VERSIONS[0]) as job:
        glance = _watched(_folder(job))
    assert (glance.looked_at, glance.problems) == ("steps 0 to 7", ())


@pytest.mark.parametrize(("seconds", "looked_at"), [(0.01, "the last 0.01 s: no steps"), (30, "all of it so far")])
def test_without_steps_the_last_seconds_count(tmp_path: Path, seconds: float, looked_at: str) -> None:
    options = WatchOptions(seconds=seconds, asked=Options(step_marker="no marker is like this"))
    with played(tmp_path, **_JOB) as job:
        glance = _watched(_folder(job), options)
    assert (glance.looked_at, glance.steps) == (looked_at, ())
    assert sum(glance.parts.values()) == pytest.approx(100)


def test_clocks_that_are_hours_apart_change_no_conclusion(tmp_path: Path) -> None:
    with played(tmp_path, **_JOB, nodes=2) as job:
        folder = _folder(job)
        before = _watched(folder)
        _put_ahead(folder / "rank1.db", 2 * _HOUR_NS)
        after = _watched(folder)
    assert (after.looked_at, after.parts, after.ranks[0].cost_ns) == ("steps 0 to 7", before.parts, None)
    assert after.findings[0].startswith("no straggler")


def _put_ahead(path: Path, ns: int) -> None:
    connection = apsw.Connection(str(path))
    with connection:
        tables = [str(name) for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            columns = {str(row[1]) for row in connection.execute(f'PRAGMA table_info("{table}")')}
            for column in columns & {"start", "end", "timestamp"}:
                connection.execute(f'UPDATE "{table}" SET "{column}" = "{column}" + ? WHERE "{column}" > 0', (ns,))
    connection.close()


def _type_it(process: subprocess.Popen[bytes], terminal: int) -> None:
    os.write(terminal, b"\x03")


def _send_it(process: subprocess.Popen[bytes], terminal: int) -> None:
    process.send_signal(signal.SIGINT)


def _terminate(process: subprocess.Popen[bytes], terminal: int) -> None:
    process.send_signal(signal.SIGTERM)


@pytest.mark.parametrize(("interrupt", "code"), [(_type_it, 0), (_send_it, 130), (_terminate, 143)])
def test_ctrl_c_gives_the_terminal_back(
    finished: Path, interrupt: Callable[[subprocess.Popen[bytes], int], None], code: int
) -> None:
    terminal, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    before = termios.tcgetattr(theirs)
    command = [sys.executable, "-m", "rocpd", "top", str(finished)]
    env = environment() | {"TERM": "xterm-256color"}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True)
    try:
        shown = _read(terminal, lambda shown: b"\x1b[?1049h" in shown and b"step 13" in shown)
        assert termios.tcgetattr(theirs) != before
        interrupt(process, terminal)
        shown += _read(terminal, lambda _: process.poll() is not None)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == code
    assert termios.tcgetattr(theirs) == before
    assert b"Traceback" not in shown
    last = shown[shown.rindex(b"\x1b[?1049h") :]
    assert b"\x1b[?1049l" in last  # the screen before
    assert b"\x1b[?25h" in last  # the cursor
    os.close(terminal)
    os.close(theirs)


def _read(terminal: int, is_enough: Callable[[bytes], bool]) -> bytes:
    shown, end = b"", time.monotonic() + 60
    while not is_enough(shown):
        assert time.monotonic() < end, shown
        if select.select([terminal], [], [], 0.05)[0]:
            shown += os.read(terminal, 65536)
    while select.select([terminal], [], [], 0)[0]:
        shown += os.read(terminal, 65536)
    return shown
