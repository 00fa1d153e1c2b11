"""Views of what events ran on: agents, queues, streams, nodes, and how busy agents were."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import rocpd
from rocpd.schema.versions import VERSIONS
from tests.build import CPU, GPU, GPU2, TraceBuilder
from tests.conftest import OpenJob

FACTS = (
    "cu_count, xcc_count, simd_count, wave_size, max_waves_per_cu, lds_size, max_clock, max_memory_clock, memory_size"
)
MI300X = {
    "cu_count": 304,
    "num_xcc": 8,
    "simd_count": 1216,
    "wave_front_size": 64,
    "max_waves_per_cu": 32,
    "lds_size_in_kb": 64,
    "max_engine_clk_ccompute": 3800,
    "max_engine_clk_fcompute": 2100,
    "mem_banks": [
        {"heap_type": 1, "mem_clk_max": 1300, "size_in_bytes": 100},
        {"heap_type": 2, "mem_clk_max": 900, "size_in_bytes": 20},
        {"heap_type": 4, "mem_clk_max": 2000, "size_in_bytes": 7},
    ],
}
"""Public memory, private memory and LDS: the last is no local memory."""


def described(extdata: object, number: int = 0) -> TraceBuilder:
    """A rank whose GPU 0 has this hardware description."""
    text = extdata if isinstance(extdata, str) else json.dumps(extdata)
    quoted = text.replace("'", "''")
    return TraceBuilder(number).sql(f"""UPDATE "rocpd_info_agent{{uuid}}" SET extdata = '{quoted}' WHERE id = {GPU}""")


def test_agents_say_what_their_hardware_can_do(open_job: OpenJob) -> None:
    session = open_job(described(MI300X))
    names = "SELECT id, pid, type, type_index, absolute_index, logical_index, name, product, vendor, rank, hostname"
    assert session.sql(f"{names} FROM agents").fetchall() == [
        (CPU, 16, "CPU", 0, 0, 0, "EPYC 9654", "EPYC 9654", "AMD", 0, "node0"),
        (GPU, 16, "GPU", 0, 1, 1, "gfx942", "AMD Instinct MI300X", "AMD", 0, "node0"),
        (GPU2, 16, "GPU", 1, 2, 2, "gfx942", "AMD Instinct MI300X", "AMD", 0, "node0"),
    ]
    assert session.sql(f"SELECT {FACTS} FROM agents WHERE id = {GPU}").fetchall() == [
        (304, 8, 1216, 64, 32, 65536, 2100, 2000, 120)
    ]


def test_the_clock_of_a_cpu_is_that_of_its_cores(open_job: OpenJob) -> None:
    trace = described(MI300X).sql(f"""UPDATE "rocpd_info_agent{{uuid}}" SET type = 'CPU' WHERE id = {GPU}""")
    assert open_job(trace).sql(f"SELECT max_clock FROM agents WHERE id = {GPU}").fetchall() == [(3800,)]


@pytest.mark.parametrize(
    "extdata",
    ["{}", "", "no JSON", "null", "[]", '{"mem_banks": []}', '{"mem_banks": "many"}', '{"mem_banks": ["text", 5, {}]}'],
)
def test_what_a_file_does_not_say_is_null(extdata: str, open_job: OpenJob) -> None:
    session = open_job(described(extdata))
    assert session.sql(f"SELECT {FACTS} FROM agents WHERE id = {GPU}").fetchall() == [(None,) * 9]


@pytest.mark.parametrize("version", VERSIONS)
def test_files_of_every_version_have_these_views(version: str, tmp_path: Path) -> None:
    path = described(MI300X).kernel("gemm", 1, 2, stream=3).write(tmp_path / "a.db", version, views=True)
    with rocpd.connect(path) as session:
        assert session.sql("SELECT id, pid, name, hostname FROM queues").fetchall() == [(1, 16, "Queue 1", "node0")]
        assert session.sql("SELECT id, pid, name, rank FROM streams").fetchall() == [(3, 16, "Stream 3", 0)]
        assert session.sql(f"SELECT cu_count, memory_size FROM agents WHERE id = {GPU}").fetchall() == [(304, 120)]
        assert session.sql("SELECT product, rank, hostname FROM busy").fetchall() == [
            ("AMD Instinct MI300X", 0, "node0")
        ]


def test_each_rank_has_its_node(open_job: OpenJob) -> None:
    session = open_job(TraceBuilder(0, host="a", machine="m"), TraceBuilder(1, host="b", machine="m"))
    columns = "rank, hostname, machine_id, system_name, system_release, system_version, hardware_name, domain_name"
    assert session.sql(f"SELECT {columns} FROM nodes").fetchall() == [
        (0, "a", "m", "Linux", "5.15.0", "#1 SMP", "x86_64", "(none)"),
        (1, "b", "m", "Linux", "5.15.0", "#1 SMP", "x86_64", "(none)"),
    ]
    joined = "SELECT n.rank, n.hostname, p.pid FROM nodes n JOIN processes p ON p.guid = n.guid AND p.nid = n.id"
    assert session.sql(joined).fetchall() == [(0, "a", 16), (1, "b", 16)]


def test_busy_agents_have_a_rank_a_host_and_a_name(open_job: OpenJob) -> None:
    session = open_job(
        TraceBuilder(0, host="a").kernel("gemm", 1, 51).kernel("gemm", 1, 101, agent=GPU2),
        TraceBuilder(1, host="b").kernel("gemm", 1, 31).kernel("gemm", 30, 120, agent=99),
    )
    columns = "rank, hostname, agent_id, type, type_index, product, GpuTime"
    assert session.sql(f"SELECT {columns} FROM busy").fetchall() == [
        (0, "a", GPU, "GPU", 0, "AMD Instinct MI300X", 50),
        (0, "a", GPU2, "GPU", 1, "AMD Instinct MI300X", 100),
        (1, "b", GPU, "GPU", 0, "AMD Instinct MI300X", 30),
        (1, "b", 99, None, None, None, 90),
    ]
    by_host = "SELECT hostname, sum(GpuTime) FROM busy GROUP BY hostname ORDER BY hostname"
    assert session.sql(by_host).fetchall() == [("a", 150), ("b", 120)]


def test_a_file_alone_stores_rank_0_and_its_host(tmp_path: Path) -> None:
    path = TraceBuilder(4, host="node7").kernel("gemm", 1, 51).write(tmp_path / "a.db", views=True)
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT agent_id, GpuTime, product, rank, hostname FROM busy").fetchall()
    assert rows == [(GPU, 50, "AMD Instinct MI300X", 0, "node7")]


def test_agents_of_the_real_files(real_files: tuple[Path, ...]) -> None:
    with rocpd.connect(real_files) as session:
        products = session.sql(f"SELECT DISTINCT product, {FACTS} FROM agents WHERE type = 'GPU'").fetchall()
        assert products == [("AMD Instinct MI300X", 304, 8, 1216, 64, 32, 65536, 2100, 1300, 206_141_652_992)]
        assert session.sql("SELECT count(*) FROM agents").fetchall() == [(10 * len(real_files),)]
        assert session.sql("SELECT count(*), count(DISTINCT rank) FROM nodes").fetchall() == [(12, 12)]
