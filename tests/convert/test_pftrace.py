"""pftrace: what is in the file, as the real trace_processor reads it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import rocpd
from rocpd.convert import FORMATS
from rocpd.convert.options import AgentIndex, ConvertOptions
from tests.build import TraceBuilder
from tests.conftest import OpenJob
from tests.convert.conftest import BASE, ToPerfetto, to_perfetto

SLICES = "SELECT name, ts - {}, dur, depth, track FROM recorded ORDER BY id"


def test_a_small_job_has_its_process_threads_tracks_and_slices(perfetto: ToPerfetto) -> None:
    engine = perfetto(
        TraceBuilder(0, pid=16, host="node0", command="./app --steps 3")
        .region("hipLaunchKernel", BASE + 10, BASE + 20, stack=7)
        .kernel("gemm<float>", BASE + 30, BASE + 90, stack=7)
    )

    rows = "SELECT name, ts, dur, depth, category, track FROM recorded ORDER BY ts"
    assert engine.rows(rows) == [
        ("hipLaunchKernel", BASE + 10, 10, 0, "hip_api", "thread 16"),
        ("gemm<float>", BASE + 30, 60, 0, "kernel_dispatch", "GPU 0 / stream 0"),
    ]
    about = "SELECT name, EXTRACT_ARG(source_arg_set_id, 'description') FROM track WHERE parent_id IS NULL"
    assert engine.rows(about) == [("rank 0 · node0", "process 16 of node0: ./app --steps 3")]
    flow = (
        "SELECT o.name, i.name FROM flow f JOIN recorded o ON o.id = f.slice_out JOIN recorded i ON i.id = f.slice_in"
    )
    assert engine.rows(flow) == [("hipLaunchKernel", "gemm<float>")]


def test_kernels_carry_their_sizes_as_numbers(perfetto: ToPerfetto) -> None:
    engine = perfetto(TraceBuilder().kernel("k", BASE, BASE + 5, grid=(4096, 2, 1), workgroup=(64, 2, 1), stack=9))

    written = dict(engine.rows("SELECT substr(key, 7), int_value FROM args WHERE key GLOB 'debug.*'"))

    wanted = {"grid_x": 4096, "grid_y": 2, "workgroup_x": 64, "lds_size": 2048, "scratch_size": 0, "dispatch_id": 1}
    assert wanted.items() <= written.items()
    assert {"queue_id", "stream_id", "vgpr_count", "stack_id"} <= set(written)


def test_several_dispatches_of_one_call_get_one_flow_each_from_the_innermost_call(perfetto: ToPerfetto) -> None:
    engine = perfetto(
        TraceBuilder()
        .region("outer", BASE, BASE + 100, stack=7)
        .region("inner", BASE + 10, BASE + 20, stack=7)
        .region("other", BASE + 30, BASE + 40, stack=8)
        .kernel("a", BASE + 200, BASE + 210, stack=7)
        .kernel("b", BASE + 220, BASE + 230, stack=7)
        .copy(BASE + 240, BASE + 250, stack=8)
        .kernel("early", BASE + 5, BASE + 6, stack=8, stream=3)
        .kernel("alone", BASE + 260, BASE + 270, stack=99)
        .kernel("none", BASE + 280, BASE + 290, stack=0)
    )

    sql = "SELECT o.name, i.name FROM flow f JOIN recorded o ON o.id = f.slice_out JOIN recorded i ON i.id = f.slice_in"
    pairs = {tuple(sorted(pair)) for pair in engine.rows(sql)}
    assert engine.one("SELECT COUNT(*) FROM flow") == 4
    assert pairs == {("a", "inner"), ("b", "inner"), ("MEMORY_COPY_HOST_TO_DEVICE", "other"), ("early", "other")}


def test_nesting_at_equal_times(perfetto: ToPerfetto) -> None:
    engine = perfetto(
        TraceBuilder()
        .region("inner", BASE, BASE + 50)
        .region("outer", BASE, BASE + 100)
        .region("last", BASE + 60, BASE + 100)
        .region("next", BASE + 100, BASE + 150)
        .region("mark in outer", BASE + 55, BASE + 55)
        .region("mark at start", BASE, BASE)
        .region("mark at the seam", BASE + 100, BASE + 100)
    )

    written = {name: (start, dur, depth) for name, start, dur, depth, _ in engine.rows(SLICES.format(BASE))}
    assert written == {
        "outer": (0, 100, 0),
        "inner": (0, 50, 1),
        "mark at start": (0, 0, 2),
        "mark in outer": (55, 0, 1),
        "last": (60, 40, 1),
        "next": (100, 50, 0),
        "mark at the seam": (100, 0, 1),
    }
    assert engine.one("SELECT COUNT(DISTINCT track_id) FROM recorded") == 1


def test_overlapping_slices_go_to_lanes(perfetto: ToPerfetto) -> None:
    engine = perfetto(
        TraceBuilder()
        .kernel("a", BASE, BASE + 100)
        .kernel("b", BASE + 10, BASE + 20)
        .kernel("c", BASE + 15, BASE + 30)
        .kernel("d", BASE + 20, BASE + 40)
        .kernel("e", BASE + 100, BASE + 110)
        .kernel("f", BASE + 50, BASE + 50)
        .region("x", BASE, BASE + 50)
        .region("crossing", BASE + 25, BASE + 75)
        .region("in x", BASE + 30, BASE + 40)
    )

    written = {name: (dur, depth, track) for name, _, dur, depth, track in engine.rows(SLICES.format(BASE))}
    lane = "GPU 0 / stream 0"
    assert written == {
        "a": (100, 0, lane),
        "b": (10, 0, f"{lane} (2)"),
        "c": (15, 0, f"{lane} (3)"),
        "d": (20, 0, f"{lane} (2)"),
        "e": (10, 0, lane),
        "f": (0, 0, f"{lane} (2)"),
        "x": (50, 0, "thread 16"),
        "crossing": (50, 0, "thread 16 (2)"),
        "in x": (10, 1, "thread 16"),
    }


def test_ranks_of_equal_pid_stay_apart(perfetto: ToPerfetto) -> None:
    engine = perfetto(
        *(
            TraceBuilder(i, pid=16).region(f"call {i}", BASE, BASE + 5).kernel(f"k{i}", BASE, BASE + 9)
            for i in range(3)
        ),
        processes=True,
    )

    sql = (
        "SELECT p.name, t.name, s.name FROM recorded s JOIN thread_track tt ON tt.id = s.track_id"
        " JOIN thread t USING (utid) JOIN process p USING (upid) ORDER BY s.name"
    )
    assert engine.rows(sql) == [(f"rank {i} · node0", "thread 16", f"call {i}") for i in range(3)]
    kernels = (
        "SELECT p.name, s.name FROM recorded s JOIN process_track t ON t.id = s.track_id JOIN process p USING (upid)"
    )
    assert sorted(engine.rows(kernels)) == [(f"rank {i} · node0", f"k{i}") for i in range(3)]
    assert engine.one("SELECT COUNT(DISTINCT pid) FROM process WHERE name IS NOT NULL") == 3


def test_damaged_rows_are_clamped_or_left_out_counted_and_told(open_job: OpenJob, tmp_path: Path) -> None:
    builder = (
        TraceBuilder()
        .kernel("backward", BASE + 50, BASE + 10)
        .kernel("no start", 0, BASE + 10)
        .kernel("null start", None, BASE + 10)  # type: ignore[arg-type]
        .kernel("no end", BASE + 70, None)  # type: ignore[arg-type]
        .region("backward call", BASE + 50, BASE + 10)
    )
    session = open_job(builder)

    engine = to_perfetto(session, tmp_path / "out")

    written = engine.rows("SELECT name, ts, dur FROM recorded ORDER BY name")
    wanted = [("backward", BASE + 50, 0), ("backward call", BASE + 50, 0), ("no end", BASE + 70, 0)]
    assert written == wanted
    assert session.notes[-2:] == [
        "invalid timestamps, no start or not above 0: left out (kernel dispatches: 2)",
        "invalid timestamps, no end or one before the start: shown with zero length (kernel dispatches: 2, regions: 1)",
    ]


def test_rows_without_agent_stream_or_thread_are_kept(perfetto: ToPerfetto) -> None:
    engine = perfetto(
        TraceBuilder()
        .kernel("k", BASE, BASE + 1, agent=None, stream=None, queue=None, tid=None)
        .kernel(None, BASE, BASE + 1, agent=77)
        .copy(BASE, BASE + 1, dst=None, src=None, stream=None)
        .region("r", BASE, BASE + 1, tid=None)
        .alloc(BASE, BASE + 1, agent=None)
    )

    rows = engine.rows("SELECT name, track FROM recorded")
    assert set(rows) == {
        ("ALLOC REAL", "agent ? / memory / allocations"),
        ("k", "agent ? / stream ?"),
        ("MEMORY_COPY_HOST_TO_DEVICE", "agent ? / stream ? · copies"),
        ("kernel ?", "agent ? (id 77) / stream 0"),
        ("r", "thread ?"),
    }


def test_a_file_with_text_among_numbers_and_broken_utf8_is_converted(perfetto: ToPerfetto) -> None:
    engine = perfetto(
        TraceBuilder()
        .kernel("k", BASE, BASE + 5)
        .region("bad", BASE, BASE + 1)
        .sql("UPDATE \"rocpd_kernel_dispatch{uuid}\" SET stream_id = 'odd', dispatch_id = 1.5")
        .sql("UPDATE \"rocpd_string{uuid}\" SET string = CAST(x'62ff64' AS TEXT) WHERE string = 'bad'")
    )

    assert engine.rows("SELECT name FROM recorded ORDER BY 1") == [("b\\xffd",), ("k",)]
    assert engine.one("SELECT track FROM recorded WHERE name = 'k'") == "GPU 0 / stream ?"


def test_counters_show_the_value_of_their_own_dispatch(perfetto: ToPerfetto) -> None:
    engine = perfetto(
        TraceBuilder()
        .kernel("a", BASE, BASE + 10)
        .counter("SQ_WAVES", 5.5, units="waves")
        .counter("SQ_WAVES", 1.0)
        .counter("GRBM", 2.0)
        .kernel("b", BASE + 10, BASE + 30)
        .counter("SQ_WAVES", 7.25)
        .kernel("c", BASE + 20, BASE + 40, stream=1)
        .counter("SQ_WAVES", 9.0)
        .kernel("d", BASE + 25, BASE + 28, stream=2)
        .counter("SQ_WAVES", 11.0),
        annotate_pmc=True,
    )

    points = "SELECT t.name, c.ts - {}, c.value FROM counter c JOIN track t ON t.id = c.track_id ORDER BY t.name, c.id"
    written = engine.rows(points.format(BASE))
    assert [row[1:] for row in written if row[0] == "Agent [1] PMC GRBM"] == [(0, 2.0), (10, 0.0)]
    waves = [row[1:] for row in written if row[0] == "Agent [1] PMC SQ_WAVES"]
    assert waves == [(0, 6.5), (10, 0.0), (10, 7.25), (20, 9.0), (25, 11.0), (28, 9.0), (40, 0.0)]
    assert engine.one("SELECT unit FROM counter_track WHERE name GLOB '*SQ_WAVES'") == "waves"
    values = "SELECT s.name, EXTRACT_ARG(s.arg_set_id, 'debug.SQ_WAVES') FROM recorded s ORDER BY s.ts"
    assert engine.rows(values) == [("a", 6.5), ("b", 7.25), ("c", 9.0), ("d", 11.0)]


def test_copies_carry_bytes_and_bandwidth_on_a_track_of_their_destination(perfetto: ToPerfetto) -> None:
    engine = perfetto(TraceBuilder().copy(BASE, BASE + 1000, size=64_000).copy(BASE + 2000, BASE + 2000, size=1))

    sql = (
        "SELECT track, title, EXTRACT_ARG(arg_set_id, 'debug.bytes'), EXTRACT_ARG(arg_set_id, 'debug.gb_per_s'),"
        " EXTRACT_ARG(arg_set_id, 'debug.source'), EXTRACT_ARG(arg_set_id, 'debug.destination')"
        " FROM recorded ORDER BY ts"
    )
    track, ends = "GPU 0 / stream 0 · copies", ("CPU 0", "GPU 0")
    assert engine.rows(sql) == [(track, "H2D", 64_000, 64.0, *ends), (track, "H2D", 1, None, *ends)]


def test_memory_counter_runs_up_and_down(open_job: OpenJob, tmp_path: Path) -> None:
    session = open_job(
        TraceBuilder()
        .alloc(BASE, BASE + 1, size=100, address=0x1000)
        .alloc(BASE + 2, BASE + 3, size=50, address=0x2000)
        .alloc(BASE + 4, BASE + 5, kind="FREE", size=0, address=0x1000, agent=None)
        .alloc(BASE + 6, BASE + 7, kind="FREE", size=0, address=0x9999)
        .alloc(BASE + 8, BASE + 9, size=30, level="SCRATCH", address=0)
        .alloc(BASE + 10, BASE + 11, size=0, level="SCRATCH", kind="FREE", address=0)
    )
    engine = to_perfetto(session, tmp_path / "out")

    sql = "SELECT t.name, c.ts - {}, c.value FROM counter c JOIN counter_track t ON t.id = c.track_id ORDER BY c.id"
    written = engine.rows(sql.format(BASE))
    real, scratch = "memory REAL held", "memory SCRATCH held"
    assert written == [
        (real, 1, 100.0),
        (real, 3, 150.0),
        (real, 5, 50.0),
        (scratch, 9, 30.0),
        (scratch, 11, 0.0),
    ]
    assert engine.one("SELECT COUNT(*) FROM recorded") == 6
    assert any("frees of memory whose allocation is not in the trace" in note for note in session.notes)


def test_markers_by_message_and_as_kernel_names(perfetto: ToPerfetto) -> None:
    builder = (
        TraceBuilder()
        .region("roctxRangePushA", BASE, BASE + 100, message='step "1"')
        .sample("roctxMarkA", BASE + 50, message="here")
        .kernel("k", BASE + 10, BASE + 20, region='step "1"')
        .kernel("plain", BASE + 30, BASE + 40, region="")
    )

    engine = perfetto(builder, kernel_rename=True)

    sql = "SELECT name, dur, track = 'thread 16' FROM recorded ORDER BY ts, dur DESC"
    assert engine.rows(sql) == [('step "1"', 100, 1), ('step "1"', 10, 0), ("plain", 10, 0), ("here", 0, 1)]


def test_samples_lie_on_their_track_and_their_values_are_counters(perfetto: ToPerfetto) -> None:
    engine = perfetto(
        TraceBuilder()
        .sample("GPU power", BASE + 1, category="rocm_smi")
        .counter("watt", 300.0, units="W")
        .sample("GPU power", BASE + 2, category="rocm_smi")
        .counter("watt", 310.0)
        .sample("host", BASE + 3, category="timer_sampling")
        .sql('UPDATE "rocpd_event{uuid}" SET call_stack = \'["main"]\' WHERE id = 3')
    )

    counters = (
        "SELECT t.name, c.ts - {}, c.value FROM counter c JOIN track t ON t.id = c.track_id"
        " WHERE t.name != 'cpu-clock' ORDER BY c.ts"  # which the engine makes of samples of call stacks
    )
    assert engine.rows(counters.format(BASE)) == [("GPU power · watt", 1, 300.0), ("GPU power · watt", 2, 310.0)]
    instants = (
        "SELECT t.name, s.name, s.ts - {}, EXTRACT_ARG(arg_set_id, 'debug.call_stack')"
        " FROM recorded s JOIN track t ON t.id = s.track_id"
    )
    assert engine.rows(instants.format(BASE)) == [("host", "host", 3, '["main"]')]


def test_sampled_stacks_are_those_of_a_sampler(perfetto: ToPerfetto) -> None:
    """Perfetto draws a flame graph of these; the same function in another place is another frame of it."""
    trace = TraceBuilder()
    for at, tid, stack in ((1, 5, ["leaf", "main"]), (2, 5, ["main"]), (3, 6, ["leaf", "main"])):
        trace.sample("Call stack", BASE + at, tid=tid, category="timer_sampling")
        trace.rows["rocpd_event"][-1]["call_stack"] = json.dumps(stack)
    engine = perfetto(trace.sample("no stack", BASE + 4, tid=5, category="timer_sampling"))
    samples = """SELECT s.ts - {}, t.tid, f.name, p.depth FROM perf_sample s JOIN thread t USING (utid)
        JOIN stack_profile_callsite p ON p.id = s.callsite_id JOIN stack_profile_frame f ON f.id = p.frame_id
        ORDER BY s.ts"""
    assert engine.rows(samples.format(BASE)) == [(1, 5, "leaf", 1), (2, 5, "main", 0), (3, 6, "leaf", 1)]
    assert engine.rows("SELECT COUNT(*) FROM stack_profile_callsite") == [(2,)]


def test_arguments_of_calls_on_demand(perfetto: ToPerfetto) -> None:
    builder = (
        TraceBuilder()
        .region("hipMalloc", BASE, BASE + 5)
        .arg("ptr", "0x10")
        .arg("size", "64")
        .region("hipFree", BASE + 6, BASE + 7)
        .region("hipSync", BASE + 8, BASE + 9)
        .arg("size", '"quoted"')
    )

    engine = perfetto(builder, annotate_args=True)

    sql = (
        "SELECT s.name, a.key, a.string_value FROM recorded s JOIN args a USING (arg_set_id)"
        " WHERE a.string_value IS NOT NULL AND a.key != 'debug.category' ORDER BY s.ts, a.key"
    )
    assert engine.rows(sql) == [
        ("hipMalloc", "debug.ptr", "0x10"),
        ("hipMalloc", "debug.size", "64"),
        ("hipSync", "debug.size", '"quoted"'),
    ]


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "GPU 0 / stream 5"),
        ({"group_by_queue": True}, "GPU 0 / queue 2"),
        ({"agent_index_value": AgentIndex.RELATIVE}, "Agent 1 / stream 5"),
        ({"agent_index_value": AgentIndex.ABSOLUTE}, "Agent 1 / stream 5"),
    ],
)
def test_names_of_tracks(perfetto: ToPerfetto, options: dict[str, object], name: str) -> None:
    engine = perfetto(TraceBuilder().kernel("k", BASE, BASE + 1, stream=5, queue=2), **options)

    assert engine.one("SELECT track FROM recorded") == name


def test_clock_domains_are_laid_on_one_time_line(perfetto: ToPerfetto) -> None:
    engine = perfetto(
        TraceBuilder(0, host="a").region("one", BASE, BASE + 5),
        TraceBuilder(1, host="b").region("two", BASE * 2, BASE * 2 + 5),
    )

    assert engine.rows("SELECT name, ts FROM recorded ORDER BY name") == [("one", BASE), ("two", BASE)]


def test_an_existing_output_and_a_failed_write_leave_things_as_they_were(open_job: OpenJob, tmp_path: Path) -> None:
    session = open_job(TraceBuilder().kernel("k", BASE, BASE + 1))
    out = tmp_path / "out"
    out.mkdir()
    (out / "out_results.pftrace").write_text("mine")

    with pytest.raises(rocpd.OutputError):
        FORMATS["pftrace"].write(session, ConvertOptions(out), None)

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        FORMATS["pftrace"].write(session, ConvertOptions(out, force=True), stop)
    assert [path.read_text() for path in out.iterdir()] == ["mine"]


def test_progress_ends_at_the_total(open_job: OpenJob, tmp_path: Path) -> None:
    session = open_job(*(TraceBuilder(i).kernel("k", BASE, BASE + 1).region("r", BASE, BASE + 1) for i in range(2)))
    seen: list[tuple[int, int]] = []

    FORMATS["pftrace"].write(session, ConvertOptions(tmp_path / "out"), lambda *step: seen.append(step))

    assert seen == [(0, 4), (2, 4), (4, 4)]


def test_an_empty_job_is_a_valid_trace(perfetto: ToPerfetto) -> None:
    assert perfetto(TraceBuilder()).one("SELECT COUNT(*) FROM recorded") == 0


def test_two_adjoining_windows_hold_together_what_the_whole_trace_holds(open_job: OpenJob, tmp_path: Path) -> None:
    def job() -> TraceBuilder:
        builder = TraceBuilder().region("first", BASE, BASE + 1).sample("s", BASE + 95, message="m")
        for i in range(10):
            builder.region(f"r{i}", BASE + 10 * i, BASE + 10 * i + 9, stack=i + 1).arg("n", str(i))
            builder.kernel(f"k{i}", BASE + 10 * i, BASE + 10 * i + 10, stack=i + 1).counter("C", i + 1.0)
            builder.alloc(BASE + 10 * i, BASE + 10 * i + 5, address=i + 1)
        return builder

    def names(session: rocpd.Session, folder: str) -> list[tuple[object, ...]]:
        engine = to_perfetto(session, tmp_path / folder, annotate_args=True)
        return [
            *engine.rows("SELECT name, ts, dur FROM recorded"),
            *engine.rows("SELECT ts, value FROM counter WHERE value > 9"),
        ]

    halves: list[tuple[object, ...]] = []
    for i, window in enumerate((rocpd.Window(end=BASE + 50), rocpd.Window(start=BASE + 50))):
        session = open_job(job())
        session = session.within(window)
        written = names(session, f"half{i}")
        assert len(written) > 10
        halves += written

    assert sorted(halves, key=str) == sorted(names(open_job(job()), "whole"), key=str)


def test_an_index_that_someone_added_changes_nothing(open_job: OpenJob, tmp_path: Path) -> None:
    builder = TraceBuilder().alloc(BASE, BASE + 1, size=7).alloc(BASE + 2, BASE + 3, kind="FREE", size=0)
    session = open_job(builder.sql('CREATE INDEX odd ON "rocpd_memory_allocate{uuid}" (type DESC, level)'))

    assert to_perfetto(session, tmp_path).rows("SELECT name FROM recorded ORDER BY ts") == [
        ("ALLOC REAL",),
        ("FREE REAL",),
    ]
