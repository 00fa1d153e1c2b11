"""Reads ```console blocks of Markdown pages and runs them: docs that are run can't rot."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from rocpd import cli
from tests.warm import shell_path

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```console\n(.*?)^```", re.M | re.S)


@dataclass(frozen=True)
class Step:
    """One `$ command` of a page and the output that the page shows for it."""

    command: str
    shown: str


def steps(page: Path) -> list[Step]:
    """Return the commands of a page in order."""
    steps = []
    for block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        for piece in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, shown = piece.partition("\n")
            steps.append(Step(command, shown))
    return steps


_QUOTED = re.compile(r"""'[^']*'|"[^"$`\\]*\"""")
_OF_THE_SHELL = re.compile(r"[^\w\s./=,:%+@-]")


def run(command: str, folder: Path) -> str:
    """Run a command; return stdout and stderr as they come.

    What is a command of `rocpd` and nothing else runs in this process, the rest in a shell in which `rocpd` is the one
    of `tests.warm`.
    """
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "PYTHONUNBUFFERED": "1"}
    environment.pop("ROCPD_INPUT", None)
    if command.startswith("rocpd ") and not _OF_THE_SHELL.search(_QUOTED.sub("", command)):
        code, said = _run_here(shlex.split(command)[1:], folder, environment)
        assert code == 0, f"$ {command}\n{said}"
        return said
    environment["PATH"] = shell_path()
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, f"$ {command}\n{done.stdout}"
    return done.stdout


def _run_here(words: Sequence[str], folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    with tempfile.TemporaryFile(buffering=0) as file:
        out = io.TextIOWrapper(file, encoding="utf-8", write_through=True)
        with (
            contextlib.chdir(folder),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(out),
            patch.dict(os.environ, environment, clear=True),
        ):
            code = cli.run(words)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        file.seek(0)
        return code, file.read().decode()


def rewrite(page: Path, folder: Path) -> str:
    """Return the page with the output that its commands print now."""
    text = page.read_text(encoding="utf-8")
    for step in steps(page):
        old = f"$ {step.command}\n{step.shown}"
        text = text.replace(old, f"$ {step.command}\n{run(step.command, folder)}", 1)
    return text


if __name__ == "__main__":
    import tempfile

    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as scratch:
            new = rewrite(Path(name), Path(scratch))
        Path(name).write_text(new, encoding="utf-8")
