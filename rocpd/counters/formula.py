"""Reads formulas over counters: the grammar of rocprofv3's derived counters, and functions that panels need besides.

A value is a number or an array with a row for each dispatch; `reduce` works along the last axis, that of the instances
of a counter. Nothing is guessed: what divides by 0 is missing (NaN), and so is what rests on something missing.
Grammar: https://github.com/ROCm/rocprofiler-sdk, `counters/parser/parser.y`.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from rocpd.base.frozen import frozen

Value: TypeAlias = Any
"""A float, or an array of floats."""

_TOKEN = re.compile(
    r"\s*(?://[^\n]*|(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)|([A-Za-z_]\w*)|(\[(?:[^\[\]]|\[[^\]]*\])*\])|(.))"
)


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
    return _Parser(text).whole()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        matches = (match for match in _TOKEN.finditer(text) if match.lastindex)
        self._tokens = [(match.lastindex, match[match.lastindex or 0]) for match in matches if match[0].strip()]
        self._at = 0

    def whole(self) -> Node:
        node = self._sum()
        if self._at < len(self._tokens):
            raise self._error()
        return node

    def _sum(self) -> Node:
        return self._chain("+-", lambda: self._chain("*/", self._factor))

    def _chain(self, operators: str, part: Callable[[], Node]) -> Node:
        node = part()
        while self._sign() and self._sign() in operators:
            node = Operation(self._take()[1], node, part())
        return node

    def _sign(self) -> str:
        kind, text = self._tokens[self._at] if self._at < len(self._tokens) else (None, "")
        return text if kind == 4 else ""

    def _take(self) -> tuple[int | None, str]:
        if self._at >= len(self._tokens):
            raise self._error()
        self._at += 1
        return self._tokens[self._at - 1]

    def _factor(self) -> Node:
        kind, text = self._take()
        if kind == 1:
            return Number(float(text))
        if kind == 2:
            return self._call(text) if self._sign() == "(" else NamedValue(text)
        if text == "-":
            return Operation("-", Number(0.0), self._factor())
        if text != "(":
            self._at -= 1
            raise self._error()
        node = self._sum()
        self._expect(")")
        return node

    def _call(self, function: str) -> Node:
        if function not in _ARITIES:
            raise FormulaError(f"no function is called {function}: {self._text}")
        self._expect("(")
        arguments, dimensions = [self._sum()], ""
        while self._sign() == ",":
            self._take()
            if self._at < len(self._tokens) and self._tokens[self._at][0] == 3:
                dimensions = self._take()[1]
            else:
                arguments.append(self._sum())
        self._expect(")")
        if len(arguments) != _ARITIES[function]:
            raise FormulaError(f"{function} takes {_ARITIES[function]} arguments: {self._text}")
        return Call(function, tuple(arguments), dimensions)

    def _expect(self, sign: str) -> None:
        if self._sign() != sign:
            raise self._error()
        self._take()

    def _error(self) -> FormulaError:
        read = " ".join(text for _, text in self._tokens[: self._at])
        return FormulaError(f"not a formula after {read!r}: {self._text}")


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
