"""What the simulator's tests share: opening files as they lie, table contents as one hash."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

import apsw


def read(path: Path) -> apsw.Connection:
    """Open a file that nothing lies beside."""
    return apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)


def recover(path: Path, folder: Path) -> apsw.Connection:
    """Open a copy of the file and of what lies beside it; SQLite then recovers the copy."""
    folder.mkdir(parents=True, exist_ok=True)
    for source in path.parent.glob(f"{path.name}*"):
        shutil.copyfile(source, folder / source.name)
    return apsw.Connection(str(folder / path.name))


def rows(connection: apsw.Connection, sql: str) -> list[tuple[Any, ...]]:
    """Run a query and return all rows."""
    return connection.execute(sql).fetchall()


def digests(connection: apsw.Connection) -> dict[str, str]:
    """Return a hash of the rows of every table, and of the schema's text."""
    hashes = {}
    tables = [name for (name,) in rows(connection, "SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in [*sorted(tables), "sqlite_master"]:
        content = rows(connection, f'SELECT * FROM "{table}" ORDER BY 1, 2')
        hashes[table] = hashlib.sha256(repr(content).encode()).hexdigest()
    return hashes
