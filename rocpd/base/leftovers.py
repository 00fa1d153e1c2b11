"""Temporary files and folders: their names, by which those of a killed process are known, their removal, and how
a folder takes the place of another.

A name holds the process that made it. Removes nothing of another process that may live: on another machine, in another
container, or with this number.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from rocpd.base import process
from rocpd.base.identity import JOURNALS

PREFIX, ENDING = ".rocpd-", ".partial"
_NAME = re.compile(re.escape(PREFIX) + r"(?P<machine>[0-9a-f]+)-(?P<process>\d+-\d+)-[0-9a-f]{12}" + re.escape(ENDING))

_made: dict[Path, int] = {}
"""Files and folders that were made, and the number of the process that did: forked children know."""

_swept: set[Path] = set()
"""Folders that this process, or one that it was forked from, has swept: a cache has a folder for each rank."""


def temporary_path(folder: Path) -> Path:
    """Return a new path for a temporary file or folder of this process."""
    path = folder / f"{PREFIX}{_machine()}-{_process(process.number())}-{os.urandom(6).hex()}{ENDING}"
    _made[path] = process.number()
    return path


def is_temporary(path: Path) -> bool:
    """Whether a path lies in a temporary folder, whose files are parts of something that is not complete."""
    return any(_NAME.fullmatch(part) for part in path.parts)


def missing_folders(folder: Path) -> list[Path]:
    """Return what has to be made for a folder of outputs, itself included, innermost first."""
    folders = [path for path in (folder, *folder.parents) if not path.exists()]
    _made.update(dict.fromkeys(reversed(folders), process.number()))
    return folders


def make_folder(parent: Path) -> Path:
    """Make a temporary folder that only this user can read, where those of killed processes are removed at first."""
    if parent not in _swept:
        sweep(parent)
        _swept.add(parent)
    folder = temporary_path(parent)
    folder.mkdir(mode=0o700)
    return folder


def sweep(folder: Path) -> None:
    """Remove what processes of this machine that no longer run have left in a folder; what can't be removed stays."""
    with suppress(OSError):
        for name in os.listdir(folder):  # noqa: PTH208 (a cache has thousands)
            match = _NAME.fullmatch(name) if name.startswith(PREFIX) else None
            if match and match["machine"] == _machine() and not _is_alive(match["process"]):
                remove(folder / name)


def remove(path: Path) -> None:
    """Remove a temporary folder with what is in it, or a temporary file with SQLite's files beside it, if it exists.

    What a forked child finds made by its parent stays.
    """
    if _made.get(path, process.number()) == process.number():
        _remove(path)
        _made.pop(path, None)


def replace_folder(new: Path, path: Path) -> Path:
    """Put a temporary folder in the place of another, and return where that is now: `remove` removes it.

    Where the file system can exchange the two (local ones on Linux), the name stands for one of them at any moment.
    Elsewhere the old folder is away for a moment; if the process is killed then, `sweep` puts it back.
    """
    if _exchange(new, path):
        return new
    aside = temporary_path(path.parent)
    try:
        (path / HOME).write_bytes(os.fsencode(path.name))
        path.rename(aside)
        new.rename(path)
    except BaseException:
        _put_back(aside)
        raise
    return aside


HOME = ".rocpd-home"
"""File in a folder that is put aside: the name that it gets back unless another folder takes it."""

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # of Linux


def _exchange(first: Path, second: Path) -> bool:
    """Exchange two names in one step; return whether that is possible here."""
    if sys.platform != "linux":
        return False
    import ctypes

    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    names = os.fsencode(first), os.fsencode(second)
    return rename is not None and rename(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove folders in which no output came to be, innermost first."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()
            _made.pop(folder, None)


def remove_all() -> None:
    """Remove what this process has made and not removed.

    A signal may raise its exception right after something was made, before a `with` or `try` knows of it.
    """
    for path, maker in reversed(list(_made.items())):
        if _NAME.fullmatch(path.name):
            remove(path)
        elif maker == process.number():
            remove_empty([path])


def _remove(path: Path) -> None:
    _put_back(path)
    if path.is_dir() and not path.is_symlink():
        try:
            for file in path.iterdir():
                file.unlink()
            path.rmdir()
        except OSError:  # it has folders; else nothing is imported, as Python may be about to end
            import shutil

            shutil.rmtree(path, ignore_errors=True)
        return
    for ending in ("", *JOURNALS):
        with suppress(OSError):
            Path(f"{path}{ending}").unlink(missing_ok=True)


def _put_back(path: Path) -> None:
    """Give a folder that `replace_folder` has put aside its name back, unless the new one has it."""
    with suppress(OSError, ValueError):
        home = path.with_name(os.fsdecode((path / HOME).read_bytes()))
        if not os.path.lexists(home):
            path.rename(home)
            (home / HOME).unlink()


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


def _is_alive(name: str) -> bool:
    """Whether a process runs; without /proc (macOS) any process of its number is taken for it."""
    number = int(name.partition("-")[0])
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except OSError:  # of another user
        pass
    return _process(number) == name
