"""Time and memory of the first screen, and of the report, of many ranks."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.measure import Cost, cost, job
from benchmarks.questions import words_of


def run() -> None:
    """Print seconds and megabytes, each with its bar."""
    few, many, heavy = (str(job(*size)[0].parent) for size in ((1000, 100), (10_000, 100), (1024, 10_000)))
    taken = cost(*words_of(""), heavy)
    print(f"first screen of 1,024 ranks of 10,000 events: {_shown(taken)} (bars: 60 s, 600 MB)", flush=True)
    with tempfile.TemporaryDirectory() as out:
        report = ("report", "--force", "-o", str(Path(out, "report.html")))
        for name, words in (("first screen", words_of("")), ("report", report)):
            less, more = cost(*words, few), cost(*words, many)
            print(f"{name} of 1,000 ranks of 100 events: {_shown(less)}")
            print(
                f"{name} of 10,000: {_shown(more)}: {more.memory / less.memory:.2f} x the memory (bar: 1.5)", flush=True
            )


def _shown(taken: Cost) -> str:
    return f"{taken.wall:.0f} s, {taken.cpu:.0f} s CPU, {taken.memory:.0f} MB"
