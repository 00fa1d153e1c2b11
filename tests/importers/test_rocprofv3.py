"""rocprofv3's JSON and CSV: a real file against itself, each kind of record, and our own CSV files there and back."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import rocpd
from tests.conftest import Cli, private

KINDS = {
    "hip_api": ("HIP_RUNTIME_API", "hipLaunchKernel"),
    "marker_api": ("MARKER_CORE_RANGE_API", "roctxThreadRangeA"),
    "memory_copy": ("MEMORY_COPY", "MEMORY_COPY_HOST_TO_DEVICE"),
    "memory_allocation": ("MEMORY_ALLOCATION", "MEMORY_ALLOCATION_FREE"),
    "scratch_memory": ("SCRATCH_MEMORY", "SCRATCH_MEMORY_ALLOC"),
    "kernel_dispatch": ("KERNEL_DISPATCH", "KERNEL_DISPATCH_COMPLETE"),
}
"""Key of records -> their kind and their only operation."""


def record(name: str, correlation: int, start: int, **more: Any) -> dict[str, Any]:
    ids = {"internal": correlation, "external": 9, "ancestor": 0}
    kind = list(KINDS).index(name)
    times = {"start_timestamp": start, "end_timestamp": start + 10}
    return {"kind": kind, "operation": 0, "thread_id": 8, "correlation_id": ids, **times, **more}


def handle(number: int) -> dict[str, int]:
    return {"handle": number}


def process(pid: int) -> dict[str, Any]:
    info = {
        "agent_id": handle(77), "queue_id": handle(5), "kernel_id": 3, "dispatch_id": 11, "private_segment_size": 0,
        "group_segment_size": 64, "workgroup_size": dict(zip("xyz", (64, 1, 1), strict=True)),
        "grid_size": dict(zip("xyz", (256, 2, 1), strict=True)),
    }  # fmt: skip
    dispatch = record("kernel_dispatch", 1, 120, dispatch_info=info, stream_id=handle(2))
    node = {"machine_id": "m", "hostname": "h"}
    strings = [{"kind": kind, "operations": [operation]} for kind, operation in KINDS.values()]
    agents = [
        {"node_id": 0, "id": handle(70), "type": 1, "name": "EPYC"},
        {"node_id": 2, "id": handle(77), "type": 2, "name": "gfx942", "cu_count": 304},
    ]
    return {
        "metadata": {"node": node, "pid": pid, "init_time": 1, "fini_time": 999, "command": ["./a", "-v"]},
        "agents": agents,
        "counters": [{"id": handle(6), "name": "SQ_WAVES", "agent_id": handle(77)}],
        "code_objects": [{"code_object_id": 1, "agent_id": handle(77), "uri": "file://a"}],
        "kernel_symbols": [
            {"kernel_id": 3, "code_object_id": 1, "kernel_name": "k.kd", "formatted_kernel_name": "k()"}
        ],
        "strings": {"buffer_records": strings, "marker_api": [{"key": 4, "value": "step 1"}]},
        "callback_records": {
            "counter_collection": [
                {"dispatch_data": dispatch, "records": [{"counter_id": handle(6), "value": 32.0}], "thread_id": 8}
            ]
        },
        "buffer_records": {
            "hip_api": [record("hip_api", 1, 100)],
            "marker_api": [record("marker_api", 4, 90)],
            "memory_copy": [
                record("memory_copy", 5, 200, src_agent_id=handle(70), dst_agent_id=handle(77), bytes=4096)
            ],
            "memory_allocation": [
                record("memory_allocation", 6, 300, agent_id=handle(77), address=handle(4096), allocation_size=0)
            ],
            "scratch_memory": [
                record("scratch_memory", 7, 400, agent_id=handle(77), queue_id=handle(5), flags=1, allocation_size=64)
            ],
            "kernel_dispatch": [dispatch],
            "pc_sample_host_trap": [{}, {}],
        },
    }


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "a"
    path.write_text(json.dumps({"rocprofiler-sdk-tool": [process(40), process(41)]}))
    return path


def test_each_kind_of_record_of_each_process(written: Path, cli: Cli) -> None:
    with rocpd.connect(written) as session:
        assert [(rank.pid, rank.hostname, rank.command) for rank in session.ranks] == [
            (40, "h", "./a -v"),
            (41, "h", "./a -v"),
        ]

        def of_first(sql: str) -> list[tuple[Any, ...]]:
            return session.sql(f"{sql} WHERE rank = 0").fetchall()

        assert of_first("SELECT category, name, tid, stack_id, corr_id, start, end FROM regions") == [
            ("HIP_RUNTIME_API", "hipLaunchKernel", 8, 1, 9, 100, 110),
            ("MARKER_CORE_RANGE_API", "roctxThreadRangeA", 8, 4, 9, 90, 100),
        ]
        assert of_first("SELECT name FROM markers") == [("step 1",)]
        assert of_first(
            "SELECT name, dispatch_id, agent_abs_index, queue_id, stream_id, grid_x, grid_y FROM kernels"
        ) == [("k()", 11, 2, 5, 2, 256, 2)]
        assert of_first("SELECT name, size, src_agent_abs_index, dst_agent_abs_index FROM memory_copies") == [
            ("MEMORY_COPY_HOST_TO_DEVICE", 4096, 0, 2)
        ]
        assert of_first("SELECT type, level, address FROM memory_allocations") == [
            ("FREE", "REAL", 4096),
            ("ALLOC", "SCRATCH", None),
        ]
        assert of_first("SELECT alloc_flags, size FROM scratch_memory") == [(1, 64)]
        assert of_first("SELECT counter_name, value, dispatch_id FROM counters_collection") == [("SQ_WAVES", 32.0, 11)]
    assert (
        "a: not imported: 4 damaged samples of program counters"
        in cli("import", written, "-d", written.parent / "j").err
    )


def test_members_come_in_any_order(written: Path, tmp_path: Path) -> None:
    """As `jq -S` sorts them: records before what they refer to; of equal pids the later one gets a number."""
    other = tmp_path / "sorted"
    other.write_text(json.dumps({"rocprofiler-sdk-tool": [process(40), process(40)]}, sort_keys=True))
    rows = []
    for path in (written, other):
        with rocpd.connect(path) as session:
            assert len(session.ranks) == 2
            rows.append([
                session.sql(f"SELECT name, start, duration FROM {view} ORDER BY 1, 2").fetchall()
                for view in ("kernels", "regions", "memory_copies")
            ])  # fmt: skip
            rows[-1].append(session.sql("SELECT counter_name, value FROM counters_collection").fetchall())
    assert rows[0] == rows[1]
    assert len(rows[0][-1]) == 2


def test_a_damaged_file_is_one_line(written: Path, cli: Cli) -> None:
    written.write_bytes(written.read_bytes()[:3000])
    said = cli("info", written)
    assert said.code == 3
    assert said.err.startswith(f"rocpd: error: {written}: damaged: ")


def test_the_real_file_keeps_its_dispatches() -> None:
    (path,) = private("rocprofv3-json/*.json.gz", 1)
    (content,) = json.loads(gzip.decompress(path.read_bytes()))["rocprofiler-sdk-tool"]
    names = {kernel["kernel_id"]: kernel["formatted_kernel_name"] for kernel in content["kernel_symbols"]}
    agents = {agent["id"]["handle"]: agent["node_id"] for agent in content["agents"]}
    expected = [
        (
            each["dispatch_info"]["dispatch_id"],
            names[each["dispatch_info"]["kernel_id"]],
            agents[each["dispatch_info"]["agent_id"]["handle"]],
            each["start_timestamp"],
            each["end_timestamp"],
        )
        for each in content["buffer_records"]["kernel_dispatch"]
    ]
    with rocpd.connect(path) as session:
        found = session.sql("SELECT dispatch_id, name, agent_abs_index, start, end FROM kernels").fetchall()
        described = session.sql("SELECT type, count(*) FROM agents GROUP BY 1 ORDER BY 1").fetchall()
    assert len(found) == 43_915
    assert sorted(found) == sorted(expected)
    assert described == [("CPU", 2), ("GPU", 8)]


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("simulated") / "job"
    rocpd.simulate(folder, ranks=2, steps=2, seed=41)
    return folder


@pytest.mark.parametrize("year", ["2025", "2026"])
def test_our_csv_files_come_back_as_they_were(job: Path, tmp_path: Path, cli: Cli, year: str) -> None:
    def convert(source: Path, to: str) -> dict[str, list[str]]:
        cli("convert", "-f", "csv", source, "-d", tmp_path / to, "-o", "out", "--amd-version", year)
        files = sorted((tmp_path / to).glob("*.csv"))
        return {file.name: sorted(line.partition(",")[2] for line in file.read_text().splitlines()) for file in files}

    first = convert(job, "first")
    again = convert(tmp_path / "first", "again")
    if year == "2026":  # flags of agents are named in capitals there, which headers don't count by
        assert first.pop("out_agent_info.csv") != again.pop("out_agent_info.csv")
    assert len(first) > 6
    assert again == first


def test_counters_alone_make_dispatches(job: Path, tmp_path: Path, cli: Cli) -> None:
    cli("convert", "-f", "csv", job, "-d", tmp_path / "all", "-o", "9")
    folder = tmp_path / "host7"
    folder.mkdir()
    (tmp_path / "all" / "9_counter_collection.csv").rename(folder / "9_counter_collection.csv")
    sql = "SELECT dispatch_id, kernel_name, counter_name, value, grid_size FROM counters_collection ORDER BY 1, 2, 3, 4"
    with rocpd.connect(job) as before, rocpd.connect(folder) as after:
        assert after.sql(sql).fetchall() == before.sql(sql).fetchall()
        assert {rank.hostname for rank in after.ranks} == {"host7"}


def test_damaged_lines_are_left_out_and_counted(job: Path, tmp_path: Path, cli: Cli) -> None:
    cli("convert", "-f", "csv", job, "-d", tmp_path / "all", "-o", "9")
    path = tmp_path / "all" / "9_kernel_trace.csv"
    lines = path.read_text().splitlines(keepends=True)
    lines[3] = lines[3].replace(",", ",x", 11)
    path.write_text("".join(lines)[:-30])
    said = cli("query", "SELECT count(*) FROM kernels", tmp_path / "all", "-f", "csv")
    assert int(said.out.split()[-1]) == len(lines) - 3
    assert "all: not imported: 2 lines of CSV files that are cut or damaged" in said.err


AGENT = """Node_Id,Agent_Type,Cu_Count,Num_Xcc,Name,Max_Engine_Clk_Fcompute
0,"CPU",0,0,"EPYC",0
1,"GPU",304,8,"gfx942",2100
"""
COUNTER_COLUMNS = (
    '"Correlation_Id","Dispatch_Id","Agent_Id","Queue_Id","Process_Id","Thread_Id","Grid_Size","Kernel_Id",'
    '"Kernel_Name","Workgroup_Size","LDS_Block_Size","Scratch_Size","VGPR_Count","Accum_VGPR_Count","SGPR_Count","Counter_Name",'
    '"Counter_Value","Start_Timestamp","End_Timestamp"'
)


@pytest.mark.parametrize("inside", [".", "gpu-node-07"])
def test_folders_of_passes_are_one_program(inside: str, tmp_path: Path) -> None:
    """A pass for each line of rocprofv3's input file: constants are of `agent_info`, a ratio needs both passes."""
    for number, (counter, value) in enumerate({"TCC_HIT_sum": 30.0, "TCC_MISS_sum": 10.0}.items(), 1):
        folder = tmp_path / f"pass_{number}" / inside
        folder.mkdir(parents=True)
        (folder / "9_agent_info.csv").write_text(AGENT)
        start = number * 10_000
        line = (
            f'1,1,"Agent 1",1,{8 + number},9,1024,5,"gemm",256,0,0,32,0,16,"{counter}",{value},{start},{start + 1000}'
        )
        (folder / "9_counter_collection.csv").write_text(f"{COUNTER_COLUMNS}\n{line}\n")
    with rocpd.connect(tmp_path) as session:
        assert session.job.programs == ((0, 1),)
        assert session.sql("SELECT COUNT(*) FROM kernels").fetchall() == [(1,)]
        hits = "SELECT kernel, value, note FROM metrics WHERE metric = 'L2 Cache Hit Rate'"
        assert session.sql(hits).fetchall() == [("gemm", 75.0, "counters of 2 passes")]
        peak = "SELECT peak FROM metrics WHERE panel = 'speed-of-light' AND metric = 'VALU FLOPs'"
        assert session.sql(peak).fetchall() == [(2100 * 304 * 64 * 2 / 1000,)]
