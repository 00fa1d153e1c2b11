"""Merges: writes one SQLite file with every rank's own tables and indexes, and stores the federated views in it.

Copies rows as they are, verifies the copy before it gets its name, never touches an input.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from rocpd.base import InputError, OutputError, Progress, by_key, frozen
from rocpd.base.output import complete_or_nothing
from rocpd.base.sqlite import READWRITE, apsw, writing
from rocpd.federate.federation import Federation
from rocpd.federate.open.guard import let_signals_in
from rocpd.federate.open.identify import TAG, Rank, StoredWindow, by_file
from rocpd.federate.open.opening import Opening, as_input_error
from rocpd.federate.select.outside import outside_conditions
from rocpd.schema.quote import quote_name, quote_text
from rocpd.schema.render import RankTables, create_view_text, outside_of, relations, select_text
from rocpd.schema.versions import guid_of, split_suffix, suffix_of
from rocpd.schema.write import MARK

_Texts: TypeAlias = Mapping[str, Sequence[tuple[str, str]]]

_BATCH = 65536  # row ids copied per step: progress moves, memory stays flat
_INDEX_NAME = re.compile(r"""(?<=INDEX )("(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^]]*\]|'(?:[^']|'')*'|[^\s(]+)""")


def merge(session: Federation, path: Path, force: bool = False, progress: Progress | None = None) -> None:
    """Write all ranks of a session, with their selected rows, into one file.

    Args:
        session: the session to merge; its inputs may be merged files themselves.
        path: file to make; it appears when it is complete and verified.
        force: replace an existing file.
        progress: called with (rows copied, rows in all).

    Raises:
        OutputError: the file exists, cannot be written, or fails verification.
        InputError: an input is damaged, or two ranks use one suffix.
    """
    _check_suffixes(session)
    with complete_or_nothing(path, force) as temporary:
        connection = apsw.Connection(str(temporary), flags=READWRITE)
        let_signals_in(connection)
        try:
            with writing(connection):
                _set_up(connection)
                ranks_of = by_file(session.ranks)
                schemas = {opening: _read_schema(session, ranks[0]) for opening, ranks in ranks_of.items()}
                _create_tables(connection, ranks_of, schemas)
                counts = _Copy(connection, session, progress).run(ranks_of, schemas)
                _store_views(connection, session)
                _verify(connection, counts, path)
        except apsw.Error as error:
            raise OutputError(f"{path}: merging failed: {error}") from error
        finally:
            connection.close(True)


def _set_up(connection: apsw.Connection) -> None:
    # The temporary name makes it safe enough: an incomplete file is never renamed.
    for name, value in (
        ("journal_mode", "off"),
        ("synchronous", 0),
        ("cache_size", -65536),
        ("ignore_check_constraints", True),  # rows are copied as they are, not judged
    ):
        connection.pragma(name, value)
    # For the output alone: without `main.` it would hold for inputs attached later too, and keep their writers out.
    connection.execute("PRAGMA main.locking_mode = exclusive")
    connection.execute(f"CREATE TABLE {MARK} (version TEXT)")


@frozen
class _Schema:
    """The tables of a file.

    Args:
        texts: table -> (name, text) of the table itself, then of its indexes.
        unusual: tables that may not be plain rows by id: they have other keys or no rowids, or are virtual.
    """

    texts: _Texts
    unusual: frozenset[str]


def _read_schema(session: Federation, rank: Rank) -> _Schema:
    """Return the schema of a rank's file, read on the connection that also counts its rows."""
    with as_input_error(rank.opening.path), session.reader(rank.number).lend() as database:
        connection = database.connection
        select = "SELECT tbl_name, name, sql FROM sqlite_master WHERE type = ? AND sql IS NOT NULL"
        rows = (row for kind in ("table", "index") for row in connection.execute(select, (kind,)))
        texts = by_key((table, (name, text)) for table, name, text in rows)
        unusual = """SELECT tbl_name FROM sqlite_master WHERE type = 'index' AND sql IS NULL UNION
            SELECT name FROM sqlite_master WHERE type = 'table' AND (rootpage = 0 OR sql LIKE '%WITHOUT%ROWID%')"""
        return _Schema(texts, frozenset(name for (name,) in connection.execute(unusual)))


def _create_tables(
    connection: apsw.Connection, ranks_of: Mapping[Opening, Sequence[Rank]], schemas: Mapping[Opening, _Schema]
) -> None:
    """Create all tables, each with its own text.

    For each new table SQLite reads the texts of all other tables, which takes a minute for 400 ranks. So tables are
    created with short texts and get their own afterwards, as https://sqlite.org/lang_altertable.html#otheralter shows.
    """
    texts: dict[str, str] = {}
    unusual: set[str] = set()
    for opening, ranks in ranks_of.items():
        schema = schemas[opening]
        for rank, base in ((each, base) for each in ranks for base in each.tables):
            source, suffix = base + rank.suffix, _output_suffix(rank)
            texts[base + suffix] = _with_suffix(schema.texts[source][0][1], rank.suffix, suffix)
            if source in schema.unusual:
                unusual.add(base + suffix)
    connection.execute("BEGIN")
    if any("sqlite_sequence" in schema.texts for schema in schemas.values()):  # the first such table creates it
        connection.execute("CREATE TABLE counted (id INTEGER PRIMARY KEY AUTOINCREMENT); DROP TABLE counted")
    for name in texts:
        if name not in unusual:
            connection.execute(f"CREATE TABLE {quote_name(name)} (id INTEGER PRIMARY KEY)")
    for name, text in texts.items():
        if name in unusual:
            connection.execute(text)
    rows = connection.execute("SELECT rowid, name FROM sqlite_master WHERE type = 'table'").fetchall()
    connection.pragma("writable_schema", True)
    connection.executemany(
        "UPDATE sqlite_master SET sql = ? WHERE rowid = ?", [(texts[name], row) for row, name in rows if name in texts]
    )
    connection.execute("COMMIT")
    connection.pragma("writable_schema", "RESET")  # reads the new texts


class _Copy:
    """Copies the tables of all ranks file by file: attaching a file of many ranks once per rank would take minutes."""

    def __init__(self, connection: apsw.Connection, session: Federation, progress: Progress | None) -> None:
        self._connection = connection
        self._session = session
        self._progress = progress
        self._rows_copied = 0
        self._total = sum(sum(session.table_rows(rank).values()) for rank in session.ranks)
        self._counts: dict[str, int] = {}

    def run(self, ranks_of: Mapping[Opening, Sequence[Rank]], schemas: Mapping[Opening, _Schema]) -> dict[str, int]:
        """Copy all tables; return table -> number of rows in its source."""
        for opening, ranks in ranks_of.items():
            with as_input_error(opening.path), writing(self._connection):
                try:
                    self._copy_file(opening, ranks, schemas[opening].texts)
                except apsw.ConstraintError as error:  # of the file's own tables
                    raise InputError(f"{opening.path}: damaged: {error}", "--skip-bad may leave it out") from error
        return self._counts

    def _copy_file(self, opening: Opening, ranks: Sequence[Rank], texts: _Texts) -> None:
        self._connection.execute("ATTACH ? AS source", (opening.uri,))
        self._connection.execute("BEGIN")
        for rank in ranks:
            tables = self._session.rank_tables(rank.number, "source")
            for base in rank.tables:
                self._copy_table(base, tables, texts[base + rank.suffix][1:])
            self._store_window(rank, tables)
        self._note_left_out(opening, {rank.suffix for rank in ranks}, texts)
        self._connection.execute("COMMIT")
        self._connection.execute("DETACH source")

    def _copy_table(self, base: str, tables: RankTables, indexes: Iterable[tuple[str, str]]) -> None:
        """Copy the rows of one table in steps, then create its indexes."""
        # Counted inside the transaction that copies: a file may still be growing.
        count = self._connection.execute(f"SELECT COUNT(*) FROM {tables.rows(base)}").get
        for copied in _copy_rows(self._connection, base, tables, count):
            self._rows_copied += copied
            if self._progress:
                self._progress(self._rows_copied, self._total)
        suffix = _output_suffix(tables)
        for index, text in indexes:
            name = index.removesuffix(tables.suffix) + suffix
            self._connection.execute(_renamed(_with_suffix(text, tables.suffix, suffix), name))
        self._counts[base + suffix] = count

    def _store_window(self, rank: Rank, tables: RankTables) -> None:
        """Store the window in the metadata, and in further tables the rows around it that analyses need."""
        window = self._session.selection.window
        metadata = "rocpd_metadata" + _output_suffix(rank)
        if window is None or rank.number not in self._session.spans or metadata not in self._counts:
            return
        conditions = outside_conditions(self._session.reader(rank.number), tables, window.part(rank.number))
        for base, condition in conditions.items():
            target = quote_name(outside_of(base) + _output_suffix(rank))
            select = f"SELECT * FROM {tables.name(base)} WHERE {condition}"
            is_there = outside_of(base) in rank.tables
            self._connection.execute(
                f"INSERT INTO {target} {select}" if is_there else f"CREATE TABLE {target} AS {select}"
            )
            self._counts.pop(outside_of(base) + _output_suffix(rank), None)
        edges = window.edges(rank.number, self._session.alignment, self._session.time_range)
        stored = StoredWindow(*edges, window.is_by_launch(rank.number))
        self._connection.execute(f"DELETE FROM {quote_name(metadata)} WHERE tag = ?", (TAG,))
        self._connection.execute(f"INSERT INTO {quote_name(metadata)} (tag, value) VALUES (?, ?)", (TAG, stored.text()))
        self._counts[metadata] = self._connection.execute(f"SELECT COUNT(*) FROM {quote_name(metadata)}").get

    def _note_left_out(self, opening: Opening, suffixes: set[str], texts: _Texts) -> None:
        others = (name for name in texts if name != MARK and not name.startswith("sqlite_"))
        if names := sorted(name for name in others if not split_suffix(name, suffixes)):
            self._session.note(f"{opening.path}: not merged, tables that belong to no rank: {', '.join(names)}")


def _check_suffixes(session: Federation) -> None:
    by_suffix: dict[str, Rank] = {}
    for rank in session.ranks:
        other = by_suffix.setdefault(_output_suffix(rank).lower(), rank)
        if other is not rank:
            raise InputError(
                f"{rank.opening.path}: its table suffix is also used in {other.opening.path}, by another GUID",
                "merge them into two files: names of tables are the same in upper and lower case",
            )


def _output_suffix(rank: Rank | RankTables) -> str:
    """Return the suffix of a rank in the merged file: a new one where two files have the same suffix."""
    guid = rank.guid or ""
    return suffix_of(guid) if "#" in guid else rank.suffix


def _with_suffix(text: str, old: str, new: str) -> str:
    """Return the text of a table or index with a new suffix in the names of tables.

    >>> _with_suffix("CREATE TABLE rocpd_arg_x (id REFERENCES `rocpd_event_x` (id), a_x)", "_x", "_x_2")
    'CREATE TABLE rocpd_arg_x_2 (id REFERENCES `rocpd_event_x_2` (id), a_x)'
    """
    return text if old == new else re.sub(rf"(\brocpd_\w+?){re.escape(old)}(?!\w)", rf"\g<1>{new}", text)


def _renamed(text: str, name: str) -> str:
    """Return a CREATE INDEX with a new name: index names are unique in a file, and tools use the same in each file.

    >>> _renamed("CREATE UNIQUE INDEX [a b] ON t(x)", "c")
    'CREATE UNIQUE INDEX "c" ON t(x)'
    """
    return _INDEX_NAME.sub(lambda _match: quote_name(name), text, count=1)


def _copy_rows(connection: apsw.Connection, base: str, tables: RankTables, count: int) -> Iterator[int]:
    """Copy the rows of a table in steps; yield the number of rows of each step."""
    name, rows = base + tables.suffix, tables.rows(base)
    table, target = quote_name(name), quote_name(base + _output_suffix(tables))
    columns = [str(row[1]) for row in connection.execute(f"PRAGMA source.table_info({table})")]
    items = ", ".join(_copied(base, column, tables) for column in columns)
    copy = f"INSERT INTO main.{target} ({', '.join(map(quote_name, columns))}) SELECT {items} FROM {rows}"
    if count > _BATCH and rows == tables.name(base) and _has_rowid(connection, name):
        for first, last in _row_ranges(connection, f"source.{table}"):
            connection.execute(f"{copy} WHERE rowid BETWEEN ? AND ?", (first, last))
            yield connection.changes()
    elif count:
        connection.execute(copy)
        yield connection.changes()


def _copied(base: str, column: str, tables: RankTables) -> str:
    """Return the expression that is copied into a column: the column itself, except for the identity of the rank."""
    if column.lower() == "guid" and tables.guid is not None:
        return tables.guid_text
    if (base, column.lower()) == ("rocpd_metadata", "value"):
        guid, new = quote_text(tables.guid), quote_text(_output_suffix(tables))
        return f"""CASE
            WHEN tag = 'uuid' AND value = {quote_text(tables.suffix)} THEN {new}
            WHEN tag = 'guid' AND value IN ('{{{{guid}}}}', {quote_text(guid_of(tables.suffix))}) THEN {guid}
            ELSE value END"""
    return quote_name(column)


def _has_rowid(connection: apsw.Connection, name: str) -> bool:
    sql = "SELECT NOT wr FROM pragma_table_list WHERE schema = 'source' AND name = ?"
    return bool(connection.execute(sql, (name,)).get)


def _row_ranges(connection: apsw.Connection, table: str) -> Iterator[tuple[int, int]]:
    """Yield the first and last rowid of ranges with `_BATCH` rows each; ids may be far apart."""
    bounds: Any = connection.execute(f"SELECT MIN(rowid), MAX(rowid) FROM {table}").fetchall()[0]
    first, last = bounds
    while first is not None:
        sql = f"SELECT rowid FROM {table} WHERE rowid >= ? ORDER BY rowid LIMIT 2 OFFSET ?"
        end_and_next: list[Any] = [row[0] for row in connection.execute(sql, (first, _BATCH - 1))]
        yield first, end_and_next[0] if end_and_next else last
        first = end_and_next[1] if len(end_and_next) == 2 else None


def _store_views(connection: apsw.Connection, session: Federation) -> None:
    tables = tuple(replace(rank.as_tables(), suffix=_output_suffix(rank)) for rank in session.ranks)
    connection.execute("BEGIN")
    for relation in relations(tables):
        connection.execute(create_view_text(relation, select_text(relation, tables)))
    connection.execute("COMMIT")


def _verify(connection: apsw.Connection, counts: dict[str, int], path: Path) -> None:
    for name, count in counts.items():
        copied = connection.execute(f"SELECT COUNT(*) FROM main.{quote_name(name)}").get
        if copied != count:
            raise OutputError(f"{path}: verification failed: {name} has {copied} rows, its source {count}")
    verdict = connection.execute("PRAGMA quick_check(1)").get
    if verdict != "ok":
        raise OutputError(f"{path}: verification failed: quick_check says {verdict}")
