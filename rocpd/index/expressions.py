"""Expressions of SQLite in DuckDB's SQL, with the same value for every row, or not at all.

Only what provably means the same is translated: operands of one kind, as no column holds several. SQLite's own rules
(affinities, truth of numbers, integer division, LIKE) are written out. What DuckDB refuses at run time, such as a sum
beyond 64 bits, SQLite answers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from sqlglot import exp

from rocpd.frozen import frozen
from rocpd.index.kinds import Kind
from rocpd.schema.quote import quote_text
from rocpd.types import Value

_EXACT = 1 << 53  # whole numbers up to here are doubles too
_SURE_DIGITS = 15  # of a decimal number: SQLite and Python read it as the same double
_GLOBBED = str.maketrans({"*": "%", "?": "_", "%": "\\%", "_": "\\_", "\\": "\\\\"})
_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip
_ARITHMETIC: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}
_AGGREGATES = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)


class Untranslatable(Exception):  # noqa: N818 (a reason, not a failure)
    """The expression is SQLite's to answer; the text gives the reason."""


@frozen
class Typed:
    """An expression of DuckDB.

    Args:
        sql: its text, in parentheses where it needs them.
        kind: of its values.
        literal: its value, where it is a constant.
        is_ascii: its texts hold characters of ASCII only.
    """

    sql: str
    kind: Kind
    literal: Value = None
    is_ascii: bool = False


FindColumn = Callable[[exp.Column], Typed]


class Expressions:
    """Translates the expressions of one SELECT.

    Args:
        find_column: returns what a column stands for, or raises `Untranslatable`.
        bindings: values of the statement's parameters.

    Attributes:
        may_overflow: something can exceed 64 bits: DuckDB then fails, where SQLite goes on with reals.
    """

    def __init__(self, find_column: FindColumn, bindings: Mapping[str, Value]) -> None:
        self._find_column = find_column
        self._bindings = bindings
        self.may_overflow = False

    def value(self, node: exp.Expr) -> Typed:
        """Return an expression as SQLite returns it: comparisons are 0 or 1.

        Raises:
            Untranslatable: DuckDB may return something else.
        """
        typed = self.typed(node)
        return Typed(f"CAST({typed.sql} AS BIGINT)", Kind.INT) if typed.kind is Kind.BOOL else typed

    def condition(self, node: exp.Expr) -> str:
        """Return an expression as a condition: in SQLite every number but 0 is true.

        Raises:
            Untranslatable: as for `value`.
        """
        typed = self.typed(node)
        if typed.kind in (Kind.BOOL, Kind.NULL):
            return typed.sql
        if typed.kind is Kind.INT:
            return f"({typed.sql} <> 0)"
        raise Untranslatable(f"a {typed.kind} as a condition")

    def typed(self, node: exp.Expr) -> Typed:
        """Return an expression with its kind; raises as `value`."""
        translate = _TRANSLATIONS.get(type(node))
        if translate is None:
            raise Untranslatable(type(node).__name__.lower())
        return translate(self, node)

    def _paren(self, node: exp.Expr) -> Typed:
        return self.typed(node.this)

    def _column(self, node: exp.Expr) -> Typed:
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            raise Untranslatable("*")
        return self._find_column(node)

    def _literal(self, node: exp.Expr) -> Typed:
        text = str(node.this)
        if isinstance(node, exp.Literal) and node.is_string:
            return constant(text)
        if re.fullmatch(r"\d+", text):
            return constant(int(text))
        if re.fullmatch(r"\d*\.?\d*(?:[eE][+-]?\d+)?", text) and len(re.sub(r"[eE].*|\D", "", text)) <= _SURE_DIGITS:
            return constant(float(text))
        raise Untranslatable(f"the number {text}")

    def _null(self, _node: exp.Expr) -> Typed:
        return constant(None)

    def _truth(self, node: exp.Expr) -> Typed:
        return constant(1 if node.this else 0)

    def _placeholder(self, node: exp.Expr) -> Typed:
        name = str(node.this)
        if name not in self._bindings:
            raise Untranslatable(f"the parameter {name}")
        return constant(self._bindings[name])

    def _negated(self, node: exp.Expr) -> Typed:
        operand = self.value(node.this)
        if operand.kind not in (Kind.INT, Kind.REAL):
            raise Untranslatable(f"minus a {operand.kind}")
        if isinstance(operand.literal, (int, float)):
            return constant(-operand.literal)
        return Typed(f"(-{operand.sql})", operand.kind)

    def _arithmetic(self, node: exp.Expr) -> Typed:
        left, right = self.value(node.this), self.value(node.expression)
        operator = _ARITHMETIC[type(node)]
        kinds = {left.kind, right.kind} - {Kind.NULL}
        if not kinds <= {Kind.INT, Kind.REAL} or not kinds:
            raise Untranslatable(f"{left.kind} {operator} {right.kind}")
        if kinds == {Kind.INT}:
            if operator in "/%":  # both databases cut towards 0; in SQLite a division by 0 is NULL
                return Typed(f"({left.sql} {'//' if operator == '/' else '%'} nullif({right.sql}, 0))", Kind.INT)
            self.may_overflow = True
            return Typed(f"({left.sql} {operator} {right.sql})", Kind.INT)
        if operator == "%":
            raise Untranslatable("% of reals")
        divisor = f"nullif({as_real(right)}, 0)" if operator == "/" else as_real(right)
        sql = f"({as_real(left)} {operator} {divisor})"
        return Typed(f"nullif({sql}, 'nan'::DOUBLE)", Kind.REAL)  # SQLite has no NaN

    def _comparison(self, node: exp.Expr) -> Typed:
        left, right = self._same_kind(node.this, node.expression)
        return Typed(f"({left} {_COMPARISONS[type(node)]} {right})", Kind.BOOL)

    def _same_kind(self, *nodes: exp.Expr) -> tuple[str, ...]:
        return same_kind([self.typed(node) for node in nodes])

    def _is(self, node: exp.Expr) -> Typed:
        left, right = self._same_kind(node.this, node.expression)
        return Typed(f"({left} IS NOT DISTINCT FROM {right})", Kind.BOOL)

    def _is_not(self, node: exp.Expr) -> Typed:
        return Typed(f"(NOT {self._is(node).sql})", Kind.BOOL)

    def _between(self, node: exp.Expr) -> Typed:
        value, low = self._same_kind(node.this, node.args["low"])
        value_above, high = self._same_kind(node.this, node.args["high"])
        return Typed(f"({value} >= {low} AND {value_above} <= {high})", Kind.BOOL)

    def _in(self, node: exp.Expr) -> Typed:
        if {key for key, value in node.args.items() if value} - {"this", "expressions"} or not node.expressions:
            raise Untranslatable("IN with more than values")
        comparisons = []
        for each in node.expressions:
            left, right = self._same_kind(node.this, each)
            comparisons.append(f"{left} = {right}")
        return Typed(f"({' OR '.join(comparisons)})", Kind.BOOL)

    def _logic(self, node: exp.Expr) -> Typed:
        word = "AND" if isinstance(node, exp.And) else "OR"
        return Typed(f"({self.condition(node.this)} {word} {self.condition(node.expression)})", Kind.BOOL)

    def _not(self, node: exp.Expr) -> Typed:
        return Typed(f"(NOT {self.condition(node.this)})", Kind.BOOL)

    def _like(self, node: exp.Expr) -> Typed:
        text, pattern = self._matched(node)
        if not (text.is_ascii and pattern.isascii()):  # DuckDB folds other letters too, SQLite does not
            raise Untranslatable("LIKE on other letters than those of ASCII")
        return Typed(f"({text.sql} ILIKE {quote_text(pattern)})", Kind.BOOL)

    def _glob(self, node: exp.Expr) -> Typed:
        text, pattern = self._matched(node)
        if "[" in pattern:
            raise Untranslatable("GLOB with a set of characters")
        return Typed(f"({text.sql} LIKE {quote_text(pattern.translate(_GLOBBED))} ESCAPE '\\')", Kind.BOOL)

    def _matched(self, node: exp.Expr) -> tuple[Typed, str]:
        text, pattern = self.typed(node.this), self.typed(node.expression)
        if text.kind not in (Kind.TEXT, Kind.NULL) or not isinstance(pattern.literal, str):
            raise Untranslatable("LIKE or GLOB of other things than a text and a constant")
        return text, pattern.literal

    def _joined(self, node: exp.Expr) -> Typed:
        left, right = self.typed(node.this), self.typed(node.expression)
        if not {left.kind, right.kind} <= {Kind.TEXT, Kind.NULL}:
            raise Untranslatable("|| of other things than texts")
        return Typed(f"({left.sql} || {right.sql})", Kind.TEXT)

    def _case(self, node: exp.Expr) -> Typed:
        conditions = []
        for branch in node.args["ifs"]:
            if node.this is None:
                conditions.append(self.condition(branch.this))
            else:
                left, right = self._same_kind(node.this, branch.this)
                conditions.append(f"{left} = {right}")
        default = node.args.get("default")
        results = [self.value(branch.args["true"]) for branch in node.args["ifs"]]
        results.append(self.value(default) if default is not None else constant(None))
        kind = _one_kind(results)
        pairs = zip(conditions, results[:-1], strict=True)
        whens = " ".join(f"WHEN {condition} THEN {result.sql}" for condition, result in pairs)
        return Typed(f"(CASE {whens} ELSE {results[-1].sql} END)", kind)

    def _call(self, node: exp.Expr) -> Typed:
        name = str(node.this).lower()
        if name == "total":
            return self._aggregated(node, "")
        arguments = [self.value(each) for each in node.expressions]
        kind = _one_kind(arguments) if arguments else Kind.NULL
        listed = ", ".join(each.sql for each in arguments)
        if name in ("coalesce", "ifnull") and len(arguments) > 1:
            return Typed(f"coalesce({listed})", kind)
        if name == "nullif" and len(arguments) == 2:
            return Typed(f"nullif({listed})", kind)
        if name == "abs" and len(arguments) == 1 and kind is Kind.INT:
            return Typed(f"abs({listed})", Kind.INT)
        if name == "length" and len(arguments) == 1 and kind is Kind.TEXT:
            return Typed(f"length({listed})", Kind.INT)
        raise Untranslatable(f"the function {name}")

    def _cast(self, node: exp.Expr) -> Typed:
        operand, target = self.value(node.this), str(node.args["to"]).upper()
        if target in ("INTEGER", "INT", "BIGINT") and operand.kind is Kind.INT:
            return operand
        if target in ("REAL", "DOUBLE", "FLOAT") and operand.kind in (Kind.INT, Kind.REAL):
            return Typed(as_real(operand), Kind.REAL)
        if target == "TEXT" and operand.kind is Kind.TEXT:
            return operand
        raise Untranslatable(f"CAST of a {operand.kind} AS {target}")

    def _aggregate(self, node: exp.Expr) -> Typed:
        return self._aggregated(node, "")

    def _filter(self, node: exp.Expr) -> Typed:
        if not isinstance(node.this, _AGGREGATES) and not isinstance(node.this, exp.Anonymous):
            raise Untranslatable("FILTER")
        return self._aggregated(node.this, f" FILTER (WHERE {self.condition(node.expression.this)})")

    def _aggregated(self, node: exp.Expr, only: str) -> Typed:
        """Return an aggregate of one value; sums are of whole numbers, as the order of reals would show."""
        if isinstance(node, exp.Count):
            return Typed(f"count({self._counted(node)}){only}", Kind.INT)
        argument = node.expressions[0] if isinstance(node, exp.Anonymous) and node.expressions else node.this
        if (node.expressions and not isinstance(node, exp.Anonymous)) or not isinstance(argument, exp.Expr):
            raise Untranslatable("max or min of several values")
        value = self.value(argument)
        if isinstance(node, (exp.Min, exp.Max)):
            if value.kind is Kind.REAL:
                raise Untranslatable("the least of reals, as 0 has two signs")
            return Typed(f"{'min' if isinstance(node, exp.Min) else 'max'}({value.sql}){only}", value.kind)
        if value.kind not in (Kind.INT, Kind.NULL):
            raise Untranslatable(f"a sum of {value.kind}s")
        total = f"CAST(sum({value.sql}){only} AS BIGINT)"
        if isinstance(node, exp.Sum):
            return Typed(total, Kind.INT)
        if isinstance(node, exp.Avg):
            return Typed(f"(CAST({total} AS DOUBLE) / nullif(count({value.sql}){only}, 0))", Kind.REAL)
        if isinstance(node, exp.Anonymous) and str(node.this).lower() == "total" and len(node.expressions) == 1:
            return Typed(f"coalesce(CAST({total} AS DOUBLE), 0)", Kind.REAL)
        raise Untranslatable("an aggregate")

    def _counted(self, node: exp.Expr) -> str:
        if isinstance(node.this, exp.Star) or node.this is None:
            return "*"
        if isinstance(node.this, exp.Distinct):
            (each,) = node.this.expressions if len(node.this.expressions) == 1 else (None,)
            value = self.value(each) if each is not None else constant(None)
            if value.kind not in (Kind.INT, Kind.TEXT):
                raise Untranslatable(f"different {value.kind}s")
            return f"DISTINCT {value.sql}"
        return self.value(node.this).sql


def constant(value: Value) -> Typed:
    """Return a constant.

    >>> constant(3).sql, constant("it's").sql, constant(None).sql
    ("CAST(3 AS BIGINT)", "'it''s'", 'NULL')

    Raises:
        Untranslatable: a blob, a text with a NUL, a number beyond 64 bits, an infinite one.
    """
    if value is None:
        return Typed("NULL", Kind.NULL)
    if isinstance(value, (bool, int)) and -(1 << 63) <= value < 1 << 63:
        return Typed(f"CAST({int(value)} AS BIGINT)", Kind.INT, int(value))
    if isinstance(value, float) and math.isfinite(value):
        return Typed(f"CAST('{value!r}' AS DOUBLE)", Kind.REAL, value)
    if isinstance(value, str) and "\0" not in value:
        return Typed(quote_text(value), Kind.TEXT, value)
    raise Untranslatable("a value that only SQLite has")


def as_real(number: Typed) -> str:
    """Return a number as a double, as SQLite turns whole numbers into reals."""
    return number.sql if number.kind in (Kind.REAL, Kind.NULL) else f"CAST({number.sql} AS DOUBLE)"


def same_kind(operands: Sequence[Typed]) -> tuple[str, ...]:
    """Return what is compared, all of one kind.

    SQLite compares whole numbers with reals exactly, DuckDB as doubles: one of them must be a constant that both have.

    Raises:
        Untranslatable: SQLite would convert one, or compare different kinds.
    """
    kinds = {operand.kind for operand in operands} - {Kind.NULL}
    if Kind.BOOL in kinds and kinds <= {Kind.BOOL, Kind.INT, Kind.REAL}:
        operands = [
            Typed(f"CAST({each.sql} AS BIGINT)", Kind.INT) if each.kind is Kind.BOOL else each for each in operands
        ]
        kinds = {operand.kind for operand in operands} - {Kind.NULL}
    if kinds == {Kind.INT, Kind.REAL}:
        operands = _converted(operands)
    elif len(kinds) > 1:
        raise Untranslatable(f"a comparison of {' with '.join(sorted(kinds))}")
    return tuple(operand.sql for operand in operands)


def _converted(operands: Sequence[Typed]) -> list[Typed]:
    """Return whole numbers and reals as one of both: constants become what the others are."""
    free = {operand.kind for operand in operands if operand.literal is None} - {Kind.NULL}
    if len(free) > 1:
        raise Untranslatable("a comparison of whole numbers with reals")
    to_real = free == {Kind.REAL}
    converted = []
    for operand in operands:
        value = operand.literal
        if to_real and isinstance(value, int):
            if abs(value) > _EXACT:
                raise Untranslatable(f"a comparison of reals with {value}")
            operand = constant(float(value))
        elif not to_real and isinstance(value, float):
            if not value.is_integer() or abs(value) >= 1 << 63:
                raise Untranslatable(f"a comparison of whole numbers with {value}")
            operand = constant(int(value))
        converted.append(operand)
    return converted


def _one_kind(values: Iterable[Typed]) -> Kind:
    kinds = {value.kind for value in values} - {Kind.NULL}
    if len(kinds) > 1:
        raise Untranslatable(f"values of several kinds: {', '.join(sorted(kinds))}")
    return kinds.pop() if kinds else Kind.NULL


_TRANSLATIONS: dict[type[exp.Expr], Callable[[Expressions, exp.Expr], Typed]] = {
    exp.Paren: Expressions._paren,
    exp.Column: Expressions._column,
    exp.Literal: Expressions._literal,
    exp.Null: Expressions._null,
    exp.Boolean: Expressions._truth,
    exp.Placeholder: Expressions._placeholder,
    exp.Neg: Expressions._negated,
    **dict.fromkeys(_ARITHMETIC, Expressions._arithmetic),
    **dict.fromkeys(_COMPARISONS, Expressions._comparison),
    exp.Is: Expressions._is,
    exp.NullSafeEQ: Expressions._is,
    exp.NullSafeNEQ: Expressions._is_not,
    exp.Between: Expressions._between,
    exp.In: Expressions._in,
    exp.And: Expressions._logic,
    exp.Or: Expressions._logic,
    exp.Not: Expressions._not,
    exp.Like: Expressions._like,
    exp.Glob: Expressions._glob,
    exp.DPipe: Expressions._joined,
    exp.Case: Expressions._case,
    exp.Anonymous: Expressions._call,
    exp.Cast: Expressions._cast,
    exp.Filter: Expressions._filter,
    **dict.fromkeys(_AGGREGATES, Expressions._aggregate),
}
