"""Files of other profilers, imported once: commands read them as if they were rocpd files.

The cache is `$XDG_CACHE_HOME/rocpd/import` (else `~/.cache/rocpd/import`), readable for its user alone. An entry is a
folder named by the identity of the input and the version of its importer; it appears when it is complete, so a killed
import leaves none and two at once leave one. When all entries take more than `$ROCPD_CACHE_SIZE` (20G), those that were
used last the longest time ago go, but none that was used within a day.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from rocpd import leftovers
from rocpd.cache import cache_root, most_bytes
from rocpd.errors import InputError, OutputError
from rocpd.federate.open.opening import as_input_error
from rocpd.frozen import frozen
from rocpd.identity import identity_of
from rocpd.importers import Importer
from rocpd.importers.find import importer_of, inputs_in
from rocpd.importers.run import Imported, ImportTask, import_all, loss_lines
from rocpd.importers.target import name_of
from rocpd.output import as_output_error
from rocpd.schema.versions import LATEST
from rocpd.types import Progress

_MANIFEST = "import.json"
_DAY_S = 86_400


@frozen
class CacheEntry:
    """One input in the cache.

    Args:
        folder: with the files.
        source: the input, as it was called.
        importer: name of its importer.
        files: the rocpd files.
        size: of the files [bytes].
        used: when it was last used [s since 1970].
    """

    folder: Path
    source: str
    importer: str
    files: tuple[Path, ...]
    size: int
    used: float


class CachedImports:
    """Imports what commands are given, once; see `rocpd.federate.open.foreign.Foreign`.

    Args:
        progress: called with (bytes read, bytes in all).
    """

    def __init__(self, progress: Progress | None = None) -> None:
        self._progress = progress

    def inside(self, folder: Path) -> Sequence[Path]:
        """Return what in a folder can be imported."""
        return inputs_in(folder)

    def imported(
        self, paths: Sequence[Path], jobs: int | None, on_note: Callable[[str], None]
    ) -> Mapping[Path, Sequence[Path] | InputError]:
        """Return path -> its rocpd files, or what is wrong with it; paths that no importer knows are left out."""
        known: dict[Path, Importer] = {}
        for path in paths:
            with as_input_error(path):
                if importer := importer_of(path):
                    known[path] = importer
        answers: dict[Path, Sequence[Path] | InputError] = {}
        for path, importer in known.items():
            if entry := _read_entry(_entry_folder(path, importer)):
                _touch(entry.folder)
                answers[path] = entry.files
        missing = {path: importer for path, importer in known.items() if path not in answers}
        if missing:
            answers |= self._import_missing(missing, jobs, on_note)
        return answers

    def _import_missing(
        self, inputs: Mapping[Path, Importer], jobs: int | None, on_note: Callable[[str], None]
    ) -> Mapping[Path, Sequence[Path] | InputError]:
        try:
            root = cache_folder()
            answers = self._import_into(root, inputs, jobs, on_note)
        except OutputError as error:
            on_note(f"cache not used, imported for this command alone: {error.message}")
            return self._import_into(_temporary_root(), inputs, jobs, on_note)
        _evict()
        return answers

    def _import_into(
        self, root: Path, inputs: Mapping[Path, Importer], jobs: int | None, on_note: Callable[[str], None]
    ) -> Mapping[Path, Sequence[Path] | InputError]:
        start = time.monotonic()
        answers: dict[Path, Sequence[Path] | InputError] = {}
        good: dict[Path, Imported] = {}
        with contextlib.ExitStack() as undo:
            tasks = []
            for path, importer in inputs.items():
                folder = _new_folder(root)
                undo.callback(leftovers.remove, folder)
                tasks.append(ImportTask(path, importer, folder, name_of(path)))
            for task, answer in zip(tasks, import_all(tasks, jobs, self._progress), strict=True):
                if isinstance(answer, InputError):
                    answers[task.path] = answer
                    continue
                good[task.path] = answer
                answers[task.path] = _place(task, answer, root / _key(task.path, task.importer)).files
        if good:
            _tell(good, root, time.monotonic() - start, on_note)
        return answers


def entries() -> Iterator[CacheEntry]:
    """Yield what the cache holds, what was used last first.

    Raises:
        OutputError: there is no cache folder, or it cannot be read.
    """
    root = _root()
    with as_output_error(root):
        folders = [path for path in root.iterdir() if path.is_dir()] if root.is_dir() else []
    entries = [entry for folder in folders if (entry := _read_entry(folder))]
    yield from sorted(entries, key=lambda entry: -entry.used)


def clear() -> int:
    """Remove all entries; return how many bytes that freed.

    Raises:
        OutputError: the folder cannot be read.
    """
    freed = 0
    for entry in list(entries()):
        leftovers.remove(entry.folder)
        freed += entry.size
    leftovers.sweep(_root())
    return freed


def is_cached(path: Path) -> bool:
    """Whether a file lies in the cache."""
    try:
        return path.is_relative_to(_root())
    except OutputError:
        return False


def cache_folder() -> Path:
    """Return the folder of all entries, made if needed.

    Raises:
        OutputError: it cannot be made.
    """
    root = _root()
    with as_output_error(root):
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
    return root


def _root() -> Path:
    return cache_root("import")


def _entry_folder(path: Path, importer: Importer) -> Path | None:
    with contextlib.suppress(OutputError):
        return _root() / _key(path, importer)
    return None


def _key(path: Path, importer: Importer) -> str:
    """Return the name of the entry of an input. The name of the input counts: files and hosts are called by it."""
    with as_input_error(path):
        words = (identity_of(path), path.name, importer.name, str(importer.version), LATEST)
    return hashlib.blake2b("\0".join(words).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def _read_entry(folder: Path | None) -> CacheEntry | None:
    """Return a complete entry; None: there is none."""
    if folder is None:
        return None
    try:
        manifest = folder / _MANIFEST
        facts = json.loads(manifest.read_text(encoding="utf-8"))
        files = tuple(folder / str(name) for name in facts["files"])
        size = sum(file.stat().st_size for file in files)
        return CacheEntry(folder, str(facts["source"]), str(facts["importer"]), files, size, manifest.stat().st_mtime)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _place(task: ImportTask, imported: Imported, folder: Path) -> CacheEntry:
    """Make what was imported an entry; where another import was quicker, its entry stays."""
    facts = {
        "source": os.fsdecode(task.path.absolute()),
        "importer": task.importer.name,
        "files": imported.files,
        "losses": dict(imported.losses),
    }
    with as_output_error(folder):
        (task.folder / _MANIFEST).write_text(json.dumps(facts, indent=1), encoding="utf-8")
        for attempt in range(2):
            with contextlib.suppress(OSError):
                task.folder.rename(folder)
            if entry := _read_entry(folder):
                return entry
            if attempt == 0:
                leftovers.remove(folder)  # an entry that lost files
    raise OutputError(f"{folder}: cannot be written", "rocpd cache clear")


def _touch(folder: Path) -> None:
    with contextlib.suppress(OSError):
        os.utime(folder / _MANIFEST)


def _new_folder(root: Path) -> Path:
    with as_output_error(root):
        return leftovers.make_folder(root)


def _temporary_root() -> Path:
    """Return a folder that is removed when this process ends."""
    folder = _new_folder(Path(tempfile.gettempdir()))
    atexit.register(leftovers.remove, folder)
    return folder


def _evict() -> None:
    """Remove what was used last the longest time ago, until the rest is no larger than the limit."""
    left = most_bytes()
    for entry in entries():
        left -= entry.size
        if left < 0 and entry.used < time.time() - _DAY_S:
            leftovers.remove(entry.folder)


def _tell(imported: Mapping[Path, Imported], root: Path, seconds: float, on_note: Callable[[str], None]) -> None:
    """Report what was imported in one line, and one line for each kind of loss."""
    what = next(iter(imported)).name if len(imported) == 1 else f"{len(imported)} files"
    ranks = sum(len(one.files) for one in imported.values())
    on_note(f"{what}: imported into {root} ({ranks} rank{'' if ranks == 1 else 's'}, {seconds:.1f} s)")
    for line in loss_lines(imported):
        on_note(line)
