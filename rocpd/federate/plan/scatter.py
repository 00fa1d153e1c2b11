"""Splits a SELECT into a part that every rank runs, and a SELECT over the returned rows: sorted rows, or aggregates.

For ORDER BY, LIMIT and DISTINCT every rank returns its rows with the sort keys beside them. The gathered rows are in
rank order, so that rows with equal keys keep the order in which SQLite would meet them. SQLite meets groups in the
order of their GROUP BY; therefore its terms follow those of the ORDER BY. For aggregates every rank returns partial
values by group, and one SELECT adds them up: count, sum, total, min, max and avg can be split; an average becomes a
total and a count. Everything else raises.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

from sqlglot import exp

from rocpd.base import frozen
from rocpd.federate.plan.scope import Scope, is_aggregate, output_index
from rocpd.federate.plan.sqltext import parts_of, qualified_text_of, table_of, text_of
from rocpd.federate.plan.steps import Scatter, Unfaithful
from rocpd.schema.load import VIEWS
from rocpd.schema.quote import quote_name
from rocpd.schema.render import keyed_name, lookup_name, lookups

_FEW_ROWS = 1000  # per rank: no burden to a thread


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
            # In SQLite NULLs come first in ascending order; sqlglot prints only other orders.
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
        """The most rows of each rank that can matter; None if not known beforehand."""
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
    """Return the step that every rank runs, and the SELECT over the gathered rows.

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
        is_bare = isinstance(expression, exp.Column) and not expression.table
        for column in expression.find_all(exp.Column):
            # A hidden key names columns of the FROM only; an alias takes precedence as the entire term.
            if scope.source(column) is None or (is_bare and column.name.lower() in scope.aliases):
                raise Unfaithful("ORDER BY an expression of aliases")
        keys.append((width + len(hidden), tail))
        hidden.append(expression)
    return keys, hidden


def _add_group_keys(
    scope: Scope, order: Sequence[exp.Ordered], width: int, keys: list[tuple[int, str]], hidden: list[exp.Expr]
) -> None:
    """Add the terms of GROUP BY to keys and hidden columns, unless groups come in rank order like the gathered rows.

    SQLite groups in descending order where an ORDER BY with as many terms descends. Under a collation, terms may tie.
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


def partial_select(scope: Scope, sorting: Sorting) -> tuple[Scatter, str]:
    """Return the step that every rank runs, and the SELECT over the gathered partial values.

    Args:
        scope: an aggregated SELECT without the clauses of `sorting`.
        sorting: those clauses.

    Raises:
        Unfaithful: an aggregate that cannot be split, a bare column, an expression that cannot be rewritten.
    """
    return _Split(scope).scatter_and_select(sorting)


_Items: TypeAlias = Mapping[str, exp.Expr]
"""Result column -> its expression."""


class _Split:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._tree = scope.tree
        self._inputs = scope.inputs
        self._partials: dict[exp.Expr, int] = {}
        self._merged: dict[str, str] = {}
        self._distinct: exp.Expr | None = None
        group = self._tree.args.get("group")
        if group and parts_of(group) - {"expressions"}:
            raise Unfaithful("GROUP BY with more than expressions")
        self._groups = [self._group(item) for item in (group.expressions if group else [])]
        self._group_columns = {self._canonical(item): f"g{i}" for i, item in enumerate(self._groups)}

    def scatter_and_select(self, sorting: Sorting) -> tuple[Scatter, str]:
        items = []
        for item in self._tree.expressions:
            name = item.alias_or_name if isinstance(item, (exp.Alias, exp.Column)) else text_of(item)
            items.append(f"{self._rewrite(item.unalias())} AS {quote_name(name)}")
        having = self._tree.args.get("having")
        condition = f" HAVING {self._rewrite(having.this)}" if having else ""
        order = ", ".join(self._order(term) for term in sorting.order)
        groups = ", ".join(f"g{i}" for i in range(len(self._groups)))
        select = (
            f"SELECT {'DISTINCT ' if sorting.distinct else ''}{', '.join(items)} FROM {{{{gathered}}}}"
            + (f" GROUP BY {groups}" if groups else "")
            + condition
            + (f" ORDER BY {order}" if order else "")
            + sorting.tail
        )
        return self._scatter(), select

    def _scatter(self) -> Scatter:
        groups = {f"g{i}": item for i, item in enumerate(self._groups)}
        if self._distinct is not None:
            groups["d0"] = self._distinct
        partials = {f"p{i}": item for i, item in enumerate(self._partials)}
        if not groups and not partials:
            partials["p0"] = exp.Count(this=exp.Star())
        merges = ("GROUP",) * len(groups) + tuple(_merge_name(partial) for partial in partials.values())
        names = self._names_by_id(groups)
        by_name = self._grouped_text(groups, partials)
        text = self._text_by_id(groups, partials, names) if names else by_name
        if any(partial.find(exp.Collate) for partial in self._partials):
            merges = ()
        return Scatter("", (*groups, *partials), (), text, gives_few_rows=True, merges=merges, by_name=by_name)

    def _grouped_text(self, groups: _Items, partials: _Items, view: str = "") -> str:
        rest = {key: value for key, value in self._tree.args.items() if key not in ("expressions", "having", "group")}
        scattered = exp.Select(**copy.deepcopy(rest))
        named = ((name, item.copy()) for name, item in (*groups.items(), *partials.items()))
        scattered.set("expressions", [exp.alias_(item, name, copy=False) for name, item in named])
        if view:
            table = scattered.args["from_"].this
            table.replace(table_of(view, table.alias or table.name))
        text = text_of(scattered)
        return text + (f" GROUP BY {', '.join(str(i + 1) for i in range(len(groups)))}" if groups else "")

    def _names_by_id(self, groups: _Items) -> dict[str, str]:
        """Return group -> view column for groups by a name: a rank groups by its id, then looks up the few names."""
        source = self._tree.args["from_"].this
        if self._tree.args.get("joins") or not isinstance(source, exp.Table) or source.name.lower() not in VIEWS:
            return {}
        known = lookups(source.name.lower())
        columns = {group: item.name.lower() for group, item in groups.items() if isinstance(item, exp.Column)}
        return {group: column for group, column in columns.items() if column in known}

    def _text_by_id(self, groups: _Items, partials: _Items, names: Mapping[str, str]) -> str:
        view = self._tree.args["from_"].this.name.lower()
        keyed = {
            group: exp.column(exp.to_identifier(f"{names[group]}__key")) if group in names else item
            for group, item in groups.items()
        }
        inner = self._grouped_text(keyed, partials, keyed_name(view))
        values = {
            group: f"(SELECT value FROM {lookup_name(view, column)} WHERE id = {group}) AS {group}"
            for group, column in names.items()
        }
        return f"SELECT {', '.join(values.get(name, name) for name in (*groups, *partials))} FROM ({inner})"

    def _group(self, item: exp.Expr) -> exp.Expr:
        grouped = self._scope.grouped_expression(item)
        if any(is_aggregate(node) for node in grouped.walk()) or isinstance(grouped, (exp.Star, exp.Literal)):
            raise Unfaithful("GROUP BY an aggregate")
        self._canonical(grouped)
        return grouped

    def _canonical(self, node: exp.Expr) -> str:
        """Return a text that is equal for equal expressions: columns with their source, in lower case."""
        return qualified_text_of(node, self._owner)

    def _owner(self, column: exp.Column) -> str:
        """Return the name of the source of a column."""
        owners = self._inputs.get(column.name.lower(), ())
        table = column.table.lower() or (owners[0] if len(owners) == 1 else "")
        if not owners or (not table and len(owners) > 1):
            raise Unfaithful(f"the column {column.name}")
        return table

    def _rewrite(self, node: exp.Expr) -> str:
        """Return an expression over groups and aggregates as text over the gathered columns."""
        return text_of(self._over_gathered(node))

    def _over_gathered(self, node: exp.Expr) -> exp.Expr:
        filtered = node.this if isinstance(node, exp.Filter) else node
        if is_aggregate(filtered):
            return exp.Column(this=exp.Identifier(this=self._aggregate(node)))
        if grouped := self._grouped(node):
            return exp.column(grouped)
        if isinstance(node, exp.Column):
            index = output_index(node, self._tree)
            if index is None or node.name.lower() in self._inputs:
                raise Unfaithful(f"the column {node.name} outside GROUP BY")
            return exp.Paren(this=self._over_gathered(self._tree.expressions[index].this))
        if isinstance(node, exp.Star):
            raise Unfaithful("* beside aggregates")
        return self._window(node) if isinstance(node, exp.Window) else self._copy(node, skip=())

    def _copy(self, node: exp.Expr, skip: tuple[str, ...]) -> exp.Expr:
        copied = node.copy()
        for key, value in node.args.items():
            if key in skip:
                continue
            if isinstance(value, exp.Expr) and not isinstance(value, (exp.Identifier, exp.DataType, exp.Var)):
                copied.set(key, self._over_gathered(value))
            elif isinstance(value, list):
                copied.set(key, [self._over_gathered(v) if isinstance(v, exp.Expr) else v for v in value])
        return copied

    def _window(self, node: exp.Window) -> exp.Expr:
        """Rewrite a window over groups: its function stays, the arguments become gathered columns."""
        if isinstance(node.this, exp.Filter):
            raise Unfaithful("a window with FILTER over groups")
        copied = self._copy(node, skip=("this",))
        copied.set("this", self._copy(node.this, skip=()))
        return copied

    def _grouped(self, node: exp.Expr) -> str | None:
        if isinstance(node, (exp.Literal, exp.Null, exp.Placeholder, exp.Star)):
            return None
        try:
            return self._group_columns.get(self._canonical(node))
        except Unfaithful:
            return None

    def _aggregate(self, node: exp.Expr) -> str:
        key = self._canonical_aggregate(node)
        if key not in self._merged:
            self._merged[key] = self._merge(node)
        return self._merged[key]

    def _canonical_aggregate(self, node: exp.Expr) -> str:
        return self._canonical(node) if node.find(exp.Column) else text_of(node)

    def _merge(self, node: exp.Expr) -> str:
        """Add the partial values of an aggregate; return the expression that merges them."""
        call = node.this if isinstance(node, exp.Filter) else node
        if distinct := call.find(exp.Distinct):
            return self._merge_distinct(node, distinct)
        if any(is_aggregate(inner) for inner in call.walk() if inner is not call):
            raise Unfaithful("an aggregate of an aggregate")
        if isinstance(call, exp.Avg):
            total = self._partial(node, self._total(node, call.this))
            count = self._partial(node, exp.Count(this=call.this.copy()))
            return f"(TOTAL({total}) / NULLIF(SUM({count}), 0))"
        if isinstance(call, exp.Count):
            return f"COALESCE(SUM({self._partial(node, call.copy())}), 0)"
        return f"{_merge_name(call)}({self._partial(node, call.copy())})"

    def _merge_distinct(self, node: exp.Expr, distinct: exp.Distinct) -> str:
        """Merge count(DISTINCT x): ranks group by x too, so that every value of x is gathered."""
        if not isinstance(node, exp.Count) or node.this is not distinct or len(distinct.expressions) != 1:
            raise Unfaithful("an aggregate of DISTINCT values")
        value = distinct.expressions[0]
        if self._distinct is not None and self._canonical(value) != self._canonical(self._distinct):
            raise Unfaithful("aggregates of several DISTINCT values")
        self._distinct = value
        return "COUNT(DISTINCT d0)"

    def _total(self, node: exp.Expr, value: exp.Expr) -> exp.Expr:
        """Return the dividend of an average: the sum if the statement has one, else a total, which can't overflow."""
        if self._canonical_aggregate(_filtered_like(node, exp.Sum(this=value.copy()))) in self._sums:
            return exp.Sum(this=value.copy())
        return exp.Anonymous(this="TOTAL", expressions=[value.copy()])

    @cached_property
    def _sums(self) -> frozenset[str]:
        """The sums of columns anywhere in the statement, as `_canonical` prints them."""
        sums = (s.parent if isinstance(s.parent, exp.Filter) else s for s in self._tree.find_all(exp.Sum))
        return frozenset(self._canonical(each) for each in sums if each.find(exp.Column))

    def _partial(self, node: exp.Expr, call: exp.Expr) -> str:
        return f"p{self._partials.setdefault(_filtered_like(node, call), len(self._partials))}"

    def _order(self, term: exp.Ordered) -> str:
        expression, tail = split_collation(term)
        index = output_index(expression, self._tree)
        return f"{self._rewrite(expression) if index is None else index + 1}{tail}"


def _filtered_like(node: exp.Expr, call: exp.Expr) -> exp.Expr:
    """Return `call` with the FILTER of `node`, if it has one."""
    return exp.Filter(this=call, expression=node.expression.copy()) if isinstance(node, exp.Filter) else call


def _merge_name(partial: exp.Expr) -> str:
    """Return the name of the aggregate that combines partial values of ranks: counts are summed."""
    call = partial.this if isinstance(partial, exp.Filter) else partial
    if isinstance(call, exp.Anonymous):
        return "TOTAL"
    return "MIN" if isinstance(call, exp.Min) else "MAX" if isinstance(call, exp.Max) else "SUM"
