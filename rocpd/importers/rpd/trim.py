"""Cuts an RPD file to a window, into a new RPD file without references to rows that were left out.

Calls and operations that overlap the window of their process stay, as a whole, and so do the calls that launched such
operations. Tables derived from the whole trace (`ext_callstack`, `ext_graph`) are left out: they would no longer hold.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from rocpd.base.output import complete_or_nothing
from rocpd.base.sqlite import apsw, writing
from rocpd.federate.open.opening import as_input_error
from rocpd.federate.select.selection import Part
from rocpd.importers.files import TraceSource, rank_guid
from rocpd.importers.rpd.tables import WITHOUT_CALL, RpdProcess, RpdTables
from rocpd.schema.quote import quote_name

_MADE_OF_ALL = re.compile(r"\b(ext_callstack|ext_graph\w*)\b", re.IGNORECASE)
_GENERATED = "'Callstack::Table', 'Callstack::Generated', 'Graph::Table', 'Graph::Generated'"
_NO_STRINGS = frozenset({"api_id", "op_id", "from_op_id", "to_op_id", "api_ptr_id", "op_ptr_id", "codeObject_id"})
_FIRST, _LAST = -(1 << 63), (1 << 63) - 1


def _overlaps(row: str, bounds: str) -> str:
    """Return the condition that a row overlaps the window, by the rule of all windows, see `federate.select.part`."""
    start, end = f"{row}.start", f'{row}."end"'
    inside = f'{start} >= {bounds}.start AND {start} < {bounds}."end"'
    return f'({end} > {start} AND {end} > {bounds}.start AND {start} < {bounds}."end" OR {end} <= {start} AND {inside})'


_KEPT = f"""
-- Runs before the new file has tables: names without a schema are those of the trace.
CREATE TEMP TABLE whole AS SELECT MIN(start) AS start, MAX("end") AS "end" FROM bounds;
CREATE TEMP TABLE kept_op AS
    SELECT O.id FROM trace.rocpd_api_ops X JOIN trace.rocpd_op O ON O.id = X.op_id
    JOIN trace.rocpd_api A ON A.id = X.api_id JOIN bounds B ON B.pid = A.pid WHERE {_overlaps("O", "B")}
    UNION SELECT O.id FROM trace.rocpd_op O, whole W
    WHERE O.{WITHOUT_CALL} AND {_overlaps("O", "W")};
CREATE TEMP TABLE kept_api AS
    SELECT A.id FROM trace.rocpd_api A JOIN bounds B ON B.pid = A.pid WHERE {_overlaps("A", "B")}
    UNION SELECT X.api_id FROM trace.rocpd_api_ops X JOIN trace.rocpd_api A ON A.id = X.api_id
    WHERE X.op_id IN (SELECT id FROM kept_op);
CREATE UNIQUE INDEX temp.kept_ops ON kept_op (id);
CREATE UNIQUE INDEX temp.kept_apis ON kept_api (id);
"""
_OF_API, _OF_OP = "IN (SELECT id FROM kept_api)", "IN (SELECT id FROM kept_op)"
_CONDITIONS = {
    "rocpd_api": f"id {_OF_API}",
    "rocpd_op": f"id {_OF_OP}",
    "rocpd_api_ops": f"api_id {_OF_API} AND op_id {_OF_OP}",
    "rocpd_op_inputSignals": f"from_op_id {_OF_OP} AND to_op_id {_OF_OP}",
    "rocpd_monitor": f"EXISTS (SELECT 1 FROM whole W WHERE {_overlaps('rocpd_monitor', 'W')})",
}


def trim_rpd(source: TraceSource, target: Path, parts: Mapping[str, Part], force: bool = False) -> None:
    """Write the part of an RPD file that counts.

    Args:
        source: the file; it is not changed.
        target: the file to write; it appears when it is complete.
        parts: GUID of a process, as when imported -> the part of its time that counts; other processes are left out.
        force: replace an existing file.

    Raises:
        InputError: the file is damaged.
        OutputError: the new file exists or cannot be written.
    """
    tables = RpdTables(source.database)
    with complete_or_nothing(target, force) as temporary, as_input_error(source.path):
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI
        with closing(apsw.Connection(str(temporary), flags)) as connection, writing(connection):
            connection.execute("ATTACH ? AS trace", (source.opening.uri,))
            connection.execute("BEGIN")
            processes = {rank_guid("rpd", source.digest, process.key): process for process in tables.processes()}
            _write_bounds(connection, {processes[guid]: part for guid, part in parts.items()})
            _copy(connection, tables)
            connection.execute("COMMIT")


def _write_bounds(connection: apsw.Connection, parts: Mapping[RpdProcess, Part]) -> None:
    connection.execute('CREATE TEMP TABLE bounds (pid INTEGER PRIMARY KEY, start, "end")')
    for process, part in parts.items():
        start = _FIRST if part.start is None else part.start
        end = _LAST if part.end is None else part.end
        connection.execute("INSERT INTO bounds VALUES (?, ?, ?)", (process.recorded, start, end))
    connection.execute(_KEPT)


def _copy(connection: apsw.Connection, tables: RpdTables) -> None:
    entries = connection.execute("SELECT type, name, sql FROM trace.sqlite_master WHERE sql IS NOT NULL").fetchall()
    wanted = [(kind, str(name), str(sql)) for kind, name, sql in entries if not _MADE_OF_ALL.search(str(sql))]
    wanted = [entry for entry in wanted if not entry[1].startswith("sqlite_")]
    copied = [name for kind, name, _ in wanted if kind == "table"]
    for kind, _, sql in wanted:
        if kind == "table":
            connection.execute(sql)
    texts = [name for name in ("rocpd_string", "rocpd_ustring") if name in copied]
    for table in copied:
        if table not in texts:
            _copy_rows(connection, table, _condition(tables, table))
    for table in texts:
        _copy_rows(connection, table, f"id IN ({_used_texts(tables, copied, table)})")
    for kind, _, sql in wanted:
        if kind in ("index", "view"):
            connection.execute(sql)


def _condition(tables: RpdTables, table: str) -> str:
    """Return the condition on the rows of a table that stay."""
    if table in _CONDITIONS:
        return _CONDITIONS[table]
    if table == "rocpd_metadata":
        return f"tag NOT IN ({_GENERATED})"
    columns = tables.columns[table]
    for column, condition in (("api_ptr_id", _OF_API), ("op_ptr_id", _OF_OP), ("op_id", _OF_OP)):
        if column in columns and not (column == "op_id" and "api_ptr_id" in columns):
            return f"{column} {condition}"
    return "TRUE"


def _copy_rows(connection: apsw.Connection, table: str, condition: str) -> None:
    name = quote_name(table)
    connection.execute(f"INSERT INTO main.{name} SELECT * FROM trace.{name} WHERE {condition} ORDER BY rowid")


def _used_texts(tables: RpdTables, copied: Sequence[str], texts: str) -> str:
    """Return the SELECT of the ids of texts that rows of the new file refer to."""
    has_unique_texts = "rocpd_ustring" in copied
    selects = ["SELECT id FROM trace.rocpd_string WHERE string = ''"] if texts == "rocpd_string" else []
    for table in copied:
        for column in sorted(tables.columns[table]):
            is_text = column.endswith("_id") and column not in _NO_STRINGS
            home = "rocpd_ustring" if column == "args_id" and has_unique_texts else "rocpd_string"
            if is_text and home == texts:
                selects.append(f"SELECT {quote_name(column)} FROM main.{quote_name(table)}")
    return " UNION ".join(selects)
