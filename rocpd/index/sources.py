"""What a SELECT reads: one stored view of all ranks, or several that are joined inside each rank.

Every rank runs the SELECT by itself, so rows of two ranks never meet: a join compares the places of the files too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from sqlglot import exp

from rocpd.base.frozen import frozen
from rocpd.base.types import Row
from rocpd.index.kinds import ValueKind
from rocpd.index.typed import Typed, Untranslatable, constant, one_kind
from rocpd.schema.load import ViewTable
from rocpd.schema.quote import quote_name

FILE, ROW = "file_index", "file_row_number"
_JOIN_PARTS = {"this", "on", "side", "kind"}
_MOST_GATHERED = 10_000  # rows: they are written out


@frozen
class StoredSource:
    """A view of all ranks, or a table that was gathered from them.

    Args:
        sql: what DuckDB selects from; of a view it has the columns `file_index` (of the rank) and `file_row_number`.
        columns: name in lower case -> the column, in the order of SQL.
        of_rank: those that have one value in a rank.
        is_whole: no column of the view is missing.
        where: condition on the rows that count, or empty.
        is_gathered: it is the same for every rank.
        tables: those that SQLite reads for it; none: its rows have no order of their own.
    """

    sql: str
    columns: Mapping[str, Typed]
    of_rank: frozenset[str] = frozenset()
    is_whole: bool = True
    where: str = ""
    is_gathered: bool = False
    tables: tuple[ViewTable, ...] = ()

    def select(self, items: Iterable[str]) -> str:
        """Return a SELECT of some expressions over the rows that count."""
        where = f" WHERE {self.where}" if self.where else ""
        return f"SELECT {', '.join(items)} FROM {self.sql}{where}"


Catalog = Mapping[str, StoredSource]
"""View -> what is stored of it."""


@frozen
class Sources:
    """The sources of one SELECT.

    Args:
        by_alias: name in lower case -> the source, in the order of the FROM.
    """

    by_alias: Mapping[str, StoredSource]

    @property
    def tables(self) -> tuple[ViewTable, ...]:
        """The tables that SQLite reads, where its rows are in the order of the first one; none: of a join, say."""
        sources = list(self.by_alias.values())
        return sources[0].tables if len(sources) == 1 else ()

    def owner(self, column: exp.Column) -> str | None:
        """Return the name of the source that has a column, None if none has; a subquery may have an empty name.

        Raises:
            Untranslatable: several have it, or there is no source of that name.
        """
        name = column.name.lower()
        owners = [alias for alias, each in self._named(column.table.lower()).items() if name in each.columns]
        if len(owners) > 1:
            raise Untranslatable(f"{column.name} of several sources")
        return owners[0] if owners else None

    def is_of_rank(self, column: exp.Column) -> bool:
        """Whether a column has one value in a rank, in every row."""
        owner = self.owner(column)
        return owner is not None and column.name.lower() in self.by_alias[owner].of_rank

    def all_columns(self, table: str) -> list[tuple[str, Typed]]:
        """Return what `*` means, or `table.*`: columns with their names.

        Raises:
            Untranslatable: a column is not stored, or there is no source of that name.
        """
        sources = self._named(table).values()
        if not all(each.is_whole for each in sources):
            raise Untranslatable("*, of which a column is not in the index")
        return [named for each in sources for named in each.columns.items()]

    def _named(self, table: str) -> Mapping[str, StoredSource]:
        """Return the source that a name before a dot means; all of them where there is none."""
        if not table:
            return self.by_alias
        if table not in self.by_alias:
            raise Untranslatable(f"the source {table}")
        return {table: self.by_alias[table]}


def is_left_join(join: exp.Join) -> bool:
    """Return whether rows without a match stay.

    Raises:
        Untranslatable: a join of another kind.
    """
    unknown = {key for key, value in join.args.items() if value} - _JOIN_PARTS
    side, kind = (str(join.args.get(key) or "").upper() for key in ("side", "kind"))
    if unknown or side not in ("", "LEFT") or kind not in ("", "INNER", "CROSS", "OUTER"):
        raise Untranslatable(f"a join with {' '.join(filter(None, (side, kind, *unknown)))}")
    return side == "LEFT"


def renamed(source: StoredSource, number: int, *, is_optional: bool) -> StoredSource:
    """Return a source of a join, whose columns have names that no other source has.

    Columns with one value in a rank stay as they are, by the place of the first source's file, unless they may be NULL.

    Args:
        source: the view.
        number: its place in the FROM, from 0.
        is_optional: it is on the right of a LEFT JOIN.
    """
    of_rank = frozenset() if is_optional else source.of_rank
    columns, items = dict(source.columns), [] if source.is_gathered else [f"{FILE} AS {file_of(number)}"]
    for i, (name, column) in enumerate(source.columns.items()):
        if name not in of_rank:
            columns[name] = Typed(f"s{number}_{i}", column.kind, is_ascii=column.is_ascii)
            items.append(f"{column.sql} AS s{number}_{i}")
    return dataclasses.replace(source, sql=f"({source.select(items)})", columns=columns, of_rank=of_rank, where="")


def union_all(left: StoredSource, right: StoredSource) -> StoredSource:
    """Return the rows of both, whose columns have the names of the first.

    Raises:
        Untranslatable: one has other columns, or values of another kind.
    """
    if len(left.columns) != len(right.columns):
        raise Untranslatable("a UNION ALL of other columns")
    sides, columns = [], {}
    pairs = list(zip(left.columns.items(), right.columns.values(), strict=True))
    for number, ((name, first), second) in enumerate(pairs):
        is_ascii = first.is_ascii and second.is_ascii
        columns[name] = Typed(f"u{number}", one_kind((first, second)), is_ascii=is_ascii)
    for side in (left, right):
        items = [*(f"{column.sql} AS u{number}" for number, column in enumerate(side.columns.values())), FILE]
        sides.append(side.select(items))
    return StoredSource(f"({' UNION ALL '.join(sides)})", columns)


def gathered_source(names: Sequence[str], rows: Sequence[Row]) -> StoredSource:
    """Return a gathered table.

    Args:
        names: of its columns.
        rows: its rows.

    Raises:
        Untranslatable: it is large, or a column has values of several kinds.
    """
    if len(rows) > _MOST_GATHERED:
        raise Untranslatable("a join with very many gathered rows")
    values = [[constant(value) for value in row] for row in rows]
    kinds = [one_kind(column) for column in zip(*values, strict=True)] if rows else [ValueKind.NULL] * len(names)
    listed = ", ".join(f"({', '.join(each.sql for each in row)})" for row in values)
    nothing = f"SELECT {', '.join('NULL' for _ in names)} LIMIT 0"
    sql = f"(SELECT * FROM ({f'VALUES {listed}' if rows else nothing}) AS t({', '.join(map(quote_name, names))}))"
    columns = {name.lower(): Typed(quote_name(name), kind) for name, kind in zip(names, kinds, strict=True)}
    return StoredSource(sql, columns, is_gathered=True)


def file_of(number: int) -> str:
    """Return the name of the column with the place of the file, of a source of a join."""
    return FILE if number == 0 else f"s{number}_file"
