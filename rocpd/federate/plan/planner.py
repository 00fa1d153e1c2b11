"""Decides how a statement runs, and takes it apart: rows per rank, partial aggregates per rank, or attached as written.

Takes a SELECT apart only if every rank can answer its part alone and the parts add up to SQLite's own answer; when in
doubt (`Unfaithful`) the statement runs attached. Works from the inside out. A source in a FROM is either sharded (every
rank has its own rows, and the table is their union) or gathered (one small table, a copy of which every rank can join).
Runs statements only on a skeleton without rows.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections import UserDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from sqlglot import exp

from rocpd.base import frozen
from rocpd.base.sqlite import apsw
from rocpd.federate.plan.scatter import Sorting, partial_select, sorted_select
from rocpd.federate.plan.scope import KEYS, Scope, Source, check_functions, check_select, is_aggregated
from rocpd.federate.plan.sqltext import alias_of, name_parameters, parts_of, read_select, table_of, text_of
from rocpd.federate.plan.steps import Combine, Plan, Scatter, Step, Strategy, Unfaithful, create_table
from rocpd.federate.unify import Unifier
from rocpd.schema.calculated import bare
from rocpd.schema.load import TABLES, VIEWS, view
from rocpd.schema.quote import quote_name
from rocpd.schema.render import RankTables, aggregate_text, keyed_views, named
from rocpd.schema.versions import LATEST
from rocpd.schema.write import create_table_text, tables_of

_RESERVED = re.compile(r"\b(?:gathered_|keyed__|lookup__|rows_of_share|rocpd_p\d)", re.I)


def plan(sql: str, ranks: Sequence[RankTables], positional: int = 0, calculated: Iterable[str] = ()) -> Plan:
    """Decide how a statement runs.

    Args:
        sql: the statement as the user wrote it.
        ranks: the tables of each rank.
        positional: number of positional parameters.
        calculated: names of tables that no rank has.
    """
    try:
        if _RESERVED.search(sql):
            raise Unfaithful("a name that plans use for themselves")
        named_sql, parameters = name_parameters(sql)
        if parameters != positional:
            raise Unfaithful("parameters and values differ in number")
        tree = read_select(named_sql)
        skeleton = Skeleton(ranks)
        columns = skeleton.columns(sql, (0,) * positional)
        lowering = Lowering(skeleton)
        result = lowering.lower(tree, {})
    except Unfaithful as reason:
        return Plan(Strategy.ATTACHED, str(reason), sql)
    except (apsw.Error, RecursionError) as error:
        table = bare(str(error).removeprefix("no such table: ").lower())
        is_calculated = table in map(bare, calculated)
        why = f"{table} is calculated from all ranks together" if is_calculated else f"SQLite: {error}"
        return Plan(Strategy.ATTACHED, why, sql)
    if isinstance(result, Sharded):
        why, steps, final = "every rank returns its own rows", tuple(lowering.steps), text_of(result.tree)
        return Plan(Strategy.ROWS, why, named_sql, columns, steps, final, tuple(sorted(result.reads)))
    *first_steps, last = lowering.steps
    why = "every rank returns partial results, which are combined"
    return Plan(Strategy.AGGREGATES, why, named_sql, columns, tuple(first_steps), last.select)


@frozen
class Sharded:
    """A query whose answer is the union of the ranks' answers.

    `reads`: gathered tables that it joins; `keys`: column of the query that identifies a rank -> the key that it holds.
    """

    tree: exp.Select
    reads: frozenset[str]
    keys: Mapping[str, str]


Gathered: TypeAlias = str
"""Name of the table that a step makes."""

Lowered: TypeAlias = Sharded | Gathered


class Lowering:
    """Collects the steps of one statement; `skeleton` knows the columns of relations and statements."""

    def __init__(self, skeleton: Skeleton) -> None:
        self.steps: list[Step] = []
        self._skeleton = skeleton
        self._views: dict[str, Lowered] = {}
        self._relations = {relation.lower() for relation in skeleton.relations}
        self._untyped = frozenset(column.lower() for columns in skeleton.further.values() for column in columns)

    def lower(self, node: exp.Expr, ctes: Mapping[str, Lowered]) -> Lowered:
        """Take a query apart: a SELECT, or several of them with UNION ALL.

        Args:
            node: the query; it is not changed.
            ctes: name -> CTE that the query can name.

        Raises:
            Unfaithful: it cannot be taken apart; the text gives the reason.
        """
        if isinstance(node, exp.Select):
            return self._select(node.copy(), ctes)
        if not isinstance(node, exp.Union) or parts_of(node) - {"this", "expression"}:
            raise Unfaithful("a compound with more than UNION ALL")
        left, right = (self.lower(side, ctes) for side in (node.this, node.expression))
        if isinstance(left, Sharded) and isinstance(right, Sharded):
            return self._union(left, right)
        tables = (self._gather_rows(side) if isinstance(side, Sharded) else side for side in (left, right))
        return self._combine(" UNION ALL ".join(f'SELECT * FROM "{table}"' for table in tables))

    def _select(self, tree: exp.Select, outer_ctes: Mapping[str, Lowered]) -> Lowered:
        ctes = self._ctes(tree, outer_ctes)
        reads: set[str] = set()
        sources = self._sources(tree, ctes, reads)
        if not any(source.sharded for source in sources):
            return self._combine_all(tree, ctes)
        check_select(tree)
        scope = Scope(tree, sources)
        scope.check_names(self._untyped)
        _check_joins(scope)
        aggregated = is_aggregated(tree)
        local_windows = scope.windows_stay_in_ranks()
        local_groups = scope.groups_stay_in_ranks()
        sorting = Sorting.take(tree)
        if aggregated and not (local_groups and local_windows):
            self._refuse_untyped(tree)
            return self._gather(partial_select(scope, sorting), reads)
        if not local_windows:
            raise Unfaithful("a window over all ranks")
        columns = self._skeleton.columns(text_of(tree))
        if not sorting:
            return Sharded(tree, frozenset(reads), scope.output_keys(columns))
        return self._gather(sorted_select(scope, sorting, columns), reads)

    def _union(self, left: Sharded, right: Sharded) -> Sharded:
        names = [[c.lower() for c in self._skeleton.columns(text_of(side.tree))] for side in (left, right)]
        keys = {
            name: left.keys[name]
            for name, name_on_the_right in zip(*names, strict=False)
            if name in left.keys and left.keys[name] == right.keys.get(name_on_the_right)
        }
        union = exp.Union(this=left.tree, expression=right.tree, distinct=False)
        return Sharded(
            exp.Select(expressions=[exp.Star()]).from_(exp.Subquery(this=union)), left.reads | right.reads, keys
        )

    def _refuse_untyped(self, tree: exp.Expr) -> None:
        """Refuse columns beyond the contract: SQLite compares them by their type in the files, unknown to a plan."""
        for column in tree.find_all(exp.Column):
            if column.name.lower() in self._untyped:
                raise Unfaithful(f"{column.name}, a column outside the contract, is gathered")

    def _gather_rows(self, query: Sharded) -> str:
        """Add the step that gathers the rows of a query unchanged; return the name of its table."""
        select = text_of(query.tree)
        return self._scatter(Scatter("", self._skeleton.columns(select), (), select), query.reads)

    def _gather(self, pair: tuple[Scatter, str], reads: set[str]) -> Gathered:
        scatter, select = pair
        return self._combine(select.replace("{{gathered}}", self._scatter(scatter, reads)))

    def _scatter(self, scatter: Scatter, reads: Iterable[str]) -> str:
        name = self._next_name()
        types = self._skeleton.add(name, scatter.columns, scatter.select)
        self.steps.append(dataclasses.replace(scatter, table=name, types=types, reads=tuple(sorted(reads))))
        return name

    def _combine(self, select: str) -> Gathered:
        columns = self._skeleton.columns(select)
        name = self._next_name()
        # SQLite renames the second of two columns with one name in a subquery, so no statement may name either.
        if len({column.lower() for column in columns}) < len(columns):
            columns = tuple(f"column {i}" for i in range(len(columns)))
        self.steps.append(Combine(name, columns, self._skeleton.add(name, columns, select), select))
        return name

    def _combine_all(self, tree: exp.Select, ctes: Mapping[str, Lowered]) -> Gathered:
        """Add the step that runs a SELECT unchanged; all tables in it are gathered ones."""
        check_functions(tree)
        self._refuse_untyped(tree)
        gathered = {step.table for step in self.steps}
        for node in list(tree.find_all(exp.Table)):
            name = node.name.lower()
            if name in gathered:
                continue
            lowered = ctes.get(name) or self._view(name)
            if not isinstance(lowered, Gathered):
                raise Unfaithful(f"{node.name} inside an expression")
            node.replace(table_of(lowered, node.alias or node.name))
        return self._combine(text_of(tree))

    def _next_name(self) -> str:
        return f"gathered_{len(self.steps)}"

    def _ctes(self, tree: exp.Select, outer_ctes: Mapping[str, Lowered]) -> dict[str, Lowered]:
        """Remove the WITH of a SELECT; return its CTEs and the outer ones."""
        ctes = dict(outer_ctes)
        if (clause := tree.args.get("with_")) is None:
            return ctes
        if clause.args.get("recursive"):
            raise Unfaithful("a recursive WITH")
        for cte in clause.expressions:
            if cte.args["alias"].args.get("columns") or parts_of(cte) - {"this", "alias"}:
                raise Unfaithful("a WITH that is more than name AS (SELECT …)")
            ctes[cte.alias.lower()] = self.lower(cte.this, ctes)
        tree.set("with_", None)
        return ctes

    def _sources(self, tree: exp.Select, ctes: Mapping[str, Lowered], reads: set[str]) -> list[Source]:
        """Replace each source in the FROM by one that every rank or the gathering database can select from."""
        if (clause := tree.args.get("from_")) is None:
            raise Unfaithful("no FROM")
        sources = [self._source(clause.this, ctes, reads)]
        for join in tree.args.get("joins") or []:
            source = self._source(join.this, ctes, reads)
            sources.append(dataclasses.replace(source, optional=bool(join.args.get("side"))))
        if len({source.alias for source in sources}) < len(sources):
            raise Unfaithful("two sources with the same name, or without one")
        return sources

    def _source(self, node: exp.Expr, ctes: Mapping[str, Lowered], reads: set[str]) -> Source:
        has_columns = node.args.get("alias") and node.args["alias"].args.get("columns")
        if has_columns or parts_of(node) - {"this", "alias"}:
            raise Unfaithful("a FROM with more than tables, subqueries and aliases")
        alias = node.alias or ("" if isinstance(node, exp.Subquery) else node.name)
        if isinstance(node, exp.Subquery):
            lowered = self.lower(node.this, ctes)
        elif isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            name = node.name.lower()
            if name not in ctes and name in self._relations and not _is_aggregate(name):
                return self._sharded_source(name, alias)
            query = ctes.get(name) or self._view(name)
            if query is None:
                raise Unfaithful(f"{node.name} is not a table or view of the job")
            lowered = query
        else:
            raise Unfaithful("a FROM with more than tables and subqueries")
        if isinstance(lowered, Gathered):
            reads.add(lowered)
            node.replace(table_of(lowered, alias))
            return Source(alias.lower(), self._columns_of(f'SELECT * FROM "{lowered}"'), sharded=False)
        reads |= lowered.reads
        node.replace(exp.Subquery(this=lowered.tree.copy(), alias=alias_of(alias)))
        return Source(alias.lower(), self._columns_of(text_of(lowered.tree)), sharded=True, keys=lowered.keys)

    def _sharded_source(self, name: str, alias: str) -> Source:
        columns = self._columns_of(f'SELECT * FROM "{name}"')
        keys = {key: key for key in KEYS if key in columns and (name in TABLES or name in VIEWS)}
        return Source(alias.lower(), columns, sharded=True, keys=keys)

    def _view(self, name: str) -> Lowered | None:
        """Take apart a view over other views, such as top_kernels; return None for anything else."""
        if name not in VIEWS or not _is_aggregate(name):
            return None
        if name not in self._views:
            self._views[name] = self.lower(_query_of_view(name), {})
        return self._views[name]

    def _columns_of(self, sql: str) -> frozenset[str]:
        return frozenset(column.lower() for column in self._skeleton.columns(sql))


@functools.cache
def _query_of_view(name: str) -> exp.Query:
    return read_select(aggregate_text(name))


def _is_aggregate(name: str) -> bool:
    return name in VIEWS and not view(name).is_rows


def _check_joins(scope: Scope) -> None:
    """Refuse joins across ranks: sharded sources join only inside a rank.

    Gathered sources join anywhere except on the left of a LEFT JOIN: each rank would keep rows without a match.
    """
    first, *others = scope.sources
    linked = {first.alias} if first.sharded else set()
    preceding = [first]
    where = scope.tree.args.get("where")
    for join, source in zip(scope.tree.args.get("joins") or [], others, strict=True):
        side = (join.args.get("side") or "").upper()
        kind = (join.args.get("kind") or "").upper()
        if side not in ("", "LEFT") or join.args.get("method") or kind not in ("", "CROSS", "INNER", "OUTER"):
            raise Unfaithful(f"a {side or join.args.get('method') or kind} join")
        if source.sharded:
            if side == "LEFT" and not linked:
                raise Unfaithful("a LEFT JOIN of ranks to a gathered table")
            conditions = list(_conjuncts(join.args.get("on")))
            if not side and where is not None:
                conditions += _conjuncts(where.this)
            local = _is_local(conditions, scope, source.alias, linked)
            if linked and not local and not _uses_key(join, source, preceding):
                raise Unfaithful("a join across ranks: no guid = guid")
            linked.add(source.alias)
        preceding.append(source)


def _conjuncts(condition: exp.Expr | None) -> Iterator[exp.Expr]:
    if isinstance(condition, exp.And):
        yield from _conjuncts(condition.left)
        yield from _conjuncts(condition.right)
    elif isinstance(condition, exp.Paren):
        yield from _conjuncts(condition.this)
    elif condition is not None:
        yield condition


def _is_local(conditions: Iterable[exp.Expr], scope: Scope, alias: str, linked: set[str]) -> bool:
    """Whether a condition equates a key of the new source with the same key of a source joined before."""
    for condition in conditions:
        if isinstance(condition, exp.EQ):
            left, right = scope.key(condition.left), scope.key(condition.right)
            if left and right and left[1] == right[1]:
                owners = {left[0], right[0]}
                if alias in owners and owners - {alias} and owners - {alias} <= linked:
                    return True
    return False


def _uses_key(join: exp.Join, source: Source, preceding: Sequence[Source]) -> bool:
    """Whether USING names a key; it compares with the first source that has the column."""
    for column in join.args.get("using") or []:
        name = column.name.lower()
        first = next((other for other in preceding if name in other.columns), None)
        if first and first.sharded and name in source.keys and first.keys.get(name) == source.keys[name]:
            return True
    return False


class Skeleton(Unifier):
    """A database with all tables and views of a job, without rows: SQLite resolves names, columns and affinities in it.

    It holds two ranks, so that base tables and views are compounds, as in a job.

    Attributes:
        further: base table -> columns beyond the contract, whose types are not known.
    """

    def __init__(self, ranks: Sequence[RankTables]) -> None:
        further = ranks[0].further if ranks else {}
        tables = {base: (*columns, *further.get(base, ())) for base, columns in tables_of(LATEST).items()}
        self.further: Mapping[str, tuple[str, ...]] = {base: names for base, names in further.items() if names}
        tables |= {base: columns for base, columns in self.further.items() if base not in tables}
        two_ranks = [RankTables(f"_{i}", tables, rank=i, hostname="", further=further, guid="") for i in range(2)]
        super().__init__(apsw.Connection(":memory:"), two_ranks, keyed=True)
        self._tables_created: set[str] = set()

    def columns(self, sql: str, parameters: Sequence[int] = ()) -> tuple[str, ...]:
        """Return the result columns of a statement.

        Raises:
            apsw.Error: SQLite refuses the statement.
        """
        self.prepare(sql)
        columns: list[tuple[str, ...]] = []
        cursor = self.connection.cursor()

        def note_columns_and_stop(c: apsw.Cursor, _sql: str, _bindings: object) -> bool:
            columns.append(tuple(column[0] for column in c.get_description()))
            return False

        cursor.exec_trace = note_columns_and_stop
        try:
            cursor.execute(sql, parameters or _AnyParameter())
        except apsw.ExecTraceAbort:
            pass
        finally:
            cursor.exec_trace = None
        return columns[0] if columns else ()

    def add(self, table: str, columns: Sequence[str], select: str) -> tuple[str, ...]:
        """Create an empty gathered table for the result of `select`; return the types of its columns.

        SQLite compares a column of a subquery by the affinity of its expression; the gathered table must do the same.
        """
        self.prepare(select)
        connection = self.connection
        connection.execute(f"CREATE TEMP TABLE probe AS {select}", _AnyParameter())
        types = tuple(row[0] for row in connection.execute("SELECT type FROM pragma_table_info('probe')"))
        connection.execute("DROP TABLE probe")
        create_table(connection, Scatter(table, tuple(columns), types, select), "TEMP ")
        return types

    def prepare(self, sql: str) -> None:
        """Create the tables and views that `sql` names and that do not exist yet."""
        keyed = (name.split("__")[1] for name in keyed_views(sql))
        for name in named(" ".join((sql, *keyed)), self.relations):
            for base in {each.table for each in view(name).tables} if name in VIEWS else {name}:
                if base not in self._tables_created:
                    self._tables_created.add(base)
                    self._create_tables(base)
        super().prepare(sql)

    def _create_tables(self, base: str) -> None:
        columns = [quote_name(column) for column in self.further.get(base, ())]
        for tables in self.tables:
            if base not in TABLES:
                self.connection.execute(f"CREATE TABLE {tables.name(base)} ({', '.join(columns)})")
                continue
            self.connection.execute(create_table_text(base, tables.suffix, ""))
            for column in columns:
                self.connection.execute(f"ALTER TABLE {tables.name(base)} ADD COLUMN {column}")


class _AnyParameter(UserDict[str, int]):
    """Binds 0 to every parameter: the statement runs over no rows."""

    def __missing__(self, key: str) -> int:
        return 0
