"""Finds the libraries of the recorder and of ROCm, loads the recorder's own, and checks the folders of recordings.

Starts no recording and creates no folder.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from rocpd.base import UsageError


class NoFolderError(UsageError):
    """Files cannot be written to the requested folder."""


def home() -> Path | None:
    """Return the user's home; None if there is none, as for made-up users of containers."""
    try:
        folder = Path.home()
    except RuntimeError:
        return None
    return None if folder == Path(folder.anchor) else folder


def writable(folder: Path) -> Path:
    """Return the folder, or the existing parent in which it will be created, after checking that it is writable.

    Raises:
        NoFolderError: it is not writable; the message gives the reason.
    """
    try:
        exists = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
        with tempfile.TemporaryFile(dir=exists):
            return exists
    except OSError as error:
        message = f"{folder} cannot be written: {error.strerror}"
        raise NoFolderError(message, "name another folder: rocpd record -o DIR") from error


RECORDER = "librocpd-recorder.so"
ROCTX = "librocpd-roctx.so"
TOOL = "librocpd-tool.so"

Library = TypeVar("Library", bound=ctypes.CDLL)

_CHECKOUT = Path(__file__).resolve().parents[2] / "sdk_tool"
_LIBRARIES = Path(__file__).parent / "lib"
_HOW = (
    "apt-get install cmake g++ libsqlite3-dev (Debian), then make tool"
    if _CHECKOUT.is_dir()
    else "apt-get install g++ libsqlite3-dev (Debian), then in the checkout again: pip install ."
)


class NoRecorderError(UsageError):
    """This installation has no recorder; the message has, on one line, the reason and the remedy.

    Args:
        why: "not built", with the reason if it is known.
        fix: the remedy.
    """

    def __init__(self, why: str, fix: str = _HOW) -> None:
        super().__init__(f"the recorder was {why}; to add it: {fix}")
        self.why, self.fix = why, fix


class CStatus(ctypes.Structure):
    """`rocpd_status_t` of rocpd/recorder.h."""

    _fields_ = (
        ("recording", ctypes.c_int),
        ("failed", ctypes.c_int),
        ("closed", ctypes.c_int),
        ("written", ctypes.c_uint64),
        ("lost", ctypes.c_uint64),
        ("file", ctypes.c_char * 1024),
    )


def find(name: str, environ: Mapping[str, str] | None = None) -> Path:
    """Return the path of the library `name`.

    Searches `$ROCPD_TOOL_DIR`, this package, the build folder of this checkout, the folder of `make install-tool`, and
    the usual folders.

    Raises:
        NoRecorderError: it is in none of them.
    """
    if not sys.platform.startswith("linux"):
        raise NoRecorderError("not built: it is for Linux", "record there; files can be read anywhere")
    for folder in _folders(os.environ if environ is None else environ):
        path = folder / name
        if path.is_file():
            return path.resolve()
    raise NoRecorderError(_why_not_built())


def _why_not_built() -> str:
    reason = _LIBRARIES / "not-built.txt"  # written by sdk_tool/wheel.py, as pip shows nothing of a build
    return f"not built: {reason.read_text(encoding='utf-8')}" if reason.is_file() else "not built"


def _folders(environ: Mapping[str, str]) -> list[Path]:
    folders = []
    if chosen := environ.get("ROCPD_TOOL_DIR"):
        folders += [Path(chosen), Path(chosen) / "lib", Path(chosen) / "lib" / "rocpd"]
    folders += [_LIBRARIES, _CHECKOUT / "build" / "lib"]
    pointer = Path(sys.prefix) / "share" / "rocpd" / "tool-dir"  # written by make install-tool
    if pointer.is_file():
        folders.append(Path(pointer.read_text(encoding="utf-8").strip()))
    of_user = home()
    prefixes = [Path(sys.prefix), *([of_user / ".local"] if of_user else []), Path("/usr/local"), Path("/usr")]
    return folders + [prefix / "lib" / "rocpd" for prefix in prefixes]


def loaded() -> Path | None:
    """Return the path of the recorder that this process has already loaded (preloaded, or by a tool), or None.

    A second copy of the library would be a second recorder with a second file.
    """
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    mapped = re.search(rf"/.*/{re.escape(RECORDER)}$", maps, re.M)  # a folder's name may hold blanks
    return Path(mapped[0]) if mapped else None


@functools.cache
def load() -> ctypes.PyDLL:
    """Load the recorder, or return the loaded one.

    Calls keep the interpreter's lock (PyDLL): releasing it costs more than recording an event. Only `rocpd_flush`,
    which waits, is called through `waiting`.

    Raises:
        UsageError: the library is missing, or does not load.
    """
    return _open(ctypes.PyDLL)


@functools.cache
def waiting() -> ctypes.CDLL:
    """Return the recorder for calls that wait: they let other Python threads run."""
    return _open(ctypes.CDLL)


def _open(kind: type[Library]) -> Library:
    path = loaded() or find(RECORDER)
    try:
        library = kind(str(path))
    except OSError as error:
        raise UsageError(f"{path}: does not load: {error}", _HOW) from error
    text = [ctypes.c_char_p, ctypes.c_size_t]
    for name in ("rocpd_range_push", "rocpd_mark", "rocpd_name_thread"):
        getattr(library, name).argtypes = text
    library.rocpd_correlate.argtypes = [ctypes.c_uint64]
    library.rocpd_status.argtypes = [ctypes.POINTER(CStatus)]
    library.rocpd_finalize.restype = None
    library.rocpd_name_thread.restype = None
    return library


SDK = "librocprofiler-sdk.so"
SDK_ROCTX = "librocprofiler-sdk-roctx.so"
SMI = "libamd_smi.so"

_ANY = Path("/opt")
_LOADED_LINE = re.compile(r"^\s*(\S+) .* => (\S+)$", re.M)


def find_rocm(name: str, environ: Mapping[str, str]) -> Path | None:
    """Return the newest file of a library, such as `librocprofiler-sdk.so`, or None.

    Searches as the dynamic loader does, `$LD_LIBRARY_PATH` and its cache, and the folders of ROCm: `$ROCM_PATH`,
    `/opt/rocm`, `/opt/rocm-7.1.0`.
    """
    for folder in _rocm_folders(environ):
        if files := sorted(folder.glob(f"{name}*"), key=_version):
            return files[-1].resolve()
    cached = [Path(path) for soname, path in _cached() if soname == name or soname.startswith(f"{name}.")]
    return max(cached, key=_version).resolve() if cached else None


def version_of(library: Path) -> str:
    """Return the version in the name of a library's file, empty if there is none.

    >>> version_of(Path("librocprofiler-sdk.so.1.0.0"))
    '1.0.0'
    """
    return library.name.partition(".so.")[2]


def _rocm_folders(environ: Mapping[str, str]) -> Iterator[Path]:
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
        return []  # musl, NixOS: there is no cache
    return _LOADED_LINE.findall(os.fsdecode(done.stdout))


def _version(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", str(path))]
