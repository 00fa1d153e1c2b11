"""Owns what the columns of a readable view are made of: numbers, texts, or an id that looks something up.

A view joins names to events. Read as columns, the joins to small tables (strings, agents, kernels …) are left out: the
id is read, and each name once. Goes by the text of the view. Never runs SQL.
"""

from __future__ import annotations

import enum
import functools
import re
from dataclasses import dataclass, replace

from rocpd.schema.load import View, table, view

_ITEM = re.compile(r'^\s{4}(?P<sql>.*?) AS "(?P<name>\w+)",?$', re.M)
_JOIN = re.compile(
    r'LEFT JOIN "(?P<table>rocpd_\w+)\{\{uuid\}\}" (?P<alias>\w+) ON (?P=alias)\.id = (?P<key>\w+\.\w+)\s*;?$', re.M
)
_COLUMN = re.compile(r'\b(?P<alias>[A-Za-z]\w*)\.(?P<quote>"?)(?P<column>\w+)(?P=quote)')
_SMALL = ("rocpd_string", "rocpd_info_", "rocpd_track")
_MEMBER_TEXT = re.compile(r"json_extract\(.*'\$\.\w*name'")


class Kind(enum.Enum):
    """Type of a column."""

    INTEGER = "integer"
    REAL = "real"
    TEXT = "text"


@dataclass(frozen=True)
class Lookup:
    """A column of a small table, found by id."""

    table: str
    column: str


@dataclass(frozen=True)
class Item:
    """One column of a view.

    Args:
        name: of the column.
        kind: of its values.
        sql: expression to read: the value, or the id for `lookup`.
        doc, unit: for people.
        lookup: where the value is found by the id, None when it is read itself.
        document: whether it holds JSON documents, most of them empty.
    """

    name: str
    kind: Kind
    sql: str
    doc: str
    unit: str
    lookup: Lookup | None = None
    document: bool = False


@dataclass(frozen=True)
class Shape:
    """A view of the rows of one rank as columns; `base` is the table that its rows come from, `alias` its name."""

    view: View
    items: tuple[Item, ...]
    base: str
    alias: str
    grouped: bool

    def item(self, name: str) -> Item:
        """Give a column by its name, in upper or lower case."""
        return next(item for item in self.items if item.name.lower() == name.lower())

    def select(self, expressions: tuple[str, ...]) -> View:
        """Give the view with other columns: `c0`, `c1` … are `expressions`."""
        body = self.view.text
        begin = body.index("SELECT\n") + len("SELECT\n")
        head, rest = body[:begin], body[body.index("\nFROM\n") :]
        items = ",\n".join(f'    {sql} AS "c{i}"' for i, sql in enumerate(expressions))
        return replace(self.view, text=f"{head}{items}{rest}")


@functools.cache
def shape(name: str) -> Shape:
    """Give the columns of a readable view that is one SELECT per rank."""
    chosen = view(name)
    body = chosen.text
    places = {alias: place for place, alias, _ in chosen.places}
    joins = {match["alias"]: match for match in _JOIN.finditer(body) if match["table"].startswith(_SMALL)}
    docs = {column.name: column for column in chosen.columns}
    items = []
    for match in _ITEM.finditer(body):
        sql, column = match["sql"], docs[match["name"]]
        plain = _COLUMN.fullmatch(sql)
        kind = _kind(sql, places)
        lookup = None
        if plain and plain["alias"] in joins:
            join = joins[plain["alias"]]
            sql, lookup = join["key"], Lookup(join["table"], plain["column"])
        document = plain is not None and not lookup and _declaration(places[plain["alias"]], plain["column"]) == "JSONB"
        items.append(Item(column.name, kind, sql, column.doc, column.unit, lookup, document))
    base, alias, _ = chosen.places[0]
    return Shape(chosen, tuple(items), base, alias, "GROUP BY" in body)


def _kind(sql: str, places: dict[str, str]) -> Kind:
    if "json_extract" in sql:
        return Kind.TEXT if _MEMBER_TEXT.search(sql) else Kind.INTEGER
    kinds = {_declared(places[match["alias"]], match["column"]) for match in _COLUMN.finditer(sql)}
    return next((kind for kind in (Kind.TEXT, Kind.REAL) if kind in kinds), Kind.INTEGER)


def _declared(base: str, column: str) -> Kind:
    return {"TEXT": Kind.TEXT, "JSONB": Kind.TEXT, "REAL": Kind.REAL}.get(_declaration(base, column), Kind.INTEGER)


def _declaration(base: str, column: str) -> str:
    declared = next(c.declaration for c in table(base).columns if c.name == column)
    return declared.split()[0].upper()
