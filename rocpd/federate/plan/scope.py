"""What names mean in one SELECT: which source a column comes from, and whether it is a key of ranks.

A key is a column that has one value in a rank and another in every other rank: `guid` and `rank`, under whatever name
a subquery gives them. A column that merely has such a name is not a key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from rocpd.federate.plan.sqltext import Unfaithful

KEYS = ("guid", "rank")


@dataclass(frozen=True)
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
    """The sources of one SELECT."""

    def __init__(self, tree: exp.Select, sources: Sequence[Source]) -> None:
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

    def groups_stay_in_ranks(self, tree: exp.Select) -> bool:
        """Whether GROUP BY names a key: then no group has rows of two ranks."""
        group = tree.args.get("group")
        return any(self.strong_key(self._resolved(tree, item)) for item in (group.expressions if group else []))

    def windows_stay_in_ranks(self, windows: Sequence[exp.Window]) -> bool:
        """Whether all windows are partitioned by a key."""
        return all(any(map(self.strong_key, window.args.get("partition_by") or ())) for window in windows)

    def output_keys(self, tree: exp.Select, columns: Sequence[str]) -> dict[str, str]:
        """Return result column -> key, for those that are one."""
        names = [column.lower() for column in columns]
        explicit: dict[str, exp.Expr] = {}
        for item in tree.expressions:
            explicit.setdefault(item.alias_or_name.lower(), item.this if isinstance(item, exp.Alias) else item)
        unique = [name for name in names if names.count(name) == 1]
        keys = {name: self.strong_key(explicit.get(name, exp.column(name))) for name in unique}
        return {name: key for name, key in keys.items() if key}

    def _resolved(self, tree: exp.Select, item: exp.Expr) -> exp.Expr:
        """Return the expression of a GROUP BY term: a column of the FROM, else a result column by number or alias."""
        if isinstance(item, exp.Literal) and item.name.isdigit() and 0 < int(item.name) <= len(tree.expressions):
            output = tree.expressions[int(item.name) - 1]
            starred = any(node.is_star for node in tree.expressions)
            numbered: exp.Expr = output.this if isinstance(output, exp.Alias) else output
            return item if starred else numbered
        if isinstance(item, exp.Column) and not item.table and item.name.lower() not in self.inputs:
            aliased: exp.Expr = self.aliases.get(item.name.lower(), item)
            return aliased
        return item
