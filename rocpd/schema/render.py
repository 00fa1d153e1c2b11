"""Writes the SQL of tables and views over given ranks: joins inside a rank, UNION ALL outside.

One rendering serves temporary views over attached files and views stored in a file. Never runs SQL.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property

from rocpd.base import frozen
from rocpd.schema import load
from rocpd.schema.quote import quote_name, quote_text

COMPOUND_LIMIT = 500
"""SQLite's limit of SELECTs in one compound (SQLITE_MAX_COMPOUND_SELECT, default build)."""

OUTSIDE = "rocpd_outside_"
"""Prefix of base names of tables with rows outside the window that a file was merged from."""

_UNION_ALL = "\nUNION ALL\n"


@frozen
class RankTables:
    """The tables of one rank as a statement can name them.

    Args:
        suffix: UUID suffix of the tables, with its leading underscore.
        columns: base name -> columns that the file really has.
        schema: name of the attached database; None: the file itself.
        rank: rank number for the `rank` column; None leaves `rank` and `hostname` out.
        hostname: host for the `hostname` column.
        further: base name -> columns beyond the contract that any rank has, so that all ranks have the same columns.
        only: base name -> condition on its rows, for a window or filter; all rows of other tables count.
        values: base name -> column -> expression in its place, for events that are cut at a window.
        filtered: base name -> condition of the filters alone, without the window.
        guid: identity of the rank for every `guid` column; None: the values in the file.
        keyless: base names of tables whose `id` is no primary key: an id may occur twice.
        by_id: base names of tables whose `id` is the rowid: unique, and rows are stored in its order.
        is_whole: rows that a merged file keeps from outside its window count too.
    """

    suffix: str
    columns: Mapping[str, tuple[str, ...]]
    schema: str | None = None
    rank: int | None = None
    hostname: str | None = None
    further: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    only: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    filtered: Mapping[str, str] = field(default_factory=dict)
    guid: str | None = None
    keyless: frozenset[str] = frozenset()
    by_id: frozenset[str] = frozenset()
    is_whole: bool = False

    def __getstate__(self) -> dict[str, object]:
        """Return the fields only, for another process: cached values may be changed by another thread."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @property
    def guid_text(self) -> str:
        """The GUID as an expression that compares like a column of texts."""
        return f"CAST({quote_text(self.guid)} AS TEXT)"

    @cached_property
    def has_outside(self) -> bool:
        """Whether the merged file keeps rows from outside its window."""
        return any(base.startswith(OUTSIDE) for base in self.columns)

    @cached_property
    def alike(self) -> Alike:
        """The group of ranks whose statements differ only in suffix, number, host and GUID of the rank."""
        by_name = (tuple(sorted(each.items())) for each in (self.columns, self.further))
        kind = *by_name, self.schema, self.rank is None, self.guid is None, self.keyless, self.by_id, self.is_whole
        alike = _KINDS.get(kind)  # a single look-up: another thread may clear the table meanwhile
        if alike is None:
            marked = dataclasses.replace(self, suffix=_SUFFIX, hostname=_HOST)
            marked = marked if self.rank is None else dataclasses.replace(marked, rank=_RANK)
            marked = marked if self.guid is None else dataclasses.replace(marked, guid=_GUID)
            if len(_KINDS) >= _MOST_KINDS:
                _KINDS.clear()
            alike = _KINDS[kind] = Alike(marked)
        return alike

    @cached_property
    def own_texts(self) -> tuple[tuple[str, str], ...]:
        """Pairs of a mark in the statements of `alike` ranks, and the text of this rank for it."""
        host, suffix = (quote_text(_HOST), quote_text(self.hostname)), (_SUFFIX, self.suffix.replace('"', '""'))
        guid = () if self.guid is None else ((quote_text(_GUID), quote_text(self.guid)),)
        return suffix, host, (_ANY_RANK, str(self.rank)), *guid

    def name(self, base: str) -> str:
        """Quoted name of the rank's table `base`."""
        return quote_name(*([self.schema] if self.schema else []), base + self.suffix)

    def rows(self, base: str) -> str:
        """The source of the rows of `base` that pass window and filters."""
        if base not in self.only and base not in self.values:
            return self.every_row(base) if self.is_whole else self.name(base)
        return self._rows_where(base, self.only.get(base, "1"))

    def every_row(self, base: str) -> str:
        """The source of all rows of `base`, including those that a merged file keeps from outside its window."""
        outside = outside_of(base)
        if outside not in self.columns:
            return self.name(base)
        kept = self.name(outside)
        # Events that the window cut are kept uncut in the table of outside rows.
        return (
            f"(SELECT * FROM {self.name(base)} WHERE id NOT IN (SELECT id FROM {kept}) UNION ALL SELECT * FROM {kept})"
        )

    def rows_by_id(self, base: str) -> str:
        """The source of rows for look-ups by id: as `rows`, but only the first row of each id."""
        if base not in self.keyless:
            return self.rows(base)
        firsts = f"rowid IN (SELECT MIN(rowid) FROM {self.name(base)} GROUP BY id)"
        return self._rows_where(base, f"{firsts} AND ({self.only.get(base, '1')})")

    def _rows_where(self, base: str, condition: str) -> str:
        # SQLite takes the first of several columns with the same name.
        cut = "".join(f"{text} AS {quote_name(column)}, " for column, text in self.values.get(base, {}).items())
        rows = self.every_row(base) if self.is_whole else self.name(base)
        return f"(SELECT {cut}* FROM {rows} WHERE {condition})"


@frozen
class Alike:
    """Ranks with the same columns: the text of a statement is put together once for all of them.

    Args:
        tables: tables of such a rank, with marks where ranks differ.
        texts: statement -> its text with the relations that it names in front, and the marks in it.
    """

    tables: RankTables
    texts: dict[str, tuple[str, frozenset[str]]] = field(default_factory=dict)


# SQL holds no NUL.
_SUFFIX, _HOST, _GUID, _RANK = "\0suffix", "\0host", "\0guid", -(1 << 62)
_ANY_RANK = str(_RANK)
_KINDS: dict[tuple[object, ...], Alike] = {}
_MOST_KINDS = 64
_MOST_TEXTS = 512


def with_relations(sql: str, tables: RankTables) -> str:
    """Return one SELECT or INSERT over relations of a rank with their texts in front, in place of views.

    A view needs a statement that changes the schema, which is half of the cost of many small statements.
    """
    if tables.only or tables.values or _ANY_RANK in sql:
        return _with_relations(sql, tables)
    alike = tables.alike
    known = alike.texts.get(sql)  # a single look-up: another thread may clear the table meanwhile
    if known is None:
        if len(alike.texts) >= _MOST_TEXTS:
            alike.texts.clear()
        text = _with_relations(sql, alike.tables)
        known = alike.texts[sql] = text, frozenset(mark for mark, _ in tables.own_texts if mark in text)
    text, marks = known
    for mark, of_rank in tables.own_texts:
        if mark in marks:
            text = text.replace(mark, of_rank)
    return text


def _with_relations(sql: str, tables: RankTables) -> str:
    names = named(sql, relations([tables]))
    if (text := _by_their_names(sql, names, tables)) is not None:
        return text
    texts = {name: select_text(name, [tables]) for name in names}
    texts |= {name: keyed_text(name, tables, sql) for name in keyed_views(sql)}
    # Like views: read each time that they are named.
    parts = ",\n".join(f"{quote_name(name)} AS NOT MATERIALIZED (\n{text}\n)" for name, text in texts.items())
    return f"WITH {parts}\n{sql}" if texts else sql


_OTHER_STARS = re.compile(r"(?<!\()\*|\*(?!\))")
"""Stars other than `COUNT(*)`: their columns differ from file to file."""


def _by_their_names(sql: str, names: Sequence[str], tables: RankTables) -> str | None:
    """Return a statement with the rank's own tables after FROM and JOIN, prepared in a fifth of the time.

    None if a table is missing or has other rows or columns, or if a name may have another meaning.
    """
    if not names or _OTHER_STARS.search(load.STRING.sub("", sql)) or keyed_views(sql):
        return None
    if any("rocpd_" in literal for literal in load.STRING.findall(sql)):
        return None
    if tables.guid is not None and re.search(r"(?i)\bguid\b", sql):
        return None
    for name in names:
        has = {column.lower() for column in tables.columns.get(name, ())}
        other = not has.issuperset(map(str.lower, _columns_of(name, (tables.further.get(name, ()),)))) if has else True
        if other or tables.rows(name) != tables.name(name):
            return None
    by_name = {name.lower(): tables.name(name) for name in names}
    parts = re.split(r"(\w+)", sql)  # separators and words in turn
    for at in range(1, len(parts), 2):
        if (table := by_name.get(parts[at].lower())) is not None:
            if at < 3 or parts[at - 2].upper() not in ("FROM", "JOIN") or not parts[at - 1].isspace():
                return None
            parts[at] = table
    return "".join(parts)


def outside_of(base: str) -> str:
    """Return the base name of the table with rows of `base` outside the window that a file was merged from.

    >>> outside_of("rocpd_region")
    'rocpd_outside_region'
    """
    return OUTSIDE + base.removeprefix("rocpd_")


def relations(ranks: Sequence[RankTables]) -> tuple[str, ...]:
    """Return the names of all relations: tables of the contract, further tables of the files, views."""
    extra = {base for tables in ranks for base in tables.columns} - set(load.TABLES)
    return (*load.TABLES, *sorted(extra), *load.VIEWS)


@functools.lru_cache(64)  # the same statements run on rank after rank
def named(sql: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """Return the `known` relations that a statement names, and those that they read, in the order to create them.

    Goes by words, so that a name inside a string counts too: that only costs an unused view.
    """
    words = set(re.findall(r"\w+", sql.lower()))
    wanted = {name for name in known if name.lower() in words}
    for name in reversed(load.VIEWS):
        if name in wanted:
            wanted.update(load.view(name).reads)
    return tuple(name for name in known if name in wanted)


def views_over(tables: Collection[str]) -> tuple[str, ...]:
    """Return the views that belong in a file with these base tables, without views of optional tables that it lacks.

    Views with RPD's names are 28 kB of text: only merged files store them.
    """
    wanted: set[str] = set()
    for name in reversed([name for name in load.VIEWS if name not in load.RPDS]):
        optional = _optional_tables(name)
        if name in wanted or not optional or not optional.isdisjoint(tables):
            wanted.update((name, *load.view(name).reads))
    return tuple(name for name in load.VIEWS if name in wanted)


@functools.cache
def _optional_tables(name: str) -> frozenset[str]:
    chosen = load.view(name)
    below = (_optional_tables(other) for other in chosen.reads if other in load.VIEWS)
    return frozenset(each.table for each in chosen.tables if each.table in load.OPTIONAL_TABLES).union(*below)


def select_text(relation: str, ranks: Sequence[RankTables]) -> str:
    """Return the SELECT that defines a base table or readable view over `ranks`.

    Base tables get the columns of the contract and every further column that any file has, NULL where a file
    lacks one. Views that are rendered per rank end with `rank` and, unless they have it already, `hostname`.

    A view of a single rank gets an empty second part: SQLite then treats it as a separate table, leaves out unused
    joins (measured: twice as fast) and can index it for a join of two views, which otherwise takes quadratic time.
    """
    if relation not in load.VIEWS:
        return _base(relation, ranks)
    chosen = load.view(relation)
    with_rank = bool(ranks) and ranks[0].rank is not None
    if not chosen.per_rank:
        return _over_views(chosen, with_rank)
    present = [tables for tables in ranks if chosen.tables[0].table in tables.columns]
    if not present:
        present = [RankTables("", {}, rank=0 if with_rank else None)]
    selects = [rank_select(chosen, tables) for tables in present]
    if len(selects) == 1 and with_rank:
        selects.append(f"SELECT * FROM (\n{selects[0]}\n) WHERE 0")
    return union_all(selects)


def rank_select(
    chosen: load.View,
    tables: RankTables,
    items: Mapping[str, str] | None = None,
    joins: Sequence[load.ViewTable] | None = None,
    where: str = "",
) -> str:
    """Return the SELECT of a view over the tables of one rank.

    Args:
        chosen: a view that is rendered per rank.
        tables: tables of the rank.
        items: result column -> expression; None: the view's own columns, then `rank` and `hostname`.
        joins: the tables in the FROM; None: all tables of the view.
        where: a further condition on the rows, or empty.
    """
    if items is None:
        items = {column.name: column.expression for column in chosen.columns} | identity(chosen, tables)
    if tables.guid is not None:
        column_of_rank = f"{chosen.tables[0].alias}.guid"
        items = {name: tables.guid_text if text == column_of_rank else text for name, text in items.items()}
    columns = ",\n".join(f"    {expression} AS {quote_name(name)}" for name, expression in items.items())
    joined = "\n".join(f"    {_joined(tables, each)}" for each in (chosen.tables if joins is None else joins))
    conditions = " AND ".join(f"({condition})" for condition in (chosen.where, where) if condition)
    text = f"SELECT\n{columns}\nFROM\n{joined}"
    text += f"\nWHERE {conditions}" if conditions else ""
    return text + (f"\nGROUP BY {chosen.group_by}" if chosen.group_by else "")


def identity(chosen: load.View, tables: RankTables) -> dict[str, str]:
    """Return the columns that a view of rows ends with: `rank` and, unless it has it already, `hostname`."""
    if tables.rank is None:
        return {}
    host = {} if _has_hostname(chosen) else {"hostname": quote_text(tables.hostname)}
    return {"rank": str(tables.rank)} | host


def aggregate_text(name: str) -> str:
    """Return the SELECT of a view over other views, such as top_kernels, in a form to take apart.

    The + in ORDER BY, which changes no value, is left out: it is for SQLite only, and parsers drop it.
    """
    return load.view(name).select.replace("ORDER BY\n    +", "ORDER BY\n    ")


def _over_views(chosen: load.View, with_rank: bool) -> str:
    if with_rank:
        return chosen.select.replace(load.RANK_HOST_OF_V, ', V."rank", V."hostname"')
    if not chosen.names_rank:
        return chosen.select.replace(load.RANK_HOST_OF_V, "")
    rows = (load.view(name) for name in chosen.reads if name in load.VIEWS and load.view(name).is_rows)
    text = load.replace_relations(chosen.select, {each.name: _with_identity(each) for each in rows})
    return text.replace(load.RANK_HOST_OF_V, "")


def _with_identity(rows: load.View) -> str:
    """The source of a view of rows with `rank` and `hostname`, which views stored for one rank leave out."""
    host = "" if _has_hostname(rows) else ', (SELECT "hostname" FROM "rocpd_info_node" LIMIT 1) AS "hostname"'
    return f'(SELECT *, 0 AS "rank"{host} FROM {quote_name(rows.name)})'


def _has_hostname(chosen: load.View) -> bool:
    return any(column.name == "hostname" for column in chosen.columns)


def _base(relation: str, ranks: Sequence[RankTables]) -> str:
    # Further columns first: their order is the same for all ranks, the order of columns in files may differ.
    shapes = ((*tables.further.get(relation, ()), *tables.columns.get(relation, ())) for tables in ranks)
    columns = _columns_of(relation, tuple(dict.fromkeys(shapes)))
    selects = []
    for tables in ranks:
        if relation in tables.columns:
            items = _items(columns, tables.columns[relation], tables.guid is not None)
            selects.append(f"SELECT {items.replace(_GUID_OF_ITEMS, tables.guid_text)} FROM {tables.rows(relation)}")
    if not selects:
        return "SELECT " + ", ".join(f"NULL AS {quote_name(c)}" for c in columns) + " WHERE 0"
    return union_all(selects)


# The ranks of a job have the same columns: the list of columns is put together once, not 30 times for each rank.
_GUID_OF_ITEMS = "\0column"


@functools.lru_cache(256)
def _columns_of(relation: str, shapes: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    """Return the columns of a base table: those of the contract, then all further columns of any rank."""
    columns = {c.name.lower(): c.name for c in (load.table(relation).columns if relation in load.TABLES else ())}
    for column in itertools.chain.from_iterable(shapes):
        columns.setdefault(column.lower(), column)
    return tuple(columns.values())


@functools.lru_cache(256)
def _items(columns: tuple[str, ...], in_file: tuple[str, ...], has_guid: bool) -> str:
    """Return the select list for a rank's table, with a mark for the GUID of a rank that has its own."""
    lacking = frozenset(_lacking(columns, in_file))
    named = {column: quote_name(column) for column in columns}
    values = {column: f"NULL AS {name}" if column in lacking else name for column, name in named.items()}
    if has_guid:
        values |= {column: f"{_GUID_OF_ITEMS} AS {named[column]}" for column in columns if column.lower() == "guid"}
    return ", ".join(values.values())


@functools.lru_cache(1024)
def _lacking(columns: tuple[str, ...], in_file: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns that a file lacks."""
    have = {column.lower() for column in in_file}
    return tuple(column for column in columns if column.lower() not in have)


def _joined(tables: RankTables, used: load.ViewTable) -> str:
    """Return the line of a FROM that joins a rank's table as the view does."""
    condition = f"ON {used.condition}" if used.condition else ""
    return " ".join(filter(None, (used.join, _reference(tables, used), used.alias, condition)))


def _reference(tables: RankTables, used: load.ViewTable) -> str:
    """Return a rank's table, wrapped in a SELECT only if the file lacks a column that the view reads."""
    in_file = tables.columns.get(used.table, ())
    missing = [f"NULL AS {quote_name(column)}" for column in _lacking(used.columns, in_file)]
    if not in_file:
        return f"(SELECT {', '.join(missing)} WHERE 0)"
    rows = tables.rows_by_id(used.table) if used.key else tables.rows(used.table)
    return f"(SELECT *, {', '.join(missing)} FROM {rows})" if missing else rows


def union_all(selects: Sequence[str]) -> str:
    """Join SELECTs with UNION ALL, in nested groups above SQLite's limit of a compound."""
    groups = list(selects)
    while len(groups) > COMPOUND_LIMIT:
        chunks = [groups[i : i + COMPOUND_LIMIT] for i in range(0, len(groups), COMPOUND_LIMIT)]
        groups = [f"SELECT * FROM (\n{_UNION_ALL.join(chunk)}\n)" for chunk in chunks]
    return _UNION_ALL.join(groups)


# Two views make grouping by name fast: one with the ids of names, one with the names by id. Ids sort faster than names
# of hundreds of characters and need no join: 100,000 dispatches are grouped by kernel in a third of the time. Ids are
# local to a rank, and so are these views. The planner writes `keyed__kernels` and `lookup__kernels__name` into the
# statements for ranks; users never see them.
_NAME = r"\bkeyed__\w+|\blookup__\w+"


@functools.cache
def lookups(name: str) -> dict[str, load.Lookup]:
    """Return column -> its look-up, for the columns of a view that an id in its first table leads to."""
    chosen = load.view(name)
    main = {f"{each.alias}.{column}" for each in chosen.tables[:1] for column in each.columns}
    return {column.name: column.lookup for column in chosen.columns if column.lookup and column.lookup.key in main}


def keyed_name(name: str) -> str:
    """Return the name of the view with the columns of view `name`, and `x__key` for every `x` of `lookups`."""
    return f"keyed__{name}"


def lookup_name(name: str, column: str) -> str:
    """Return the name of the view with the values of a looked-up column: `id`, `value`."""
    return f"lookup__{name}__{column}"


def keyed_views(sql: str) -> tuple[str, ...]:
    """Return the keyed and look-up views that a statement names."""
    return tuple(dict.fromkeys(re.findall(_NAME, sql))) if "__" in sql else ()  # a quick check, as few statements do


def keyed_text(name: str, tables: RankTables, sql: str) -> str:
    """Return the SELECT that defines a keyed or look-up view over a rank, with the columns that `sql` names."""
    kind, _, rest = name.partition("__")
    base, _, column = rest.partition("__")
    return _keyed(base, tables, sql) if kind == "keyed" else _values(base, column, tables)


def _keyed(name: str, tables: RankTables, sql: str) -> str:
    """Return the view with keys, with named columns and the joins they need only: SQLite might keep unused joins."""
    chosen = load.view(name)
    words = set(re.findall(r"\w+", sql.lower()))
    items = {column.name: column.expression for column in chosen.columns}
    items |= {f"{column}__key": lookup.key for column, lookup in lookups(name).items()}
    items = {column: expression for column, expression in items.items() if column.lower() in words}
    return rank_select(chosen, tables, items | identity(chosen, tables), _needed(chosen, items.values()))


def _needed(chosen: load.View, expressions: Iterable[str]) -> tuple[load.ViewTable, ...]:
    """Return the tables that expressions over a view need: a LEFT JOIN by id neither adds nor removes rows."""
    used = {alias for sql in (*expressions, chosen.where, chosen.group_by) for alias, _ in load.columns_used(sql)}
    needed = []
    for each in reversed(chosen.tables):
        if each.alias in used or not (each.key and each.join == "LEFT JOIN"):
            needed.append(each)
            used.update(alias for alias, _ in load.columns_used(each.condition))
    return tuple(reversed(needed))


def _values(name: str, column: str, tables: RankTables) -> str:
    lookup = lookups(name)[column]
    if not {"id", lookup.column} <= set(tables.columns.get(lookup.table, ())):
        return 'SELECT NULL AS "id", NULL AS "value" WHERE 0'
    return f'SELECT "id", {quote_name(lookup.column)} AS "value" FROM {tables.rows_by_id(lookup.table)}'


def create_view_text(name: str, select: str, temporary: bool = False) -> str:
    """Return the CREATE VIEW statement for a SELECT from this module."""
    return f"CREATE {'TEMP ' if temporary else ''}VIEW {quote_name(name)} AS\n{select}"
