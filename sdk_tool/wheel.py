"""Builds the recorder into a wheel: three libraries in `rocpd/record/lib/`, compiled where there is a compiler.

`$ROCPD_TOOL_DIR` names a folder with libraries that were built before. Without libraries and without a compiler, or
where the build fails, the wheel is pure Python; `ROCPD_RECORDER=require` makes that an error. pip shows nothing of a
build, so the wheel holds the reason, which `rocpd doctor` and `rocpd record` show. An editable installation has no
libraries: `make tool` builds them in the checkout.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LIBRARIES = ("librocpd-recorder.so", "librocpd-roctx.so", "librocpd-tool.so")
FOLDER = "rocpd/record/lib"


class RecorderHook(BuildHookInterface):  # type: ignore[type-arg]
    """What hatchling calls."""

    def dependencies(self) -> list[str]:
        """Return what building needs from PyPI: CMake, where there is a compiler for it to call."""
        return ["cmake>=3.18"] if _compiler() and not _prebuilt() and not shutil.which("cmake") else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the libraries to a wheel that is about to be written."""
        if version == "editable":
            return
        try:
            folder = _prebuilt() or self._built()
        except (OSError, RuntimeError) as error:
            if os.environ.get("ROCPD_RECORDER") == "require":
                raise
            self.app.display_warning(f"the wheel has no recorder: {error}")
            reason = Path(tempfile.mkdtemp(prefix="rocpd-wheel-")) / "not-built.txt"
            reason.write_text(str(error).partition("\n")[0], encoding="utf-8")
            build_data["force_include"][str(reason)] = f"{FOLDER}/{reason.name}"
            return
        build_data["force_include"] |= {str(folder / name): f"{FOLDER}/{name}" for name in LIBRARIES}
        build_data["pure_python"] = False
        platform = os.environ.get("ROCPD_PLATFORM") or sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"

    def _built(self) -> Path:
        if not _compiler():
            raise RuntimeError("pip found no C++ compiler")
        build, prefix = (tempfile.mkdtemp(prefix="rocpd-wheel-") for _ in range(2))
        options = ["-DROCPD_TESTS=OFF", "-DROCPD_BENCH=OFF", *os.environ.get("ROCPD_CMAKE", "").split()]
        for command in (
            ["cmake", "-S", str(Path(self.root) / "sdk_tool"), "-B", build, *options],
            ["cmake", "--build", build, "--parallel", str(os.cpu_count() or 1)],
            ["cmake", "--install", build, "--prefix", prefix, "--strip"],
        ):
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"compiling it failed: {_reason(done.stdout)}\n{done.stdout[-2000:]}")
        shutil.rmtree(build, ignore_errors=True)
        return Path(prefix) / "lib" / "rocpd"


def _reason(output: str) -> str:
    """Return the line in which CMake or the compiler says what is wrong."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for line, below in itertools.pairwise([*lines, ""]):
        if line.startswith("CMake Error") or "error:" in line:
            return below if line.endswith(":") else line
    return "it did not say why"


def _compiler() -> str | None:
    return os.environ.get("CXX") or shutil.which("c++")


def _prebuilt() -> Path | None:
    folder = os.environ.get("ROCPD_TOOL_DIR")
    return Path(folder) if folder and all((Path(folder) / name).is_file() for name in LIBRARIES) else None
