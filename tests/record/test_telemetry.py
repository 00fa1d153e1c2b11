"""Samples of GPUs, of the process and of its node, written as rocprofiler-systems writes them."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

import rocpd
from tests.conftest import Cli
from tests.record.build import Build
from tests.record.cli import cli
from tests.record.runs import check_closed, check_sound, client, databases, environment, metadata, only, probe, rows

_VALUES = """
SELECT A.type_index, P.name, P.units, COUNT(*), MIN(V.value), MAX(V.value)
FROM rocpd_pmc_event V
JOIN rocpd_info_pmc P ON P.id = V.pmc_id
LEFT JOIN rocpd_info_agent A ON A.id = P.agent_id
GROUP BY P.id
ORDER BY P.id
"""
_KNOWN = {
    "device_busy_gfx": ("%", 40), "device_busy_umc": ("%", 12), "device_busy_mm": ("%", 5),
    "device_memory_usage": ("MB", 5000), "device_power": ("W", 555), "device_temp": ("°C", 71),
    "device_temp_memory": ("°C", 62), "device_gfx_clock": ("MHz", 2100), "device_mem_clock": ("MHz", 1300),
    "device_throttle_status": ("bits", 3), "device_throttle_power": ("%", 25), "device_throttle_memory_temp": ("%", 0),
    "device_pcie_link_width": ("lanes", 16), "device_pcie_link_speed": ("MT/s", 32000),
    "device_pcie_bandwidth_inst": ("bytes/s", 18e9), "device_xgmi_link_width": ("lanes", 16),
    "device_xgmi_link_speed": ("Mbps", 32000),
}  # fmt: skip
"""What the first GPU of the stand-in library always says; its counts grow."""


def _env(built: Build, folder: Path, **more: str) -> dict[str, str]:
    smi = str(built.folder / "smi")
    return environment(folder / "out", LD_LIBRARY_PATH=smi, ROCPD_CONTROL_DIR=str(folder / "control"), **more)


@pytest.fixture(scope="module")
def sampled(built: Build, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program of half a second, with its GPUs and its node sampled."""
    folder = tmp_path_factory.mktemp("telemetry")
    env = _env(built, folder, ROCPD_SMI="100", ROCPD_SAMPLE_HZ="50")
    done = probe(built, folder / "out", "toggles", "1", "0.5", env=env)
    assert (done.returncode, done.stderr) == (7, "")
    (file,) = databases(folder / "out")
    check_closed(file)
    return file


def test_gpus(sampled: Path) -> None:
    of_gpu: dict[int, dict[str, tuple[str, int, float, float]]] = {0: {}, 1: {}}
    for gpu, name, *facts in rows(sampled, _VALUES):
        if gpu is not None:
            of_gpu[gpu][name] = tuple(facts)
    first = {name: (units, least) for name, (units, _, least, most) in of_gpu[0].items() if least == most}
    assert first == _KNOWN
    grows = {name: (units, least) for name, (units, _, least, most) in of_gpu[0].items() if least < most}
    assert grows == {"device_pcie_bandwidth_acc": ("count", 1000), "device_xgmi_read_data": ("KB", 11)}
    # The second knows little: what is unknown is left out, and the edge stands for the hottest spot.
    second = {name: (units, least) for name, (units, _, least, _) in of_gpu[1].items()}
    assert second == {
        "device_busy_gfx": ("%", 41), "device_memory_usage": ("MB", 7), "device_power": ("W", 301),
        "device_temp": ("°C", 50), "device_pcie_link_speed": ("MT/s", 16000),
    }  # fmt: skip
    assert min(count for _, count, _, _ in of_gpu[0].values()) > 5


def test_rows_are_those_of_rocprofiler_systems(sampled: Path) -> None:
    """One event for all values of a GPU at one time; tracks that all GPUs share, named as the counters."""
    sql = """SELECT C.string, COUNT(*) = COUNT(DISTINCT T.id), MIN(S.timestamp) = MAX(S.timestamp),
        (SELECT group_concat(name) FROM (SELECT P.name FROM rocpd_pmc_event V JOIN rocpd_info_pmc P ON P.id = V.pmc_id
            WHERE V.event_id = E.id ORDER BY 1)) =
        (SELECT group_concat(string) FROM (SELECT N.string FROM rocpd_sample M JOIN rocpd_track X ON X.id = M.track_id
            JOIN rocpd_string N ON N.id = X.name_id WHERE M.event_id = E.id ORDER BY 1))
        FROM rocpd_event E JOIN rocpd_string C ON C.id = E.category_id
        JOIN rocpd_sample S ON S.event_id = E.id JOIN rocpd_track T ON T.id = S.track_id GROUP BY E.id"""
    events = rows(sampled, sql)
    assert {event[0] for event in events} == {"amd_smi", "process_sampling", "system_sampling"}
    assert {event[1:] for event in events} == {(1, 1, 1)}
    names = [name for (name,) in rows(sampled, "SELECT string FROM rocpd_track JOIN rocpd_string S ON S.id = name_id")]
    assert len(names) == len(set(names))


def test_process_and_node(sampled: Path) -> None:
    values = {name: (units, least, most) for gpu, name, units, _, least, most in rows(sampled, _VALUES) if gpu is None}
    assert values["process_physical_memory"][0] == "MB"
    assert 1 < values["process_physical_memory"][1] <= values["process_memory_hwm"][2] < 1000
    assert 0 <= values["process_user_cpu_time"][1] <= values["process_user_cpu_time"][2] < 1
    for name in ("process_context_switch", "process_page_fault"):
        assert 0 < values[name][1] <= values[name][2]
    for name in ("process_read", "process_write", "disk_read", "disk_write", "network_receive", "network_send"):
        assert values[name][0] == "bytes/s"
        assert values[name][1] >= 0
    assert 0 <= values["cpu_load"][1] <= values["cpu_load"][2] <= 100
    with open("/proc/meminfo") as file:  # noqa: PTH123
        total = int(file.readline().split()[1]) * 1024 / 1e6
    assert 0 < values["memory_usage"][2] < total


def test_readers_show_each_gpu(sampled: Path, tmp_path: Path, cli: Cli) -> None:
    with rocpd.connect(sampled) as session:
        shown = session.summary("samples").df()
    powers = shown[shown["name"] == "device_power"]
    assert [*powers["mean"]] == [555, 301]
    counts = {gpu: count for gpu, name, _, count, _, _ in rows(sampled, _VALUES) if name == "device_power"}
    assert [*powers["samples"]] == [counts[0], counts[1]]
    pytest.importorskip("perfetto")
    from tests.perfetto_engine import Engine

    assert cli("convert", "-f", "pftrace", "-d", tmp_path, sampled).code == 0
    sql = """select t.name, count(*) as n, min(value) as least, max(value) as most from counter c
        join counter_track t on t.id = c.track_id where t.name glob '*device_power' group by t.id order by 1"""
    tracks = Engine(tmp_path / "out_results.pftrace").rows(sql)
    assert [(least, most) for _, _, least, most in tracks] == [(555, 555), (301, 301)]
    assert [n for _, n, _, _ in tracks] == [counts[0], counts[1]]


def test_each_gpu_is_sampled_once_on_a_node(built: Build, tmp_path: Path) -> None:
    """The ranks of a node share its GPUs: each takes its own."""
    command = [str(built.program("probe")), "toggles", "1", "0.6"]
    running = [
        subprocess.Popen(command, env=_env(built, tmp_path, ROCPD_SMI="100") | {
            "OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "2",
            "OMPI_COMM_WORLD_LOCAL_RANK": str(rank), "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
        })
        for rank in (0, 1)
    ]  # fmt: skip
    assert [process.wait(30) for process in running] == [7, 7]
    files = databases(tmp_path / "out")
    seen = [{gpu for gpu, name, *_ in rows(file, _VALUES) if name == "device_power"} for file in files]
    assert seen == [{0}, {1}]


def test_a_forked_child_samples_no_gpu(built: Build, tmp_path: Path) -> None:
    script = "import os, time; time.sleep(0.2); pid = os.fork(); time.sleep(0.3); pid and os.waitpid(pid, 0)"
    env = _env(built, tmp_path, ROCPD_SMI="50", LD_PRELOAD=str(built.lib / "librocpd-roctx.so"))
    subprocess.run([os.path.realpath("/proc/self/exe"), "-c", script], env=env, check=True, timeout=30)
    (file,) = databases(tmp_path / "out")
    check_sound(file)
    assert metadata(file)["recorder_closed"] == "1"


@pytest.mark.parametrize(("address", "expected"), [("0", [(2, "GPU")]), ("0xc100", [])])
def test_with_the_sdk_its_gpus_are_sampled(
    built: Build, tmp_path: Path, address: str, expected: list[tuple[int, str]]
) -> None:
    """A value is of the agent that the SDK registered for the GPU at this place; GPUs that it has not are left out."""
    smi = {"LD_LIBRARY_PATH": str(built.folder / "smi"), "STANDIN_SMI_ADDRESS": address}
    client(built, tmp_path, threads=2, rounds=400, ROCPD_SMI="500", **smi)
    sql = """SELECT DISTINCT A.id, A.type FROM rocpd_pmc_event V JOIN rocpd_info_pmc P ON P.id = V.pmc_id
        JOIN rocpd_info_agent A ON A.id = P.agent_id WHERE P.name LIKE 'device_%'"""
    assert rows(only(tmp_path), sql) == expected


@pytest.mark.parametrize(("variables", "words"), [
    ({"LD_LIBRARY_PATH": ""}, "no libamd_smi: no GPU is sampled"),
    ({"STANDIN_SMI_FAILS": "1"}, "libamd_smi finds no GPU: no GPU is sampled"),
])  # fmt: skip
def test_no_library_or_no_gpu(built: Build, tmp_path: Path, variables: dict[str, str], words: str) -> None:
    env = _env(built, tmp_path, ROCPD_SMI="50") | variables
    done = probe(built, tmp_path / "out", "toggles", "1", "0.1", env=env)
    assert (done.returncode, done.stderr) == (7, f"rocpd: {words}; rocpd doctor says more\n")


def test_options(built: Build, tmp_path: Path) -> None:
    smi = str(built.folder / "smi")
    more = {"LD_LIBRARY_PATH": smi, "ROCPD_CONTROL_DIR": str(tmp_path / "control")}
    start = time.monotonic()
    done = cli(tmp_path, "record", "-o", "job", "--smi", "50", "--sample-hz", "50", "--", "sleep", "0.4", **more)
    took = time.monotonic() - start
    assert done.returncode == 0
    (file,) = databases(tmp_path / "job")
    counts = {name: count for gpu, name, _, count, _, _ in rows(file, _VALUES) if gpu in (None, 0)}
    for name in ("device_power", "process_user_cpu_time", "cpu_load"):
        assert 3 <= counts[name] <= took * 50 + 1
    assert 1 <= counts["cpu_frequency"] <= took + 1
