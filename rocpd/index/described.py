"""Describes values as texts that are the same in every process: what a work on a rank is, and what it is given.

A text stands for one value: a function for its name, everything else for all that it holds.
"""

from __future__ import annotations

import copyreg
import functools
import types
from collections.abc import Iterable
from pathlib import PurePath
from typing import Any

_PLAIN = (types.NoneType, bool, int, float, str, bytes)
_NAMED = (type, types.FunctionType, types.BuiltinFunctionType)
_PACKAGES = ("rocpd", "builtins", "collections", "copyreg", "enum", "functools", "numpy", "operator", "re")


class Indescribable(Exception):  # noqa: N818 (a reason, not a failure)
    """A value is of another package, names a file, or can't be sent to another process."""


def described(value: Any) -> str:
    """Return the description of a value.

    >>> described((1, "a", {"b"})), described(frozenset("ba")) == described(frozenset("ab"))
    ("tuple(1,'a',set('b'))", True)
    >>> described(lambda: 1)
    Traceback (most recent call last):
    rocpd.index.described.Indescribable: <lambda>

    Raises:
        Indescribable: it has none.
    """
    kind = type(value)
    if kind in _PLAIN:
        return repr(value)
    if kind in (tuple, list):
        return _listed(kind.__name__, map(described, value))
    if kind in (set, frozenset):
        return _listed(kind.__name__, sorted(map(described, value)))
    if kind in (dict, types.MappingProxyType):
        return _listed("dict", (f"{described(key)}:{described(each)}" for key, each in value.items()))
    if kind is functools.partial:
        return _listed("partial", map(described, (value.func, value.args, value.keywords)))
    parts = value if isinstance(value, _NAMED) else _parts(value)
    if not isinstance(parts, tuple):
        return _name(value)
    return _listed("made", (described(tuple(part) if hasattr(part, "__next__") else part) for part in parts))


def _parts(value: Any) -> Any:
    """Return what a copy of a value is made of, as pickle has it; anything but a tuple: it is known by its name."""
    if isinstance(value, PurePath):
        raise Indescribable("a path, whose file may change")
    try:
        reduce = copyreg.dispatch_table.get(type(value))
        return reduce(value) if reduce else value.__reduce_ex__(4)
    except TypeError as error:
        raise Indescribable(str(error)) from error


def _name(value: Any) -> str:
    module, name = value.__module__ or "", value.__qualname__
    if module.partition(".")[0] not in _PACKAGES or "<" in name:
        raise Indescribable(name)
    return f"{module}:{name}"


def _listed(kind: str, parts: Iterable[str]) -> str:
    return f"{kind}({','.join(parts)})"
