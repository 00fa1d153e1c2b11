"""Files of other profilers, imported once: commands read them as if they were rocpd files.

The cache is `$XDG_CACHE_HOME/rocpd/import` (else `~/.cache/rocpd/import`), readable for its user alone. An entry is a
folder named by the identity of the input and the version of its importer; `rocpd.base.cache` says when entries come
and go.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rocpd.base import leftovers
from rocpd.base.cache import Cache
from rocpd.base.errors import InputError, OutputError
from rocpd.base.frozen import frozen
from rocpd.base.home import cache_root
from rocpd.base.identity import identity_of
from rocpd.base.output import as_output_error
from rocpd.base.types import Progress
from rocpd.federate.open.opening import as_input_error
from rocpd.importers import Importer, importer_of, inputs_in
from rocpd.importers.run import Imported, ImportTask, import_all, loss_lines
from rocpd.importers.target import name_of
from rocpd.schema.versions import LATEST


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
    """Imports what commands are given, once; see `rocpd.federate.open.source.Foreign`.

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
            if entry := _known_entry(path, importer):
                answers[path] = entry.files
        missing = {path: importer for path, importer in known.items() if path not in answers}
        if missing:
            answers |= self._import_missing(missing, jobs, on_note)
        return answers

    def _import_missing(
        self, inputs: Mapping[Path, Importer], jobs: int | None, on_note: Callable[[str], None]
    ) -> Mapping[Path, Sequence[Path] | InputError]:
        try:
            cache = imports()
            cache.make()
            answers = self._import_into(cache, inputs, jobs, on_note)
        except OutputError as error:
            on_note(f"cache not used, imported for this command alone: {error.message}")
            return self._import_into(_imports_in(_temporary_root()), inputs, jobs, on_note)
        cache.evict()
        return answers

    def _import_into(
        self,
        cache: Cache[CacheEntry],
        inputs: Mapping[Path, Importer],
        jobs: int | None,
        on_note: Callable[[str], None],
    ) -> Mapping[Path, Sequence[Path] | InputError]:
        start = time.monotonic()
        answers: dict[Path, Sequence[Path] | InputError] = {}
        good: dict[Path, Imported] = {}
        with contextlib.ExitStack() as undo:
            tasks = []
            for path, importer in inputs.items():
                folder = _new_folder(cache.root)
                undo.callback(leftovers.remove, folder)
                tasks.append(ImportTask(path, importer, folder, name_of(path)))
            for task, answer in zip(tasks, import_all(tasks, jobs, self._progress), strict=True):
                if isinstance(answer, InputError):
                    answers[task.path] = answer
                    continue
                good[task.path] = answer
                answers[task.path] = _place(cache, task, answer).files
        if good:
            _tell(good, cache.root, time.monotonic() - start, on_note)
        return answers


def imports() -> Cache[CacheEntry]:
    """Return the cache of imports.

    Raises:
        OutputError: there is no folder for it.
    """
    return _imports_in(cache_root("import"))


def _imports_in(root: Path) -> Cache[CacheEntry]:
    return Cache(root, "import.json", _entry)


def is_cached(path: Path) -> bool:
    """Whether a file lies in the cache."""
    try:
        return path.is_relative_to(imports().root)
    except OutputError:
        return False


def _entry(folder: Path, facts: Mapping[str, Any], used: float) -> CacheEntry:
    files = tuple(folder / str(name) for name in facts["files"])
    size = sum(file.stat().st_size for file in files)
    return CacheEntry(folder, str(facts["source"]), str(facts["importer"]), files, size, used)


def _known_entry(path: Path, importer: Importer) -> CacheEntry | None:
    """Return the entry of an input, which is now used; None: there is none."""
    with contextlib.suppress(OutputError):
        cache = imports()
        if entry := cache.entry(_key(path, importer)):
            cache.touch(entry)
            return entry
    return None


def _key(path: Path, importer: Importer) -> str:
    """Return the name of the entry of an input. The name of the input counts: files and hosts are called by it."""
    with as_input_error(path):
        words = (identity_of(path), path.name, importer.name, str(importer.version), LATEST)
    return hashlib.blake2b("\0".join(words).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def _place(cache: Cache[CacheEntry], task: ImportTask, imported: Imported) -> CacheEntry:
    """Make what was imported an entry; errors as for `Cache.place`."""
    facts = {
        "source": os.fsdecode(task.path.absolute()),
        "importer": task.importer.name,
        "files": imported.files,
        "losses": dict(imported.losses),
    }
    return cache.place(task.folder, _key(task.path, task.importer), facts)


def _new_folder(root: Path) -> Path:
    with as_output_error(root):
        return leftovers.make_folder(root)


def _temporary_root() -> Path:
    """Return a folder that is removed when this process ends."""
    folder = _new_folder(Path(tempfile.gettempdir()))
    atexit.register(leftovers.remove, folder)
    return folder


def _tell(imported: Mapping[Path, Imported], root: Path, seconds: float, on_note: Callable[[str], None]) -> None:
    """Report what was imported in one line, and one line for each kind of loss."""
    what = next(iter(imported)).name if len(imported) == 1 else f"{len(imported)} files"
    ranks = sum(len(one.files) for one in imported.values())
    on_note(f"{what}: imported into {root} ({ranks} rank{'' if ranks == 1 else 's'}, {seconds:.1f} s)")
    for line in loss_lines(imported):
        on_note(line)
