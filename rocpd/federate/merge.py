"""Owns merging: one SQLite file with every rank's own tables, indexes and the federated views stored in it.

Copies rows as they are, verifies the copy before it gets its name, never touches an input.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import apsw

from rocpd.errors import InputError, OutputError
from rocpd.federate.federation import Federation
from rocpd.federate.open.guard import let_signals_in
from rocpd.federate.open.identify import Rank
from rocpd.federate.open.opening import Opening, as_input_error
from rocpd.output import complete_or_nothing
from rocpd.schema.quote import quote_name
from rocpd.schema.render import RankTables, relations, select_text
from rocpd.schema.versions import split_suffix
from rocpd.schema.write import create_view_text
from rocpd.types import Progress

_Texts: TypeAlias = Mapping[str, Sequence[tuple[str, str]]]

_FLAGS = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
_BATCH = 65536  # row ids copied per step: progress moves, memory stays flat
_WRITE_FAILED = {apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_TRUNCATE}
_INDEX_NAME = re.compile(r"""(?<=INDEX )("(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^]]*\]|'(?:[^']|'')*'|[^\s(]+)""")


def merge(session: Federation, path: Path, force: bool = False, progress: Progress | None = None) -> None:
    """Write all ranks of a session into one file; of their rows those that window and filters let count.

    Args:
        session: what to merge; its inputs may be merged files themselves.
        path: file to make; it appears when it is complete and verified.
        force: replace an existing file.
        progress: called with (rows copied, rows in all).

    Raises:
        OutputError: the file exists, cannot be written, or fails verification.
        InputError: an input is damaged, or two ranks use one suffix.
    """
    _check_suffixes(session)
    with complete_or_nothing(path, force) as temporary:
        connection = apsw.Connection(str(temporary), flags=_FLAGS)
        let_signals_in(connection)
        try:
            with _as_output_error(path):
                _set_up(connection)
                files = _files(session)
                stored = {file: _stored(session, ranks[0]) for file, ranks in files.items()}
                _create_tables(connection, files, stored)
                counts = _Copy(connection, session, path, progress).run(files, stored)
                _store_views(connection, session)
                _verify(connection, counts, path)
        except apsw.Error as error:
            raise OutputError(f"{path}: merging failed: {error}") from error
        finally:
            connection.close(True)


def _set_up(connection: apsw.Connection) -> None:
    # The temporary name is all the safety that is needed: a torn file is never renamed.
    for name, value in (
        ("journal_mode", "off"),
        ("synchronous", 0),
        ("locking_mode", "exclusive"),
        ("cache_size", -65536),
        ("ignore_check_constraints", True),  # rows are copied as they are, not judged
    ):
        connection.pragma(name, value)


@contextlib.contextmanager
def _as_output_error(path: Path) -> Iterator[None]:
    """Turn what SQLite says of a failed write into an `OutputError` naming `path`."""
    try:
        yield
    except apsw.FullError as error:
        raise OutputError(f"{path}: cannot be written: {error}", "free some space or choose another folder") from error
    except apsw.IOError as error:
        if getattr(error, "extendedresult", None) not in _WRITE_FAILED:
            raise
        raise OutputError(f"{path}: cannot be written: {error}") from error


def _files(session: Federation) -> dict[Opening, list[Rank]]:
    """Give file -> its ranks."""
    files: dict[Opening, list[Rank]] = {}
    for rank in session.ranks:
        files.setdefault(rank.opening, []).append(rank)
    return files


@dataclass(frozen=True)
class _Stored:
    """What a file says of its tables.

    Args:
        texts: table -> (name, text) of the table itself, then of its indexes.
        odd: tables that are perhaps more than rows in order of their ids: of other keys, or virtual.
    """

    texts: _Texts
    odd: frozenset[str]


def _stored(session: Federation, rank: Rank) -> _Stored:
    """Read what the file of a rank says, on the connection that counts its rows too."""
    texts: dict[str, list[tuple[str, str]]] = {}
    with as_input_error(rank.opening.path), session.reader(rank.number).lend() as database:
        connection = database.connection
        select = "SELECT tbl_name, name, sql FROM sqlite_master WHERE type = ? AND sql IS NOT NULL"
        for kind in ("table", "index"):
            for table, name, text in connection.execute(select, (kind,)):
                texts.setdefault(table, []).append((name, text))
        odd = """SELECT tbl_name FROM sqlite_master WHERE type = 'index' AND sql IS NULL UNION
            SELECT name FROM sqlite_master WHERE type = 'table' AND (rootpage = 0 OR sql LIKE '%WITHOUT%ROWID%')"""
        return _Stored(texts, frozenset(name for (name,) in connection.execute(odd)))


def _create_tables(
    connection: apsw.Connection, files: Mapping[Opening, Sequence[Rank]], stored: Mapping[Opening, _Stored]
) -> None:
    """Create all tables, each with its own text.

    For each new table SQLite reads the texts of all others, which takes a minute for 400 ranks. So they are created
    with short texts, and get their own ones afterwards, as https://sqlite.org/lang_altertable.html#otheralter shows.
    """
    texts = {
        base + rank.suffix: stored[opening].texts[base + rank.suffix][0][1]
        for opening, ranks in files.items()
        for rank in ranks
        for base in rank.tables
    }
    odd = frozenset().union(*(of_file.odd for of_file in stored.values()))
    connection.execute("BEGIN")
    if any("sqlite_sequence" in of_file.texts for of_file in stored.values()):  # it comes with the first such table
        connection.execute("CREATE TABLE counted (id INTEGER PRIMARY KEY AUTOINCREMENT); DROP TABLE counted")
    for name in texts:
        if name not in odd:
            connection.execute(f"CREATE TABLE {quote_name(name)} (id INTEGER PRIMARY KEY)")
    for name, text in texts.items():
        if name in odd:
            connection.execute(text)
    rows = connection.execute("SELECT rowid, name FROM sqlite_master WHERE type = 'table'").fetchall()
    connection.pragma("writable_schema", True)
    connection.executemany(
        "UPDATE sqlite_master SET sql = ? WHERE rowid = ?", [(texts[name], row) for row, name in rows if name in texts]
    )
    connection.execute("COMMIT")
    connection.pragma("writable_schema", "RESET")  # reads the texts


class _Copy:
    """Copies the tables of all ranks, file by file: attaching a file of many ranks once per rank takes minutes."""

    def __init__(self, connection: apsw.Connection, session: Federation, path: Path, progress: Progress | None) -> None:
        self._connection = connection
        self._session = session
        self._path = path
        self._progress = progress
        self._done = 0
        self._total = sum(session.count(rank.number, base) for rank in session.ranks for base in rank.tables)
        self._counts: dict[str, int] = {}

    def run(self, files: Mapping[Opening, Sequence[Rank]], stored: Mapping[Opening, _Stored]) -> dict[str, int]:
        """Copy everything; give table -> rows that its source holds."""
        for opening, ranks in files.items():
            with as_input_error(opening.path), _as_output_error(self._path):
                self._copy_file(opening, ranks, stored[opening].texts)
        return self._counts

    def _copy_file(self, opening: Opening, ranks: Sequence[Rank], texts: _Texts) -> None:
        self._connection.execute("ATTACH ? AS source", (opening.uri,))
        self._connection.execute("BEGIN")
        for rank in ranks:
            part = self._session.rank_tables(rank.number, "source")
            for base in rank.tables:
                self._copy_table(base, part, texts[base + rank.suffix][1:])
        self._tell_left_out(opening, {rank.suffix for rank in ranks}, texts)
        self._connection.execute("COMMIT")
        self._connection.execute("DETACH source")

    def _copy_table(self, base: str, part: RankTables, indexes: Iterable[tuple[str, str]]) -> None:
        """Copy the rows of one table in steps, then create its indexes."""
        name = base + part.suffix
        # Counted inside the transaction that copies: a file may still be growing.
        count = self._connection.execute(f"SELECT COUNT(*) FROM {part.rows(base)}").get
        for copied in _copy_rows(self._connection, base, part, count):
            self._done += copied
            if self._progress:
                self._progress(self._done, self._total)
        for index, text in indexes:
            self._connection.execute(_renamed(text, index if index.endswith(part.suffix) else index + part.suffix))
        self._counts[name] = count

    def _tell_left_out(self, opening: Opening, suffixes: set[str], texts: _Texts) -> None:
        left = sorted(name for name in texts if not name.startswith("sqlite_") and not split_suffix(name, suffixes))
        if left:
            self._session.note(f"{opening.path}: not merged, no table of a rank: {', '.join(left)}")


def _check_suffixes(session: Federation) -> None:
    seen: dict[str, Rank] = {}
    for rank in session.ranks:
        other = seen.setdefault(rank.suffix, rank)
        if other is not rank:
            raise InputError(
                f"{rank.opening.path}: its table suffix is also used in {other.opening.path}, by another GUID"
            )


def _renamed(text: str, name: str) -> str:
    """Give CREATE INDEX another name: names of indexes are unique in a file, and tools use the same ones in each.

    >>> _renamed("CREATE UNIQUE INDEX [a b] ON t(x)", "c")
    'CREATE UNIQUE INDEX "c" ON t(x)'
    """
    return _INDEX_NAME.sub(lambda _match: quote_name(name), text, count=1)


def _copy_rows(connection: apsw.Connection, base: str, part: RankTables, count: int) -> Iterator[int]:
    """Copy the rows of a table in steps; give the rows of each."""
    name, rows = base + part.suffix, part.rows(base)
    table = quote_name(name)
    items = ", ".join(quote_name(row[1]) for row in connection.execute(f"PRAGMA source.table_info({table})"))
    copy = f"INSERT INTO main.{table} ({items}) SELECT {items} FROM {rows}"
    if count > _BATCH and rows == part.name(base) and _has_rowid(connection, name):
        for first, last in _row_ranges(connection, f"source.{table}"):
            connection.execute(f"{copy} WHERE rowid BETWEEN ? AND ?", (first, last))
            yield connection.changes()
    elif count:
        connection.execute(copy)
        yield connection.changes()


def _has_rowid(connection: apsw.Connection, name: str) -> bool:
    sql = "SELECT NOT wr FROM pragma_table_list WHERE schema = 'source' AND name = ?"
    return bool(connection.execute(sql, (name,)).get)


def _row_ranges(connection: apsw.Connection, table: str) -> Iterator[tuple[int, int]]:
    """Cut a table into ranges of rowids with `_BATCH` rows each; ids may be far apart."""
    bounds: Any = connection.execute(f"SELECT MIN(rowid), MAX(rowid) FROM {table}").fetchall()[0]
    first, top = bounds
    while first is not None:
        sql = f"SELECT rowid FROM {table} WHERE rowid >= ? ORDER BY rowid LIMIT 2 OFFSET ?"
        found: list[Any] = [row[0] for row in connection.execute(sql, (first, _BATCH - 1))]
        yield first, found[0] if found else top
        first = found[1] if len(found) == 2 else None


def _store_views(connection: apsw.Connection, session: Federation) -> None:
    parts = tuple(RankTables(r.suffix, r.tables, None, r.number, r.hostname) for r in session.ranks)
    connection.execute("BEGIN")
    for relation in relations(parts):
        connection.execute(create_view_text(relation, select_text(relation, parts)))
    connection.execute("COMMIT")


def _verify(connection: apsw.Connection, counts: dict[str, int], path: Path) -> None:
    for name, count in counts.items():
        found = connection.execute(f"SELECT COUNT(*) FROM main.{quote_name(name)}").get
        if found != count:
            raise OutputError(f"{path}: verification failed: {name} has {found} rows, its source {count}")
    verdict = connection.execute("PRAGMA quick_check(1)").get
    if verdict != "ok":
        raise OutputError(f"{path}: verification failed: quick_check says {verdict}")
