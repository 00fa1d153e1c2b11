"""Owns the one connection with all files attached, and the rule that SQL on it writes nowhere but temp.

Never creates views (`unify` does) and never decides how a file is opened (`open` did).
"""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from rocpd.errors import InputError
from rocpd.federate.identify import Rank
from rocpd.federate.open import BUSY_MS, Opening, told_as_input_error
from rocpd.schema.render import Part

_ALLOWED = {
    apsw.SQLITE_SELECT,
    apsw.SQLITE_READ,
    apsw.SQLITE_RECURSIVE,
    apsw.SQLITE_TRANSACTION,
    apsw.SQLITE_SAVEPOINT,
}
_TEMP_ONLY = {
    apsw.SQLITE_CREATE_TEMP_INDEX,
    apsw.SQLITE_CREATE_TEMP_TABLE,
    apsw.SQLITE_CREATE_TEMP_TRIGGER,
    apsw.SQLITE_CREATE_TEMP_VIEW,
    apsw.SQLITE_DROP_TEMP_INDEX,
    apsw.SQLITE_DROP_TEMP_TABLE,
    apsw.SQLITE_DROP_TEMP_TRIGGER,
    apsw.SQLITE_DROP_TEMP_VIEW,
}
_TEMP_BY_DATABASE = {
    apsw.SQLITE_INSERT,
    apsw.SQLITE_UPDATE,
    apsw.SQLITE_DELETE,
    apsw.SQLITE_ALTER_TABLE,
    apsw.SQLITE_ANALYZE,
    apsw.SQLITE_REINDEX,
    apsw.SQLITE_CREATE_VTABLE,
    apsw.SQLITE_DROP_VTABLE,
}
_PRAGMAS_WITH_ARGUMENT = {
    "foreign_key_check", "foreign_key_list", "index_info", "index_list", "index_xinfo", "integrity_check",
    "quick_check", "table_info", "table_list", "table_xinfo",
}  # fmt: skip
_PRAGMAS_READ = _PRAGMAS_WITH_ARGUMENT | {
    "application_id", "collation_list", "compile_options", "data_version", "database_list", "encoding",
    "freelist_count", "function_list", "journal_mode", "module_list", "page_count", "page_size", "pragma_list",
    "schema_version", "temp_store", "user_version",
}  # fmt: skip


_STEPS_BETWEEN_SIGNALS = 200_000  # of SQLite's virtual machine: a few milliseconds


def attach(ranks: Sequence[Rank]) -> tuple[apsw.Connection, tuple[Part, ...]]:
    """Attach the files of `ranks` read-only to a new in-memory connection.

    Returns:
        the connection, and for each rank its tables as statements on that connection name them.

    Raises:
        InputError: more files than SQLite can attach, or a file that cannot be opened.
    """
    openings = tuple(dict.fromkeys(rank.opening for rank in ranks))
    connection = apsw.Connection(
        ":memory:", flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
    )
    try:
        limit = connection.limit(apsw.SQLITE_LIMIT_ATTACHED)
        if len(openings) > limit:
            raise InputError(
                f"{len(openings)} files: SQLite can attach {limit} at once",
                "`rocpd merge` groups of them first: a merged file counts as one",
            )
        connection.set_busy_timeout(BUSY_MS)
        names = {opening: _attach_one(connection, opening, index) for index, opening in enumerate(openings)}
        connection.authorizer = _authorize
        let_signals_in(connection)
    except BaseException:
        connection.close()
        raise
    parts = tuple(Part(r.suffix, r.tables, names[r.opening], r.number, r.hostname) for r in ranks)
    return connection, parts


def let_signals_in(connection: apsw.Connection) -> None:
    """Let Ctrl-C stop a long statement: Python handles signals only when SQLite calls back into it."""
    connection.set_progress_handler(lambda: False, _STEPS_BETWEEN_SIGNALS)


def _attach_one(connection: apsw.Connection, opening: Opening, index: int) -> str:
    name = f"f{index}"
    with told_as_input_error(opening.path):
        connection.execute(f"ATTACH ? AS {name}", (opening.uri,))
    return name


def _authorize(action: int, first: str | None, second: str | None, database: str | None, _trigger: str | None) -> int:
    """SQLite's authorizer (https://sqlite.org/c3ref/set_authorizer.html): raw files are evidence."""
    if action in _ALLOWED or action in _TEMP_ONLY:
        return apsw.SQLITE_OK
    if action in _TEMP_BY_DATABASE:
        # ALTER TABLE names the database first, everything else third.
        where = first if action == apsw.SQLITE_ALTER_TABLE else database
        return apsw.SQLITE_OK if where == "temp" else apsw.SQLITE_DENY
    if action == apsw.SQLITE_FUNCTION:
        return apsw.SQLITE_DENY if (second or "").lower() == "load_extension" else apsw.SQLITE_OK
    if action == apsw.SQLITE_PRAGMA:
        known = _PRAGMAS_READ if second is None else _PRAGMAS_WITH_ARGUMENT
        return apsw.SQLITE_OK if (first or "").lower() in known else apsw.SQLITE_DENY
    return apsw.SQLITE_DENY
