"""Samples of GPUs, of the process and of its node, written as rocprofiler-systems writes them."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
from pathlib import Path

import apsw
import pytest

import rocpd
from tests.conftest import Cli
from tests.record.build import Build
from tests.record.cli import cli_command
from tests.record.runs import (
    check_sound,
    client,
    compiled_shim,
    databases,
    environment,
    metadata,
    only,
    probe_until,
    rows,
)
from tests.waiting import PATIENCE, until

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


def _counted(file: Path) -> dict[tuple[int | None, str], int]:
    """How often each counter of each GPU, of the process and of the node was read."""
    return {(gpu, name): count for gpu, name, _, count, _, _ in rows(file, _VALUES)}


@pytest.fixture(scope="module")
def sampled(built: Build, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program with its GPUs and its node sampled some times."""
    folder = tmp_path_factory.mktemp("telemetry")
    env = {"ROCPD_SMI": "100", "ROCPD_SAMPLE_HZ": "50", "LD_LIBRARY_PATH": str(built.folder / "smi")}

    def enough(file: Path) -> bool:
        counted = _counted(file)
        wanted = ((0, "device_power"), (1, "device_power"), (None, "process_read"), (None, "network_send"))
        return all(counted.get(each, 0) > 10 for each in wanted)

    env |= {"ROCPD_CONTROL_DIR": str(folder / "control")}
    return probe_until(built, folder / "out", enough, "toggles", "1", "60", env=env)


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
    command = [str(built.program("probe")), "toggles", "1", "60"]
    running = [
        subprocess.Popen(command, env=_env(built, tmp_path, ROCPD_SMI="100", ROCPD_FLUSH_MS="20") | {
            "OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "2",
            "OMPI_COMM_WORLD_LOCAL_RANK": str(rank), "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
        })
        for rank in (0, 1)
    ]  # fmt: skip

    def seen() -> list[set[int | None]]:
        files = sorted((tmp_path / "out").glob("*.db"))
        try:
            return [{gpu for gpu, name in _counted(file) if name == "device_power"} for file in files]
        except apsw.ReadOnlyError:  # between a commit and the end of its journal a reader would have to roll back
            return []

    try:
        until(lambda: len(seen()) == 2 and all(seen()), "both ranks have sampled")
    finally:
        for process in running:
            process.terminate()
    assert [process.wait(PATIENCE) for process in running] == [-signal.SIGTERM] * 2
    assert len(databases(tmp_path / "out")) == 2
    assert seen() == [{0}, {1}]


def test_a_forked_child_samples_no_gpu(built: Build, tmp_path: Path) -> None:
    script = f"""if True:
        import os, pathlib, time
        out = pathlib.Path({str(tmp_path / "out")!r})
        while not any(out.glob("*.db")):  # the parent samples
            time.sleep(0.01)
        pid = os.fork()
        time.sleep(0.3)
        pid and os.waitpid(pid, 0)
    """
    env = _env(built, tmp_path, ROCPD_SMI="50", LD_PRELOAD=str(built.lib / "librocpd-roctx.so"))
    subprocess.run([os.path.realpath("/proc/self/exe"), "-c", script], env=env, check=True)
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
    command = [str(built.program("probe")), "toggles", "1", "60"]
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == f"rocpd: {words}; rocpd doctor says more\n"
        process.terminate()
        assert process.stderr.read() == ""
    assert process.returncode == -signal.SIGTERM


def test_options(built: Build, tmp_path: Path) -> None:
    env = {"LD_LIBRARY_PATH": str(built.folder / "smi"), "ROCPD_CONTROL_DIR": str(tmp_path / "control")}
    options = ["--smi", "50", "--sample-hz", "50", "--flush-ms", "20"]
    command = cli_command("record", "-o", "job", *options, "--", "sleep", "60")
    with subprocess.Popen(command, cwd=tmp_path, env=os.environ | env) as process:
        names = ((0, "device_power"), (None, "process_user_cpu_time"), (None, "cpu_load"))

        def enough() -> bool:
            return any(all(_counted(file).get(name, 0) > 3 for name in names) for file in tmp_path.glob("job/*.db"))

        until(enough, "all of it is sampled")
        process.terminate()
    assert process.returncode == 128 + signal.SIGTERM
    (file,) = databases(tmp_path / "job")
    start, end = rows(file, "SELECT MIN(timestamp), MAX(timestamp) FROM rocpd_sample")[0]
    counted = _counted(file)
    # Samples may come late, never early; the one after a late one comes at once.
    for name in names:
        assert counted[name] - 2 <= (end - start) * 50 / 1e9
    assert 1 <= counted[None, "cpu_frequency"] <= (end - start) / 0.9e9 + 1


def test_one_sample_a_second_has_the_frequency(built: Build, tmp_path: Path) -> None:
    """Each core is asked for it at most once a second; a sample that comes a little early is none too many."""
    env = {"ROCPD_SAMPLE_HZ": "1.02", "ROCPD_CONTROL_DIR": str(tmp_path / "control")}

    def taken(file: Path, name: str) -> list[int]:
        return [time for (time,) in rows(file, f"SELECT timestamp FROM samples WHERE name = '{name}' ORDER BY 1")]

    file = probe_until(
        built, tmp_path / "out", lambda file: len(taken(file, "memory_usage")) > 2, "toggles", "1", "60", env=env
    )
    if not taken(file, "cpu_frequency"):
        pytest.skip("the kernel does not say how fast its cores run")
    samples = taken(file, "memory_usage")
    due = [time for before, time in itertools.pairwise([0, *samples]) if time - before > 0.9e9]
    assert taken(file, "cpu_frequency") == due


@pytest.mark.parametrize(("device", "each_time"), [("eth0", 100), ("none", 130)])
def test_network_devices_count_once(built: Build, tmp_path: Path, device: str, each_time: int) -> None:
    """What a bond or a bridge sends, a device sends too; where there is no device, as in a container, all counts."""
    env = {"ROCPD_SAMPLE_HZ": "50", "ROCPD_CONTROL_DIR": str(tmp_path / "control")}
    env |= {"LD_PRELOAD": compiled_shim(tmp_path, "network"), "NETWORK_DEVICE": device}

    def sent(file: Path) -> list[tuple[int, float]]:
        """Return times and rates [bytes/s]."""
        sql = """SELECT S.timestamp, V.value FROM rocpd_pmc_event V
            JOIN rocpd_info_pmc P ON P.id = V.pmc_id AND P.name = 'network_send'
            JOIN rocpd_sample S ON S.event_id = V.event_id JOIN rocpd_track T ON T.id = S.track_id
            JOIN rocpd_string N ON N.id = T.name_id AND N.string = P.name ORDER BY 1"""
        return rows(file, sql)

    file = probe_until(built, tmp_path / "out", lambda file: len(sent(file)) > 3, "toggles", "1", "60", env=env)
    moved = [rate * (time - before) / 1e9 for (before, _), (time, rate) in itertools.pairwise(sent(file))]
    assert moved == pytest.approx([each_time] * len(moved))
