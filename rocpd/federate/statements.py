"""Splits SQL into statements, by SQLite's own rules."""

from __future__ import annotations

from collections.abc import Iterator


def statements(sql: str) -> Iterator[str]:
    """Yield the statements of a script, each with its end: `;` in strings, comments and triggers does not count.

    >>> list(statements("select ';'; select 2"))
    ["select ';';", ' select 2;']
    """
    from rocpd.base.sqlite import apsw

    pending = ""
    for piece in sql.split(";"):
        pending += piece
        if not pending.strip():
            pending = ""
        elif apsw.complete(pending + ";"):
            yield pending + ";"
            pending = ""
        else:
            pending += ";"
    if pending.strip():
        yield pending
