"""RPD traces: what the tracer wrote is what rocpd says, process by process, in each schema of the tracer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

import rocpd
from rocpd.base import InputError
from tests.importers.rpd import RpdBuilder, server

KERNELS = "('KernelExecution', 'Task')"


@pytest.fixture(scope="module", params=[1, 2, 3])
def trace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return server(tmp_path_factory.mktemp("rpd") / f"schema{request.param}", request.param)


@pytest.fixture(scope="module")
def job(trace: Path) -> Iterator[rocpd.Session]:
    with rocpd.connect(trace) as session:
        yield session


def of_rpd(trace: Path, sql: str) -> list[tuple[object, ...]]:
    connection = apsw.Connection(str(trace), flags=apsw.SQLITE_OPEN_READONLY)
    rows = connection.execute(sql).fetchall()
    connection.close()
    return rows


def operations(trace: Path, columns: str, condition: str) -> list[tuple[object, ...]]:
    return of_rpd(
        trace,
        f"""SELECT A.pid, {columns} FROM rocpd_api_ops X JOIN rocpd_op O ON O.id = X.op_id
        JOIN rocpd_api A ON A.id = X.api_id JOIN rocpd_string D ON D.id = O.description_id
        JOIN rocpd_string T ON T.id = O.opType_id WHERE {condition} ORDER BY A.pid, O.id""",
    )


def test_processes_are_ranks(trace: Path, job: rocpd.Session) -> None:
    assert [(rank.pid, rank.hostname) for rank in job.ranks] == [(7, trace.name), (9, trace.name)]
    assert len({rank.guid for rank in job.ranks}) == 2
    assert len({rank.machine_id for rank in job.ranks}) == 1


def test_calls_keep_their_ids_and_times(trace: Path, job: rocpd.Session) -> None:
    rows = job.sql("""SELECT pid, id, stack_id, tid, start, "end" FROM regions WHERE category <> 'GPU_WAIT'
        ORDER BY pid, id""").fetchall()
    assert rows == of_rpd(trace, 'SELECT pid, id, id, tid, start, "end" FROM rocpd_api ORDER BY pid, id')


def test_kernels_keep_their_ids_times_and_calls(trace: Path, job: rocpd.Session) -> None:
    rows = job.sql("""SELECT pid, id, name, start, "end", stack_id, tid, agent_abs_index
        FROM kernels ORDER BY pid, id""").fetchall()
    expected = operations(trace, 'O.id, D.string, O.start, O."end", A.id, A.tid, O.gpuId', f"T.string IN {KERNELS}")
    assert rows == expected


def test_grids_are_in_work_items(job: rocpd.Session) -> None:
    sizes = job.sql("""SELECT DISTINCT grid_x, workgroup_x FROM kernels WHERE name NOT LIKE 'node%'""").fetchall()
    assert sizes == [(128, 64)]


def test_work_of_graphs_has_no_sizes_but_its_graph_and_stream(job: rocpd.Session) -> None:
    rows = job.sql("""SELECT DISTINCT K.grid_x, K.stream, D.graph_exec_id FROM kernels K
        JOIN rocpd_kernel_dispatch D ON D.id = K.id AND D.guid = K.guid WHERE K.name LIKE 'node%'""").fetchall()
    assert rows == [(0, "0x5000", 0x77)]
    launches = job.sql("""SELECT pid, start, "end", graph_exec_id, kernel_dispatch_count FROM graph_launches
        ORDER BY pid, start""").fetchall()
    assert launches == [(pid, at, at + 240, 0x77, 3) for pid in (7, 9) for at in (3100, 3600)]


def test_markers_operators_and_the_tracers_own_records_are_told_apart(trace: Path, job: rocpd.Session) -> None:
    assert job.sql("SELECT category, name, start FROM markers WHERE rank = 0 ORDER BY start").fetchall() == [
        *([] if trace.name == "schema2" else [("MARKER_CORE_RANGE_API", "step", 1000)]),
        ("MARKER_CORE_API", "a mark", 1500),
        ("MARKER_CORE_RANGE_API", "crosses step", 3000),
    ]
    own = job.sql("SELECT DISTINCT name FROM regions WHERE category = 'TRACER_OVERHEAD'").fetchall()
    assert own == [("ApiTable::writeRows",)]
    assert "ApiTable::writeRows" not in str(job.summary("calls").fetchall())


def test_operators_have_their_facts(trace: Path, job: rocpd.Session) -> None:
    rows = job.sql("""SELECT R.name, A.name, A.type, A.value FROM regions R
        JOIN rocpd_arg A ON A.event_id = R.event_id AND A.guid = R.guid
        WHERE R.category = 'TORCH_OPERATOR' AND R.rank = 0 ORDER BY R.start, A.position""").fetchall()
    added = [("Sequence number", "int", "6"), ("op_id", "int", "4"), ("Input Dims", "", "[[1]]")]
    multiplied = [("Sequence number", "int", "5"), ("op_id", "int", "3"), ("Input Dims", "", "[[2, 3], [3, 4]]")]
    expected = [("aten::add", *fact) for fact in added]
    if trace.name == "schema2":
        expected = [("aten::mm", *fact) for fact in multiplied] + expected
    assert rows == expected


def test_arguments_are_typed(trace: Path, job: rocpd.Session) -> None:
    def arguments(name: str) -> list[tuple[object, ...]]:
        return job.sql(f"""SELECT A.type, A.name, A.value FROM regions R
            JOIN rocpd_arg A ON A.event_id = R.event_id AND A.guid = R.guid
            WHERE R.name = '{name}' AND R.rank = 0 AND R.start IN (900, 4500, 4900) ORDER BY A.position""").fetchall()

    assert arguments("hipMalloc") == [("pointer", "ptr", "0x10"), ("pointer", "size", "0x400")]
    if trace.name != "schema1":
        assert ("dim3", "grid", "4, 1, 1") in arguments("hipLaunchKernel")
        assert ("size_t", "size", "4096") in arguments("hipMemcpyAsync")


def test_copies_have_direction_size_and_ends(trace: Path, job: rocpd.Session) -> None:
    rows = job.sql("""SELECT start, name, size, src_agent_abs_index, dst_agent_abs_index FROM memory_copies
        WHERE rank = 1 ORDER BY start""").fetchall()
    expected = [
        (2920, "MEMORY_SET", 0, None, 3),
        (4520, "MEMORY_COPY_HOST_TO_DEVICE", 4096 if trace.name != "schema1" else 0, 0, 3),
        (4620, "MEMORY_COPY_DEVICE_TO_DEVICE", 64 * 32, 3, 3),
        (4720, "MEMORY_COPY_DEVICE_TO_DEVICE", 512, 2, 3),
    ]
    assert rows == (expected if trace.name != "schema1" else expected[:2])


def test_a_queue_that_waits_is_no_work(job: rocpd.Session) -> None:
    rows = job.sql("SELECT pid, name, start, duration, parent_stack_id > 0 FROM regions WHERE category = 'GPU_WAIT'")
    assert rows.fetchall() == [(7, "Barrier", 2941, 49, 1), (9, "Barrier", 2941, 49, 1)]


def test_monitors_are_samples_of_the_rank_that_uses_the_gpu(job: rocpd.Session) -> None:
    rows = job.sql("""SELECT S.pid, S.name, S.timestamp, S.extdata, P.counter_name, P.counter_value FROM samples S
        JOIN pmc_events P ON P.event_id = S.event_id AND P.guid = S.guid ORDER BY S.pid, S.timestamp""").fetchall()
    assert [(pid, name, at, json.loads(str(extdata)), *value) for pid, name, at, extdata, *value in rows] == [
        (pid, f"sclk GPU {gpu}", start, {"end": end}, "sclk", value)
        for pid, gpu in ((7, 0), (9, 1))
        for start, end, value in ((1000, 2000, 800.0), (2000, 5000, 1700.0))
    ]


def test_captures_of_graphs(tmp_path: Path) -> None:
    """The launch between begin and end has no operation; the graph's has no sizes but those of the capture."""
    rpd = RpdBuilder(tmp_path / "a.rpd")
    rpd.api("hipStreamBeginCapture", 1000, 1010, "stream = 0x5000 | mode = 0")
    rpd.launch(rpd.api("hipExtModuleLaunchKernel", 1020, 1030), "k", (512, 2, 1), (64, 1, 1), "0x5000")
    rpd.launch(rpd.api("hipLaunchKernel", 1040, 1050), "l", (3, 1, 1), (64, 1, 1), "0x5000")
    rpd.api("hipStreamEndCapture", 1060, 1070, "stream = 0x5000 | graph = 0x9")
    rpd.api("hipGraphInstantiate", 1080, 1090, "graphExec = 0x77 | graph = 0x9")
    call = rpd.api("hipGraphLaunch", 1100, 1110, "graphExec = 0x77 | stream = 0x5000")
    for at, name in ((1120, "k"), (1140, "l")):
        rpd.op(at, at + 10, name, api=call)
    rpd.close()
    with rocpd.connect(tmp_path / "a.rpd") as session:
        assert session.summary("graph-captures").fetchall() == [(0, 1, "0x9", "0x77", "0x5000", 0, 70, 2)]
        sizes = [row[-2:] for row in session.summary("graph-kernels")]
    assert sizes == [("512x2x1", "64x1x1"), ("192x1x1", "64x1x1")]


def test_stack_frames_are_call_stacks(trace: Path, job: rocpd.Session) -> None:
    rows = job.sql("SELECT call_stack FROM regions WHERE call_stack <> '{}'").fetchall()
    frames = '["hipLaunchKernel", "forward()", "main"]'
    assert rows == ([] if trace.name == "schema1" else [(frames,), (frames,)])


def test_counters_of_kernels(trace: Path, job: rocpd.Session) -> None:
    rows = job.sql("SELECT dispatch_id, counter_name, value FROM counters_collection ORDER BY value").fetchall()
    first = (1 << 32) + 1
    assert rows == ([(first, "SQ_WAVES", 1.5), (first, "GRBM_COUNT", 2.5)] if trace.name == "schema3" else [])


def test_losses_are_told(tmp_path: Path) -> None:
    rpd = RpdBuilder(tmp_path / "a.rpd")
    call = rpd.kernel("gemm", 100, 200)
    rpd.kernel("gemm", 300, 400, pid=9)
    rpd.op(500, 600, "nobody's")
    rpd.add("rocpd_api_ops", api_id=call + 1, op_id=rpd.op(700, 800, "of two", api=call))
    rpd.add("rocpd_api_ops", api_id=call, op_id=99)
    rpd.add("rocpd_barrierop", op_ptr_id=1, signalCount=1, aquireFence="", releaseFence="")
    for value in ("high", "nan", "inf"):
        rpd.monitor(0, 1, 2, value)
    notes: list[str] = []
    files = rocpd.import_traces(rpd.close(), tmp_path / "job", on_note=notes.append)
    assert sorted(note.removeprefix("a.rpd: not imported: ") for note in notes) == [
        "1 facts of barriers",
        "1 links to operations that are not there",
        "1 operations without a call, so without a process",
        "1 second calls of operations",
        "3 values of monitors that are no numbers",
    ]
    with rocpd.connect(files) as session:
        assert session.sql("SELECT pid, name FROM kernels ORDER BY start").fetchall() == [
            (7, "gemm"),
            (9, "gemm"),
            (7, "of two"),
        ]


def test_operations_without_a_call_belong_to_the_only_process(tmp_path: Path) -> None:
    rpd = RpdBuilder(tmp_path / "a.rpd")
    rpd.kernel("gemm", 100, 200)
    rpd.op(500, 600, "nobody's")
    with rocpd.connect(rpd.close()) as session:
        rows = session.sql("SELECT pid, name, stack_id, tid FROM kernels ORDER BY start").fetchall()
    assert rows == [(7, "gemm", (1 << 32) + 1, 8), (7, "nobody's", 0, None)]


def test_grids_of_module_launches_are_work_items_already(tmp_path: Path) -> None:
    rpd = RpdBuilder(tmp_path / "a.rpd")
    call = rpd.api("hipExtModuleLaunchKernel", 10, 20)
    rpd.op(30, 40, "Cijk", api=call)
    rpd.launch(call, "Cijk", (512, 8, 1), (256, 1, 1))
    with rocpd.connect(rpd.close()) as session:
        assert session.sql("SELECT grid_x, grid_y, workgroup_x FROM kernels").fetchall() == [(512, 8, 256)]


def test_nodes_of_a_merged_file_are_told_apart(tmp_path: Path) -> None:
    rpd = RpdBuilder(tmp_path / "a.rpd", schema=3)
    for node in range(2):
        rpd.kernel("gemm", 100 + 400 * node, 200 + 400 * node, pid=node * 10_000_000 + 7, gpu=node * 1000 + 2)
    with rocpd.connect(rpd.close()) as session:
        assert [(rank.pid, rank.hostname, rank.run) for rank in session.ranks] == [
            (7, "a.rpd", 0),
            (7, "a.rpd node 1", 0),
        ]
        assert session.sql("SELECT agent_abs_index FROM kernels").fetchall() == [(2,), (2,)]


def test_monitors_of_a_merged_file_are_of_their_node(tmp_path: Path) -> None:
    rpd = RpdBuilder(tmp_path / "a.rpd", schema=3)
    for node in range(2):
        rpd.kernel("gemm", 100, 200, pid=node * 10_000_000 + 7 + node, gpu=node * 1000 + 3 - node)
        rpd.monitor(node * 1000 + 1 - node, 100, 200, str(node))
    with rocpd.connect(rpd.close()) as session:
        rows = session.sql("""SELECT S.pid, S.name, E.value, A.absolute_index FROM samples S
            JOIN rocpd_pmc_event E ON E.event_id = S.event_id AND E.guid = S.guid
            JOIN rocpd_info_pmc P ON P.id = E.pmc_id AND P.guid = S.guid
            JOIN rocpd_info_agent A ON A.id = P.agent_id AND A.guid = S.guid ORDER BY S.pid""").fetchall()
    assert rows == [(7, "sclk GPU 1", 0.0, 3), (8, "sclk GPU 0", 1.0, 2)]


def test_an_imported_job_splits_and_merges(trace: Path, job: rocpd.Session, tmp_path: Path) -> None:
    """However the ranks lie in files, they answer as the trace itself."""
    sql = "SELECT rank, name, start, duration, stack_id FROM kernels ORDER BY rank, id"
    expected = job.sql(sql).fetchall()
    files = rocpd.import_traces(trace, tmp_path / "job")
    job.merge(tmp_path / "merged.db")
    for paths in (files, [*reversed(files)], [tmp_path / "merged.db"], [trace, *files]):
        with rocpd.connect(paths) as session:
            assert session.sql(sql).fetchall() == expected


def test_adjoining_windows_add_up(job: rocpd.Session) -> None:
    def total(session: rocpd.Session) -> int:
        ((time,),) = session.sql("SELECT sum(duration) FROM operations").fetchall()
        return int(time)

    parts = [job.within(rocpd.Window(start, end, clip=True)) for start, end in (("0%", "40%"), ("40%", "100%"))]
    assert sum(map(total, parts)) == total(job) > 0


@pytest.mark.parametrize("table", ["rocpd_string", "rocpd_op", "rocpd_api_ops"])
def test_a_file_that_lacks_a_table_is_one_error(table: str, tmp_path: Path) -> None:
    path = server(tmp_path / "a.rpd")
    connection = apsw.Connection(str(path))
    connection.execute(f"DROP TABLE {table}")
    connection.close()
    with pytest.raises(InputError, match=rf"a\.rpd: .*{table}") as error:
        rocpd.connect(path)
    assert "\n" not in error.value.message
