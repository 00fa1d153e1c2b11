"""Reads formulas over counters: the grammar of rocprofv3's derived counters, and functions that panels need besides.

A value is a number or an array with a row for each dispatch; `reduce` works along the last axis, that of the instances
of a counter. Nothing is guessed: what divides by 0 is missing (NaN), and so is what rests on something missing.
Grammar: https://github.com/ROCm/rocprofiler-sdk, `counters/parser/parser.y`.
"""

from __future__ import annotations

import ast
import functools
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from rocpd.base import frozen

Value: TypeAlias = Any
"""A float, or an array of floats."""

_COMMENT = re.compile(r"//[^\n]*")
_DIMENSIONS = re.compile(r",\s*(\[(?:[^\[\]]|\[[^\]]*\])*\])")
_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


class FormulaError(ValueError):
    """A text is no formula."""


class MissingError(LookupError):
    """A value that a formula needs is not there; the argument is its name."""


class AbstainError(LookupError):
    """A formula can't be calculated from what a file holds; the argument says why."""


@frozen
class Number:
    """A number."""

    number: float


@frozen
class NamedValue:
    """A name that stands for a value."""

    name: str


@frozen
class Operation:
    """Two values and what is between them: `+`, `-`, `*` or `/`."""

    operator: str
    left: Node
    right: Node


@frozen
class Call:
    """A function with its arguments; `reduce` and `select` may have dimensions, as they stand in brackets."""

    function: str
    arguments: tuple[Node, ...]
    dimensions: str = ""


Node: TypeAlias = Number | NamedValue | Operation | Call

_NO_TERMS: Mapping[str, Node] = {}

_OPERATORS: Mapping[str, Callable[..., Value]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_REDUCTIONS: Mapping[str, Callable[..., Value]] = {
    "sum": np.nansum,
    "max": np.nanmax,
    "min": np.nanmin,
    "avr": np.nanmean,
}
_FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    "MIN": np.minimum,
    "MAX": np.maximum,
    "MOD": np.mod,
    "ROUND": np.round,
    "INT": np.trunc,
}
_ARITIES = {"MIN": 2, "MAX": 2, "MOD": 2, "ROUND": 1, "INT": 1, "ACC": 1, "accumulate": 2, "reduce": 2, "select": 1}


@functools.lru_cache(maxsize=4096)
def parse(text: str) -> Node:
    """Return the tree of a formula.

    >>> parse("100 * HIT / (HIT + MISS)").right
    Operation(operator='+', left=NamedValue(name='HIT'), right=NamedValue(name='MISS'))

    Raises:
        FormulaError: the text is no formula; the message says where.
    """
    plain = _DIMENSIONS.sub(lambda match: f", {match[1]!r}", _COMMENT.sub("", text))
    try:
        return _node(ast.parse(f"(\n{plain}\n)", mode="eval").body)
    except (SyntaxError, FormulaError) as error:
        raise FormulaError(f"not a formula, {error.args[0]}: {text}") from error


def _node(tree: ast.expr) -> Node:
    """Return the tree of a formula, given that of the same text as Python, with dimensions as texts."""
    match tree:
        case ast.Constant(int() | float() as number) if not isinstance(number, bool):
            return Number(float(number))
        case ast.Name(name):
            return NamedValue(name)
        case ast.UnaryOp(ast.USub(), value):
            return Operation("-", Number(0.0), _node(value))
        case ast.BinOp(left, sign, right) if type(sign) in _SIGNS:
            return Operation(_SIGNS[type(sign)], _node(left), _node(right))
        case ast.Call(ast.Name(function), arguments, []) if function in _ARITIES:
            dimensions = [
                each.value for each in arguments if isinstance(each, ast.Constant) and type(each.value) is str
            ]
            values = arguments[: len(arguments) - len(dimensions)]
            if len(values) != _ARITIES[function] or len(dimensions) > 1:
                raise FormulaError(f"{function} takes {_ARITIES[function]} arguments")
            return Call(function, tuple(map(_node, values)), *dimensions)
        case ast.Call(ast.Name(function)):
            raise FormulaError(f"no function is called {function}")
    raise FormulaError(f"{ast.unparse(tree)!r} is none")


def names_in(node: Node) -> Iterator[str]:
    """Yield the names in a formula, in their order; an accumulated counter as `ACC(…)`."""
    match node:
        case NamedValue(name):
            yield name
        case Operation(_, left, right):
            yield from names_in(left)
            yield from names_in(right)
        case Call("ACC" | "accumulate", (NamedValue(name), *_)):
            yield f"ACC({name})"
        case Call("reduce", (inner, *_)):
            yield from names_in(inner)
        case Call(_, arguments):
            for argument in arguments:
                yield from names_in(argument)


def evaluate(node: Node, leaf: Callable[[str], Value], terms: Mapping[str, Node] = _NO_TERMS) -> Value:
    """Return the value of a formula.

    Args:
        node: the formula.
        leaf: returns what a name stands for; `ACC(X)` is what the hardware accumulated of X, cycle by cycle.
        terms: names that stand for formulas.

    Raises:
        MissingError: a name stands for nothing.
        AbstainError: it needs what files don't hold.
    """
    match node:
        case Number(number):
            return number
        case NamedValue(name):
            return evaluate(terms[name], leaf, terms) if name in terms else leaf(name)
        case Operation(sign, left, right):
            return _calculated(sign, evaluate(left, leaf, terms), evaluate(right, leaf, terms))
        case Call("ACC" | "accumulate", (NamedValue(name), *_)):
            return leaf(f"ACC({name})")
        case Call("reduce", (inner, NamedValue(how)), dimensions):
            return reduced(evaluate(inner, leaf, terms), how, dimensions)
        case Call("select"):
            raise AbstainError("select needs the dimensions of counters, which the file does not hold")
        case Call(function, arguments) if function in _FUNCTIONS:
            return _FUNCTIONS[function](*(evaluate(argument, leaf, terms) for argument in arguments))
    raise AbstainError(f"{node} says nothing")


def _calculated(sign: str, left: Value, right: Value) -> Value:
    try:
        with np.errstate(all="ignore"):
            if sign in _OPERATORS:
                return _OPERATORS[sign](left, right)
            quotient = np.divide(left, right)
    except ValueError as error:
        raise AbstainError("counters of different numbers of instances") from error
    known = np.where(np.isfinite(quotient), quotient, np.nan)
    return known if known.ndim else float(known)


def reduced(value: Value, how: str, dimensions: str = "") -> Value:
    """Put the instances of a counter together.

    Raises:
        AbstainError: nobody knows how.
    """
    if dimensions:
        raise AbstainError("reduce by dimension needs the dimensions of counters, which the file does not hold")
    if how not in _REDUCTIONS:
        raise AbstainError(f"reduce knows no {how}")
    if np.ndim(value) < 2:
        return value
    empty = np.isnan(value).all(axis=-1, keepdims=True)
    filled = np.where(empty, 0.0, value)
    return np.where(empty, np.nan, _REDUCTIONS[how](filled, axis=-1, keepdims=True))
