"""What processes do, as Linux says it: those below one, which files they read, whether one still runs."""

from __future__ import annotations

import contextlib
from pathlib import Path


def children(pid: int) -> list[int]:
    """Return the processes that a process started."""
    children: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread that started it is gone: another one is its parent
            children += map(int, path.read_text().split())
    return children


def reads(pid: int, folder: Path) -> bool:
    """Whether a process, or one that it started, has a file of a folder open."""
    for member in (pid, *children(pid)):
        try:
            if any(str(link.readlink()).startswith(str(folder)) for link in Path(f"/proc/{member}/fd").iterdir()):
                return True
        except OSError:  # it has closed something meanwhile, or is gone
            continue
    return False


def runs(pid: int) -> bool:
    """Whether a process has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
