"""ORDER BY, LIMIT and DISTINCT over all ranks: every rank returns its rows with the sort keys beside them.

The gathered rows are in rank order, so that equal keys keep the order in which SQLite would meet them. Groups it meets
in the order of their GROUP BY, which follows the ORDER BY therefore.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from rocpd.base.frozen import frozen
from rocpd.federate.plan.scope import Scope, output_index
from rocpd.federate.plan.sqltext import Unfaithful, text_of
from rocpd.federate.plan.steps import Scatter
from rocpd.schema.quote import quote_name

_FEW_ROWS = 1000  # of a rank: no burden to a thread


@frozen
class Sorting:
    """The clauses of a SELECT that see all ranks at once."""

    order: tuple[exp.Ordered, ...] = ()
    limit: exp.Expr | None = None
    offset: exp.Expr | None = None
    distinct: bool = False

    def __bool__(self) -> bool:
        return bool(self.order or self.limit is not None or self.distinct)

    @classmethod
    def take(cls, tree: exp.Select) -> Sorting:
        """Remove the clauses from a SELECT and return them."""
        order = tree.args.get("order")
        terms = tuple(order.expressions) if order else ()
        for term in terms:
            # In SQLite NULLs come first in ascending order; sqlglot prints only what differs from that.
            if bool(term.args.get("nulls_first")) == bool(term.args.get("desc")):
                raise Unfaithful("NULLS FIRST or LAST")
        limit, offset = tree.args.get("limit"), tree.args.get("offset")
        sorting = cls(
            terms,
            limit.expression if limit else None,
            offset.expression if offset else None,
            bool(tree.args.get("distinct")),
        )
        for key in ("order", "limit", "offset", "distinct"):
            tree.set(key, None)
        return sorting

    @property
    def tail(self) -> str:
        """LIMIT and OFFSET as text."""
        text = f" LIMIT {text_of(self.limit)}" if self.limit is not None else ""
        return text + (f" OFFSET {text_of(self.offset)}" if self.offset is not None else "")

    @property
    def rows_per_rank(self) -> int | None:
        """How many rows of each rank can matter; None if that is not known beforehand."""
        counts = []
        for value in (self.limit, self.offset):
            if value is None:
                counts.append(0)
            elif isinstance(value, exp.Literal) and not value.is_string and value.name.isdigit():
                counts.append(int(value.name))
            else:
                return None
        return sum(counts) if self.limit is not None else None


def split_collation(term: exp.Ordered) -> tuple[exp.Expr, str]:
    """Return the expression of an ORDER BY term, and the text that follows it: collation and direction."""
    tail = " DESC" if term.args.get("desc") else ""
    if isinstance(term.this, exp.Collate):
        return term.this.this, f" COLLATE {text_of(term.this.expression)}{tail}"
    return term.this, tail


def sorted_select(scope: Scope, sorting: Sorting, columns: Sequence[str]) -> tuple[Scatter, str]:
    """Return what every rank runs, and the SELECT over the gathered rows.

    Args:
        scope: the SELECT without the clauses of `sorting`.
        sorting: those clauses.
        columns: names of the result columns.

    Raises:
        Unfaithful: an ORDER BY that cannot be applied to the gathered rows.
    """
    keys, hidden = _sort_keys(scope, sorting.order, len(columns))
    _add_group_keys(scope, sorting.order, len(columns), keys, hidden)
    if hidden and sorting.distinct:
        raise Unfaithful("DISTINCT rows ordered by what is not among their columns")
    scattered = scope.tree.copy()
    for number, expression in enumerate(hidden):
        scattered.append("expressions", exp.alias_(expression.copy(), f"o{number}"))
    if sorting.distinct:
        scattered.set("distinct", exp.Distinct())
    text = text_of(scattered)
    limit = sorting.rows_per_rank
    if limit is not None:  # result columns of a rank have no generic names, so its keys are positions
        order = ", ".join(f"{index + 1}{tail}" for index, tail in keys)
        text += (f" ORDER BY {order}" if order else "") + f" LIMIT {limit}"
    names = (*(f"c{i}" for i in range(len(columns))), *(f"o{i}" for i in range(len(hidden))))
    items = ", ".join(f"c{i} AS {quote_name(name)}" for i, name in enumerate(columns))
    unique = "DISTINCT " if sorting.distinct else ""
    terms = [*(f"{names[index]}{tail}" for index, tail in keys), *([] if sorting.distinct else ["rowid"])]
    ordered = f" ORDER BY {', '.join(terms)}" if terms else ""
    scatter = Scatter("", names, (), text, gives_few_rows=limit is not None and limit <= _FEW_ROWS)
    return scatter, f"SELECT {unique}{items} FROM {{{{gathered}}}}{ordered}{sorting.tail}"


def _sort_keys(scope: Scope, order: Sequence[exp.Ordered], width: int) -> tuple[list[tuple[int, str]], list[exp.Expr]]:
    """Return the keys (index of the gathered column, collation and direction), and the hidden columns' expressions.

    Hidden columns, which the result does not have, follow the `width` columns of the result.
    """
    starred = any(item.is_star for item in scope.tree.expressions)
    keys: list[tuple[int, str]] = []
    hidden: list[exp.Expr] = []
    for term in order:
        expression, tail = split_collation(term)
        index = output_index(expression, scope.tree)
        if index is not None and isinstance(expression, exp.Literal) and starred and index >= width:
            raise Unfaithful("ORDER BY a column that does not exist")
        if index is not None and (not starred or isinstance(expression, exp.Literal)):
            keys.append((index, tail))
            continue
        _check_inputs(expression, scope)
        keys.append((width + len(hidden), tail))
        hidden.append(expression)
    return keys, hidden


def _add_group_keys(
    scope: Scope, order: Sequence[exp.Ordered], width: int, keys: list[tuple[int, str]], hidden: list[exp.Expr]
) -> None:
    """Add the terms of GROUP BY to keys and hidden columns, unless groups come by rank as the gathered rows do.

    SQLite groups downwards where an ORDER BY of as many terms does. Terms that a collation orders may tie.
    """
    groups = scope.groups()
    tails = ["" for _ in groups]
    if len(order) == len(groups):
        tails = [" DESC" if term.args.get("desc") else "" for term in order]
    if not groups or (scope.strong_key(groups[0]) == "rank" and not any(tails)):
        return
    starred = any(item.is_star for item in scope.tree.expressions)
    outputs = [] if starred else [item.unalias() for item in scope.tree.expressions]
    for group, tail in zip(groups, tails, strict=True):
        if group not in outputs:
            keys.append((width + len(hidden), tail))
            hidden.append(group)
        elif not {(index := outputs.index(group), ""), (index, " DESC")} & set(keys):
            keys.append((index, tail))


def _check_inputs(expression: exp.Expr, scope: Scope) -> None:
    """Refuse a hidden key of anything but columns of the FROM: an alias takes precedence when it is the entire term."""
    is_bare = isinstance(expression, exp.Column) and not expression.table
    for column in expression.find_all(exp.Column):
        if scope.source(column) is None or (is_bare and column.name.lower() in scope.aliases):
            raise Unfaithful("ORDER BY an expression of aliases")
