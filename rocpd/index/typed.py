"""Expressions of DuckDB with the kind of their values, and what makes several of them comparable as in SQLite.

A column holds values of one kind, or the index does without it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from rocpd.base import Value, frozen
from rocpd.federate.plan.steps import Unfaithful
from rocpd.index.entries import ValueKind
from rocpd.schema.quote import quote_text

MOST_OF_64_BITS = (1 << 63) - 1
_EXACT = 1 << 53  # whole numbers up to here are doubles too


@frozen
class Typed:
    """An expression of DuckDB.

    Args:
        sql: its text, in parentheses where it needs them.
        kind: of its values.
        literal: its value, where it is a constant.
        is_ascii: its texts hold characters of ASCII only.
        has_sum: the sum of its whole numbers without their signs is below 2^63, in whatever rows of a view.
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
        Unfaithful: a blob, a text with a NUL, an infinite number, one that has no opposite of 64 bits.
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
    """Return what is compared, all of one kind.

    SQLite compares whole numbers with reals exactly, DuckDB as doubles: one of them must be a constant that both have.

    Raises:
        Unfaithful: SQLite would convert one, or compare different kinds.
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
    """Return whole numbers and reals as one of both: constants become what the others are."""
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
    """Return the kind that all values have, beside NULL; raises as `same_kind`."""
    kinds = {value.kind for value in values} - {ValueKind.NULL}
    if len(kinds) > 1:
        raise Unfaithful(f"values of several kinds: {', '.join(sorted(kinds))}")
    return kinds.pop() if kinds else ValueKind.NULL
