"""Call stacks as rocprofiler-systems writes them: a sample is an event, a region and a sample row for each frame."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import NamedTuple

import apsw
import pytest

import rocpd
from rocpd.summary.host.calls import charts_of_stacks, folded_stacks
from rocpd.summary.reading import Reading
from tests.build import TraceBuilder
from tests.conftest import OpenJob, private
from tests.perfetto_engine import Engine
from tests.summary.cells import cells


class Frame(NamedTuple):
    """A frame: its function, and the innermost function, file and line at its place where these are known."""

    function: str
    place: tuple[str, str, int] | None = None

    def call_stack(self) -> str:
        return json.dumps({"file": "/opt/app/bin/app", "name": self.function, "pc": "55D0C0FFEE"})

    def line_info(self) -> str:
        info: dict[str, object] = {"line_address": "1F2E", "name": self.function}
        if self.place:
            name, location, line = self.place
            info["inlined"] = {"line": str(line), "location": location, "name": name}
        return json.dumps(info)


MAIN = Frame("main", ("main", "/src/app.cpp", 40))
WORK = Frame("work(int)", ("work", "/src/app.cpp", 12))
SPINS = Frame("work(int)", ("spin", "/src/spin.h", 3))
UNKNOWN = Frame("0x7F00")


def sampled(trace: TraceBuilder, start: int, end: int, *frames: Frame, category: str = "timer_sampling") -> None:
    """Add a sample, the outermost frame first; it is taken at the end of the time that it stands for."""
    for depth, frame in enumerate(frames):
        trace.region(frame.function, start, end, category=category, stack=0)
        event = trace.rows["rocpd_event"][-1]
        event |= {"call_stack": frame.call_stack(), "line_info": frame.line_info()}
        event["extdata"] = json.dumps({"depth": depth})
        trace.sample("Thread 0 Timer (S) 16", start, category=category, stack=0, event_id=event["id"])


def three_samples() -> TraceBuilder:
    trace = TraceBuilder()
    sampled(trace, 100, 110, MAIN, WORK)
    sampled(trace, 110, 120, MAIN, SPINS)
    sampled(trace, 120, 135, MAIN, UNKNOWN)
    for at, stack in ((101, 5), (125, 6)):
        trace.region("hipLaunchKernel", at, at + 2, stack=stack).kernel("k", at + 3, at + 5, stack=stack)
    return trace


def test_functions_and_lines(open_job: OpenJob) -> None:
    """A line of another function than that of the frame is one that was inlined into it."""
    session = open_job(three_samples())
    assert cells(session, "stack-lines", "kind function file line count total_ns self_ns idle_ns") == [
        ("samples", "0x7F00", None, None, 1, 15, 15, 0),
        ("samples", "spin", "/src/spin.h", 3, 1, 10, 10, 10),
        ("samples", "work(int)", "/src/app.cpp", 12, 1, 10, 10, 10),
        ("samples", "main", "/src/app.cpp", 40, 3, 35, 0, 20),
        ("samples", "work(int)", None, None, 1, 10, 0, 10),
    ]
    assert cells(session, "idle-stacks", "function count total_ns self_ns") == [
        ("spin", 1, 10, 10), ("work(int)", 1, 10, 10), ("main", 2, 20, 0), ("work(int)", 1, 10, 0),
    ]  # fmt: skip


def test_flame_graphs(open_job: OpenJob) -> None:
    reading = Reading(open_job(three_samples()))
    main = "samples;/src/app.cpp(40): main;"
    assert list(folded_stacks(reading)) == [
        f"{main}/src/app.cpp(12): work(int) 10\n",
        f"{main}work(int);/src/spin.h(3): spin 10\n",
        f"{main}0x7F00 15\n",
    ]
    (chart,) = charts_of_stacks(reading)
    assert [(frame.depth, frame.value, frame.own_value) for frame in chart.frames] == [
        (0, 35, 0), (1, 15, 15), (1, 10, 10), (1, 10, 0), (2, 10, 10),
    ]  # fmt: skip


def test_frames_are_no_calls(open_job: OpenJob) -> None:
    session = open_job(three_samples())
    assert cells(session, "calls", "name calls cpu_ns gpu_ns") == [("hipLaunchKernel", 2, 4, 4)]
    assert session.execute("SELECT COUNT(*) FROM regions WHERE category = 'timer_sampling'").fetchall() == [(6,)]


def test_the_same_time_counts_once(open_job: OpenJob) -> None:
    """Samples by overflow of a counter beside those by time, and the CPU time of these, from 0 on."""
    trace = three_samples()
    sampled(trace, 100, 130, MAIN, category="overflow_sampling")
    sampled(trace, 0, 7, MAIN, WORK, category="cputime_sampling")
    session = open_job(trace)
    assert cells(session, "stacks", "function total_ns")[-2:] == [("main", 35), ("work(int)", 10)]
    assert session.notes == []
    alone = TraceBuilder()
    sampled(alone, 0, 90, MAIN, category="overflow_sampling")  # the first has no start
    sampled(alone, 100, 130, MAIN, category="overflow_sampling")
    assert cells(open_job(alone), "stacks", "function count total_ns") == [("main", 1, 30)]


def test_damage_costs_the_frame_alone(open_job: OpenJob) -> None:
    trace = three_samples()
    for event, text in zip(trace.rows["rocpd_event"][1::2], ("{", '{"inlined": 3}', "[]"), strict=False):
        event["line_info"] = text
    for row, name in zip(trace.rows["rocpd_region"], (None, 99), strict=False):
        row["name_id"] = name
    assert set(cells(open_job(trace), "stacks", "function")) == {"?", "spin", "work", "work(int)", "main", "0x7F00"}


def test_part_of_a_trace(open_job: OpenJob) -> None:
    """A window cuts the time that a sample stands for, as that of regions."""
    part = open_job(three_samples()).within(rocpd.Window(105, 115, clip=True))
    assert cells(part, "stacks", "function count total_ns self_ns")[-2:] == [("main", 2, 10, 0), ("work(int)", 1, 5, 0)]


_INNERMOST = """
SELECT F.name, C.depth FROM perf_sample S JOIN stack_profile_callsite C ON C.id = S.callsite_id
JOIN stack_profile_frame F ON F.id = C.frame_id ORDER BY S.ts
"""


def test_perfetto_has_each_sample_once(open_job: OpenJob, tmp_path: Path) -> None:
    (path,) = open_job(three_samples()).convert("pftrace", tmp_path / "out")
    engine = Engine(path)
    assert engine.rows(_INNERMOST) == [("/src/app.cpp(12): work(int)", 1), ("/src/spin.h(3): spin", 2), ("0x7F00", 1)]
    assert engine.rows("SELECT COUNT(*) FROM slice WHERE name = 'main'") == [(0,)]


@pytest.fixture
def real(tmp_path: Path) -> Path:
    """A file that rocprofiler-systems wrote, with samples of its first thread as the same version adds them."""
    (source,) = private("rocprofiler-systems/rocpd-484153.db", 1)
    path = tmp_path / source.name
    shutil.copyfile(source, path)
    path.chmod(0o600)
    suffix = "_1cf7d1f031340596bfab7b59c8d5f015"
    with apsw.Connection(str(path)) as file:

        def add(table: str, *values: object) -> int:
            names = [name for (_, name, *_) in file.execute(f"PRAGMA table_info(rocpd_{table}{suffix})")][2:]
            sql = f"INSERT INTO rocpd_{table}{suffix} ({', '.join(names[: len(values)])}) VALUES ({'?, ' * len(values)}"
            file.execute(sql.removesuffix(", ") + ")", values)
            return file.last_insert_rowid()

        texts = "timer_sampling", "Thread 0 Timer (S) 484153", "main", "work(int)"
        category, track, *names = (add("string", text) for text in texts)
        nid, pid = next(iter(file.execute(f"SELECT nid, pid FROM rocpd_track{suffix}")))
        number = add("track", nid, pid, 1, track)
        for start in range(55_238_300_000_000, 55_238_400_000_000, 10_000_000):
            for name, frame in zip(names, (MAIN, WORK), strict=True):
                event = add("event", category, 0, 0, 0, frame.call_stack(), frame.line_info())
                add("region", nid, pid, 1, start, start + 10_000_000, name, event)
                add("sample", number, start, event)
    return path


def test_a_real_file(real: Path) -> None:
    before = private("rocprofiler-systems/rocpd-484153.db", 1)
    with rocpd.connect(real) as session, rocpd.connect(before) as plain:
        assert cells(session, "stacks", "kind function file count total_ns self_ns") == [
            ("samples", "work(int)", "/src/app.cpp", 10, 100_000_000, 100_000_000),
            ("samples", "main", "/src/app.cpp", 10, 100_000_000, 0),
        ]
        for table in ("calls", "idle", "launch"):
            assert session.summary(table).fetchall() == plain.summary(table).fetchall()
