"""Owns two views that make grouping by name fast: one with the ids that names are looked up by, one with the names.

Ids sort faster than names of hundreds of characters and need no join: 100,000 dispatches are grouped by kernel in a
third of the time. They are local to a rank, and so are these views. A planner writes `keyed__kernels` and
`lookup__kernels__name` into what ranks run; users never see them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

from rocpd.schema.load import VIEWS, Lookup, View, ViewTable, columns_used, view
from rocpd.schema.quote import quote_name
from rocpd.schema.render import RankTables, identity, rank_select

_NAME = r"\bkeyed__\w+|\blookup__\w+"


@functools.cache
def lookups(name: str) -> dict[str, Lookup]:
    """Return column -> how it is looked up, for the columns of a view that an id in its first table leads to."""
    chosen = view(name)
    main = {f"{each.alias}.{column}" for each in chosen.tables[:1] for column in each.columns}
    return {column.name: column.lookup for column in chosen.columns if column.lookup and column.lookup.key in main}


def keyed_name(name: str) -> str:
    """Return the name of the view with the columns of view `name`, and `x__key` for every `x` of `lookups`."""
    return f"keyed__{name}"


def lookup_name(name: str, column: str) -> str:
    """Return the name of the view with the values of a looked-up column: `id`, `value`."""
    return f"lookup__{name}__{column}"


def keyed_views(sql: str) -> tuple[str, ...]:
    """Return those of these views that a statement names."""
    return tuple(dict.fromkeys(re.findall(_NAME, sql))) if "__" in sql else ()  # few do: quick for the others


def keyed_text(name: str, tables: RankTables, sql: str) -> str:
    """Return the SELECT that defines one of these views over a rank, with the columns that `sql` names."""
    kind, _, rest = name.partition("__")
    base, _, column = rest.partition("__")
    if base not in VIEWS:
        raise ValueError(name)
    return _keyed(base, tables, sql) if kind == "keyed" else _values(base, column, tables)


def _keyed(name: str, tables: RankTables, sql: str) -> str:
    """The view with keys, without columns that are not named and joins that only those need: SQLite may keep them."""
    chosen = view(name)
    words = set(re.findall(r"\w+", sql.lower()))
    items = {column.name: column.expression for column in chosen.columns}
    items |= {f"{column}__key": lookup.key for column, lookup in lookups(name).items()}
    items = {column: expression for column, expression in items.items() if column.lower() in words}
    return rank_select(chosen, tables, items | identity(chosen, tables), _needed(chosen, items.values()))


def _needed(chosen: View, expressions: Iterable[str]) -> tuple[ViewTable, ...]:
    """The tables that expressions over a view need: a LEFT JOIN by id adds no row and takes none away."""
    used = {alias for sql in (*expressions, chosen.where, chosen.group_by) for alias, _ in columns_used(sql)}
    needed = []
    for each in reversed(chosen.tables):
        if each.alias in used or not (each.key and each.join == "LEFT JOIN"):
            needed.append(each)
            used.update(alias for alias, _ in columns_used(each.condition))
    return tuple(reversed(needed))


def _values(name: str, column: str, tables: RankTables) -> str:
    lookup = lookups(name)[column]
    if not {"id", lookup.column} <= set(tables.columns.get(lookup.table, ())):
        return 'SELECT NULL AS "id", NULL AS "value" WHERE 0'
    return f'SELECT "id", {quote_name(lookup.column)} AS "value" FROM {tables.rows_by_id(lookup.table)}'  # noqa: S608
