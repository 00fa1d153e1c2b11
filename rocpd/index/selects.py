"""A SELECT that every rank runs, as one SELECT of DuckDB over the stored views of all ranks, with the same rows.

Rows come in the order in which the ranks would give them: by rank, then as SQLite reads or groups them. One view, or a
subquery over one, is the FROM; anything else is left to SQLite.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp

from rocpd.federate.plan import vocabulary
from rocpd.federate.plan.scope import output_index
from rocpd.federate.plan.sqltext import Unfaithful, read_select
from rocpd.frozen import frozen
from rocpd.index.expressions import Expressions
from rocpd.index.kinds import ValueKind
from rocpd.index.typed import Typed, Untranslatable
from rocpd.types import Value

_CLAUSES = {"expressions", "from_", "where", "group", "having", "order", "limit", "offset", "distinct"}
_FILE, _ROW = "file_index", "file_row_number"
_ROWS_OF_A_FILE = 1 << 40  # no file of a rank has more

Bindings = Mapping[str, Value]


@frozen
class StoredSource:
    """A view of all ranks.

    Args:
        sql: what DuckDB selects from; it has the columns `file_index` (of the rank) and `file_row_number`.
        columns: name in lower case -> the column, in the order of SQL.
        of_rank: those that have one value in a rank.
        is_whole: no column of the view is missing.
        where: condition on the rows that count, or empty.
    """

    sql: str
    columns: Mapping[str, Typed]
    of_rank: frozenset[str] = frozenset()
    is_whole: bool = True
    where: str = ""


Catalog = Mapping[str, StoredSource]
"""View -> what is stored of it."""


@frozen
class Translation:
    """A SELECT of DuckDB.

    Args:
        sql: its text.
        is_short: its rows are few, or all known before the first one comes.
    """

    sql: str
    is_short: bool


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
        self._alias, self._source = _source(tree.args.get("from_"), catalog, bindings)
        self._expressions = Expressions(self._find_column, bindings)
        self._aliases = {item.alias.lower(): item.this for item in tree.expressions if isinstance(item, exp.Alias)}
        self._items = list(self._outputs())

    def translation(self, by_rank: bool) -> Translation:
        """Return the SELECT; its rows are in the order of SQLite."""
        limit = self._limit()
        if vocabulary.is_aggregated(self._tree):
            return Translation(self._grouped(by_rank) + limit, is_short=True)
        if self._tree.args.get("distinct"):
            return Translation(self._distinct() + limit, is_short=True)
        order = [*self._order(), _FILE, _ROW] if self._tree.args.get("order") else []
        sql = f"SELECT {_listed(self._items)} {self._from()}{_clause('ORDER BY', order)}{limit}"
        if self._expressions.may_overflow and not limit:
            raise Untranslatable("sums or products of whole numbers in rows without LIMIT")
        return Translation(sql, is_short=bool(limit))

    def as_source(self) -> StoredSource:
        """Return the SELECT as what another one selects from: rows that keep their rank and their place."""
        if vocabulary.is_aggregated(self._tree) or any(map(self._tree.args.get, ("distinct", "order", "limit"))):
            raise Untranslatable("a subquery that is more than a choice of rows")
        names = [name.lower() for name in self._names()]
        if len(set(names)) < len(names):
            raise Untranslatable("two columns with one name")
        items = [*(f"{item.sql} AS c{i}" for i, item in enumerate(self._items)), _FILE, _ROW]
        columns = {
            name: Typed(f"c{i}", item.kind) for i, (name, item) in enumerate(zip(names, self._items, strict=True))
        }
        return StoredSource(f"(SELECT {', '.join(items)} {self._from()})", columns)

    def _grouped(self, by_rank: bool) -> str:
        if self._tree.args.get("distinct"):
            raise Untranslatable("DISTINCT groups")
        terms = list(self._groups(by_rank))
        groups = [_FILE, *terms] if by_rank else terms
        having = self._tree.args.get("having")
        condition = f" HAVING {self._expressions.condition(having.this)}" if having else ""
        order = list(self._order())
        if by_rank:
            order += [_FILE, *(f"{term} NULLS FIRST" for term in terms)]
        grouped = _clause("GROUP BY", groups) + condition + _clause("ORDER BY", order)
        return f"SELECT {_listed(self._items)} {self._from()}{grouped}"

    def _groups(self, by_rank: bool) -> Iterator[str]:
        group = self._tree.args.get("group")
        for term in group.expressions if group else ():
            node = self._meant(term, prefers_columns=True)
            if by_rank and isinstance(node, exp.Column) and node.name.lower() in self._source.of_rank:
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
        first = f"min({_FILE} * {_ROWS_OF_A_FILE} + {_ROW})"
        return f"SELECT {', '.join(values)} {self._from()} GROUP BY {', '.join(values)}" + _clause(
            "ORDER BY", [*self._order(), first]
        )

    def _order(self) -> Iterator[str]:
        order = self._tree.args.get("order")
        for term in order.expressions if order else ():
            if bool(term.args.get("nulls_first")) == bool(term.args.get("desc")) or isinstance(term.this, exp.Collate):
                raise Untranslatable("an ORDER BY with NULLS or COLLATE")
            value = self._expressions.value(self._meant(term.this, prefers_columns=False))
            yield f"{value.sql} {'DESC NULLS LAST' if term.args.get('desc') else 'ASC NULLS FIRST'}"

    def _meant(self, term: exp.Expr, *, prefers_columns: bool) -> exp.Expr:
        """Return the expression that a term of GROUP BY or ORDER BY means: it may be a number or name of a result."""
        is_name = isinstance(term, exp.Column) and not term.table
        if prefers_columns and is_name and term.name.lower() in self._source.columns:
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
        conditions = [self._source.where] if self._source.where else []
        if where:
            conditions.append(self._expressions.condition(where.this))
        return f"FROM {self._source.sql}{_clause('WHERE', conditions, ' AND ')}"

    def _outputs(self) -> Iterator[Typed]:
        for item in self._tree.expressions:
            if item.is_star:
                self._check_owner(item)
                if not self._source.is_whole:
                    raise Untranslatable("*, of which a column is not in the index")
                yield from self._source.columns.values()
            else:
                yield self._expressions.value(item.unalias())

    def _names(self) -> Iterator[str]:
        for item in self._tree.expressions:
            if item.is_star:
                yield from self._source.columns
            elif isinstance(item, (exp.Alias, exp.Column)):
                yield item.alias_or_name
            else:
                raise Untranslatable("a column of a subquery without a name")

    def _find_column(self, column: exp.Column) -> Typed:
        self._check_owner(column)
        name = column.name.lower()
        if name in self._source.columns:
            return self._source.columns[name]
        if not column.table and name in self._aliases:
            return self._expressions.value(self._aliases[name])
        raise Untranslatable(f"the column {column.name} is not in the index")

    def _check_owner(self, node: exp.Expr) -> None:
        table = node.table.lower() if isinstance(node, exp.Column) else ""
        if table and table != self._alias:
            raise Untranslatable(f"the source {table}")


def _source(clause: exp.Expr | None, catalog: Catalog, bindings: Bindings) -> tuple[str, StoredSource]:
    """Return what a SELECT selects from, and its name in lower case."""
    node = clause.this if clause is not None else None
    if isinstance(node, exp.Subquery):
        return node.alias.lower(), _Select(_checked(node.this), catalog, bindings).as_source()
    stored = catalog.get(node.name.lower()) if isinstance(node, exp.Table) else None
    if isinstance(node, exp.Table) and stored:
        return (node.alias or node.name).lower(), stored
    raise Untranslatable(f"{node.name if isinstance(node, exp.Table) else 'the FROM'} is not in the index")


def _listed(items: Sequence[Typed]) -> str:
    return ", ".join(item.sql for item in items)


def _clause(words: str, parts: Sequence[str], between: str = ", ") -> str:
    return f" {words} {between.join(parts)}" if parts else ""
