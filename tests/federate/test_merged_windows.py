"""A merged window answers as the window did: what it needs of the trace around it is kept."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

import rocpd
from rocpd.base import RocpdError
from rocpd.simulator import JobOptions, simulate
from rocpd.summary.reading import Reading, planned, run_planned
from rocpd.summary.registry import SUMMARIES
from tests.build import TraceBuilder
from tests.conftest import OpenJob
from tests.soak import sample, sized
from tests.summary.cells import cells

TIMES = ("start_ns", "first_ns", "last_ns")
BEYOND = ("compute_by_peers",)
"""Kernels of a step count as a whole: those that end after the window are not in its file."""

ABOUT_THE_FILE = "trace"
"""What the recording lacks is judged by what the file holds."""

AROUND = "counted"
"""How long what does not count took before and after: a file of the window has less of it."""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[rocpd.Session]:
    out = tmp_path_factory.mktemp("job")
    with rocpd.connect(
        simulate(JobOptions(out, ranks=sized(2, 3), nodes=2, steps=4, seed=31, start_spread=0.004)), jobs=1
    ) as opened:
        yield opened


ANALYSES = sorted(SUMMARIES.keys() - {ABOUT_THE_FILE})


def answers(session: rocpd.Session, names: Sequence[str] = ANALYSES) -> dict[str, object]:
    """Return tables without times that count from the start of the time line, which is the file's own."""
    found: dict[str, object] = {}
    for name, tables in run_planned(Reading(session), planned(names)):
        try:
            for table in (each for each in tables if each.name != AROUND):
                left_out = (*TIMES, *BEYOND)
                kept = [
                    n for n, word in enumerate(table.columns) if not word.endswith("at_ns") and word not in left_out
                ]
                found[table.name] = [tuple(row[n] for n in kept) for row in table]
        except RocpdError as error:
            found[name] = error.message
    return found


WINDOWS = {
    "inclusive": rocpd.Window("40%", "71.3%"),
    "clipped": rocpd.Window("55%", clip=True),
    "exclusive": rocpd.Window("30%", "60%", inclusive=False),
    "step": rocpd.Window(step=2),
}


@pytest.mark.soak(2)
@pytest.mark.parametrize("name", WINDOWS)
def test_every_analysis_answers_as_in_the_window(name: str, session: rocpd.Session, tmp_path: Path) -> None:
    """Each second one; the others in the next window."""
    window = WINDOWS[name]
    names = sample(ANALYSES, 2, [*WINDOWS].index(name) % 2)
    windowed = session.within(window)
    expected = answers(windowed, names)
    once, twice = tmp_path / "once.db", tmp_path / "twice.db"
    windowed.merge(once)
    with rocpd.connect(once, jobs=1) as merged:
        assert answers(merged, names) == expected
        if window.clip:
            merged.merge(twice)
    if window.clip:
        with rocpd.connect(twice, jobs=1) as merged:
            assert answers(merged, names) == expected


def test_a_rank_that_had_not_begun_idles_in_a_merged_window(open_job: OpenJob, tmp_path: Path) -> None:
    late = TraceBuilder(1).kernel("k", 900, 1000)
    session = open_job(TraceBuilder(0).kernel("k", 100, 200).kernel("k", 400, 500), late)
    windowed = session.within(rocpd.Window("5%", "50%"))
    windowed.merge(tmp_path / "w.db")
    with rocpd.connect(tmp_path / "w.db") as merged:
        expected = cells(windowed, "gpu-time", "rank busy_ns idle_ns")
        assert [row[:2] for row in expected] == [(0, 155), (1, 0)]
        assert cells(merged, "gpu-time", "rank busy_ns idle_ns") == expected


def test_what_comes_after_the_window_still_says_what_it_was(open_job: OpenJob, tmp_path: Path) -> None:
    """Memory of the window is freed after it; the call of its allocation, and that of a kernel, cross its edge.

    Between two calls 50 us apart the host launches, wherever the window ends: it is no work of its own.
    """
    trace = TraceBuilder().region("hipMalloc", 900, 1100, stack=1).alloc(1000, 1050, size=7, address=1, stack=1)
    trace.region("hipLaunchKernel", 1200, 1210, stack=2).kernel("a", 1300, 1400, stack=2)
    trace.region("hipLaunchKernel", 51_210, 51_220, stack=3).kernel("b", 51_300, 99_000, stack=3)
    trace.region("hipFree", 99_100, 99_200, stack=4).alloc(99_110, 99_190, kind="FREE", size=0, address=1, stack=4)
    session = open_job(trace.alloc(59_990, 60_010, size=5, address=2))
    for window in (rocpd.Window(950, 30_000), rocpd.Window(950, 60_000, inclusive=False)):
        windowed = session.within(window)
        folder = tmp_path / str(window.end)
        windowed.merge(folder / "m.db")
        with rocpd.connect(folder / "m.db") as merged:
            merged.merge(folder / "again.db")
            with rocpd.connect(folder / "again.db") as again:
                for name, columns in (
                    ("memory", "allocations peak_bytes held_bytes"),
                    ("allocation-sites", "call allocations held_bytes"),
                    ("idle", "cause idle_ns"),
                ):
                    expected = cells(windowed, name, columns)
                    assert cells(merged, name, columns) == expected
                    assert cells(again, name, columns) == expected
        assert ("hipMalloc", 0) in cells(windowed, "allocation-sites", "call held_bytes")


def test_a_window_of_a_merged_window(session: rocpd.Session, tmp_path: Path) -> None:
    outer, inner = rocpd.Window("30%", "90%"), rocpd.Window(step=2)
    session.within(outer).merge(tmp_path / "outer.db")
    expected = answers(session.within(inner))
    with rocpd.connect(tmp_path / "outer.db", jobs=1) as merged:
        assert answers(merged.within(inner)) == expected
        merged.within(inner).merge(tmp_path / "inner.db")
    with rocpd.connect(tmp_path / "inner.db", jobs=1) as merged:
        assert answers(merged) == expected


def test_other_tools_see_the_window_alone(open_job: OpenJob, tmp_path: Path) -> None:
    """Steps without numbers keep theirs; what was allocated and launched before is known, and in no view."""
    trace = TraceBuilder().alloc(10, 11, size=8, address=1).region("launch", 20, 30, stack=5)
    for step in range(3):
        trace.region("roctxRangePushA", 100 * step + 40, 100 * step + 130, message="step")
    trace.kernel("late", 260, 270, stack=5).alloc(280, 281, size=1, address=2)
    open_job(trace).within(rocpd.Window(250, 400)).merge(tmp_path / "window.db")
    with rocpd.connect(tmp_path / "window.db") as merged:
        assert cells(merged, "memory", "allocations peak_bytes held_bytes") == [(1, 9, 9)]
        assert cells(merged, "launch", "name delay_ns") == [("late", 230)]
        assert cells(merged, "steps", "number") == [3]
        assert cells(merged, "gpu-time", "span_ns busy_ns") == [(80, 10)]
        assert merged.sql("SELECT name FROM regions").fetchall() == [("roctxRangePushA",)]
        assert merged.within(rocpd.Window(step=2)).sql("SELECT COUNT(*) FROM markers").fetchall() == [(1,)]
        assert merged.info()["problems"].fetchall() == [(0, "a window of its trace: 250 to 330 ns")]
    with closing(sqlite3.connect(tmp_path / "window.db")) as plain:
        assert plain.execute("SELECT COUNT(*) FROM regions").fetchone() == (1,)
        assert plain.execute("SELECT COUNT(*) FROM memory_allocations").fetchone() == (1,)
