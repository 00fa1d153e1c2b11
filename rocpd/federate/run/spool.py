"""Owns keeping rows until they are wanted: whoever reads slowly must not hold a lock that a profiler waits for."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import apsw

from rocpd.types import Row

_IN_MEMORY = 50_000  # rows


def spooled(rows: Iterable[Row], width: int, in_memory: int = _IN_MEMORY) -> Iterator[Row]:
    """Read all rows now, give them later; what is over `in_memory` waits in a temporary file.

    Args:
        rows: rows of `width` values.
        width: columns of a row.
        in_memory: rows.
    """
    source = iter(rows)
    kept = list(itertools.islice(source, in_memory))
    if len(kept) < in_memory or width == 0:
        return iter(kept)
    store = apsw.Connection("")
    store.execute(f"CREATE TABLE kept ({', '.join(f'c{i}' for i in range(width))})")
    with store:
        store.executemany(f"INSERT INTO kept VALUES ({', '.join('?' * width)})", source)
    return itertools.chain(kept, _from(store))


def _from(store: apsw.Connection) -> Iterator[Row]:
    try:
        yield from store.execute("SELECT * FROM kept ORDER BY rowid")
    finally:
        store.close(True)
