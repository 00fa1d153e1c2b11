"""The full summary, and each analysis, against a bare scan of the columns used, at 2 and 16 ranks of 300k events."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

import rocpd
from benchmarks.measure import job, medians, seconds
from rocpd.base import RocpdError
from rocpd.session import Session
from rocpd.summary.reading import run as analyse
from rocpd.summary.registry import SUMMARIES
from rocpd.summary.summarize import SummaryOptions, summarize

RANKS = (2, 16)
_COLUMNS = {
    "rocpd_kernel_dispatch": 'kernel_id, start, "end"',
    "rocpd_region": 'name_id, event_id, start, "end"',
    "rocpd_event": "id, category_id, extdata",
    "rocpd_memory_copy": 'name_id, start, "end", size',
    "rocpd_memory_allocate": 'type, level, start, "end", size',
    "rocpd_sample": 'event_id, "timestamp"',
}


def run() -> None:
    """Print seconds, seconds per rank and ratios; the bars are 4 x the scan and 1.25 x the time per rank."""
    few, many = RANKS
    files = job(many, 300_000)
    with rocpd.connect(files[:few]) as small, rocpd.connect(files) as large:
        # In turn: a machine that others use changes its speed from minute to minute.
        times = medians(
            {
                "few": lambda: full(small),
                "scan of few": lambda: scan(small),
                "many": lambda: full(large),
                "scan": lambda: scan(large),
            },
            runs=3,
        )
        for what, ranks in (("scan of few", few), ("few", few), ("scan", many), ("many", many)):
            print(f"{what:12} {ranks:3} ranks {times[what]:8.2f} s {times[what] / ranks:8.3f} s/rank", flush=True)
        print(f"full summary of {many} ranks: {times['many'] / times['scan']:.2f} x the bare scan (bar: 4)")
        scale, ideal = (times[a] / many / (times[b] / few) for a, b in (("many", "few"), ("scan", "scan of few")))
        print(f"time per rank at {many}: {scale:.2f} x that at {few} (bar: 1.25); the scan alone: {ideal:.2f} x")
        for name in SUMMARIES:
            if why_not := _why_not(large, name):
                print(f"{name:12} {why_not}")
                continue
            taken = seconds(lambda name=name: analysis(large, name))  # type: ignore[misc]
            print(f"{name:12} {many:3} ranks {taken:8.2f} s {taken / times['scan']:8.2f} x the bare scan", flush=True)


def full(session: Session) -> None:
    """Every table of `rocpd summary --domain-summary --summary-by-rank`."""
    for table in summarize(session, SummaryOptions(by_rank=True, domains=True)):
        assert table.fetchall()


def _why_not(session: Session, name: str) -> str:
    """Return why the job cannot answer: simulated ones have no call stacks, for instance."""
    try:
        next(analyse(session, name), None)
    except RocpdError as error:
        return error.message
    return ""


def analysis(session: Session, name: str) -> None:
    """One analysis with all its tables."""
    for summary in analyse(session, name):
        for _ in summary:
            pass


def scan(session: Session, read: Mapping[str, str] = _COLUMNS) -> None:
    """Loop in Python over one cursor per suffixed table, reading the columns that the full summary uses; no joins.

    Args:
        session: the job.
        read: table -> columns, in place of those.
    """
    for part in session.attached_tables:
        for base, columns in read.items():
            with _cursor(session, f"SELECT {columns} FROM {part.name(base)}") as rows:
                for _ in rows:
                    pass


@contextlib.contextmanager
def _cursor(session: Session, sql: str) -> Iterator[Iterator[tuple[object, ...]]]:
    cursor = session.connection.cursor()
    yield cursor.execute(sql)
    cursor.close()
