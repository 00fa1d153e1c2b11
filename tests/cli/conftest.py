"""Fixtures of command lines: as users run them, and a small job to run them on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.build import TraceBuilder
from tests.conftest import Cli, Said
from tests.warm import program


@pytest.fixture
def process() -> Cli:
    """Run a command line as a process of its own; `environment` is added to this one's, `stdin` is its input."""
    return _process(sys.executable, "-m", "rocpd")


@pytest.fixture
def warm_process() -> Cli:
    """The same where it does not matter how the process starts."""
    return _process(program())


def _process(*start: str | Path) -> Cli:
    def run_it(
        *words: str | Path, environment: dict[str, str] | None = None, cwd: Path | None = None, stdin: str | None = None
    ) -> Said:
        command = [*start, *(os.fspath(word) for word in words)]
        env = {name: value for name, value in os.environ.items() if not name.startswith("ROCPD_")}
        env |= {"PYTHONPATH": str(Path(__file__).parents[2]), **(environment or {})}
        done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=cwd, check=False, input=stdin)
        return Said(done.returncode, done.stdout, done.stderr)

    return run_it


@pytest.fixture(scope="session")
def written_job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of `job`, which get copies: making them takes ten times as long."""
    folder = tmp_path_factory.mktemp("cli")
    for number in range(4):
        trace = TraceBuilder(number, pid=100 + number).kernel("gemm", 1000, 1010 + 10 * number)
        trace.region("hipLaunchKernel", 900, 950).region("roctxRangePushA", 800, 1200, message="step")
        trace.write(folder / f"db{number}.db")
    return folder


@pytest.fixture
def job(written_job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with db0.db … db3.db, which is the working directory: gemm takes 10, 20, 30, 40 ns."""
    folder = shutil.copytree(written_job, tmp_path / "job", copy_function=shutil.copyfile)
    monkeypatch.chdir(folder)
    return folder


def assert_one_error(said: Said, code: int, *names: str) -> None:
    """Exit code, one error line that holds `names`, at most one hint, no traceback."""
    assert said.code == code, said
    lines = [line for line in said.err.splitlines() if not line.startswith(("rocpd: input:", "rocpd: left out"))]
    assert lines[0].startswith("rocpd: error: "), said
    assert [name for name in names if name not in lines[0]] == [], said
    assert [line.startswith("  hint: ") for line in lines[1:]] in ([], [True]), said
