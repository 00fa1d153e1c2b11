"""Owns where libraries of ROCm lie on this machine. Loads none of them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

SDK = "librocprofiler-sdk.so"
SDK_ROCTX = "librocprofiler-sdk-roctx.so"
SMI = "libamd_smi.so"

_ANY = Path("/opt")
_CACHE_LINE = re.compile(r"^\s*(\S+) .* => (\S+)$", re.M)


def find(name: str, environ: Mapping[str, str]) -> Path | None:
    """Return the newest file of a library, such as `librocprofiler-sdk.so`, or None.

    Searches as the dynamic loader does, `$LD_LIBRARY_PATH` and its cache, and the folders of ROCm: `$ROCM_PATH`,
    `/opt/rocm`, `/opt/rocm-7.1.0`.
    """
    for folder in _folders(environ):
        if files := sorted(folder.glob(f"{name}*"), key=_version):
            return files[-1].resolve()
    cached = [Path(path) for soname, path in _cached() if soname == name or soname.startswith(f"{name}.")]
    return max(cached, key=_version).resolve() if cached else None


def version_of(library: Path) -> str:
    """Return the version in the name of a library's file, empty when there is none.

    >>> version_of(Path("librocprofiler-sdk.so.1.0.0"))
    '1.0.0'
    """
    return library.name.partition(".so.")[2]


def _folders(environ: Mapping[str, str]) -> Iterator[Path]:
    yield from (Path(folder) for folder in environ.get("LD_LIBRARY_PATH", "").split(":") if folder)
    if root := environ.get("ROCM_PATH"):
        yield Path(root) / "lib"
    yield _ANY / "rocm" / "lib"
    yield from sorted((folder / "lib" for folder in _ANY.glob("rocm-*")), key=_version, reverse=True)


def _cached() -> list[tuple[str, str]]:
    """Return the names in the loader's cache with their paths."""
    try:
        done = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, check=False)
    except OSError:
        return []  # musl, NixOS: no such cache
    return _CACHE_LINE.findall(os.fsdecode(done.stdout))


def _version(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", str(path))]
