"""Planned statements against attached ones, a join of unions and DuckDB; and time per rank from 1 to 1,024 ranks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import rocpd
from benchmarks.duck import open_duck
from benchmarks.federation import JoinOfUnions
from benchmarks.measure import job, medians, seconds
from benchmarks.results import table
from rocpd.federate.limits import usable_cores
from rocpd.session import Session
from rocpd.summary.summarize import SummaryOptions, summarize

RANKS = 16
MANY = (1, 8, 64, 256, 1024)
EVENTS = 3000  # of each of the many ranks
STATEMENTS = {
    "top_kernels": "SELECT * FROM top_kernels",
    "aggregate": (
        "SELECT name, count(*), sum(duration), avg(duration), min(duration), max(duration) FROM kernels GROUP BY name"
    ),
    "total": "SELECT count(*), sum(duration) FROM kernels",
    "filtered rows": "SELECT name, start, duration FROM kernels WHERE duration > 400000",
}
JOINED = ("top_kernels", "total")  # the others take a join of unions minutes
IN_DUCKDB = {
    "top_kernels": (
        "SELECT name, count(*), sum(duration) / 1000, sum(duration) / (1000 * count(*)),"
        " sum(duration) * 100.0 / sum(sum(duration)) OVER () FROM {kernels} GROUP BY name"
        " ORDER BY sum(duration) DESC, name"
    ),
    "aggregate": (
        "SELECT name, count(*), sum(duration), avg(duration), min(duration), max(duration) FROM {kernels} GROUP BY name"
    ),
    "total": "SELECT count(*), sum(duration) FROM {kernels}",
    "filtered rows": "SELECT name, start, duration FROM {kernels} WHERE duration > 400000",
}
SUMMARY_IN_DUCKDB = tuple(
    f"SELECT {names}, count(*), sum(duration), avg(duration), min(duration), max(duration), stddev_samp(duration)"
    f" FROM {{{events}}} GROUP BY {names}"
    for events, names in (
        ("kernels", "name"),
        ("regions", "category, name"),
        ("copies", "name"),
        ("allocations", "name"),
    )
)
_RSS = """
import resource, sys, rocpd
with rocpd.connect(sys.argv[1:]) as session:
    for sql in {statements!r}:
        for _ in session.execute(sql):
            pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def run() -> None:
    """Print both tables."""
    _against_others()
    _many_ranks()


def _against_others() -> None:
    threads = usable_cores()
    rows = []
    with rocpd.connect(_rested(job(RANKS, 300_000))) as session:
        unions, duck = JoinOfUnions(session), open_duck(session, threads)
        for name, sql in STATEMENTS.items():
            actions: dict[str, Callable[[], object]] = {
                "planned": lambda sql=sql: session.execute(sql).fetchall(),  # type: ignore[misc]
                "attached": lambda sql=sql: session.execute(sql, strategy="attached").fetchall(),  # type: ignore[misc]
            }
            if duck:
                actions["duck"] = lambda name=name: duck.run(IN_DUCKDB[name])  # type: ignore[misc]
            other = seconds(lambda sql=sql: unions.run(sql)) if name in JOINED else None  # type: ignore[misc]
            rows.append(_row(name, medians(actions, runs=5), other))
        actions = {"planned": lambda: list(summarize(session, SummaryOptions()))}
        if duck:
            actions["duck"] = lambda: [duck.run(sql) for sql in SUMMARY_IN_DUCKDB]
        rows.append(_row("summary", medians(actions, runs=3), None))
    head = ("statement", "planned s", "attached s", "join of unions s", "DuckDB s", "planned / DuckDB")
    print(f"{RANKS} ranks of 100,000 dispatches and 200,000 regions, {threads} threads (bar: 1.5 x DuckDB).\n")
    print(table(head, rows), flush=True)


def _row(name: str, times: dict[str, float], unions: float | None) -> tuple[str, ...]:
    def shown(value: float | None) -> str:
        return "-" if value is None else f"{value:.3f}"

    duck = times.get("duck")
    ratio = "-" if duck is None else f"{times['planned'] / duck:.2f}"
    return name, shown(times["planned"]), shown(times.get("attached")), shown(unions), shown(duck), ratio


def _many_ranks() -> None:
    files = _rested(job(max(MANY), EVENTS))
    opening = medians({"opening": lambda: rocpd.connect(files[:1000]).close()})["opening"]
    sessions: dict[int, Session] = {count: rocpd.connect(files[:count]) for count in MANY}
    rows = []
    for name in ("top_kernels", "total"):
        sql = STATEMENTS[name]
        times = medians(
            {str(count): lambda s=s, sql=sql: _planned(s, sql) for count, s in sessions.items()}  # type: ignore[misc]
        )
        for count in MANY:
            per_rank = times[str(count)] / count
            ratio = per_rank / (times["8"] / 8)
            label = f"{name}, {count} rank{'' if count == 1 else 's'}"
            rows.append((label, f"{times[str(count)]:.3f}", f"{per_rank * 1000:.2f}", f"{ratio:.2f}"))
    for session in sessions.values():
        session.close()
    text = table(("statement", "s", "ms per rank", "x that at 8 (bar at 1,024: 1.25)"), rows)
    rss = _peak_rss(files)
    print(f"Ranks of {EVENTS} events, planned also where the job is small, {usable_cores()} threads.\n\n{text}")
    print(f"Opening 1,000 files: {opening:.2f} s (bar: 2). Peak RSS at {max(MANY)} ranks: {rss} MB (bar: 1,000).")


def _planned(session: Session, sql: str) -> object:
    """Run a statement planned, also where the job is so small that attaching is quicker."""
    return session.execute(sql, strategy="aggregates").fetchall()


def _peak_rss(files: list[Path]) -> int:
    program = _RSS.format(statements=[STATEMENTS["top_kernels"], "SELECT * FROM regions"])
    done = subprocess.run([sys.executable, "-c", program, *map(str, files)], capture_output=True, text=True, check=True)
    return int(done.stdout)


def _rested(files: list[Path]) -> list[Path]:
    """Nobody writes them any more."""
    for file in files:
        os.utime(file, (1e9, 1e9))
    return files
