"""The first question and the second: whole commands against a bare scan, and with kept facts.

A bare scan is a `SELECT` of the columns that the first screen reads, of all tables of events, on all cores.
"""

from __future__ import annotations

import subprocess
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import rocpd
from benchmarks.against import ROOT, checked_out, run_of
from benchmarks.measure import cost, job, medians, scaled
from benchmarks.ranks import BEFORE
from benchmarks.summary import scan
from rocpd.federate.limits import usable_cores
from rocpd.summary.registry import SUMMARIES

RANKS, EVENTS = 16, 340_000
SINGLE = ("calls", "functions", "ranks")
_READ = {
    "rocpd_kernel_dispatch": 'id, kernel_id, start, "end", agent_id, stream_id, event_id',
    "rocpd_region": 'id, name_id, event_id, tid, start, "end"',
    "rocpd_event": "id, category_id, stack_id, extdata, call_stack",
    "rocpd_memory_copy": 'id, name_id, start, "end", src_agent_id, dst_agent_id, stream_id, event_id, size',
    "rocpd_memory_allocate": 'id, type, level, start, "end", agent_id, stream_id, queue_id, address, size, event_id',
    "rocpd_sample": 'id, event_id, track_id, "timestamp"',
    "rocpd_arg": "event_id, name, value",
}
"""The columns of events that the first screen reads."""


def run() -> None:
    """Print seconds, megabytes and ratios, each with its bar."""
    files = job(RANKS, EVENTS)
    folder = str(files[0].parent)
    with ProcessPoolExecutor(usable_cores()) as pool:
        bare = medians({"scan": lambda: list(pool.map(_scan, files))}, runs=3)["scan"]
    print(f"bare scan of {RANKS} ranks of {EVENTS:,} events: {bare:.2f} s")
    with checked_out(BEFORE) as old:
        for name, bar in (("", 1.3), *((name, 1.0) for name in SINGLE)):
            words = [*words_of(name), folder, "--index", "off"]
            taken = medians({str(tree): partial(run_of, tree, words) for tree in (old, ROOT)}, 3)
            before, now = taken.values()
            print(
                f"{name or 'first screen':20} {now:6.2f} s, {now / bare:.2f} x the scan (bar: {bar}); "
                f"{now / before:.2f} x {BEFORE}",
                flush=True,
            )
    _ask_again(folder)


def words_of(name: str) -> tuple[str, ...]:
    """Return the words of an analysis; without a name, of the first screen."""
    return ("summary", name, "--no-pager") if name else ("summary", "--no-pager")


def _scan(file: Path) -> None:
    """Read the columns of a rank's tables of events, row by row."""
    with rocpd.connect([file], index="off") as session:
        scan(session, _READ)


def _ask_again(folder: str) -> None:
    """Print what each analysis takes again, beside what it took first and the same of one small file."""
    small = str(job(1, 3000)[0])
    print(f"{'asked again':20} {'first s':>8} {'again s':>8} {'small s':>8} {'(again - small) / first':>24}")
    names = ("", *SUMMARIES)
    for name in names[: max(2, scaled(len(names)))]:
        with tempfile.TemporaryDirectory() as kept:
            words, at = words_of(name), Path(kept)
            try:
                first, again = (cost(*words, folder, folder=at, looks=False).wall for _ in range(2))
                alone = min(cost(*words, small, looks=False).wall for _ in range(2))
            except subprocess.CalledProcessError:
                continue  # the job has nothing that it asks for
        bar = 0.15 if name else 0.1
        ratio = (again - alone) / first
        print(
            f"{name or 'first screen':20} {first:8.2f} {again:8.2f} {alone:8.2f} {ratio:16.2f} (bar: {bar})", flush=True
        )
