"""`frozen` makes what `dataclasses.dataclass(frozen=True)` makes."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import field
from functools import cached_property
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocpd.base import frozen


def _build(decorate: Callable[..., Any]) -> tuple[type[Any], type[Any]]:
    @decorate
    class Base:
        """A value."""

        known: ClassVar = 3

        number: int
        hidden: str = field(default="", repr=False)
        cache: list[int] = field(default_factory=list, compare=False)

        @cached_property
        def double(self) -> int:
            return 2 * self.number

    @decorate(kw_only=True)
    class Value(Base):
        """A value with more."""

        more: float = 0.5

        def __repr__(self) -> str:
            return f"<{self.number}>"

    return Base, Value


def _standard(cls: Any = None, **options: bool) -> Any:
    return dataclasses.dataclass(cls, frozen=True, **options)


(BASE, OURS), (STANDARD_BASE, STANDARD) = _build(frozen), _build(_standard)


@frozen
class Sent:
    """Something that is pickled."""

    number: int
    text: str = "x"


def test_constructors_are_alike() -> None:
    for ours, standard in ((OURS, STANDARD), (BASE, STANDARD_BASE)):
        assert inspect.signature(ours) == inspect.signature(standard)
        assert [f.name for f in dataclasses.fields(ours)] == [f.name for f in dataclasses.fields(standard)]
        assert ours.__match_args__ == standard.__match_args__
    for arguments in list[tuple[object, ...]]([(), (1, "a", [], 0.5), ("a",)]):
        assert _outcome(OURS, arguments) == _outcome(STANDARD, arguments)


def _outcome(made: type[Any], arguments: tuple[object, ...]) -> str:
    try:
        return repr(made(*arguments))
    except TypeError as error:
        return str(error)


@given(*[st.tuples(st.integers(0, 1), st.sampled_from("ab"), st.lists(st.integers(0, 1), max_size=1))] * 2)
def test_equality_hashes_and_texts_are_alike(one: tuple[Any, ...], two: tuple[Any, ...]) -> None:
    ours, standard = (BASE(*one), BASE(*two)), (STANDARD_BASE(*one), STANDARD_BASE(*two))
    assert (ours[0] == ours[1]) == (standard[0] == standard[1])
    assert (hash(ours[0]) == hash(ours[1])) == (ours[0] == ours[1])
    assert repr(ours[0]) == repr(standard[0])
    assert dataclasses.replace(ours[0], number=two[0], hidden=two[1]) == ours[1]


def test_classes_differ() -> None:
    assert BASE(1) != OURS(1)
    assert BASE(1) != 1
    assert repr(OURS(1)) == "<1>"


def test_nothing_changes() -> None:
    value = OURS(1)
    for name in ("number", "cache", "double", "known", "new"):
        with pytest.raises(dataclasses.FrozenInstanceError, match=f"cannot assign to field '{name}'"):
            setattr(value, name, 2)
        with pytest.raises(dataclasses.FrozenInstanceError, match=f"cannot delete field '{name}'"):
            delattr(value, name)
    assert (value.number, value.double, value.known) == (1, 2, 3)


def test_values_are_copied_and_sent() -> None:
    value = Sent(3, "y")
    for same in (pickle.loads(pickle.dumps(value)), copy.copy(value), copy.deepcopy(value)):
        assert same == value
        with pytest.raises(dataclasses.FrozenInstanceError):
            same.number = 4  # type: ignore[misc]
