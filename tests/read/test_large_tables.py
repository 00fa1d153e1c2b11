"""Statements on large tables, read from the pages of the files: the same columns as by SQLite, for every file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import rocpd
from rocpd.facts import large_tables
from rocpd.facts.columns import Select, read_all, statement
from rocpd.facts.large_tables import read_large
from rocpd.federate.run.rank_reader import RankReader
from rocpd.simulator import JobOptions, simulate
from tests.build import TraceBuilder
from tests.conftest import DATA, private

START = 1_700_000_000_000_000_000

STATEMENTS = {
    "regions": Select(
        statement("regions"), ("stack", "start", "end", "id", "thread", "name", "category"), base="rocpd_region"
    ),
    "kernels": Select(
        statement("kernels"), ("id", "stack", "agent", "grid_size_x", "scratch", "event"), base="rocpd_kernel_dispatch"
    ),
    "samples": Select(statement("samples"), ("id", "category", "start", "end"), base="rocpd_sample"),
}
"""Statements whose columns are read from pages."""


@pytest.fixture(autouse=True)
def of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read small tables from pages too."""
    monkeypatch.setattr(large_tables, "_FEW_PAGES", 0)
    monkeypatch.setattr(large_tables, "_SMALL", 0)


def _by_pages(reader: RankReader, name: str) -> bool:
    """Whether a statement was read from pages; its columns are then SQLite's."""
    select = STATEMENTS[name]
    columns = read_large(reader, select.sql, select.numbers)
    if columns is None:
        return False
    by_sqlite = read_all(reader, select)
    assert [column.tolist() for column in columns] == [column.tolist() for column in by_sqlite.numbers]
    return True


def _read_from_pages(session: rocpd.Session, names: Sequence[str]) -> set[str]:
    readers = [session.reader(rank.number) for rank in session.ranks]
    return {name for name in names if sum(_by_pages(reader, name) for reader in readers) == len(readers)}


@pytest.mark.parametrize("options", [{}, {"faults": True}, {"profile": "hpc", "plant": "no-hip-trace"}])
def test_ranks_of_a_job_and_of_a_merged_file(tmp_path: Path, options: dict[str, Any]) -> None:
    files = simulate(JobOptions(tmp_path / "job", ranks=3, steps=4, seed=311, **options))
    with rocpd.connect(files, skip_bad=True) as session:
        assert _read_from_pages(session, ("regions", "kernels")) == {"regions", "kernels"}
        session.merge(tmp_path / "merged.db")
    with rocpd.connect([tmp_path / "merged.db"]) as session:
        assert _read_from_pages(session, ("regions", "kernels")) == {"regions", "kernels"}


def test_rows_that_are_no_calls_and_events_that_are_missing(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for n in range(9):
        trace.region("wait", START + n, START + n + 5, category="GPU_WAIT" if n % 2 else "HIP_RUNTIME_API")
    path = trace.sql("DELETE FROM rocpd_event{uuid} WHERE id IN (2, 3)").write(tmp_path / "a.db")
    with rocpd.connect([path]) as session:
        assert _by_pages(session.reader(0), "regions")


def test_a_window_is_left_to_sqlite(tmp_path: Path) -> None:
    files = simulate(JobOptions(tmp_path / "job", ranks=1, steps=4, seed=312))
    with rocpd.connect(files, window=rocpd.Window("25%", "50%")) as session:
        assert not _by_pages(session.reader(0), "kernels")
        assert _by_pages(session.reader(0).whole(), "kernels")


def test_all_real_files() -> None:
    statements = 0
    for path in (*private("rocprofv3/*.db", 12), *private("rocprofv3-other/*.db", 1), *DATA.glob("rocprofiler-*/*.db")):
        with rocpd.connect([path], skip_bad=True) as session:
            statements += len(_read_from_pages(session, [*STATEMENTS]))
    assert statements
