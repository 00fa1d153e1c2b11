"""Disks, folders and limits that work against the recorder: one line on stderr, and the program goes on."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import apsw
import pytest

from tests.record.build import Build
from tests.record.runs import (
    CODE,
    check_closed,
    check_sound,
    compiled_shim,
    count,
    databases,
    environment,
    metadata,
    probe,
)
from tests.soak import sized
from tests.waiting import PATIENCE


def _one_line(stderr: str) -> str:
    lines = stderr.splitlines()
    assert len(lines) == 1, stderr
    assert lines[0].startswith("rocpd: ")
    return lines[0]


def _mount(folder: Path, size: str) -> None:
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no small file system can be made here: {done.stderr.strip()}")


def test_disk_full_while_running(built: Build, tmp_path: Path) -> None:
    small = tmp_path / "small"
    _mount(small, "2m")
    try:
        done = probe(built, small, "burst", "200000")
        assert done.returncode == CODE
        assert "full" in _one_line(done.stderr)
        (file,) = [path for path in small.iterdir() if path.suffix == ".db"]
        shutil.copy(file, tmp_path / "copy.db")
        if (journal := file.with_name(file.name + "-journal")).exists():
            shutil.copy(journal, tmp_path / "copy.db-journal")
    finally:
        subprocess.run(["umount", str(small)], check=True)
    check_sound(tmp_path / "copy.db")


def test_disk_full_from_the_start(built: Build, tmp_path: Path) -> None:
    small = tmp_path / "small"
    _mount(small, "64k")
    try:
        done = probe(built, small, "burst", "1000")
        assert done.returncode == CODE
        assert "full" in _one_line(done.stderr)
        assert list(small.iterdir()) == []
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_file_size_limit(built: Build, tmp_path: Path) -> None:
    """A limit on file sizes makes writes fail, and would send SIGXFSZ to a thread that does not block it."""
    wrap = ["sh", "-c", 'ulimit -f 2048; exec "$@"', "sh"]
    done = probe(built, tmp_path / "out", "burst", "200000", wrap=wrap)
    assert done.returncode == CODE
    assert "nothing more is recorded" in _one_line(done.stderr)


def test_folder_that_cannot_be_made(built: Build, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = probe(built, tmp_path / "file" / "out", "burst", "1000")
    assert done.returncode == CODE
    assert str(tmp_path / "file") in _one_line(done.stderr)


def test_read_only_folder(built: Build) -> None:
    wrap = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to other users
        folder = Path(name)
        folder.chmod(0o555)
        done = probe(built, folder, "burst", "1000", wrap=wrap)
        if done.returncode == 126 or "setpriv" in done.stderr:
            pytest.skip("the build folder is closed to other users")
        assert done.returncode == CODE
        assert "cannot open" in _one_line(done.stderr)
        assert list(folder.iterdir()) == []


def test_read_only_file_system(built: Build, tmp_path: Path) -> None:
    done = probe(built, Path("/proc/rocpd"), "burst", "1000")
    assert done.returncode == CODE
    assert "/proc" in _one_line(done.stderr)


@pytest.mark.parametrize("what", ["folder", "file"])
def test_removed_while_running(built: Build, tmp_path: Path, what: str) -> None:
    folder = tmp_path / "out"
    with subprocess.Popen(
        [str(built.program("probe")), "until-eof"], env=environment(folder, ROCPD_FLUSH_MS="50"),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        if what == "folder":
            while folder.exists():  # SQLite may delete its journal, or make one, between listing and unlinking
                shutil.rmtree(folder, ignore_errors=True)
        else:
            next(folder.glob("*.db")).unlink()
        time.sleep(0.2)
        _, stderr = process.communicate()
    assert process.returncode == CODE
    assert "removed" in _one_line(stderr)


def test_no_file_descriptors(built: Build, tmp_path: Path) -> None:
    # One beyond stdin, stdout and stderr, which the dynamic linker needs.
    done = probe(built, tmp_path / "out", "burst", "1000", wrap=["prlimit", "--nofile=4:4"])
    assert done.returncode == CODE
    assert "nothing more is recorded" in _one_line(done.stderr)


@pytest.mark.parametrize(("what", "why"), [("file", "it is not a folder"), ("open folder", "its mode is not 0700")])
def test_no_place_for_the_control_socket(built: Build, tmp_path: Path, what: str, why: str) -> None:
    in_the_way = tmp_path / what
    if what == "file":
        in_the_way.write_text("in the way")
    else:
        in_the_way.mkdir()
        in_the_way.chmod(0o755)
    done = probe(
        built, tmp_path / "out", "burst", "1000", env={"ROCPD_CONTROL": "1", "ROCPD_CONTROL_DIR": str(in_the_way)}
    )
    assert done.returncode == CODE
    assert _one_line(done.stderr) == f"rocpd: no control socket in {in_the_way}: {why}; recording goes on"


def test_no_memory_for_a_thread(built: Build, tmp_path: Path) -> None:
    assert probe(built, tmp_path / "out", "unbuffered").returncode == CODE
    (file,) = databases(tmp_path / "out")
    check_closed(file)
    assert metadata(file)["recorder_lost_events"] == "10"


def _asked(process: subprocess.Popen[str], line: str = "") -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


@pytest.mark.soak(10)
def test_somebody_reads_the_file_for_long(built: Build, tmp_path: Path) -> None:
    """The recorder waits for a reader, without holding up fork(), and goes on when it is gone."""
    hold_s = sized(1.0, 12.0)
    process = subprocess.Popen(
        [str(built.program("probe")), "forks-when-asked"], env=environment(tmp_path / "out", ROCPD_FLUSH_MS="20"),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    (path,) = (tmp_path / "out").glob("*.db")
    reader = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    reader.execute("BEGIN")
    assert reader.execute("SELECT COUNT(*) FROM rocpd_region").fetchall() == [(10,)]
    never = threading.Timer(PATIENCE, process.kill)
    never.start()
    assert _asked(process).isdigit()  # while the reader reads: a fork that waited for it would never end
    never.cancel()
    time.sleep(hold_s)
    assert reader.execute("SELECT COUNT(*) FROM rocpd_region").fetchall() == [(10,)]
    reader.execute("COMMIT")
    reader.close()
    _, stderr = process.communicate()
    assert (process.returncode, stderr) == (CODE, "")
    (file,) = databases(tmp_path / "out")
    check_closed(file)
    assert count(file) == 20


def test_disk_that_refuses_in_the_end(built: Build, tmp_path: Path) -> None:
    env = {"LD_PRELOAD": compiled_shim(tmp_path, "no_sync")}
    done = probe(built, tmp_path / "out", "burst", "1000", env=env)
    assert done.returncode == CODE
    assert "No space left on device" in _one_line(done.stderr)


def test_file_system_without_locks(built: Build, tmp_path: Path) -> None:
    env = {"LD_PRELOAD": compiled_shim(tmp_path, "no_locks")}
    done = probe(built, tmp_path / "out", "threads", "2", "100", env=env)
    assert (done.returncode, done.stderr) == (CODE, "")
    (file,) = databases(tmp_path / "out")
    check_closed(file)
