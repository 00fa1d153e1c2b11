"""Owns taking a SELECT apart: which parts every rank can answer alone, and what must be gathered first.

Works from the inside out. What a FROM names is either sharded (every rank has its rows, and the whole is their
union) or gathered (one small table, a copy of which every rank can join). Raises `Unfaithful` on anything else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import sqlglot
from sqlglot import exp

from rocpd.federate import vocabulary
from rocpd.federate.gather import Sorting, sorted_select
from rocpd.federate.partial import partial_select
from rocpd.federate.sqltext import Unfaithful, text_of
from rocpd.federate.steps import Combine, Scatter
from rocpd.schema.load import VIEWS, view
from rocpd.schema.render import aggregate_text

_LOCAL_KEYS = ("guid", "rank")


class Catalogue(Protocol):
    """What lowering needs to know of the job: the columns of relations and statements."""

    relations: tuple[str, ...]

    def columns(self, sql: str) -> tuple[str, ...]:
        """Give the result columns of a statement."""

    def add(self, table: str, columns: Sequence[str]) -> None:
        """Make a gathered table known."""


@dataclass(frozen=True)
class Sharded:
    """A SELECT whose answer is the union of the ranks' answers; `reads` are gathered tables that it joins."""

    tree: exp.Select
    reads: frozenset[str]


@dataclass(frozen=True)
class Gathered:
    """A table that a step makes."""

    table: str


Lowered: TypeAlias = Sharded | Gathered


@dataclass(frozen=True)
class Source:
    """One thing that a FROM names: under which alias, with which columns, sharded or not."""

    alias: str
    columns: frozenset[str]
    sharded: bool


class Lowering:
    """Collects the steps of one statement."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.steps: list[Scatter | Combine] = []
        self._catalogue = catalogue
        self._views: dict[str, Lowered] = {}

    def lower(self, tree: exp.Select, around: Mapping[str, Lowered]) -> Lowered:
        """Take one SELECT apart.

        Args:
            tree: the SELECT; it is not changed.
            around: CTEs that it can name.

        Raises:
            Unfaithful: it can't be taken apart; the text says why.
        """
        tree = tree.copy()
        known = self._ctes(tree, around)
        reads: set[str] = set()
        sources = [self._source(node, known, reads) for node in _from_nodes(tree)]
        if not any(source.sharded for source in sources):
            return self._combine_all(tree, known)
        vocabulary.check(tree)
        _check_joins(tree, sources)
        sorting = Sorting.take(tree)
        if vocabulary.is_aggregated(tree) and not _groups_stay_in_ranks(tree, sources):
            return self._gather(partial_select(tree, sorting, self._input_columns(sources)), reads)
        if vocabulary.has_window(tree):
            raise Unfaithful("a window over all ranks")
        if not sorting:
            return Sharded(tree, frozenset(reads))
        columns = self._catalogue.columns(text_of(tree))
        return self._gather(sorted_select(tree, sorting, columns, self._input_columns(sources)), reads)

    def _gather(self, pair: tuple[Scatter, str], reads: set[str]) -> Gathered:
        scatter, select = pair
        name = self._name()
        self._catalogue.add(name, scatter.columns)
        self.steps.append(Scatter(name, scatter.columns, scatter.select, tuple(sorted(reads))))
        return self._combine(select.replace("{{gathered}}", name))

    def _combine(self, select: str) -> Gathered:
        columns = self._catalogue.columns(select)
        name = self._name()
        if len({column.lower() for column in columns}) == len(columns):
            self._catalogue.add(name, columns)
        self.steps.append(Combine(name, columns, select))
        return Gathered(name)

    def _combine_all(self, tree: exp.Select, known: Mapping[str, Lowered]) -> Gathered:
        """Everything that the SELECT names is gathered: it runs as it is, over the gathered tables."""
        vocabulary.check_functions(tree)
        for node in list(tree.find_all(exp.Table)):
            name = node.name.lower()
            if name in self._gathered_names():
                continue
            lowered = known.get(name) or self._view(name)
            if not isinstance(lowered, Gathered):
                raise Unfaithful(f"{node.name} inside an expression")
            node.replace(_table(lowered.table, node.alias or node.name))
        return self._combine(text_of(tree))

    def _gathered_names(self) -> set[str]:
        return {step.table for step in self.steps}

    def _name(self) -> str:
        return f"gathered_{len(self.steps)}"

    def _ctes(self, tree: exp.Select, around: Mapping[str, Lowered]) -> dict[str, Lowered]:
        known = dict(around)
        clause = tree.args.get("with_")
        if clause is None:
            return known
        if clause.args.get("recursive"):
            raise Unfaithful("a recursive WITH")
        for cte in clause.expressions:
            if (
                cte.args["alias"].args.get("columns")
                or not isinstance(cte.this, exp.Select)
                or set(_given(cte)) - {"this", "alias"}
            ):
                raise Unfaithful("a WITH that is more than name AS (SELECT …)")
            known[cte.alias.lower()] = self.lower(cte.this, known)
        tree.set("with_", None)
        return known

    def _source(self, node: exp.Expr, known: Mapping[str, Lowered], reads: set[str]) -> Source:
        """Put in the place of `node` what every rank or the gathering database can select from."""
        if isinstance(node, exp.Subquery) and not set(_given(node)) - {"this", "alias"}:
            alias, lowered = node.alias, self._query(node.this, known)
        elif (
            isinstance(node, exp.Table)
            and isinstance(node.this, exp.Identifier)
            and not set(_given(node)) - {"this", "alias"}
        ):
            name = node.name.lower()
            alias = node.alias or node.name
            if name not in known and name in self._catalogue.relations and not _is_aggregate(name):
                return Source(alias.lower(), self._columns_of(f'SELECT * FROM "{name}"'), sharded=True)
            found = known.get(name) or self._view(name)
            if found is None:
                raise Unfaithful(f"{node.name} is no table or view of the job")
            lowered = found
        else:
            raise Unfaithful("a FROM with more than tables and subqueries")
        if node.args.get("alias") and node.args["alias"].args.get("columns"):
            raise Unfaithful("an alias with columns")
        if isinstance(lowered, Gathered):
            reads.add(lowered.table)
            node.replace(_table(lowered.table, alias))
            return Source(alias.lower(), self._columns_of(f'SELECT * FROM "{lowered.table}"'), sharded=False)
        reads |= lowered.reads
        identifier = exp.TableAlias(this=exp.to_identifier(alias, quoted=True)) if alias else None
        node.replace(exp.Subquery(this=lowered.tree.copy(), alias=identifier))
        return Source(alias.lower(), self._columns_of(text_of(lowered.tree)), sharded=True)

    def _query(self, node: exp.Expr, known: Mapping[str, Lowered]) -> Lowered:
        """Take a subquery apart: a SELECT, or a UNION ALL of sharded ones."""
        if isinstance(node, exp.Select):
            return self.lower(node, known)
        if not isinstance(node, exp.Union) or set(_given(node)) - {"this", "expression"}:
            raise Unfaithful("a compound that is more than UNION ALL")
        sides = [self._query(side, known) for side in (node.this, node.expression)]
        reads: set[str] = set()
        for side in sides:
            if not isinstance(side, Sharded):
                raise Unfaithful("a UNION ALL of what is gathered")
            reads |= side.reads
        both = exp.Union(this=sides[0].tree, expression=sides[1].tree, distinct=False)  # type: ignore[union-attr]
        return Sharded(exp.Select(expressions=[exp.Star()]).from_(exp.Subquery(this=both)), frozenset(reads))

    def _view(self, name: str) -> Lowered | None:
        """Take a view apart that is written over other views, such as top_kernels."""
        if name not in VIEWS or not _is_aggregate(name):
            return None
        if name not in self._views:
            tree = sqlglot.parse_one(aggregate_text(name), read="sqlite")
            if not isinstance(tree, exp.Select):
                raise Unfaithful(f"the view {name}")
            self._views[name] = self.lower(tree, {})
        return self._views[name]

    def _columns_of(self, sql: str) -> frozenset[str]:
        return frozenset(column.lower() for column in self._catalogue.columns(sql))

    @staticmethod
    def _input_columns(sources: Sequence[Source]) -> dict[str, tuple[str, ...]]:
        """Column name -> aliases of the sources that have it."""
        found: dict[str, tuple[str, ...]] = {}
        for source in sources:
            for column in source.columns:
                found[column] = (*found.get(column, ()), source.alias)
        return found


def _is_aggregate(name: str) -> bool:
    return name in VIEWS and not view(name).is_rows


def _table(name: str, alias: str) -> exp.Table:
    return exp.Table(
        this=exp.to_identifier(name),
        alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True)) if alias else None,
    )


def _given(node: exp.Expr) -> Iterator[str]:
    return (key for key, value in node.args.items() if value)


def _from_nodes(tree: exp.Select) -> list[exp.Expr]:
    start = tree.args.get("from_")
    if start is None:
        raise Unfaithful("no FROM")
    joins = tree.args.get("joins") or []
    return [start.this, *(join.this for join in joins)]


def _check_joins(tree: exp.Select, sources: Sequence[Source]) -> None:
    """Sharded things join only inside a rank, gathered ones may be joined everywhere but not kept without a partner."""
    joins = tree.args.get("joins") or []
    linked = {sources[0].alias} if sources[0].sharded else set()
    where = tree.args.get("where")
    for join, source in zip(joins, sources[1:], strict=True):
        side = (join.args.get("side") or "").upper()
        if (
            side not in ("", "LEFT")
            or join.args.get("method")
            or (join.args.get("kind") or "").upper() not in ("", "CROSS")
        ):
            raise Unfaithful(f"a {side or join.args.get('method') or join.args.get('kind')} join")
        if not source.sharded:
            continue
        if side == "LEFT" and not linked:
            raise Unfaithful("a LEFT JOIN of ranks to what is gathered")
        conditions = list(_conjuncts(join.args.get("on")))
        if not side and where is not None:
            conditions += _conjuncts(where.this)
        using = {column.name.lower() for column in join.args.get("using") or []}
        if linked and not using & set(_LOCAL_KEYS) and not _is_local(conditions, source.alias, linked):
            raise Unfaithful("a join across ranks: no guid = guid")
        linked.add(source.alias)


def _conjuncts(condition: exp.Expr | None) -> Iterator[exp.Expr]:
    if isinstance(condition, exp.And):
        yield from _conjuncts(condition.left)
        yield from _conjuncts(condition.right)
    elif isinstance(condition, exp.Paren):
        yield from _conjuncts(condition.this)
    elif condition is not None:
        yield condition


def _is_local(conditions: Sequence[exp.Expr], alias: str, linked: set[str]) -> bool:
    for condition in conditions:
        if (
            isinstance(condition, exp.EQ)
            and isinstance(condition.left, exp.Column)
            and isinstance(condition.right, exp.Column)
        ):
            sides = {(c.name.lower(), c.table.lower()) for c in (condition.left, condition.right)}
            names, tables = {name for name, _ in sides}, {table for _, table in sides}
            if (
                len(names) == 1
                and names <= set(_LOCAL_KEYS)
                and alias in tables
                and tables - {alias} <= linked
                and len(tables) == 2
            ):
                return True
    return False


def _groups_stay_in_ranks(tree: exp.Select, sources: Sequence[Source]) -> bool:
    """Whether GROUP BY names the guid or rank of something sharded: then no group has rows of two ranks."""
    group = tree.args.get("group")
    sharded = {source.alias for source in sources if source.sharded and set(_LOCAL_KEYS) & source.columns}
    having = [source.alias for source in sources if set(_LOCAL_KEYS) & source.columns]
    for item in group.expressions if group else []:
        if isinstance(item, exp.Column) and item.name.lower() in _LOCAL_KEYS:
            table = item.table.lower()
            if table in sharded or (not table and sharded and set(having) == sharded):
                return True
    return False
