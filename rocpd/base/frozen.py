"""`frozen` makes the values that go from stage to stage: dataclasses whose fields are set once.

`dataclasses.dataclass(frozen=True)` compiles six methods per class, 0.8 ms: for the 65 classes that converting a file
imports, half as long as the conversion of a small one takes. Here one is compiled, the constructor, and the others
go by the fields.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, dataclass_transform, overload

Class = TypeVar("Class", bound=type[Any])
_MADE = getattr(dataclasses, "_HAS_DEFAULT_FACTORY", dataclasses.MISSING)  # which `help` shows as <factory>


@overload
def frozen(cls: Class) -> Class: ...
@overload
def frozen(*, kw_only: bool = ...) -> Callable[[Class], Class]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def frozen(cls: Any = None, *, kw_only: bool = False) -> Any:
    """Make a dataclass of a class: as `dataclasses.dataclass(frozen=True)` does, and `replace`, `fields` … work alike.

    >>> @frozen
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> Point(1), Point(1) == Point(1, 0), len({Point(1), Point(1, 0)}), dataclasses.replace(Point(1), y=2)
    (Point(x=1, y=0), True, 1, Point(x=1, y=2))
    >>> Point(1).x = 3
    Traceback (most recent call last):
    dataclasses.FrozenInstanceError: cannot assign to field 'x'

    Args:
        cls: the class.
        kw_only: fields are given by name.
    """
    return _made(cls, kw_only=kw_only) if cls else lambda cls: _made(cls, kw_only=kw_only)


def _made(cls: type[Any], *, kw_only: bool) -> type[Any]:
    cls = dataclasses.dataclass(cls, init=False, repr=False, eq=False, kw_only=kw_only)
    fields = dataclasses.fields(cls)
    for name, method in (_methods(fields) | {"__init__": _constructor(cls, fields)}).items():
        if vars(cls).get(name) is None:
            setattr(cls, name, method)
    return cls


def _constructor(cls: type[Any], fields: Sequence[dataclasses.Field[Any]]) -> Callable[..., None]:
    """Compile `__init__`: it puts fields where they belong, as setting each by a method is most of what a value costs.

    A small job makes two thousand values for each rank.
    """
    given: dict[str, Any] = {"MISSING": _MADE}
    parameters, body = {False: ["self"], True: ["*"]}, ["fields_of_self = self.__dict__"]
    for field in fields:
        name, default = field.name, f"default_{field.name}"
        is_made = field.default_factory is not dataclasses.MISSING
        given[default] = field.default_factory if is_made else field.default
        is_given = is_made or field.default is not dataclasses.MISSING
        parameters[bool(field.kw_only)].append(f"{name}={'MISSING' if is_made else default}" if is_given else name)
        value = f"{default}() if {name} is MISSING else {name}" if is_made else name
        body.append(f"fields_of_self[{name!r}] = {value}")
    body += ["self.__post_init__()"] if hasattr(cls, "__post_init__") else []
    listed = ", ".join(parameters[False] + (parameters[True] if len(parameters[True]) > 1 else []))
    exec("\n ".join([f"def __init__({listed}):", *body]), given)
    made: Callable[..., None] = given["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = {field.name: field.type for field in fields} | {"return": None}
    return made


def _methods(fields: Sequence[dataclasses.Field[Any]]) -> dict[str, Any]:
    every = frozenset(field.name for field in fields)
    shown = [field.name for field in fields if field.repr]
    compared = [field.name for field in fields if field.compare]
    values: Callable[[Any], Any] = operator.attrgetter(*compared) if compared else lambda _: ()

    def set_once(self: Any, name: str, value: object) -> None:
        values_of_self = self.__dict__
        if name in values_of_self or name not in every:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        values_of_self[name] = value

    def refuse_to_delete(_self: Any, name: str) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")

    def equal(self: Any, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def hash_of(self: Any) -> int:
        return hash(values(self))

    def text_of(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    return {
        "__eq__": equal,
        "__hash__": hash_of,
        "__repr__": text_of,
        "__setattr__": set_once,
        "__delattr__": refuse_to_delete,
    }
