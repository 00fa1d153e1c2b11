"""Programs with roctx and HIP under `rocpd record`: above rocprofiler-sdk where `$ROCPD_TEST_ROCM` names a ROCm
(`make sdk-test`), else above librocpd-roctx.so, which is to do the same."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.record.build import SOURCE, Build
from tests.record.cli import cli
from tests.record.runs import CODE, check_closed, databases, rows

ROCM = Path(os.environ["ROCPD_TEST_ROCM"]) if os.environ.get("ROCPD_TEST_ROCM") else None
EXITS = (("ranges", CODE), ("exit", CODE), ("_exit", CODE), ("quick_exit", CODE), ("abort", 134), ("SIGTERM", 143),
         ("SIGHUP", 129))  # fmt: skip
"""Ways out of a program; `test_ends.py` has them all for programs without ROCm."""

RANGES = [("inner",), ("mark",), ("outer",), ("process range",)]


@pytest.fixture(scope="module")
def program(built: Build, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with roctx, linked with AMD's library or ours."""
    roctx = ROCM / "lib" / "librocprofiler-sdk-roctx.so" if ROCM else built.lib / "librocpd-roctx.so"
    target = tmp_path_factory.mktemp("program") / "roctx_program"
    source = SOURCE / "tests" / "roctx_program.cpp"
    link = [str(roctx), f"-Wl,-rpath,{roctx.parent}", "-ldl"]
    subprocess.run(["c++", "-std=c++17", str(source), "-o", str(target), *link], check=True)
    return target


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Record a command above ROCm, if there is one."""
    env = {"ROCM_PATH": str(ROCM), "ROCPD_ROCM": "1"} if ROCM else {"ROCPD_ROCM": "0"}
    done = cli(folder, "record", "-o", "job", "--", *command, **env)
    assert "lost" not in done.stderr, done.stderr
    return done


def record(folder: Path, *command: str) -> int:
    """Record a command, and return its exit code."""
    return run(folder, *command).returncode


def markers(path: Path) -> list[tuple[str]]:
    check_closed(path)
    return rows(path, "SELECT name FROM markers ORDER BY 1")


@pytest.mark.parametrize(("how", "code"), EXITS if ROCM else EXITS[:1])
def test_ranges_and_exits(program: Path, tmp_path: Path, how: str, code: int) -> None:
    assert record(tmp_path, str(program), how) == code
    (file,) = databases(tmp_path / "job")
    assert markers(file) == RANGES


def test_pause(program: Path, tmp_path: Path) -> None:
    assert record(tmp_path, str(program), "pause") == CODE
    (file,) = databases(tmp_path / "job")
    assert markers(file) == [("A",), ("D",)]
    assert rows(file, 'SELECT A.start <= D.start AND D."end" <= A."end" FROM markers A, markers D '
                "WHERE A.name = 'A' AND D.name = 'D'") == [(1,)]  # fmt: skip


def test_fork(program: Path, tmp_path: Path) -> None:
    assert record(tmp_path, str(program), "fork") == CODE
    files = databases(tmp_path / "job")
    assert len(files) == 2
    assert all(markers(file) == RANGES for file in files)


if ROCM:
    LIBRARY = str(ROCM / "lib" / "librocprofiler-sdk.so.1")
    HIPCC = ROCM / "bin" / "hipcc"
    INCLUDE, LIB = ROCM / "include", ROCM / "lib"

    def test_library_that_was_loaded_for_itself(program: Path, tmp_path: Path) -> None:
        assert record(tmp_path, str(program), "ranges", LIBRARY) == CODE
        (file,) = databases(tmp_path / "job")
        assert markers(file) == RANGES

    @pytest.fixture(scope="module")
    def hip_calls(tmp_path_factory: pytest.TempPathFactory) -> Path:
        """The program with calls of HIP, above a stand-in for HIP that needs no GPU."""
        if not (INCLUDE / "hip" / "amd_detail" / "hip_api_trace.hpp").exists():
            pytest.skip("HIP's headers are missing")
        folder = tmp_path_factory.mktemp("hip")
        compiler = ["c++", "-std=c++17", "-w", "-D__HIP_PLATFORM_AMD__=1", "-I", str(INCLUDE)]
        libraries = ["-L", str(LIB), f"-Wl,-rpath,{folder}:{LIB}"]
        hip = folder / "libamdhip64.so.6"  # the SDK takes this name only
        source = SOURCE / "tests"
        subprocess.run(
            [*compiler, "-shared", "-fPIC", str(source / "standin_hip.cpp"), "-o", str(hip), f"-Wl,-soname,{hip.name}",
             *libraries, "-lrocprofiler-register"], check=True
        )  # fmt: skip
        program = folder / "hip_calls"
        subprocess.run(
            [*compiler, str(source / "hip_calls.cpp"), "-o", str(program), str(hip), *libraries,
             "-lrocprofiler-sdk-roctx", "-lpthread"], check=True
        )  # fmt: skip
        return program

    HIP_REGIONS = "SELECT name, COUNT(*) FROM regions WHERE category LIKE 'HIP%' GROUP BY 1"

    @pytest.mark.parametrize(("how", "code"), [*EXITS[1:], ("SIGINT", 130)])
    def test_exits_lose_no_calls(hip_calls: Path, tmp_path: Path, how: str, code: int) -> None:
        assert record(tmp_path, str(hip_calls), how) == code
        (file,) = databases(tmp_path / "job")
        check_closed(file)
        assert rows(file, HIP_REGIONS) == [("hipGetDevice", 8)]
        enclosed = (
            "SELECT COUNT(*) FROM regions R JOIN markers M ON M.stack_id = R.parent_stack_id WHERE M.name = 'step'"
        )
        assert rows(file, enclosed) == [(8,)]
        assert rows(file, "SELECT DISTINCT arg_type, arg_name FROM events_args") == [("int*", "deviceId")]

    def test_texts_of_calls(hip_calls: Path, tmp_path: Path) -> None:
        assert record(tmp_path, str(hip_calls), "paths") == CODE
        (file,) = databases(tmp_path / "job")
        texts = "SELECT arg_value FROM events_args WHERE arg_name = 'fname' ORDER BY event_id"
        assert rows(file, texts) == [("/unmapped.co",), ("/freed.co",)]

    def test_streams_of_calls(hip_calls: Path, tmp_path: Path) -> None:
        assert record(tmp_path, str(hip_calls), "streams") == CODE
        (file,) = databases(tmp_path / "job")
        assert rows(file, HIP_REGIONS) == [("hipStreamSynchronize", 4)]
        assert rows(file, "SELECT name FROM rocpd_info_stream ORDER BY id") == [(f"Stream {n}",) for n in (1, 2, 3)]

    def test_calls_of_forked_children(hip_calls: Path, tmp_path: Path) -> None:
        assert record(tmp_path, str(hip_calls), "fork") == CODE
        counts = [rows(file, HIP_REGIONS) for file in databases(tmp_path / "job")]
        assert sorted(counts) == [[("hipGetDevice", 8)], [("hipGetDevice", 2000)]]

    def test_children_forked_beside_calls(hip_calls: Path, tmp_path: Path) -> None:
        """A child whose fork met a lock of the SDK says so, and has no file."""
        done = run(tmp_path, str(hip_calls), "storm")
        assert done.returncode == CODE
        without = done.stderr.count("without GPU work and roctx")
        assert without <= 2
        counts = [rows(file, HIP_REGIONS)[0][1] for file in databases(tmp_path / "job")]
        assert sorted(counts)[:-1] == [50] * (20 - without)

    @pytest.mark.skipif(not HIPCC.exists() or not Path("/dev/kfd").exists(), reason="HIP needs hipcc and a GPU")
    def test_hip(tmp_path: Path) -> None:
        target = tmp_path / "hip_program"
        link = [
            "-L",
            str(HIPCC.parents[1] / "lib"),
            "-lrocprofiler-sdk-roctx",
            f"-Wl,-rpath,{HIPCC.parents[1] / 'lib'}",
        ]
        subprocess.run([str(HIPCC), str(SOURCE / "tests" / "hip_program.cpp"), "-o", str(target), *link], check=True)
        assert record(tmp_path, str(target)) == CODE
        (file,) = databases(tmp_path / "job")
        check_closed(file)
        assert rows(file, "SELECT COUNT(*), COUNT(DISTINCT stream_id) FROM kernels WHERE name LIKE '%add%'") == [(3, 3)]
        assert rows(file, "SELECT arg_value FROM events_args WHERE arg_name = 'fname'") == [("/no/such/module.co",)]
