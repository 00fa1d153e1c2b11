"""Owns the names of temporary files and folders, by which those of a killed process are known and removed.

A name holds the process that made it. Removes nothing of a process that may live: on another machine, in another
container, or with this number.
"""

from __future__ import annotations

import functools
import os
import re
from contextlib import suppress
from pathlib import Path

from rocpd.evidence import JOURNALS

PREFIX, ENDING = ".rocpd-", ".partial"
_NAME = re.compile(re.escape(PREFIX) + r"(?P<machine>[0-9a-f]+)-(?P<process>\d+-\d+)-[0-9a-f]{12}" + re.escape(ENDING))


def temporary_name() -> str:
    """Return a new name for a temporary file or folder of this process."""
    return f"{PREFIX}{_machine()}-{_process(os.getpid())}-{os.urandom(6).hex()}{ENDING}"


def make_folder(parent: Path) -> Path:
    """Make a temporary folder that only this user can read, where those of killed processes are removed first."""
    sweep(parent)
    folder = parent / temporary_name()
    folder.mkdir(mode=0o700)
    return folder


def sweep(folder: Path) -> None:
    """Remove what processes of this machine that no longer run have left in a folder; what can't be removed stays."""
    with suppress(OSError):
        for path in folder.iterdir():
            match = _NAME.fullmatch(path.name)
            if match and match["machine"] == _machine() and not _is_alive(match["process"]):
                remove(path)


def remove(path: Path) -> None:
    """Remove a temporary folder with what is in it, or a temporary file with SQLite's files beside it, if it exists."""
    if path.is_dir() and not path.is_symlink():
        try:
            path.rmdir()  # empty, where the work is complete
        except OSError:
            import shutil

            shutil.rmtree(path, ignore_errors=True)
        return
    for ending in ("", *JOURNALS):
        with suppress(OSError):
            Path(f"{path}{ending}").unlink(missing_ok=True)


@functools.cache
def _machine() -> str:
    """Return what is the same for all processes whose numbers compare: boot and container."""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")
        return f"{boot}{Path('/proc/self/ns/pid').stat().st_ino:x}"
    return os.uname().nodename.encode().hex()


def _process(number: int) -> str:
    """Return a process's number and its start [clock ticks since boot]: numbers are used again."""
    with suppress(OSError):
        fields = Path(f"/proc/{number}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return f"{number}-{fields[19]}"
    return f"{number}-0"


def _is_alive(process: str) -> bool:
    number = int(process.partition("-")[0])
    return Path(f"/proc/{number}").exists() and _process(number) == process
