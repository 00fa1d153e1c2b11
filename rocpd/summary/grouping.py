"""Adds up the answers of ranks, by division and by counted thing, and puts sums in order.

Sums merge in any order, field by field and key by key. Never reads a rank, and knows no table.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import reduce
from typing import Any, Self, TypeVar

from rocpd.base import RocpdError, Row, frozen
from rocpd.facts.spread import Spread

Key = TypeVar("Key")
Division = TypeVar("Division", bound=Row)
What = TypeVar("What")
Value = TypeVar("Value")


@frozen
class Total:
    """Base of sums that are added up field by field."""

    def __add__(self, other: Self) -> Self:
        return type(self)(*(getattr(self, item.name) + getattr(other, item.name) for item in fields(self)))


class Sums(tuple[Any, ...]):
    """Several sums side by side, added up one by one.

    >>> Sums((1, 2.5)) + Sums((3, 4))
    (4, 6.5)
    """

    __slots__ = ()

    def parts(self) -> tuple[tuple[Any, ...]]:
        """Return the arguments that make an equal one."""
        return (tuple(self),)

    def __add__(self, other: tuple[Any, ...]) -> Self:
        return type(self)(map(operator.add, self, other))


class Largest(int):
    """A number of which the larger one counts where others are added up."""

    def parts(self) -> tuple[int]:
        """Return the arguments that make an equal one."""
        return (int(self),)

    def __add__(self, other: int) -> Largest:
        return Largest(max(self, other))


def merge(sums: dict[Key, Value], part: Mapping[Key, Value]) -> None:
    """Add the sums of a part to others, key by key; nested mappings are added likewise."""
    known: dict[Key, Any] = sums
    for key, value in part.items():
        if isinstance(value, dict):
            merge(known.setdefault(key, {}), value)
        else:
            known[key] = known[key] + value if key in known else value


def add(groups: dict[Key, dict[What, Value]], key: Key, what: What, value: Value) -> None:
    """Add one sum to those of a division."""
    merge(groups.setdefault(key, {}), {what: value})


def together(answers: Sequence[Any]) -> Any:
    """Return several answers as one: sums are added key by key and part by part, lists are joined.

    All at once: added one by one, each sum would be made anew.

    >>> together([{"a": 1}, {"a": 2, "b": 3}]), together([({"a": 1}, [2]), ({}, [3])])
    ({'a': 3, 'b': 3}, ({'a': 1}, [2, 3]))
    """
    first = answers[0]
    if isinstance(first, dict):
        by_key: dict[Any, list[Any]] = {}
        for mapping in answers:
            for key, value in mapping.items():
                by_key.setdefault(key, []).append(value)
        sums = {key: together(of_key) for key, of_key in by_key.items()}
        return Counter(sums) if isinstance(first, Counter) else sums
    if isinstance(first, tuple) and not isinstance(first, Sums):
        return tuple(map(together, zip(*answers, strict=True)))
    if len(answers) == 1:
        return first
    if isinstance(first, Sums):
        return Sums(map(together, zip(*answers, strict=True)))
    return Spread.sum(answers) if isinstance(first, Spread) else reduce(operator.add, answers)


def added(answers: Iterable[tuple[object, Any]], what: str = "", hint: str | None = None) -> Any:
    """Return the answers of all ranks as one, as `together`.

    Args:
        answers: pairs of a rank and its answer.
        what: name of the things counted in the answer, or in its first part; empty: there may be none of them.
        hint: how they are recorded.

    Raises:
        RocpdError: there are none.
    """
    every = [answer for _, answer in answers]
    whole = together(every) if every else {}
    if what and not (whole[0] if isinstance(whole, tuple) else whole):
        raise nothing(what, hint)
    return whole


def nothing(what: str, hint: str | None = None) -> RocpdError:
    """Return the error that a job lacks the things that an analysis is about."""
    return RocpdError(f"no {what} in the selection", hint)


def in_order(groups: Mapping[Division, Value]) -> list[tuple[Division, Value]]:
    """Return divisions with their values, sorted by `order_of`."""
    return [(key, groups[key]) for key in sorted(groups, key=order_of)]


def rows_of(groups: Mapping[Division, Value], rows: Callable[[Division, Value], Iterable[Row]]) -> Iterator[Row]:
    """Yield the rows of each division, in order."""
    return (row for key, group in in_order(groups) for row in rows(key, group))


def most_first(sums: Mapping[What, Value], size: Callable[[Value], float]) -> list[tuple[What, Value]]:
    """Return sums by counted thing, the largest first; equal ones by `order_of`."""

    def order(item: tuple[What, Value]) -> tuple[float, object]:
        what, value = item
        return -size(value), order_of(what if isinstance(what, tuple) else (what,))

    return sorted(sums.items(), key=order)


def order_of(key: Sequence[object]) -> tuple[tuple[Any, ...], ...]:
    """Return the sort key of numbers, texts and NULL: numbers by size, then texts by letters, then NULL."""
    return tuple((0, value) if isinstance(value, int) else (2,) if value is None else (1, str(value)) for value in key)


def percent(part: float, whole: float) -> float | None:
    """Return a share in percent; None where the whole is 0."""
    return part * 100 / whole if whole else None


def ratio(part: float, whole: float) -> float | None:
    """Return a part divided by the whole; None where the whole is 0."""
    return part / whole if whole else None
