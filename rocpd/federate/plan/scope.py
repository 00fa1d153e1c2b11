"""The names in a SELECT: the source of each column, the columns that are keys of ranks, and expressions for a rank.

A key is a column with one value in a rank and a different one in every other rank: `guid` and `rank`, under whatever
name a subquery gives them. A column that merely has one of these names is not a key. A rank can evaluate an expression
that has the same value there as over all ranks; statements with expressions that are not listed here run attached, as
written: subqueries, collations, random numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from sqlglot import exp

from rocpd.base import frozen
from rocpd.federate.plan.sqltext import parts_of
from rocpd.federate.plan.steps import Unfaithful

KEYS = ("guid", "rank")


@frozen
class Source:
    """A table, view or subquery in a FROM.

    Args:
        alias: its name in the SELECT, in lower case.
        columns: names in lower case.
        sharded: every rank has its own rows; else it is gathered.
        keys: column -> the one of `KEYS` that it is.
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
        """Return the source of a column; None if no source has it, or several do."""
        name, table = column.name.lower(), column.table.lower()
        owners = self.inputs.get(name, ())
        source = self._by_alias.get(table or (owners[0] if len(owners) == 1 else ""))
        return source if source and name in source.columns else None

    def check_names(self, untyped: frozenset[str]) -> None:
        """Raise `Unfaithful` unless all columns are known (SQLite takes an unknown "name" for text) and comparable.

        `untyped`: columns beyond the contract; their types are lost when they are gathered.
        """
        for column in (column for node in _expressions(self.tree) for column in node.find_all(exp.Column)):
            name = column.name.lower()
            if isinstance(column.this, exp.Star) or (not column.table and name in self.aliases):
                continue
            if (source := self.source(column)) is None:
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
        """Return the key that a node is, if it cannot be NULL."""
        alias, key = self.key(node) or ("", None)
        return key if key and not self._by_alias[alias].optional else None

    def groups_stay_in_ranks(self) -> bool:
        """Whether GROUP BY names a key: then no group has rows of two ranks."""
        return any(map(self.strong_key, self.groups()))

    def groups(self) -> list[exp.Expr]:
        """Return the expressions of GROUP BY."""
        group = self.tree.args.get("group")
        return [self.grouped_expression(item) for item in (group.expressions if group else ())]

    def windows_stay_in_ranks(self) -> bool:
        """Whether all windows are partitioned by a key."""
        windows = (each for node in _clauses(self.tree, "having", "order") for each in node.find_all(exp.Window))
        return all(any(map(self.strong_key, window.args.get("partition_by") or ())) for window in windows)

    def output_keys(self, columns: Sequence[str]) -> dict[str, str]:
        """Return result column -> key, for columns that are keys."""
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
    """Return the index of the result column that an ORDER BY or GROUP BY term names by number or alias, or None."""
    if isinstance(expression, exp.Literal) and not expression.is_string:
        return int(expression.name) - 1 if expression.name.isdigit() else None
    if isinstance(expression, exp.Column) and not expression.table:
        for kind in (exp.Alias, exp.Column):
            for index, item in enumerate(tree.expressions):
                if isinstance(item, kind) and item.alias_or_name.lower() == expression.name.lower():
                    return index
    return None


_ARITHMETIC: tuple[type[exp.Expr], ...] = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_COMPARISONS: tuple[type[exp.Expr], ...] = (
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is, exp.In, exp.Between, exp.Like, exp.Glob, exp.Escape,
    exp.NullSafeEQ, exp.NullSafeNEQ,
)  # fmt: skip
_TIGHT: tuple[type[exp.Expr], ...] = (
    exp.BitwiseAnd, exp.BitwiseLeftShift, exp.BitwiseNot, exp.BitwiseOr, exp.BitwiseRightShift, exp.DPipe, exp.Neg,
)  # fmt: skip
_LOGIC: tuple[type[exp.Expr], ...] = (exp.And, exp.Or, exp.Not)
_OPERATORS = _ARITHMETIC + _COMPARISONS + _TIGHT + _LOGIC
_PLAIN: tuple[type[exp.Expr], ...] = (
    *_OPERATORS, exp.Alias, exp.Avg, exp.Boolean, exp.Case, exp.Cast, exp.Column, exp.Count, exp.DataType,
    exp.Distinct, exp.Filter, exp.Greatest, exp.Group, exp.Having, exp.HexString, exp.Identifier, exp.If, exp.Least,
    exp.Limit, exp.Literal, exp.Max, exp.Min, exp.Null, exp.Offset, exp.Order, exp.Ordered, exp.Paren,
    exp.Placeholder, exp.Star, exp.Sum, exp.Var, exp.Where, exp.Window, exp.Collate,
)  # fmt: skip
_SCALARS = {
    "abs", "ceil", "ceiling", "char", "coalesce", "exp", "floor", "format", "glob", "hex", "ifnull", "iif", "instr",
    "json_array_length", "json_extract", "json_type", "json_valid", "length", "like", "ln", "log", "log10", "log2",
    "lower", "ltrim", "mod", "nullif", "octet_length", "pow", "power", "printf", "quote", "replace", "round", "rtrim",
    "sign", "sqrt", "substr", "substring", "total", "trim", "trunc", "typeof", "unicode", "upper",
}  # fmt: skip
_WINDOW_FUNCTIONS = {
    "cume_dist", "dense_rank", "first_value", "lag", "last_value", "lead", "nth_value", "ntile", "percent_rank", "rank",
    "row_number",
}  # fmt: skip
_CHANGING = {"random", "randomblob", "changes", "total_changes", "last_insert_rowid", "date", "time", "datetime",
             "julianday", "unixepoch", "strftime", "sqlite_offset"}  # fmt: skip


def check_select(tree: exp.Select) -> None:
    """Raise `Unfaithful` if an expression of the SELECT (not of its FROM) cannot be evaluated in a rank."""
    unknown = parts_of(tree) - {
        "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "distinct",
    }  # fmt: skip
    if unknown:
        raise Unfaithful(f"a clause {sorted(unknown)[0].rstrip('_').upper()}")
    for node in _expressions(tree):
        for part in node.walk():
            _check_node(part)


def check_functions(tree: exp.Select) -> None:
    """Raise `Unfaithful` if the SELECT calls a function that may return another value at every call."""
    for node in tree.walk():
        if isinstance(node, (exp.CurrentTimestamp, exp.CurrentDate, exp.CurrentTime)) or (
            isinstance(node, exp.Anonymous) and node.name.lower() in _CHANGING
        ):
            raise Unfaithful("a value that changes from call to call")


def _expressions(tree: exp.Select) -> Iterator[exp.Expr]:
    """Yield all expressions in a SELECT except those in its FROM."""
    yield from _clauses(tree, "where", "group", "having", "order", "limit", "offset", "distinct")
    yield from (join.args["on"] for join in tree.args.get("joins") or () if join.args.get("on"))


def _check_node(node: exp.Expr) -> None:
    if isinstance(node, exp.Anonymous):
        name = node.name.lower()
        if name not in _SCALARS and not (name in _WINDOW_FUNCTIONS and isinstance(node.parent, exp.Window)):
            raise Unfaithful(f"the function {node.name}")
    elif type(node) not in _PLAIN:
        raise Unfaithful(f"{type(node).__name__.lower()} in an expression")
    if isinstance(node, exp.Collate) and not isinstance(node.parent, exp.Ordered):
        raise Unfaithful("a collation")
    if isinstance(node, exp.Distinct) and node.args.get("on"):
        raise Unfaithful("DISTINCT ON")
    if type(node) in _OPERATORS:
        _check_precedence(node)


def _check_precedence(node: exp.Expr) -> None:
    """Demand parentheses where they matter: sqlglot gives `||`, `IS`, `LIKE` … other precedence than SQLite."""
    if type(node) in _LOGIC:
        return
    allowed: tuple[type[exp.Expr], ...] = ()
    if type(node) in _ARITHMETIC:
        allowed = (*_ARITHMETIC, exp.Neg)
    elif type(node) in _COMPARISONS:
        allowed = (*_ARITHMETIC, *_TIGHT, *((exp.Like, exp.Glob) if isinstance(node, exp.Escape) else ()))
    for child in node.iter_expressions():
        if type(child) in _OPERATORS and type(child) not in allowed:
            raise Unfaithful("operators side by side without parentheses")


def is_aggregate(node: exp.Expr) -> bool:
    """Whether the node is a call of an aggregate (`max(a, b)` is not)."""
    if isinstance(node, (exp.Count, exp.Sum, exp.Avg)):
        return True
    if isinstance(node, (exp.Min, exp.Max)):
        return not node.expressions
    return isinstance(node, exp.Anonymous) and node.name.lower() == "total"


def is_aggregated(tree: exp.Select) -> bool:
    """Whether the SELECT groups its rows."""
    if tree.args.get("group") or tree.args.get("having"):
        return True
    return any(_has_aggregate(node) for node in _clauses(tree, "order"))


def _clauses(tree: exp.Select, *keys: str) -> Iterator[exp.Expr]:
    yield from tree.expressions
    yield from (tree.args[key] for key in keys if tree.args.get(key))


def _has_aggregate(node: exp.Expr) -> bool:
    """Whether an expression has an aggregate; a window function is none, but its arguments may hold some."""
    parts = list(node.iter_expressions())
    if isinstance(node, exp.Window):
        call = node.this.this if isinstance(node.this, exp.Filter) else node.this
        parts = [*call.iter_expressions(), *(part for part in parts if part is not node.this)]
    elif is_aggregate(node):
        return True
    return any(map(_has_aggregate, parts))
