"""Exports of Nsight Systems made here: each kind of table, alone and with others; what is left out is counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

import rocpd
from tests.conftest import Cli

PID, TID = 7, 9
PROCESS, THREAD = PID << 24, PID << 24 | TID
UTC = 1_700_000_000_000_000_000
TABLES = {
    "StringIds": "id value",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs utcTime localTime",
    "TARGET_INFO_GPU": "id name smCount totalMemory",
    "TARGET_INFO_CUDA_DEVICE": "gpuId cudaId pid",
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        "start end deviceId streamId correlationId globalPid demangledName gridX gridY gridZ blockX blockY blockZ"
        " staticSharedMemory dynamicSharedMemory graphNodeId graphId"
    ),
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start end globalTid correlationId nameId returnValue callchainId",
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        "start end deviceId streamId correlationId globalPid bytes copyKind srcDeviceId dstDeviceId"
    ),
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": "start end deviceId correlationId globalPid graphExecId",
    "CUDA_CALLCHAINS": "id symbol stackDepth",
    "NVTX_EVENTS": "start end eventType globalTid text textId domainId jsonText",
    "OSRT_API": "start end globalTid nameId",
    "CUDA_GPU_MEMORY_USAGE_EVENTS": "start globalPid deviceId bytes address memoryOperationType memKind",
    "GPU_METRICS": "timestamp typeId metricId value",
    "TARGET_INFO_GPU_METRICS": "typeId metricId metricName",
    "MPI_RANKS": "globalPid rank",
    "SCHED_EVENTS": "start globalTid",
}
TEXTS = {1: "gemm(int)", 2: "cudaGraphLaunch_v10000", 3: "main", 4: "read", 5: "train"}
ROWS: dict[str, list[tuple[Any, ...]]] = {
    "TARGET_INFO_SESSION_START_TIME": [(UTC, "", "")],
    "TARGET_INFO_GPU": [(4, "NVIDIA H100", 132, 80)],
    "TARGET_INFO_CUDA_DEVICE": [(4, 0, PID)],
    "CUPTI_ACTIVITY_KIND_KERNEL": [(100, 150, 0, 13, 21, PROCESS, 1, 2, 3, 1, 64, 1, 1, 8, 16, 5, 6)],
    "CUPTI_ACTIVITY_KIND_RUNTIME": [(80, 90, THREAD, 21, 2, 35, 1)],
    "CUPTI_ACTIVITY_KIND_MEMCPY": [(160, 170, 0, 13, 22, PROCESS, 4096, 10, 0, 1)],
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": [(100, 170, 0, 21, PROCESS, 6)],
    "CUDA_CALLCHAINS": [(1, 3, 1), (1, 5, 0)],
    "NVTX_EVENTS": [
        (0, None, 75, THREAD, "mine", None, 2, None),
        (10, 70, 59, THREAD, "step 1", None, 0, None),
        (20, 60, 60, THREAD, None, 5, 2, '{"batch": 4}'),
        (30, None, 34, THREAD, "here", None, 0, None),
        (40, 50, 59, THREAD, "aten::mm, seq = 3, op_id = 8, sizes = [[2, 3], [3, 4]]", None, 0, None),
    ],
    "OSRT_API": [(5, 8, THREAD, 4), (5, 8, 99 << 24, 4)],
    "CUDA_GPU_MEMORY_USAGE_EVENTS": [(15, PROCESS, 0, 64, 4096, 0, 2), (16, PROCESS, 0, 64, 4096, 1, 2)],
    "GPU_METRICS": [(25, 256 + 4, 3, 40)],
    "TARGET_INFO_GPU_METRICS": [(256 + 4, 3, "SMs Active [Throughput %]")],
    "MPI_RANKS": [(PROCESS, 5)],
    "SCHED_EVENTS": [(1, THREAD), (2, THREAD)],
}


def export(path: Path, *names: str) -> Path:
    connection = apsw.Connection(str(path))
    with connection:
        for name in names or TABLES:
            columns = TABLES[name].split()
            connection.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
            rows = list(TEXTS.items()) if name == "StringIds" else ROWS.get(name, [])
            connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", rows)
    connection.close()
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(tmp_path_factory.mktemp("nsys") / "all")


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "SELECT name, start, duration, stream_id, stack_id, grid_x, grid_y, lds_size FROM kernels",
            [("gemm(int)", UTC + 100, 50, 13, 21, 128, 3, 24)],
        ),
        ("SELECT graph_exec_id, graph_node_id FROM rocpd_kernel_dispatch", [(6, 5)]),
        ("SELECT graph_exec_id, duration, stack_id FROM graph_launches", [(6, 70, 21)]),
        (
            "SELECT name, tid, stack_id, call_stack FROM regions WHERE category = 'CUDA_RUNTIME_API'",
            [("cudaGraphLaunch", TID, 21, '["train", "main"]')],
        ),
        ("SELECT name, value FROM region_args WHERE name = 'returnValue'", [("returnValue", "35")]),
        (
            "SELECT name, size, src_agent_abs_index, dst_agent_abs_index FROM memory_copies",
            [("MEMORY_COPY_DEVICE_TO_DEVICE", 4096, 1, 2)],
        ),
        ("SELECT name, duration FROM markers ORDER BY start", [("step 1", 60), ("train", 40), ("here", 0)]),
        (
            "SELECT json_extract(extdata, '$.domain'), json_extract(extdata, '$.payload') FROM regions"
            " WHERE name = 'train'",
            [("mine", '{"batch": 4}')],
        ),
        ("SELECT name FROM regions WHERE category = 'TORCH_OPERATOR'", [("aten::mm",)]),
        ("SELECT name, duration FROM regions WHERE category = 'OS_RUNTIME_API'", [("read", 3)]),
        (
            "SELECT type, size, address FROM memory_allocations ORDER BY start",
            [("ALLOC", 64, 4096), ("FREE", 64, 4096)],
        ),
        ("SELECT P.name, value, P.units, agent_id FROM rocpd_pmc_event E JOIN rocpd_info_pmc P ON P.id = E.pmc_id", [
            ("SMs Active [Throughput %]", 40.0, "%", 1)
        ]),
        (
            "SELECT product, cu_count, memory_size FROM agents WHERE type = 'GPU' ORDER BY id",
            [("NVIDIA H100", 132, 80), (None, None, None)],
        ),
    ],
)  # fmt: skip
def test_each_kind_of_event(whole: Path, sql: str, expected: list[tuple[Any, ...]]) -> None:
    with rocpd.connect(whole) as session:
        assert session.sql(sql).fetchall() == expected


def test_what_is_not_imported_is_counted(whole: Path, tmp_path: Path, cli: Cli) -> None:
    said = cli("import", whole, "-d", tmp_path / "job")
    assert "not imported: 2 rows of the table SCHED_EVENTS" in said.err
    assert "not imported: 1 rows of the table OSRT_API of processes without a GPU" in said.err
    with rocpd.connect(tmp_path / "job") as session:
        assert [(rank.number, rank.pid) for rank in session.ranks] == [(5, PID)]


@pytest.mark.parametrize("name", ["CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"])
def test_tables_may_be_absent(tmp_path: Path, name: str) -> None:
    with rocpd.connect(export(tmp_path / "some", "StringIds", name)) as session:
        assert [rank.pid for rank in session.ranks] == [PID]
        kernels = session.sql("SELECT count(*), min(start) FROM kernels").fetchall()
    assert kernels == ([(1, 100)] if name.endswith("KERNEL") else [(0, None)])


def test_an_export_without_events_is_an_error(tmp_path: Path, cli: Cli) -> None:
    said = cli("info", export(tmp_path / "none", "StringIds", "TARGET_INFO_GPU"))
    assert said.code == 3
    assert "no events in it" in said.err


@pytest.mark.parametrize("suffix", ["", "_v7000", "_v2", "_ptsz", "_v2_ptsz", "_ptsz_v7000", "_ptds_v3020"])
def test_calls_have_the_names_that_programs_use(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default stream of each thread, `ptsz` and `ptds`, makes no other function either."""
    monkeypatch.setitem(TEXTS, 2, f"cudaLaunchKernel{suffix}")
    with rocpd.connect(export(tmp_path / "a", "StringIds", "CUPTI_ACTIVITY_KIND_RUNTIME")) as session:
        assert session.sql("SELECT name FROM regions").fetchall() == [("cudaLaunchKernel",)]


def test_pinned_memory_is_the_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"Pageable": 0, "Pinned": 1, "Device": 2, "Array": 3, "Managed": 4}
    rows = [(15 + kind, PROCESS, 0, 64, 4096, 0, kind) for kind in kinds.values()]
    monkeypatch.setitem(ROWS, "CUDA_GPU_MEMORY_USAGE_EVENTS", rows)
    tables = ("StringIds", "CUPTI_ACTIVITY_KIND_KERNEL", "CUDA_GPU_MEMORY_USAGE_EVENTS")
    with rocpd.connect(export(tmp_path / "a", *tables)) as session:
        agents = session.sql("SELECT agent_id FROM rocpd_memory_allocate ORDER BY start").fetchall()
    assert agents == [(0,), (0,), (1,), (1,), (1,)]


def test_metrics_are_of_gpus_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process sees one GPU of two, which CUDA calls its first: the metrics of the other are not its."""
    monkeypatch.setitem(ROWS, "TARGET_INFO_GPU", [(0, "H200", 1, 1), (4, "H100", 1, 1)])
    monkeypatch.setitem(ROWS, "GPU_METRICS", [(25, 256 + number, 3, number) for number in (0, 4)])
    with rocpd.connect(export(tmp_path / "a")) as session:
        values = session.sql("""SELECT value, A.product_name FROM rocpd_pmc_event E
            JOIN rocpd_info_pmc P ON P.id = E.pmc_id JOIN rocpd_info_agent A ON A.id = P.agent_id
            ORDER BY value""").fetchall()
    assert values == [(0.0, "H200"), (4.0, "H100")]
