"""An earlier commit against the tree: seconds of commands and of single analyses, in turn, and their ratios.

The files of the commit go to a temporary folder and take their libraries from this environment. Both read the same
job, which the tree simulates.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tarfile
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
        for side in ("old", "new"):
            Path(out, side).mkdir()
        for name, words in COMMANDS.items():
            given = [] if name == "--help" else list(map(str, files))
            # Each writes into its own folder: what one wrote is no output to the other, which would not replace it.
            sides = {
                side: partial(run_of, tree, [word.replace("OUT", f"{out}/{side}") for word in words] + given)
                for side, tree in (("old", old), ("new", ROOT))
            }
            try:
                times = medians(sides, 3, cpu_seconds)
            except subprocess.CalledProcessError as error:
                print(f"{name:20} {error.stderr.strip().splitlines()[-1]}", flush=True)
                continue
            print(f"{name:20} {times['old']:12.2f} {times['new']:8.2f} {times['new'] / times['old']:11.2f}", flush=True)


@contextlib.contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """Give a folder with the package of a commit, removed at the end."""
    with tempfile.TemporaryDirectory(prefix="rocpd-against-") as folder:
        archive = Path(folder) / "rocpd.tar"
        subprocess.run(["git", "-C", str(ROOT), "archive", "-o", str(archive), commit, "rocpd"], check=True)
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        yield Path(folder)


def run_of(tree: Path, words: list[str]) -> None:
    """Run a command of the package in `tree`."""
    command = [sys.executable, "-m", "rocpd", *words]
    environment = os.environ | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": ""}
    subprocess.run(command, cwd=tree, env=environment, check=True, capture_output=True, text=True)
