"""Entries of the index: where they lie, which one belongs to a rank as its file is now, and how they go.

An entry is a folder with a manifest and one Parquet file per view. Its name is a hash of what the file of the rank is:
device, inode, size, times of the last change, SQLite's change counter and schema cookie, samples of its pages, and the
suffix of the rank's tables. So an entry of a file that has changed is never met again; it goes with the oldest ones.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from rocpd import leftovers
from rocpd.cache import cache_root, most_bytes
from rocpd.errors import OutputError
from rocpd.federate.open.identify import Rank
from rocpd.federate.open.opening import has_open_journal, read_ranges
from rocpd.frozen import frozen
from rocpd.index.kinds import StoredView, ValueKind
from rocpd.output import as_output_error

FORMAT = 1
"""Goes into the name of every entry: raise it when what is written changes."""

VIEWS = (
    "kernels",
    "regions",
    "memory_copies",
    "memory_allocations",
    "scratch_memory",
    "graph_launches",
    "samples",
    "pmc_events",
)
"""The views that are stored: those of events. The others are small, or are read from these."""

_MANIFEST = "entry.json"
_SAMPLES, _SAMPLE = 16, 1 << 12
_DAY_S = 86_400


@frozen
class IndexEntry:
    """The index of one rank.

    Args:
        folder: with its files.
        source: the file of the rank, as it was called.
        views: view -> what is stored of it.
        size: of all files [bytes].
        used: when it was last used [s since 1970].
    """

    folder: Path
    source: str
    views: Mapping[str, StoredView]
    size: int
    used: float

    def path(self, view: str) -> str:
        """Return the Parquet file of a view."""
        return os.fspath(self.folder / f"{view}.parquet")


def root_of(folder: Path | None) -> Path:
    """Return the folder of all entries: the one given, else `$ROCPD_INDEX_FOLDER`, else in the user's cache.

    Raises:
        OutputError: there is no cache folder.
    """
    named = os.environ.get("ROCPD_INDEX_FOLDER")
    return folder or (Path(named) if named else cache_root("index"))


def state_of(rank: Rank) -> str:
    """Return what the file of a rank is now; another text after any change to it.

    Raises:
        InputError: it cannot be read.
    """
    import hashlib  # a command that meets no index does without

    path = rank.opening.path
    status = path.stat()
    last = max(0, status.st_size - _SAMPLE)
    starts = [0, *(last * number // (_SAMPLES - 1) for number in range(1, _SAMPLES))]
    samples = read_ranges(path, [(start, _SAMPLE) for start in dict.fromkeys(starts)])
    header = samples[0]  # https://sqlite.org/fileformat2.html: change counter at 24, schema cookie at 40
    facts = (
        status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns,
        header[24:28].hex(), header[40:44].hex(), rank.suffix, FORMAT,
    )  # fmt: skip
    key = hashlib.blake2b(repr(facts).encode(), digest_size=16)
    for sample in samples:
        key.update(sample)
    return key.hexdigest()


def entry_of(root: Path, state: str) -> IndexEntry | None:
    """Return the complete entry of a rank in this state; None: there is none."""
    return _read(root / state)


def cannot_index(rank: Rank) -> str:
    """Return why a rank can have no index now; empty: it can."""
    if rank.opening.copy:
        return "its writer was killed: only a recovered copy can be read"
    if has_open_journal(rank.opening.path):
        return "it is being written to"
    if rank.window:
        return "it holds the rows of a window"
    return ""


def touch(entry: IndexEntry) -> None:
    """Note that an entry is used now."""
    with contextlib.suppress(OSError):
        os.utime(entry.folder / _MANIFEST)


def place(built: Path, root: Path, state: str, source: Path, views: Mapping[str, StoredView]) -> None:
    """Make a folder of Parquet files an entry; where another builder was quicker, its entry stays.

    Raises:
        OutputError: the folder cannot be written.
    """
    stored = {
        name: {"rows": view.rows, "columns": dict(view.columns), "ascii": sorted(view.ascii)}
        for name, view in views.items()
    }
    facts = {"format": FORMAT, "source": os.fsdecode(source.absolute()), "views": stored}
    with as_output_error(root):
        (built / _MANIFEST).write_text(json.dumps(facts, indent=1), encoding="utf-8")
        target = root / state
        with contextlib.suppress(OSError):
            built.rename(target)
        if _read(target) is None:
            leftovers.remove(target)  # an entry that lost files
            built.rename(target)


def entries(root: Path) -> list[IndexEntry]:
    """Return all entries, what was used last first.

    Raises:
        OutputError: the folder cannot be read.
    """
    with as_output_error(root):
        folders = [path for path in root.iterdir() if path.is_dir()] if root.is_dir() else []
    return sorted(filter(None, map(_read, folders)), key=lambda entry: -entry.used)


def clear(root: Path) -> int:
    """Remove all entries; return how many bytes that freed.

    Raises:
        OutputError: the folder cannot be read.
    """
    freed = 0
    for entry in entries(root):
        leftovers.remove(entry.folder)
        freed += entry.size
    leftovers.sweep(root)
    return freed


def evict(root: Path) -> None:
    """Remove what was used last the longest time ago, but not within a day, until the rest is within the limit."""
    left = most_bytes()
    for entry in entries(root):
        left -= entry.size
        if left < 0 and entry.used < time.time() - _DAY_S:
            leftovers.remove(entry.folder)


def _read(folder: Path) -> IndexEntry | None:
    """Return a complete entry; None for anything else."""
    try:
        manifest = folder / _MANIFEST
        facts = json.loads(manifest.read_text(encoding="utf-8"))
        views = dict(_views(facts["views"]))
        size = sum((folder / f"{name}.parquet").stat().st_size for name in views)
        return IndexEntry(folder, str(facts["source"]), views, size, manifest.stat().st_mtime)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OutputError):
        return None


def _views(stored: Mapping[str, Mapping[str, object]]) -> Iterator[tuple[str, StoredView]]:
    for name, view in stored.items():
        rows, columns, ascii_columns = view["rows"], view["columns"], view["ascii"]
        if not (isinstance(rows, int) and isinstance(columns, dict) and isinstance(ascii_columns, list)):
            raise TypeError(name)
        yield name, StoredView(rows, {c: ValueKind(kind) for c, kind in columns.items()}, frozenset(ascii_columns))
