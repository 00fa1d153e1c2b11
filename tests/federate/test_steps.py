"""Steps and markers as windows: each rank at its own, GPU work where it was launched."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

import rocpd
from rocpd.base import Row
from rocpd.simulator import JobOptions, simulate
from tests.build import TraceBuilder
from tests.conftest import OpenJob

TABLES = ("rocpd_kernel_dispatch", "rocpd_memory_copy", "rocpd_graph_launch")
VIEWS = {"rocpd_kernel_dispatch": "kernels", "rocpd_memory_copy": "memory_copies"}


class RawRank:
    """One file of a simulated job, read with nothing but sqlite3 and dictionaries."""

    def __init__(self, path: Path) -> None:
        with contextlib.closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as self.file:
            tables = [row[0] for row in self.file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            self.suffix = next(t for t in tables if t.startswith("rocpd_region")).removeprefix("rocpd_region")
            self.stack: dict[int, int | None] = dict(self.rows("id, stack_id", "rocpd_event"))
            self.launch: dict[int, int] = {}
            for event, start in self.rows("event_id, start", "rocpd_region"):
                stack = self.stack.get(event) or 0
                if stack > 0 and start and start > self.launch.get(stack, 0):
                    self.launch[stack] = start
            self.steps = dict(self._steps())
            self.work = {
                base: self.rows("id, event_id, start", base) for base in TABLES if base + self.suffix in tables
            }

    def rows(self, columns: str, base: str) -> list[Row]:
        return self.file.execute(f'SELECT {columns} FROM "{base}{self.suffix}"').fetchall()

    def _steps(self) -> Iterator[tuple[int, tuple[int, int]]]:
        extdata: dict[int, str | None] = dict(self.rows("id, extdata", "rocpd_event"))
        for event, start, end in self.rows('event_id, start, "end"', "rocpd_region"):
            word, _, number = str(json.loads(extdata.get(event) or "{}").get("message", "")).partition(" ")
            if word == "step" and number.isdigit() and end > start:
                yield int(number), (start, end)

    def launched_in(self, step: int, base: str) -> set[int]:
        """Ids of the operations that a call in the step launched; without such a call they count by their start."""
        low, high = self.steps[step]
        return {row for row, event, start in self.work[base] if low <= self._time(event, start) < high}

    def _time(self, event: int, start: int) -> int:
        return self.launch.get(self.stack.get(event) or 0, start)


JOBS: dict[str, Callable[[Path], JobOptions]] = {
    "two nodes": lambda out: JobOptions(out, ranks=4, nodes=2, steps=3, seed=3),
    "tensor parallel": lambda out: JobOptions(out, ranks=4, nodes=2, tp=2, steps=3, seed=5, plant="launch-bound"),
    "pipeline": lambda out: JobOptions(out, ranks=2, pp=2, steps=3, seed=6, start_spread=2.0),
    "lost launches": lambda out: JobOptions(out, ranks=2, steps=3, seed=8, plant="lost-launches=20"),
    "hpc": lambda out: JobOptions(out, ranks=2, steps=4, seed=9, profile="hpc", plant="none"),
}


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_a_step_is_what_was_launched_in_it(job: Callable[[Path], JobOptions], tmp_path: Path) -> None:
    files = simulate(job(tmp_path / "job"))
    raw = [RawRank(path) for path in files]
    with rocpd.connect(files) as session:
        for step in sorted(raw[0].steps)[:3]:
            selected = session.within(rocpd.Window(step=step))
            for base in raw[0].work:
                for rank, of_rank in enumerate(raw):
                    ids = {
                        row for (row,) in selected.sql(f"SELECT id FROM {base} WHERE guid = ?", [guid(session, rank)])
                    }
                    assert ids == of_rank.launched_in(step, base), (step, rank, base)
        lost = any("have no launching call" in note for note in session.notes)
        assert lost == any(map(stackless, raw))


def stackless(rank: RawRank) -> bool:
    work = [event for base in TABLES[:2] for _, event, _ in rank.work[base]]
    return any((rank.stack.get(event) or 0) not in rank.launch for event in work)


def guid(session: rocpd.Session, rank: int) -> str:
    return session.ranks[rank].guid or ""


def test_steps_and_what_lies_between_them_are_the_job(tmp_path: Path) -> None:
    """Adjoining windows by launch share no operation and lose none, clipped or not."""
    files = simulate(JobOptions(tmp_path / "job", ranks=2, steps=3, seed=4))
    count = "SELECT COUNT(*), SUM(duration) FROM kernels"
    with rocpd.connect(files) as session:
        (whole,) = session.sql(count).fetchall()
        edges = ["0%", "37%", "55.5%", "80%", "100%"]
        for clip in (False, True):
            parts = [session.within(rocpd.Window(a, b, launched=True, clip=clip)) for a, b in pairwise(edges)]
            sums = [part.sql(count).fetchall()[0] for part in parts]
            assert tuple(map(sum, zip(*((n, t or 0) for n, t in sums), strict=True))) == whole


def rank_of_two_threads(number: int, later: int) -> TraceBuilder:
    """Two steps, 1000 ns each; the second thread launches during the first, and its kernel runs in the second."""
    trace = TraceBuilder(number, pid=100 + number, host=f"n{number}")
    for step, start in enumerate((1000 + later, 2000 + later)):
        trace.region("roctxRangePushA", start, start + 1000, message=f"step {step}")
        trace.region("launch", start + 10, start + 20, stack=10 * step + 1)
        trace.kernel(f"main {step}", start + 30, start + 90, stack=10 * step + 1)
        trace.region("launch", start + 900, start + 910, stack=10 * step + 2, tid=7)
        trace.kernel(f"late {step}", start + 1100, start + 1200, stack=10 * step + 2)
    return trace.region("end", 4000 + later, 4010 + later)


NAMES = "SELECT name FROM kernels ORDER BY rank, start"


def test_each_rank_is_cut_at_its_own_marker(open_job: OpenJob) -> None:
    """The clocks have nothing to do with each other, and rank 1 started 500 ns later."""
    session = open_job(rank_of_two_threads(0, 0), rank_of_two_threads(1, 7_000_500))
    step = session.within(rocpd.Window(step=1))
    assert [name for (name,) in step.sql(NAMES)] == ["main 1", "late 1"] * 2
    assert session.notes == []
    by_time = session.within(rocpd.Window(start_marker="step 1", end_marker="step 1"))
    assert [name for (name,) in by_time.sql(NAMES)] == ["main 1", "late 0"] * 2
    assert by_time.sql("SELECT COUNT(*) FROM regions WHERE name = 'launch'").fetchall() == [(4,)]
    assert session.notes == []


def test_a_rank_without_the_marker_is_cut_where_the_others_are(open_job: OpenJob) -> None:
    helper = TraceBuilder(1, pid=101, host="n0").kernel("before", 1500, 1600).kernel("within", 2500, 2600)
    session = open_job(rank_of_two_threads(0, 0), helper)
    assert [name for (name,) in session.within(rocpd.Window(step=1)).sql(NAMES)] == ["main 1", "late 1", "within"]
    assert session.notes == [
        "window: rank without step 1 (1), cut where the others are on the common time line",
        "2 of 6 operations have no launching call in the trace: they count by when they ran",
    ]


def test_several_steps_have_what_each_of_them_has(open_job: OpenJob) -> None:
    session = open_job(rank_of_two_threads(0, 0), rank_of_two_threads(1, 7_000_500))
    names = [
        sorted(name for (name,) in session.within(rocpd.Window(step=step)).sql(NAMES)) for step in (0, 1, "0-1", "1-1")
    ]
    first, second, both, alone = names
    assert both == sorted(first + second)
    assert alone == second


def test_without_calls_operations_count_by_time(open_job: OpenJob) -> None:
    trace = TraceBuilder().region("roctxRangePushA", 100, 200, message="step").kernel("before", 50, 120)
    trace.region("roctxRangePushA", 200, 300, message="step").kernel("in", 150, 180).kernel("after", 220, 230)
    session = open_job(trace)
    assert [name for (name,) in session.within(rocpd.Window(step=0)).sql(NAMES)] == ["before", "in"]
    assert session.notes == ["no launching call is in the trace: GPU work counts by when it ran"]


def test_an_event_around_the_window_counts_but_not_for_converters(open_job: OpenJob, tmp_path: Path) -> None:
    session = open_job(TraceBuilder().region("training", 100, 900).region("inside", 400, 450))
    window = session.within(rocpd.Window(300, 500))
    assert [name for (name,) in window.sql("SELECT name FROM regions ORDER BY start")] == ["training", "inside"]
    assert [row[1] for row in window.summary("api")] == ["training", "inside"]
    (trace,) = window.convert("json", tmp_path / "out.json")
    assert "training" not in trace.read_text()


def test_order_shift_and_an_empty_rank_change_nothing(open_job: OpenJob) -> None:
    """Laws of everything that goes by steps: windows of them and divisions by step and marker."""

    def told(*ranks: TraceBuilder) -> list[object]:
        session = open_job(*ranks)
        step = session.within(rocpd.Window(step=1))
        tables = [(session, "step"), (session, "marker"), (step, None), (step, "marker")]
        rows: list[object] = [part.summary("kernels", by).fetchall() for part, by in tables]
        return [*rows, step.sql("SELECT rank, name FROM kernels ORDER BY 1, 2").fetchall(), session.notes]

    expected = told(rank_of_two_threads(0, 0), rank_of_two_threads(1, 7_000_500))
    assert told(rank_of_two_threads(1, 7_000_500), rank_of_two_threads(0, 0)) == expected
    assert told(rank_of_two_threads(0, 123_456), rank_of_two_threads(1, 7_123_956)) == expected
    assert told(rank_of_two_threads(0, 0), rank_of_two_threads(1, 7_000_500), TraceBuilder(2, pid=102)) == expected
