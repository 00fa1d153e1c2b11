"""Owns aggregates over all ranks: every rank gives partial values by group, one SELECT over them adds up.

count, sum, total, min, max and avg can be split; an average becomes a total and a count. Everything else raises.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from rocpd.federate.plan.gather import Sorting, output_index, split_collation
from rocpd.federate.plan.sqltext import Unfaithful, text_of
from rocpd.federate.plan.steps import Scatter
from rocpd.federate.plan.vocabulary import is_aggregate
from rocpd.schema.keyed import keyed_name, lookup_name, lookups
from rocpd.schema.load import VIEWS
from rocpd.schema.quote import quote_name


def partial_select(tree: exp.Select, sorting: Sorting, inputs: Mapping[str, tuple[str, ...]]) -> tuple[Scatter, str]:
    """Give what every rank runs, and the SELECT over the gathered partial values.

    Args:
        tree: an aggregated SELECT without the clauses of `sorting`.
        sorting: those clauses.
        inputs: column name -> aliases of the sources that have it.

    Raises:
        Unfaithful: an aggregate that can't be split, a bare column, an expression that can't be rewritten.
    """
    return _Split(tree, inputs).pair(sorting)


class _Split:
    def __init__(self, tree: exp.Select, inputs: Mapping[str, tuple[str, ...]]) -> None:
        self._tree = tree
        self._inputs = inputs
        self._partials: list[exp.Expr] = []
        self._merged: dict[str, str] = {}
        self._distinct: exp.Expr | None = None
        group = tree.args.get("group")
        if group and {key for key, value in group.args.items() if value} - {"expressions"}:
            raise Unfaithful("GROUP BY with more than expressions")
        self._groups = [self._group(item) for item in (group.expressions if group else [])]
        self._group_columns = {self._canonical(item): f"g{i}" for i, item in enumerate(self._groups)}

    def pair(self, sorting: Sorting) -> tuple[Scatter, str]:
        items = []
        for item in self._tree.expressions:
            name = item.alias_or_name if isinstance(item, (exp.Alias, exp.Column)) else text_of(item)
            body = item.this if isinstance(item, exp.Alias) else item
            items.append(f"{self._rewrite(body)} AS {quote_name(name)}")
        having = self._tree.args.get("having")
        condition = f" HAVING {self._rewrite(having.this)}" if having else ""
        order = ", ".join(self._order(term) for term in sorting.order)
        groups = ", ".join(self._group_columns.values())
        select = (
            f"SELECT {'DISTINCT ' if sorting.distinct else ''}{', '.join(items)} FROM {{{{gathered}}}}"
            + (f" GROUP BY {', '.join(f'g{i}' for i in range(len(self._groups)))}" if groups else "")
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
        looked_up = self._looked_up(groups)
        text = self._with_names(groups, partials, looked_up) if looked_up else self._grouped_text(groups, partials)
        collated = any(partial.find(exp.Collate) for partial in self._partials)
        return Scatter("", (*groups, *partials), (), text, few=True, merges=() if collated else merges)

    def _grouped_text(self, groups: Mapping[str, exp.Expr], partials: Mapping[str, exp.Expr], view: str = "") -> str:
        scattered = self._tree.copy()
        for key in ("having", "group"):
            scattered.set(key, None)
        scattered.set("expressions", [exp.alias_(item.copy(), n) for n, item in {**groups, **partials}.items()])
        if view:
            table = scattered.args["from_"].this
            alias = exp.TableAlias(this=exp.to_identifier(table.alias or table.name, quoted=True))
            table.replace(exp.Table(this=exp.to_identifier(view), alias=alias))
        text = text_of(scattered)
        return text + (f" GROUP BY {', '.join(str(i + 1) for i in range(len(groups)))}" if groups else "")

    def _looked_up(self, groups: Mapping[str, exp.Expr]) -> dict[str, str]:
        """Groups that are names found by an id -> the column: a rank groups by the id, and looks up the few names."""
        source = self._tree.args["from_"].this
        if self._tree.args.get("joins") or not isinstance(source, exp.Table) or source.name.lower() not in VIEWS:
            return {}
        known = lookups(source.name.lower())
        columns = {name: item.name.lower() for name, item in groups.items() if isinstance(item, exp.Column)}
        return {name: column for name, column in columns.items() if column in known}

    def _with_names(
        self, groups: Mapping[str, exp.Expr], partials: Mapping[str, exp.Expr], looked_up: Mapping[str, str]
    ) -> str:
        view = self._tree.args["from_"].this.name.lower()
        keyed = {
            name: exp.column(exp.to_identifier(f"{looked_up[name]}__key")) if name in looked_up else item
            for name, item in groups.items()
        }
        inner = self._grouped_text(keyed, partials, keyed_name(view))
        values = {
            name: f"(SELECT value FROM {lookup_name(view, column)} WHERE id = {name}) AS {name}"
            for name, column in looked_up.items()
        }
        return f"SELECT {', '.join(values.get(name, name) for name in (*groups, *partials))} FROM ({inner})"

    def _group(self, item: exp.Expr) -> exp.Expr:
        """What a GROUP BY term stands for: a result column by number or alias, else itself."""
        if isinstance(item, exp.Column) and item.name.lower() in self._inputs:
            found: exp.Expr = item
        else:
            index = output_index(item, self._tree)
            if index is None:
                found = item
            elif 0 <= index < len(self._tree.expressions):
                output = self._tree.expressions[index]
                found = output.this if isinstance(output, exp.Alias) else output
            else:
                raise Unfaithful("GROUP BY a column that is not there")
        if any(is_aggregate(node) for node in found.walk()) or isinstance(found, (exp.Star, exp.Literal)):
            raise Unfaithful("GROUP BY an aggregate")
        self._canonical(found)
        return found

    def _canonical(self, node: exp.Expr) -> str:
        """Text that is equal for equal expressions: columns with their source and in lower case."""
        copied = node.copy()
        for column in [copied] if isinstance(copied, exp.Column) else list(copied.find_all(exp.Column)):
            name = column.name.lower()
            owners = self._inputs.get(name, ())
            table = column.table.lower() or (owners[0] if len(owners) == 1 else "")
            if not owners or (not table and len(owners) > 1):
                raise Unfaithful(f"the column {column.name}")
            plain = exp.column(
                exp.to_identifier(name, quoted=True), table=exp.to_identifier(table, quoted=True) if table else None
            )
            if column is copied:
                copied = plain
            else:
                column.replace(plain)
        return text_of(copied)

    def _rewrite(self, node: exp.Expr) -> str:
        """Give an expression over groups and aggregates as text over the gathered columns."""
        return text_of(self._over_gathered(node))

    def _over_gathered(self, node: exp.Expr) -> exp.Expr:
        grouped = self._grouped(node)
        if grouped:
            return exp.column(grouped)
        filtered = node.this if isinstance(node, exp.Filter) else node
        if is_aggregate(filtered):
            return exp.Column(this=exp.Identifier(this=self._aggregate(node)))
        if isinstance(node, exp.Column):
            index = output_index(node, self._tree)
            if index is None or node.name.lower() in self._inputs:
                raise Unfaithful(f"the column {node.name} outside of GROUP BY")
            aliased = self._tree.expressions[index].this
            return exp.Paren(this=self._over_gathered(aliased))
        if isinstance(node, exp.Star):
            raise Unfaithful("* beside aggregates")
        if isinstance(node, exp.Window):
            return self._window(node)
        return self._copy(node, skip=())

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
        """A window over groups: its function stays, what it is called with is rewritten."""
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
        """Note the partial values of an aggregate and give the text that merges them."""
        call = node.this if isinstance(node, exp.Filter) else node
        distinct = call.find(exp.Distinct)
        if distinct:
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
        """count(DISTINCT x): ranks group by x too, so that every value of x is gathered."""
        if not isinstance(node, exp.Count) or node.this is not distinct or len(distinct.expressions) != 1:
            raise Unfaithful("an aggregate of DISTINCT values")
        value = distinct.expressions[0]
        if self._distinct is not None and self._canonical(value) != self._canonical(self._distinct):
            raise Unfaithful("aggregates of several DISTINCT values")
        self._distinct = value
        return "COUNT(DISTINCT d0)"

    def _total(self, node: exp.Expr, value: exp.Expr) -> exp.Expr:
        """What an average divides: the sum if the statement wants that too, else a total, which can't overflow."""
        wanted = self._canonical_aggregate(_as(node, exp.Sum(this=value.copy())))
        whole = [s.parent if isinstance(s.parent, exp.Filter) else s for s in self._tree.find_all(exp.Sum)]
        if any(self._canonical_aggregate(found) == wanted for found in whole if found.find(exp.Column)):
            return exp.Sum(this=value.copy())
        return exp.Anonymous(this="TOTAL", expressions=[value.copy()])

    def _partial(self, node: exp.Expr, call: exp.Expr) -> str:
        share = _as(node, call)
        if share not in self._partials:
            self._partials.append(share)
        return f"p{self._partials.index(share)}"

    def _order(self, term: exp.Ordered) -> str:
        expression, tail = split_collation(term)
        if isinstance(expression, exp.Literal) and not expression.is_string:
            return f"{text_of(expression)}{tail}"
        index = output_index(expression, self._tree)
        if index is not None:
            return f"{index + 1}{tail}"
        return f"{self._rewrite(expression)}{tail}"


def _as(node: exp.Expr, call: exp.Expr) -> exp.Expr:
    """Give `call` with the FILTER of `node`, if it has one."""
    return exp.Filter(this=call, expression=node.expression.copy()) if isinstance(node, exp.Filter) else call


def _merge_name(partial: exp.Expr) -> str:
    """Give the aggregate that adds up an aggregate of ranks: counts are summed."""
    call = partial.this if isinstance(partial, exp.Filter) else partial
    if isinstance(call, exp.Anonymous):
        return "TOTAL"
    return "MIN" if isinstance(call, exp.Min) else "MAX" if isinstance(call, exp.Max) else "SUM"
