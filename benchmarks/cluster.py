"""A Dask cluster of two processes against one: the same work of ten seconds and more, ranks batched per task.

Workers keep freed memory, as docs/scale.md advises: Dask's own setting gives it back at once.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from distributed import Client, LocalCluster

import rocpd
from benchmarks.measure import job, medians
from benchmarks.results import table
from rocpd.convert import FORMATS
from rocpd.convert.options import ConvertOptions
from rocpd.session import Session

RANKS, EVENTS = 16, 300_000
HEAVY = "SELECT name, rank, count(*), sum(duration), avg(grid_x * 1.0) FROM kernels GROUP BY name, rank"


def run() -> None:
    """Print the table."""
    os.environ |= {"MALLOC_TRIM_THRESHOLD_": str(1 << 28), "MALLOC_MMAP_THRESHOLD_": str(1 << 29)}
    files = job(RANKS, EVENTS)
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,  # type: ignore[no-untyped-call]
        Client(cluster, set_as_default=False) as client,  # type: ignore[no-untyped-call]
        rocpd.connect(files, jobs=1) as serial,
        rocpd.connect(files, client=client) as spread,
    ):
        works: dict[str, Callable[[Session], object]] = {
            "20 statements": lambda s: [s.execute(HEAVY).fetchall() for _ in range(20)],
            "16 summaries gpu-time": lambda s: [s.summary("gpu-time").fetchall() for _ in range(16)],
            "convert to csv": lambda s: FORMATS["csv"].write(s, ConvertOptions(Path(folder), force=True)),
        }
        rows = [_row(name, work, serial, spread) for name, work in works.items()]
    print(f"{RANKS} ranks of {EVENTS} events, two workers of one thread each.\n")
    print(table(("work", "one process s", "two workers s", "x faster (bar: 1.5)"), rows))


def _row(name: str, work: Callable[[Session], object], serial: Session, spread: Session) -> tuple[str, ...]:
    times = medians({"one": lambda: work(serial), "two": lambda: work(spread)}, runs=3)
    return name, f"{times['one']:.1f}", f"{times['two']:.1f}", f"{times['one'] / times['two']:.2f}"
