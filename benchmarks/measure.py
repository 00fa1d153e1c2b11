"""Owns timing and the words for it; nothing here knows what is measured."""

from __future__ import annotations

import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path


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


def medians(actions: Mapping[str, Callable[[], object]], runs: int = 5) -> dict[str, float]:
    """Time actions in turn, `runs` rounds after a warm-up round, and return the median of each [s].

    In turn, so that a machine that slows down does so for all of them.
    """
    times: dict[str, list[float]] = {name: [] for name in actions}
    for action in actions.values():
        action()
    for _ in range(runs):
        for name, action in actions.items():
            times[name].append(seconds(action))
    return {name: statistics.median(values) for name, values in times.items()}


def cache() -> Path:
    """Return the folder that keeps generated jobs between runs: `$ROCPD_BENCH_DIR`, else below the temporary folder."""
    folder = Path(os.environ.get("ROCPD_BENCH_DIR") or Path(tempfile.gettempdir()) / "rocpd-bench")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def job(ranks: int, events_per_rank: int) -> list[Path]:
    """Return the files of a simulated job, made on first use: `events_per_rank` dispatches and regions (1 : 2)."""
    from rocpd.simulator import JobOptions, simulate

    folder = cache() / f"job-{ranks}x{events_per_rank}"
    files = sorted(folder.glob("rank*.db"))
    if len(files) != ranks:
        files = list(simulate(JobOptions(out=folder, ranks=ranks, events_per_rank=events_per_rank, force=True)))
    return files
