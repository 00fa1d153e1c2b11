"""CPU time that a further rank of 900 events takes: commands on 64 and 256 ranks, with 058ec84 and with the tree.

Of the command and all that it starts. Nothing is kept from one run to the next: each has a cache of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.against import ROOT, checked_out
from benchmarks.measure import SIZE, cpu_seconds, job, medians

BEFORE = "058ec84"
RANKS, EVENTS = (64, 256), 900
COMMANDS: dict[str, tuple[float, tuple[str, ...]]] = {
    "query": (0.5, ("query", "SELECT count(*), sum(duration) FROM kernels")),
    "info": (0.5, ("info",)),
    "summary": (0.25, ("summary",)),
    "advise": (0.25, ("advise",)),
    "diff": (0.25, ("diff", "JOB")),
    "report": (0.25, ("report", "-o", "OUT/report.html", "--force")),
    "pftrace": (0.5, ("convert", "-f", "pftrace", "-d", "OUT", "--force")),
}
"""Command -> how much of what it took before it may take, and its words."""


def run() -> None:
    """Print milliseconds for each further rank, before and now, and the ratio beside its bar."""
    few, many = (min(count, SIZE.most_ranks // part) for count, part in zip(RANKS, (2, 1), strict=True))
    jobs = {count: job(count, EVENTS)[0].parent for count in (few, many)}
    print(f"{'command':10} {'ms before':>10} {'ms now':>8} {'ratio':>6} {'bar':>5}")
    with checked_out(BEFORE) as old:
        for name, (bar, words) in COMMANDS.items():
            runs = {
                f"{tree} {count}": partial(_run, tree, words, folder)
                for count, folder in jobs.items()
                for tree in (old, ROOT)
            }
            times = medians(runs, 3, cpu_seconds)
            before, now = ((times[f"{tree} {many}"] - times[f"{tree} {few}"]) / (many - few) for tree in (old, ROOT))
            print(f"{name:10} {before * 1e3:10.1f} {now * 1e3:8.1f} {now / before:6.2f} {bar:5.2f}", flush=True)


def _run(tree: Path, words: tuple[str, ...], folder: Path) -> None:
    """Run a command of the package in `tree` on a job; `diff` says by its code whether runs differ."""
    with tempfile.TemporaryDirectory() as cache:
        chosen = [word.replace("OUT", cache).replace("JOB", str(folder)) for word in words]
        environment = os.environ | {"PYTHONPATH": str(tree), "XDG_CACHE_HOME": cache}
        command = [sys.executable, "-m", "rocpd", *chosen, str(folder)]
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
        if done.returncode not in ((0, 1, 4) if words[0] == "diff" else (0,)):
            raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
