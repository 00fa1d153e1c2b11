"""Analyses of the real files against the views that rocprofv3 stored in them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

import rocpd
from rocpd.facts.rank import Options
from rocpd.summary.reading import run
from rocpd.summary.registry import SUMMARIES
from tests.summary.cells import cells


@pytest.fixture(scope="module")
def stored(real_files: tuple[Path, ...]) -> Iterator[list[tuple[Path, sqlite3.Connection]]]:
    with ExitStack() as opened:
        uris = (f"file:{path}?mode=ro&immutable=1" for path in real_files)
        connections = [opened.enter_context(closing(sqlite3.connect(uri, uri=True))) for uri in uris]
        yield list(zip(real_files, connections, strict=True))


def test_kernels_against_stored_top_kernels(stored: list[tuple[Path, sqlite3.Connection]]) -> None:
    for path, connection in stored:
        sql = "SELECT name, COUNT(*), SUM(duration), MIN(duration), MAX(duration) FROM kernels GROUP BY name"
        rows = connection.execute(sql)
        with rocpd.connect(path) as session:
            assert sorted(cells(session, "kernels", "name calls total_ns min_ns max_ns")) == sorted(rows)
            top = connection.execute("SELECT name, total_calls FROM top_kernels").fetchall()
            assert sorted(cells(session, "kernels", "name calls")) == sorted(top)


def test_api_and_busy_time_against_stored_views(stored: list[tuple[Path, sqlite3.Connection]]) -> None:
    for path, connection in stored:
        rows = connection.execute(
            "SELECT name, COUNT(*), SUM(duration) FROM regions WHERE category NOT LIKE 'MARKER%' GROUP BY name"
        )
        with rocpd.connect(path) as session:
            assert sorted(cells(session, "api", "name calls total_ns")) == sorted(rows)
            gpu = connection.execute("SELECT SUM(GpuTime) FROM busy").fetchone()[0]
            assert sum(cells(session, "gpu-time", "sum_ns")) == gpu
            for busy, total in cells(session, "gpu-time", "busy_ns sum_ns"):
                assert busy <= total


def test_every_analysis_runs_on_all_files(real_files: tuple[Path, ...]) -> None:
    """The files hold no collectives and no counters: those say so, and nothing prints zeros."""
    with rocpd.connect(real_files) as session:
        given, missing = set(), []
        for name in SUMMARIES:
            try:
                given |= {table.name for table in run(session, name, Options(sequence=2)) if table.fetchall()}
            except rocpd.RocpdError as error:
                missing.append(error.message.partition(" ")[0])
        assert set(missing) <= {"no"}
        assert {"kernels", "api", "gpu-time", "overlap", "launch", "calls", "op-trace", "variability", "ranks"} <= given
        assert "no communication kernels found" in session.notes
