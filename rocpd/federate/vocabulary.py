"""Owns which expressions can be taken apart: those whose value in a rank is their value in the whole.

Everything that is not listed here is left to SQLite as written: subqueries, collations, windows, random numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from rocpd.federate.sqltext import Unfaithful

_PLAIN: tuple[type[exp.Expr], ...] = (
    exp.Abs, exp.Add, exp.Alias, exp.And, exp.Avg, exp.Between, exp.BitwiseAnd, exp.BitwiseLeftShift, exp.BitwiseNot,
    exp.BitwiseOr, exp.BitwiseRightShift, exp.Boolean, exp.Case, exp.Cast, exp.Ceil, exp.Coalesce, exp.Column,
    exp.Count, exp.DataType, exp.Div, exp.DPipe, exp.EQ, exp.Escape, exp.Exp, exp.Filter, exp.Floor, exp.Glob, exp.GT,
    exp.GTE, exp.Greatest, exp.Group, exp.Having, exp.Identifier, exp.If, exp.In, exp.Is, exp.Least, exp.Length,
    exp.Like, exp.Limit, exp.Literal, exp.Ln, exp.Lower, exp.LT, exp.LTE, exp.Max, exp.Min, exp.Mod, exp.Mul, exp.Neg,
    exp.NEQ, exp.Not, exp.Null, exp.Nullif, exp.Offset, exp.Or, exp.Order, exp.Ordered, exp.Paren, exp.Placeholder,
    exp.Round, exp.Sqrt, exp.Star, exp.Sub, exp.Substring, exp.Sum, exp.Trim, exp.Upper, exp.Where, exp.Window,
    exp.Distinct, exp.Collate, exp.Var, exp.Replace, exp.NullSafeEQ, exp.NullSafeNEQ,
)  # fmt: skip
_SCALARS = {
    "char", "format", "glob", "hex", "ifnull", "iif", "instr", "json_extract", "json_type", "json_valid", "like",
    "ltrim", "max", "min", "octet_length", "pow", "power", "printf", "quote", "replace", "rtrim", "sign", "total",
    "typeof", "unicode",
}  # fmt: skip
_CHANGING = {"random", "randomblob", "changes", "total_changes", "last_insert_rowid", "date", "time", "datetime",
             "julianday", "unixepoch", "strftime", "sqlite_offset"}  # fmt: skip


def check(tree: exp.Select) -> None:
    """Raise `Unfaithful` when an expression of the SELECT (not of its FROM) can't be taken apart."""
    unknown = {key for key, value in tree.args.items() if value} - {
        "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "distinct",
    }  # fmt: skip
    if unknown:
        raise Unfaithful(f"a clause {sorted(unknown)[0].rstrip('_').upper()}")
    for node in _expressions(tree):
        for part in node.walk():
            _check_node(part)


def check_functions(tree: exp.Select) -> None:
    """Raise `Unfaithful` when the SELECT calls something that gives another value at every call."""
    for node in tree.walk():
        if isinstance(node, (exp.Rand, exp.CurrentTimestamp, exp.CurrentDate, exp.CurrentTime)) or (
            isinstance(node, exp.Anonymous) and node.name.lower() in _CHANGING
        ):
            raise Unfaithful("a value that changes from call to call")


def _expressions(tree: exp.Select) -> Iterator[exp.Expr]:
    yield from tree.expressions
    for key in ("where", "group", "having", "order", "limit", "offset", "distinct"):
        if tree.args.get(key):
            yield tree.args[key]
    for join in tree.args.get("joins") or []:
        if join.args.get("on"):
            yield join.args["on"]


def _check_node(node: exp.Expr) -> None:
    if isinstance(node, exp.Anonymous):
        if node.name.lower() not in _SCALARS:
            raise Unfaithful(f"the function {node.name}")
    elif type(node) not in _PLAIN:
        raise Unfaithful(f"{type(node).__name__.lower()} in an expression")
    if isinstance(node, exp.Collate) and not isinstance(node.parent, exp.Ordered):
        raise Unfaithful("a collation")
    if isinstance(node, exp.Distinct) and isinstance(node.parent, exp.Select) and node.args.get("on"):
        raise Unfaithful("DISTINCT ON")


def is_aggregate(node: exp.Expr) -> bool:
    """Whether the node is a call of an aggregate (`max(a, b)` is none)."""
    if isinstance(node, (exp.Count, exp.Sum, exp.Avg)):
        return True
    if isinstance(node, (exp.Min, exp.Max)):
        return not node.expressions
    return isinstance(node, exp.Anonymous) and node.name.lower() == "total"


def is_aggregated(tree: exp.Select) -> bool:
    """Whether the SELECT groups its rows."""
    if tree.args.get("group") or tree.args.get("having"):
        return True
    return any(_has_aggregate(node) for node in _clauses(tree))


def has_window(tree: exp.Select) -> bool:
    """Whether the SELECT computes window functions."""
    return any(node.find(exp.Window) for node in _clauses(tree))


def _clauses(tree: exp.Select) -> Iterator[exp.Expr]:
    yield from tree.expressions
    for key in ("having", "order"):
        if tree.args.get(key):
            yield tree.args[key]


def _has_aggregate(node: exp.Expr) -> bool:
    """A window function is no aggregate itself, but its arguments may hold some."""
    if isinstance(node, exp.Window):
        call = node.this.this if isinstance(node.this, exp.Filter) else node.this
        parts = [*call.iter_expressions(), *(p for key, p in _window_parts(node))]
        return any(_has_aggregate(part) for part in parts)
    return is_aggregate(node) or any(_has_aggregate(child) for child in node.iter_expressions())


def _window_parts(node: exp.Window) -> Iterator[tuple[str, exp.Expr]]:
    for key, value in node.args.items():
        if key != "this":
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, exp.Expr):
                    yield key, part
