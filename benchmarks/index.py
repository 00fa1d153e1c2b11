"""The columnar index: statements with it, without, and by hand for DuckDB; building; analyses; a billion events."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import duckdb

import rocpd
from benchmarks.measure import cache, job, medians, seconds
from rocpd.base import RocpdError
from rocpd.index.build import build
from rocpd.index.entries import indexes, state_of
from rocpd.session import Session
from rocpd.simulator import JobOptions, simulate
from rocpd.summary.reading import Reading, planned, run_planned
from rocpd.summary.registry import SUMMARIES

RANKS, EVENTS = 16, 300_000
LARGE_EVENTS, LINKS = 1_000_000, 64
STATEMENTS = {
    "count and sum": ("select count(*), sum(duration) from kernels", "kernels"),
    "by name": ("select name, count(*), sum(duration) from kernels group by name", "kernels"),
    "by rank and name": ("select rank, name, count(*), sum(duration) from kernels group by rank, name", "kernels"),
    "regions by name": ("select name, count(*), sum(duration) from regions group by name", "regions"),
}
BILLION = {
    "count": "select count(*), sum(duration) from kernels",
    "top kernels": "select name, count(*), sum(duration) from kernels group by name order by 3 desc limit 10",
    "top kernels by rank": "select rank, name, sum(duration) from kernels group by rank, name order by 3 desc limit 10",
}


def run() -> None:
    """Print seconds and ratios; `$ROCPD_BENCH_BILLION` adds a billion events, which take 6 GB of disk while made."""
    files, folder = job(RANKS, EVENTS), cache() / "index"
    _time_building(files, folder)
    with rocpd.connect(files, index="off") as plain, rocpd.connect(files, index_folder=folder) as indexed:
        _time_statements(plain, indexed, folder)
    _time_analyses(files, folder)
    if os.environ.get("ROCPD_BENCH_BILLION"):
        _time_billion()


def _time_building(files: list[Path], folder: Path) -> None:
    def build_anew() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        with rocpd.connect(files) as session:
            build(session, folder)

    def convert() -> None:
        with rocpd.connect(files) as session:
            session.convert("parquet", cache() / "out", force=True)

    times = medians({"index": build_anew, "parquet": convert}, runs=3)
    size = sum(file.stat().st_size for file in folder.rglob("*.parquet")) / sum(file.stat().st_size for file in files)
    print(f"build {times['index']:.1f} s, {times['index'] / times['parquet']:.2f} x of convert -f parquet (bar: 0.8)")
    print(f"entries are {size:.1%} of the files (bar: 15 %)")


def _time_statements(plain: Session, indexed: Session, folder: Path) -> None:
    print(f"{'statement':18} {'SQLite s':>9} {'index s':>9} {'times':>6} {'by hand s':>10}")
    database = duckdb.connect()
    entries = [indexes(folder).entry(state_of(rank)) for rank in indexed.ranks]
    for name, (sql, view) in STATEMENTS.items():
        paths = [entry.path(view) for entry in entries if entry]
        by_hand = sql.replace(f"from {view}", "from read_parquet($1)").replace("rank", "file_index")
        actions: dict[str, Callable[[], object]] = {
            "plain": partial(_ask, plain, sql),
            "index": partial(_ask, indexed, sql),
            "hand": partial(_by_hand, database, by_hand, paths),
        }
        times = medians(actions)
        print(
            f"{name:18} {times['plain']:9.3f} {times['index']:9.3f} {times['plain'] / times['index']:6.1f}"
            f" {times['hand']:10.3f}  {(times['index'] - 0.02) / times['hand']:.2f} x of it plus 20 ms (bar: 1.5)",
            flush=True,
        )


def _time_analyses(files: list[Path], folder: Path) -> None:
    """Print what all analyses take without an index, and with one when they are asked for again."""

    def analyse(use: str) -> None:
        with rocpd.connect(files, index=use, index_folder=folder) as session:
            for _, tables in run_planned(Reading(session), planned(SUMMARIES)):
                with contextlib.suppress(RocpdError):  # what the job lacks
                    for table in tables:
                        list(table)

    times = medians({"plain": partial(analyse, "off"), "index": partial(analyse, "require")}, runs=3)
    ratio = times["plain"] / times["index"]
    print(f"all analyses {times['plain']:.1f} s, again with an index {times['index']:.1f} s: {ratio:.1f} (bar: 3)")


def _ask(session: Session, sql: str) -> object:
    return session.execute(sql).fetchall()


def _by_hand(database: duckdb.DuckDBPyConnection, sql: str, paths: list[str]) -> object:
    return database.execute(sql, [paths]).fetchall()


def _time_billion() -> None:
    """Ask a billion events: tiny files of many ranks, with the entries of few large ones."""
    folder = cache() / "billion"
    root = folder / "index"
    if not root.exists():
        _link_entries(folder, root)
    files = sorted((folder / "tiny").glob("rank*.db"))
    opened: list[Session] = []
    opening = seconds(lambda: opened.append(rocpd.connect(files, index="require", index_folder=root)))
    (session,) = opened
    with session:
        ((events,),) = session.execute("select count(*) from kernels", strategy="columnar")
        print(f"{len(files)} ranks, {events:,} dispatches; opened in {opening:.2f} s (bar: 3)")
        for name, sql in BILLION.items():
            print(f"{name:20} {seconds(partial(_ask, session, sql)):.2f} s (bar: 5)", flush=True)
        (least, most) = session.execute("select min(start), max(start) from kernels").fetchall()[0]
        start, end = least + (most - least) * 50 // 100, least + (most - least) * 51 // 100
        part = f"select name, sum(duration) from kernels where start >= {start} and start < {end} group by name"
        print(f"{'a window of 1 %':20} {seconds(partial(_ask, session, part)):.2f} s (bar: 5)")
    print(f"at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB (bar: 2)")


def _link_entries(folder: Path, root: Path) -> None:
    large = list(simulate(JobOptions(out=folder / "large", ranks=RANKS, events_per_rank=LARGE_EVENTS, force=True)))
    with rocpd.connect(large) as session:
        build(session, folder / "entries")
        entries = [indexes(folder / "entries").entry(state_of(rank)) for rank in session.ranks]
    shutil.rmtree(folder / "large")
    tiny = list(simulate(JobOptions(out=folder / "tiny", ranks=RANKS * LINKS, events_per_rank=12, force=True)))
    root.mkdir()
    with rocpd.connect(tiny, index="off") as session:
        for rank in session.ranks:
            entry = entries[rank.number % RANKS]
            if entry:
                (root / state_of(rank)).symlink_to(entry.folder)
