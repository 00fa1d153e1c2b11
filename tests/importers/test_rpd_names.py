"""Statements that RPD's documents print run unchanged, on its traces, on rocpd files, and on merged ones."""

from __future__ import annotations

import gzip
import io
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import rocpd
from rocpd.base import QueryError
from rocpd.rpd import RaptorParser
from tests.build import TraceBuilder
from tests.conftest import Cli, Shell, private
from tests.importers.rpd import RpdBuilder, server
from tests.soak import sample
from tests.waiting import PATIENCE

PRINTED = (
    "select * from graphLaunch;",
    "select * from graphkernel;",
    "select * from autogradKernel;",
    "select * from callStack_inclusive_name order by random()",
    "select args, avg(cpu_time), avg(gpu_time) from callStack_inclusive_name group by args;",
    "select * from rocpd_stackframe limit 20;",
)
"""Every statement that they print."""

NAMED = (
    "callStack_exclusive_name", "rocpd_copyapi", "rocpd_kernelapi", "rocpd_api", "rocpd_op", "rocpd_api_ops", "kernel",
    "copy", "copyop", "rocpd_metadata", "rocpd_string", "top", "ktop", "busy", "api", "op", "callStack_inclusive",
    "callStack_exclusive",
)  # fmt: skip
"""Tables and views that they name."""

STATEMENTS = (*PRINTED, *(f"select * from {name}" for name in NAMED))

AS_IN_THE_TRACE = (
    'select id, pid, tid, start, "end" from rocpd_api',
    'select id, gpuId, queueId, sequenceId, start, "end" from rocpd_op',
    "select api_id, op_id from rocpd_api_ops",
    "select A.id, O.id from rocpd_api A join rocpd_api_ops L on L.api_id = A.id join rocpd_op O on O.id = L.op_id",
    """select id, pid, tid, start, "end", apiName, replace(args, ' = ', '=') from api
        where apiName <> 'run_to_completion' and args <> 'run_to_completion'""",
    'select id, gpuId, queueId, sequenceId, start, "end", opType from op',
    """select id, gpuId, queueId, sequenceId, start, "end", duration, stream, workgroupX, workgroupY, workgroupZ,
        groupSegmentSize, privateSegmentSize, kernelName from kernel""",
    """select id, pid, tid, start, "end", apiName, stream, size, width, height, kind, dst, src, dstDevice, srcDevice,
        sync, pinned from copy""",
    """select id, gpuId, queueId, sequenceId, start, "end", duration, stream, size, width, height, kind, dst, src,
        dstDevice, srcDevice, sync, pinned, apiName from copyop""",
    "select * from ktop",
    "select count(*), sum(gridX) from kernel where id in (select O.op_id from rocpd_api_ops O join rocpd_api A"
    " on A.id = O.api_id join rocpd_string S on S.id = A.apiName_id where S.string = 'hipLaunchKernel')",
)
"""Statements whose answer is that of the trace's own tables and views."""

WITH_TOOLS = (
    "select args, avg(cpu_time), avg(gpu_time) from callStack_inclusive_name where args like 'aten%' group by args",
    "select parent_id, cpu_time, gpu_time from callStack_inclusive where parent_id not in (6442462843, 6442462849)",
    "select parent_id, cpu_time, gpu_time from callStack_exclusive where parent_id not in (6442462843, 6442462849)",
    "select autogradName, kernelName, sizes, calls, avg_gpu, total_gpu from autogradKernel",
)
"""The same, of what RPD's tools wrote into it, but for two ranges that end in the same ns as one inside them."""


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("names") / "job"
    rocpd.simulate(folder, ranks=2, steps=3)
    return folder


@pytest.fixture(scope="module")
def job(simulated: Path) -> Iterator[rocpd.Session]:
    with rocpd.connect(simulated) as session:
        yield session


@pytest.mark.parametrize("sql", STATEMENTS)
def test_statements_run_on_rocpd_files(sql: str, job: rocpd.Session) -> None:
    rows = job.sql(sql).fetchall()
    recorded_nowhere = ("autogradKernel", "rocpd_stackframe")
    assert bool(rows) is not any(name in sql for name in recorded_nowhere)


def test_statements_run_in_the_shell_on_a_merged_file(simulated: Path, sqlite3_shell: Shell, tmp_path: Path) -> None:
    with rocpd.connect(simulated) as session:
        merged = session.merge(tmp_path / "all.db")
        for sql in STATEMENTS:
            sqlite3_shell(merged, sql)
            statement = f"SELECT COUNT(*) FROM ({sql.removesuffix(';')})"
            assert sqlite3_shell(merged, statement) == str(session.sql(statement).fetchall()[0][0]), sql


def norm(rows: Sequence[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """RPD has an empty text where nothing is known."""
    return Counter(tuple(None if v == "" else round(v, 6) if isinstance(v, float) else v for v in row) for row in rows)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("name", "statements"), [("matmul_result.rpd", AS_IN_THE_TRACE), ("mytrace.rpd.gz", AS_IN_THE_TRACE + WITH_TOOLS)]
)
def test_answers_are_those_of_the_trace(name: str, statements: Sequence[str], tmp_path: Path) -> None:
    (path,) = private(f"rpd/{name}", 1)
    content = path.read_bytes()
    (tmp_path / "own.rpd").write_bytes(gzip.decompress(content) if name.endswith(".gz") else content)
    own = sqlite3.connect(tmp_path / "own.rpd")
    with rocpd.connect(path) as session:
        for sql in sample(sorted(set(STATEMENTS) - set(statements)), 3):
            session.sql(sql).fetchall()
        for sql in statements:
            assert norm(session.sql(sql).fetchall()) == norm(own.execute(sql).fetchall()), sql
    own.close()


def test_launches_of_graphs_are_those_of_the_trace() -> None:
    with rocpd.connect(private("rpd/mytrace.rpd.gz", 1)) as session:
        launches = session.sql("SELECT graphExec, stream, gpuId, queueId, gpuTime FROM graphLaunch").fetchall()
        assert {row[:4] for row in launches} == {("0x24922d90", "0x0", 2, 0)}
        table = session.summary("graph-launches")
        expected = [row[table.columns.index("gpu_ns")] // 1000 for row in table.fetchall()]
        assert sorted(row[4] for row in launches) == sorted(expected)


OpenJob = Callable[..., rocpd.Session]


def test_ranges_that_touch_cross_or_end_together(open_job: OpenJob) -> None:
    """RPD gives one of two that touch the time of both, and mixes up those that cross or end together."""
    trace = TraceBuilder()
    for name, start, end in (("a", 100, 150), ("b", 150, 200), ("outer", 300, 400), ("inner", 350, 400),
                             ("x", 500, 600), ("y", 550, 650), ("at", 360, 360)):  # fmt: skip
        trace.region(name, start, end)
    trace.region("launch", 310, 320, stack=9).kernel("k", 700, 730, stack=9)
    trace.region("hipFree", 900, 0)
    sql = "SELECT I.apiName, I.cpu_time, E.cpu_time, I.gpu_time, E.gpu_time FROM callStack_inclusive_name I JOIN" \
        " callStack_exclusive_name E ON E.parent_id = I.parent_id ORDER BY 1"  # fmt: skip
    assert open_job(trace).sql(sql).fetchall() == [
        ("a", 50, 50, 0, 0), ("at", 0, 0, 0, 0), ("b", 50, 50, 0, 0), ("inner", 50, 50, 0, 0),
        ("launch", 10, 10, 30, 30), ("outer", 100, 40, 30, 0), ("x", 100, 100, 0, 0), ("y", 100, 100, 0, 0),
    ]  # fmt: skip


def test_times_of_calls_are_those_of_functions(job: rocpd.Session) -> None:
    table = job.summary("functions")
    wanted = [table.columns.index(name) for name in ("calls", "cpu_self_ns", "gpu_self_ns")]
    functions = sorted(tuple(row[at] for at in wanted) for row in table.fetchall())
    sql = """SELECT COUNT(*), SUM(cpu_time), SUM(gpu_time) FROM callStack_exclusive_name
        JOIN rocpd_api A ON A.rank = callStack_exclusive_name.rank AND A.id = parent_id
        GROUP BY COALESCE(A.text, A.apiName)"""
    assert sorted(job.sql(sql).fetchall()) == functions


def test_kernels_of_a_graph_are_those_of_its_capture(tmp_path: Path) -> None:
    rpd = RpdBuilder(tmp_path / "a.rpd")
    rpd.api("hipStreamBeginCapture", 1000, 1010, "stream = 0x5000 | mode = 0")
    rpd.launch(rpd.api("hipExtModuleLaunchKernel", 1020, 1030), "k", (512, 2, 1), (64, 1, 1), "0x5000")
    rpd.launch(rpd.api("hipLaunchKernel", 1040, 1050), "l", (3, 1, 1), (64, 1, 1), "0x5000")
    rpd.launch(rpd.api("hipLaunchKernel", 1052, 1055), "elsewhere", (3, 1, 1), (64, 1, 1), "0x6000")
    rpd.api("hipStreamEndCapture", 1060, 1070, "stream = 0x5000 | graph = 0x9")
    rpd.api("hipGraphInstantiate", 1080, 1090, "graphExec = 0x77 | graph = 0x9")
    call = rpd.api("hipGraphLaunch", 1100, 3110, "graphExec = 0x77 | stream = 0x5000")
    for at, name in ((4120, "k"), (7140, "l")):
        rpd.op(at, at + 1010, name, api=call)
    rpd.close()
    with rocpd.connect(tmp_path / "a.rpd") as session:
        kernels = session.sql("SELECT graphExec, sequence, kernelName, gridX, gridY, workgroupX FROM graphKernel")
        assert kernels.fetchall() == [("0x77", 1, "k", 8, 2, 64), ("0x77", 2, "l", 3, 1, 64)]
        (launch,) = session.sql("SELECT * FROM graphLaunch").fetchall()
        assert launch[:10] == (7, 8, "hipGraphLaunch", "0x77", "0x5000", 2, 0, 2, 4, 2)


def test_frames_have_ids_of_strings(tmp_path: Path) -> None:
    path = server(tmp_path / "server.rpd")
    sql = """SELECT F.api_ptr_id, F.depth, S.string FROM rocpd_stackframe F JOIN rocpd_string S ON S.id = F.name_id
        ORDER BY 1, 2"""
    own = sqlite3.connect(path)
    with rocpd.connect(path) as session:
        answers = session.sql(sql.replace("F.name_id", "F.name_id AND S.guid = F.guid")).fetchall()
        assert answers == own.execute(sql).fetchall()
    own.close()


def test_launches_by_operator(open_job: OpenJob) -> None:
    """The innermost operator has the launch, also through a marker; a launch outside of operators is no one's."""
    trace = TraceBuilder()
    trace.region("outer", 10, 100, category="TORCH_OPERATOR")
    trace.region("inner", 20, 60, category="TORCH_OPERATOR").arg("Input Dims", "[[2]]")
    for stack, at in ((1, 30), (2, 70), (3, 200)):
        trace.region("hipLaunchKernel", at, at + 5, stack=stack)
        trace.kernel("gemm", at + 300, at + 300 + stack, stack=stack)
    assert open_job(trace).sql("SELECT * FROM autogradKernel").fetchall() == [
        ("inner", "gemm", "[[2]]", 1, 1.0, 1), ("outer", "gemm", "", 1, 2.0, 2),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("sql", "instead"),
    [
        ("select * from rocpd_timestamp", "times are columns"),
        ("select * from ext_callstack", "callstack_inclusive"),
        ("select B.string from rocpd_api A join rocpd_string B on B.id = A.args_id", "view api"),
    ],
)
def test_what_is_not_there_says_what_is(sql: str, instead: str, job: rocpd.Session) -> None:
    with pytest.raises(QueryError) as raised:
        job.sql(sql).fetchall()
    assert instead in str(raised.value.hint)


def test_tools_answer_and_write_nothing(simulated: Path) -> None:
    before = {path: path.read_bytes() for path in simulated.iterdir()}
    for module in ("graph", "callstack", "autograd", "rpd.graph", "rpd.callstack", "rpd.autograd"):
        command = [sys.executable, "-m", f"rocpd.{module}", str(simulated), "--format", "csv"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
        assert "nothing is written into the trace" in done.stderr
        assert {"graph": "hipGraphLaunch", "callstack": "avg(cpu_time)", "autograd": "autogradName"}[
            module.rpartition(".")[2]
        ] in done.stdout
    assert {path: path.read_bytes() for path in simulated.iterdir()} == before


def test_an_empty_file_is_made_once(tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "trace.rpd"
    command = [sys.executable, "-m", "rocpd.schema", "--create", str(path)]
    assert subprocess.run(command, timeout=PATIENCE, check=False).returncode == 0
    made = path.read_bytes()
    again = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (again.returncode, again.stderr) == (1, f"rocpd: {path}: exists\n")
    assert path.read_bytes() == made
    assert cli("query", "select count(*) from rocpd_event", path, "-f", "csv").out.splitlines() == ["count(*)", "0"]


def test_raptor_parser_has_the_tables_of_rocpd_raptor(simulated: Path, cli: Cli) -> None:
    with RaptorParser(simulated, prekernel_seq=0) as raptor:
        shown = cli("raptor", simulated, "--op-trace").out
        written = io.StringIO()
        raptor.print_op_trace(written)
        assert written.getvalue() == shown
        categories = raptor.get_category_df()
        assert float(str(categories.loc["_GPU_Idle", "Pct"])) > 0
        assert list(raptor.variability_df.index) == ["by_comm", "by_non_comm"]
        calls = raptor.top_df["TotalCalls"].sum()
        operations = len(raptor.op_df)
        raptor.set_roi_from_str("10%", "20%")
        assert 0 < len(raptor.op_df) < operations
        raptor.set_auto_roi()
        assert 0 < len(raptor.op_df) <= operations
        raptor.set_full_roi()
        assert (raptor.get_top_df()["TotalCalls"].sum(), len(raptor.op_df)) == (calls, operations)
