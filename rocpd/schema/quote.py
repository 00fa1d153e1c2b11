"""Quotes names and text in generated SQL; no other module quotes."""

from __future__ import annotations


def quote_name(*parts: str) -> str:
    """Return an SQL identifier, with dots between several parts.

    >>> quote_name("r0", 'odd"name')
    '"r0"."odd""name"'
    """
    return '"' + '"."'.join([part.replace('"', '""') for part in parts]) + '"'


def quote_text(value: str | None) -> str:
    """Return an SQL string literal, or NULL; for texts of views, which cannot bind values.

    >>> quote_text("it's")
    "'it''s'"
    """
    return "NULL" if value is None else "'" + value.replace("\0", "").replace("'", "''") + "'"
