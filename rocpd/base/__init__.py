"""The basics that every module may use: types, errors, `frozen`, amounts. Beside them options, outputs, identities.

Knows nothing of traces.

The errors here are those that the project raises on purpose, each with its exit code. They never print and never exit:
the command line turns them into one line and one hint.

`frozen` makes the values that go from stage to stage: dataclasses whose fields are set once.
`dataclasses.dataclass(frozen=True)` compiles six methods per class in 0.8 ms: for the 65 classes that converting a file
imports, half of the time of converting a small file. Here only the constructor is compiled, and the other methods go
through the fields.
"""

from __future__ import annotations

import dataclasses
import enum
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, dataclass_transform, overload

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Value: TypeAlias = int | float | str | bytes | None
"""A value of SQLite."""

Row: TypeAlias = tuple[Any, ...]
"""A row of a statement or of a table."""

Parameters: TypeAlias = Sequence[Value] | Mapping[str, Value] | None
"""Values for the `?` or `:name` of a statement."""

Progress: TypeAlias = Callable[[int, int], None]
"""Called with (amount done, amount in all)."""

_Key = TypeVar("_Key")
_Item = TypeVar("_Item")

Answer = TypeVar("Answer")
"""The value that work on one rank returns."""

Ints: TypeAlias = "npt.NDArray[np.int64]"
Codes: TypeAlias = "npt.NDArray[np.int8]"
Floats: TypeAlias = "npt.NDArray[np.float64]"
Flags: TypeAlias = "npt.NDArray[np.bool_]"


class AmdVersion(enum.StrEnum):
    """The year of AMD's tool whose names of files and columns an output has."""

    V2025 = "2025"
    V2026 = "2026"


NULL = -(1 << 62) - 1
"""The value for NULL in `Ints`. No id, time, size or address has this value, and time - NULL does not overflow."""


class Exit(enum.IntEnum):
    """Exit codes of the command line."""

    GOOD = 0
    FAILED = 1
    USAGE = 2
    INPUT = 3
    UNCLEAR = 4


class RocpdError(Exception):
    """Base of all errors: one line with the problem, and a hint.

    Args:
        message: one line that names the file, table or option it is about.
        hint: advice for the user, or None.
    """

    exit_code = Exit.FAILED

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if hint:
            self.add_note(f"hint: {hint}")  # tracebacks show it


class InputError(RocpdError):
    """An input file that cannot be used: missing, damaged, foreign, locked."""

    exit_code = Exit.INPUT


class ForeignError(InputError):
    """An input file of another kind, such as the trace of another profiler: an importer may know it."""


class UsageError(RocpdError):
    """An invalid request: an unknown value of an option, an unknown view, a window that can't be read."""

    exit_code = Exit.USAGE


class QueryError(RocpdError):
    """SQL that SQLite refuses, in SQLite's own words."""


class ViewTextError(RocpdError, ValueError):
    """The text of a readable view does not have the form of views, or SQLite refuses it.

    Args:
        name: name of the view.
        problem: the fault of the text.
    """

    def __init__(self, name: str, problem: object) -> None:
        super().__init__(f"rocpd/schema/sql/views/{name}.sql: {problem}", "CONTRIBUTING.md says how views are written")


class OutputError(RocpdError):
    """An output that cannot be written: it exists, the disk is full, the folder is read-only."""


class WriteError(OutputError):
    """A write that the system refused: no space is left, a quota or limit is reached, or rights are missing.

    Attributes:
        reason: message of the system.
        number: its `errno`.
        written: size of the output written by then [bytes].
    """

    reason = ""
    number = 0
    written = 0

    @classmethod
    def of(cls, error: OSError) -> WriteError:
        """Return the error of the system as a `WriteError` without the name of the output."""
        made = cls(error.strerror or str(error))
        made.reason, made.number = made.message, error.errno or 0
        return made


class ClosedError(RocpdError):
    """A call on a session that was closed before."""


Class = TypeVar("Class", bound=type[Any])
_MADE = getattr(dataclasses, "_HAS_DEFAULT_FACTORY", dataclasses.MISSING)  # which `help` shows as <factory>


@overload
def frozen(cls: Class) -> Class: ...
@overload
def frozen(*, kw_only: bool = ...) -> Callable[[Class], Class]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def frozen(cls: Any = None, *, kw_only: bool = False) -> Any:
    """Make a dataclass of a class like `dataclasses.dataclass(frozen=True)`; `replace`, `fields` … work the same.

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
    for name, method in (_methods(fields) | {"__init__": _Constructor(cls, fields)}).items():
        if vars(cls).get(name) is None:
            setattr(cls, name, method)
    return cls


class _Constructor:
    """The `__init__` of a class until its first use: most classes of a command make no value, and compiling costs."""

    def __init__(self, cls: type[Any], fields: Sequence[dataclasses.Field[Any]]) -> None:
        self._cls, self._fields = cls, fields

    def __get__(self, instance: object, owner: type[Any]) -> Callable[..., None]:
        made = self._cls.__init__ = _constructor(self._cls, self._fields)
        bound: Callable[..., None] = made.__get__(instance, owner)
        return bound


def _constructor(cls: type[Any], fields: Sequence[dataclasses.Field[Any]]) -> Callable[..., None]:
    """Return a compiled `__init__` that sets fields directly: setting them by a method is most of the cost of a value.

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
    known = frozenset(field.name for field in fields)
    shown = [field.name for field in fields if field.repr]
    compared = [field.name for field in fields if field.compare]
    values: Callable[[Any], Any] = operator.attrgetter(*compared) if compared else lambda _: ()

    def set_once(self: Any, name: str, value: object) -> None:
        values_of_self = self.__dict__
        if name in values_of_self or name not in known:
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


def by_key(pairs: Iterable[tuple[_Key, _Item]]) -> dict[_Key, list[_Item]]:
    """Return key -> its items, both in order of appearance.

    >>> by_key([("b", 1), ("a", 2), ("b", 3)])
    {'b': [1, 3], 'a': [2]}
    """
    groups: dict[_Key, list[_Item]] = {}
    for key, item in pairs:
        groups.setdefault(key, []).append(item)
    return groups


def attributes(of: object, names: str) -> dict[str, Any]:
    """Return attributes of an object, as a JSON document has them: tuples as lists, members of enums by their values.

    >>> attributes(slice(1, (5,)), "start stop")
    {'start': 1, 'stop': [5]}
    """
    values = {name: getattr(of, name) for name in names.split()}
    plain = {name: value.value if isinstance(value, enum.Enum) else value for name, value in values.items()}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in plain.items()}


def few(words: Sequence[object], most: int = 5, joined: str = ", ") -> str:
    """Return words as a list in text; of many words the first ones, and the number of the rest.

    >>> few(["a", "b", "c"]), few(range(9), most=2)
    ('a, b, c', '0, 1 and 7 more')
    """
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return joined.join(map(str, words[:most])) + more


def amount(number: int, noun: str) -> str:
    """Return a number with its noun as text.

    >>> amount(1, "file"), amount(0, "rank")
    ('1 file', '0 ranks')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def percent_text(percent: float) -> str:
    """Return a percentage [%] as text, with two significant digits; from 100 on a whole number, never an exponent.

    >>> percent_text(7.86), percent_text(99.7), percent_text(152.4), percent_text(0.034)
    ('7.9 %', '100 %', '152 %', '0.034 %')
    """
    return f"{percent:.0f} %" if abs(percent) >= 99.5 else f"{percent:.2g} %"


def bytes_text(size: float) -> str:
    """Return a size [bytes] as text.

    >>> bytes_text(999), bytes_text(1_234_567)
    ('999 bytes', '1.2 MB')
    """
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
