"""What `pip install` brings: the recorder in the package, or a package that says what it lacks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.record.build import SOURCE, Build
from tests.record.runs import databases, rows
from tests.soak import SOAK

_LIBRARIES = {f"rocpd/record/lib/librocpd-{name}.so" for name in ("recorder", "roctx", "tool")}


def _wheel(folder: Path, *, source: Path = SOURCE.parent, **variables: str) -> Path:
    """Build the wheel as pip does, with what is installed here."""
    return _distribution("wheel", folder, source, **variables)


def _distribution(target: str, folder: Path, source: Path = SOURCE.parent, **variables: str) -> Path:
    environment = {name: value for name, value in os.environ.items() if name != "CXX"} | variables
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    done = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.iterdir()
    return built


def test_a_wheel_records(built: Build, tmp_path: Path) -> None:
    wheel = _wheel(tmp_path / "dist", ROCPD_TOOL_DIR=str(built.lib))
    assert wheel.name.endswith(f"-py3-none-linux_{os.uname().machine}.whl")
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        assert set(archive.namelist()) >= _LIBRARIES
        archive.extractall(site)
    script = "from rocpd import record\nwith record.range('step'): pass"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(site), "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "rocpd", "record", "-o", "job", "--", sys.executable, "-c", script]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (file,) = databases(tmp_path / "job")
    assert rows(file, "SELECT name FROM markers") == [("step",)]


@pytest.mark.soak(10)
def test_the_sdist_builds_the_recorder(tmp_path: Path) -> None:
    """It holds every file that CMake names; in a soak it is built."""
    with tarfile.open(_distribution("sdist", tmp_path / "dist")) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.2 has none
        archive.extractall(tmp_path)
    (source,) = tmp_path.glob("rocpd-*")
    listed = re.findall(r"[\w./-]+\.(?:cpp|c|py|map)\b", (SOURCE / "CMakeLists.txt").read_text())
    needed = [f"sdk_tool/{path}" for path in listed if not path.endswith("schema.cpp")]
    needed += ["sdk_tool/wheel.py", "sdk_tool/include/rocpd/recorder.h", "sdk_tool/cmake/zig-c++"]
    needed += [str(path.relative_to(SOURCE.parent)) for path in SOURCE.parent.glob("rocpd/schema/sql/*/*.sql")]
    assert len(needed) > 60
    assert [path for path in needed if not (source / path).resolve().is_file()] == []
    if SOAK:
        wheel = _wheel(tmp_path / "wheel", source=source, ROCPD_RECORDER="require")
        with zipfile.ZipFile(wheel) as built:
            assert set(built.namelist()) >= _LIBRARIES


def test_without_a_compiler_the_wheel_is_pure_python(tmp_path: Path) -> None:
    wheel = _wheel(tmp_path, PATH=str(Path(sys.executable).parent))
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if name.endswith(".so")]
        archive.extractall(tmp_path / "site")
    environment = {"PYTHONPATH": str(tmp_path / "site"), "HOME": str(tmp_path)}
    for words, stream in ((["doctor"], "stdout"), (["record", "--", "true"], "stderr")):
        command = [sys.executable, "-m", "rocpd", *words]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        (line,) = [line for line in getattr(done, stream).splitlines() if "recorder" in line]
        assert "not built: pip found no C++ compiler" in line
        assert "apt-get install g++ libsqlite3-dev (Debian), then in the checkout again: pip install ." in line


@pytest.mark.skipif(not shutil.which("c++") or not shutil.which("cmake"), reason="there is no compiler")
def test_a_failed_build_says_why_in_the_wheel(tmp_path: Path) -> None:
    """pip shows nothing of a build."""
    wheel = _wheel(tmp_path, ROCPD_CMAKE="-DSQLITE_INCLUDE=/nowhere")
    with zipfile.ZipFile(wheel) as archive:
        reason = archive.read("rocpd/record/lib/not-built.txt").decode()
    assert reason == "compiling it failed: CMake Error: File /nowhere/sqlite3.h does not exist."


def test_a_missing_recorder_can_be_made_an_error(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="pip found no C\\+\\+ compiler"):
        _wheel(tmp_path, PATH=str(Path(sys.executable).parent), ROCPD_RECORDER="require")
