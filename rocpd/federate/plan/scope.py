"""Owns what names mean in one SELECT: which source a column comes from, and whether it tells ranks apart.

A key is a column that has one value in a rank and another in every other rank: `guid` and `rank`, or what a subquery
calls them. Goes by names only, never by a column that happens to be called like one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from rocpd.federate.plan.sqltext import Unfaithful

KEYS = ("guid", "rank")


@dataclass(frozen=True)
class Source:
    """One thing that a FROM names.

    Args:
        alias: its name in the SELECT, in lower case.
        columns: names in lower case.
        sharded: every rank has its rows; else it is gathered.
        keys: column -> which of `KEYS` it is.
        optional: what a LEFT JOIN adds: its columns may be NULL.
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
        """The source that a column comes from."""
        name, table = column.name.lower(), column.table.lower()
        owners = self.inputs.get(name, ())
        found = self._by_alias.get(table or (owners[0] if len(owners) == 1 else ""))
        return found if found and name in found.columns else None

    def check_names(self, nodes: Iterator[exp.Expr], odd: frozenset[str]) -> None:
        """Raise `Unfaithful` unless all columns are known: SQLite takes an unknown "name" for text."""
        for column in (column for node in nodes for column in node.find_all(exp.Column)):
            name = column.name.lower()
            if isinstance(column.this, exp.Star) or (not column.table and name in self.aliases):
                continue
            source = self.source(column)
            if source is None:
                raise Unfaithful(f"no column {column.name}, or several")
            if name in odd and not source.sharded:
                raise Unfaithful(f"{column.name}, a column outside of the contract, compared after gathering")

    def key(self, node: exp.Expr | None) -> tuple[str, str] | None:
        """(alias of the source, key) when a node is a key."""
        if not isinstance(node, exp.Column):
            return None
        source = self.source(node)
        kind = source.keys.get(node.name.lower()) if source else None
        return (source.alias, kind) if source and kind else None

    def strong_key(self, node: exp.Expr | None) -> str | None:
        """Which key a node is, if it can't be NULL."""
        found = self.key(node)
        return found[1] if found and not self._by_alias[found[0]].optional else None

    def groups_stay_in_ranks(self, tree: exp.Select) -> bool:
        """Whether GROUP BY names a key: then no group has rows of two ranks."""
        group = tree.args.get("group")
        return any(self.strong_key(self._meant(tree, item)) for item in (group.expressions if group else []))

    def windows_stay_in_ranks(self, windows: Sequence[exp.Window]) -> bool:
        """Whether all windows are partitioned by a key."""
        return all(any(map(self.strong_key, window.args.get("partition_by") or ())) for window in windows)

    def output_keys(self, tree: exp.Select, columns: Sequence[str]) -> dict[str, str]:
        """Which columns of the result are keys."""
        names = [column.lower() for column in columns]
        explicit: dict[str, exp.Expr] = {}
        for item in tree.expressions:
            explicit.setdefault(item.alias_or_name.lower(), item.this if isinstance(item, exp.Alias) else item)
        found: dict[str, str] = {}
        for name in names:
            if names.count(name) == 1:
                key = self.strong_key(explicit.get(name, exp.column(name)))
                found |= {name: key} if key else {}
        return found

    def _meant(self, tree: exp.Select, item: exp.Expr) -> exp.Expr:
        """What a GROUP BY term stands for: a column of the FROM, else a result column by number or alias."""
        if isinstance(item, exp.Literal) and item.name.isdigit() and 0 < int(item.name) <= len(tree.expressions):
            output = tree.expressions[int(item.name) - 1]
            starred = any(node.is_star for node in tree.expressions)
            meant: exp.Expr = output.this if isinstance(output, exp.Alias) else output
            return item if starred else meant
        if isinstance(item, exp.Column) and not item.table and item.name.lower() not in self.inputs:
            aliased: exp.Expr = self.aliases.get(item.name.lower(), item)
            return aliased
        return item
