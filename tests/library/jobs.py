"""Jobs that are read in different ways, and what programs ask of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import rocpd
from rocpd.base import Row
from rocpd.federate.limits import Limits
from rocpd.federate.run.rank_reader import RankReader
from rocpd.index.build import build
from rocpd.schema.versions import suffix_of
from tests.build import TraceBuilder, guid_of
from tests.federate.writers import HALF_DONE, LIVE_WAL, killed_writer

Question: TypeAlias = Callable[[rocpd.Session], object]

PLANNED = Limits(small_bytes=0, indexed_bytes=0, few_rows=10, chunk_rows=7)
WAYS: Mapping[str, Mapping[str, Any]] = {
    "attached": {},
    "copied": {"jobs": 1},
    "planned": {"limits": PLANNED, "jobs": 2},
    "workers": {"limits": Limits(process_bytes=0), "jobs": 2},
    "indexed": {"limits": PLANNED, "index": "require"},
}
"""How a job is read -> what `connect` is given."""

_STATEMENTS = (
    "SELECT count(*) FROM kernels",
    "SELECT name, count(*), sum(duration) FROM kernels GROUP BY name ORDER BY name",
    "SELECT rank, start FROM kernels ORDER BY rank, start",
    'SELECT * FROM regions WHERE rank = 1 ORDER BY start, "end"',
    "SELECT K.start, R.start FROM kernels K JOIN regions R USING (guid) WHERE R.start = K.start - 1 ORDER BY 1, 2",
    "SELECT name, calls FROM summary.kernels ORDER BY name",
    "SELECT total_calls FROM top_kernels ORDER BY 1",
    "SELECT stddev(duration), name FROM kernels WHERE rank > 0 GROUP BY name ORDER BY 2",
)


def write_job(folder: Path, way: str) -> None:
    """Write a job of few events; more files than SQLite attaches, where they are to be copied."""
    folder.mkdir()
    for number in range(12 if way == "copied" else 3):
        rank = TraceBuilder(number, pid=100 + number)
        for event in range(40):
            rank.region("launch", 100 * event, 100 * event + 10)
            rank.kernel(f"kernel{event % 3}", 100 * event + 1, 100 * event + 90 + number + event % 7)
        path = rank.write(folder / f"{number}.db")
        if number < 2 and way not in ("indexed", "copied"):  # their writers were killed
            killed_writer(path, (HALF_DONE, LIVE_WAL)[number], f"rocpd_string{suffix_of(guid_of(number))}")
        os.utime(path, (1e9, 1e9))  # else a writer may be at work: rows are read at once
    if way == "indexed":
        with rocpd.connect(folder) as session:
            build(session)


def questions() -> list[Question]:
    """Return what is asked: statements whose rows are read one by one or at once, analyses, parts of the job."""
    return [
        *(partial(_row_by_row, sql) for sql in _STATEMENTS),
        *(partial(_at_once, sql) for sql in _STATEMENTS),
        lambda session: session.summary("kernels").fetchall(),
        lambda session: session.summary("gpu-time", by="rank").fetchall(),
        lambda session: session.where(rocpd.Filters(ranks="1")).sql(_STATEMENTS[1]).fetchall(),
        lambda session: session.within(rocpd.Window("30%", "60%")).sql(_STATEMENTS[0]).fetchall(),
        lambda session: (session.time_range, session.tables),
        lambda session: session.info()["agents"].fetchall(),
    ]


def _row_by_row(sql: str, session: rocpd.Session) -> list[Row]:
    return list(session.sql(sql))


def _at_once(sql: str, session: rocpd.Session) -> list[Row]:
    return session.execute(sql).fetchall()


def count_kernels(reader: RankReader) -> int:
    """Return how many kernels a rank has; children import it."""
    return len(reader.rows("SELECT 1 FROM kernels"))
