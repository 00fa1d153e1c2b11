"""Which expressions can be evaluated in a rank: those with the same value there as over all ranks.

Statements with anything that is not listed here run attached, as written: subqueries, collations, random numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from rocpd.federate.plan.sqltext import Unfaithful

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
    unknown = {key for key, value in tree.args.items() if value} - {
        "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "distinct",
    }  # fmt: skip
    if unknown:
        raise Unfaithful(f"a clause {sorted(unknown)[0].rstrip('_').upper()}")
    for node in expressions(tree):
        for part in node.walk():
            _check_node(part)


def check_functions(tree: exp.Select) -> None:
    """Raise `Unfaithful` if the SELECT calls a function that may return another value at every call."""
    for node in tree.walk():
        if isinstance(node, (exp.CurrentTimestamp, exp.CurrentDate, exp.CurrentTime)) or (
            isinstance(node, exp.Anonymous) and node.name.lower() in _CHANGING
        ):
            raise Unfaithful("a value that changes from call to call")


def expressions(tree: exp.Select) -> Iterator[exp.Expr]:
    """Yield everything in a SELECT that computes, without its FROM."""
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


def windows(tree: exp.Select) -> list[exp.Window]:
    """Return all calls of window functions in the SELECT."""
    return [window for node in _clauses(tree, "having", "order") for window in node.find_all(exp.Window)]


def _clauses(tree: exp.Select, *keys: str) -> Iterator[exp.Expr]:
    yield from tree.expressions
    yield from (tree.args[key] for key in keys if tree.args.get(key))


def _has_aggregate(node: exp.Expr) -> bool:
    """Whether an expression has an aggregate; a window function is not one itself, but its arguments may hold some."""
    parts = list(node.iter_expressions())
    if isinstance(node, exp.Window):
        call = node.this.this if isinstance(node.this, exp.Filter) else node.this
        parts = [*call.iter_expressions(), *(part for part in parts if part is not node.this)]
    elif is_aggregate(node):
        return True
    return any(map(_has_aggregate, parts))
