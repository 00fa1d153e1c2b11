"""Creates a valid rocpd file: suffixed tables, stored views, metadata.

Writes only files of its own making; the demo, the tests, merge, the simulator and importers share it.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rocpd.base import UsageError
from rocpd.base.output import complete_or_nothing
from rocpd.base.sqlite import apsw, naming_view, writing
from rocpd.schema.load import OPTIONAL_TABLES, TABLES, table
from rocpd.schema.quote import quote_name, quote_text
from rocpd.schema.render import RankTables, create_view_text, select_text, views_over
from rocpd.schema.versions import LATEST, VERSIONS, as_tuple, suffix_of

MARK = "made_by_rocpd"
"""The table that identifies a merged file, which `--force` may replace as it is no recording."""

_NOT_NULL = r'(?m)^(    "(?!id"|guid")\w+".*?) NOT NULL'

# A statement costs SQLite about as much as a row: AUTOINCREMENT reads and writes its counter once per statement. More
# rows at once save no further time.
_ROWS_AT_ONCE = 64

_FLAGS = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_NOMUTEX
"""One thread writes: without a lock for each value, rows take a tenth less time."""

_SUFFIX = "{{uuid}}"  # in texts that are the same for all files except for the suffix of tables


def tables_of(version: str) -> dict[str, tuple[str, ...]]:
    """Return the columns of each table in schema `version` (such as `3.0.1`), which has no optional tables."""
    return {
        name: tuple(c.name for c in table(name).columns if _exists(c.since, version))
        for name in TABLES
        if name not in OPTIONAL_TABLES and _exists(table(name).since, version)
    }


def create_table_text(name: str, suffix: str, guid: str, version: str = LATEST) -> str:
    """Return the CREATE TABLE of one table for one rank, comments included."""
    text = _table_text(name, version)
    return text.replace(_SUFFIX, suffix.replace('"', '""')).replace("'{{guid}}'", quote_text(guid))


@functools.cache
def _table_text(name: str, version: str) -> str:
    """Return the CREATE TABLE of one table in a version of the schema, with marks for suffix and GUID."""
    chosen = table(name)
    newer = (f'    "{column.name}" ' for column in chosen.columns if not _exists(column.since, version))
    left_out = ("-- ", *newer)
    text = "\n".join(line for line in chosen.text.splitlines() if not line.startswith(left_out))
    return re.sub(r",(\s*(?:--[^\n]*)?)\n\);", r"\1\n);", text)


@functools.lru_cache(16)
def _view_texts(tables: tuple[tuple[str, tuple[str, ...]], ...], views: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """Return name and text, as SQLite stores it, of the plain and the readable views, with a mark for the suffix."""
    part = RankTables(_SUFFIX, dict(tables))
    plain = ((name, f"SELECT * FROM {part.name(name)}") for name, _ in tables)
    readable = ((name, select_text(name, [part])) for name in views)
    with contextlib.closing(apsw.Connection(":memory:")) as scratch:
        for name, select in (*plain, *readable):
            with naming_view(name):
                scratch.execute(create_view_text(name, select))
        return scratch.execute("SELECT name, sql FROM sqlite_master ORDER BY rowid").fetchall()


@functools.lru_cache(64)
def _insert_text(table_name: str, columns: tuple[str, ...], rows: int) -> str:
    names, row = ", ".join(map(quote_name, columns)), f"({', '.join('?' * len(columns))})"
    return f"INSERT INTO {quote_name(table_name)} ({names}) VALUES {', '.join([row] * rows)}"


def _row_by_row(columns: Sequence[Sequence[Any]], first: int, count: int) -> list[Any]:
    """Return the values of `count` rows, from the row `first` on."""
    values = [None] * (len(columns) * count)
    for at, column in enumerate(columns):
        values[at :: len(columns)] = column[first : first + count]
    return values


@functools.cache
def _exists(since: str, version: str) -> bool:
    return not since or as_tuple(since) <= as_tuple(version)


class Writer:
    """Fills one new rocpd file for one GUID; use it through `create`."""

    def __init__(self, connection: apsw.Connection, guid: str, version: str) -> None:
        self.connection = connection
        self.guid = guid
        self.suffix = suffix_of(guid)
        self.version = version
        self.tables = tables_of(version)
        self._next: dict[str, int] = {}  # table -> the id that SQLite gives its next row; 0: unknown

    def insert(self, base: str, columns: Mapping[str, Sequence[Any]]) -> None:
        """Insert rows into table `base`: for each column the values of all rows; `guid` fills itself in.

        An optional table is created with its first row.
        """
        if base in OPTIONAL_TABLES and base not in self.tables:
            self.tables[base] = tuple(column.name for column in table(base).columns)
            self.connection.execute(create_table_text(base, self.suffix, self.guid, self.version))
        ids, due = columns.get("id"), self._next.get(base, 1)
        due_ids = ids if isinstance(ids, range) and ids.start == due and ids.step == 1 else None
        if due_ids is not None and len(columns) > 1:  # SQLite gives rows these ids itself, without a search for each
            columns = {name: column for name, column in columns.items() if name != "id"}
        self._next[base] = 0
        table_name, names, given = base + self.suffix, tuple(columns), tuple(columns.values())
        count = len(given[0])
        whole = count - count % _ROWS_AT_ONCE
        if whole:
            firsts = range(0, whole, _ROWS_AT_ONCE)
            text = _insert_text(table_name, names, _ROWS_AT_ONCE)
            self.connection.executemany(text, (_row_by_row(given, first, _ROWS_AT_ONCE) for first in firsts))
        if whole < count:
            text = _insert_text(table_name, names, count - whole)
            self.connection.execute(text, _row_by_row(given, whole, count - whole))
        self._next[base] = 0 if due_ids is None else due_ids.stop

    def loosen(self, base: str) -> None:
        """Replace an empty table by one that allows NULL except in id and guid, as other profilers write it."""
        self.connection.execute(f"DROP TABLE {quote_name(base + self.suffix)}")
        text = create_table_text(base, self.suffix, self.guid, self.version)
        self.connection.execute(re.sub(_NOT_NULL, r"\1", text))

    def create_tables(self) -> None:
        """Create the suffixed tables and the metadata rows that name version, suffix and GUID."""
        for name in self.tables:
            self.connection.execute(create_table_text(name, self.suffix, self.guid, self.version))
        numbers = self.version.split(".")
        facts = [("schema_version", self.version)]
        facts += [(f"schema_version_{part}", n) for part, n in zip(("major", "minor", "patch"), numbers, strict=True)]
        if self.version == "3.0.0":
            facts = [("schema_version", numbers[0])]
        tags, values = zip(*facts, ("uuid", self.suffix), ("guid", self.guid), strict=True)
        self.insert("rocpd_metadata", {"tag": tags, "value": values})

    def create_views(self) -> None:
        """Store the plain views (`rocpd_region` …) and the readable ones, as in AMD's files; the last thing of a file.

        They go straight into SQLite's list, which it would read from the start for each view that it creates.
        """
        tables = tuple((name, tuple(columns)) for name, columns in self.tables.items())
        texts, suffix = _view_texts(tables, views_over(self.tables)), self.suffix.replace('"', '""')
        self.connection.pragma("writable_schema", True)
        listed = ((name, name, text.replace(_SUFFIX, suffix)) for name, text in texts)
        self.connection.executemany("INSERT INTO sqlite_master VALUES ('view', ?, ?, 0, ?)", listed)


@contextlib.contextmanager
def create(path: str | Path, guid: str, version: str = LATEST, force: bool = False) -> Iterator[Writer]:
    """Create a rocpd file; it appears under `path` when the block ends well.

    Args:
        path: file to make.
        guid: identity of the rank, such as `00003fdc-92cb-72cb-9169-c7e541b1fcdf`.
        version: schema version, one of `versions.VERSIONS`.
        force: replace an existing file.

    Raises:
        UsageError: unknown version.
        OutputError: the file exists or cannot be written.
    """
    if version not in VERSIONS:
        raise UsageError(f"schema version {version}: not one that can be written", f"one of {', '.join(VERSIONS)}")
    with (
        complete_or_nothing(Path(path), force) as temporary,
        contextlib.closing(apsw.Connection(str(temporary), flags=_FLAGS)) as connection,
        writing(connection),
    ):
        for name, value in (("synchronous", 0), ("locking_mode", "exclusive"), ("cache_size", -65536)):
            connection.pragma(name, value)
        connection.execute("BEGIN")
        writer = Writer(connection, guid, version)
        writer.create_tables()
        yield writer
        writer.create_views()
        connection.execute("COMMIT")
