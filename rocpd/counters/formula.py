"""Reads formulas over counters: the grammar of rocprofv3's derived counters, and further functions for panels.

A value is a number or an array with a row for each dispatch; `reduce` works along the last axis, the instances of a
counter. Nothing is guessed: a quotient by 0 is missing (NaN), and so is every value calculated from a missing one.
Grammar: https://github.com/ROCm/rocprofiler-sdk, `counters/parser/parser.y`.
"""

from __future__ import annotations

import ast
import functools
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

Value: TypeAlias = Any
"""A float, or an array of floats."""

_COMMENT = re.compile(r"//[^\n]*")
_DIMENSIONS = re.compile(r",\s*(\[(?:[^\[\]]|\[[^\]]*\])*\])")


class FormulaError(ValueError):
    """A text is no formula."""


class MissingError(LookupError):
    """A value that a formula needs is missing; the argument is its name."""


class AbstainError(LookupError):
    """A formula can't be calculated from the content of a file; the argument says why."""


Node: TypeAlias = ast.expr
"""A formula, or a part of one: Python's syntax tree of its text, with dimensions as texts, checked by `parse`."""

_NO_TERMS: Mapping[str, Node] = {}

_OPERATORS: Mapping[type, Callable[..., Value]] = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}
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

    >>> ast.unparse(parse("100 * HIT / (HIT + MISS)").right)
    'HIT + MISS'

    Raises:
        FormulaError: the text is no formula; the message names the wrong part.
    """
    plain = _DIMENSIONS.sub(lambda match: f", {match[1]!r}", _COMMENT.sub("", text))
    try:
        return _checked(ast.parse(f"(\n{plain}\n)", mode="eval").body)
    except (SyntaxError, FormulaError) as error:
        raise FormulaError(f"not a formula, {error.args[0]}: {text}") from error


def _checked(node: Node) -> Node:
    """Return a part of a formula, or refuse it if it cannot be one."""
    match node:
        case ast.Constant(int() | float() as number) if not isinstance(number, bool):
            node.value = float(number)
        case ast.Name() | ast.UnaryOp(ast.USub()) | ast.BinOp(_, ast.Add() | ast.Sub() | ast.Mult() | ast.Div()):
            pass
        case ast.Call(ast.Name(function), arguments, []) if function in _ARITIES:
            values, dimensions = arguments[: _ARITIES[function]], arguments[_ARITIES[function] :]
            if len(values) < _ARITIES[function] or not _are_dimensions(dimensions):
                raise FormulaError(f"{function} takes {_ARITIES[function]} arguments")
        case ast.Call(ast.Name(function)):
            raise FormulaError(f"no function is called {function}")
        case _:
            raise FormulaError(f"{ast.unparse(node)!r} is none")
    for part in parts(node):
        _checked(part)
    return node


def _are_dimensions(arguments: Sequence[ast.expr]) -> bool:
    return len(arguments) < 2 and all(isinstance(each, ast.Constant) and type(each.value) is str for each in arguments)


def parts(node: Node) -> Sequence[Node]:
    """Return the parts of a formula that have values, in their order."""
    match node:
        case ast.UnaryOp(_, value):
            return [value]
        case ast.BinOp(left, _, right):
            return [left, right]
        case ast.Call(ast.Name(function), arguments):
            return arguments[: _ARITIES[function]]
    return []


def names_in(node: Node) -> Iterator[str]:
    """Yield the names in a formula, in their order; an accumulated counter as `ACC(…)`."""
    match node:
        case ast.Name(name):
            yield name
        case ast.Call(ast.Name("ACC" | "accumulate"), [ast.Name(name), *_]):
            yield f"ACC({name})"
        case ast.Call(ast.Name("reduce"), [inner, *_]):
            yield from names_in(inner)
        case _:
            for part in parts(node):
                yield from names_in(part)


def evaluate(node: Node, leaf: Callable[[str], Value], terms: Mapping[str, Node] = _NO_TERMS) -> Value:
    """Return the value of a formula.

    Args:
        node: the formula.
        leaf: returns the value of a name; `ACC(X)` is the sum of X that the hardware accumulated cycle by cycle.
        terms: name -> formula that it stands for.

    Raises:
        MissingError: a name has no value.
        AbstainError: it needs data that files don't hold.
    """
    match node:
        case ast.Constant(number):
            return number
        case ast.Name(name):
            return evaluate(terms[name], leaf, terms) if name in terms else leaf(name)
        case ast.UnaryOp(_, value):
            return _calculated(ast.Sub(), 0.0, evaluate(value, leaf, terms))
        case ast.BinOp(left, sign, right):
            return _calculated(sign, evaluate(left, leaf, terms), evaluate(right, leaf, terms))
        case ast.Call(ast.Name("ACC" | "accumulate"), [ast.Name(name), *_]):
            return leaf(f"ACC({name})")
        case ast.Call(ast.Name("reduce"), [inner, ast.Name(how), *dimensions]):
            return reduced(evaluate(inner, leaf, terms), how, has_dimensions=bool(dimensions))
        case ast.Call(ast.Name("select")):
            raise AbstainError("select needs the dimensions of counters, which the file does not hold")
        case ast.Call(ast.Name(function)) if function in _FUNCTIONS:
            return _FUNCTIONS[function](*(evaluate(part, leaf, terms) for part in parts(node)))
    raise AbstainError(f"{ast.unparse(node)} says nothing")


def _calculated(sign: ast.operator, left: Value, right: Value) -> Value:
    try:
        with np.errstate(all="ignore"):
            if type(sign) in _OPERATORS:
                return _OPERATORS[type(sign)](left, right)
            quotient = np.divide(left, right)
    except ValueError as error:
        raise AbstainError("counters of different numbers of instances") from error
    known = np.where(np.isfinite(quotient), quotient, np.nan)
    return known if known.ndim else float(known)


def reduced(value: Value, how: str, *, has_dimensions: bool = False) -> Value:
    """Return the instances of a counter reduced to one value.

    Raises:
        AbstainError: the reduction is unknown.
    """
    if has_dimensions:
        raise AbstainError("reduce by dimension needs the dimensions of counters, which the file does not hold")
    if how not in _REDUCTIONS:
        raise AbstainError(f"reduce knows no {how}")
    if np.ndim(value) < 2:
        return value
    empty = np.isnan(value).all(axis=-1, keepdims=True)
    filled = np.where(empty, 0.0, value)
    return np.where(empty, np.nan, _REDUCTIONS[how](filled, axis=-1, keepdims=True))
