"""What rocprofiler-sdk is hard on, or differs in between versions: the stand-in does as SDK 1.0.0 and later did."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.record.build import Build
from tests.record.runs import CODE, client, databases, environment, metadata, only, rows
from tests.soak import sized

NEVER = "60000"
"""A flush interval that no test lasts [ms]."""


def test_texts_are_copied_during_the_call(built: Build, tmp_path: Path) -> None:
    """The path of a module is unmapped, freed or null by the time its record is read."""
    done = client(built, tmp_path, "strings", ROCPD_FLUSH_MS=NEVER)
    assert (done.returncode, done.stderr) == (CODE, "")
    file = only(tmp_path)
    texts = "SELECT arg_value FROM events_args WHERE arg_name = 'fname' ORDER BY event_id"
    assert rows(file, texts) == [("kernels.co",), ("(null)",), ("x" * 200,)]
    assert rows(file, "SELECT arg_value GLOB '0x*' FROM events_args WHERE arg_name = 'name'") == [(1,)]
    types = "SELECT DISTINCT arg_name, arg_type FROM events_args ORDER BY 1"
    assert rows(file, types) == [
        ("fname", "char const*"), ("len", "int"), ("module", "ihipModule_t**"), ("name", "char*"),
    ]  # fmt: skip


def test_streams_that_the_sdk_does_not_know(built: Build, tmp_path: Path) -> None:
    """Those made in a pause, those that each thread has, and addresses that are used again."""
    done = client(built, tmp_path, "streams")
    assert (done.returncode, done.stderr) == (CODE, "")
    file = only(tmp_path)
    made, own, own_again, of_thread, made_again, unseen, default = (
        row[0] for row in rows(file, "SELECT stream_id FROM kernels ORDER BY dispatch_id")
    )
    assert own == own_again
    assert default == 0
    assert len({made, own, of_thread, made_again, unseen, default}) == 6
    assert rows(file, "SELECT COUNT(*) FROM kernels WHERE stream = 'Stream ' || stream_id") == [(6,)]


@pytest.mark.parametrize(
    ("name", "code"), [("SIGTERM", -15), ("SIGINT", -2), ("SIGHUP", -1), ("SIGABRT", -6), ("quick_exit", CODE)]
)
def test_ends_lose_nothing_that_the_sdk_holds(built: Build, tmp_path: Path, name: str, code: int) -> None:
    done = client(built, tmp_path, name, ROCPD_FLUSH_MS=NEVER)
    assert (done.returncode, done.stderr) == (code, "")
    assert rows(only(tmp_path), "SELECT COUNT(*) FROM regions WHERE name = 'hipInit'") == [(8,)]


def test_forked_children_have_their_calls_and_no_others(built: Build, tmp_path: Path) -> None:
    """What the SDK holds at the fork would be delivered twice; what it holds at the child's end must not be lost."""
    done = client(built, tmp_path, "fork", ROCPD_FLUSH_MS=NEVER)
    assert (done.returncode, done.stderr) == (CODE, "")
    files = databases(tmp_path)
    calls = "SELECT COUNT(*), MIN(tid = pid) FROM regions WHERE name = 'hipInit'"
    assert [rows(file, calls) for file in files] == [[(8, 1)], [(8, 1)]]


def calls_of_children(folder: Path) -> list[list[tuple[int, ...]]]:
    """Calls in each file but the parent's, and whether all are of the process's own thread."""
    calls = "SELECT COUNT(*), MIN(tid = pid) FROM regions WHERE name = 'hipInit'"
    parents = {file: rows(file, "SELECT ppid FROM rocpd_info_process") for file in databases(folder)}
    return [rows(file, calls) for file, parent in parents.items() if parent != [(os.getpid(),)]]


def test_children_forked_beside_a_call_do_not_wait_for_it(built: Build, tmp_path: Path) -> None:
    """Another thread holds the buffer at the fork: in the child it stays held."""
    done = client(built, tmp_path, "fork beside a put", ROCPD_FLUSH_MS=NEVER)
    assert (done.returncode, done.stderr) == (CODE, "")
    assert calls_of_children(tmp_path) == [[(8, 1)]]
    assert sorted(rows(file, "SELECT COUNT(*) FROM regions") for file in databases(tmp_path)) == [[(8,)], [(9,)]]


def test_children_forked_while_the_sdk_is_locked_go_on_without_it(built: Build, tmp_path: Path) -> None:
    """The lock that each call takes, and the SDK's end: the child calls, and exits with its own code."""
    done = client(built, tmp_path, "fork beside a numbering", ROCPD_FLUSH_MS=NEVER)
    assert done.returncode == CODE
    assert "without GPU work and roctx: it was forked while another thread held a lock" in done.stderr
    assert rows(only(tmp_path), "SELECT COUNT(*) FROM regions") == [(9,)]


@pytest.mark.soak(25)
@pytest.mark.parametrize("forks", [sized(8, 200)])
def test_children_forked_beside_many_calls(built: Build, tmp_path: Path, forks: int) -> None:
    """One whose fork met a lock of the SDK says so, and has no file."""
    done = client(built, tmp_path, "storm", rounds=forks)
    assert done.returncode == CODE
    without = done.stderr.count("without GPU work and roctx")
    assert without <= forks // 4
    assert calls_of_children(tmp_path) == [[(8, 1)]] * (forks - without)
    repeated = "SELECT COUNT(*) FROM regions GROUP BY stack_id HAVING COUNT(*) > 1"
    assert [rows(file, repeated) for file in databases(tmp_path)] == [[]] * (forks - without + 1)


def test_children_of_children(built: Build, tmp_path: Path) -> None:
    """Channels are made beforehand: there are five."""
    done = client(built, tmp_path, "generations", rounds=6, ROCPD_FLUSH_MS=NEVER)
    assert done.returncode == CODE
    assert done.stderr.endswith("without GPU work and roctx: too many forks lead to it\n")
    assert done.stderr.count("\n") == 1
    assert [rows(file, "SELECT COUNT(*) FROM regions") for file in databases(tmp_path)] == [[(8,)]] * 5


def test_threads_do_not_inherit_the_users_number(built: Build, tmp_path: Path) -> None:
    assert client(built, tmp_path, "inherit").returncode == CODE
    numbers = (
        "SELECT tid = pid, corr_id, COUNT(*) FROM (SELECT tid, pid, corr_id FROM kernels UNION ALL "
        "SELECT tid, pid, corr_id FROM memory_copies UNION ALL SELECT tid, pid, corr_id FROM regions WHERE "
        "name IN ('hipMemcpy', 'hipLaunchKernel', 'roctxThreadRangeA')) GROUP BY 1, 2"
    )
    assert rows(only(tmp_path), numbers) == [(0, 0, 9), (1, 777, 9)]


def test_a_number_from_before_the_first_gpu_call(built: Build, tmp_path: Path) -> None:
    assert client(built, tmp_path, "number before").returncode == CODE
    assert rows(only(tmp_path), "SELECT DISTINCT corr_id FROM kernels") == [(777,)]


def test_ranges_around_a_pause(built: Build, tmp_path: Path) -> None:
    """The range that is open at the pause ends where it ends, and what comes after the pause is in it."""
    assert client(built, tmp_path, "ranges").returncode == CODE
    file = only(tmp_path)
    parents = "SELECT M.name, P.name FROM markers M LEFT JOIN markers P ON P.stack_id = M.parent_stack_id ORDER BY 1"
    assert rows(file, parents) == [("A", None), ("D", "A"), ("after A", None), ("in A", "A")]
    inside = 'SELECT COUNT(*) FROM markers A JOIN markers D ON D.start >= A.start AND D."end" <= A."end" ' \
        "WHERE A.name = 'A' AND D.name IN ('D', 'in A')"  # fmt: skip
    assert rows(file, inside) == [(2,)]


def test_another_tool_that_counts(built: Build, tmp_path: Path) -> None:
    done = client(built, tmp_path, "other counts", threads=1, ROCPD_COUNTERS="SQ_WAVES")
    assert done.returncode == CODE
    assert done.stderr.startswith("rocpd: counters are not recorded, everything else is")
    assert "another tool" in done.stderr
    assert rows(only(tmp_path), "SELECT COUNT(*), (SELECT COUNT(*) FROM rocpd_pmc_event) FROM kernels") == [(2, 0)]


@pytest.mark.parametrize("how", ["small agents", "later"])
def test_agents_of_another_size(built: Build, tmp_path: Path, how: str) -> None:
    done = client(built, tmp_path, how, threads=1)
    assert (done.returncode, done.stderr) == (CODE, "")
    agents = rows(only(tmp_path), "SELECT id, name, json_extract(extdata, '$.uuid.bytes.value0') FROM rocpd_info_agent")
    assert agents == [(0, "AMD EPYC", 0), *((n, "gfx942", 0 if how == "small agents" else 134) for n in (2, 3))]


def test_no_agents_are_said(built: Build, tmp_path: Path) -> None:
    done = client(built, tmp_path, "no agents", threads=1)
    assert (done.returncode, done.stderr.count("\n")) == (CODE, 1)
    assert "names no agents" in done.stderr
    assert rows(only(tmp_path), "SELECT COUNT(*) FROM kernels") == [(2,)]


def test_counters_belong_to_the_first_agent_of_an_architecture(built: Build, tmp_path: Path) -> None:
    assert client(built, tmp_path, threads=1, ROCPD_COUNTERS="SQ_WAVES").returncode == CODE
    file = only(tmp_path)
    assert rows(file, "SELECT id, agent_id, component FROM rocpd_info_pmc") == [(1, 2, "rocm")]
    described = rows(
        file, "SELECT P.extdata, A.extdata FROM rocpd_info_pmc P JOIN rocpd_info_agent A ON A.id = agent_id"
    )
    assert json.loads(described[0][0]) == json.loads(described[0][1])


def test_events_that_only_some_versions_report(built: Build, tmp_path: Path) -> None:
    """Those of the driver, of other libraries, of HIP's events, and of kinds that nobody knew when this was written."""
    trace = "hip,kernel,memcpy,rocdecode,rocjpeg,graph,event,ompt,kfd,other,CORRELATION_ID_RETIREMENT"
    done = client(built, tmp_path, "later", ROCPD_TRACE=trace)
    assert (done.returncode, done.stderr) == (CODE, "")
    file = only(tmp_path)
    regions = (
        "SELECT category, COUNT(*), MIN(start <= \"end\") FROM regions WHERE category NOT LIKE 'HIP_R%' GROUP BY 1"
    )
    assert rows(file, regions) == [
        (category, 1, 1)
        for category in (
            "HIP_EVENT", "KFD_EVENT_DROPPED_EVENTS", "KFD_EVENT_UNMAP_FROM_GPU", "KFD_PAGE_FAULT", "KFD_PAGE_MIGRATE",
            "KFD_QUEUE", "OMPT", "PLANNED_API", "ROCDECODE_API_EXT", "ROCJPEG_API",
        )
    ]  # fmt: skip
    migrated = "SELECT arg_name, arg_value FROM events_args WHERE category = 'KFD_PAGE_MIGRATE' ORDER BY arg_position"
    assert rows(file, migrated) == [
        ("src_agent", "0"), ("dst_agent", "2"), ("start_address", "0x1000"), ("end_address", "0x2000"),
        ("error_code", "0"),
    ]  # fmt: skip
    assert metadata(file)["rocprofiler_unread_records CORRELATION_ID_RETIREMENT"] == "1"


def test_graphs_and_their_nodes(built: Build, tmp_path: Path) -> None:
    assert client(built, tmp_path, "later", ROCPD_TRACE="hip,kernel,memcpy,graph").returncode == CODE
    file = only(tmp_path)
    assert metadata(file)["schema_version"] == "3.0.2"
    launched = "SELECT graph_exec_id, kernel_dispatch_count, agent_abs_index, queue_id, tid = pid FROM graph_launches"
    assert rows(file, launched) == [(77, 3, 2, 16, 1)]
    nodes = (
        "SELECT graph_exec_id, graph_node_id FROM rocpd_kernel_dispatch UNION ALL "
        "SELECT graph_exec_id, graph_node_id FROM rocpd_memory_copy"
    )
    assert rows(file, nodes) == [(77, 0), (77, 1), (77, 2), (77, 3)]
    linked = "SELECT COUNT(*) FROM kernels K JOIN graph_launches G ON G.stack_id = K.stack_id"
    assert rows(file, linked) == [(3,)]


def test_library_that_was_loaded_for_itself(built: Build, tmp_path: Path) -> None:
    """As an extension of Python loads it: RTLD_LOCAL."""
    env = environment(tmp_path, LD_PRELOAD=str(built.lib / "librocpd-tool.so"), ROCPD_TOOL_WARNED="1")
    done = subprocess.run(
        [str(built.program("local_probe")), str(built.folder / "standin" / "librocprofiler-sdk.so.1")],
        env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (CODE, "")
    assert rows(only(tmp_path), "SELECT COUNT(*) FROM kernels") == [(2,)]


def test_trace_that_finds_nothing_says_so(built: Build, tmp_path: Path) -> None:
    done = client(built, tmp_path, ROCPD_TRACE="marker,graph,counters,HIPFILE_API,kernel")
    assert done.returncode == CODE
    assert done.stderr.splitlines() == [
        "rocpd: ROCPD_TRACE: graph: this rocprofiler-sdk reports nothing of that kind",
        "rocpd: ROCPD_TRACE: counters: none is named, as --counters or ROCPD_COUNTERS does",
        "rocpd: ROCPD_TRACE: HIPFILE_API is unknown and left out",
    ]
    assert databases(tmp_path) == []


def test_worst_wait_for_the_recorder(built: Build, tmp_path: Path) -> None:
    """A call that finds the SDK's buffer full waits until the recorder has taken one delivery: it must be small."""
    done = client(built, tmp_path, "fast", rounds=20)
    assert done.returncode == CODE
    assert 0 < int(done.stdout.split()[1]) <= 64 << 10
    assert rows(only(tmp_path), "SELECT COUNT(*) FROM regions WHERE name = 'hipInit'") == [(20_000,)]
    assert metadata(only(tmp_path))["recorder_lost_events"] == "0"
