"""Translates expressions of SQLite into DuckDB's SQL, with the same value for every row, or refuses them.

Only expressions with provably the same meaning are translated: their operands have one kind. SQLite's own rules
(affinities, truth of numbers, integer division, LIKE) are written out. Statements that DuckDB refuses at run time, such
as a sum beyond 64 bits, SQLite answers. A column with values of several kinds is not in the index.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from sqlglot import exp

from rocpd.base import Value, frozen
from rocpd.federate.plan.sqltext import parts_of
from rocpd.federate.plan.steps import Unfaithful
from rocpd.index.entries import ValueKind
from rocpd.schema.quote import quote_text

MOST_OF_64_BITS = (1 << 63) - 1
_EXACT = 1 << 53  # whole numbers up to here are doubles too


@frozen
class Typed:
    """An expression of DuckDB.

    Args:
        sql: its text, in parentheses if necessary.
        kind: kind of its values.
        literal: its value if it is a constant.
        is_ascii: its texts hold only ASCII characters.
        has_sum: the sum of the absolute values of its whole numbers is below 2^63, for any rows of a view.
    """

    sql: str
    kind: ValueKind
    literal: Value = None
    is_ascii: bool = False
    has_sum: bool = False


def constant(value: Value) -> Typed:
    """Return a constant.

    >>> constant(3).sql, constant(None).sql
    ('CAST(3 AS BIGINT)', 'NULL')

    Raises:
        Unfaithful: a blob, a text with a NUL, an infinite number, or a number whose negation exceeds 64 bits.
    """
    if value is None:
        return Typed("NULL", ValueKind.NULL)
    if isinstance(value, (bool, int)) and -(1 << 63) < value < 1 << 63:
        return Typed(f"CAST({int(value)} AS BIGINT)", ValueKind.INT, int(value))
    if isinstance(value, float) and math.isfinite(value):
        return Typed(f"CAST('{value!r}' AS DOUBLE)", ValueKind.REAL, value)
    if isinstance(value, str) and "\0" not in value:
        return Typed(quote_text(value), ValueKind.TEXT, value)
    raise Unfaithful("a value that only SQLite has")


def as_real(number: Typed) -> str:
    """Return a number as a double, as SQLite turns whole numbers into reals."""
    return number.sql if number.kind in (ValueKind.REAL, ValueKind.NULL) else f"CAST({number.sql} AS DOUBLE)"


def same_kind(operands: Sequence[Typed]) -> tuple[str, ...]:
    """Return the operands of a comparison, all of one kind.

    SQLite compares whole numbers with reals exactly, DuckDB as doubles: one of them must be a constant that both kinds
    can represent.

    Raises:
        Unfaithful: SQLite would convert an operand, or compare different kinds.
    """
    kinds = {operand.kind for operand in operands} - {ValueKind.NULL}
    if ValueKind.BOOL in kinds and kinds <= {ValueKind.BOOL, ValueKind.INT, ValueKind.REAL}:
        operands = [_as_number(operand) for operand in operands]
        kinds = {operand.kind for operand in operands} - {ValueKind.NULL}
    if kinds == {ValueKind.INT, ValueKind.REAL}:
        operands = _converted(operands)
    elif len(kinds) > 1:
        raise Unfaithful(f"a comparison of {' with '.join(sorted(kinds))}")
    return tuple(operand.sql for operand in operands)


def _as_number(operand: Typed) -> Typed:
    return Typed(f"CAST({operand.sql} AS BIGINT)", ValueKind.INT) if operand.kind is ValueKind.BOOL else operand


def _converted(operands: Sequence[Typed]) -> list[Typed]:
    """Return whole numbers and reals converted to one kind: constants take the kind of the other operands."""
    free = {operand.kind for operand in operands if operand.literal is None} - {ValueKind.NULL}
    if len(free) > 1:
        raise Unfaithful("a comparison of whole numbers with reals")
    to_real = free == {ValueKind.REAL}
    converted = []
    for operand in operands:
        value = operand.literal
        if to_real and isinstance(value, int):
            if abs(value) > _EXACT:
                raise Unfaithful(f"a comparison of reals with {value}")
            operand = constant(float(value))
        elif not to_real and isinstance(value, float):
            if not value.is_integer() or abs(value) >= 1 << 63:
                raise Unfaithful(f"a comparison of whole numbers with {value}")
            operand = constant(int(value))
        converted.append(operand)
    return converted


def one_kind(values: Iterable[Typed]) -> ValueKind:
    """Return the kind of all values, apart from NULL; raises as `same_kind`."""
    kinds = {value.kind for value in values} - {ValueKind.NULL}
    if len(kinds) > 1:
        raise Unfaithful(f"values of several kinds: {', '.join(sorted(kinds))}")
    return kinds.pop() if kinds else ValueKind.NULL


_SURE_DIGITS = 15  # of a decimal number, which SQLite and Python read as the same double
_GLOBBED = str.maketrans({"*": "%", "?": "_", "%": "\\%", "_": "\\_", "\\": "\\\\"})
_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip
_ARITHMETIC: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}
_AGGREGATES = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)
_USUAL_PARTS = frozenset(("this", "expression", "expressions"))
_PARTS: dict[type[exp.Expr], frozenset[str]] = {
    exp.Column: frozenset(("this", "table")),
    exp.Literal: frozenset(("this", "is_string")),
    exp.Between: frozenset(("this", "low", "high")),
    exp.Like: frozenset(("this", "expression", "negate")),
    exp.Case: frozenset(("this", "ifs", "default")),
    exp.Cast: frozenset(("this", "to")),
    exp.Count: frozenset(("this", "expressions", "big_int")),  # the type of the number in other databases
    exp.Div: frozenset(("this", "expression", "typed", "safe")),  # the meaning of `/` in SQLite, see `_arithmetic`
    exp.DPipe: frozenset(("this", "expression", "safe")),
}
"""The parts that a node may have; any other part that sqlglot gives it would be lost."""

FindColumn = Callable[[exp.Column], Typed]


class Expressions:
    """Translates the expressions of one SELECT.

    Args:
        find_column: returns the expression of a column, or raises `Unfaithful`.
        bindings: values of the statement's parameters.

    Attributes:
        may_overflow: a value can exceed 64 bits: DuckDB then fails, where SQLite goes on with reals.
    """

    def __init__(self, find_column: FindColumn, bindings: Mapping[str, Value]) -> None:
        self._find_column = find_column
        self._bindings = bindings
        self.may_overflow = False

    def value(self, node: exp.Expr) -> Typed:
        """Return an expression as SQLite returns it: comparisons are 0 or 1.

        Raises:
            Unfaithful: DuckDB may return another value.
        """
        return _as_number(self.typed(node))

    def condition(self, node: exp.Expr) -> str:
        """Return an expression as a condition: in SQLite every number but 0 is true.

        Raises:
            Unfaithful: as for `value`.
        """
        typed = self.typed(node)
        if typed.kind in (ValueKind.BOOL, ValueKind.NULL):
            return typed.sql
        if typed.kind is ValueKind.INT:
            return f"({typed.sql} <> 0)"
        raise Unfaithful(f"a {typed.kind} as a condition")

    def typed(self, node: exp.Expr) -> Typed:
        """Return an expression with its kind; raises as `value`."""
        translate = _TRANSLATIONS.get(type(node))
        unknown = parts_of(node) - _PARTS.get(type(node), _USUAL_PARTS)
        if translate is None or unknown:
            raise Unfaithful(" with ".join([type(node).__name__.lower(), *unknown]))
        return translate(self, node)

    def _column(self, node: exp.Expr) -> Typed:
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            raise Unfaithful("*")
        return self._find_column(node)

    def _literal(self, node: exp.Expr) -> Typed:
        text = str(node.this)
        if isinstance(node, exp.Literal) and node.is_string:
            return constant(text)
        if re.fullmatch(r"\d+", text):
            return constant(int(text))
        if re.fullmatch(r"\d*\.?\d*(?:[eE][+-]?\d+)?", text) and len(re.sub(r"[eE].*|\D", "", text)) <= _SURE_DIGITS:
            return constant(float(text))
        raise Unfaithful(f"the number {text}")

    def _placeholder(self, node: exp.Expr) -> Typed:
        name = str(node.this)
        if name not in self._bindings:
            raise Unfaithful(f"the parameter {name}")
        return constant(self._bindings[name])

    def _negated(self, node: exp.Expr) -> Typed:
        operand = self.value(node.this)
        if operand.kind not in (ValueKind.INT, ValueKind.REAL):
            raise Unfaithful(f"minus a {operand.kind}")
        if isinstance(operand.literal, (int, float)):
            is_number = isinstance(node.this.unnest(), exp.Literal)
            return constant(-operand.literal if is_number else 0 - operand.literal)
        return Typed(f"(0 - {operand.sql})", operand.kind)  # as in SQLite: minus 0.0 is 0.0, except for -0.0 itself

    def _arithmetic(self, node: exp.Expr) -> Typed:
        left, right = self.value(node.this), self.value(node.expression)
        operator = _ARITHMETIC[type(node)]
        kinds = {left.kind, right.kind} - {ValueKind.NULL}
        if not kinds <= {ValueKind.INT, ValueKind.REAL} or not kinds:
            raise Unfaithful(f"{left.kind} {operator} {right.kind}")
        if kinds == {ValueKind.INT}:
            if operator in "/%":  # both databases cut towards 0; in SQLite a division by 0 is NULL
                return Typed(f"({left.sql} {'//' if operator == '/' else '%'} nullif({right.sql}, 0))", ValueKind.INT)
            self.may_overflow = True
            return Typed(f"({left.sql} {operator} {right.sql})", ValueKind.INT)
        if operator == "%":
            raise Unfaithful("% of reals")
        divisor = f"nullif({as_real(right)}, 0)" if operator == "/" else as_real(right)
        sql = f"({as_real(left)} {operator} {divisor})"
        return Typed(f"nullif({sql}, 'nan'::DOUBLE)", ValueKind.REAL)  # SQLite has no NaN

    def _comparison(self, node: exp.Expr) -> Typed:
        left, right = self._same_kind(node.this, node.expression)
        return Typed(f"({left} {_COMPARISONS[type(node)]} {right})", ValueKind.BOOL)

    def _same_kind(self, *nodes: exp.Expr) -> tuple[str, ...]:
        return same_kind([self.typed(node) for node in nodes])

    def _is(self, node: exp.Expr) -> Typed:
        truth = node.expression.unnest()
        if isinstance(truth, exp.Boolean):  # SQLite asks whether the left is true, not whether it is 1
            return Typed(f"({self.condition(node.this)} IS NOT DISTINCT FROM {truth.this})", ValueKind.BOOL)
        left, right = self._same_kind(node.this, node.expression)
        return Typed(f"({left} IS NOT DISTINCT FROM {right})", ValueKind.BOOL)

    def _between(self, node: exp.Expr) -> Typed:
        value, low = self._same_kind(node.this, node.args["low"])
        value_above, high = self._same_kind(node.this, node.args["high"])
        return Typed(f"({value} >= {low} AND {value_above} <= {high})", ValueKind.BOOL)

    def _in(self, node: exp.Expr) -> Typed:
        if parts_of(node) - {"this", "expressions"}:
            raise Unfaithful("IN with more than values")
        comparisons = []
        for each in node.expressions:
            left, right = self._same_kind(node.this, each)
            comparisons.append(f"{left} = {right}")
        return Typed(f"({' OR '.join(comparisons) or 'false'})", ValueKind.BOOL)

    def _logic(self, node: exp.Expr) -> Typed:
        word = "AND" if isinstance(node, exp.And) else "OR"
        return Typed(f"({self.condition(node.this)} {word} {self.condition(node.expression)})", ValueKind.BOOL)

    def _like(self, node: exp.Expr) -> Typed:
        text, pattern = self._matched(node)
        if not (text.is_ascii and pattern.isascii()):  # DuckDB folds other letters too, SQLite does not
            raise Unfaithful("LIKE on other letters than those of ASCII")
        word = "NOT ILIKE" if node.args.get("negate") else "ILIKE"
        return Typed(f"({text.sql} {word} {quote_text(pattern)})", ValueKind.BOOL)

    def _glob(self, node: exp.Expr) -> Typed:
        text, pattern = self._matched(node)
        if "[" in pattern:
            raise Unfaithful("GLOB with a set of characters")
        return Typed(f"({text.sql} LIKE {quote_text(pattern.translate(_GLOBBED))} ESCAPE '\\')", ValueKind.BOOL)

    def _matched(self, node: exp.Expr) -> tuple[Typed, str]:
        text, pattern = self.typed(node.this), self.typed(node.expression)
        if text.kind not in (ValueKind.TEXT, ValueKind.NULL) or not isinstance(pattern.literal, str):
            raise Unfaithful("LIKE or GLOB of other things than a text and a constant")
        return text, pattern.literal

    def _joined(self, node: exp.Expr) -> Typed:
        left, right = self.typed(node.this), self.typed(node.expression)
        if not {left.kind, right.kind} <= {ValueKind.TEXT, ValueKind.NULL}:
            raise Unfaithful("|| of other things than texts")
        return Typed(f"({left.sql} || {right.sql})", ValueKind.TEXT)

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
        kind = one_kind(results)
        pairs = zip(conditions, results[:-1], strict=True)
        whens = " ".join(f"WHEN {condition} THEN {result.sql}" for condition, result in pairs)
        return Typed(f"(CASE {whens} ELSE {results[-1].sql} END)", kind)

    def _call(self, node: exp.Expr) -> Typed:
        name = str(node.this).lower()
        if name == "total":
            return self._aggregated(node)
        arguments = [self.value(each) for each in node.expressions]
        kind = one_kind(arguments) if arguments else ValueKind.NULL
        listed = ", ".join(each.sql for each in arguments)
        if name in ("coalesce", "ifnull") and len(arguments) > 1:
            return Typed(f"coalesce({listed})", kind)
        if name == "nullif" and len(arguments) == 2:
            return Typed(f"nullif({listed})", kind)
        if name == "abs" and len(arguments) == 1 and kind is ValueKind.INT:
            return Typed(f"abs({listed})", ValueKind.INT)
        if name == "length" and len(arguments) == 1 and kind is ValueKind.TEXT:
            return Typed(f"length({listed})", ValueKind.INT)
        raise Unfaithful(f"the function {name}")

    def _cast(self, node: exp.Expr) -> Typed:
        operand, target = self.value(node.this), str(node.args["to"]).upper()
        if target in ("INTEGER", "INT", "BIGINT") and operand.kind is ValueKind.INT:
            return operand
        if target in ("REAL", "DOUBLE", "FLOAT") and operand.kind in (ValueKind.INT, ValueKind.REAL):
            return Typed(as_real(operand), ValueKind.REAL)
        if target == "TEXT" and operand.kind is ValueKind.TEXT:
            return operand
        raise Unfaithful(f"CAST of a {operand.kind} AS {target}")

    def _filter(self, node: exp.Expr) -> Typed:
        if not isinstance(node.this, _AGGREGATES) and not isinstance(node.this, exp.Anonymous):
            raise Unfaithful("FILTER")
        return self._aggregated(node.this, f" FILTER (WHERE {self.condition(node.expression.this)})")

    def _aggregated(self, node: exp.Expr, only: str = "") -> Typed:
        """Return an aggregate of one value; only whole numbers are summed, as a sum of reals depends on their order."""
        if isinstance(node, exp.Count):
            return Typed(f"count({self._counted(node)}){only}", ValueKind.INT)
        argument = node.expressions[0] if isinstance(node, exp.Anonymous) and node.expressions else node.this
        if (node.expressions and not isinstance(node, exp.Anonymous)) or not isinstance(argument, exp.Expr):
            raise Unfaithful("max or min of several values")
        value = self.value(argument)
        if isinstance(node, (exp.Min, exp.Max)):
            if value.kind is ValueKind.REAL:
                raise Unfaithful("the least of reals, as 0 has two signs")
            return Typed(f"{'min' if isinstance(node, exp.Min) else 'max'}({value.sql}){only}", value.kind)
        if value.kind not in (ValueKind.INT, ValueKind.NULL):
            raise Unfaithful(f"a sum of {value.kind}s")
        total = _sum(value, only)
        if isinstance(node, exp.Sum):
            return Typed(total, ValueKind.INT)
        if isinstance(node, exp.Avg):
            return Typed(f"(CAST({total} AS DOUBLE) / nullif(count({value.sql}){only}, 0))", ValueKind.REAL)
        if isinstance(node, exp.Anonymous) and str(node.this).lower() == "total" and len(node.expressions) == 1:
            return Typed(f"coalesce(CAST({total} AS DOUBLE), 0)", ValueKind.REAL)
        raise Unfaithful("an aggregate")

    def _counted(self, node: exp.Expr) -> str:
        if isinstance(node.this, exp.Star) or node.this is None:
            return "*"
        if isinstance(node.this, exp.Distinct):
            (each,) = node.this.expressions if len(node.this.expressions) == 1 else (None,)
            value = self.value(each) if each is not None else constant(None)
            if value.kind not in (ValueKind.INT, ValueKind.TEXT):
                raise Unfaithful(f"different {value.kind}s")
            return f"DISTINCT {value.sql}"
        return self.value(node.this).sql


def _sum(numbers: Typed, only: str) -> str:
    """Return the sum of whole numbers; an error if a partial sum might exceed 64 bits, which is an error in SQLite."""
    total = f"CAST(sum({numbers.sql}){only} AS BIGINT)"
    if numbers.has_sum:
        return total
    fits = f"coalesce(sum(abs({numbers.sql})){only}, 0) <= {MOST_OF_64_BITS}"
    return f"CASE WHEN {fits} THEN {total} ELSE error('a sum beyond 64 bits') END"


_TRANSLATIONS: dict[type[exp.Expr], Callable[[Expressions, exp.Expr], Typed]] = {
    exp.Paren: lambda self, node: self.typed(node.this),
    exp.Column: Expressions._column,
    exp.Literal: Expressions._literal,
    exp.Null: lambda _self, _node: constant(None),
    exp.Boolean: lambda _self, node: constant(1 if node.this else 0),
    exp.Placeholder: Expressions._placeholder,
    exp.Neg: Expressions._negated,
    **dict.fromkeys(_ARITHMETIC, Expressions._arithmetic),
    **dict.fromkeys(_COMPARISONS, Expressions._comparison),
    exp.Is: Expressions._is,
    exp.NullSafeEQ: Expressions._is,
    exp.NullSafeNEQ: lambda self, node: Typed(f"(NOT {self._is(node).sql})", ValueKind.BOOL),
    exp.Between: Expressions._between,
    exp.In: Expressions._in,
    exp.And: Expressions._logic,
    exp.Or: Expressions._logic,
    exp.Not: lambda self, node: Typed(f"(NOT {self.condition(node.this)})", ValueKind.BOOL),
    exp.Like: Expressions._like,
    exp.Glob: Expressions._glob,
    exp.DPipe: Expressions._joined,
    exp.Case: Expressions._case,
    exp.Anonymous: Expressions._call,
    exp.Cast: Expressions._cast,
    exp.Filter: Expressions._filter,
    **dict.fromkeys(_AGGREGATES, Expressions._aggregated),
}
