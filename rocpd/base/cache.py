"""Caches of data derived from files: their place, their size limit, and the order of removal.

An entry is a folder with a manifest. It gets its name when it is complete, so that a killed process leaves no entry,
and two processes at once leave one. This module never looks at the content of entries.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from rocpd.base import OutputError, UsageError, frozen, leftovers
from rocpd.base.evidence import check_name
from rocpd.base.home import cache_root
from rocpd.base.output import as_output_error, size_of

_USUAL_SIZE = "20G"
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_DAY_S = 86_400
_NOT_AN_ENTRY = (OSError, ValueError, KeyError, TypeError, AttributeError)


AnyKept = TypeVar("AnyKept", covariant=True)


@frozen
class CacheFolder:
    """The folder of an entry, which may be unreadable: damaged, or made by another version.

    Args:
        folder: the folder with its files.
        used: time of the last use of the entry [s since 1970].
    """

    folder: Path
    used: float

    @property
    def size(self) -> int:
        """Size of all files [bytes]; 0 if the folder was removed meanwhile."""
        return size_of(self.folder)


@frozen
class FileEntry(CacheFolder):
    """An entry that was made of one file.

    Args:
        source: path of the file when the entry was made.
    """

    source: str

    @classmethod
    def of(cls, folder: Path, manifest: Mapping[str, Any], used: float) -> FileEntry:
        """Return the entry in a folder, as `Cache.read`."""
        return cls(folder, used, str(manifest["source"]))


@frozen
class Cache(Generic[AnyKept]):
    """The entries of one kind.

    Args:
        root: the folder of all entries, which need not exist.
        manifest: name of the file in an entry that describes it.
        read: returns an entry, given its folder, the content of its manifest, and the time of its last use; raises
            `OSError`, or any error of a wrong manifest, if the entry is not complete.
    """

    root: Path
    manifest: str
    read: Callable[[Path, Mapping[str, Any], float], AnyKept]

    def entry(self, name: str) -> AnyKept | None:
        """Return a complete entry by its name; None: there is none."""
        folder = self.root / name
        try:
            manifest = folder / self.manifest
            return self.read(folder, json.loads(manifest.read_text(encoding="utf-8")), manifest.stat().st_mtime)
        except _NOT_AN_ENTRY:
            return None

    def entries(self) -> list[AnyKept]:
        """Return all entries, the most recently used first.

        Raises:
            OutputError: the folder cannot be read.
        """
        return list(filter(None, (self.entry(each.folder.name) for each in self.folders())))

    def folders(self) -> list[CacheFolder]:
        """Return the folders of all entries, the most recently used first.

        Raises:
            OutputError: the folder of all entries cannot be read.
        """
        with as_output_error(self.root):
            paths = [path for path in self.root.iterdir() if path.is_dir()] if self.root.is_dir() else []
        return sorted(filter(None, map(self._folder, paths)), key=lambda folder: -folder.used)

    def unreadable(self) -> list[CacheFolder]:
        """Return the folders of entries that cannot be read; raises as `folders`."""
        return [each for each in self.folders() if self.entry(each.folder.name) is None]

    def _folder(self, path: Path) -> CacheFolder | None:
        try:
            return CacheFolder(path, (path / self.manifest).stat().st_mtime)
        except OSError:  # it is no entry, or is being removed
            return None

    def make(self) -> Path:
        """Return the folder of all entries, created if necessary with access for its user only.

        Raises:
            OutputError: it cannot be made, or would be read with a recording.
        """
        check_name(self.root)
        with as_output_error(self.root):
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        return self.root

    def place(self, built: Path, name: str, facts: Mapping[str, object]) -> AnyKept:
        """Make a folder an entry, and return the entry; if another process was faster, its entry stays.

        Args:
            built: the folder, on the same disk; it is renamed, unless the entry exists.
            name: name of the entry.
            facts: content of the manifest.

        Raises:
            OutputError: it cannot be written.
        """
        folder = self.root / name
        with as_output_error(folder):
            (built / self.manifest).write_text(json.dumps(facts, indent=1), encoding="utf-8")
            for attempt in range(2):
                with contextlib.suppress(OSError):
                    built.rename(folder)
                if entry := self.entry(name):
                    return entry
                if attempt == 0:
                    leftovers.remove(folder)  # an entry that lost files
        raise OutputError(f"{folder}: cannot be written", "rocpd cache clear")

    def growing(self, name: str, source: Path) -> Path:
        """Return the folder of a file's entry, to which `write_complete` adds files; it is created if necessary.

        Raises:
            OutputError: it cannot be written.
        """
        folder = self.root / name
        if not folder.exists():
            facts = {"source": os.fsdecode(source.absolute())}
            self.place(leftovers.make_folder(self.make()), name, facts)
        leftovers.sweep(folder)
        return folder

    def touch(self, folder: Path) -> None:
        """Set the time of the last use of the entry in a folder to now."""
        with contextlib.suppress(OSError):
            os.utime(folder / self.manifest)

    def clear(self) -> int:
        """Remove all entries; return the freed size [bytes].

        Raises:
            OutputError: the folder cannot be read.
        """
        freed = 0
        for each in self.folders():
            freed += each.size
            leftovers.remove(each.folder)
        leftovers.sweep(self.root)
        return freed

    def evict(self) -> None:
        """Remove entries, the least recently used ones first and none used within a day, until the rest fits the limit.

        Raises:
            OutputError: the folder cannot be read.
            UsageError: `$ROCPD_CACHE_SIZE` holds no size.
        """
        left = _most_bytes()
        for each in self.folders():
            left -= each.size
            if left < 0 and each.used < time.time() - _DAY_S:
                leftovers.remove(each.folder)


def file_entries(kind: str) -> Cache[FileEntry]:
    """Return a cache of files in the user's cache folder: an entry holds data derived from one state of a file.

    Raises:
        OutputError: there is no cache folder.
    """
    return Cache(cache_root(kind), "entry.json", FileEntry.of)


def write_complete(path: Path, content: bytes) -> None:
    """Write a file of an entry that others may be reading; it gets its name when it is complete."""
    temporary = leftovers.temporary_path(path.parent)
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:
        leftovers.remove(temporary)


def _most_bytes() -> int:
    """Return the size limit of all entries of one kind [bytes]: `$ROCPD_CACHE_SIZE`, else 20 GiB.

    Raises:
        UsageError: the variable holds no size.
    """
    text = os.environ.get("ROCPD_CACHE_SIZE") or _USUAL_SIZE
    if not (match := re.fullmatch(r"(\d{1,9})([KMGT]?)(?:i?B)?", text.strip().upper())):
        raise UsageError(f"ROCPD_CACHE_SIZE={text}: not a size", "such as 500M or 20G")
    return int(match[1]) * _UNITS[match[2]]
