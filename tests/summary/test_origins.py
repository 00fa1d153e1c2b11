"""Work by step and by marker: against windows of steps, and against paths found by going through every marker."""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import rocpd
from rocpd.base import RocpdError
from rocpd.schema.rules.steps import STEP_MARKER
from rocpd.simulator import JobOptions, simulate
from tests.summary.cells import cells


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    out = tmp_path_factory.mktemp("job")
    return simulate(JobOptions(out, ranks=2, nodes=2, steps=3, seed=21, plant="straggler,lost-launches=5"))


@pytest.fixture(scope="module")
def session(files: tuple[Path, ...]) -> Iterator[rocpd.Session]:
    with rocpd.connect(files) as opened:
        yield opened


@pytest.mark.parametrize(
    ("name", "marker"),
    [*((name, STEP_MARKER) for name in ("kernels", "copies", "categories")), ("kernels", "^forward$")],
)
def test_by_step_is_what_windows_of_steps_say(name: str, marker: str, session: rocpd.Session) -> None:
    head = "category" if name == "categories" else "name"
    columns = f"{head} calls total_ns median_ns"
    by_step = cells(session, name, f"step {columns}", "step", step_marker=marker)
    assert {row[0] for row in by_step} == {None, 0, 1, 2}
    for step in range(3):
        window = session.within(rocpd.Window(step=step, step_marker=marker))
        assert [row[1:] for row in by_step if row[0] == step] == cells(window, name, columns)


def test_a_step_lasts_to_the_next_in_windows_too(tmp_path: Path) -> None:
    """The host loads its batch before the marker of a step: that is time of the step before."""
    files = simulate(JobOptions(tmp_path, ranks=2, nodes=2, steps=4, seed=21, plant="slow-input=900"))
    with rocpd.connect(files) as session:
        by_step = cells(session, "budget", "step part time_ns", "step", everything=True)
        for step in (1, 2):
            times = dict(cells(session.within(rocpd.Window(step=step)), "budget", "part time_ns"))
            assert {part: time for number, part, time in by_step if number == step} == pytest.approx(times, abs=50_000)
            assert times["idle"] > 1_700_000


def test_gpu_time_by_step_is_that_of_windows_of_steps(session: rocpd.Session) -> None:
    columns = "operations busy_ns sum_ns"
    by_step = {row[0]: row[1:] for row in cells(session, "gpu-time", f"step {columns}", "step")}
    for step in range(3):
        rows = cells(session.within(rocpd.Window(step=step)), "gpu-time", columns)
        assert by_step[step] == tuple(map(sum, zip(*rows, strict=True)))


def paths_of(path: Path) -> Counter[tuple[str | None, int]]:
    """Count kernels of one file by path and duration, with one loop over all markers for each kernel."""
    with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as file:
        tables = [row[0] for row in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        suffix = next(t for t in tables if t.startswith("rocpd_region")).removeprefix("rocpd_region")

        def rows(columns: str, base: str) -> list[Any]:
            return file.execute(f'SELECT {columns} FROM "{base}{suffix}"').fetchall()

        stack: dict[int, int] = dict(rows("id, stack_id", "rocpd_event"))
        extdata: dict[int, object] = dict(rows("id, extdata", "rocpd_event"))
        calls: dict[int, tuple[int, int]] = {}
        markers = []
        for event, start, end, thread in rows('event_id, start, "end", tid', "rocpd_region"):
            message = json.loads(str(extdata.get(event) or "{}")).get("message")
            if message and end > start:
                markers.append((start, -end, thread, message))
            elif stack.get(event, 0) > 0:
                calls[stack[event]] = max(calls.get(stack[event], (0, 0)), (start, thread))
        counts: Counter[tuple[str | None, int]] = Counter()
        for event, start, end in rows('event_id, start, "end"', "rocpd_kernel_dispatch"):
            at, thread = calls.get(stack.get(event, 0), (start, -1))
            around = sorted(m for m in markers if m[0] <= at < -m[1])
            texts = [m[3] for m in around if m[2] == thread or re.fullmatch(r"step \d+", m[3])]
            counts[" / ".join(re.sub(r"\d+", "#", text) for text in texts) or None, end - start] += 1
    return counts


def test_by_marker_is_the_path_of_ranges_around_each_launch(files: tuple[Path, ...], session: rocpd.Session) -> None:
    counts = sum((paths_of(path) for path in files), Counter())
    expected: dict[str | None, tuple[int, int]] = {}
    for (path, duration), count in counts.items():
        calls, total = expected.get(path, (0, 0))
        expected[path] = calls + count, total + count * duration
    by_path: dict[str | None, tuple[int, int]] = {}
    for path, calls, total in cells(session, "kernels", "marker calls total_ns", "marker"):
        before = by_path.get(path, (0, 0))
        by_path[path] = before[0] + calls, before[1] + total
    assert by_path == expected
    assert {"step # / forward / layer #", "step # / backward / layer # backward", "step # / optimizer"} <= set(by_path)


@pytest.mark.parametrize("by", ["step", "marker"])
def test_adjoining_windows_add_up(by: str, session: rocpd.Session) -> None:
    for clip in (True, False):
        edges = ["0%", "38%", "61.7%", "100%"]
        windows = [session.within(rocpd.Window(a, b, clip=clip, launched=not clip)) for a, b in pairwise(edges)]
        whole, parts = Counter[object](), Counter[object]()
        for key, value in cells(session, "kernels", f"{by} total_ns", by):
            whole[key] += value
        for key, value in (row for window in windows for row in cells(window, "kernels", f"{by} total_ns", by)):
            parts[key] += value
        assert parts == whole, clip


@pytest.mark.parametrize("name", ["api", "communication", "heat", "imbalance", "phases", "steps", "transfers"])
def test_what_has_no_launch_is_not_divided_by_it(name: str, session: rocpd.Session) -> None:
    with pytest.raises(RocpdError, match=f"^{name} is not divided by step"):
        session.summary(name, "step")


def test_phases_have_the_time_of_all_that_was_launched_in_them(session: rocpd.Session) -> None:
    """A phase holds what ranges in it launched: the sum over all paths that it is on."""
    by_path: Counter[str] = Counter()
    for name in ("kernels", "copies"):
        for path, total in cells(session, name, "marker total_ns", "marker"):
            by_path.update(dict.fromkeys(set(path.split(" / ")), total) if path else {})
    phases = dict(cells(session, "phases", "phase gpu_ns"))
    assert phases == {phase: by_path[phase] for phase in phases}
    assert phases["step #"] == sum(
        total
        for name in ("kernels", "copies")
        for n, total in cells(session, name, "step total_ns", "step")
        if n is not None
    )


def test_collectives_by_step_are_those_of_windows_of_steps(session: rocpd.Session) -> None:
    columns = "name number group straggler wait_ns min_ns max_ns class"
    by_step = cells(session, "collectives", f"step {columns}", "step")
    assert sorted(row[1:] for row in by_step) == sorted(cells(session, "collectives", columns))
    for step in range(3):
        window = session.within(rocpd.Window(step=step))
        assert [row[1:] for row in by_step if row[0] == step] == cells(window, "collectives", columns)
        waits = "rank collectives caused_wait_ns own_wait_ns"
        rows = [row[1:] for row in cells(session, "stragglers", f"step {waits}", "step") if row[0] == step]
        assert sorted(rows) == sorted(cells(window, "stragglers", waits))
    by_marker = {row[0] for row in cells(session, "waits", "marker wait_ns", "marker")}
    assert {"step # / backward", "step # / optimizer"} <= by_marker
