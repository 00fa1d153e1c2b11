"""Looks in written files for what was replaced. Goes by bytes, so that no page and no column is left out."""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from pathlib import Path

from rocpd.redact.options import Clue
from rocpd.schema.quote import quote_name
from rocpd.sqlite import apsw

_SOUGHT = frozenset({Clue.HOST, Clue.MACHINE, Clue.USER, Clue.SECRET, Clue.MAIL, Clue.URL, Clue.GUID, Clue.RULE})
_LEAST = 4  # shorter texts stand in other words by chance


def sought(replaced: Iterable[tuple[Clue, str]]) -> dict[str, Clue]:
    """Return the texts that no file may hold, and what they are; of two of which one holds the other, the shorter."""
    kinds = {text: kind for kind, text in replaced if kind in _SOUGHT and len(text) >= _LEAST}
    shortest: dict[str, Clue] = {}
    for text in sorted(kinds, key=len):
        if not any(other in text for other in shortest):
            shortest[text] = kinds[text]
    return shortest


def find_texts(path: Path, texts: Iterable[str]) -> list[str]:
    """Return those of the texts that a file holds anywhere, as words."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return [text for text in texts if _is_word_in(content, text.encode())]


def _is_word_in(content: mmap.mmap, text: bytes) -> bool:
    at = content.find(text)
    while at >= 0:
        around = content[max(at - 1, 0) : at] + content[at + len(text) : at + len(text) + 1]
        if not any(byte < 128 and chr(byte).isalnum() for byte in around):
            return True
        at = content.find(text, at + 1)
    return False


def column_with(path: Path, text: str) -> str:
    """Return the table and column of a file that hold a text, to be named in an error."""
    connection = apsw.Connection(str(path), apsw.SQLITE_OPEN_READONLY)
    try:
        for (name_of_table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            table = str(name_of_table)
            for column in [str(row[1]) for row in connection.execute(f"PRAGMA table_info({quote_name(table)})")]:
                name = quote_name(column)
                sql = f"SELECT 1 FROM {quote_name(table)} WHERE instr({name}, ?) LIMIT 1"  # noqa: S608 (quoted names)
                if connection.execute(sql, (text,)).fetchall():
                    return f"{table}.{column}"
    finally:
        connection.close()
    return "a text of the schema"
