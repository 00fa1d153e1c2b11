"""A SELECT that every rank runs, as one SELECT of DuckDB over the stored views of all ranks, with the same rows.

Rows come in the order in which the ranks would give them: by rank, then as SQLite reads or groups them; whether it does
so, `rocpd.index.order` finds out. Rows of a join come in an order that SQLite chooses, so only groups are answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from sqlglot import exp

from rocpd.base.frozen import frozen
from rocpd.base.types import Value
from rocpd.federate.plan import vocabulary
from rocpd.federate.plan.scope import output_index
from rocpd.federate.plan.sqltext import Unfaithful, read_select
from rocpd.index.expressions import Expressions
from rocpd.index.kinds import ValueKind
from rocpd.index.order import Order
from rocpd.index.sources import FILE, ROW, Catalog, Sources, StoredSource, file_of, is_left_join, renamed, union_all
from rocpd.index.typed import Typed, Untranslatable

_CLAUSES = {"expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "distinct"}
_CHOICES = (exp.In, exp.Or, exp.Is, exp.NullSafeEQ, exp.NullSafeNEQ)
_ROWS_OF_AFILE = 1 << 40  # no file of a rank has more

Bindings = Mapping[str, Value]


@frozen
class Translation:
    """A SELECT of DuckDB.

    Args:
        sql: its text.
        is_short: its rows are few, or all known before the first one comes.
        order: in which they are given; None: it is no matter.
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
        by_rank: every rank groups its own rows; False: groups of several ranks are one.

    Raises:
        Untranslatable: DuckDB may answer something else.
    """
    try:
        tree = read_select(sql)
    except Unfaithful as reason:
        raise Untranslatable(str(reason)) from reason
    try:
        return _Select(_checked(tree), catalog, bindings).translation(by_rank)
    except RecursionError as error:
        raise Untranslatable("a deep expression") from error


def condition_of(text: str, columns: Mapping[str, Typed]) -> str:
    """Return a condition on the rows of a table, as one on stored columns.

    Args:
        text: the condition, as SQLite reads it.
        columns: name in lower case -> the stored column.

    Raises:
        Untranslatable: DuckDB may choose other rows, or a column is not stored.
    """

    def find_column(column: exp.Column) -> Typed:
        name = column.name.lower()
        if column.table or name not in columns:
            raise Untranslatable(f"a window or filter by {column.name}")
        return columns[name]

    try:
        tree = _checked(read_select(f"SELECT 1 WHERE {text}"))
    except Unfaithful as reason:
        raise Untranslatable(str(reason)) from reason
    return Expressions(find_column, {}).condition(tree.args["where"].this)


def _checked(tree: exp.Expr) -> exp.Select:
    if not isinstance(tree, exp.Select):
        raise Untranslatable("a compound")
    unknown = {key for key, value in tree.args.items() if value} - _CLAUSES
    if unknown:
        raise Untranslatable(f"a clause {min(unknown).rstrip('_').upper()}")
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
        """Return the SELECT; its rows are in the order of SQLite."""
        limit = self._limit()
        if vocabulary.is_aggregated(self._tree):
            sorts = by_rank and self._tree.args.get("group")
            return Translation(self._grouped(by_rank) + limit, is_short=True, order=Order() if sorts else None)
        if not self._sources.tables:
            raise Untranslatable("rows of several tables or with equal ids: SQLite chooses their order")
        order = Order(self._sources.tables, has_choices=self._tree.find(*_CHOICES) is not None)
        if self._tree.args.get("distinct"):
            return Translation(self._distinct() + limit, is_short=True, order=order)
        terms = [*self._order(), FILE, ROW] if self._tree.args.get("order") else []
        sql = f"SELECT {_listed(self._items)} {self._from()}{_clause('ORDER BY', terms)}{limit}"
        if self._expressions.may_overflow and not limit:
            raise Untranslatable("sums or products of whole numbers in rows without LIMIT")
        return Translation(sql, is_short=bool(limit), order=order)

    def as_source(self) -> StoredSource:
        """Return the SELECT as what another one selects from: rows that keep their rank and their place."""
        if vocabulary.is_aggregated(self._tree) or any(map(self._tree.args.get, ("distinct", "order", "limit"))):
            raise Untranslatable("a subquery that is more than a choice of rows")
        names = [name or f"column {i}" for i, (name, _) in enumerate(self._named_items)]
        if len(set(names)) < len(names):
            raise Untranslatable("two columns with one name")
        tables = self._sources.tables
        items = [*(f"{item.sql} AS c{i}" for i, item in enumerate(self._items)), FILE, *([ROW] if tables else ())]
        columns = {
            name: Typed(f"c{i}", item.kind, is_ascii=item.is_ascii)
            for i, (name, item) in enumerate(zip(names, self._items, strict=True))
        }
        return StoredSource(f"(SELECT {', '.join(items)} {self._from()})", columns, tables=tables)

    def _grouped(self, by_rank: bool) -> str:
        if self._tree.args.get("distinct"):
            raise Untranslatable("DISTINCT groups")
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
                raise Untranslatable("groups by reals or constants")
            yield value.sql

    def _distinct(self) -> str:
        """Return the different rows, where each is met first."""
        if any(item.kind is ValueKind.REAL for item in self._items):
            raise Untranslatable("DISTINCT reals")
        values = [item.sql for item in self._items]
        first = f"min({FILE} * {_ROWS_OF_AFILE} + {ROW})"
        return f"SELECT {', '.join(values)} {self._from()} GROUP BY {', '.join(values)}" + _clause(
            "ORDER BY", [*self._order(), first]
        )

    def _order(self) -> Iterator[str]:
        order = self._tree.args.get("order")
        for term in order.expressions if order else ():
            if bool(term.args.get("nulls_first")) == bool(term.args.get("desc")):
                raise Untranslatable("an ORDER BY with NULLS")
            yield f"{self._sort_key(term)} {'DESC NULLS LAST' if term.args.get('desc') else 'ASC NULLS FIRST'}"

    def _sort_key(self, term: exp.Ordered) -> str:
        expression, collation = term.this, "BINARY"
        if isinstance(expression, exp.Collate):
            expression, collation = expression.this, expression.expression.name.upper()
        value = self._expressions.value(self._meant(expression, prefers_columns=False))
        if collation == "NOCASE" and value.is_ascii:
            return f"lower({value.sql})"
        if collation != "BINARY" and value.kind is not ValueKind.INT:
            raise Untranslatable(f"the collation {collation}")
        return value.sql

    def _meant(self, term: exp.Expr, *, prefers_columns: bool) -> exp.Expr:
        """Return the expression that a term of GROUP BY or ORDER BY means: it may be a number or name of a result."""
        if prefers_columns and isinstance(term, exp.Column) and self._sources.owner(term) is not None:
            return term
        index = output_index(term, self._tree)
        if index is None:
            return term
        if any(item.is_star for item in self._tree.expressions) or not 0 <= index < len(self._tree.expressions):
            raise Untranslatable("a result column by its number")
        meant: exp.Expr = self._tree.expressions[index].unalias()
        return meant

    def _limit(self) -> str:
        texts = []
        for key in ("limit", "offset"):
            clause = self._tree.args.get(key)
            if clause:
                count = self._expressions.value(clause.expression).literal
                if not isinstance(count, int) or count < 0:
                    raise Untranslatable(f"{key.upper()} of anything but a number")
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
        """Yield the result columns with their names in lower case; an expression without an alias has an empty one."""
        for item in self._tree.expressions:
            if item.is_star:
                yield from self._sources.all_columns(item.table.lower() if isinstance(item, exp.Column) else "")
            else:
                name = item.alias_or_name if isinstance(item, (exp.Alias, exp.Column)) else ""
                yield name.lower(), self._expressions.value(item.unalias())

    def _find_column(self, column: exp.Column) -> Typed:
        name = column.name.lower()
        owner = self._sources.owner(column)
        if owner is not None:
            return self._sources.by_alias[owner].columns[name]
        if not column.table and name in self._aliases:
            return self._expressions.value(self._aliases[name])
        raise Untranslatable(f"the column {column.name} is not in the index")


def _sources(tree: exp.Select, source: Callable[[exp.Expr | None], tuple[str, StoredSource]]) -> Sources:
    clause, joins = tree.args.get("from_"), tree.args.get("joins") or []
    named = [source(node.this if node is not None else None) for node in (clause, *joins)]
    if not joins:
        return Sources(dict(named))
    if len(dict(named)) < len(named):
        raise Untranslatable("two sources with one name")
    if named[0][1].is_gathered:
        raise Untranslatable("a gathered table before those of ranks")
    optional = [False, *map(is_left_join, joins)]
    return Sources({alias: renamed(each, i, is_optional=optional[i]) for i, (alias, each) in enumerate(named)})


def _source(node: exp.Expr | None, catalog: Catalog, bindings: Bindings) -> tuple[str, StoredSource]:
    """Return what a part of a FROM names, after its name in lower case."""
    if isinstance(node, exp.Subquery):
        return node.alias.lower(), _subquery(node.this, catalog, bindings)
    stored = catalog.get(node.name.lower()) if isinstance(node, exp.Table) else None
    if isinstance(node, exp.Table) and stored:
        return (node.alias or node.name).lower(), stored
    raise Untranslatable(f"{node.name if isinstance(node, exp.Table) else 'the FROM'} is not in the index")


def _subquery(tree: exp.Expr, catalog: Catalog, bindings: Bindings) -> StoredSource:
    if not isinstance(tree, exp.Union):
        return _Select(_checked(tree), catalog, bindings).as_source()
    if {key for key, value in tree.args.items() if value} - {"this", "expression"}:
        raise Untranslatable("a compound with more than UNION ALL")
    return union_all(*(_subquery(side, catalog, bindings) for side in (tree.this, tree.expression)))


def _listed(items: Sequence[Typed]) -> str:
    return ", ".join(item.sql for item in items)


def _clause(words: str, parts: Sequence[str], between: str = ", ") -> str:
    return f" {words} {between.join(parts)}" if parts else ""
