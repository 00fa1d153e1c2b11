"""Writes packages: a folder `NAME.rpdb` whose `index.yaml` lists the files of a job, as AMD's tools write them.

Lists only files that were opened and identified. A copy is consistent even if the file is being written. Files are
moved only on request, and moved back if anything fails. Never reads a package: `open/source.py` does.
"""

from __future__ import annotations

import contextlib
import enum
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rocpd.base import InputError, OutputError, Progress
from rocpd.base.output import MANIFEST, as_output_error, complete_or_nothing, folder_complete_or_nothing
from rocpd.base.sqlite import apsw, writing
from rocpd.federate.federation import Federation
from rocpd.federate.open.identify import identify
from rocpd.federate.open.opening import Opening, as_input_error, first_open, opening_of
from rocpd.federate.open.source import INDEX, INDEX_FOLDER

_BESIDE = ("-journal", "-wal")
_PAGES = 4096  # copied in one step: 16 MB


class FilePlacement(enum.StrEnum):
    """Where the files of a package are: they stay, or are copied or moved into it."""

    STAY = "stay"
    COPY = "copy"
    MOVE = "move"


def package(
    session: Federation,
    folder: Path,
    placement: FilePlacement = FilePlacement.STAY,
    force: bool = False,
    progress: Progress | None = None,
) -> Mapping[Path, Path]:
    """Make a package of all files of a session.

    Args:
        session: the job; a file whose ranks are all in other files is left out.
        folder: the package, `NAME.rpdb`.
        placement: whether the files stay where they are, or are copied or moved into the package.
        force: replace a package that holds nothing but an index.
        progress: called with (files done, files in all).

    Returns:
        file -> its path in the package. After a move, the session's files are gone.

    Raises:
        OutputError: the folder exists, holds databases, or cannot be written.
        InputError: a file cannot be read, or is to be moved and still being written.
    """
    openings = openings_of(session)
    _check_target(folder, force)
    if placement is FilePlacement.MOVE:
        session.close()
        return _moved(openings, folder, force, progress)
    with folder_complete_or_nothing(folder, force) as temporary:
        if placement is FilePlacement.STAY:
            listed = {opening.path: _listed(opening.path, folder) for opening in openings}
        else:
            listed = copy_files(openings, temporary, progress)
        _write_index(temporary / INDEX, list(listed.values()))
    return {path: folder / name for path, name in listed.items()}


def write_index(session: Federation, path: Path, force: bool = False) -> tuple[Path, ...]:
    """Write an index alone: the files of a session, which stay where they are.

    Args:
        session: the job.
        path: the index, `index.yaml`.
        force: replace an existing index.

    Returns:
        the files.

    Raises:
        OutputError: the index exists, is an input, or cannot be written.
    """
    paths = tuple(dict.fromkeys(rank.opening.path for rank in session.ranks))
    _write_index(path, [_relative(file, path.parent) or _absolute(file) for file in paths], force)
    return paths


def _check_target(folder: Path, force: bool) -> None:
    """Refuse to replace a package with files in it: after a move they are the only copy."""
    names = [path.name for path in folder.iterdir() if path.name not in (INDEX, MANIFEST)] if folder.is_dir() else []
    if force and names:
        raise OutputError(
            f"{folder}: holds {sorted(names)[0]}: it is not replaced, not even with --force",
            "choose another name with -d, or remove it yourself",
        )


def _listed(path: Path, folder: Path) -> Path:
    """Return the index entry of a file that stays: relative if it is beside the package, so that both can be moved."""
    beside = _relative(path, folder.parent)
    return Path("..") / beside if beside else _absolute(path)


def _relative(path: Path, folder: Path) -> Path | None:
    """Return the path from a folder to a file somewhere in it, else None."""
    absolute, parent = _absolute(path), _absolute(folder)
    return absolute.relative_to(parent) if absolute.is_relative_to(parent) else None


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 (keeps links)


def openings_of(session: Federation) -> tuple[Opening, ...]:
    """Return the files of a session, without those whose ranks are all in other files."""
    used = {rank.opening for rank in session.ranks}
    # In the order of the inputs, so that of two ranks with one suffix the same one stays the later.
    return tuple(opening for opening in session.job.files.openings if opening in used)


def copy_files(openings: Sequence[Opening], folder: Path, progress: Progress | None = None) -> dict[Path, Path]:
    """Copy files into a folder, each consistent even while it is written; return file -> its name there.

    Raises:
        OutputError: a copy cannot be written, or differs.
        InputError: a file cannot be read.
    """
    names = {opening.path: Path(name) for opening, name in zip(openings, _names(openings), strict=True)}
    for done, opening in enumerate(openings, 1):
        _copy(opening, folder / names[opening.path])
        if progress:
            progress(done, len(openings))
    return names


def _names(openings: Sequence[Opening]) -> list[str]:
    """Return distinct file names for one folder: equal names get their folder's name as a prefix, then a number."""
    paths = [opening.path for opening in openings]
    lowered = [path.name.lower() for path in paths]
    names: list[str] = []
    for path in paths:
        name = path.name
        if lowered.count(name.lower()) > 1:
            parent = _absolute(path).parent.name
            name = f"{parent}_{name}" if parent else name
        stem, ending, number = Path(name).stem, Path(name).suffix, 2
        while name.lower() in {used.lower() for used in (*names, INDEX, INDEX_FOLDER)}:
            name = f"{stem}-{number}{ending}"
            number += 1
        names.append(name)
    return names


def _copy(opening: Opening, target: Path) -> None:
    """Copy one file, consistent even while it is written, and check that the copy holds the same ranks."""
    with as_output_error(target):
        if opening.copy or not (opening.is_live or _beside(opening.path, "-wal").exists()):
            source = opening.copy / "copy.db" if opening.copy else opening.path
            shutil.copyfile(source, target)
        else:
            _backup(opening, target)
    if [rank.guid for rank in identify(opening_of(target))] != [rank.guid for rank in identify(opening)]:
        raise OutputError(f"{target}: the copy differs from {opening.path}")


def _backup(opening: Opening, target: Path) -> None:
    source, copy = opening.connect(), apsw.Connection(str(target))
    try:
        with as_input_error(opening.path), writing(copy), copy.backup("main", source, "main") as backup:
            while not backup.done:
                backup.step(_PAGES)
    except apsw.Error as error:
        raise OutputError(f"{target}: cannot be written: {error}") from error
    finally:
        copy.close()
        source.close()


def _moved(openings: Sequence[Opening], folder: Path, force: bool, progress: Progress | None) -> Mapping[Path, Path]:
    if in_use := first_open([opening.path for opening in openings]):
        raise InputError(
            f"{in_use}: another process has it open", "wait until the profiler has finished, or use --copy"
        )
    if not force and os.path.lexists(folder):
        raise OutputError(f"{folder}: exists", "choose another name with -d")
    targets = {o.path: folder / name for o, name in zip(openings, _names(openings), strict=True)}
    with as_output_error(folder), _undone_on_error(folder) as moves:
        for number, (path, target) in enumerate(targets.items(), 1):
            for ending in ("", *(e for e in _BESIDE if _beside(path, e).exists())):
                _move(_beside(path, ending), _beside(target, ending), moves)
            if progress:
                progress(number, len(targets))
        (folder / INDEX).unlink(missing_ok=True)
        _write_index(folder / INDEX, [Path(target.name) for target in targets.values()])
    return targets


@contextlib.contextmanager
def _undone_on_error(folder: Path) -> Iterator[list[tuple[Path, Path]]]:
    """Yield a list that collects the moves; they are undone if the block raises, also on Ctrl-C."""
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    moves: list[tuple[Path, Path]] = []
    try:
        yield moves
    except BaseException:
        for path, target in reversed(moves):
            if target.exists():
                shutil.move(target, path)
        if is_new:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


def _move(path: Path, target: Path, moves: list[tuple[Path, Path]]) -> None:
    """Rename; between file systems copy, compare the sizes, and only then delete."""
    with contextlib.suppress(OSError):
        path.rename(target)
        moves.append((path, target))
        return
    try:
        shutil.copy2(path, target)
        if target.stat().st_size != path.stat().st_size:
            raise OutputError(f"{target}: the copy is not as large as {path}")
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    moves.append((path, target))
    path.unlink()


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _write_index(path: Path, files: Sequence[Path], force: bool = False) -> None:
    import yaml

    content = {"rocpd_package_version": "1.0", "path": ".", "files": [str(file) for file in files]}
    with complete_or_nothing(path, force) as temporary:
        text = yaml.safe_dump(
            {"rocprofiler-sdk": {"rocpd": content}}, sort_keys=False, allow_unicode=True, width=10_000
        )
        temporary.write_text(text, encoding="utf-8")
