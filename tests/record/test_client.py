"""The rocprofiler-sdk client on the stand-in SDK, and its declarations against real headers."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.record.build import ADDRESS, SOURCE, Build, build
from tests.record.runs import CODE, client, environment, metadata, only, probe, rows
from tests.soak import sized

THREADS, ROUNDS = 4, 100
TENTHS = THREADS * ROUNDS // 10


_client = functools.partial(client, threads=THREADS, rounds=ROUNDS)


def test_everything_arrives(built: Build, tmp_path: Path) -> None:
    done = _client(built, tmp_path, ROCPD_COUNTERS="SQ_WAVES,GRBM_COUNT,NONE")
    assert (done.returncode, done.stderr) == (CODE, "rocpd: no GPU has a counter NONE\n")
    file = only(tmp_path)
    n = THREADS * ROUNDS
    assert rows(file, "SELECT category, name, COUNT(*) FROM regions GROUP BY 1, 2 ORDER BY 1, 2") == [
        ("HIP_COMPILER_API_EXT", "some_call", TENTHS),
        ("HIP_RUNTIME_API_EXT", "hipLaunchKernel", 2 * n),
        ("HIP_RUNTIME_API_EXT", "hipMemcpy", 2 * n),
        ("HSA_AMD_EXT_API", "some_call", TENTHS),
        ("HSA_CORE_API", "some_call", TENTHS),
        ("HSA_FINALIZE_EXT_API", "some_call", TENTHS),
        ("HSA_IMAGE_EXT_API", "some_call", TENTHS),
        ("MARKER_CORE_RANGE_API", "roctxProcessRangeA", TENTHS),
        ("MARKER_CORE_RANGE_API", "roctxThreadRangeA", n),
        ("RCCL_API", "some_call", TENTHS),
    ]
    marked = "SELECT category, name, COUNT(*), COUNT(DISTINCT tid) FROM samples GROUP BY 1, 2"
    assert rows(file, marked) == [("MARKER_CORE_RANGE_API", "MARKER_CORE_RANGE_API", TENTHS, THREADS)]
    assert rows(file, "SELECT name, stream, queue, agent_abs_index, COUNT(*) FROM kernels GROUP BY 1 ORDER BY 1") == [
        ("reduce", "Stream 1", "Queue 1", 2, n),
        ("void gemm<float>(float*, float*)", "Default Stream", "Queue 0", 2, n),
    ]
    assert rows(file, "SELECT COUNT(*), SUM(size) FROM memory_copies") == [(2 * n, 2 * n * 4096)]
    allocated = "SELECT type, level, agent_id, COUNT(*) FROM rocpd_memory_allocate GROUP BY 1, 2, 3 ORDER BY 1, 2"
    assert rows(file, allocated) == [
        ("ALLOC", "REAL", 2, n), ("ALLOC", "SCRATCH", 2, TENTHS), ("FREE", "REAL", None, n),
    ]  # fmt: skip
    arguments = rows(
        file, "SELECT name, arg_name, arg_type, arg_value, COUNT(*) FROM regions JOIN events_args USING (event_id) "
        "GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 4"
    )  # fmt: skip
    assert arguments == [
        ("hipLaunchKernel", "function_address", "void const*", "0x2012a0", 2 * n),
        ("hipLaunchKernel", "stream", "ihipStream_t*", "0x0", n),
        ("hipLaunchKernel", "stream", "ihipStream_t*", "0x5001", n),
        ("hipMemcpy", "bytes", "unsigned long", "4096", 2 * n),
        ("hipMemcpy", "pointer", "void*", "0x1000", 2 * n),
    ]
    # Two instances of each: 2 d + 1 and 2 d + 5 for dispatch d.
    dispatches = 2 * n
    total = dispatches * (dispatches + 1)
    assert rows(file, "SELECT counter_name, COUNT(*), SUM(value) FROM counters_collection GROUP BY 1 ORDER BY 1") == [
        ("GRBM_COUNT", dispatches, total + 5 * dispatches), ("SQ_WAVES", dispatches, total + dispatches),
    ]  # fmt: skip


def test_flows_and_enclosing_markers(built: Build, tmp_path: Path) -> None:
    assert _client(built, tmp_path).returncode == CODE
    file = only(tmp_path)
    linked = (
        "SELECT COUNT(*), COUNT(DISTINCT K.stack_id) FROM kernels K JOIN regions A ON A.stack_id = K.stack_id "
        "AND A.tid = K.tid JOIN markers M ON M.stack_id = A.parent_stack_id AND M.tid = A.tid AND M.name = K.region"
    )
    assert rows(file, linked) == [(2 * THREADS * ROUNDS, 2 * THREADS * ROUNDS)]
    copies = "SELECT COUNT(*) FROM memory_copies WHERE region_name GLOB 'step [012]'"
    assert rows(file, copies) == [(2 * THREADS * ROUNDS,)]


def test_external_correlation_ids_are_the_users(built: Build, tmp_path: Path) -> None:
    """An id that the program sets is on calls, markers and GPU work; markers and streams stay linked all the same."""
    assert _client(built, tmp_path, "correlate", threads=0, rounds=5).returncode == CODE
    file = only(tmp_path)
    expected = [(n, 2) for n in (0, 1001, 1002, 1003, 1004, 1005)]
    for view in ("kernels", "memory_copies", "memory_allocations"):
        counts = f"SELECT corr_id, COUNT(*) FROM {view} WHERE category != 'SCRATCH_MEMORY' GROUP BY 1 ORDER BY 1"
        assert rows(file, counts) == expected, view
    ranges = "SELECT corr_id, COUNT(*) FROM markers WHERE function = 'roctxThreadRangeA' GROUP BY 1 ORDER BY 1"
    assert rows(file, ranges) == [(n, 1) for n, _ in expected]
    placed = (
        "SELECT DISTINCT name, stream, region GLOB 'step [012]', stack_id = parent_stack_id FROM kernels ORDER BY 1"
    )
    assert rows(file, placed) == [
        ("reduce", "Stream 1", 1, 1), ("void gemm<float>(float*, float*)", "Default Stream", 1, 1),
    ]  # fmt: skip
    linked = (
        "SELECT COUNT(*) FROM kernels K JOIN regions A ON A.stack_id = K.stack_id AND A.corr_id = K.corr_id "
        "JOIN markers M ON M.stack_id = A.parent_stack_id AND M.name = K.region AND M.corr_id = K.corr_id"
    )
    assert rows(file, linked) == [(12,)]


def test_one_call_that_launches_many_kernels(built: Build, tmp_path: Path) -> None:
    assert _client(built, tmp_path, "graph", threads=0, rounds=20).returncode == CODE
    sql = "SELECT stack_id, COUNT(*), MIN(region), MAX(region), MIN(stream), MAX(stream) FROM kernels GROUP BY 1"
    recorded = [row[1:] for row in rows(only(tmp_path), sql)]
    assert recorded == [(20, "graph", "graph", "Stream 1", "Stream 1"), (1, "graph", "graph", "Stream 1", "Stream 1")]


def test_stop_keeps_what_the_sdk_still_holds(built: Build, tmp_path: Path) -> None:
    """Nothing is flushed but by the stop; what happens while recording is off never comes."""
    assert _client(built, tmp_path, "stop", ROCPD_FLUSH_MS="60000").returncode == CODE
    file = only(tmp_path)
    assert rows(file, "SELECT COUNT(*) FROM kernels") == [(2 * (THREADS * ROUNDS + 1),)]
    assert rows(file, "SELECT COUNT(*) FROM markers WHERE name GLOB 'step *'") == [(THREADS * ROUNDS + 1,)]


def test_ranges_that_nobody_ends(built: Build, tmp_path: Path) -> None:
    assert _client(built, tmp_path, "open", threads=0).returncode == CODE
    sql = "SELECT name, function, json_extract(extdata, '$.unfinished'), start <= \"end\" FROM markers M " \
        "JOIN rocpd_event E ON E.id = M.event_id ORDER BY 1, 2, M.id"  # fmt: skip
    assert rows(only(tmp_path), sql) == [
        ("across", "roctxThreadRangeA", None, 1),
        ("open", "roctxThreadRangeA", 1, 1),
        ("open", "roctxThreadRangeA", 1, 1),
        ("open process range", "roctxProcessRangeA", 1, 1),
        ("open process range", "roctxProcessRangeA", 1, 1),
    ]


def test_older_sdk(built: Build, tmp_path: Path) -> None:
    assert _client(built, tmp_path, "calls").returncode == CODE
    file = only(tmp_path)
    assert rows(file, "SELECT function, COUNT(*) FROM markers GROUP BY 1 ORDER BY 1") == [
        ("MARKER_CORE_RANGE_API", TENTHS), ("roctxProcessRangeA", TENTHS), ("roctxThreadRangeA", THREADS * ROUNDS),
    ]  # fmt: skip
    unfinished = "SELECT COUNT(*) FROM rocpd_event WHERE json_extract(extdata, '$.unfinished')"
    assert rows(file, unfinished) == [(0,)]
    assert rows(file, "SELECT COUNT(*) FROM kernels WHERE region GLOB 'step [012]'") == [(2 * THREADS * ROUNDS,)]
    calls = "SELECT DISTINCT category FROM regions WHERE category GLOB 'HIP*' ORDER BY 1"
    assert rows(file, calls) == [("HIP_COMPILER_API",), ("HIP_RUNTIME_API",)]
    assert rows(file, "SELECT COUNT(*) FROM rocpd_arg") == [(0,)]


def test_names_that_the_program_gives(built: Build, tmp_path: Path) -> None:
    assert _client(built, tmp_path, "names", threads=1, rounds=1).returncode == CODE
    file = only(tmp_path)
    assert rows(file, "SELECT id, name FROM rocpd_info_stream ORDER BY 1") == [(0, "Default Stream"), (1, "compute")]
    main = "SELECT name FROM rocpd_info_thread WHERE id = (SELECT pid FROM rocpd_info_process)"
    assert rows(file, main) == [("main thread",)]
    assert metadata(file)["hip_device_0"] == "first GPU"


def test_exit_in_a_signal_handler_while_the_sdk_is_busy(built: Build, tmp_path: Path) -> None:
    done = _client(built, tmp_path, "handler", threads=1, rounds=20)
    assert done.returncode == CODE
    only(tmp_path)


def test_ranges_from_before_the_sdk_have_stack_ids_of_their_own(built: Build, tmp_path: Path) -> None:
    assert _client(built, tmp_path, "early", threads=1, rounds=50).returncode == CODE
    shared = "SELECT COUNT(*) FROM markers E JOIN regions A ON A.stack_id = E.stack_id AND A.id != E.id " \
        "WHERE E.name = 'early'"  # fmt: skip
    file = only(tmp_path)
    assert rows(file, "SELECT COUNT(*) FROM markers WHERE name = 'early'") == [(100,)]
    assert rows(file, shared) == [(0,)]


@pytest.mark.parametrize("trace", ["counters", "hip"])
def test_counters_come_with_their_dispatches(built: Build, tmp_path: Path, trace: str) -> None:
    assert _client(built, tmp_path, ROCPD_TRACE=trace, ROCPD_COUNTERS="SQ_WAVES").returncode == CODE
    recorded = rows(only(tmp_path), "SELECT COUNT(*), COUNT(event_id) FROM rocpd_pmc_event")
    # Each counter has two instances, and a value of each.
    assert recorded == [(4 * THREADS * ROUNDS, 4 * THREADS * ROUNDS)]


def test_kernel_symbols_and_agents(built: Build, tmp_path: Path) -> None:
    assert _client(built, tmp_path, rounds=1).returncode == CODE
    file = only(tmp_path)
    extdata = json.loads(rows(file, "SELECT extdata FROM rocpd_info_kernel_symbol WHERE id = 1")[0][0])
    assert extdata["truncated_kernel_name"] == "gemm"
    assert extdata["formatted_kernel_name"] == "void gemm<float>(float*, float*)"
    assert rows(file, "SELECT storage_type, load_size, agent_id FROM rocpd_info_code_object") == [("MEMORY", 8192, 2)]
    agents = "SELECT id, type, name, product_name, json_extract(extdata, '$.cu_count') FROM rocpd_info_agent"
    assert rows(file, agents) == [
        (0, "CPU", "AMD EPYC", "AMD EPYC", 0),
        *((n, "GPU", "gfx942", "AMD Instinct MI300X", 304) for n in (2, 3)),
    ]


def test_choice_of_domains(built: Build, tmp_path: Path) -> None:
    done = _client(built, tmp_path, ROCPD_TRACE="kernel,marker,nonsense")
    assert done.stderr == "rocpd: ROCPD_TRACE: nonsense is unknown and left out\n"
    file = only(tmp_path)
    assert rows(file, "SELECT DISTINCT category FROM regions") == [("MARKER_CORE_RANGE_API",)]
    assert rows(file, "SELECT COUNT(*) > 0, (SELECT COUNT(*) FROM rocpd_memory_copy) FROM kernels") == [(1, 0)]


def test_pause_and_resume(built: Build, tmp_path: Path) -> None:
    assert _client(built, tmp_path, "pause", threads=1, rounds=20).returncode == CODE
    assert rows(only(tmp_path), "SELECT COUNT(*) FROM kernels") == [(2 * 21,)]


@pytest.mark.parametrize("how", ["_exit", "twice"])
def test_ways_out(built: Build, tmp_path: Path, how: str) -> None:
    done = _client(built, tmp_path, how, ROCPD_FLUSH_MS="60000")
    assert (done.returncode, done.stderr) == (CODE, "")
    assert rows(only(tmp_path), "SELECT COUNT(*) FROM kernels") == [(2 * THREADS * ROUNDS,)]


def test_sdk_that_is_too_old(built: Build, tmp_path: Path) -> None:
    done = _client(built, tmp_path, "old")
    assert done.returncode == CODE
    assert len(done.stderr.splitlines()) == 1
    assert "too old" in done.stderr
    assert not any(tmp_path.iterdir())


def test_machine_without_rocm_is_told_once(built: Build, tmp_path: Path) -> None:
    if list(Path("/opt").glob("rocm*/lib/librocprofiler-sdk.so*")):
        pytest.skip("ROCm is installed")
    env = environment(tmp_path, LD_PRELOAD=str(built.lib / "librocpd-tool.so"))
    shell = "/bin/true; /bin/true; exec /bin/sh -c 'exit 5'"
    done = subprocess.run(["/bin/sh", "-c", shell], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (5, 1)
    assert "no rocprofiler-sdk on this machine" in done.stderr


_SANITIZERS = [("thread", "libtsan.so"), (ADDRESS, "libasan.so")]


@pytest.mark.soak(4)
@pytest.mark.parametrize(("sanitizer", "runtime"), sized(_SANITIZERS[:1], _SANITIZERS))
def test_client_under_sanitizers(tmp_path: Path, sanitizer: str, runtime: str) -> None:
    chosen = build(sanitizer)
    printed = subprocess.run(["c++", f"-print-file-name={runtime}"], capture_output=True, text=True, check=True)
    preload = f"{printed.stdout.strip()}:{chosen.lib / 'librocpd-tool.so'}"
    busy = dict.fromkeys(("plain", "stop", "correlate", "open", "calls"), THREADS)
    for how, threads in (busy | dict.fromkeys(("strings", "streams", "ranges", "later", "inherit"), 0)).items():
        folder = tmp_path / how
        done = _client(
            chosen, folder, how, threads=threads, rounds=sized(8, 30), LD_PRELOAD=preload, ROCPD_FLUSH_MS="20",
            TSAN_OPTIONS="exitcode=99:halt_on_error=1", ASAN_OPTIONS="exitcode=99",
            UBSAN_OPTIONS="halt_on_error=1:exitcode=99",
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (CODE, ""), how
        assert metadata(only(folder))["recorder_lost_events"] == "0"


def _headers(folder: Path) -> Path:
    """Return real headers of rocprofiler-sdk: `$ROCPD_SDK_INCLUDE`, or those in the triton wheel on PyPI."""
    if chosen := os.environ.get("ROCPD_SDK_INCLUDE"):
        return Path(chosen)
    unpacked = Path(os.environ.get("ROCPD_BENCH_DIR") or "/tmp") / f"rocpd-sdk-headers-{os.getuid()}"
    if not (unpacked / "done").exists():
        fetch = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--only-binary", ":all:", "triton"]
        try:
            done = subprocess.run([*fetch, "-d", str(folder)], capture_output=True, text=True, check=False)
        except subprocess.TimeoutExpired:
            pytest.skip("the triton wheel takes too long to come")
        wheels = list(folder.glob("triton*.whl"))
        if done.returncode or not wheels:
            pytest.skip("the triton wheel cannot be downloaded; ROCPD_SDK_INCLUDE names other headers")
        _unpack(wheels[0], unpacked)
    return unpacked


def _unpack(wheel: Path, folder: Path) -> None:
    inside = "triton/backends/amd/include/"
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.startswith(inside) and name.endswith((".h", ".hpp")):
                target = folder / name.removeprefix(inside)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(name))
    (folder / "done").touch()
    wheel.unlink()


def test_declarations_match_real_headers(tmp_path: Path) -> None:
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler")
    headers = _headers(tmp_path)
    command = ["c++", "-std=c++17", "-fsyntax-only", "-D__HIP_PLATFORM_AMD__", "-isystem", str(headers)]
    done = subprocess.run(
        [*command, str(SOURCE / "tests" / "abi_check.cpp")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_layout_check_notices_a_difference(tmp_path: Path) -> None:
    """A check that cannot fail proves nothing: with one field moved it does not compile."""
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler")
    headers = _headers(tmp_path)
    shutil.copytree(SOURCE / "abi", tmp_path / "abi")
    (tmp_path / "tests").mkdir()
    shutil.copy(SOURCE / "tests" / "abi_check.cpp", tmp_path / "tests")
    file = tmp_path / "abi" / "sdk_buffers.h"
    text = file.read_text(encoding="utf-8")
    moved = text.replace("    uint32_t private_segment_size;\n    uint32_t group_segment_size;\n",
                         "    uint32_t group_segment_size;\n    uint32_t private_segment_size;\n", 1)  # fmt: skip
    assert moved != text
    file.write_text(moved, encoding="utf-8")
    command = ["c++", "-std=c++17", "-fsyntax-only", "-D__HIP_PLATFORM_AMD__", "-isystem", str(headers)]
    done = subprocess.run([*command, str(tmp_path / "tests" / "abi_check.cpp")], capture_output=True, check=False)
    assert done.returncode != 0


def test_probe_without_the_client_is_not_bothered(built: Build, tmp_path: Path) -> None:
    assert probe(built, tmp_path, "threads", "1", "2").stderr == ""
