"""Programs that signals and threads of the recorder could harm: wild stacks, stacks of a page, other namespaces."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.record.build import SOURCE, Build
from tests.record.runs import environment, only, rows

_STACKS = "SELECT call_stack FROM rocpd_sample S JOIN rocpd_event E ON E.id = S.event_id WHERE call_stack LIKE '[_%'"


def _compiled(source: Path, program: Path) -> str:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    subprocess.run(["cc", "-O2", str(source), "-o", str(program), "-pthread"], check=True)
    return str(program)


def _recorded(built: Build, folder: Path, program: str, **env: str) -> subprocess.CompletedProcess[str]:
    preload = {"LD_PRELOAD": str(built.lib / "librocpd-roctx.so")}
    return subprocess.run([program], env=environment(folder, **preload, **env), capture_output=True, text=True)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the stack pointer of another processor")
@pytest.mark.parametrize("clock", ["ROCPD_STACKS", "ROCPD_STACKS_WALL"])
def test_a_sample_needs_nothing_of_the_stack(built: Build, tmp_path: Path, clock: str) -> None:
    """Stacks of one page, pointers to nothing; a stack for signals that the program sets stays its own."""
    program = _compiled(SOURCE / "tests" / "stacks_wild.c", tmp_path / "wild")
    done = _recorded(built, tmp_path / "out", program, **{clock: "500"})
    assert (done.returncode, done.stderr) == (7, "")
    stacks = [json.loads(text) for (text,) in rows(only(tmp_path / "out"), _STACKS)]
    assert sum("on_a_page" in frames for frames in stacks) >= 50  # 300 were due, and 500 of these
    assert stacks.count(["without_stack", "(callers unknown)"]) >= 50


_NAMESPACES = """
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>

int main(void) {
    const int own = open("/proc/self/ns/mnt", O_RDONLY);
    if (setns(own, CLONE_NEWNS) != 0) return errno;
    if (unshare(CLONE_NEWNS) != 0) return errno;
    return setns(own, CLONE_NEWNS) != 0 ? errno : 7;
}
"""


def test_a_program_enters_another_mount_namespace(built: Build, tmp_path: Path) -> None:
    (tmp_path / "enters.c").write_text(_NAMESPACES)
    program = _compiled(tmp_path / "enters.c", tmp_path / "enters")
    if subprocess.run([program]).returncode != 7:
        pytest.skip("entering a mount namespace needs CAP_SYS_ADMIN")
    done = _recorded(built, tmp_path / "out", program, ROCPD_STACKS="100", ROCPD_SAMPLE_HZ="50")
    assert (done.returncode, done.stderr) == (7, "")
