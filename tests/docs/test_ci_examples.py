"""The examples for CI on the page on comparisons run as the shell scripts that they are."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import rocpd
from tests.docs.console import ROOT

_BLOCKS = re.compile(r"^```yaml\n(.*?)^```", re.M | re.S)
_RECORD = '#!/bin/sh\ncp -r recorded/"$1" "$1"\n'


def scripts() -> tuple[str, str]:
    """Return the steps of GitHub and the script of GitLab, each as one script."""
    github, gitlab = map(yaml.safe_load, _BLOCKS.findall((ROOT / "docs" / "compare.md").read_text(encoding="utf-8")))
    steps = [step["run"] for step in github["jobs"]["gate"]["steps"] if "run" in step]
    return "\n".join(steps), "\n".join(gitlab["performance"]["script"])


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four runs of a base, and four each that are as fast, and slower."""
    folder = tmp_path_factory.mktemp("ci")
    for plant, name in (("none", "base"), ("none", "same"), ("slow-gpus=9", "slower")):
        for number in range(1, 5):
            out = folder / name / f"run{number}"
            rocpd.simulate(out, ranks=1, steps=5, seed=10 * len(name) + number, plant=plant)
    return folder


@pytest.mark.parametrize(("new", "code"), [("same", 0), ("slower", 1)])
def test_examples_run(new: str, code: int, recorded: Path, tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for script in scripts():
        folder = tmp_path / str(len(script))
        folder.mkdir()
        (folder / "recorded").symlink_to(recorded / new)
        (folder / "record.sh").write_text(_RECORD)
        (folder / "record.sh").chmod(0o755)
        environment = {**os.environ, "PATH": path, "GITHUB_STEP_SUMMARY": str(folder / "summary.md")}
        save = ["rocpd", "diff", "--save-baseline", "main.json", "--base"]
        runs = [str(recorded / "base" / f"run{number}") for number in range(1, 5)]
        subprocess.run([*save, *runs], cwd=folder, env=environment, check=True, capture_output=True)
        done = subprocess.run(["bash", "-e", "-c", script], cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        assert (folder / "comment.md").read_text().startswith(f"**{new}: step ")
