"""Builds `sdk_tool/` for tests: once, in the checkout's build folder, whichever worker comes first."""

from __future__ import annotations

import fcntl
import functools
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.soak import SOAK, sized

SOURCE = Path(__file__).resolve().parents[2] / "sdk_tool"


@dataclass(frozen=True)
class Build:
    """One build of the recorder.

    Args:
        folder: CMake's build folder.
    """

    folder: Path

    @property
    def lib(self) -> Path:
        """Folder of the libraries."""
        return self.folder / "lib"

    def program(self, name: str) -> Path:
        """Return a test program."""
        return self.folder / "bin" / name


ADDRESS = sized("address", "address,undefined")
"""The sanitizer of memory; that of undefined behaviour makes the compiler take half as long again."""

_PROGRAMS = ("probe", "client_probe", "local_probe", "rocpd-standin-smi", "rocpd-tool")
"""What is built, with what it needs: all but the benchmark."""


@functools.cache
def build(sanitizer: str = "") -> Build:
    """Configure and build, or find it built; `sanitizer` is CMake's ROCPD_SANITIZE."""
    for need in ("cmake", "c++"):
        if shutil.which(need) is None:
            pytest.skip(f"the recorder's tests need {need} (on Debian: apt-get install cmake g++ libsqlite3-dev)")
    folder = SOURCE / "build" / sanitizer.replace(",", "-")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        configure = ["cmake", "-S", str(SOURCE), "-B", str(folder), f"-DROCPD_SANITIZE={sanitizer}"]
        # The compiler is most of what these tests take. Reports name functions; `make soak` has their lines too.
        if sanitizer:
            configure += ["-DROCPD_BENCH=OFF", "-DCMAKE_BUILD_TYPE=Debug"]
            configure += [f"-DCMAKE_CXX_FLAGS_DEBUG={sized('-O0 -g0', '-O1 -g1')}"]
        elif SOAK:
            configure += ["-DCMAKE_UNITY_BUILD=OFF"]  # each file includes what it uses
        else:
            configure += ["-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O2 -g0 -DNDEBUG"]
        done = subprocess.run(configure, capture_output=True, text=True)
        if done.returncode and "SQLite 3 is missing" in done.stderr:
            pytest.skip("the recorder needs libsqlite3-dev")
        assert done.returncode == 0, done.stdout + done.stderr
        programs = ("probe", "rocpd-standin-smi") if sanitizer == "address" else _PROGRAMS
        targets = [] if SOAK else ["--target", *programs]
        done = subprocess.run(["cmake", "--build", str(folder), "-j", "2", *targets], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    return Build(folder)
