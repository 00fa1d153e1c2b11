"""Finds the files that the user means: files, globs, folders, packages, or those in the working directory.

Never opens a database: `opening` decides how to, `identify` reads its content.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from rocpd.base import InputError, amount, frozen

Input: TypeAlias = str | os.PathLike[str]
FindForeign: TypeAlias = Callable[[Path], Sequence[Path]]
"""Returns the paths that importers can read in a folder without databases: the folder itself, or files in it."""

INDEX, INDEX_FOLDER = "index.yaml", "index"
"""In a package: the list of its files, and the folder of the columnar index, if one was built."""

_INDEX_ENDINGS = (".yaml", ".yml")
_FOREIGN = (".rpd", ".rpd.gz", ".trace.json", ".json.gz", ".sqlite")
"""Endings of traces of other profilers, for a note only: importers go by the content."""
_USUAL = (("merged.db",), ("*.db",), ("*/*_results.db", "pass_*/*/*_results.db"), ("rocpd-output-data/merged.db",))
"""Groups of patterns for the working folder: files that match the first group with matches are read."""
_FEW = 3
_NOTHING = "give files, folders or globs, set ROCPD_INPUT, or change to a folder that holds *.db files"


@frozen
class SourceFiles:
    """Files to open, in order, notes on how they were chosen, and the indexes of packages that name them."""

    paths: tuple[Path, ...]
    notes: tuple[str, ...] = ()
    indexes: tuple[Path, ...] = field(default=(), compare=False)


def find_sources(
    inputs: Input | Iterable[Input] | None = None, skip_bad: bool = False, find_foreign: FindForeign = lambda _: ()
) -> SourceFiles:
    """Return the files that the inputs stand for.

    Args:
        inputs: files, globs, folders (searched for `*.db`, `*/*.db` and `pass_*/*/*.db`), `*.rpdb` folders,
            `index.yaml` files. None or empty: `$ROCPD_INPUT` (several paths with `:`), else the files of the working
            directory.
        skip_bad: leave out, with a note, inputs that do not exist or hold no database.
        find_foreign: asked about folders that hold no database.

    Raises:
        InputError: a path does not exist, a glob or folder matches no database, or there is no input at all.
    """
    given = [inputs] if isinstance(inputs, (str, os.PathLike)) else inputs
    items = [os.fspath(item) for item in given or ()]
    if not items:
        return _default(find_foreign)
    paths: list[Path] = []
    notes: list[str] = []
    for item in items:
        try:
            with _as_input_error(item):
                files = _expand(item, find_foreign)
                paths += files
                notes += _left_out(Path(item), files)
        except InputError as error:
            if not skip_bad:
                raise
            notes.append(f"left out: {error.message}")
    with _as_input_error(items[0]):
        return SourceFiles(_distinct(paths), tuple(notes), _indexes(map(Path, items)))


def _default(find_foreign: FindForeign) -> SourceFiles:
    if variable := [item for item in os.environ.get("ROCPD_INPUT", "").split(os.pathsep) if item]:
        with _as_input_error("$ROCPD_INPUT"):
            paths = _distinct(path for item in variable for path in _expand(item, find_foreign))
        return SourceFiles(paths, (f"input: {_files(paths)} from $ROCPD_INPUT",), _indexes(map(Path, variable)))
    here = Path()
    packages = sorted(here.glob("*.rpdb"))
    if len(packages) == 1:
        paths = _expand_folder(packages[0], find_foreign)
        return SourceFiles(paths, (f"input: package {packages[0].name} ({_files(paths)})",), _indexes([packages[0]]))
    if (here / INDEX).is_file():
        paths = _expand_index(here / INDEX)
        return SourceFiles(paths, (f"input: index.yaml ({_files(paths)})",), _indexes([here]))
    for patterns in _USUAL:
        paths = tuple(path for pattern in patterns for path in sorted(here.glob(pattern)) if path.is_file())
        if paths:
            return SourceFiles(paths, (f"input: {_names(paths)}",))
    raise InputError("no input: no *.rpdb, merged.db, *.db or HOST/PID_results.db in this folder", _NOTHING)


@contextlib.contextmanager
def _as_input_error(item: str) -> Iterator[None]:
    """Turn errors of the operating system (folders without rights, overlong names) into an `InputError`."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{error.filename or item}: cannot be read: {error.strerror or error}") from error


def _indexes(items: Iterable[Path]) -> tuple[Path, ...]:
    """Return the package indexes among the given paths, or in the given folders."""
    return tuple(
        index
        for item in items
        for index in (item, item / INDEX)
        if index.name.endswith(_INDEX_ENDINGS) and index.is_file()
    )


def _expand(item: str, find_foreign: FindForeign) -> tuple[Path, ...]:
    path = Path(item)
    if path.is_dir():
        return _expand_folder(path, find_foreign)
    if os.path.lexists(path):
        return _expand_index(path) if path.name.endswith(_INDEX_ENDINGS) else (path,)
    if any(letter in item for letter in "*?["):
        import glob

        matches = sorted(glob.glob(item, recursive=True))  # noqa: PTH207 (Path.glob refuses absolute patterns)
        if matches:
            return tuple(path for match in matches for path in _expand(match, find_foreign))
        raise InputError(f"{item}: matches no file", "check the pattern with ls")
    raise InputError(f"{item}: no such file", "check the spelling; folders and globs work too")


def _expand_folder(folder: Path, find_foreign: FindForeign) -> tuple[Path, ...]:
    index = folder / INDEX
    if index.is_file():
        return _expand_index(index)
    try:
        paths = [path for pattern in ("*.db", "*/*.db", "pass_*/*/*.db") for path in sorted(folder.glob(pattern))]
    except OSError as error:
        raise InputError(f"{folder}: cannot be listed: {error.strerror}") from error
    files = tuple(path for path in paths if path.is_file()) or tuple(find_foreign(folder))
    if not files:
        hint = "rocprofv3 writes HOST/PID_results.db below its -d; of other profilers name the trace, or its own folder"
        raise InputError(f"{folder}: a folder without *.db files", hint)
    return files


def _left_out(folder: Path, files: Sequence[Path]) -> Iterator[str]:
    """Yield a note if a folder with databases also holds files that look like traces of other profilers."""
    if folder.is_dir() and any(path.name.endswith(".db") for path in files):
        others = [path.name for path in sorted(folder.iterdir()) if path.name.endswith(_FOREIGN) and path.is_file()]
        if others:
            names = ", ".join(others[:_FEW]) + (" …" if len(others) > _FEW else "")
            yield f"{folder}: only its *.db files are read; {len(others)} of other profilers left out: {names}"


def _expand_index(index: Path) -> tuple[Path, ...]:
    import yaml

    class Plain(yaml.SafeLoader):
        """Reads no aliases, by which 400 bytes can stand for millions of names."""

        def compose_node(self, parent: Any, position: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("an alias")
            return super().compose_node(parent, position)

    try:
        content: Any = yaml.load(index.read_text(encoding="utf-8"), Plain)
        package = content["rocprofiler-sdk"]["rocpd"]
        names: Sequence[str] = [str(name) for name in package["files"]]
        base = index.parent / str(package.get("path") or ".")
    except (OSError, ValueError, RecursionError, yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{index}: not a package index ({type(error).__name__})",
            "it should hold rocprofiler-sdk: {rocpd: {path: ., files: [...]}}",
        ) from error
    paths = tuple(base / name for name in names)
    for path in paths:
        if not path.is_file():
            raise InputError(f"{path}: listed in {index} but not there", "restore the file or correct the index")
    if not paths:
        raise InputError(f"{index}: lists no files")
    return paths


def _distinct(paths: Iterable[Path]) -> tuple[Path, ...]:
    return tuple({os.path.abspath(path): path for path in paths}.values())  # noqa: PTH100 (symlinks stay as given)


def _names(paths: Sequence[Path]) -> str:
    if len(paths) <= 3:
        return ", ".join(str(path) for path in paths)
    return f"{len(paths)} files, {paths[0]} … {paths[-1]}"


class Foreign(Protocol):
    """Turns files of other profilers into rocpd files."""

    def inside(self, folder: Path) -> Sequence[Path]:
        """Return the paths in a folder that can be imported: the folder itself, or files in it.

        Raises:
            OSError: the folder cannot be listed.
        """

    def imported(
        self, paths: Sequence[Path], jobs: int | None, on_note: Callable[[str], None]
    ) -> Mapping[Path, Sequence[Path] | InputError]:
        """Import the files of known profilers.

        Args:
            paths: files and folders that are no rocpd databases.
            jobs: processes; None: one per core.
            on_note: called with each line that the user should know.

        Returns:
            path -> its rocpd files, or its error; paths that no importer knows are left out.
        """


def _files(paths: Sequence[Path]) -> str:
    return amount(len(paths), "file")
