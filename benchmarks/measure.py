"""Timing, the words for it, and the jobs that are timed; nothing here knows what is measured."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Size:
    """How large benchmarks are.

    Args:
        share: Of the events, or rounds, that a benchmark asks for.
        most_ranks: A job has at most so many.
    """

    share: float
    most_ranks: int


_GPUS = 8  # of a node
FULL, TINY = Size(1.0, 1 << 20), Size(0.005, 8)
SIZE = FULL


def scaled(count: int) -> int:
    """Return how much of a number of events, or rounds, is measured: all, unless the run is tiny."""
    return max(1, round(count * SIZE.share))


def seconds(action: Callable[[], object]) -> float:
    """Run `action` once and return the wall time [s]."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def cpu_seconds(action: Callable[[], object]) -> float:
    """Run `action` once and return the CPU time of this process and of those that it started and waited for [s]."""
    start = _cpu_used()
    action()
    return _cpu_used() - start


def _cpu_used() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def medians(
    actions: Mapping[str, Callable[[], object]],
    runs: int = 5,
    timed: Callable[[Callable[[], object]], float] = seconds,
) -> dict[str, float]:
    """Time actions in turn, `runs` rounds after a warm-up round, by wall or CPU time; return the median of each [s].

    In turn, so that a machine that slows down does so for all of them.
    """
    times: dict[str, list[float]] = {name: [] for name in actions}
    for action in actions.values():
        action()
    for _ in range(scaled(runs)):
        for name, action in actions.items():
            times[name].append(timed(action))
    return {name: statistics.median(values) for name, values in times.items()}


@dataclass(frozen=True)
class Cost:
    """What a command takes: wall and CPU time [s], and memory at its peak [MB], both with all that it starts."""

    wall: float
    cpu: float
    memory: float


def cost(*words: str, folder: Path | None = None, looks: bool = True) -> Cost:
    """Run `rocpd` with these words, and what it keeps in `folder`: without one nothing is there before, or after.

    Memory is the sum of what processes share out among them (PSS), looked at fifty times a second. That takes time of
    a large process: where only time is asked for nobody `looks`, and memory is 0.
    """
    with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryFile() as said:  # a pipe that is full would block it
        environment = os.environ | {"XDG_CACHE_HOME": str(folder or empty), "PYTHONDONTWRITEBYTECODE": ""}
        before, start, peak = _cpu_used(), time.perf_counter(), 0.0
        command = [sys.executable, "-m", "rocpd", *words]
        with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=said) as process:
            while looks and process.poll() is None:
                peak = max(peak, sum(map(_share, _tree(process.pid))))
                time.sleep(0.02)
            code = process.wait()
        wall = time.perf_counter() - start
        if code:
            said.seek(0)
            raise subprocess.CalledProcessError(code, command, stderr=said.read())
    return Cost(wall, _cpu_used() - before, peak)


def _tree(pid: int) -> list[int]:
    """Return a process and those that it started, and they."""
    try:
        children = [
            each for task in Path(f"/proc/{pid}/task").iterdir() for each in (task / "children").read_text().split()
        ]
    except OSError:
        return []
    return [pid, *(each for child in children for each in _tree(int(child)))]


def _share(pid: int) -> float:
    """Return a process' share of memory [MB]; 0 of one that has ended."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")) / 1024


def cache() -> Path:
    """Return the folder that keeps generated jobs between runs: `$ROCPD_BENCH_DIR`, else below the temporary folder."""
    folder = Path(os.environ.get("ROCPD_BENCH_DIR") or Path(tempfile.gettempdir()) / "rocpd-bench")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def job(ranks: int, events_per_rank: int) -> list[Path]:
    """Return the files of a simulated job, made on first use: `events_per_rank` dispatches and regions (1 : 2).

    Each node runs eight ranks, a GPU each. In a tiny run the job has fewer ranks, and fewer events.
    """
    from rocpd.simulator import JobOptions, simulate

    ranks, events_per_rank = min(ranks, SIZE.most_ranks), scaled(events_per_rank)
    nodes = -(-ranks // _GPUS)
    folder = cache() / f"job-{ranks}x{events_per_rank}-on-{nodes}"
    files = sorted(folder.glob("rank*.db"))
    if len(files) != ranks:
        options = JobOptions(out=folder, ranks=ranks, nodes=nodes, events_per_rank=events_per_rank, force=True)
        files = list(simulate(options))
    return files
