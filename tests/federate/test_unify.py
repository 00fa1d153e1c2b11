"""Many ranks as one database: no row lost or duplicated, and only the views that a statement names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rocpd
from rocpd.schema.load import VIEWS, view
from rocpd.schema.quote import quote_name
from rocpd.schema.render import relations
from tests.build import CPU, GPU, GPU2, TraceBuilder
from tests.conftest import OpenJob

ONE_TO_ONE = {
    "kernels": "rocpd_kernel_dispatch",
    "regions": "rocpd_region",
    "samples": "rocpd_sample",
    "sample_regions": "rocpd_sample",
    "memory_copies": "rocpd_memory_copy",
    "memory_allocations": "rocpd_memory_allocate",
    "threads": "rocpd_info_thread",
    "processes": "rocpd_info_process",
    "code_objects": "rocpd_info_code_object",
    "kernel_symbols": "rocpd_info_kernel_symbol",
    "pmc_info": "rocpd_info_pmc",
    "graph_launches": "rocpd_graph_launch",
    "events_args": "rocpd_arg",
    "pmc_events": "rocpd_pmc_event",
}


def sound(number: int = 0) -> TraceBuilder:
    """Every kind of row, each reference found."""
    trace = TraceBuilder(number).region("hipLaunchKernel", 10, 20, stack=1).arg("f", "0x1").arg("stream", "0x0")
    trace.kernel("gemm", 30, 40, stack=1, region="step").counter("SQ_WAVES", 8).copy(50, 60).alloc(1, 2)
    trace.alloc(3, 4, level="SCRATCH").region("roctxRangePushA", 5, 90, message="step").sample("roctxMarkA", 6)
    return trace.graph_launch(70, 80)


def only(column: str, value: int | None) -> dict[str, Any]:
    return {column: value}


def damaged(number: int = 1) -> TraceBuilder:
    """Every kind of row once for each reference that is NULL or points nowhere."""
    trace = TraceBuilder(number)
    nowhere = ("tid", "agent_id", "queue_id", "stream_id", "region_name_id", "event_id", "kernel_id", "pid", "nid")
    for value in (None, 999):
        for column in nowhere:
            trace.kernel("gemm", 1, 2, **only(column, value))
        for column in ("tid", "queue_id", "stream_id", "region_name_id", "event_id", "name_id", "pid", "nid"):
            trace.copy(3, 4, **only(column, value))
        trace.copy(3, 4, src_agent_id=value).copy(3, 4, dst_agent_id=value)
        for column in ("tid", "agent_id", "queue_id", "stream_id", "event_id", "pid", "nid", "size"):
            trace.alloc(5, 6, **only(column, value))
        for column in ("tid", "event_id", "name_id", "pid", "nid"):
            trace.region("f", 7, 8, **only(column, value)).arg("x", None)
        for column in ("track_id", "event_id"):
            trace.sample("s", 9, **only(column, value))
        for column in ("event_id", "pmc_id"):
            trace.counter("C", 1.0, **only(column, value))
        for column in ("tid", "agent_id", "queue_id", "event_id", "pid", "nid"):
            trace.graph_launch(1, 2, **only(column, value))
        trace.arg("lost", "1", event_id=value)
        place = {"nid": value, "pid": value}
        trace.row("rocpd_info_thread", id=100 if value else 101, tid=1, **place)
        trace.row("rocpd_info_code_object", id=100 if value else 101, agent_id=value, extdata="no json", **place)
        trace.row("rocpd_info_kernel_symbol", id=100 if value else 101, code_object_id=value, extdata="{", **place)
        trace.row("rocpd_info_pmc", id=100 if value else 101, name="n", symbol="s", agent_id=value, **place)
    trace.kernel("gemm", 50, 40).kernel("gemm", 0, 0).kernel("gemm", None, None)  # type: ignore[arg-type]
    trace.rows["rocpd_info_thread"] = [row for row in trace.rows["rocpd_info_thread"] if row["id"] != 999]
    return trace.sql('UPDATE "rocpd_info_process{uuid}" SET nid = 999')


JOBS = {
    "sound": [sound()],
    "damaged": [damaged(0)],
    "empty": [TraceBuilder()],
    "three": [sound(0), damaged(1), TraceBuilder(2)],
}


@pytest.mark.parametrize("job", JOBS)
def test_a_row_view_has_the_rows_of_its_table(job: str, open_job: OpenJob) -> None:
    session = open_job(*JOBS[job])
    for name, base in ONE_TO_ONE.items():
        expected = sum(len(trace.rows.get(base, ())) for trace in JOBS[job])
        assert session.sql(f"SELECT count(*) FROM {name}").fetchall() == [(expected,)], name
        assert session.sql(f"SELECT count(*) FROM {base}").fetchall() == [(expected,)], base


@pytest.mark.parametrize("job", JOBS)
def test_region_args_are_the_arguments_of_events_that_have_a_region(job: str, open_job: OpenJob) -> None:
    session = open_job(*JOBS[job])
    expected = session.sql("""
        SELECT count(*) FROM rocpd_arg a WHERE EXISTS
        (SELECT 1 FROM rocpd_region r WHERE r.guid = a.guid AND r.event_id = a.event_id)""").fetchall()
    assert session.sql("SELECT count(*) FROM region_args").fetchall() == expected


def test_damaged_rows_show_what_is_known(open_job: OpenJob) -> None:
    trace = TraceBuilder().kernel("gemm", 10, 30, tid=None, agent=None, queue=None, region=None, event_id=None)
    trace.copy(10, 30, src=None, dst=99, stream=None, name_id=None)
    session = open_job(trace)
    kernel = "SELECT name, tid, agent_type, queue, region, category, stack_id, stream, duration FROM kernels"
    assert session.sql(kernel).fetchall() == [("gemm", None, None, None, None, None, None, "Default Stream", 20)]
    copy = "SELECT name, src_device, dst_device, stream_id, queue_name, category, duration FROM memory_copies"
    assert session.sql(copy).fetchall() == [(None, None, None, None, "Queue 1", "MEMORY_COPY", 20)]


@pytest.mark.parametrize("name", VIEWS)
def test_row_views_end_with_rank_and_hostname(name: str, open_job: OpenJob) -> None:
    columns = list(open_job(sound()).sql(f"SELECT * FROM {name}").columns)
    documented = [column.name for column in view(name).columns]
    if not view(name).is_rows:
        assert columns == documented
    elif "hostname" in documented:
        assert columns == [*documented, "rank"]
    else:
        assert columns == [*documented, "rank", "hostname"]


def test_only_named_views_are_created(open_job: OpenJob) -> None:
    session = open_job(sound())
    created = "SELECT name FROM sqlite_temp_schema WHERE type = 'view' ORDER BY name"
    assert session.sql(created).fetchall() == []
    session.execute("SELECT 1 FROM top_kernels")
    assert session.sql(created).fetchall() == [("kernels",), ("top_kernels",)]
    session.execute("SELECT 1 FROM KERNELS JOIN rocpd_string")
    assert session.sql(created).fetchall() == [("kernels",), ("rocpd_string",), ("top_kernels",)]


def test_relations_in_front_of_a_statement_have_the_rows_of_views(open_job: OpenJob) -> None:
    session = open_job(sound(), damaged())
    for number in range(2):
        reader = session.reader(number)
        for name in relations([reader.tables]):
            through_view = f"WITH unused AS (SELECT 1) SELECT * FROM {quote_name(name)}"
            assert reader.rows(f"SELECT * FROM {quote_name(name)}") == reader.rows(through_view), name


def test_a_literal_is_no_number_of_a_rank(open_job: OpenJob) -> None:
    """Texts are made once for ranks that are alike, with a number in the place of theirs."""
    session = open_job(sound(), sound(1))
    assert [session.reader(number).rows(f"SELECT {-(1 << 62)}, rank FROM kernels") for number in range(2)] == [
        [(-(1 << 62), number)] for number in range(2)
    ]


def test_joins_stay_inside_a_rank(open_job: OpenJob) -> None:
    """Two ranks with equal pid, tid, host and ids, whose ids mean different things."""
    session = open_job(
        TraceBuilder(0).kernel("first", 10, 20, region="a", tid=7, stack=1).copy(1, 3, name="in"),
        TraceBuilder(1).kernel("second", 10, 40, region="b", tid=7, stack=1).copy(1, 3, name="out", size=1),
    )
    assert session.sql("SELECT rank, name, region, tid, pid FROM kernels").fetchall() == [
        (0, "first", "a", 7, 16),
        (1, "second", "b", 7, 16),
    ]
    assert session.sql("SELECT rank, name, size FROM memory_copies").fetchall() == [(0, "in", 4096), (1, "out", 1)]
    assert session.sql("SELECT count(*) FROM threads").fetchall() == [(4,)]
    by_rank = """
        SELECT p.rank, k.name, count(*), sum(k.duration) FROM processes p JOIN kernels k USING (guid)
        GROUP BY p.rank, k.name ORDER BY p.rank"""
    assert session.sql(by_rank).fetchall() == [(0, "first", 1, 10), (1, "second", 1, 30)]
    assert session.sql("SELECT agent_id, GpuTime, WallTime FROM busy").fetchall() == [(GPU, 12, 19), (GPU, 32, 39)]


def test_summaries_are_over_all_ranks(open_job: OpenJob) -> None:
    session = open_job(
        TraceBuilder(0)
        .kernel("gemm", 1, 101, region="a")
        .kernel("gemm", 200, 500, region="b")
        .copy(1, 1 + (1 << 30), size=1 << 30),
        TraceBuilder(1).kernel("gemm", 1, 201, region="a").kernel("relu", 1, 401, region="a").alloc(1, 8, size=5),
    )
    assert session.sql("SELECT * FROM top_kernels").fetchall() == [
        ("gemm", 3, 0.6, 0.2, 60.0),
        ("relu", 1, 0.4, 0.4, 40.0),
    ]
    assert session.sql("SELECT * FROM kernel_summary").fetchall() == [
        ("gemm", 3, 600, 200.0, 100, 300, 100.0, 60.0),
        ("relu", 1, 400, 400.0, 400, 400, None, 40.0),
    ]
    assert session.sql("SELECT region, name, calls, std_ns FROM kernel_summary_region").fetchall() == [
        ("a", "relu", 1, None),
        ("a", "gemm", 2, pytest.approx(70.71067811865476)),
        ("b", "gemm", 1, None),
    ]
    assert session.sql("SELECT calls, bytes, total_ns, gib_per_s FROM memory_copy_summary").fetchall() == [
        (1, 1 << 30, 1 << 30, pytest.approx(1e9 / (1 << 30))),
    ]
    assert session.sql("SELECT * FROM memory_allocation_summary").fetchall() == [
        ("ALLOC", "REAL", "gfx942", 1, 5, 7, 7.0, 7, 7)
    ]
    assert session.sql("SELECT name, total_calls, percentage FROM top ORDER BY name LIMIT 1").fetchall() == [
        ("MEMORY_COPY_HOST_TO_DEVICE", 1, pytest.approx(100 * (1 << 30) / ((1 << 30) + 1000)))
    ]


def test_deviation_keeps_its_digits_where_squares_do_not_fit(open_job: OpenJob) -> None:
    hour = 3_600_000_000_000
    trace = TraceBuilder().kernel("long", 1, hour + 1).kernel("long", 1, hour + 3).kernel("long", 1, hour + 5)
    assert open_job(trace).sql("SELECT total_ns, mean_ns, std_ns FROM kernel_summary").fetchall() == [
        (3 * hour + 6, hour + 2.0, 2.0)
    ]


def test_busy_counts_copies_for_the_gpu_that_they_reach_or_else_leave(open_job: OpenJob) -> None:
    trace = TraceBuilder().kernel("gemm", 100, 200).kernel("gemm", 150, 300, agent=GPU2)
    trace.copy(50, 90, dst=GPU2).copy(400, 450, src=GPU, dst=CPU).copy(60, 80, src=CPU, dst=CPU)
    assert open_job(trace).sql("SELECT agent_id, type, GpuTime, WallTime, Busy FROM busy").fetchall() == [
        (CPU, "CPU", 20, 400, 0.05),
        (GPU, "GPU", 150, 400, 0.375),
        (GPU2, "GPU", 190, 400, 0.475),
    ]


def test_markers_have_their_message(open_job: OpenJob) -> None:
    trace = (
        TraceBuilder().region("roctxRangePushA", 10, 90, message="step 1 “ü”").sample("roctxMarkA", 20, message="mark")
    )
    trace.region("roctxThreadRangeA", 30, 30, category="MARKER_CORE_API").region("hipMalloc", 1, 2)
    trace.region("rocm_range", 40, 50, category="rocm_marker_api", message="from the systems profiler")
    rows = open_job(trace).sql('SELECT name, function, start, "end" FROM markers ORDER BY start').fetchall()
    assert rows == [
        ("step 1 “ü”", "roctxRangePushA", 10, 90),
        ("mark", "roctxMarkA", 20, 20),
        ("roctxThreadRangeA", "roctxThreadRangeA", 30, 30),
        ("from the systems profiler", "rocm_range", 40, 50),
    ]


def test_flows_link_a_launch_with_what_it_launched(open_job: OpenJob) -> None:
    jobs = [
        TraceBuilder(n).region("hipLaunchKernel", 10, 20, stack=5).kernel(f"k{n}", 30, 40, stack=5) for n in range(2)
    ]
    flows = "SELECT r.rank, r.name, k.name FROM regions r JOIN kernels k USING (guid, stack_id)"
    assert open_job(*jobs).sql(flows).fetchall() == [(0, "hipLaunchKernel", "k0"), (1, "hipLaunchKernel", "k1")]


def test_counters_are_summed_over_instances_and_streamed_ones_left_out(open_job: OpenJob) -> None:
    trace = TraceBuilder().kernel("gemm", 1, 2).counter("SQ_WAVES", 3).counter("SQ_WAVES", 4).counter("GRBM", 1)
    trace.kernel("gemm", 3, 4).counter("SQ_WAVES", 10).counter("SQ_WAVES", 99, sample_id=1)
    rows = open_job(trace).sql("SELECT dispatch_id, counter_name, value, start FROM counters_collection").fetchall()
    assert sorted(rows) == [(1, "GRBM", 1.0, 1), (1, "SQ_WAVES", 7.0, 1), (2, "SQ_WAVES", 10.0, 3)]


def test_scratch_memory_is_part_of_allocations(open_job: OpenJob) -> None:
    session = open_job(TraceBuilder().alloc(1, 2).alloc(3, 5, level="SCRATCH", size=64))
    assert session.sql("SELECT operation, size, duration, alloc_flags FROM scratch_memory").fetchall() == [
        ("ALLOC", 64, 2, 2)
    ]
    assert session.sql("SELECT level FROM memory_allocations ORDER BY id").fetchall() == [("REAL",), ("SCRATCH",)]


def test_stream_args_name_their_stream(open_job: OpenJob) -> None:
    trace = TraceBuilder().kernel("k", 1, 2, stream=3).region("hipMemcpyAsync", 1, 2)
    trace.arg("stream", "0x5", extdata='{"stream_id":3}').arg("stream", "0x6", extdata='{"stream_id":99}')
    trace.arg("stream", "?", extdata="no json").arg("stream", "0x7").arg("n", "1", extdata='{"stream_id":3}')
    rows = open_job(trace).sql("SELECT arg_value, stream_id, stream_name FROM stream_args").fetchall()
    assert rows == [("0x5", 3, "Stream 3"), ("0x6", 99, None)]


def test_files_of_different_shape_in_one_statement(tmp_path: Path) -> None:
    old = TraceBuilder(0).kernel("old", 1, 2).write(tmp_path / "old.db", "3.0.0")
    new = TraceBuilder(1).kernel("new", 1, 2, graph_exec_id=5).graph_launch(3, 4, graph=5).write(tmp_path / "new.db")
    with rocpd.connect([old, new]) as session:
        assert session.sql("SELECT rank, graph_exec_id FROM graph_launches").fetchall() == [(1, 5)]
        rows = session.sql("SELECT graph_exec_id FROM rocpd_kernel_dispatch ORDER BY guid").fetchall()
        assert rows == [(None,), (5,)]
