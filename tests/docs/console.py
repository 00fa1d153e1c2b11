"""Owns reading ```console blocks of Markdown pages and running them: docs that are run can't rot."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

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


def run(command: str, folder: Path) -> str:
    """Run a command in a shell in which `rocpd` is the one of `tests.warm`; return stdout and stderr as they come."""
    environment = {**os.environ, "PATH": shell_path(), "LC_ALL": "C.UTF-8", "PYTHONUNBUFFERED": "1"}
    environment.pop("ROCPD_INPUT", None)
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
