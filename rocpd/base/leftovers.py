"""Temporary files and folders: names that show whether their process was killed, their removal, and the replacement of
one folder by another.

A name holds the process that made it. Removes nothing of another process that may be alive: on another machine, in
another container, or with a number that is in use.
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
"""File or folder that was made -> number of the process that made it; forked children inherit this."""

_swept: set[Path] = set()
"""Folders that this process, or the one that it was forked from, has swept: a cache has a folder for each rank."""


def temporary_path(folder: Path) -> Path:
    """Return a new path for a temporary file or folder of this process."""
    path = folder / f"{PREFIX}{_machine()}-{_process(process.number())}-{os.urandom(6).hex()}{ENDING}"
    _made[path] = process.number()
    return path


def is_temporary(path: Path) -> bool:
    """Whether a path lies in a temporary folder, whose files are parts of an incomplete output."""
    return any(_NAME.fullmatch(part) for part in path.parts)


def missing_folders(folder: Path) -> list[Path]:
    """Return the missing folders for a folder of outputs, itself included, innermost first."""
    folders = [path for path in (folder, *folder.parents) if not path.exists()]
    _made.update(dict.fromkeys(reversed(folders), process.number()))
    return folders


def make_folder(parent: Path) -> Path:
    """Make a temporary folder that only this user can read; first remove those of killed processes beside it."""
    if parent not in _swept:
        sweep(parent)
        _swept.add(parent)
    folder = temporary_path(parent)
    folder.mkdir(mode=0o700)
    return folder


def sweep(folder: Path) -> None:
    """Remove files in a folder left by ended processes of this machine, as far as they can be removed."""
    with suppress(OSError):
        for name in os.listdir(folder):  # noqa: PTH208 (a cache has thousands)
            match = _NAME.fullmatch(name) if name.startswith(PREFIX) else None
            if match and match["machine"] == _machine() and not _is_alive(match["process"]):
                remove(folder / name)


def remove(path: Path) -> None:
    """Remove a temporary folder with its content, or a temporary file with SQLite's files beside it, if it exists.

    In a forked child, files and folders made by its parent stay.
    """
    if _made.get(path, process.number()) == process.number():
        _remove(path)
        _made.pop(path, None)


def replace_folder(new: Path, path: Path) -> Path:
    """Put a temporary folder in the place of another, and return the new path of the old one, for `remove`.

    Where the file system can exchange the two (local ones on Linux), one of them has the name at any moment. Elsewhere
    the old folder is missing for a moment; if the process is killed then, `sweep` puts it back.
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
"""File in a folder that was put aside: the name that it gets back unless another folder has taken it."""

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # of Linux


def _exchange(first: Path, second: Path) -> bool:
    """Exchange two names in one step; return whether that was possible."""
    if sys.platform != "linux":
        return False
    import ctypes

    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    names = os.fsencode(first), os.fsencode(second)
    return rename is not None and rename(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove folders that got no output, innermost first."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()
            _made.pop(folder, None)


def remove_all() -> None:
    """Remove all files and folders that this process has made and not removed.

    A signal may raise its exception right after one was made, before a `with` or `try` block protects it.
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
        except OSError:  # it has folders; only then shutil is imported, as Python may be about to end
            import shutil

            shutil.rmtree(path, ignore_errors=True)
        return
    for ending in ("", *JOURNALS):
        with suppress(OSError):
            Path(f"{path}{ending}").unlink(missing_ok=True)


def _put_back(path: Path) -> None:
    """Give a folder that `replace_folder` put aside its name back, unless the new folder has it."""
    with suppress(OSError, ValueError):
        home = path.with_name(os.fsdecode((path / HOME).read_bytes()))
        if not os.path.lexists(home):
            path.rename(home)
            (home / HOME).unlink()


@functools.cache
def _machine() -> str:
    """Return an id of boot and container, the same for all processes whose numbers compare."""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")
        return f"{boot}{Path('/proc/self/ns/pid').stat().st_ino:x}"
    return os.uname().nodename.encode().hex()


def _process(number: int) -> str:
    """Return a process's number and its start [clock ticks since boot], as numbers are reused."""
    with suppress(OSError):
        fields = Path(f"/proc/{number}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return f"{number}-{fields[19]}"
    return f"{number}-0"


def _is_alive(name: str) -> bool:
    """Whether a process runs; without /proc (macOS) any process with its number is taken for it."""
    number = int(name.partition("-")[0])
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except OSError:  # of another user
        pass
    return _process(number) == name
