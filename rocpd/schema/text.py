"""Owns the form of the `.sql` files: comments with units and kinds, clauses, columns and relations that a text names.

Knows no table and no view. The texts are ours, one column or table a line, so patterns are enough to read them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from rocpd.base.frozen import frozen

_SINCE = re.compile(r"^since (\d+\.\d+\.\d+): ")
_UNIT = re.compile(r" \[([^\]]+)\]$")
_KIND = re.compile(r" \{(\w+)\}$")
_COLUMN = re.compile(r'\b(?P<alias>[A-Za-z]\w*)\.(?P<quote>"?)(?P<column>\w+)(?P=quote)')
_RELATION = re.compile(r'\b(?:FROM|JOIN)\s+"(?P<name>\w+)"(?: (?P<alias>\w+))?')
_STRING = re.compile(r"'[^']*'")


@frozen
class Comment:
    """What a comment says: `since 3.0.1: meaning [unit] {kind}`, all but the meaning empty where it does not stand."""

    doc: str
    unit: str
    since: str
    kind: str


def read_comment(text: str) -> Comment:
    """Take a comment apart.

    >>> read_comment("since 3.0.2: time in the graph [ns] {integer}")
    Comment(doc='time in the graph', unit='ns', since='3.0.2', kind='integer')
    """
    text, kind = _cut(_KIND, text)
    text, unit = _cut(_UNIT, text)
    text, since = _cut(_SINCE, text)
    return Comment(text, unit, since, kind)


def head_comment(text: str) -> str:
    """Return the lines of comment above CREATE."""
    return "\n".join(line[3:] for line in text.split("CREATE", 1)[0].splitlines() if line.startswith("-- "))


def strip_comments(text: str) -> str:
    """Drop the trailing `-- …` comments of a `.sql` file of ours (none holds `-- ` in a string)."""
    return "\n".join(line.rstrip() for line in re.sub(r"-- .*$", "", text, flags=re.M).splitlines() if line.strip())


def clauses(select: str) -> dict[str, list[str]]:
    """Return clause -> its lines: a line that is not indented names a clause, and the first of a name counts."""
    lines_of: dict[str, list[str]] = {}
    for clause in re.split(r"\n(?=\S)", select):
        name, *lines = clause.splitlines()
        lines_of.setdefault(name, lines)
    return lines_of


def columns_used(sql: str) -> tuple[tuple[str, str], ...]:
    """Return (alias, column) of every `alias.column` in SQL, each once.

    >>> columns_used("K.end - K.start || ' A.name' || K.start")
    (('K', 'end'), ('K', 'start'))
    """
    return tuple(dict.fromkeys((match["alias"], match["column"]) for match in _COLUMN.finditer(_STRING.sub("", sql))))


def bare_column(expression: str) -> tuple[str, str] | None:
    """Return (alias, column) of an expression that is nothing but a column.

    >>> bare_column('K."end"'), bare_column("K.end - K.start")
    (('K', 'end'), None)
    """
    match = _COLUMN.fullmatch(expression)
    return (match["alias"], match["column"]) if match else None


def relations_named(select: str) -> tuple[tuple[str, str], ...]:
    """Return (relation, its alias or name) of everything that a text selects from by a quoted name.

    >>> relations_named('SELECT * FROM "kernels" V JOIN "nodes"')
    (('kernels', 'V'), ('nodes', 'nodes'))
    """
    return tuple((match["name"], match["alias"] or match["name"]) for match in _RELATION.finditer(select))


def replace_relations(select: str, others: Mapping[str, str]) -> str:
    """Put other SQL in place of relations that a text selects from.

    >>> replace_relations('SELECT * FROM "kernels" V', {"kernels": "(SELECT 1)"})
    'SELECT * FROM (SELECT 1) V'
    """

    def replaced(match: re.Match[str]) -> str:
        name = f'"{match["name"]}"'
        return match[0].replace(name, others.get(match["name"], name), 1)

    return _RELATION.sub(replaced, select)


def _cut(pattern: re.Pattern[str], text: str) -> tuple[str, str]:
    """Return a text without what matches, and the group of the match or nothing."""
    match = pattern.search(text)
    return pattern.sub("", text), match[1] if match else ""
