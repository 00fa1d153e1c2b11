"""Buffers rows until they are wanted: a slow reader must not hold a lock that a profiler waits for."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from rocpd.base.sqlite import apsw
from rocpd.base.types import Row

_IN_MEMORY = 50_000  # rows


def spooled(rows: Iterable[Row], width: int, in_memory: int = _IN_MEMORY) -> Iterator[Row]:
    """Read all rows now and return an iterator over them; those beyond `in_memory` wait in a temporary file.

    Args:
        rows: rows of `width` values.
        width: columns of a row.
        in_memory: number of rows.
    """
    source = iter(rows)
    first = list(itertools.islice(source, in_memory))
    if len(first) < in_memory or width == 0:
        return iter(first)
    database = apsw.Connection("")
    database.execute(f"CREATE TABLE spool ({', '.join(f'c{i}' for i in range(width))})")
    with database:
        database.executemany(f"INSERT INTO spool VALUES ({', '.join('?' * width)})", source)
    return itertools.chain(first, _rows_of(database))


def _rows_of(database: apsw.Connection) -> Iterator[Row]:
    try:
        yield from database.execute("SELECT * FROM spool ORDER BY rowid")
    finally:
        database.close(True)
