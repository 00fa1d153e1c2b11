"""Translates a SELECT for every rank into one SELECT of DuckDB over the stored views of all ranks, with the same rows.

Each rank would run the SELECT alone, so rows of two ranks never meet: a join also compares the places of the files.
Rows come in the order in which the ranks would return them: by rank, then as SQLite reads or groups them, which
`rocpd.index.order` checks. SQLite chooses the order of the rows of a join, so only groups of joins are answered.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from sqlglot import exp

from rocpd.base import Row, Value, frozen
from rocpd.federate.plan.scope import is_aggregated, output_index
from rocpd.federate.plan.sqltext import parts_of, read_select
from rocpd.federate.plan.steps import Unfaithful
from rocpd.index.entries import ValueKind
from rocpd.index.expressions import Expressions, Typed, constant, one_kind
from rocpd.index.order import Order
from rocpd.schema.load import ViewTable
from rocpd.schema.quote import quote_name

FILE, ROW = "file_index", "file_row_number"
_JOIN_PARTS = {"this", "on", "side", "kind"}
_MOST_GATHERED = 10_000  # rows: they are written into the statement


@frozen
class StoredSource:
    """A view of all ranks, or a table that was gathered from them.

    Args:
        sql: the source in DuckDB's FROM; a view has the columns `file_index` (of the rank) and `file_row_number`.
        columns: name in lower case -> the column, in the order of SQL.
        of_rank: columns with one value per rank.
        is_whole: no column of the view is missing.
        where: condition on the rows that count, or empty.
        is_gathered: it is the same for every rank.
        tables: tables that SQLite reads for it; empty: its rows have no order.
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


Catalog = Callable[[str], "StoredSource | None"]
"""Returns the stored source of a view, by its name in lower case."""


@frozen
class Sources:
    """The sources of one SELECT.

    Args:
        by_alias: name in lower case -> the source, in the order of the FROM.
    """

    by_alias: Mapping[str, StoredSource]

    @property
    def tables(self) -> tuple[ViewTable, ...]:
        """The tables that SQLite reads, if rows are in the order of the first one; empty for a join."""
        sources = list(self.by_alias.values())
        return sources[0].tables if len(sources) == 1 else ()

    def owner(self, column: exp.Column) -> str | None:
        """Return the name of the source of a column, None if no source has it; a subquery may have an empty name.

        Raises:
            Unfaithful: several sources have it, or there is no source of that name.
        """
        name = column.name.lower()
        owners = [alias for alias, each in self._named(column.table.lower()).items() if name in each.columns]
        if len(owners) > 1:
            raise Unfaithful(f"{column.name} of several sources")
        return owners[0] if owners else None

    def is_of_rank(self, column: exp.Column) -> bool:
        """Whether a column has the same value in every row of a rank."""
        owner = self.owner(column)
        return owner is not None and column.name.lower() in self.by_alias[owner].of_rank

    def all_columns(self, table: str) -> list[tuple[str, Typed]]:
        """Return the columns of `*`, or `table.*`, with their names.

        Raises:
            Unfaithful: a column is not stored, or there is no source of that name.
        """
        sources = self._named(table).values()
        if not all(each.is_whole for each in sources):
            raise Unfaithful("*, of which a column is not in the index")
        return [named for each in sources for named in each.columns.items()]

    def _named(self, table: str) -> Mapping[str, StoredSource]:
        """Return the source with the name before a dot, or all sources if there is no name."""
        if not table:
            return self.by_alias
        if table not in self.by_alias:
            raise Unfaithful(f"the source {table}")
        return {table: self.by_alias[table]}


def is_left_join(join: exp.Join) -> bool:
    """Whether rows without a match stay.

    Raises:
        Unfaithful: the join is of another kind.
    """
    unknown = parts_of(join) - _JOIN_PARTS
    side, kind = (str(join.args.get(key) or "").upper() for key in ("side", "kind"))
    if unknown or side not in ("", "LEFT") or kind not in ("", "INNER", "CROSS", "OUTER"):
        raise Unfaithful(f"a join with {' '.join(filter(None, (side, kind, *unknown)))}")
    return side == "LEFT"


def renamed(source: StoredSource, number: int, *, is_optional: bool) -> StoredSource:
    """Return a source of a join, with column names that no other source has.

    Columns with one value per rank stay as they are, by the place of the first source's file, unless they may be NULL.

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
    """Return the rows of both sources, with the column names of the first.

    Raises:
        Unfaithful: the sources differ in their columns, or in the kinds of values.
    """
    if len(left.columns) != len(right.columns):
        raise Unfaithful("a UNION ALL of other columns")
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
        names: names of its columns.
        rows: its rows.

    Raises:
        Unfaithful: it is too large, or a column has values of several kinds.
    """
    if len(rows) > _MOST_GATHERED:
        raise Unfaithful("a join with very many gathered rows")
    values = [[constant(value) for value in row] for row in rows]
    kinds = [one_kind(column) for column in zip(*values, strict=True)] if rows else [ValueKind.NULL] * len(names)
    listed = ", ".join(f"({', '.join(each.sql for each in row)})" for row in values)
    nothing = f"SELECT {', '.join('NULL' for _ in names)} LIMIT 0"
    sql = f"(SELECT * FROM ({f'VALUES {listed}' if rows else nothing}) AS t({', '.join(map(quote_name, names))}))"
    columns = {name.lower(): Typed(quote_name(name), kind) for name, kind in zip(names, kinds, strict=True)}
    return StoredSource(sql, columns, is_gathered=True)


def file_of(number: int) -> str:
    """Return the name of the column with the place of the file, for a source of a join."""
    return FILE if number == 0 else f"s{number}_file"


_CLAUSES = {"expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "distinct"}
_CHOICES = (exp.In, exp.Or, exp.Is, exp.NullSafeEQ, exp.NullSafeNEQ)
_ROWS_OF_AFILE = 1 << 40  # more than any file of a rank has

Bindings = Mapping[str, Value]


@frozen
class Translation:
    """A SELECT of DuckDB.

    Args:
        sql: its text.
        is_short: it has few rows, or all are known before the first one comes.
        order: the expected order of its rows; None: the order does not matter.
    """

    sql: str
    is_short: bool
    order: Order | None


def translated(sql: str, catalog: Catalog, bindings: Bindings, *, by_rank: bool) -> Translation:
    """Return a SELECT of DuckDB with the rows of a SELECT that every rank runs.

    Args:
        sql: the statement, as SQLite reads it.
        catalog: the stored views.
        bindings: values of its parameters.
        by_rank: every rank groups its own rows; False: groups of several ranks are joined.

    Raises:
        Unfaithful: DuckDB may return another answer.
    """
    try:
        return _Select(_checked(read_select(sql)), catalog, bindings).translation(by_rank)
    except RecursionError as error:
        raise Unfaithful("a deep expression") from error


def condition_of(text: str, columns: Mapping[str, Typed]) -> str:
    """Return a condition on the rows of a table as a condition on stored columns.

    Args:
        text: the condition, as SQLite reads it.
        columns: name in lower case -> the stored column.

    Raises:
        Unfaithful: DuckDB may choose other rows, or a column is not stored.
    """

    def find_column(column: exp.Column) -> Typed:
        name = column.name.lower()
        if column.table or name not in columns:
            raise Unfaithful(f"a window or filter by {column.name}")
        return columns[name]

    tree = _checked(read_select(f"SELECT 1 WHERE {text}"))
    return Expressions(find_column, {}).condition(tree.args["where"].this)


def _checked(tree: exp.Expr) -> exp.Select:
    if not isinstance(tree, exp.Select):
        raise Unfaithful("a compound")
    if unknown := parts_of(tree) - _CLAUSES:
        raise Unfaithful(f"a clause {min(unknown).rstrip('_').upper()}")
    return tree


class _Select:
    def __init__(self, tree: exp.Select, catalog: Catalog, bindings: Bindings) -> None:
        self._tree = tree
        self._sources = _sources(tree, partial(_source, catalog=catalog, bindings=bindings))
        self._expressions = Expressions(self._find_column, bindings)
        self._aliases = {item.alias.lower(): item.this for item in tree.expressions if isinstance(item, exp.Alias)}
        self._named_items = list(self._outputs())
        self._items = [item for _, item in self._named_items]

    def translation(self, by_rank: bool) -> Translation:
        """Return the SELECT with its rows in SQLite's order."""
        limit = self._limit()
        if is_aggregated(self._tree):
            sorts = by_rank and self._tree.args.get("group")
            return Translation(self._grouped(by_rank) + limit, is_short=True, order=Order() if sorts else None)
        if not self._sources.tables:
            raise Unfaithful("rows of several tables or with equal ids: SQLite chooses their order")
        order = Order(self._sources.tables, has_choices=self._tree.find(*_CHOICES) is not None)
        if self._tree.args.get("distinct"):
            return Translation(self._distinct() + limit, is_short=True, order=order)
        terms = [*self._order(), FILE, ROW] if self._tree.args.get("order") else []
        sql = f"SELECT {_listed(self._items)} {self._from()}{_clause('ORDER BY', terms)}{limit}"
        if self._expressions.may_overflow and not limit:
            raise Unfaithful("sums or products of whole numbers in rows without LIMIT")
        return Translation(sql, is_short=bool(limit), order=order)

    def as_source(self) -> StoredSource:
        """Return the SELECT as a source for another SELECT; its rows keep their rank and place."""
        if is_aggregated(self._tree) or any(map(self._tree.args.get, ("distinct", "order", "limit"))):
            raise Unfaithful("a subquery that is more than a choice of rows")
        names = [name or f"column {i}" for i, (name, _) in enumerate(self._named_items)]
        if len(set(names)) < len(names):
            raise Unfaithful("two columns with one name")
        tables = self._sources.tables
        items = [*(f"{item.sql} AS c{i}" for i, item in enumerate(self._items)), FILE, *([ROW] if tables else ())]
        columns = {
            name: Typed(f"c{i}", item.kind, is_ascii=item.is_ascii)
            for i, (name, item) in enumerate(zip(names, self._items, strict=True))
        }
        return StoredSource(f"(SELECT {', '.join(items)} {self._from()})", columns, tables=tables)

    def _grouped(self, by_rank: bool) -> str:
        if self._tree.args.get("distinct"):
            raise Unfaithful("DISTINCT groups")
        terms = list(self._groups(by_rank))
        groups = [FILE, *terms] if by_rank else terms
        having = self._tree.args.get("having")
        condition = f" HAVING {self._expressions.condition(having.this)}" if having else ""
        order = list(self._order())
        if by_rank:
            order += [FILE, *(f"{term} NULLS FIRST" for term in terms)]
        grouped = _clause("GROUP BY", groups) + condition + _clause("ORDER BY", order)
        return f"SELECT {_listed(self._items)} {self._from()}{grouped}"

    def _groups(self, by_rank: bool) -> Iterator[str]:
        group = self._tree.args.get("group")
        for term in group.expressions if group else ():
            node = self._meant(term, prefers_columns=True)
            if by_rank and isinstance(node, exp.Column) and self._sources.is_of_rank(node):
                continue  # the rank is one of the groups anyway
            value = self._expressions.value(node)
            if value.kind is ValueKind.REAL or value.literal is not None:
                raise Unfaithful("groups by reals or constants")
            yield value.sql

    def _distinct(self) -> str:
        """Return the SELECT of different rows, in the order of their first appearance."""
        if any(item.kind is ValueKind.REAL for item in self._items):
            raise Unfaithful("DISTINCT reals")
        values = [item.sql for item in self._items]
        first = f"min({FILE} * {_ROWS_OF_AFILE} + {ROW})"
        return f"SELECT {', '.join(values)} {self._from()} GROUP BY {', '.join(values)}" + _clause(
            "ORDER BY", [*self._order(), first]
        )

    def _order(self) -> Iterator[str]:
        order = self._tree.args.get("order")
        for term in order.expressions if order else ():
            if bool(term.args.get("nulls_first")) == bool(term.args.get("desc")):
                raise Unfaithful("an ORDER BY with NULLS")
            yield f"{self._sort_key(term)} {'DESC NULLS LAST' if term.args.get('desc') else 'ASC NULLS FIRST'}"

    def _sort_key(self, term: exp.Ordered) -> str:
        expression, collation = term.this, "BINARY"
        if isinstance(expression, exp.Collate):
            expression, collation = expression.this, expression.expression.name.upper()
        value = self._expressions.value(self._meant(expression, prefers_columns=False))
        if collation == "NOCASE" and value.is_ascii:
            return f"lower({value.sql})"
        if collation != "BINARY" and value.kind is not ValueKind.INT:
            raise Unfaithful(f"the collation {collation}")
        return value.sql

    def _meant(self, term: exp.Expr, *, prefers_columns: bool) -> exp.Expr:
        """Return the expression of a term of GROUP BY or ORDER BY, which may be a number or name of a result column."""
        if prefers_columns and isinstance(term, exp.Column) and self._sources.owner(term) is not None:
            return term
        if (index := output_index(term, self._tree)) is None:
            return term
        if any(item.is_star for item in self._tree.expressions) or not 0 <= index < len(self._tree.expressions):
            raise Unfaithful("a result column by its number")
        meant: exp.Expr = self._tree.expressions[index].unalias()
        return meant

    def _limit(self) -> str:
        texts = []
        for key in ("limit", "offset"):
            if clause := self._tree.args.get(key):
                count = self._expressions.value(clause.expression).literal
                if not isinstance(count, int) or count < 0:
                    raise Unfaithful(f"{key.upper()} of anything but a number")
                texts.append(f" {key.upper()} {count}")
        return "".join(texts)

    def _from(self) -> str:
        where = self._tree.args.get("where")
        (first, *others), joins = self._sources.by_alias.values(), self._tree.args.get("joins") or ()
        joined = "".join(
            self._join(source, number, join) for number, (source, join) in enumerate(zip(others, joins, strict=True), 1)
        )
        conditions = [first.where] if first.where else []
        if where:
            conditions.append(self._expressions.condition(where.this))
        return f"FROM {first.sql}{joined}{_clause('WHERE', conditions, ' AND ')}"

    def _join(self, source: StoredSource, number: int, join: exp.Join) -> str:
        word = "LEFT JOIN" if is_left_join(join) else "JOIN"
        same_rank, on = "true" if source.is_gathered else f"{FILE} = {file_of(number)}", join.args.get("on")
        condition = f" AND {self._expressions.condition(on)}" if on is not None else ""
        return f" {word} {source.sql} ON {same_rank}{condition}"

    def _outputs(self) -> Iterator[tuple[str, Typed]]:
        """Yield the result columns with names in lower case; an expression without an alias has an empty name."""
        for item in self._tree.expressions:
            if item.is_star:
                yield from self._sources.all_columns(item.table.lower() if isinstance(item, exp.Column) else "")
            else:
                name = item.alias_or_name if isinstance(item, (exp.Alias, exp.Column)) else ""
                yield name.lower(), self._expressions.value(item.unalias())

    def _find_column(self, column: exp.Column) -> Typed:
        name = column.name.lower()
        if (owner := self._sources.owner(column)) is not None:
            return self._sources.by_alias[owner].columns[name]
        if not column.table and name in self._aliases:
            return self._expressions.value(self._aliases[name])
        raise Unfaithful(f"the column {column.name} is not in the index")


def _sources(tree: exp.Select, source: Callable[[exp.Expr | None], tuple[str, StoredSource]]) -> Sources:
    clause, joins = tree.args.get("from_"), tree.args.get("joins") or []
    named = [source(node.this if node is not None else None) for node in (clause, *joins)]
    if not joins:
        return Sources(dict(named))
    if len(dict(named)) < len(named):
        raise Unfaithful("two sources with one name")
    if named[0][1].is_gathered:
        raise Unfaithful("a gathered table before those of ranks")
    optional = [False, *map(is_left_join, joins)]
    return Sources({alias: renamed(each, i, is_optional=optional[i]) for i, (alias, each) in enumerate(named)})


def _source(node: exp.Expr | None, catalog: Catalog, bindings: Bindings) -> tuple[str, StoredSource]:
    """Return the name in lower case of a part of a FROM, and its source."""
    if isinstance(node, exp.Subquery):
        return node.alias.lower(), _subquery(node.this, catalog, bindings)
    stored = catalog(node.name.lower()) if isinstance(node, exp.Table) else None
    if isinstance(node, exp.Table) and stored:
        return (node.alias or node.name).lower(), stored
    raise Unfaithful(f"{node.name if isinstance(node, exp.Table) else 'the FROM'} is not in the index")


def _subquery(tree: exp.Expr, catalog: Catalog, bindings: Bindings) -> StoredSource:
    if not isinstance(tree, exp.Union):
        return _Select(_checked(tree), catalog, bindings).as_source()
    if parts_of(tree) - {"this", "expression"}:
        raise Unfaithful("a compound with more than UNION ALL")
    return union_all(*(_subquery(side, catalog, bindings) for side in (tree.this, tree.expression)))


def _listed(items: Sequence[Typed]) -> str:
    return ", ".join(item.sql for item in items)


def _clause(words: str, parts: Sequence[str], between: str = ", ") -> str:
    return f" {words} {between.join(parts)}" if parts else ""
