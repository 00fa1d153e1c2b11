"""What names mean in one SELECT: which source a column comes from, and whether it is a key of ranks.

A key is a column that has one value in a rank and another in every other rank: `guid` and `rank`, under whatever name
a subquery gives them. A column that merely has such a name is not a key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from sqlglot import exp

from rocpd.base.frozen import frozen
from rocpd.federate.plan.sqltext import Unfaithful

KEYS = ("guid", "rank")


@frozen
class Source:
    """A table, view or subquery in a FROM.

    Args:
        alias: its name in the SELECT, in lower case.
        columns: names in lower case.
        sharded: every rank has its own rows; else it is gathered.
        keys: column -> which of `KEYS` it is.
        optional: on the right of a LEFT JOIN: its columns may be NULL.
    """

    alias: str
    columns: frozenset[str]
    sharded: bool
    keys: Mapping[str, str] = field(default_factory=dict)
    optional: bool = False


class Scope:
    """The sources of one SELECT.

    Attributes:
        inputs: column name -> aliases of the sources that have it.
        aliases: name of a result column -> its expression.
    """

    def __init__(self, tree: exp.Select, sources: Sequence[Source]) -> None:
        self.tree = tree
        self.sources = sources
        self._by_alias = {source.alias: source for source in sources}
        joins = tree.args.get("joins") or []
        shared = [{column.name.lower() for column in join.args.get("using") or []} for join in joins]
        self.inputs: dict[str, tuple[str, ...]] = {}
        for source, using in zip(sources, [set[str](), *shared], strict=True):
            for column in source.columns:
                if column not in using:
                    self.inputs[column] = (*self.inputs.get(column, ()), source.alias)
        self.aliases = {item.alias.lower(): item.this for item in tree.expressions if isinstance(item, exp.Alias)}

    def source(self, column: exp.Column) -> Source | None:
        """Return the source that a column comes from; None if there is none, or several."""
        name, table = column.name.lower(), column.table.lower()
        owners = self.inputs.get(name, ())
        source = self._by_alias.get(table or (owners[0] if len(owners) == 1 else ""))
        return source if source and name in source.columns else None

    def check_names(self, nodes: Iterator[exp.Expr], untyped: frozenset[str]) -> None:
        """Raise `Unfaithful` unless all columns are known (SQLite takes an unknown "name" for text) and comparable.

        `untyped`: columns beyond the contract; their types are lost when they are gathered.
        """
        for column in (column for node in nodes for column in node.find_all(exp.Column)):
            name = column.name.lower()
            if isinstance(column.this, exp.Star) or (not column.table and name in self.aliases):
                continue
            source = self.source(column)
            if source is None:
                raise Unfaithful(f"no column {column.name}, or several")
            if name in untyped and not source.sharded:
                raise Unfaithful(f"{column.name}, a column outside the contract, is compared after gathering")

    def key(self, node: exp.Expr | None) -> tuple[str, str] | None:
        """Return (alias of the source, key) if a node is a key."""
        if not isinstance(node, exp.Column):
            return None
        source = self.source(node)
        kind = source.keys.get(node.name.lower()) if source else None
        return (source.alias, kind) if source and kind else None

    def strong_key(self, node: exp.Expr | None) -> str | None:
        """Return which key a node is, if it cannot be NULL."""
        alias, key = self.key(node) or ("", None)
        return key if key and not self._by_alias[alias].optional else None

    def groups_stay_in_ranks(self) -> bool:
        """Whether GROUP BY names a key: then no group has rows of two ranks."""
        return any(map(self.strong_key, self.groups()))

    def groups(self) -> list[exp.Expr]:
        """Return the expressions of GROUP BY."""
        group = self.tree.args.get("group")
        return [self.grouped_expression(item) for item in (group.expressions if group else ())]

    def windows_stay_in_ranks(self, windows: Sequence[exp.Window]) -> bool:
        """Whether all windows are partitioned by a key."""
        return all(any(map(self.strong_key, window.args.get("partition_by") or ())) for window in windows)

    def output_keys(self, columns: Sequence[str]) -> dict[str, str]:
        """Return result column -> key, for those that are one."""
        names = [column.lower() for column in columns]
        explicit: dict[str, exp.Expr] = {}
        for item in self.tree.expressions:
            explicit.setdefault(item.alias_or_name.lower(), item.unalias())
        unique = [name for name in names if names.count(name) == 1]
        keys = {name: self.strong_key(explicit.get(name, exp.column(name))) for name in unique}
        return {name: key for name, key in keys.items() if key}

    def grouped_expression(self, item: exp.Expr) -> exp.Expr:
        """Return the expression of a GROUP BY term: a column of the FROM, else a result column by number or alias."""
        if isinstance(item, exp.Column) and item.name.lower() in self.inputs:
            return item
        index = output_index(item, self.tree)
        if index is None or (isinstance(item, exp.Literal) and any(each.is_star for each in self.tree.expressions)):
            return item
        if not 0 <= index < len(self.tree.expressions):
            raise Unfaithful("GROUP BY a column that does not exist")
        expression: exp.Expr = self.tree.expressions[index].unalias()
        return expression


def output_index(expression: exp.Expr, tree: exp.Select) -> int | None:
    """Return which result column an ORDER BY or GROUP BY term means, by number or by alias; None: none of them."""
    if isinstance(expression, exp.Literal) and not expression.is_string:
        return int(expression.name) - 1 if expression.name.isdigit() else None
    if isinstance(expression, exp.Column) and not expression.table:
        for kind in (exp.Alias, exp.Column):
            for index, item in enumerate(tree.expressions):
                if isinstance(item, kind) and item.alias_or_name.lower() == expression.name.lower():
                    return index
    return None
