"""The place of results, and their way to the disk: under a temporary name, renamed when complete.

Never replaces an existing file unless `force` is set, and never an input; never leaves a partial file.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path

from rocpd.base import OutputError, UsageError, WriteError, bytes_text, evidence, frozen, leftovers

MANIFEST = ".rocpd-manifest.json"
"""The file in a folder output that lists the files written there by rocpd."""

finished: deque[Path] = deque(maxlen=1000)
"""The latest outputs of this process; an interrupted command reports that its completed outputs stay."""


@frozen
class Destination:
    """The place of outputs.

    Args:
        folder: folder of the outputs; it need not exist.
        name: base name, without ending.
        ending: ending of the user's name, if it is one of the output's: then the output has exactly that name.
    """

    folder: Path
    name: str
    ending: str = ""

    def path(self, usual: str = "") -> Path:
        """Return the path of an output: the user's name for it, else the base name and `usual`, such as `.csv`."""
        return self.folder / f"{self.name}{self.ending or usual}"


def destination(name: str | None, folder: Path | None, endings: Iterable[str], default: str = "out") -> Destination:
    """Return the place of outputs.

    Args:
        name: a base name; a path (with a `/`), or a name with one of `endings`, is relative to the working directory if
            there is no `folder`; a path that ends in `/`, `.` or `..` is a folder for an output named `default`. None:
            `$ROCPD_OUTPUT_NAME`, else `default`.
        folder: folder of the outputs; None: `$ROCPD_OUTPUT_PATH`, else `rocpd-output-data`.
        endings: possible endings of the output.
        default: default base name.

    >>> destination("sub/x.csv", None, [".csv"])
    Destination(folder=PosixPath('sub'), name='x', ending='.csv')
    >>> destination("x.csv", Path("out"), [".json"])
    Destination(folder=PosixPath('out'), name='x.csv', ending='')
    """
    full_name = name or os.environ.get("ROCPD_OUTPUT_NAME") or default
    if full_name.rpartition("/")[2] in ("", ".", ".."):
        full_name = os.path.join(full_name, default)  # noqa: PTH118 (keeps the slash of "./")
    matching = [ending for ending in endings if full_name.endswith(ending) and Path(full_name).name != ending]
    ending = max(matching, key=len, default="")
    is_path = name is not None and bool(ending or "/" in full_name)
    usual_folder = Path() if is_path else Path(os.environ.get("ROCPD_OUTPUT_PATH") or "rocpd-output-data")
    path = (folder or usual_folder) / full_name.removesuffix(ending)
    return Destination(path.parent, path.name, ending)


STDOUT = ("-", "/dev/stdout")


def check_not_stdout(flag: str, word: object) -> None:
    """Refuse stdout as the place of an output that consists of files.

    Raises:
        UsageError: the option asks for stdout.
    """
    if str(word) in STDOUT:
        where = "this output goes to files, not to stdout"
        raise UsageError(f"{flag} {word}: {where}", "name a file, or a folder (-d)")


def check_free(path: Path, force: bool) -> None:
    """Refuse early if `path` exists and may not be replaced.

    Raises:
        OutputError: `path` exists without `force`, is a folder, or is an input.
    """
    evidence.check_output(path)
    if path.is_dir():
        raise OutputError(f"{path}: is a folder, not a file", "choose another name")
    if not force and os.path.lexists(path):
        raise OutputError(f"{path}: exists", "give --force to replace it, or another name")
    evidence.check_replaceable(path)


def check_folder_free(path: Path, force: bool) -> None:
    """Refuse early if the folder `path` exists and may not be replaced.

    Raises:
        OutputError: `path` exists without `force`, is a file, or holds an input or a file that no earlier run wrote.
    """
    evidence.check_folder(path)
    if os.path.lexists(path) and not path.is_dir():
        raise OutputError(f"{path}: is a file, not a folder", "choose another name")
    if not force and path.exists():
        raise OutputError(f"{path}: exists", "give --force to replace it, or another name")
    if foreign := _foreign_file(path):
        holds = f"holds {foreign.relative_to(path)}, which rocpd did not write: it is not replaced"
        raise OutputError(f"{path}: {holds}", "choose another name, or remove the folder yourself")


@contextlib.contextmanager
def complete_or_nothing(path: Path, force: bool = False) -> Iterator[Path]:
    """Yield a temporary path in the folder of `path`; rename it to `path` when the block succeeds.

    When the block raises (Ctrl-C included), the temporary file, SQLite's journal beside it and
    the folders made for it are removed.

    Args:
        path: final name; missing folders are made.
        force: replace an existing file.

    Raises:
        OutputError: the file exists or is an input, the disk is full, or the folder cannot be written.
    """
    check_free(path, force)
    with _in_folder_of(path) as temporary:
        temporary.touch(exist_ok=False)  # a folder that cannot be written fails here, with the same message for all
        yield temporary
        _flush(temporary)
        check_free(path, force)
        temporary.replace(path)
        if not leftovers.is_temporary(path):
            finished.append(path)  # before slow steps, in which a command may be interrupted
            evidence.remember(path)


@contextlib.contextmanager
def folder_complete_or_nothing(path: Path, force: bool = False) -> Iterator[Path]:
    """Yield a temporary folder beside `path`; rename it to `path` when the block succeeds.

    When the block raises (Ctrl-C included), it is removed, and so are the folders made for it. A manifest in the folder
    names the written files: only these are ever replaced, by `leftovers.replace_folder`.

    Args:
        path: final name; missing parents are made.
        force: replace an existing folder.

    Raises:
        OutputError: `check_folder_free` refuses `path`, the disk is full, or the folder cannot be written.
    """
    check_folder_free(path, force)
    with _in_folder_of(path) as temporary:
        temporary.mkdir()
        yield temporary
        _write_manifest(temporary)
        check_folder_free(path, force)
        if path.exists():
            old = leftovers.replace_folder(temporary, path)
            if _foreign_file(old):  # a file that appeared meanwhile stays
                old.rename(temporary.with_suffix(".old"))
            leftovers.remove(old)
        else:
            temporary.rename(path)
        if not leftovers.is_temporary(path):
            finished.append(path)


@contextlib.contextmanager
def workplace(folder: Path) -> Iterator[Path]:
    """Make a temporary folder on the file system of `folder`, and its missing parents, all removed at the end."""
    with as_output_error(folder), _in_folder_of(folder / "any") as temporary:
        temporary.mkdir()
        yield temporary


@contextlib.contextmanager
def _in_folder_of(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside an output; at the end it is removed, and so are the folders made for it if they are
    empty.
    """
    new_folders = leftovers.missing_folders(path.parent)
    # Without the final name: its 200 characters plus an ending may be longer than the file system allows.
    temporary = leftovers.temporary_path(path.parent)
    try:
        with as_output_error(path, temporary):
            path.parent.mkdir(parents=True, exist_ok=True)
            leftovers.sweep(path.parent)
            yield temporary
    finally:
        leftovers.remove(temporary)
        leftovers.remove_empty(new_folders)


def _write_manifest(folder: Path) -> None:
    """Write a manifest of the files of a folder and their sizes [bytes], after flushing all of them to disk."""
    sizes = dict(_files(folder))
    for name in sizes:
        _flush(folder / name)
    (folder / MANIFEST).write_text(json.dumps({"writer": "rocpd", "files": sizes}, indent=1), encoding="utf-8")
    _flush(folder / MANIFEST)


def _foreign_file(folder: Path) -> Path | None:
    """Return a file of a folder that its manifest does not list, or lists with another size; None if there is none."""
    listed: dict[str, int] = {}
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        listed = dict(json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"])
    for name, size in _files(folder):
        if name not in (MANIFEST, leftovers.HOME) and listed.get(name) != size:
            return folder / name
    return None


def _files(folder: str | Path, above: str = "") -> Iterator[tuple[str, int]]:
    """Yield the names of all files and links in a folder and its folders, in order, and their sizes [bytes].

    It takes a third of the time of Path.rglob: an archive has two files for each line of a job.
    """
    with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError), os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_dir(follow_symlinks=False):
                yield from _files(entry.path, f"{above}{entry.name}/")
            else:
                yield above + entry.name, entry.stat(follow_symlinks=False).st_size


def _flush(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


@contextlib.contextmanager
def as_output_error(path: Path, temporary: Path | None = None) -> Iterator[None]:
    """Turn errors of a failed write into a `WriteError` that names `path` and, if space lacks, the space it needs.

    A broken pipe passes unchanged: the reader of stdout went away, which is no error of the output.

    Args:
        path: the output.
        temporary: the file or folder that becomes the output.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except (OSError, WriteError) as error:
        cause = error if isinstance(error, WriteError) else WriteError.of(error)
        raise _named(path, cause, size_of(temporary) if temporary else 0) from error


def _named(path: Path, cause: WriteError, size: int) -> WriteError:
    """Return an error with the name of the output; `size`: size of its part on disk [bytes]."""
    number, do, room = cause.number, "", 0
    if number == errno.EFBIG:
        do, room = "raise `ulimit -f`, or ", max(resource.getrlimit(resource.RLIMIT_FSIZE)[0], 0)
    elif number in (errno.ENOSPC, errno.EDQUOT):
        do, room = "free some space, or ", size + (_free(path.parent) if number == errno.ENOSPC else cause.written)
    needs = f"; it needs more than {bytes_text(room)}" if room else ""
    made = WriteError(f"{path}: cannot be written: {cause.reason}{needs}", f"{do}choose another folder with -d")
    made.reason, made.number, made.written = cause.reason, number, size + cause.written
    return made


def _free(folder: Path) -> int:
    """Return the free space in the file system of a folder [bytes]; 0 if unknown."""
    import shutil

    with contextlib.suppress(OSError):
        return shutil.disk_usage(folder).free
    return 0


def size_of(path: Path) -> int:
    """Return the size of a file, or of all files of a folder [bytes]; 0 if they were removed meanwhile."""
    try:
        if not path.is_dir():
            return path.stat().st_size
        with os.scandir(path) as entries:  # takes half the time of Path.rglob: caches have a folder for each rank
            return sum(size_of(Path(e.path)) if e.is_dir(follow_symlinks=False) else e.stat().st_size for e in entries)
    except OSError:
        return 0
