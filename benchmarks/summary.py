"""The full summary, and each analysis, against a bare scan of the columns used: 2 and 16 ranks of 100k dispatches and 200k regions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import rocpd
from benchmarks.measure import job, medians, seconds
from rocpd.federate.session import Session
from rocpd.summary.analyse import run as analyse
from rocpd.summary.names import SUMMARIES
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
    files = job(max(RANKS), 300_000)
    per_rank: dict[str, dict[int, float]] = {}
    print(f"{'ranks':>5}  {'what':22} {'s':>8} {'s/rank':>8} {'x bare scan':>12}")
    for ranks in RANKS:
        with rocpd.connect(files[:ranks]) as session:
            times = medians({"full summary": lambda: full(session), "bare scan": lambda: scan(session)}, runs=3)
            for what in SUMMARIES:
                times[what] = seconds(lambda what=what: analysis(session, what))  # type: ignore[misc]
            for what, taken in times.items():
                per_rank.setdefault(what, {})[ranks] = taken / ranks
                ratio = taken / times["bare scan"]
                print(f"{ranks:5}  {what:22} {taken:8.2f} {taken / ranks:8.3f} {ratio:12.2f}", flush=True)
    for what, found in per_rank.items():
        few, many = (found[ranks] for ranks in RANKS)
        print(f"{what}: time per rank at {RANKS[1]} is {many / few:.2f} x that at {RANKS[0]} (bar: 1.25)")


def full(session: Session) -> None:
    """Every table of `rocpd summary --domain-summary --summary-by-rank`."""
    for table in summarize(session, SummaryOptions(by_rank=True, domains=True)):
        assert table.rows


def analysis(session: Session, name: str) -> None:
    """One analysis with all its tables."""
    for summary in analyse(session, name):
        for _ in summary:
            pass


def scan(session: Session) -> None:
    """Loop in Python over one cursor per suffixed table, reading the columns that the full summary uses; no joins."""
    for part in session.parts:
        for base, columns in _COLUMNS.items():
            with _cursor(session, f"SELECT {columns} FROM {part.name(base)}") as rows:
                for _ in rows:
                    pass


@contextlib.contextmanager
def _cursor(session: Session, sql: str) -> Iterator[Iterator[tuple[object, ...]]]:
    cursor = session.connection.cursor()
    yield cursor.execute(sql)
    cursor.close()
