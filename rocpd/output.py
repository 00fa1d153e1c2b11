"""Where results go, and how they reach the disk: under a temporary name, renamed when complete.

Never replaces an existing file unless `force` is set, never leaves a partial one.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rocpd.errors import OutputError


@dataclass(frozen=True)
class Destination:
    """Where outputs go.

    Args:
        folder: of the outputs; it need not exist.
        name: base name, without ending.
        ending: of the name that the user gave, if it is one of the output's: then that name is the output's own.
    """

    folder: Path
    name: str
    ending: str = ""

    def path(self, usual: str = "") -> Path:
        """Return the path of an output: as the user named it, or else the base name and `usual`, such as `.csv`."""
        return self.folder / f"{self.name}{self.ending or usual}"


def destination(name: str | None, folder: Path | None, endings: Iterable[str], default: str = "out") -> Destination:
    """Return where outputs go.

    Args:
        name: a base name; a path (with a `/`), or a name with one of `endings`, is relative to the working directory if
            there is no `folder`. None: `$ROCPD_OUTPUT_NAME`, else `default`.
        folder: of the outputs; None: `$ROCPD_OUTPUT_PATH`, else `rocpd-output-data`.
        endings: those that the output can have.
        default: base name.

    >>> destination("sub/x.csv", None, [".csv"])
    Destination(folder=PosixPath('sub'), name='x', ending='.csv')
    >>> destination("x.csv", Path("out"), [".json"])
    Destination(folder=PosixPath('out'), name='x.csv', ending='')
    """
    full_name = name or os.environ.get("ROCPD_OUTPUT_NAME") or default
    matching = [ending for ending in endings if full_name.endswith(ending) and Path(full_name).name != ending]
    ending = max(matching, key=len, default="")
    is_path = name is not None and bool(ending or "/" in full_name)
    usual_folder = Path() if is_path else Path(os.environ.get("ROCPD_OUTPUT_PATH") or "rocpd-output-data")
    path = (folder or usual_folder) / full_name.removesuffix(ending)
    return Destination(path.parent, path.name, ending)


def check_free(path: Path, force: bool) -> None:
    """Refuse early if `path` exists and may not be replaced.

    Raises:
        OutputError: `path` exists without `force`, or is a folder.
    """
    if path.is_dir():
        raise OutputError(f"{path}: is a folder, not a file", "choose another name with -o")
    if not force and os.path.lexists(path):
        raise OutputError(f"{path}: exists", "give --force to replace it, or another name with -o")


@contextlib.contextmanager
def complete_or_nothing(path: Path, force: bool = False) -> Iterator[Path]:
    """Yield a temporary path in the folder of `path`; rename it to `path` when the block succeeds.

    When the block raises (Ctrl-C included), the temporary file, SQLite's journal beside it and
    the folders made for it are removed.

    Args:
        path: final name; missing folders are made.
        force: replace an existing file.

    Raises:
        OutputError: the file exists, the disk is full, or the folder cannot be written.
    """
    check_free(path, force)
    new_folders = [p for p in (path.parent, *path.parent.parents) if not p.exists()]
    # No part of the final name: 200 characters plus an ending may exceed what a folder takes.
    temporary = path.parent / f".rocpd-{os.urandom(6).hex()}.partial"
    done = False
    try:
        with as_output_error(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.touch(exist_ok=False)  # a folder that cannot be written fails here, in the same words for all
            yield temporary
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
            check_free(path, force)
            temporary.replace(path)
            done = True
    finally:
        if not done:
            for ending in ("", "-journal", "-wal", "-shm"):
                Path(f"{temporary}{ending}").unlink(missing_ok=True)
            for folder in new_folders:
                with contextlib.suppress(OSError):
                    folder.rmdir()


@contextlib.contextmanager
def folder_complete_or_nothing(path: Path, force: bool = False) -> Iterator[Path]:
    """Yield a temporary folder beside `path`; rename it to `path` when the block succeeds.

    When the block raises (Ctrl-C included), it is removed, and so are the folders made for it.

    Args:
        path: final name; missing parents are made.
        force: replace an existing folder.

    Raises:
        OutputError: `path` exists, is a file, the disk is full, or the folder cannot be written.
    """
    _check_folder_free(path, force)
    new_folders = [p for p in (path.parent, *path.parent.parents) if not p.exists()]
    temporary = path.parent / f".rocpd-{os.urandom(6).hex()}.partial"
    old = temporary.with_suffix(".old")
    done = False
    try:
        with as_output_error(path):
            temporary.mkdir(parents=True)
            yield temporary
            for file in (p for p in temporary.rglob("*") if p.is_file()):
                with file.open("rb") as opened:
                    os.fsync(opened.fileno())
            _check_folder_free(path, force)
            if path.exists():
                path.rename(old)
            temporary.rename(path)
            done = True
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        if done:
            shutil.rmtree(old, ignore_errors=True)
        elif old.exists():
            old.rename(path)
        if not done:
            for folder in new_folders:
                with contextlib.suppress(OSError):
                    folder.rmdir()


def _check_folder_free(path: Path, force: bool) -> None:
    if os.path.lexists(path) and not path.is_dir():
        raise OutputError(f"{path}: is a file, not a folder", "choose another name with -o")
    if not force and path.exists():
        raise OutputError(f"{path}: exists", "give --force to replace it, or another name with -o")


@contextlib.contextmanager
def as_output_error(path: Path) -> Iterator[None]:
    """Turn the operating system's errors of a failed write into an `OutputError` that names `path`.

    A broken pipe passes unchanged: the reader of stdout went away, which is not our error.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(f"{path}: cannot be written: {reason}", "choose another folder with -d") from error
