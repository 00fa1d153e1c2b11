"""The examples for CI on the page on comparisons run as the shell scripts that they are."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

import rocpd
from tests.docs.console import ROOT
from tests.warm import program, shell_path

_BLOCKS = re.compile(r"^```yaml\n(.*?)^```", re.M | re.S)
_RECORD = '#!/bin/sh\ncp -r recorded/"$1" "$1"\n'


def scripts() -> dict[str, str]:
    """Return the steps of each host as one script."""
    github, gitlab = map(yaml.safe_load, _BLOCKS.findall((ROOT / "docs" / "compare.md").read_text(encoding="utf-8")))
    steps = [step["run"] for step in github["jobs"]["gate"]["steps"] if "run" in step]
    return {"GitHub": "\n".join(steps), "GitLab": "\n".join(gitlab["performance"]["script"])}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four runs of a base, and four each that are as fast, and slower."""
    folder = tmp_path_factory.mktemp("ci")
    for plant, name in (("none", "base"), ("none", "same"), ("slow-gpus=9", "slower")):
        for number in range(1, 5):
            out = folder / name / f"run{number}"
            rocpd.simulate(out, ranks=1, steps=4, seed=10 * len(name) + number, plant=plant)
    return folder


@pytest.mark.parametrize(("host", "new", "code"), [("GitHub", "slower", 1), ("GitLab", "same", 0)])
def test_examples_run(host: str, new: str, code: int, recorded: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": shell_path(), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    (tmp_path / "recorded").symlink_to(recorded / new)
    (tmp_path / "record.sh").write_text(_RECORD)
    (tmp_path / "record.sh").chmod(0o755)
    save = [str(program()), "diff", "--save-baseline", "main.json", "--base"]
    runs = [str(recorded / "base" / f"run{number}") for number in range(1, 5)]
    subprocess.run([*save, *runs], cwd=tmp_path, env=environment, check=True, capture_output=True)
    script = ["bash", "-e", "-c", scripts()[host]]
    done = subprocess.run(script, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert (tmp_path / "comment.md").read_text().startswith(f"**{new}: median step ")
