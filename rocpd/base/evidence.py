"""Knows which files are evidence, and refuses outputs that would replace or disturb one. Never opens a file.

Evidence is all input of a command while it runs: files, and the files of folders. So is every recording in any place,
which `rocpd.importers.recordings` recognises by its content. A file that rocpd wrote is no evidence if that is proved
and the command does not read it: a database carries a mark; of texts and pictures the cache remembers a hash, which
stays valid when they are moved. Of a database without a mark, such as an imported one, the cache remembers the state in
the file system: moved to a job, it is one of its recordings.

Every output passes `rocpd.base.output`, which asks here before it creates anything.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
from collections.abc import Iterable
from pathlib import Path
from weakref import WeakSet

from rocpd.base import OutputError, entries
from rocpd.base.home import cache_root
from rocpd.base.identity import BESIDE, STATE, digest_of_stream, seen, status_of

RECORDINGS = "rocpd.importers.recordings"
"""The module that recognises recordings by their content; a higher layer, asked only about files to be replaced."""

_HINT = "raw files are never changed, not even with --force: choose another name"
_DATABASE = b"SQLite format 3\0"
_MOST_KNOWN = 4096  # outputs that the cache remembers


class Evidence:
    """Files that no output may touch, until they are released.

    Args:
        paths: files, which need not exist, and folders: the files in them, except those that rocpd wrote.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        real = [Path(os.path.realpath(path)) for path in paths]
        self.paths = frozenset(path for path in real if not path.is_dir())
        self.folders = tuple(path for path in real if path.is_dir())
        self._by_inode: dict[tuple[int, int], set[Path]] = {}
        self._unseen = set(self.paths)
        _HELD.add(self)

    def has(self, status: os.stat_result) -> bool:
        """Whether a file is one of the files, under any name."""
        for path in [*self._unseen]:
            if seen_now := status_of(path):
                self._by_inode.setdefault((seen_now.st_dev, seen_now.st_ino), set()).add(path)
                self._unseen.discard(path)
        same = self.paths & self._by_inode.get((status.st_dev, status.st_ino), set())
        return any((now := status_of(path)) and os.path.samestat(status, now) for path in same)

    def release(self) -> None:
        """Stop protecting the files; idempotent."""
        _HELD.discard(self)


_HELD: WeakSet[Evidence] = WeakSet()


def renewing(path: Path) -> None:
    """Stop protecting a file of rocpd's that a command was asked to renew: the base of `diff --accept`."""
    real = Path(os.path.realpath(path))
    for evidence in list(_HELD):
        evidence.paths -= {real}


def check_output(path: Path) -> None:
    """Refuse an output that is evidence, under any name, or that would be read together with evidence.

    Raises:
        OutputError: it is or would be.
    """
    real = Path(os.path.realpath(path))
    status = status_of(path)
    for evidence in list(_HELD):
        if real in evidence.paths or (status and evidence.has(status)):
            raise OutputError(f"{path}: is an input", _HINT)
        for folder in evidence.folders:
            if status is None and real.is_relative_to(folder) and (kind := _ask("joins", real, folder)):
                said = f"{path}: would be read with the input {folder.name} ({kind})"
                raise OutputError(said, "choose another folder")
    check_name(path)


def check_replaceable(path: Path) -> None:
    """Refuse to replace a recording, or a file of an input folder, unless rocpd wrote it.

    Raises:
        OutputError: the file is one of these.
    """
    real = Path(os.path.realpath(path))
    if not real.is_file() or is_own(real):
        return
    if kind := _ask("kind_of", real):
        raise OutputError(f"{path}: is a recording ({kind})", f"{_HINT}, or remove it yourself")
    for folder in (folder for evidence in list(_HELD) for folder in evidence.folders):
        if real.is_relative_to(folder):
            raise OutputError(f"{path}: lies in the input {folder.name}, and rocpd did not write it", _HINT)


def check_folder(path: Path) -> None:
    """Refuse a folder as an output that replaces it, if an input lies in it.

    Raises:
        OutputError: an input lies in it.
    """
    real = Path(os.path.realpath(path))
    check_name(path)
    for evidence in list(_HELD):
        if real in evidence.paths or real in evidence.folders:
            raise OutputError(f"{path}: is an input", _HINT)
        for raw in (*evidence.paths, *evidence.folders):
            if raw.is_relative_to(real):
                raise OutputError(f"{path}: the input {raw.name} lies in it", _HINT)


def check_name(path: Path) -> None:
    """Refuse an output, or a new folder for it, whose name makes it a part of a database that is evidence.

    Raises:
        OutputError: it would be read with such a database.
    """
    held = [evidence.paths for evidence in list(_HELD)]
    real = Path(os.path.realpath(path))
    for place in (real, *itertools.takewhile(lambda folder: not folder.exists(), real.parents)):
        for ending in BESIDE:
            database = place.with_name(place.name.removesuffix(ending) or place.name)
            if database == place or not (any(database in paths for paths in held) or is_foreign_recording(database)):
                continue
            reader = "rocpd" if ending == STATE else "SQLite"
            raise OutputError(f"{path}: {reader} would read it together with {database.name}", _HINT)


def remember(path: Path) -> None:
    """Remember that rocpd wrote a file, which is now complete; without a cache this cannot be proved later."""
    with contextlib.suppress(OSError, OutputError):
        entry = _entry(path)
        entry.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        entry.touch(mode=0o600)
        if entry.name.startswith("00"):  # in one of 256 cases
            for old in sorted(entry.parent.iterdir(), key=lambda each: each.stat().st_mtime)[:-_MOST_KNOWN]:
                old.unlink(missing_ok=True)


def is_own(path: Path) -> bool:
    """Whether it is proved that rocpd wrote a file, and that it is unchanged since."""
    with contextlib.suppress(OSError, OutputError):
        if _entry(path).exists():
            return True
    return bool(entries.load(f"{RECORDINGS}:is_marked", RECORDINGS)(path))


def is_foreign_recording(path: Path) -> bool:
    """Whether a file is a recording, and not proved to be written by rocpd."""
    return path.is_file() and _ask("kind_of", path) is not None and not is_own(path)


def _ask(question: str, *paths: Path) -> str | None:
    answer: str | None = entries.load(f"{RECORDINGS}:{question}", RECORDINGS)(*paths)
    return answer


def _entry(path: Path) -> Path:
    """Return the path of the cache file that stands for an output."""
    with path.open("rb") as content:
        is_database = content.read(len(_DATABASE)) == _DATABASE
        content.seek(0)
        known = io.BytesIO(repr((os.path.realpath(path), seen(path.stat()))).encode()) if is_database else content
        return cache_root("outputs") / digest_of_stream(known)
