"""An earlier commit against the tree: seconds of commands and of single analyses, in turn, and their ratios.

The commit is checked out beside the tree (a git worktree in a temporary folder) and takes its libraries from this
environment. Both read the same files, which the tree simulates.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.measure import cpu_seconds, job, medians, scaled

ROOT = Path(__file__).resolve().parents[1]
RANKS, EVENTS = 4, 300_000
COMMANDS: dict[str, tuple[str, ...]] = {
    "--help": ("--help",),
    "query, top kernels": ("query", "select * from top_kernels"),
    "query, all kernels": ("query", "select * from kernels", "-f", "csv", "-o", "OUT/kernels.csv", "--force"),
    "summary": ("summary",),
    "summary gpu-time": ("summary", "gpu-time"),
    "summary stragglers": ("summary", "stragglers"),
    "advise": ("advise",),
    "merge": ("merge", "-d", "OUT", "--force"),
    "report": ("report", "-o", "OUT/report.html", "--force"),
    "convert -f csv": ("convert", "-f", "csv", "-d", "OUT", "--force"),
    "convert -f pftrace": ("convert", "-f", "pftrace", "-d", "OUT", "--force"),
    "convert -f otf2": ("convert", "-f", "otf2", "-d", "OUT", "--force"),
    "convert -f parquet": ("convert", "-f", "parquet", "-d", "OUT", "--force"),
}


def run(commit: str) -> None:
    """Print CPU seconds of each command with `commit` and with the tree, and new by old: below 1 is faster now."""
    files = job(RANKS, EVENTS)
    print(f"{RANKS} ranks of {scaled(EVENTS)} events; CPU seconds, medians of rounds in turn")
    print(f"{'command':20} {commit[:12]:>12} {'tree':>8} {'tree by it':>11}")
    with checked_out(commit) as old, tempfile.TemporaryDirectory() as out:
        for name, words in COMMANDS.items():
            command = [word.replace("OUT", out) for word in words] + ([] if name == "--help" else list(map(str, files)))
            try:
                times = medians(
                    {"old": partial(_run, old, command), "new": partial(_run, ROOT, command)}, 3, cpu_seconds
                )
            except subprocess.CalledProcessError as error:
                print(f"{name:20} {error.stderr.strip().splitlines()[-1]}", flush=True)
                continue
            print(f"{name:20} {times['old']:12.2f} {times['new']:8.2f} {times['new'] / times['old']:11.2f}", flush=True)


@contextlib.contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """Give a folder with the files of a commit, removed at the end."""
    with tempfile.TemporaryDirectory(prefix="rocpd-against-") as folder:
        tree = Path(folder) / "tree"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", "--quiet", str(tree), commit], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def _run(tree: Path, words: list[str]) -> None:
    """Run a command of the package in `tree`."""
    command = [sys.executable, "-m", "rocpd", *words]
    environment = os.environ | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": ""}
    subprocess.run(command, cwd=tree, env=environment, check=True, capture_output=True, text=True)
