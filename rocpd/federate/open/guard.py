"""Holds the rule that SQL writes nowhere but temp, and lets Ctrl-C or a fork stop statements. Opens no connection."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from weakref import WeakSet

from rocpd.base.process import renew_when_forked
from rocpd.base.sqlite import apsw

_ACTIONS = {str(name): code for name, code in apsw.mapping_authorizer_function.items() if isinstance(code, int)}
_TEMP_BY_NAME = {code for name, code in _ACTIONS.items() if "_TEMP_" in name}  # SQLITE_CREATE_TEMP_TABLE …
_READS = {apsw.SQLITE_SELECT, apsw.SQLITE_READ, apsw.SQLITE_RECURSIVE, apsw.SQLITE_TRANSACTION, apsw.SQLITE_SAVEPOINT}
_ALLOWED = _READS | _TEMP_BY_NAME
# CREATE and DROP are of temp also where the name says so: temp.name
_OF_A_DATABASE = ("SQLITE_CREATE_", "SQLITE_DROP_", "SQLITE_ALTER_TABLE", "SQLITE_ANALYZE", "SQLITE_REINDEX")
_TEMP_BY_DATABASE = {code for name, code in _ACTIONS.items() if name.startswith(_OF_A_DATABASE)} - _TEMP_BY_NAME
_TEMP_BY_DATABASE |= {apsw.SQLITE_INSERT, apsw.SQLITE_UPDATE, apsw.SQLITE_DELETE}
_PRAGMAS_WITH_ARGUMENT = {
    "foreign_key_check", "foreign_key_list", "index_info", "index_list", "index_xinfo", "integrity_check",
    "quick_check", "table_info", "table_list", "table_xinfo",
}  # fmt: skip
_PRAGMAS_READ = _PRAGMAS_WITH_ARGUMENT | {
    "application_id", "collation_list", "compile_options", "data_version", "database_list", "encoding",
    "freelist_count", "function_list", "journal_mode", "module_list", "page_count", "page_size", "pragma_list",
    "schema_version", "temp_store", "user_version",
}  # fmt: skip


LONGEST_VALUE = 100_000_000
"""The most bytes of a value, and of a row: functions that make longer ones fill memory and cannot be interrupted."""

_STEPS_BETWEEN_SIGNALS = 200_000  # of SQLite's virtual machine: a few milliseconds


def guard(connection: apsw.Connection) -> None:
    """Let SQL on a connection write nowhere but temp, and let Ctrl-C stop it."""
    connection.authorizer = authorize
    bound(connection)


def bound(connection: apsw.Connection) -> None:
    """Let Ctrl-C stop the statements on a connection, and limit values to a length that can be interrupted."""
    connection.limit(apsw.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
    let_signals_in(connection)


def let_signals_in(connection: apsw.Connection, stopped: Callable[[], bool] = lambda: False) -> None:
    """Let Ctrl-C, or `stopped` once it returns True, stop the statements on a connection; a fork stops the child's.

    Python handles signals only when SQLite calls back into it.
    """
    connection.set_progress_handler(stopped, _STEPS_BETWEEN_SIGNALS)
    _CONNECTIONS.known.add(connection)


class _Connections:
    """Connections whose statements stop in a forked child: they would write to temporary files of the parent."""

    def __init__(self) -> None:
        self.known: WeakSet[apsw.Connection] = WeakSet()

    def renew(self) -> None:
        """Stop the statements."""
        for connection in list(self.known):
            with contextlib.suppress(apsw.ConnectionClosedError):
                connection.interrupt()
        self.known.clear()


_CONNECTIONS = _Connections()
renew_when_forked(_CONNECTIONS)


def authorize(action: int, first: str | None, second: str | None, database: str | None, _trigger: str | None) -> int:
    """SQLite's authorizer (https://sqlite.org/c3ref/set_authorizer.html): raw files are evidence."""
    if action in _ALLOWED:
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
