"""Runs the probe under the recorder and looks at what it left."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.record.build import SOURCE, Build
from tests.waiting import until

NAMES_STATIC = b".symtab" in Path("/proc/self/exe").read_bytes()
"""Whether Python's executable names its static functions: distributions strip theirs."""

CODE = 7
"""What the probe exits with when its scenario ran to the end."""


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Return an environment in which the recorder writes to `folder`."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("ROCPD_", "OMPI_", "PMI_", "SLURM_"))}
    return inherited | {"ROCPD_OUTPUT_PATH": str(folder), "ROCPD_CONTROL": "0"} | more


def probe(
    built: Build, folder: Path, *arguments: str, env: Mapping[str, str] | None = None, wrap: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    """Run a scenario to its end."""
    command = [*wrap, str(built.program("probe")), *arguments]
    return subprocess.run(command, env=environment(folder, **(env or {})), capture_output=True, text=True, check=False)


def probe_until(
    built: Build, folder: Path, enough: Callable[[Path], bool], *arguments: str, env: Mapping[str, str]
) -> Path:
    """Run a scenario until its file holds enough, end it by a signal, and return the file."""
    settings = environment(folder, ROCPD_FLUSH_MS="20", **env)
    process = subprocess.Popen(
        [str(built.program("probe")), *arguments], env=settings, stderr=subprocess.PIPE, text=True
    )
    try:
        until(lambda: any(map(enough, folder.glob("*.db"))), "the file holds what was waited for")
    finally:
        process.terminate()
        _, stderr = process.communicate()
    assert (process.returncode, stderr) == (-signal.SIGTERM, "")
    return only(folder)


def compiled_shim(folder: Path, name: str) -> str:
    """Compile a library that stands before some system calls, to be preloaded."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    library = folder / f"{name}.so"
    subprocess.run(["cc", "-shared", "-fPIC", str(SOURCE / "tests" / f"{name}.c"), "-o", str(library)], check=True)
    return str(library)


def client(
    built: Build, folder: Path, *arguments: str, threads: int = 0, rounds: int = 1, **env: str
) -> subprocess.CompletedProcess[str]:
    """Run a scenario of the stand-in SDK with the client preloaded."""
    preload = {"LD_PRELOAD": str(built.lib / "librocpd-tool.so"), "ROCPD_TRACE": "hip,hsa,marker,kernel,memcpy,alloc,"
               "scratch,rccl", "ROCPD_TOOL_WARNED": "1"}  # fmt: skip
    return subprocess.run(
        [str(built.program("client_probe")), str(threads), str(rounds), *arguments],
        env=environment(folder, **(preload | env)), capture_output=True, text=True, check=False,
    )  # fmt: skip


def only(folder: Path) -> Path:
    """Return the one file of a folder, which was closed as it should be."""
    (file,) = databases(folder)
    check_closed(file)
    return file


def databases(folder: Path) -> list[Path]:
    """Return the files of a folder, after making sure that nothing lies beside them."""
    files = sorted(folder.iterdir())
    assert [f.name for f in files if f.suffix != ".db"] == []
    return files


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """Ask one file; its plain views stand for the suffixed tables."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(10_000)  # the recorder may be writing
    try:
        return list(connection.execute(sql))
    finally:
        connection.close()


def metadata(path: Path) -> dict[str, str]:
    """Return the metadata of one file."""
    return dict(rows(path, "SELECT tag, value FROM rocpd_metadata"))


def check_sound(path: Path) -> None:
    """Make sure that SQLite finds nothing wrong with a file."""
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]
    assert rows(path, "PRAGMA foreign_key_check") == []
    assert rows(path, "SELECT id FROM rocpd_event GROUP BY id HAVING COUNT(*) > 1") == []


def check_closed(path: Path) -> None:
    """Make sure that a file was closed as it should be."""
    check_sound(path)
    assert rows(path, "PRAGMA journal_mode") == [("delete",)]
    assert metadata(path)["recorder_closed"] == "1"
    assert rows(path, "SELECT fini >= init AND init >= start FROM rocpd_info_process") == [(1,)]


def count(path: Path, table: str = "rocpd_region") -> int:
    """Count the rows of a table."""
    return int(rows(path, f"SELECT COUNT(*) FROM {table}")[0][0])
