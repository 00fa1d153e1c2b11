"""Imports inputs: a few in this process, many on all cores. Reports losses, one line for each kind.

Input files of commands are imported once, and read as if they were rocpd files. The cache is
`$XDG_CACHE_HOME/rocpd/import` (else `~/.cache/rocpd/import`), readable for its user alone. An entry is a folder named
after the identity of the input and the version of its importer; `rocpd.base.cache` governs when entries come and go.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rocpd.base import InputError, OutputError, Progress, RocpdError, frozen, leftovers
from rocpd.base.cache import Cache
from rocpd.base.evidence import Evidence
from rocpd.base.home import cache_root
from rocpd.base.identity import blake2b, identity_of
from rocpd.base.output import as_output_error, folder_complete_or_nothing
from rocpd.base.sqlite import apsw
from rocpd.federate.limits import usable_cores
from rocpd.federate.open.opening import as_input_error
from rocpd.federate.open.source import Input, find_sources
from rocpd.importers import Importer, importer_of, inputs_in, known_importers
from rocpd.importers.files import TraceSource, TraceTarget, name_of
from rocpd.schema.versions import LATEST

_PROCESS_BYTES = 8 << 20  # below it, starting processes takes longer than they save


@frozen
class ImportTask:
    """One input that an importer knows, and the destination of its files.

    Args:
        path: file or folder.
        importer: the importer that knows it.
        folder: destination of the files; it exists.
        name: prefix of their names.
    """

    path: Path
    importer: Importer
    folder: Path
    name: str


@frozen
class Imported:
    """The outcome for one input.

    Args:
        files: names of the files in the folder, one per process, in the importer's order.
        losses: kind of data of the input without a place in them -> its number.
    """

    files: tuple[str, ...]
    losses: Mapping[str, int]


def import_traces(  # noqa: PLR0913 (keywords)
    inputs: Input | Iterable[Input],
    folder: str | Path,
    *,
    force: bool = False,
    skip_bad: bool = False,
    jobs: int | None = None,
    on_note: Callable[[str], None] | None = None,
    on_progress: Progress | None = None,
) -> tuple[Path, ...]:
    """Write the traces of other profilers as rocpd files, one per process; return their paths.

    Args:
        inputs: files, globs and folders; of a folder, the inputs that importers know in it and in its folders.
        folder: new folder for the files, relative to the working directory; it appears when all are complete.
        force: replace a folder that an earlier run wrote.
        skip_bad: leave out inputs that are damaged or unknown, with a note, instead of raising.
        jobs: processes; None: one per core where that is faster.
        on_note: called with each line for the user, such as those on losses.
        on_progress: called with (bytes read, bytes in all).

    Raises:
        InputError: an input is missing, damaged, or of no known kind.
        OutputError: the folder exists or cannot be written.
    """
    note = on_note or (lambda _: None)
    paths = _expanded(inputs)
    evidence = Evidence(paths)
    try:
        with folder_complete_or_nothing(Path(folder), force) as temporary:
            if not (tasks := list(_tasks(paths, temporary, skip_bad, note))):
                raise InputError("nothing to import", _kinds())
            answers = list(import_all(tasks, jobs, on_progress))
            good = good_ones(zip((task.path for task in tasks), answers, strict=True), skip_bad, note)
            for line in loss_lines(good):
                note(line)
        return tuple(Path(folder) / name for imported in good.values() for name in imported.files)
    finally:
        evidence.release()


def _expanded(inputs: Input | Iterable[Input]) -> tuple[Path, ...]:
    items = [inputs] if isinstance(inputs, str | Path) or not isinstance(inputs, Iterable) else list(inputs)
    paths: list[Path] = []
    for item in items:
        path = Path(item)
        with as_input_error(path):
            known = inputs_in(path) if path.is_dir() else find_sources(item).paths
        if not known:
            raise InputError(f"{path}: a folder without traces that can be imported", _kinds())
        paths += known
    return tuple(dict.fromkeys(paths))


def _kinds() -> str:
    return "known are " + "; ".join(importer.doc for importer in known_importers().values())


def _tasks(paths: Sequence[Path], folder: Path, skip_bad: bool, note: Callable[[str], None]) -> Iterator[ImportTask]:
    names: Counter[str] = Counter()
    for path in paths:
        with as_input_error(path):
            importer = importer_of(path)
        if importer is None:
            error = InputError(f"{path}: no trace that can be imported", _kinds())
            if not skip_bad:
                raise error
            note(f"left out: {error.message}")
            continue
        name = name_of(path)
        names[name] += 1
        yield ImportTask(path, importer, folder, name if names[name] == 1 else f"{name}-{names[name]}")


def import_all(
    tasks: Sequence[ImportTask], jobs: int | None, progress: Progress | None = None
) -> Iterator[Imported | InputError]:
    """Do tasks, in their order; yield the outcome of each: an error if the input is damaged.

    Args:
        tasks: the inputs to import.
        jobs: processes; None: one per core where that is faster.
        progress: called with (bytes read, bytes in all).

    Raises:
        OutputError: a file cannot be written.
    """
    sizes = [_size(task.path) for task in tasks]
    count = min(len(tasks), jobs or (usable_cores() if sum(sizes) > _PROCESS_BYTES else 1))
    if count == 1:
        for number, task in enumerate(tasks):
            of_all = progress and partial(_report_part, progress, sum(sizes[:number]), sizes[number], sum(sizes))
            yield import_one(task, of_all)
        return
    from rocpd.federate.run.workers import Workers

    workers = Workers(count)
    try:
        with contextlib.closing(workers.each(import_one, tasks)) as answers:
            for number, answer in enumerate(answers, 1):
                if progress:
                    progress(sum(sizes[:number]), sum(sizes))
                yield answer
    finally:
        workers.close()


def _size(path: Path) -> int:
    """Return the size of an input [bytes], at least 1."""
    files = path.rglob("*") if path.is_dir() else (path,)
    return max(1, sum(file.stat().st_size for file in files if file.is_file()))


def _report_part(progress: Progress, before: int, size: int, total: int, done: int, of: int) -> None:
    """Report the progress of one input as a part of that of all."""
    progress(before + size * done // max(of, 1), total)


def import_one(task: ImportTask, progress: Progress | None = None) -> Imported | InputError:
    """Import one input; return an error if it is damaged.

    Raises:
        OutputError: a file cannot be written.
    """
    with TraceSource(task.path, progress) as source:
        target = TraceTarget(task.folder, task.name, source, (task.importer.name, task.importer.version))
        try:
            with as_input_error(task.path), _without_collector():
                task.importer.read(source, target)
        except (OutputError, MemoryError, apsw.NoMemError):
            raise
        except Exception as error:  # noqa: BLE001 (of an importer: the other inputs stand)
            for file in target.files:  # of processes read before the damage
                file.unlink()
            return _as_damage(error, task)
    if not target.files:
        return InputError(f"{task.path}: no events in it", f"read as {task.importer.doc}")
    return Imported(tuple(file.name for file in target.files), dict(+target.losses))


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Pause Python's collector of cycles: events are trees, and searching them takes a fifth of an import."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _as_damage(error: Exception, task: ImportTask) -> InputError:
    if isinstance(error, InputError):
        return error
    what = f"{error} is missing" if isinstance(error, KeyError) else f"{type(error).__name__}: {error}"
    what = error.message if isinstance(error, RocpdError) else what
    hint = f"read as {task.importer.doc}; --skip-bad leaves it out"
    damage = InputError(f"{task.path}: cannot be imported: {what}", hint)
    damage.__cause__ = error
    return damage


def good_ones(
    answers: Iterable[tuple[Path, Imported | InputError]], skip_bad: bool, note: Callable[[str], None]
) -> dict[Path, Imported]:
    """Return the imported inputs with their outcome.

    Raises:
        InputError: the first damaged input, or with `skip_bad`, all inputs are damaged.
    """
    good: dict[Path, Imported] = {}
    for path, answer in answers:
        if not isinstance(answer, InputError):
            good[path] = answer
        elif not skip_bad:
            raise answer
        else:
            note(f"left out: {answer.message}")
    if not good:
        raise InputError("every input was left out")
    return good


def loss_lines(imported: Mapping[Path, Imported]) -> Iterator[str]:
    """Yield one line for each kind of loss, with the name of the input, or the number of inputs."""
    for kind in dict.fromkeys(kind for result in imported.values() for kind in result.losses):
        losing = [path for path, result in imported.items() if result.losses.get(kind)]
        count = sum(imported[path].losses[kind] for path in losing)
        where = str(losing[0].name) if len(losing) == 1 else f"{len(losing)} files"
        yield f"{where}: not imported: {count:,} {kind}"


@frozen
class CacheEntry:
    """One input in the cache.

    Args:
        folder: the folder with the files.
        source: the input, by its name in the call.
        importer: name of its importer.
        files: the rocpd files.
        size: size of the files [bytes].
        used: time of its last use [s since 1970].
    """

    folder: Path
    source: str
    importer: str
    files: tuple[Path, ...]
    size: int
    used: float


def import_once(
    paths: Sequence[Path], jobs: int | None, on_note: Callable[[str], None], progress: Progress | None
) -> Mapping[Path, Sequence[Path] | InputError]:
    """Import input files of commands into the cache; see `rocpd.federate.open.source.Foreign`.

    `progress` is called with (bytes read, bytes in all).
    """
    answers: dict[Path, Sequence[Path] | InputError] = {}
    missing: dict[Path, Importer] = {}
    for path in paths:
        with as_input_error(path):
            importer = importer_of(path)
        if importer and (entry := _known_entry(path, importer)):
            answers[path] = entry.files
        elif importer:
            missing[path] = importer
    if missing:
        answers |= _import_missing(missing, jobs, on_note, progress)
    return answers


def _import_missing(
    inputs: Mapping[Path, Importer], jobs: int | None, on_note: Callable[[str], None], progress: Progress | None
) -> Mapping[Path, Sequence[Path] | InputError]:
    try:
        cache = imports()
        cache.make()
        answers = _import_into(cache, inputs, jobs, on_note, progress)
    except OutputError as error:
        on_note(f"cache not used, imported for this command alone: {error.message}")
        root = _new_folder(Path(tempfile.gettempdir()))
        atexit.register(leftovers.remove, root)
        return _import_into(_imports_in(root), inputs, jobs, on_note, progress)
    cache.evict()
    return answers


def _import_into(
    cache: Cache[CacheEntry],
    inputs: Mapping[Path, Importer],
    jobs: int | None,
    on_note: Callable[[str], None],
    progress: Progress | None,
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
        for task, answer in zip(tasks, import_all(tasks, jobs, progress), strict=True):
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
    """Return the entry of an input, and mark it as used; None if there is none."""
    with contextlib.suppress(OutputError):
        cache = imports()
        if entry := cache.entry(_key(path, importer)):
            cache.touch(entry.folder)
            return entry
    return None


def _key(path: Path, importer: Importer) -> str:
    """Return the name of the entry of an input; the name of the input counts, as files and hosts are named by it."""
    with as_input_error(path):
        words = (identity_of(path), path.name, importer.name, str(importer.version), LATEST)
    return blake2b("\0".join(words).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def _place(cache: Cache[CacheEntry], task: ImportTask, imported: Imported) -> CacheEntry:
    """Turn the outcome of a task into an entry; errors as for `Cache.place`."""
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


def _tell(imported: Mapping[Path, Imported], root: Path, seconds: float, on_note: Callable[[str], None]) -> None:
    """Report the imported inputs in one line, and each kind of loss in another."""
    what = next(iter(imported)).name if len(imported) == 1 else f"{len(imported)} files"
    ranks = sum(len(result.files) for result in imported.values())
    on_note(f"{what}: imported into {root} ({ranks} rank{'' if ranks == 1 else 's'}, {seconds:.1f} s)")
    for line in loss_lines(imported):
        on_note(line)
