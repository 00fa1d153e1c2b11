"""Entries of the index: their place, and the entry that belongs to the current state of a rank's file.

An entry is a folder with a manifest and one Parquet file per view. Its name is a hash of the state of the rank's file:
device, inode, size, times of the last change, SQLite's change counter and schema cookie, samples of its pages, and the
suffix of the rank's tables. So the entry of a changed file is never found again; it is removed among the oldest.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rocpd.base import frozen
from rocpd.base.cache import Cache, FileEntry
from rocpd.base.home import index_root
from rocpd.base.identity import blake2b, seen, status_of
from rocpd.federate.open.identify import Rank
from rocpd.federate.open.opening import has_open_journal, read_ranges

FORMAT = 4
"""Part of the name of every entry: raise it when the written content changes."""

VIEWS = (
    "kernels", "regions", "memory_copies", "memory_allocations", "scratch_memory", "graph_launches", "samples",
    "pmc_events",
)  # fmt: skip
"""The stored views: those of events. Other views are small, or read these."""


class ValueKind(enum.StrEnum):
    """The kind of the values of a column or an expression, beside NULL."""

    INT = "int"
    REAL = "real"
    TEXT = "text"
    BOOL = "bool"
    """The type that comparisons return: 0 or 1 in SQLite, a separate type in DuckDB. No stored column has it."""
    NULL = "null"
    """Only NULL."""


_KINDS = {kind.value: kind for kind in ValueKind}  # calling an enum takes ten times as long
_SAMPLES, _SAMPLE = 16, 1 << 12


@frozen
class StoredView:
    """A view of one rank in the index.

    Args:
        rows: number of rows.
        columns: column -> kind of its values. A column with values of several kinds is left out.
        ascii: columns of texts that hold only ASCII characters.
        greatest: column of whole numbers -> the greatest absolute value.
        is_by_id: ids ascend from row to row, so that each row of the view's table has exactly one.
    """

    rows: int
    columns: Mapping[str, ValueKind]
    ascii: frozenset[str]
    greatest: Mapping[str, int]
    is_by_id: bool


@frozen
class IndexEntry(FileEntry):
    """The index of one rank.

    Args:
        views: view -> its stored form.
        schema: a text that is equal for files with the same tables and indexes, by which SQLite plans.
    """

    views: Mapping[str, StoredView]
    schema: str

    def path(self, view: str) -> str:
        """Return the Parquet file of a view."""
        return os.fspath(self.folder / f"{view}.parquet")


def indexes(folder: Path | None) -> Cache[IndexEntry]:
    """Return the entries in a folder; None: the folder of `index_root`.

    Raises:
        OutputError: there is no cache folder.
    """
    return Cache(index_root(folder), "entry.json", _entry)


def stat_of(path: Path) -> tuple[int, ...]:
    """Return device, inode, size and times of the last change of a file; empty if it is gone."""
    status = status_of(path)
    return seen(status) if status else ()


def state_of(rank: Rank) -> str:
    """Return a hash of the current state of a rank's file, which is different after any change to it.

    Raises:
        InputError: it cannot be read.
    """
    path = rank.opening.path
    status = stat_of(path)
    last = max(0, rank.opening.size - _SAMPLE)
    starts = [0, *(last * number // (_SAMPLES - 1) for number in range(1, _SAMPLES))]
    samples = read_ranges(path, [(start, _SAMPLE) for start in dict.fromkeys(starts)])
    header = samples[0]  # https://sqlite.org/fileformat2.html: change counter at 24, schema cookie at 40
    facts = (*status, header[24:28].hex(), header[40:44].hex(), rank.suffix, FORMAT)
    key = blake2b(repr(facts).encode(), digest_size=16)
    for sample in samples:
        key.update(sample)
    return key.hexdigest()


def cannot_index(rank: Rank) -> str:
    """Return why a rank can have no index now; empty: it can."""
    if rank.opening.copy:
        return "its writer was killed: only a recovered copy can be read"
    if has_open_journal(rank.opening.path):
        return "it is being written to"
    return "it holds the rows of a window" if rank.window else ""


def is_still(rank: Rank, state: str) -> bool:
    """Whether the file of a rank is still in a state, and is not being written to."""
    return not cannot_index(rank) and state_of(rank) == state


def facts_of(source: Path, views: Mapping[str, StoredView], schema: str) -> dict[str, object]:
    """Return the content of the manifest of an entry; see `IndexEntry`."""
    stored = {name: vars(view) | {"ascii": sorted(view.ascii)} for name, view in views.items()}
    return {"format": FORMAT, "source": os.fsdecode(source.absolute()), "schema": schema, "views": stored}


def _entry(folder: Path, facts: Mapping[str, Any], used: float) -> IndexEntry:
    views = dict(_views(facts["views"]))
    if not {f"{name}.parquet" for name in views}.issubset(os.listdir(folder)):  # noqa: PTH208 (names are enough)
        raise FileNotFoundError(folder)
    return IndexEntry(folder, used, str(facts["source"]), views, str(facts["schema"]))


def _views(stored: Mapping[str, Mapping[str, object]]) -> Iterator[tuple[str, StoredView]]:
    for name, view in stored.items():
        rows, columns, ascii_columns, greatest = view["rows"], view["columns"], view["ascii"], view["greatest"]
        if not (isinstance(rows, int) and isinstance(columns, dict) and isinstance(ascii_columns, list)):
            raise TypeError(name)
        if not (isinstance(greatest, dict) and all(type(most) is int and most >= 0 for most in greatest.values())):
            raise TypeError(name)
        kinds = {column: _KINDS[kind] for column, kind in columns.items()}
        yield name, StoredView(rows, kinds, frozenset(ascii_columns), greatest, is_by_id=view["is_by_id"] is True)
